//! What an election may believe about time (S11): readings of the host's clocks, and what the store's `Date`
//! says about them.

use crate::config::HostClock;
use crate::store::Facts;

/// How far `Date` and the own clock may move apart between two answers, in milliseconds (S6, S11).
const DRIFT_MS: i64 = 2_000;

/// One reading of the host's clocks. Both count milliseconds; a host with one clock gives it twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock, from any origin.
    pub mono_ms: u64,
    /// The wall clock, since the Unix epoch.
    pub wall_ms: u64,
    /// Whether the reading equals the due time of the host's earliest pending timer: a clock that is held
    /// there until the timer fires, and so says nothing (S11; only hosts with one clock do this).
    pub held: bool,
}

impl Now {
    /// A reading of two clocks.
    pub fn new(mono_ms: u64, wall_ms: u64) -> Self {
        Self { mono_ms, wall_ms, held: false }
    }

    /// How long ago `earlier` was, for something that we hold: the greater of the two differences, because
    /// suspend stops the one clock and a step moves the other.
    pub fn since_pessimistic_ms(&self, earlier: Now) -> u64 {
        let mono_ms = self.mono_ms.saturating_sub(earlier.mono_ms);
        mono_ms.max(self.wall_ms.saturating_sub(earlier.wall_ms))
    }
}

/// How the own clock and the store's `Date` moved between the last two answers that had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// There were no two answers with a `Date` to compare.
    Unproven,
    /// Within the tolerance.
    Agreed,
    /// `Date` moved on by more: the own clock lost time.
    StoreAhead,
    /// The own clock moved on by more.
    OwnAhead,
}

/// The memory that the rules on clocks need.
#[derive(Clone, Debug)]
pub struct Clocks {
    kind: HostClock,
    last_mono_ms: u64,
    /// `Date` of the newest answer that had one, and the own clocks when it was processed.
    sample: Option<(u64, Now)>,
    /// Set by a held reading, cleared by the next answer that comes with a moving clock.
    awaiting_answer: bool,
}

impl Clocks {
    /// For a host of this kind.
    pub fn new(kind: HostClock) -> Self {
        Self { kind, last_mono_ms: 0, sample: None, awaiting_answer: false }
    }

    /// Whether the host has one clock only.
    pub fn single(&self) -> bool {
        self.kind == HostClock::One
    }

    /// Takes note of a reading; true if a single clock stepped backward, so that every duration that began
    /// before is unknown.
    pub fn read(&mut self, now: Now) -> bool {
        let backward = self.single() && now.mono_ms < self.last_mono_ms;
        self.last_mono_ms = now.mono_ms;
        self.awaiting_answer |= self.single() && now.held;
        if backward {
            self.sample = None;
        }
        backward
    }

    /// Takes note of an answer's `Date` and compares how far it moved with the own clock.
    pub fn answer(&mut self, now: Now, facts: &Facts) -> Drift {
        self.awaiting_answer &= now.held;
        let Some(date_ms) = facts.date_ms else {
            return Drift::Unproven;
        };
        let earlier = self.sample.replace((date_ms, now));
        let Some((earlier_date_ms, earlier_now)) = earlier else {
            return Drift::Unproven;
        };
        let date_moved_ms = signed_difference(date_ms, earlier_date_ms);
        let own_moved_ms = signed_difference(now.mono_ms, earlier_now.mono_ms);
        match date_moved_ms - own_moved_ms {
            apart_ms if apart_ms > DRIFT_MS => Drift::StoreAhead,
            apart_ms if apart_ms < -DRIFT_MS => Drift::OwnAhead,
            _ => Drift::Agreed,
        }
    }

    /// Whether authority may be judged at this reading at all (S11).
    pub fn trusted(&self, now: Now) -> bool {
        !(self.single() && (now.held || self.awaiting_answer))
    }

    /// Storage time in milliseconds since the Unix epoch: the newest `Date` plus own monotonic time since,
    /// or the own wall clock where the store names none.
    pub fn storage_ms(&self, now: Now) -> u64 {
        match self.sample {
            Some((date_ms, at)) => date_ms.saturating_add(now.mono_ms.saturating_sub(at.mono_ms)),
            None => now.wall_ms,
        }
    }

    /// Storage time rounded up (S2): `Date` has whole seconds, so the true time may be 999 ms later.
    pub fn storage_ceiling_ms(&self, now: Now) -> u64 {
        let rounding_ms = if self.sample.is_some() { 999 } else { 0 };
        self.storage_ms(now).saturating_add(rounding_ms)
    }
}

fn signed_difference(later: u64, earlier: u64) -> i64 {
    let difference = i128::from(later) - i128::from(earlier);
    difference.clamp(i128::from(i64::MIN / 4), i128::from(i64::MAX / 4)) as i64
}
