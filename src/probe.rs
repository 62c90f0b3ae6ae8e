//! Whether a store keeps what an election leans on, asked before the store is trusted.
//!
//! A store that takes a condition and ignores it lets two lead at once, and nothing in an election shows it. So a probe
//! breaks each condition on purpose, on an object of its own, and looks at what the store keeps afterwards. What cannot be told is no
//! violation: a store that is busy, far away or forbids the probe may still be a good one.

use core::pin::pin;

use futures::future::join5;

use crate::config::Config;
use crate::driver::{Host, perform_within};
use crate::json::Writer;
use crate::lease::Reading;
use crate::prelude::*;
use crate::store::{Condition, Facts, Fault, FaultKind, Operation, Outcome, Store, Version};

/// The resolution of `Date` and `Last-Modified`.
const SECOND_MS: u64 = 1_000;

const UNSEEN: &str = "does not show a write that it has just accepted";

/// What a probe does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// An update of an object that does not exist; must be refused.
    UpdateOfNothing,
    /// A create.
    Create,
    /// A create of what exists; must be refused.
    CreateAgain,
    /// An update with the current version.
    Update,
    /// An update with the version before; must be refused.
    StaleUpdate,
    /// Five updates of one version at once; one may land.
    Race,
    /// `Date` beside the `Last-Modified` of a write of a moment ago.
    Clocks,
}

impl Step {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::UpdateOfNothing => "update of an absent object",
            Self::Create => "create",
            Self::CreateAgain => "create again",
            Self::Update => "update",
            Self::StaleUpdate => "update with a stale version",
            Self::Race => "race",
            Self::Clocks => "clocks",
        }
    }
}

/// What a step has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The store did as it must.
    Holds,
    /// Nothing can be concluded, and why.
    Unclear(String),
    /// The store did what lets two lead; what it did.
    Violated(String),
}

/// One step and what it has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The step.
    pub step: Step,
    /// What it has shown.
    pub finding: Finding,
}

/// The key of the object for one probe, beside the lease's. Each probe has its own, so that two never meet.
///
/// # Errors
/// The host has no randomness.
pub fn key<H: Host>(lockfile_path: &str, host: &H) -> Result<String, String> {
    Ok([lockfile_path, ".probe-", &hex::encode(host.random()?)].concat())
}

/// Judges a store by an object at a [`key`] that nobody else uses; it stays there. Ends with the first violation, or
/// where a step is so unclear that the next ones would have nothing to stand on.
///
/// # Errors
/// The host has no randomness.
pub async fn probe<S: Store, H: Host>(
    object: &S,
    host: &H,
    config: &Config,
) -> Result<Vec<Judged>, String> {
    let session = hex::encode(host.random()?);
    let mut probe = Probe { object, host, config, session, judged: Vec::new() };
    // Where it ends early, the findings say why.
    let _ended = probe.run().await;
    Ok(probe.judged)
}

/// The violation among the findings, as the error that stops an elector: the store, the step, what it did.
pub fn violation<S: Store>(object: &S, judged: &[Judged]) -> Option<Fault> {
    judged.iter().find_map(|Judged { step, finding }| {
        let Finding::Violated(what) = finding else { return None };
        let pieces = [&object.describe(), ": probe step \"", step.name(), "\": ", what];
        Some(Fault::new(FaultKind::Misconfigured, pieces.concat()))
    })
}

struct Probe<'a, S, H> {
    object: &'a S,
    host: &'a H,
    config: &'a Config,
    session: String,
    judged: Vec<Judged>,
}

/// A probe ends before its last step.
struct Ended;

/// What the object holds.
struct Stored {
    /// The number of our write, `None` where there is no object.
    sequence: Option<u64>,
    version: Option<Version>,
    facts: Facts,
}

impl<S: Store, H: Host> Probe<'_, S, H> {
    async fn run(&mut self) -> Result<(), Ended> {
        let nothing = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
        let broken = self.must_refuse(1, Condition::Match(nothing), None).await;
        self.note(Step::UpdateOfNothing, broken)?;
        let created = self.must_land(2, Condition::Absent).await;
        let first = self.note_version(Step::Create, created)?;
        let broken = self.must_refuse(3, Condition::Absent, Some(2)).await;
        self.note(Step::CreateAgain, broken)?;
        let updated = self.must_land(4, Condition::Match(first.clone())).await;
        let second = self.note_version(Step::Update, updated)?;
        let broken = self.must_refuse(5, Condition::Match(first), Some(4)).await;
        self.note(Step::StaleUpdate, broken)?;
        let sent_ms = self.host.now().mono_ms;
        let (race, facts) = self.race(&second).await;
        self.note(Step::Race, race)?;
        let clocks = self.clocks(facts, sent_ms);
        self.note(Step::Clocks, clocks)
    }

    fn note(&mut self, step: Step, finding: Finding) -> Result<(), Ended> {
        let violated = matches!(finding, Finding::Violated(_));
        self.judged.push(Judged { step, finding });
        if violated { Err(Ended) } else { Ok(()) }
    }

    fn note_version(
        &mut self,
        step: Step,
        landed: Result<Version, Finding>,
    ) -> Result<Version, Ended> {
        match landed {
            Ok(version) => self.note(step, Finding::Holds).map(|()| version),
            Err(finding) => {
                self.judged.push(Judged { step, finding });
                Err(Ended)
            }
        }
    }

    async fn write(&self, sequence: u64, condition: Condition) -> Outcome {
        let mut text = Writer::new();
        // To everybody else it is a released lease: nobody ever waits for a probe.
        text.text("leaderID", "probe").text("lastUpdated", "0001-01-01T00:00:00Z");
        text.text("session", &self.session).number("sequence", sequence).number("term", 1);
        let operation = Operation::Write { body: text.end().into_bytes(), condition };
        let timeout_ms = self.config.request_timeout_ms;
        perform_within(self.object, self.host, operation, timeout_ms).await.outcome
    }

    /// What is stored, or why that cannot be told.
    async fn read(&self) -> Result<Stored, String> {
        let read = Operation::Read { unless: None };
        let timeout_ms = self.config.request_timeout_ms;
        let answer = perform_within(self.object, self.host, read, timeout_ms).await;
        match answer.outcome {
            Outcome::Missing => Ok(Stored { sequence: None, version: None, facts: answer.facts }),
            Outcome::Found { version, reading: Reading::Lease(lease) }
                if lease.session.as_ref() == Some(&self.session) =>
            {
                let version = Some(version);
                Ok(Stored { sequence: Some(lease.sequence), version, facts: answer.facts })
            }
            Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => Err(cause.message),
            _ => Err("somebody else wrote the object of this probe".to_owned()),
        }
    }

    /// A write whose condition does not hold. `stored` is the write that must still be there.
    async fn must_refuse(
        &self,
        sequence: u64,
        condition: Condition,
        stored: Option<u64>,
    ) -> Finding {
        let outcome = self.write(sequence, condition).await;
        if matches!(outcome, Outcome::Written { .. }) {
            return Finding::Violated(said("took a write whose condition did not hold"));
        }
        match self.read().await {
            // Whatever it answered: this is what it did.
            Ok(found) if found.sequence == Some(sequence) => {
                Finding::Violated(said("refused a write and carried it out all the same"))
            }
            Ok(found) if found.sequence == stored => match outcome {
                Outcome::Refused => Finding::Holds,
                other => Finding::Unclear(why(other)),
            },
            Ok(_) => Finding::Unclear("the object is not what it was before".to_owned()),
            Err(why) => Finding::Unclear(why),
        }
    }

    /// A write whose condition holds: its version.
    async fn must_land(&self, sequence: u64, condition: Condition) -> Result<Version, Finding> {
        let outcome = self.write(sequence, condition).await;
        let found = self.read().await.map_err(Finding::Unclear)?;
        match (found.version, outcome) {
            (Some(version), _) if found.sequence == Some(sequence) => Ok(version),
            (_, Outcome::Written { .. }) => Err(Finding::Violated(said(UNSEEN))),
            (_, other) => Err(Finding::Unclear(why(other))),
        }
    }

    async fn race(&self, version: &Version) -> (Finding, Facts) {
        let write = |sequence| self.write(sequence, Condition::Match(version.clone()));
        let (a, b, c, d, e) =
            join5(pin!(write(6)), pin!(write(7)), pin!(write(8)), pin!(write(9)), pin!(write(10)))
                .await;
        let accepted = |(_, outcome): &(u64, Outcome)| matches!(outcome, Outcome::Written { .. });
        let winners: Vec<u64> =
            (6..).zip([a, b, c, d, e]).filter(accepted).map(|(sequence, _)| sequence).collect();
        let found = match self.read().await {
            Ok(found) => found,
            Err(why) => return (Finding::Unclear(why), Facts::default()),
        };
        let finding = match (&winners[..], found.sequence) {
            ([], _) => Finding::Unclear("none of five writes was accepted".to_owned()),
            ([winner], Some(sequence)) if *winner == sequence => Finding::Holds,
            ([_], Some(6..=10)) => {
                Finding::Violated(said("carried out two of five writes on one version"))
            }
            ([_], _) => Finding::Violated(said(UNSEEN)),
            _ => Finding::Violated(said("accepted several of five writes on one version")),
        };
        (finding, found.facts)
    }

    /// The age by the store's clocks of what was written after `sent_ms`, beside the own clock.
    fn clocks(&self, facts: Facts, sent_ms: u64) -> Finding {
        let Facts {
            date_ms: Some(date_ms),
            last_modified_ms: Some(modified_ms),
            relayed: false,
            ..
        } = facts
        else {
            let unclear = "the answer has no time of the store's own; ages are watched instead";
            return Finding::Unclear(unclear.to_owned());
        };
        let skew_ms = self.config.store_skew_ms;
        let took_ms = self.host.now().mono_ms.saturating_sub(sent_ms);
        let (ahead_ms, behind_ms) =
            (date_ms.saturating_sub(modified_ms), modified_ms.saturating_sub(date_ms));
        let apart_ms = behind_ms.max(ahead_ms.saturating_sub(took_ms));
        if apart_ms <= skew_ms + SECOND_MS {
            return Finding::Holds;
        }
        let (apart, skew) = (apart_ms.to_string(), skew_ms.to_string());
        let what = ["its clocks are ", &apart, " ms apart, and storeSkew allows ", &skew, " ms; "];
        let to_do = "give every member a storeSkew that covers this, or use another store";
        Finding::Violated([&what.concat(), to_do].concat())
    }
}

fn said(what: &str) -> String {
    ["it ", what, ", so two could lead; leases need a store that keeps conditional writes"].concat()
}

fn why(outcome: Outcome) -> String {
    match outcome {
        Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => cause.message,
        _ => "the store refused it for once".to_owned(),
    }
}
