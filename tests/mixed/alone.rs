//! One election without a store, told answer by answer at times of one's own.

use edgelect::clock::Now;
use edgelect::election::{Election, Event, Input, Step};
use edgelect::lease::{Lease, Reading};
use edgelect::store::{Answer, Facts, Outcome, Version};

pub struct Alone {
    pub election: Election,
    /// The monotonic clock, and what the wall clock showed when it was 0.
    pub ms: u64,
    began_ms: u64,
    told: Vec<Event>,
}

impl Alone {
    pub fn new(election: Election, began_ms: u64) -> Self {
        Self { election, ms: 0, began_ms, told: Vec::new() }
    }

    pub fn now(&self) -> Now {
        Now::new(self.ms, self.began_ms + self.ms)
    }

    pub fn leads(&self) -> bool {
        self.election.authority(self.now()).is_some()
    }

    /// Tells it something now.
    pub fn tell(&mut self, input: Input) {
        let now = self.now();
        self.election.handle(now, input);
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

    /// What it does next, whenever that is; the work of a lost term stops at once.
    pub fn step(&mut self) -> Step {
        loop {
            self.told = self.events();
            match self.election.poll(self.now()) {
                Step::Wait { until_ms } => self.ms = until_ms.max(self.ms + 1),
                step => return step,
            }
        }
    }

    /// The answer to what it did last comes after so long.
    pub fn hears(&mut self, after_ms: u64, outcome: Outcome, facts: Facts) {
        self.ms += after_ms;
        self.tell(Input::Answer(Answer { outcome, facts }));
    }

    pub fn answer(&mut self, after_ms: u64, outcome: Outcome) {
        self.hears(after_ms, outcome, Facts::default());
    }

    pub fn found(&mut self, after_ms: u64, version: &str, lease: &Lease) {
        self.answer(after_ms, found(version, lease));
    }

    pub fn written(&mut self, after_ms: u64, version: &str) {
        self.answer(after_ms, Outcome::Written { version: Some(Version(version.to_owned())) });
    }
}

pub fn found(version: &str, lease: &Lease) -> Outcome {
    let reading = Reading::Lease(Box::new(lease.clone()));
    Outcome::Found { version: Version(version.to_owned()), reading }
}
