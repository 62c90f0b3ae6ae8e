//! An operator asks the leader to step down, pauses a group, or resumes it, from anywhere that reaches its store.
//!
//! A request is a field that is written into the lease record by compare-and-swap; every other field stays as it is. So it
//! shortens and lengthens nobody's authority. The leader's next renewal is refused, its read-back shows the request, and it
//! stops its work, then releases the lease. Nobody claims a record that is paused. Members of other makes know no requests,
//! and drop them.

use std::fmt;

use crate::calendar;
use crate::config::{Config, ConfigError};
use crate::driver::{Host, UNHURRIED_MS, perform_within};
use crate::election::Problem;
use crate::lease::{Ask, Lease, MAX_TEXT, OperatorRequest, Reading};
use crate::store::{
    Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use crate::text::{first, quoted};

/// No later time can be written down.
const LAST_MS: u64 = calendar::YEAR_9999_MS.unsigned_abs();

/// A lease that ran out so long ago is over, by whatever fraction of a second the store's two times hide, in milliseconds.
const SURE_MS: i64 = 2_000;

/// The number of times that a request is written at most.
const ATTEMPTS: usize = 3;

/// Who asks, and why, at most 200 characters each: the record, `status()` and the members' logs show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Who.
    pub by: String,
    /// Why.
    pub why: String,
}

/// What was asked of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whether the record carries the request. False where a group is resumed that is not paused: nothing was written.
    pub written: bool,
    /// The `serverId` that led, as the record said; `None` where nobody did.
    pub leader_id: Option<String>,
    /// The term that is to end; `None` where none is.
    pub term: Option<u64>,
}

/// Why a request was not made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OperatorError {
    /// It can't be made: a text is too long, an end lies in the past, or the store has no compare-and-swap for it.
    Config(ConfigError),
    /// There is no term that could end, or there is no group yet.
    NobodyLeads(String),
    /// The record can't carry requests now: other software leads, or nobody can read it.
    Unusable(String),
    /// The store failed before anything was written, or the record changed before each attempt.
    Store(Fault),
    /// A request left, and nobody knows whether it took effect.
    Unknown(String),
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Store(fault) => fault.fmt(f),
            Self::NobodyLeads(text) | Self::Unusable(text) | Self::Unknown(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for OperatorError {}

/// Asks the leader to end its term. It stops its work, releases the lease and leaves the next term to others for a lease; a
/// later term is not asked.
///
/// # Errors
/// See [`OperatorError`]; [`OperatorError::NobodyLeads`] if there is no leader.
pub async fn step_down<S: Store, H: Host>(
    store: &S,
    host: &H,
    config: &Config,
    words: &Words,
) -> Result<Receipt, OperatorError> {
    Order::new(store, host, config, Ask::StepDown, words, None)?.carry_out().await
}

/// Pauses a group: its leader releases the lease as at [`step_down`], and nobody claims it until [`resume`], or until
/// `until_ms` in milliseconds since the Unix epoch, by the store's clock.
///
/// # Errors
/// See [`OperatorError`]; [`OperatorError::NobodyLeads`] if there is no group yet.
pub async fn pause<S: Store, H: Host>(
    store: &S,
    host: &H,
    config: &Config,
    words: &Words,
    until_ms: Option<u64>,
) -> Result<Receipt, OperatorError> {
    Order::new(store, host, config, Ask::Pause, words, until_ms)?.carry_out().await
}

/// Ends a pause.
///
/// # Errors
/// See [`OperatorError`].
pub async fn resume<S: Store, H: Host>(
    store: &S,
    host: &H,
    config: &Config,
    words: &Words,
) -> Result<Receipt, OperatorError> {
    Order::new(store, host, config, Ask::Resume, words, None)?.carry_out().await
}

/// One request on its way into the record.
struct Order<'a, S, H> {
    store: &'a S,
    host: &'a H,
    config: &'a Config,
    /// What its ids begin with.
    id: String,
    request: OperatorRequest,
    /// The record that was judged first.
    first: Option<Lease>,
    /// What each attempt asks of whom. Each is a body of its own, by its id (S4).
    asked: Vec<Receipt>,
    /// On what the newest write was conditional of which nobody knows the end.
    doubted: Option<Version>,
    /// Whether the record may come back byte for byte, so that a write that is held up can still land.
    returns: bool,
    /// Why the last operation said nothing.
    fault: Option<Fault>,
}

/// What a look at the record says about the next step.
enum Next {
    Done(Receipt),
    Write(Box<Lease>, Version),
}

impl<'a, S: Store, H: Host> Order<'a, S, H> {
    fn new(
        store: &'a S,
        host: &'a H,
        config: &'a Config,
        ask: Ask,
        words: &Words,
        until_ms: Option<u64>,
    ) -> Result<Self, OperatorError> {
        for (name, text) in [("by", &words.by), ("why", &words.why)] {
            if text.chars().count() > MAX_TEXT || text.chars().any(char::is_control) {
                let rule = "must have at most 200 characters, and no control characters";
                return Err(refused(name, quoted(first(text, 60)), rule));
            }
        }
        if !store.condition_covers_version() || !store.stale_writes_fail() {
            return Err(refused("storage", store.describe(), NO_COMPARE_AND_SWAP));
        }
        let random = host.random().map_err(OperatorError::Unusable)?;
        let id = hex::encode(random);
        let request = OperatorRequest {
            ask,
            id: id.clone(),
            by: words.by.clone(),
            why: words.why.clone(),
            at_ms: None,
            until_ms,
            term: None,
            session: None,
        };
        let (first, doubted, fault) = (None, None, None);
        let (asked, returns) = (Vec::new(), false);
        Ok(Self { store, host, config, id, request, first, asked, doubted, returns, fault })
    }

    async fn carry_out(mut self) -> Result<Receipt, OperatorError> {
        let ended = self.attempts().await;
        match (&self.doubted, ended) {
            (Some(_), Err(error)) => Err(OperatorError::Unknown(format!(
                "nobody knows whether the request took effect: {error}. Look at the status, then ask again"
            ))),
            (_, ended) => ended,
        }
    }

    async fn attempts(&mut self) -> Result<Receipt, OperatorError> {
        let [first_ms, second_ms] = self.config.retry_delays_ms;
        // After the third attempt the record is only read back.
        for (number, pause_ms) in [0, first_ms, second_ms, second_ms].into_iter().enumerate() {
            if pause_ms > 0 {
                self.host.sleep(pause_ms).await;
            }
            let read = Operation::Read { unless: None };
            let seen = perform_within(self.store, self.host, read, UNHURRIED_MS).await;
            let (lease, version) = match seen.outcome {
                Outcome::Found { version, reading } => {
                    match self.judge(reading, version, &seen.facts)? {
                        Next::Done(receipt) => return Ok(receipt),
                        Next::Write(lease, version) => (lease, version),
                    }
                }
                Outcome::Missing => return Err(OperatorError::NobodyLeads(NO_GROUP.to_owned())),
                Outcome::Rejected(fault) => return Err(OperatorError::Store(fault)),
                Outcome::Unknown { cause, .. } => {
                    self.fault = Some(cause);
                    continue;
                }
                _ => continue,
            };
            // Of several that are held up, one could land after the others were obeyed and over.
            if number == ATTEMPTS || (self.returns && self.doubted.is_some()) {
                break;
            }
            if let Some(receipt) = self.write(lease, version).await? {
                return Ok(receipt);
            }
        }
        let changed = || {
            let text = ": the lease object changed before each of three attempts: ask again";
            Fault::new(FaultKind::Unavailable, [&self.store.describe(), text].concat())
        };
        Err(OperatorError::Store(self.fault.take().unwrap_or_else(changed)))
    }

    /// Whether the record carries the request already, or is to carry it.
    fn judge(
        &mut self,
        reading: Reading,
        version: Version,
        facts: &Facts,
    ) -> Result<Next, OperatorError> {
        let unusable = |problem: Problem| Err(OperatorError::Unusable(problem.to_string()));
        let returns = reading.may_come_back();
        let lease = match reading {
            Reading::Lease(lease) => *lease,
            Reading::Unreadable(flaw, _) => return unusable(Problem::Unreadable(flaw)),
            Reading::Closed(why) => return unusable(Problem::closed(why)),
        };
        // The leader may have obeyed already: the record says no more whom it asked.
        if let Some(receipt) = lease.operator.as_ref().and_then(|known| self.landed(known)) {
            return Ok(Next::Done(receipt));
        }
        let now_ms = facts.date_ms.unwrap_or(self.host.now().wall_ms);
        self.check(&lease, now_ms)?;
        self.check_end(&lease, facts)?;
        match self.request.ask {
            // Another operator, or an earlier try of this one: each new version lets everybody begin to watch it anew.
            Ask::StepDown if asks_already(&lease) => {
                return Ok(Next::Done(Receipt { written: true, ..receipt(&lease) }));
            }
            // Whatever its end: the clock of this machine may be wrong.
            Ask::Resume if lease.operator.as_ref().is_none_or(|known| known.ask != Ask::Pause) => {
                return match self.doubted {
                    Some(_) => {
                        Err(OperatorError::Unusable("the group is not paused now".to_owned()))
                    }
                    None => Ok(Next::Done(Receipt { written: false, ..receipt(&lease) })),
                };
            }
            _ => {}
        }
        // Nobody drops a pause, nor a step-down within its term: a write on another version has not landed, and can't.
        self.doubted.take_if(|doubted| *doubted != version && !self.returns);
        self.returns |= returns;
        let led = is_led(&lease);
        self.asked.push(Receipt { written: true, ..receipt(&lease) });
        self.request.id = [&self.id, "-", &self.asked.len().to_string()].concat();
        self.request.at_ms = self.request.at_ms.or(Some(now_ms));
        self.request.term = lease.term.filter(|_| led);
        self.request.session = lease.session.clone().filter(|_| led);
        let asked = Box::new(self.request.clone().over(&lease));
        self.first.get_or_insert(lease);
        Ok(Next::Write(asked, version))
    }

    /// What was asked of whom by the attempt that has landed, if this is one.
    fn landed(&self, known: &OperatorRequest) -> Option<Receipt> {
        let number: usize = known.id.strip_prefix(&self.id)?.strip_prefix('-')?.parse().ok()?;
        self.asked.get(number.checked_sub(1)?).cloned()
    }

    /// Nobody ends a term whose lease has run out, and to ask for that would have everybody watch the record anew.
    fn check_end(&self, lease: &Lease, facts: &Facts) -> Result<(), OperatorError> {
        let times = facts.date_ms.zip(facts.last_modified_ms).filter(|_| !facts.relayed);
        let (Some((date_ms, _)), Ask::StepDown, None) = (times, self.request.ask, &self.first)
        else {
            return Ok(());
        };
        // By the record's own time, too: a proxy's Date may be far from the store's Last-Modified.
        let own = Facts { last_modified_ms: None, ..*facts };
        let lease_ms = self.config.leader_timeout_ms;
        let left_ms = [facts, &own].map(|facts| facts.left_ms(lease, lease_ms, date_ms));
        let left_ms = left_ms[0].max(left_ms[1]).saturating_add_unsigned(self.config.store_skew_ms);
        if left_ms > -SURE_MS {
            return Ok(());
        }
        Err(OperatorError::NobodyLeads(format!(
            "the lease of {} ran out {} s ago, so that there is no term to end",
            quoted(first(&lease.leader_id, 120)),
            left_ms.unsigned_abs() / 1_000,
        )))
    }

    fn check(&self, lease: &Lease, now_ms: u64) -> Result<(), OperatorError> {
        if lease.session.is_none() && !lease.released() {
            return Err(OperatorError::Unusable(format!(
                "{} leads by other software, which knows no requests of an operator: stop it there",
                quoted(first(&lease.leader_id, 120)),
            )));
        }
        let wrong = |until_ms: &u64| *until_ms <= now_ms || *until_ms > LAST_MS;
        if let Some(until_ms) = self.request.until_ms.filter(wrong) {
            let rule = "must lie ahead, by the store's clock, and before the year 10000";
            return Err(refused("until", until_ms.to_string(), rule));
        }
        let paused = lease.pause(now_ms);
        if let Some(pause) = paused.filter(|_| self.request.ask == Ask::StepDown) {
            return Err(OperatorError::NobodyLeads(format!(
                "{}: a leader ends its term anyway, and nobody leads until the group is resumed",
                pause.told(),
            )));
        }
        let same = |first: &Lease| (first.term, &first.session) == (lease.term, &lease.session);
        let goes_on = is_led(lease) && self.first.as_ref().is_none_or(same);
        if self.request.ask == Ask::StepDown && !goes_on {
            let text = match self.first {
                Some(_) => "the term that was asked to end is over",
                None => "nobody leads, so that there is no term to end",
            };
            return Err(OperatorError::NobodyLeads(text.to_owned()));
        }
        Ok(())
    }

    /// Writes the request; nothing where a look has to tell what became of it (S8).
    async fn write(
        &mut self,
        lease: Box<Lease>,
        version: Version,
    ) -> Result<Option<Receipt>, OperatorError> {
        let condition = Condition::Match(version.clone());
        let operation = Operation::Write { record: Record::Lease(lease), condition };
        let made = perform_within(self.store, self.host, operation, UNHURRIED_MS).await.outcome;
        self.fault = None;
        match made {
            Outcome::Written { version: Some(_) } => {
                return Ok(self.asked.last().cloned());
            }
            Outcome::Rejected(fault) => return Err(OperatorError::Store(fault)),
            Outcome::Unknown { cause, .. } => self.fault = Some(cause),
            _ => {}
        }
        self.doubted = Some(version);
        Ok(None)
    }
}

/// Who leads by this record and is to end which term.
fn receipt(lease: &Lease) -> Receipt {
    let led = is_led(lease);
    let leader_id = led.then(|| lease.leader_id.clone());
    Receipt { written: false, leader_id, term: lease.term.filter(|_| led) }
}

/// Whether a record asks its own term to end.
fn asks_already(lease: &Lease) -> bool {
    let term = lease.term.zip(lease.session.as_deref());
    let known = lease.operator.as_ref().zip(term);
    known.is_some_and(|(known, (term, session))| known.ends(term, session))
}

const NO_COMPARE_AND_SWAP: &str = "can't carry a request of an operator, because it does not compare and swap one record: \
     call resign() in the leader's process, or stop the members";

const NO_GROUP: &str = "there is no lease object, so there is nobody to ask: start the group first, with `npx edgelect init` \
     or by its members";

/// Whether somebody leads by this record, as far as it says.
fn is_led(lease: &Lease) -> bool {
    lease.session.is_some() && !lease.released() && !lease.parked && !lease.in_grace()
}

fn refused(field: &str, value: impl Into<String>, rule: &str) -> OperatorError {
    OperatorError::Config(ConfigError::new(field, value, rule))
}
