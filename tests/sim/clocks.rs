//! The clocks of one machine, as seen by somebody who knows the true time.

use edgelect::clock::Now;

/// True time in milliseconds at which every schedule starts, so that wall clocks can be a day
/// behind.
pub const EPOCH_MS: u64 = 1_795_000_000_123;

/// One machine's clocks: how they start, how fast they run, and what happened to them.
#[derive(Default)]
pub struct Clocks {
    /// One clock serves as both, as on Cloudflare Workers.
    pub single: bool,
    /// How much faster than true time they run, in parts per million.
    pub rate_ppm: i64,
    /// The monotonic reading at true time 0.
    pub mono_origin_ms: u64,
    /// How far the wall clock is from the truth; steps change it.
    pub wall_offset_ms: i64,
    rate_per_2_32: i64,
    suspended_ms: u64,
    suspended_since_ms: Option<u64>,
}

impl Clocks {
    pub fn new(single: bool, rate_ppm: i64, mono_origin_ms: u64, wall_offset_ms: i64) -> Self {
        let rate_per_2_32 = (rate_ppm << 32) / 1_000_000;
        let told = Self { single, rate_ppm, mono_origin_ms, wall_offset_ms, ..Self::default() };
        Self { rate_per_2_32, ..told }
    }

    /// How long a span of true time lasts on these clocks.
    pub fn local_ms(&self, true_ms: u64) -> u64 {
        // A binary fraction: this is asked several times a step, and a division is not for nothing.
        let gained = true_ms as i64 * self.rate_per_2_32;
        true_ms.saturating_add_signed(gained >> 32)
    }

    pub fn mono_ms(&self, true_ms: u64) -> u64 {
        if self.single { self.wall_ms(true_ms) } else { self.timers_ms(true_ms) }
    }

    /// What timers go by. Nobody steps it, not even where the machine has one clock only.
    pub fn timers_ms(&self, true_ms: u64) -> u64 {
        self.mono_origin_ms + self.local_ms(self.lived_ms(true_ms))
    }

    /// True time without that for which the host slept.
    pub fn lived_ms(&self, true_ms: u64) -> u64 {
        let until_ms = self.suspended_since_ms.map_or(true_ms, |since_ms| since_ms.min(true_ms));
        until_ms - self.suspended_ms
    }

    pub fn wall_ms(&self, true_ms: u64) -> u64 {
        // A single clock stands still while its host sleeps, and nobody steps it.
        let lived_ms = if self.single { self.lived_ms(true_ms) } else { true_ms };
        (EPOCH_MS + self.local_ms(lived_ms)).saturating_add_signed(self.wall_offset_ms)
    }

    pub fn reading(&self, true_ms: u64) -> Now {
        Now::new(self.mono_ms(true_ms), self.wall_ms(true_ms))
    }

    /// The first true instant from `from_ms` on at which the monotonic clock reads `mono_ms` or
    /// more, if nothing happens to the clock until then.
    pub fn true_when(&self, from_ms: u64, mono_ms: u64) -> u64 {
        let left_ms = mono_ms.saturating_sub(self.mono_ms(from_ms));
        if self.rate_ppm == 0 && self.suspended_since_ms.is_none() {
            return from_ms + left_ms;
        }
        let scaled_ms = left_ms * 1_000_000 / (1_000_000 + self.rate_ppm) as u64;
        let mut at_ms = from_ms + scaled_ms.saturating_sub(2);
        while self.suspended_since_ms.is_none() && self.mono_ms(at_ms) < mono_ms {
            at_ms += 1;
        }
        at_ms
    }

    /// The same of a timer that is due then.
    pub fn true_when_due(&self, from_ms: u64, due_ms: u64) -> u64 {
        let left_ms = due_ms.saturating_sub(self.timers_ms(from_ms));
        self.true_when(from_ms, self.mono_ms(from_ms) + left_ms)
    }

    pub fn suspend(&mut self, true_ms: u64) {
        self.suspended_since_ms.get_or_insert(true_ms);
    }

    pub fn resume(&mut self, true_ms: u64) {
        if let Some(since_ms) = self.suspended_since_ms.take() {
            self.suspended_ms += true_ms - since_ms;
        }
    }
}
