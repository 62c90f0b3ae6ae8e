//! What users of an `ObjectStoreBasedLock` and its `LeaderElectionConfig` know (client-go's `resourcelock.Interface`), as a view
//! of a store and of the settings. An elector needs neither: the lock is for looking at a record, and for members of one's own.

use std::cell::Cell;
use std::fmt;

use crate::config::{ConfigError, Settings};
use crate::driver::{Host, UNHURRIED_MS, perform_within};
use crate::json::{self, Object};
use crate::lease::{self, Lease, MAX_LEASE_MS, MIN_LEASE_MS, Reading, Stamp};
use crate::store::{Condition, Operation, Outcome, Record, Store, Version};
use crate::text::quoted;

/// The record, as members of such groups know it. Times are milliseconds since the Unix epoch, by the wall clock of whoever
/// wrote them.
///
/// Whatever else the stored record has is kept by [`ObjectStoreLock::update`] when the record came from
/// [`ObjectStoreLock::get`]: above all `term` and `slot`, so that the tokens of edgelect's members go on growing. Only the request
/// of an operator is left out: a pause ends when somebody writes by this lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Who holds the lease; empty where somebody has released it.
    pub holder_identity: String,
    /// How long the lease lasts after `renew_time_ms`, in milliseconds; `None` where the record says nothing of it.
    pub lease_duration_ms: Option<u64>,
    /// When the holder got it; `None` where that is not known yet.
    pub acquire_time_ms: Option<i64>,
    /// When it was renewed last; not read where `holder_identity` is empty.
    pub renew_time_ms: i64,
    /// How often the holder has changed.
    pub leader_transitions: u64,
    beneath: Option<Box<Lease>>,
}

impl LeaderElectionRecord {
    /// A record that nobody had before: this holder, from now on.
    pub fn new(holder_identity: &str, lease_duration_ms: u64, now_ms: i64) -> Self {
        Self {
            holder_identity: holder_identity.to_owned(),
            lease_duration_ms: Some(lease_duration_ms),
            acquire_time_ms: Some(now_ms),
            renew_time_ms: now_ms,
            leader_transitions: 0,
            beneath: None,
        }
    }

    fn of(lease: Box<Lease>) -> Self {
        let (holder_identity, renew_time_ms) = match lease.last_updated {
            Stamp::At(ms) => (lease.leader_id.clone(), ms),
            Stamp::Released => (String::new(), 0),
        };
        Self {
            holder_identity,
            lease_duration_ms: lease.lease_ms,
            acquire_time_ms: lease.acquired,
            renew_time_ms,
            leader_transitions: lease.transitions,
            beneath: Some(lease),
        }
    }

    /// The record as `writer` writes it: no session of edgelect's holds it.
    fn lease(&self, writer: &str, sequence: u64) -> Lease {
        let beneath = self.beneath.as_deref();
        let released = self.holder_identity.is_empty();
        let leader_id = if released { writer } else { &self.holder_identity };
        Lease {
            leader_id: leader_id.to_owned(),
            leader_addr: String::new(),
            last_updated: if released { Stamp::Released } else { Stamp::At(self.renew_time_ms) },
            term: beneath.and_then(|lease| lease.term),
            session: None,
            sequence,
            lease_ms: self.lease_duration_ms,
            acquired: self.acquire_time_ms,
            reserved: false,
            transitions: self.leader_transitions,
            parked: false,
            park_at: None,
            slot: beneath.and_then(|lease| lease.slot),
            slot_done: beneath.and_then(|lease| lease.slot_done),
            slot_result: beneath.and_then(|lease| lease.slot_result.clone()),
            slot_took_ms: beneath.and_then(|lease| lease.slot_took_ms),
            slot_failures: beneath.and_then(|lease| lease.slot_failures),
            slot_term: beneath.and_then(|lease| lease.slot_term),
            history: beneath.map(|lease| lease.history.clone()).unwrap_or_default(),
            operator: None,
            extra: beneath.map_or_else(Object::new, |lease| lease.extra.clone()),
        }
    }
}

/// Why a call of the lock came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockError {
    /// What kind of problem it is.
    pub kind: LockErrorKind,
    /// The sentence for people: which object, why, what to do. Never a secret.
    pub message: String,
}

/// The kinds of [`LockError`], by what can be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockErrorKind {
    /// The object exists already, or is not what it was any more: somebody else wrote it, or an earlier attempt of this very
    /// write did. Read it.
    Conflict,
    /// The write may have landed, and may still do so. Read the object.
    Unknown,
    /// The object is no such record. Nothing was written over it.
    Unusable,
    /// The record can't be written. Nothing was sent.
    Record,
    /// The store did not do it.
    Store,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LockError {}

/// The five calls of the lock interface over any store that keeps a record as an object. The store says in which format the
/// record is kept; in groups with such members it is [`Format::Kubernetes`](crate::lease::Format::Kubernetes).
///
/// Every write is sent once, on its condition. The lock knows no clock rules: whoever elects by it brings their own.
pub struct ObjectStoreLock<'a, S, H> {
    store: &'a S,
    host: &'a H,
    identity: String,
    /// The highest sequence that was read or written here: no two bodies in a row are equal, whatever the clock says and
    /// from whichever reading a record comes (S4).
    sequence: Cell<u64>,
}

impl<'a, S: Store, H: Host> ObjectStoreLock<'a, S, H> {
    /// The lock of the store's object, for the member of this name.
    ///
    /// # Errors
    /// The name is empty or too long; or the store keeps a record in another way than as an object (epochs, a table, a zone, a
    /// locker), over which the status of an elector tells who leads.
    pub fn new(store: &'a S, host: &'a H, identity: &str) -> Result<Self, ConfigError> {
        if identity.is_empty() || identity.len() > lease::MAX_NAME_BYTES {
            let rule = "must be a text of 1 to 1024 bytes";
            return Err(ConfigError::new("identity", quoted(identity), rule));
        }
        if !store.keeps_any_body() {
            let rule = "must be one that keeps a record as an object; over this one the status of an elector tells who leads";
            return Err(ConfigError::new("storage", store.describe(), rule));
        }
        Ok(Self { store, host, identity: identity.to_owned(), sequence: Cell::new(0) })
    }

    /// The record and its version; `None` without an object.
    ///
    /// # Errors
    /// [`LockErrorKind::Unusable`] and [`LockErrorKind::Store`].
    pub async fn get(&self) -> Result<Option<(LeaderElectionRecord, Version)>, LockError> {
        let read = Operation::Read { unless: None };
        let what = match perform_within(self.store, self.host, read, UNHURRIED_MS).await.outcome {
            Outcome::Missing => return Ok(None),
            Outcome::Found { version, reading: Reading::Lease(lease) } => {
                self.sequence.set(self.sequence.get().max(lease.sequence));
                return Ok(Some((LeaderElectionRecord::of(lease), version)));
            }
            Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => {
                return Err(LockError { kind: LockErrorKind::Store, message: cause.message });
            }
            Outcome::Found { .. } => "the object is no record in the store's format",
            _ => "the answer to a read was none",
        };
        Err(self.error(LockErrorKind::Unusable, what))
    }

    /// Writes the record where there is none. Gives its version.
    ///
    /// # Errors
    /// As the kinds of [`LockErrorKind`] say.
    pub async fn create(&self, record: &LeaderElectionRecord) -> Result<Version, LockError> {
        self.put(record, Condition::Absent).await
    }

    /// Writes the record in place of the one that had this version. Gives its version.
    ///
    /// # Errors
    /// As the kinds of [`LockErrorKind`] say.
    pub async fn update(
        &self,
        old: &Version,
        record: &LeaderElectionRecord,
    ) -> Result<Version, LockError> {
        self.put(record, Condition::Match(old.clone())).await
    }

    /// The member's name.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The store's object and the member's name, for people.
    pub fn describe(&self) -> String {
        format!("{} ({})", self.store.describe(), self.identity)
    }

    async fn put(
        &self,
        record: &LeaderElectionRecord,
        condition: Condition,
    ) -> Result<Version, LockError> {
        if record.lease_duration_ms.is_some_and(|ms| !(MIN_LEASE_MS..=MAX_LEASE_MS).contains(&ms)) {
            return Err(self.error(LockErrorKind::Record, "a lease lasts from a second to an hour"));
        }
        let before = record.beneath.as_deref().map_or(0, |lease| lease.sequence);
        let sequence = self.sequence.get().max(before).saturating_add(1);
        self.sequence.set(sequence);
        let lease = record.lease(&self.identity, sequence);
        if lease::write(&lease).len() > lease::MAX_RECORD_BYTES {
            return Err(self.error(LockErrorKind::Record, "a record has at most 64 KiB"));
        }
        let write = Operation::Write { record: Record::Lease(Box::new(lease)), condition };
        let answer = perform_within(self.store, self.host, write, UNHURRIED_MS).await;
        match answer.outcome {
            Outcome::Written { version: Some(version) } => Ok(version),
            Outcome::Refused if answer.facts.doubtful => {
                let what = "a write was refused, and the answer does not say that its condition did not hold: another write \
                            may have been under way, or something else than the store may have said it; read the object";
                Err(self.error(LockErrorKind::Unknown, what))
            }
            Outcome::Refused => {
                let what = "the object is not what it was: somebody else wrote it, or an earlier attempt of this write did; \
                            read it";
                Err(self.error(LockErrorKind::Conflict, what))
            }
            Outcome::Rejected(cause) => {
                Err(LockError { kind: LockErrorKind::Store, message: cause.message })
            }
            Outcome::Unknown { cause, .. } => {
                Err(LockError { kind: LockErrorKind::Unknown, message: cause.message })
            }
            _ => {
                let what = "a write was answered with a success that names no version, so something else than the store \
                            may have said it; read the object";
                Err(self.error(LockErrorKind::Unknown, what))
            }
        }
    }

    fn error(&self, kind: LockErrorKind, what: &str) -> LockError {
        LockError { kind, message: [&self.store.describe(), ": ", what].concat() }
    }
}

/// The settings of such groups, by their names. What is left out has edgelect's default; `leaderCallbacks` are the work that
/// `lead` runs. To leave the lease to run out (`releaseOnCancel: false`), drop the future of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// `leaderKey`: the object.
    pub leader_key: Option<String>,
    /// `holderIdentity`: the member's name.
    pub holder_identity: Option<String>,
    /// `leaseDuration` in milliseconds. Default 15 s.
    pub lease_duration_ms: Option<u64>,
    /// `renewDeadline` in milliseconds: until when after a renewal a leader acts that can't renew. Default nine tenths of the
    /// lease.
    pub renew_deadline_ms: Option<u64>,
    /// `retryPeriod` in milliseconds: how often a leader renews.
    pub retry_period_ms: Option<u64>,
}

impl LeaderElectionConfig {
    /// The settings that mean the same, and what the operator should hear of them.
    ///
    /// # Errors
    /// A `renewDeadline` that no elector keeps.
    pub fn settings(&self) -> Result<(Settings, Option<String>), ConfigError> {
        let lease_ms = self.lease_duration_ms.unwrap_or(DEFAULT_LEASE_MS);
        let (margin_ms, warning) = match self.renew_deadline_ms {
            Some(deadline_ms) => margin_of(lease_ms, deadline_ms)?,
            None => (None, None),
        };
        let settings = Settings {
            lockfile_path: self.leader_key.clone(),
            server_id: self.holder_identity.clone(),
            leader_timeout_ms: Some(lease_ms),
            frequent_interval_ms: self.retry_period_ms,
            margin_ms,
            ..Settings::default()
        };
        Ok((settings, warning))
    }

    /// The same out of a JSON object, in which a duration is a number of milliseconds, or a text as Go (`45s`) or Java
    /// (`PT45S`) writes it.
    ///
    /// # Errors
    /// The field that has no such value.
    pub fn from_json(given: &Object) -> Result<Self, ConfigError> {
        let given = |name: &'static str| given.get(name).filter(|json| !json::is_null(json));
        let text = |name| match given(name).map(json::text) {
            Some(None) => Err(ConfigError::new(name, "(not a text)", "must be a text")),
            text => Ok(text.flatten()),
        };
        let duration = |name| match given(name).map(milliseconds) {
            Some(None) => {
                let rule = "must be a number of milliseconds from 1 on, or a duration such as \"45s\", \"1m30s\" or \"PT45S\"";
                Err(ConfigError::new(name, "(not shown)", rule))
            }
            duration => Ok(duration.flatten()),
        };
        Ok(Self {
            leader_key: text("leaderKey")?,
            holder_identity: text("holderIdentity")?,
            lease_duration_ms: duration("leaseDuration")?,
            renew_deadline_ms: duration("renewDeadline")?,
            retry_period_ms: duration("retryPeriod")?,
        })
    }
}

const DEFAULT_LEASE_MS: u64 = 15_000;

/// Authority ends the margin before the lease, and their leader `renewDeadline` after its last renewal. No margin means the
/// default, a tenth; half of the lease is the most.
fn margin_of(
    lease_ms: u64,
    deadline_ms: u64,
) -> Result<(Option<u64>, Option<String>), ConfigError> {
    let latest_ms = lease_ms - lease_ms / 10;
    if deadline_ms > latest_ms {
        let warning = format!(
            "renewDeadline = {deadline_ms} ms is capped at {latest_ms} ms: a leader that goes on to the end of its lease of \
             {lease_ms} ms meets its successor as soon as two clocks differ"
        );
        return Ok((None, Some(warning)));
    }
    let earliest_ms = lease_ms.div_ceil(2);
    if deadline_ms < earliest_ms {
        let rule = format!(
            "must be at least half of leaseDuration, {earliest_ms} ms: no elector ends its authority earlier"
        );
        return Err(ConfigError::new("renewDeadline", format!("{deadline_ms} ms"), rule));
    }
    Ok((Some(lease_ms - deadline_ms), None))
}

fn milliseconds(json: &str) -> Option<u64> {
    let ms = match json::text(json) {
        // A number within a text has no unit that everybody means.
        Some(text) if !text.ends_with(|last: char| last.is_ascii_alphabetic()) => None,
        Some(_) => lease::duration_ms(json),
        None => json::whole(json),
    };
    ms.filter(|ms| *ms > 0)
}
