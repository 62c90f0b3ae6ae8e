//! The steps of a probe: what each asks of the object, and what it concludes from the answers and from what is stored then.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::{Effort, Finding, Judged, Offset, Progress, Step};
use crate::config::Config;
use crate::driver::{Host, perform_as_told};
use crate::lease::{Lease, Reading, Stamp};
use crate::store::{
    Answer, Condition, Facts, FaultKind, Operation, Outcome, Record, Store, Version,
};

/// The resolution of `Date` and `Last-Modified`.
const SECOND_MS: u64 = 1_000;

/// How long a store that asks for patience gets, in milliseconds: R2 takes one write a second of one key
/// (<https://developers.cloudflare.com/r2/platform/limits/>).
const PATIENCE_MS: u64 = 1_100;

/// How many writes of one version a race is.
const RACERS: usize = 5;

/// Why a step is unclear that was not begun.
const NO_TIME: &str = "there was no time left for it";

impl Step {
    /// Whether one write of it may take effect.
    fn lands(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Race)
    }
}

/// A finding, and whether the store was heard.
struct Verdict(Finding, bool);

/// One probe: what it has written, and what it has learned.
pub struct Probe<'a, S, H> {
    object: &'a S,
    host: &'a H,
    config: &'a Config,
    session: String,
    /// Of the last write.
    sequence: u64,
    /// The write that is stored, as far as is known.
    stored: Option<u64>,
    /// Whether a create is under way: where the probe is stopped then, it may have landed.
    created: bool,
    /// A version that the object has no more, and the one that it has.
    old: Version,
    current: Version,
    /// What the reading that first showed the last write told of time, and how old that write was then.
    facts: Facts,
    settled_ms: u64,
    /// Whether two readings of one version told another `Last-Modified` of it.
    moved: bool,
    /// How long ago the last write was sent when that came, by the clock that says more: one stands still in a suspend.
    took_ms: u64,
    /// Between what the store's clock is ahead of the own one.
    offset: (i64, i64),
    timeout_ms: u64,
    /// When its time is up.
    until_ms: u64,
    /// Whether the store may still ask for time.
    patient: bool,
}

type Asked<'a> = (u64, Pin<Box<dyn Future<Output = Answer> + 'a>>);

impl<'a, S: Store, H: Host> Probe<'a, S, H> {
    /// Nothing has been asked yet.
    ///
    /// # Errors
    /// The host has no randomness.
    pub fn new(
        object: &'a S,
        host: &'a H,
        config: &'a Config,
        effort: Effort,
    ) -> Result<Self, String> {
        let limit_ms = effort.limit_ms.saturating_add(effort.age_ms);
        Ok(Self {
            object,
            host,
            config,
            session: hex::encode(host.random()?),
            sequence: 0,
            stored: None,
            created: false,
            old: Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned()),
            current: Version(String::new()),
            facts: Facts::default(),
            settled_ms: 0,
            moved: false,
            took_ms: 0,
            offset: (i64::MIN, i64::MAX),
            timeout_ms: effort.timeout_ms,
            until_ms: host.now().mono_ms.saturating_add(limit_ms),
            patient: true,
        })
    }

    /// Takes all steps, or as many as there is something to stand on; `note` hears how far it is.
    pub async fn take_all(&mut self, effort: Effort, note: &mut dyn FnMut(Progress<'_>)) {
        // Where a condition says only that nobody has succeeded the record, nobody has succeeded what does not exist.
        let covers = self.object.condition_covers_version();
        for step in Step::ALL {
            let times = match step {
                Step::UpdateOfNothing => u32::from(covers),
                Step::NearUpdate => self.object.near_misses(&self.current).len() as u32,
                Step::Race => effort.races,
                // The first of many epochs may be cleaned by then, so that it can be created anew.
                Step::LaterCreate => u32::from(effort.age_ms > 0 && covers),
                Step::LaterUpdate => u32::from(effort.age_ms > 0),
                _ => 1,
            };
            if times == 0 {
                continue;
            }
            note(Progress::Begins(step));
            let first = if covers { Step::LaterCreate } else { Step::LaterUpdate };
            if step == first {
                self.host.sleep(effort.age_ms).await;
            }
            let Verdict(finding, heard) = self.take(step, times).await;
            // Nothing comes of a write that has not landed, and nothing of a store that says nothing.
            let ends = match &finding {
                Finding::Holds => false,
                Finding::Unclear(_) | Finding::Refused(_) => !heard || step.lands(),
                Finding::Violated(_) => true,
            };
            note(Progress::Done(&Judged { step, finding }));
            if ends {
                return;
            }
        }
    }

    /// Deletes what is stored. Best effort: what is left of it is in nobody's way.
    pub async fn clean(&mut self) {
        if self.stored.is_some() || self.created {
            self.ask([(0, Operation::Delete)].into()).await;
        }
    }

    async fn take(&mut self, step: Step, times: u32) -> Verdict {
        if step == Step::Clocks {
            return Verdict(self.clocks(), true);
        }
        if step == Step::StaleRead {
            return self.stale_read().await;
        }
        let near = self.object.near_misses(&self.current);
        let mut left = times;
        // Where the store asks for patience, that of the first try: its write may have landed.
        let mut before = self.sequence;
        loop {
            if self.left_ms() == 0 {
                return Verdict(Finding::Unclear(NO_TIME.to_owned()), false);
            }
            let condition = match step {
                Step::Create | Step::CreateAgain | Step::LaterCreate => Condition::Absent,
                Step::UpdateOfNothing | Step::StaleUpdate | Step::LaterUpdate => {
                    Condition::Match(self.old.clone())
                }
                Step::NearUpdate => {
                    let done = near.len().saturating_sub(left as usize);
                    Condition::Match(near.get(done).unwrap_or(&self.old).clone())
                }
                _ => Condition::Match(self.current.clone()),
            };
            let racers = if step == Step::Race { RACERS } else { 1 };
            let writes = (0..racers).map(|_| self.write(condition.clone())).collect();
            let sent = self.host.now();
            let written = self.ask(writes).await;
            self.created = false;
            let mut read = self.ask([(0, Operation::Read { unless: None })].into()).await;
            let (_, read) = read.pop().expect("each request has its answer");
            let now = self.host.now();
            let took_ms = now.mono_ms.saturating_sub(sent.mono_ms);
            self.took_ms = took_ms.max(now.wall_ms.saturating_sub(sent.wall_ms));
            let finding = self.judge(step, before, &written, &read);
            let unheard = |answer: &Answer| matches!(answer.outcome, Outcome::Unknown { .. });
            // SeaweedFS makes a bucket of the wrong name with the next write, so a reading that is refused ends it too.
            let seen = matches!(read.outcome, Outcome::Found { .. } | Outcome::Missing);
            let heard = seen && !written.iter().any(|(_, answer)| unheard(answer));
            if finding == Finding::Holds {
                left -= 1;
                if left > 0 {
                    before = self.sequence;
                    continue;
                }
            } else if let Finding::Unclear(_) | Finding::Refused(_) = finding
                && self.patient
                && self.left_ms() > PATIENCE_MS
                && (busy(&read) || written.iter().any(|(_, answer)| busy(answer)))
            {
                self.patient = false;
                self.host.sleep(PATIENCE_MS).await;
                continue;
            }
            self.patient = true;
            return Verdict(finding, heard);
        }
    }

    /// A cache that answers by itself says that nothing has changed.
    async fn stale_read(&mut self) -> Verdict {
        loop {
            if self.left_ms() == 0 {
                return Verdict(Finding::Unclear(NO_TIME.to_owned()), false);
            }
            let read = Operation::Read { unless: Some(self.old.clone()) };
            let mut answers = self.ask([(0, read)].into()).await;
            let (_, answer) = answers.pop().expect("each request has its answer");
            if busy(&answer) && self.patient && self.left_ms() > PATIENCE_MS {
                self.patient = false;
                self.host.sleep(PATIENCE_MS).await;
                continue;
            }
            self.patient = true;
            let unclear = |why: &str| Finding::Unclear(why.to_owned());
            let finding = match &answer.outcome {
                Outcome::Found { version, .. } if *version == self.current => Finding::Holds,
                Outcome::Unchanged if self.shows_current().await => Finding::Violated(
                    "it says of an old version that nothing has changed, so that a new leader is seen late or \
                     never; something on the way caches"
                        .to_owned(),
                ),
                outcome => unread(outcome)
                    .unwrap_or_else(|| unclear("the object is not what it was before")),
            };
            return Verdict(finding, !matches!(answer.outcome, Outcome::Unknown { .. }));
        }
    }

    /// A reading without a condition may be as old, which is no cache's doing.
    async fn shows_current(&mut self) -> bool {
        let answers = self.ask([(0, Operation::Read { unless: None })].into()).await;
        answers.iter().all(|(_, answer)| {
            matches!(&answer.outcome, Outcome::Found { version, .. } if *version == self.current)
        })
    }

    fn left_ms(&self) -> u64 {
        self.until_ms.saturating_sub(self.host.now().mono_ms)
    }

    /// A write, and its number.
    fn write(&mut self, condition: Condition) -> (u64, Operation) {
        self.sequence += 1;
        self.created |= condition == Condition::Absent;
        // A released lease: nobody ever waits for a probe.
        let record = Record::Lease(Box::new(Lease {
            session: Some(self.session.clone()),
            sequence: self.sequence,
            // Each write is of another term: an epoch's creator may overwrite it on no condition.
            term: Some(self.sequence),
            ..Lease::bare("probe", Stamp::Released)
        }));
        (self.sequence, Operation::Write { record, condition })
    }

    /// Performs all at once.
    async fn ask(&mut self, operations: Vec<(u64, Operation)>) -> Vec<(u64, Answer)> {
        let sent_ms = self.host.now().wall_ms;
        let (object, host) = (self.object, self.host);
        // What was under way when its time was up gets as long as one request; together they would be longer than a start
        // may wait.
        let latest_ms = self.until_ms.saturating_add(self.timeout_ms);
        let timeout_ms = self.timeout_ms.min(latest_ms.saturating_sub(host.now().mono_ms)).max(1);
        let mut answers = Vec::new();
        let mut asked: Vec<Asked<'_>> = Vec::new();
        for (number, operation) in operations {
            asked.push((number, Box::pin(perform_as_told(object, host, operation, timeout_ms))));
        }
        poll_fn(|context| {
            asked.retain_mut(|(number, answer)| match answer.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    answers.push((*number, answer));
                    false
                }
            });
            if asked.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let now_ms = self.host.now().wall_ms;
        for (_, answer) in &answers {
            let Facts { date_ms: Some(date_ms), cached: false, .. } = answer.facts else {
                continue;
            };
            let ahead_ms = |of_ms: u64| date_ms.wrapping_sub(of_ms) as i64;
            let (least_ms, most_ms) = self.offset;
            let most_ms = most_ms.min(ahead_ms(sent_ms) + SECOND_MS as i64);
            self.offset = (least_ms.max(ahead_ms(now_ms)), most_ms);
        }
        answers
    }

    /// What a step has shown that made the writes after `before`.
    fn judge(
        &mut self,
        step: Step,
        before: u64,
        written: &[(u64, Answer)],
        read: &Answer,
    ) -> Finding {
        // One without a version may be a web page's: what is stored tells.
        let accepted =
            |one: &&(u64, Answer)| matches!(one.1.outcome, Outcome::Written { version: Some(_) });
        let mut winners = written.iter().filter(accepted).map(|(number, _)| *number);
        let (winner, second) = (winners.next(), winners.next());
        if winner.is_some() && !step.lands() {
            return violated("took a write whose condition did not hold");
        }
        let (found, version) = match &read.outcome {
            Outcome::Missing => (None, None),
            Outcome::Found { version, reading: Reading::Lease(lease) }
                if lease.session.as_ref() == Some(&self.session) =>
            {
                (Some(lease.sequence), Some(version))
            }
            outcome => {
                let why = "somebody else wrote the object of this probe";
                return unread(outcome).unwrap_or_else(|| Finding::Unclear(why.to_owned()));
            }
        };
        let stored = self.stored;
        self.stored = found;
        let new = found.is_some_and(|number| number > before);
        self.note_times(read.facts, new);
        if second.is_some() {
            return violated("accepted several of five writes on one version");
        }
        if new && !step.lands() {
            // Whatever it answered: this is what it did.
            return violated("refused a write and carried it out all the same");
        }
        if winner.is_some() && !new && read.facts.cached {
            return violated("does not show a write that it has just accepted (a cache answers)");
        }
        if winner.is_some() && !new {
            return violated("does not show a write that it has just accepted");
        }
        if winner.is_some() && winner != found {
            return violated("carried out two of five writes on one version");
        }
        if let Some(version) = version.filter(|_| new) {
            self.old = std::mem::replace(&mut self.current, version.clone());
            // Heard or not, a single one is there.
            return match winner.is_some() || step != Step::Race {
                true => self.named(written),
                false => self.vague_race(written, found),
            };
        } else if found != stored {
            return Finding::Unclear("the object is not what it was before".to_owned());
        }
        nothing_carried_out(step, &written[0].1.outcome)
    }

    /// A write that has landed is answered with the version that a reading then shows.
    fn named(&self, written: &[(u64, Answer)]) -> Finding {
        let told = |one: &(u64, Answer)| match &one.1.outcome {
            Outcome::Written { version } => version.clone(),
            _ => None,
        };
        if written.iter().filter_map(told).all(|told| told == self.current) {
            return Finding::Holds;
        }
        let what = "it answers a write with another version than it then shows, so that each renewal would \
                    cost a term";
        Finding::Violated(what.to_owned())
    }

    /// Of a write of a moment ago the two clocks are compared; of a version that was seen before, the time of its change.
    fn note_times(&mut self, facts: Facts, new: bool) {
        let modified_ms = |facts: &Facts| facts.last_modified_ms.filter(|_| !facts.relayed);
        if new {
            (self.facts, self.settled_ms) = (facts, self.took_ms);
        } else if let (Some(before_ms), Some(now_ms)) =
            (modified_ms(&self.facts), modified_ms(&facts))
        {
            self.moved |= before_ms != now_ms;
        }
    }

    /// A race that somebody has won, where no answer names a version: what is stored tells, beside what was refused.
    fn vague_race(&self, written: &[(u64, Answer)], found: Option<u64>) -> Finding {
        let accepted =
            |one: &&(u64, Answer)| matches!(one.1.outcome, Outcome::Written { version: None });
        let refused = |one: &(u64, Answer)| one.1.outcome == Outcome::Refused;
        let mut vague = written.iter().filter(accepted).map(|(number, _)| Some(*number));
        match (vague.next(), vague.next()) {
            (Some(number), None)
                if number == found
                    && written.iter().filter(|one| refused(one)).count() + 1 == written.len() =>
            {
                Finding::Holds
            }
            (Some(_), Some(_)) => Finding::Unclear(
                "several of five writes on one version came back as a success without a version"
                    .to_owned(),
            ),
            _ => Finding::Unclear(
                "one of five writes was carried out, and its answer was lost or names no version"
                    .to_owned(),
            ),
        }
    }

    /// The age by the store's clocks of what was written a moment ago.
    fn clocks(&self) -> Finding {
        let Facts {
            date_ms: Some(date_ms),
            last_modified_ms: Some(modified_ms),
            relayed: false,
            ..
        } = self.facts
        else {
            let unclear = "the answer has no time of the store's own; ages are watched instead";
            return Finding::Unclear(unclear.to_owned());
        };
        if self.moved {
            let what = "it names another `Last-Modified` at each reading of one version, so that no lease is seen to \
                        grow old";
            return Finding::Violated(what.to_owned());
        }
        let skew_ms = self.config.store_skew_ms;
        let (ahead_ms, behind_ms) =
            (date_ms.saturating_sub(modified_ms), modified_ms.saturating_sub(date_ms));
        let apart_ms = behind_ms.max(ahead_ms.saturating_sub(self.settled_ms));
        if apart_ms <= skew_ms + SECOND_MS {
            return Finding::Holds;
        }
        let (apart, skew) = (apart_ms.to_string(), skew_ms.to_string());
        let what = ["its clocks are ", &apart, " ms apart, and storeSkew allows ", &skew, " ms; "];
        let to_do = "give every member a storeSkew that covers this, or use another store";
        Finding::Violated([&what.concat(), to_do].concat())
    }

    /// How far the store's clock is from the own one.
    pub fn offset(&self) -> Option<Offset> {
        let (least_ms, most_ms) = self.offset;
        // Apart only if a clock was set meanwhile.
        (least_ms > i64::MIN && least_ms <= most_ms).then(|| Offset {
            ms: least_ms.midpoint(most_ms),
            error_ms: most_ms.abs_diff(least_ms).div_ceil(2),
        })
    }
}

fn busy(answer: &Answer) -> bool {
    matches!(&answer.outcome, Outcome::Unknown { cause, .. } if cause.kind == FaultKind::Unavailable)
}

/// What a read shows that was refused or not answered; none for another.
fn unread(outcome: &Outcome) -> Option<Finding> {
    match outcome {
        Outcome::Rejected(cause)
            if matches!(cause.kind, FaultKind::Denied | FaultKind::Misconfigured) =>
        {
            Some(Finding::Refused(cause.clone()))
        }
        Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => {
            Some(Finding::Unclear(cause.message.clone()))
        }
        _ => None,
    }
}

/// What comes of a step whose writes are not in the object.
fn nothing_carried_out(step: Step, outcome: &Outcome) -> Finding {
    match outcome {
        Outcome::Refused if !step.lands() => Finding::Holds,
        // What is wrong with the set-up shows itself to a read too: a write may be one that this store does not know.
        Outcome::Rejected(cause) if cause.kind == FaultKind::Denied => {
            Finding::Refused(cause.clone())
        }
        Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => {
            Finding::Unclear(cause.message.clone())
        }
        Outcome::Written { .. } => Finding::Unclear(
            "a success without a version came back, and nothing was carried out".to_owned(),
        ),
        _ => Finding::Unclear("the store or something on the way refused it for once".to_owned()),
    }
}

fn violated(what: &str) -> Finding {
    let rest = ", so two could lead; leases need a store that keeps conditional writes";
    Finding::Violated(format!("it {what}{rest}"))
}
