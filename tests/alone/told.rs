//! One election without a driver: a test answers each request, and says what time it is.

use edgelect::clock::Now;
use edgelect::config::HostClock;
use edgelect::election::{Election, Event, Step};
use edgelect::lease::{self, Lease, Reading};
use edgelect::store::{Answer, Condition, Facts, Fault, FaultKind, Outcome, Version};
use edgelect::{Config, Input, Settings};

/// 2026-11-21T06:58:12Z.
pub const AT_MS: u64 = 1_795_244_292_000;

/// A living leader's record.
pub const LIVING: &str = r#"{"leaderID":"other","session":"o","sequence":1,"term":5,"leaseMs":15000,
    "acquired":"2026-11-21T06:00:00Z","lastUpdated":"2026-11-21T06:58:12Z"}"#;

/// The same of a member of this name, after so many renewals, with more fields.
pub fn record(name: &str, sequence: u64, more: &str) -> String {
    let named = LIVING.replace("\"other\"", &format!("\"{name}\""));
    named
        .replace("\"sequence\":1", &format!("\"sequence\":{sequence}"))
        .replace('}', &format!("{more}}}"))
}

pub fn tombstone(sequence: u64) -> String {
    record("other", sequence, "").replace("2026-11-21T06:58:12Z", "0001-01-01T00:00:00Z")
}

pub struct Alone {
    pub election: Election,
    /// The monotonic clock. A host with one clock shows its wall clock in its place.
    pub ms: u64,
    /// What the wall clock shows at 0 ms.
    pub from_ms: u64,
    /// How far the store's clock is ahead.
    pub ahead_ms: u64,
    /// Whether the store's answers have a `Date`.
    pub dated: bool,
    /// `Last-Modified`, where the store names one.
    pub modified_ms: Option<u64>,
    pub takes_ms: u64,
    /// Whether the clock is held at a timer of somebody else.
    pub held: bool,
    /// What it has said and nobody has asked for.
    pub told: Vec<Event>,
}

pub fn settings() -> Settings {
    Settings {
        lockfile_path: Some("leader/x.json".to_owned()),
        server_id: Some("ours".to_owned()),
        ..Settings::default()
    }
}

pub fn config(settings: &Settings) -> Config {
    Config::new(settings).expect("the settings keep every rule")
}

impl Alone {
    pub fn new(settings: &Settings) -> Self {
        Self::of(Election::new(config(settings), "session".to_owned(), 7))
    }

    pub fn with_one_clock() -> Self {
        Self::new(&Settings { clock: HostClock::One, ..settings() })
    }

    pub fn of(election: Election) -> Self {
        let (ms, from_ms, ahead_ms, takes_ms) = (0, AT_MS, 0, 10);
        let (dated, modified_ms, told) = (true, None, Vec::new());
        Self { election, ms, from_ms, ahead_ms, dated, modified_ms, takes_ms, held: false, told }
    }

    /// Over a store that tells no time; the wall clock shows this at 0 ms.
    pub fn undated(election: Election, from_ms: u64) -> Self {
        Self { dated: false, from_ms, ..Self::of(election) }
    }

    pub fn now(&self) -> Now {
        let now = Now::new(self.monotonic_from_ms() + self.ms, self.from_ms + self.ms);
        Now { held: self.held, ..now }
    }

    fn monotonic_from_ms(&self) -> u64 {
        match self.election.config().clock {
            HostClock::One => self.from_ms,
            HostClock::Two => 0,
        }
    }

    /// The next request, or the end; time passes until then. The work of a lost term stops at once.
    pub fn step(&mut self) -> Step {
        loop {
            self.told = self.events();
            match self.election.poll(self.now()) {
                Step::Wait { until_ms } => {
                    self.ms = (until_ms - self.monotonic_from_ms()).max(self.ms + 1);
                }
                step => return step,
            }
        }
    }

    pub fn reads(&mut self) {
        let step = self.step();
        assert!(matches!(step, Step::Read { .. }), "at {} ms: {step:?}", self.ms);
    }

    pub fn claims(&mut self) -> (Lease, Condition) {
        match self.step() {
            Step::Claim { lease, seen, .. } => (*lease, seen),
            step => panic!("at {} ms: {step:?}", self.ms),
        }
    }

    /// It finds nothing and makes a record, and writes over that at once: what stands there then, as version "r".
    pub fn makes(&mut self) -> Lease {
        self.reads();
        self.answer(Outcome::Missing);
        let (made, seen) = self.claims();
        assert_eq!((seen, made.is_creation()), (Condition::Absent, true));
        self.written("\"c\"");
        self.reserves("\"c\"")
    }

    /// It writes over a creation, without authority: version "r".
    pub fn reserves(&mut self, creation: &str) -> Lease {
        let (reserved, seen) = self.claims();
        assert_eq!((seen, reserved.in_grace()), (matching(creation), true));
        assert!(!reserved.is_creation(), "{reserved:?}");
        self.written("\"r\"");
        reserved
    }

    pub fn renews(&mut self) -> (Lease, Condition) {
        match self.step() {
            Step::Renew { lease, held, .. } => (*lease, Condition::Match(held)),
            step => panic!("at {} ms: {step:?}", self.ms),
        }
    }

    pub fn store_ms(&self) -> u64 {
        AT_MS + self.ahead_ms + self.ms
    }

    pub fn facts(&self) -> Facts {
        let date_ms = self.dated.then(|| self.store_ms() / 1_000 * 1_000);
        Facts { date_ms, last_modified_ms: self.modified_ms, ..Facts::default() }
    }

    pub fn answer(&mut self, outcome: Outcome) {
        self.answer_with(outcome, Self::facts);
    }

    /// An answer that says this of time; only a whole one has a `Last-Modified`.
    pub fn answer_with(&mut self, outcome: Outcome, facts: impl FnOnce(&Self) -> Facts) {
        self.ms += self.takes_ms;
        let mut facts = facts(self);
        if outcome == Outcome::Unchanged {
            facts.last_modified_ms = None;
        }
        self.tell(Input::Answer(Answer { outcome, facts }));
    }

    pub fn tell(&mut self, input: Input) {
        let now = self.now();
        self.election.handle(now, input);
    }

    pub fn found(&mut self, version: &str, body: &str) {
        self.answer(found(version, body));
    }

    pub fn shows(&mut self, version: &str, lease: &Lease) {
        let reading = Reading::Lease(Box::new(lease.clone()));
        self.answer(Outcome::Found { version: Version(version.to_owned()), reading });
    }

    pub fn written(&mut self, version: &str) {
        self.answer(Outcome::Written { version: Some(Version(version.to_owned())) });
    }

    pub fn silence(&mut self) {
        self.answer(unknown());
    }

    /// A request gets no answer for as long as it may take.
    pub fn timeout(&mut self) {
        self.ms += 1_790;
        self.silence();
    }

    /// Answers reads with this record until something is written.
    pub fn until_written(&mut self, version: &str, body: &str) -> (Lease, Condition) {
        self.until_written_with(version, body, Self::facts)
    }

    pub fn until_written_with(
        &mut self,
        version: &str,
        body: &str,
        facts: impl Fn(&Self) -> Facts,
    ) -> (Lease, Condition) {
        for _ in 0..200 {
            match self.step() {
                Step::Read { unless: None, .. } => self.answer_with(found(version, body), &facts),
                Step::Read { .. } => self.answer_with(Outcome::Unchanged, &facts),
                Step::Claim { lease, seen, .. } => return (*lease, seen),
                Step::Renew { lease, held, .. } => return (*lease, Condition::Match(held)),
                other => panic!("{other:?}"),
            }
        }
        panic!("nothing is written within {} ms", self.ms)
    }

    pub fn leads(&self) -> bool {
        self.election.authority(self.now()).is_some()
    }

    /// What it has said since this was asked.
    pub fn events(&mut self) -> Vec<Event> {
        while let Some(event) = self.election.next_event() {
            if let Event::Lost { term, .. } = event {
                self.tell(Input::WorkEnded { term });
            }
            self.told.push(event);
        }
        std::mem::take(&mut self.told)
    }
}

pub fn text(lease: &Lease) -> String {
    String::from_utf8(lease::write(lease)).expect("JSON is text")
}

pub fn matching(version: &str) -> Condition {
    Condition::Match(Version(version.to_owned()))
}

pub fn found(version: &str, body: &str) -> Outcome {
    Outcome::Found { version: Version(version.to_owned()), reading: lease::read(body.as_bytes()) }
}

pub fn unknown() -> Outcome {
    let cause = Fault::new(FaultKind::Timeout, "no answer");
    Outcome::Unknown { retry_after_ms: None, cause }
}

pub fn busy() -> Outcome {
    let failed = Fault { status: Some(503), ..Fault::new(FaultKind::Unavailable, "slow down") };
    Answer::unknown(failed).outcome
}

pub fn denied() -> Outcome {
    Outcome::Rejected(Fault::new(FaultKind::Denied, "no"))
}
