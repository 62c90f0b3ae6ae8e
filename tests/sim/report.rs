//! What a run counts, and the history that a failing schedule prints.

use std::fmt::Write;

/// An enum and the list of all that it has.
macro_rules! listed {
    ($(#[$about:meta])* $name:ident { $($each:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($each),+
        }

        impl $name {
            pub const ALL: [$name; [$($name::$each),+].len()] = [$($name::$each),+];
        }
    };
}

listed! {
    /// What can befall a schedule; each kind has to fire often enough in a run.
    Kind {
        RequestLost,
        AnswerLost,
        RequestDelayed,
        AnswerDelayed,
        Duplicate,
        DuplicateAnswered,
        Reset,
        ErrorBefore,
        ErrorAfter,
        TooManyRequests,
        TooManyAfter,
        Conflict,
        ConflictAfter,
        Denied,
        DeniedAfter,
        Misconfigured,
        MisconfiguredAfter,
        NotFound,
        Gateway,
        EtagMissing,
        EtagWeak,
        EtagStar,
        EtagUnquoted,
        CutShort,
        Oversized,
        ErrorDocument,
        LateAnswer,
        OwnWriteRefused,
        MatchOnAbsent,
        StaleRead,
        StaleUnchanged,
        MovingTime,
        Relayed,
        CachedDate,
        Undated,
        Redirected,
        SignedAnew,
        KeysExpired,
        CutRequests,
        CutAnswers,
        Outage,
        Deleted,
        RolledBack,
        Garbage,
        ForeignRecord,
        NewerFormat,
        Crash,
        Restart,
        Pause,
        Suspend,
        StepBack,
        StepForward,
        HeldClock,
        WildClocks,
        Resign,
        Stop,
        Configure,
        CronTick,
        DoubledTick,
        LateTick,
        VanishedIsolate,
        TwinIdentity,
        SlotTrigger,
        SlotSkipped,
        SlotDoubled,
        SlotLate,
        SlotEarly,
        SlotRun,
        SlotMissed,
        SlotRerun,
        SlotDone,
        SlotFailed,
        SlotStopped,
        SlotRecorded,
        SlotReported,
        SlotTaken,
        SlotCovered,
        SlotWaited,
        SlotLost,
        SlotUnknown,
        SlotOwed,
        PeerSilent,
        PeerLies,
        PeerRepeats,
        ZombieRefused,
    }
}

impl Kind {
    /// Seen only where the requests are HTTP.
    pub const OF_HTTP: [Kind; 3] = [Kind::Redirected, Kind::SignedAnew, Kind::KeysExpired];
}

listed! {
    /// Why a claim was allowed.
    Ground { Absent, Tombstone, Parked, GraceOver, OwnLapsed, Healed, Watched, StoreClock }
}

/// The counts of one schedule, or of many.
#[derive(Clone, Debug)]
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
    /// How long nobody led at most, in milliseconds.
    pub leaderless_ms: u64,
    faults: [u64; Kind::ALL.len()],
    claims: [u64; Ground::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            steps: 0,
            simulated_ms: 0,
            requests: 0,
            terms: 0,
            failovers: 0,
            busiest: 0,
            slowest_per_mille: 0,
            leaderless_ms: 0,
            faults: [0; Kind::ALL.len()],
            claims: [0; Ground::ALL.len()],
        }
    }
}

impl Tally {
    pub fn fault(&mut self, kind: Kind) {
        self.faults[kind as usize] += 1;
    }

    pub fn claim(&mut self, ground: Ground) {
        self.claims[ground as usize] += 1;
    }

    pub fn faults(&self, kind: Kind) -> u64 {
        self.faults[kind as usize]
    }

    pub fn claims(&self, ground: Ground) -> u64 {
        self.claims[ground as usize]
    }

    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.simulated_ms += other.simulated_ms;
        self.requests += other.requests;
        self.terms += other.terms;
        self.failovers += other.failovers;
        self.busiest = self.busiest.max(other.busiest);
        self.slowest_per_mille = self.slowest_per_mille.max(other.slowest_per_mille);
        self.leaderless_ms = self.leaderless_ms.max(other.leaderless_ms);
        for kind in Kind::ALL {
            self.faults[kind as usize] += other.faults(kind);
        }
        for ground in Ground::ALL {
            self.claims[ground as usize] += other.claims(ground);
        }
    }

    /// Every number and its name.
    pub fn numbers(&self) -> Vec<(String, u64)> {
        let mut copy = self.clone();
        let slots = copy.slots();
        slots.into_iter().map(|(name, number)| (name, *number)).collect()
    }

    /// Sets the number of this name; `None` if there is no such name.
    pub fn set_number(&mut self, name: &str, number: u64) -> Option<()> {
        let (_, slot) = self.slots().into_iter().find(|(slot, _)| slot == name)?;
        *slot = number;
        Some(())
    }

    fn slots(&mut self) -> Vec<(String, &mut u64)> {
        let mut slots = vec![
            ("steps".to_owned(), &mut self.steps),
            ("simulatedMs".to_owned(), &mut self.simulated_ms),
            ("requests".to_owned(), &mut self.requests),
            ("terms".to_owned(), &mut self.terms),
            ("failovers".to_owned(), &mut self.failovers),
            ("busiest".to_owned(), &mut self.busiest),
            ("slowestPerMille".to_owned(), &mut self.slowest_per_mille),
            ("leaderlessMs".to_owned(), &mut self.leaderless_ms),
        ];
        let faults = Kind::ALL.iter().map(|kind| format!("{kind:?}"));
        slots.extend(faults.zip(&mut self.faults));
        let claims = Ground::ALL.iter().map(|ground| format!("claim{ground:?}"));
        slots.extend(claims.zip(&mut self.claims));
        slots
    }

    /// The counts by kind, a few to a line.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        let faults = Kind::ALL.map(|kind| (format!("{kind:?}"), self.faults(kind)));
        let claims = Ground::ALL.map(|ground| (format!("{ground:?}"), self.claims(ground)));
        for (title, counts) in [("faults", &faults[..]), ("claims", &claims[..])] {
            for row in counts.chunks(5) {
                let cells: Vec<String> =
                    row.iter().map(|(name, count)| format!("{name} {count}")).collect();
                writeln!(text, "  {title}: {}", cells.join(", ")).expect("a String takes all");
            }
        }
        text
    }
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
