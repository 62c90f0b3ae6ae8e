//! What one variant of the model allows: how many sessions, for how long, and which misfortunes.

use edgelect::clock::Now;
use edgelect::{Config, Follow, Settings};

/// One tick of true time in milliseconds.
///
/// Every pause of the settings below ends, whatever jitter it draws, at the same tick: so one draw stands for
/// all. A lease of 1000 ms ends 40 ms before the fourth tick, so that a claim can follow it at that very
/// tick: the model gives away nothing but these 40 ms and the margin.
pub const TICK_MS: u64 = 260;

/// A second of the wall clock, where the run begins.
const EPOCH_MS: u64 = 1_000_000;

/// Misfortunes that may still happen. Delay is free: every message may take any time, or for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Ticks at which a session does nothing though something is due.
    pub pauses: u8,
    /// Writes that arrive and leave a copy under way.
    pub copies: u8,
    /// Sessions that end without a word. A new one may follow at any time.
    pub crashes: u8,
    /// Times that somebody deletes the object.
    pub deletions: u8,
    /// Times that a session is told to resign, to stop or to park.
    pub farewells: u8,
    /// Requests or answers that get lost in a calm variant.
    pub losses: u8,
}

/// One session's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What its clocks count in one tick of true time, in milliseconds.
    pub tick_ms: u64,
    /// How far its wall clock is ahead, in milliseconds.
    pub ahead_ms: u64,
}

/// What is in the store at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Nothing.
    Absent,
    /// A tombstone, as `init` writes it.
    Released,
    /// The same, but the first session has claimed it and the others have seen that.
    Led,
}

/// One variant.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub begin: Begin,
    pub clocks: Vec<Clock>,
    /// The last tick of true time.
    pub last_tick: u64,
    pub budget: Budget,
    /// Whether answers carry `Date` and `Last-Modified`.
    pub dated: bool,
    /// Whether the network is calm: what is not lost within the budget is answered within its tick.
    pub calm: bool,
    /// For how many ticks a calm variant may be without a leader.
    pub leaderless_ticks: u64,
    pub configs: Vec<Config>,
    pub bug: Option<edgelect::planted::Bug>,
}

impl Bounds {
    /// So many sessions, equal clock rates, wall clocks an hour apart, and no misfortunes but delay.
    pub fn new(name: &'static str, sessions: usize, last_tick: u64) -> Self {
        let clock = |ahead_h| Clock { tick_ms: TICK_MS, ahead_ms: ahead_h * 3_600_000 };
        let mut bounds = Self {
            name,
            begin: Begin::Released,
            clocks: (0..sessions as u64).map(clock).collect(),
            last_tick,
            budget: Budget::default(),
            dated: false,
            calm: false,
            leaderless_ticks: u64::MAX,
            configs: Vec::new(),
            bug: None,
        };
        bounds.set_margin(10);
        bounds
    }

    /// The same with wall clocks that agree, as the storage time of S2 needs where the store names no
    /// `Date` and somebody deletes the object.
    pub fn with_one_wall(mut self) -> Self {
        self.clocks.iter_mut().for_each(|clock| clock.ahead_ms = 0);
        self
    }

    /// The same with clocks that count so many milliseconds in a tick, and this margin.
    pub fn with_rates(mut self, rates_ms: &[u64], margin_ms: u64) -> Self {
        for (clock, tick_ms) in self.clocks.iter_mut().zip(rates_ms) {
            clock.tick_ms = *tick_ms;
        }
        self.set_margin(margin_ms);
        self
    }

    /// The same in a calm network, with so many ticks without a leader at most.
    pub fn calm(mut self, leaderless_ticks: u64) -> Self {
        self.calm = true;
        self.leaderless_ticks = leaderless_ticks;
        self
    }

    fn set_margin(&mut self, margin_ms: u64) {
        self.configs = (0..self.clocks.len()).map(|index| config(index, margin_ms)).collect();
    }

    /// The reading of a session's clocks at a tick.
    pub fn now(&self, index: usize, tick: u64) -> Now {
        self.reading(index, tick * self.clocks[index].tick_ms)
    }

    /// The reading of both of a session's clocks when its monotonic one shows this.
    pub fn reading(&self, index: usize, mono_ms: u64) -> Now {
        Now::new(mono_ms, EPOCH_MS + self.clocks[index].ahead_ms + mono_ms)
    }

    /// The first tick at which a session's monotonic clock shows at least this.
    pub fn tick_of(&self, index: usize, mono_ms: u64) -> u64 {
        mono_ms.div_ceil(self.clocks[index].tick_ms)
    }

    /// The store's clock at a tick.
    pub fn store_ms(&self, tick: u64) -> u64 {
        EPOCH_MS + tick * TICK_MS
    }
}

/// The shortest lease that is allowed, in four ticks: the leader renews after two, a request is cut off after
/// one. A follower reads once per lease.
fn config(index: usize, margin_ms: u64) -> Config {
    let settings = Settings {
        lockfile_path: Some("leader".to_owned()),
        server_id: Some(["a", "b", "c"][index].to_owned()),
        leader_timeout_ms: Some(1_000),
        frequent_interval_ms: Some(340),
        infrequent_interval_ms: Some(1_000),
        margin_ms: Some(margin_ms),
        request_timeout_ms: Some(80),
        retry_delays_ms: Some([5, 200]),
        store_skew_ms: Some(0),
        follow: Some(Follow::Frugal),
        ..Settings::default()
    };
    Config::new(&settings).expect("the settings keep every rule")
}
