//! What a run counts, and the history that a failing schedule prints.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

listed! {
    /// What can befall a schedule; each kind has to fire often enough in a run.
    #[derive(Deserialize, Serialize)]
    Kind {
        RequestLost, AnswerLost, RequestDelayed, AnswerDelayed, Duplicate, DuplicateAnswered,
        Reset, ErrorBefore, ErrorAfter, TooManyRequests, TooManyAfter, Conflict, ConflictAfter,
        Denied, DeniedAfter, Misconfigured, MisconfiguredAfter, NotFound, Gateway, EtagMissing,
        EtagWeak, EtagStar, EtagUnquoted, CutShort, Oversized, ErrorDocument, LateAnswer,
        OwnWriteRefused, MatchOnAbsent, StaleRead, StaleUnchanged, MovingTime, Relayed,
        CachedDate, LateDate, Undated, Redirected, SignedAnew, KeysExpired, CutRequests, CutAnswers, Outage,
        Deleted, RolledBack, Garbage, ForeignRecord, NewerFormat, Crash, Restart, Pause, Suspend,
        StepBack, StepForward, HeldClock, WildClocks, Resign, Stop, Configure, CronTick,
        DoubledTick, LateTick, VanishedIsolate, TwinIdentity, SlotTrigger, SlotSkipped,
        SlotDoubled, SlotLate, SlotEarly, SlotRun, SlotMissed, SlotRerun, SlotDone, SlotFailed,
        SlotStopped, SlotRecorded, SlotReported, SlotTaken, SlotCovered, SlotWaited, SlotLost,
        SlotUnknown, SlotOwed, PeerSilent, PeerLies, PeerRepeats, PeerHeld, PeerToldEarly,
        PeerBusy, PeerRelayed, PeerStalls, PeerFlooded, ZombieRefused, SteppedDown, PausedGroup,
        ResumedGroup, ForeignWrite, ForeignLeads, WriteEchoed,
    }
}

impl Kind {
    /// Seen only where the requests are HTTP.
    pub const OF_HTTP: [Kind; 3] = [Kind::Redirected, Kind::SignedAnew, Kind::KeysExpired];
}

listed! {
    /// Why a claim was allowed.
    #[derive(Deserialize, Serialize)]
    Ground { Absent, Tombstone, Parked, GraceOver, OwnLapsed, Healed, Watched, StoreClock }
}

/// The counts of one schedule, or of many.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Tally {
    pub steps: u64,
    pub simulated_ms: u64,
    pub requests: u64,
    pub terms: u64,
    pub failovers: u64,
    /// The most requests that one session sent within one of its leases.
    pub busiest: u64,
    /// The longest time after healing until somebody led, in thousandths of the stated bound.
    pub slowest_per_mille: u64,
    faults: BTreeMap<Kind, u64>,
    claims: BTreeMap<Ground, u64>,
}

impl Tally {
    pub fn fault(&mut self, kind: Kind) {
        *self.faults.entry(kind).or_default() += 1;
    }

    pub fn claim(&mut self, ground: Ground) {
        *self.claims.entry(ground).or_default() += 1;
    }

    pub fn faults(&self, kind: Kind) -> u64 {
        self.faults.get(&kind).copied().unwrap_or(0)
    }

    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.simulated_ms += other.simulated_ms;
        self.requests += other.requests;
        self.terms += other.terms;
        self.failovers += other.failovers;
        self.busiest = self.busiest.max(other.busiest);
        self.slowest_per_mille = self.slowest_per_mille.max(other.slowest_per_mille);
        for (kind, count) in &other.faults {
            *self.faults.entry(*kind).or_default() += count;
        }
        for (ground, count) in &other.claims {
            *self.claims.entry(*ground).or_default() += count;
        }
    }

    /// What befell the schedules, and what justified their claims, as two paragraphs.
    pub fn told(&self) -> String {
        let faults = Kind::ALL.map(|kind| format!("{kind:?} {}", grouped(self.faults(kind))));
        let claims = |why: &Ground| self.claims.get(why).copied().unwrap_or(0);
        let claims = Ground::ALL.map(|why| format!("{why:?} {}", grouped(claims(&why))));
        format!(
            "Faults: {}.\n\nClaims, by what justified them: {}.\n",
            faults.join(", "),
            claims.join(", ")
        )
    }
}

/// 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The story of one schedule: always its hash, its lines only when somebody will read them.
#[derive(Default)]
pub struct History {
    pub keep: bool,
    pub lines: Vec<String>,
    pub hash: u64,
}

impl History {
    pub fn mix(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    pub fn note(&mut self, now_ms: u64, line: impl FnOnce() -> String) {
        if self.keep {
            self.lines.push(format!("{:>9.3}s {}", now_ms as f64 / 1e3, line()));
        }
    }
}
