//! One election over a store that tells no time, whose answers take as long as a test says.

use std::ops::{Deref, DerefMut};

use edgelect::election::Election;
use edgelect::lease::{Lease, Reading};
use edgelect::store::{Facts, Outcome, Version};

use crate::alone::told;

pub struct Alone(told::Alone);

impl Deref for Alone {
    type Target = told::Alone;

    fn deref(&self) -> &told::Alone {
        &self.0
    }
}

impl DerefMut for Alone {
    fn deref_mut(&mut self) -> &mut told::Alone {
        &mut self.0
    }
}

impl Alone {
    /// Its wall clock shows this when the monotonic one is 0.
    pub fn new(election: Election, began_ms: u64) -> Self {
        Self(told::Alone { dated: false, from_ms: began_ms, ..told::Alone::of(election) })
    }

    pub fn hears(&mut self, after_ms: u64, outcome: Outcome, facts: Facts) {
        self.takes_ms = after_ms;
        self.answer_with(outcome, |_| facts);
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
