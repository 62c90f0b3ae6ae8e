//! A job's own state, fenced: one object that no earlier term can change any more.
//!
//! Authority is a matter of time, and a process that was stopped between its look at the clock and its write does
//! not know that its term is over. So the state carries the token. [`Checkpoint::open`] reads the object and writes
//! it back with this term's token (the *seal*); every write is a compare-and-swap on the version that it holds. An
//! earlier term holds an older version, so the store refuses it; and when it reads again it sees a higher token.
//!
//! The object is a record as [`crate::lease`] reads and writes it: `term` is the token, `value` the state, `opening`
//! a random text of each opening and `sequence` the number of the attempt in it, which make every body new (S4).
//! What is no such record is never written over.
//!
//! Nothing in here knows of time: whoever polls these futures does so with authority only. `lead` drops its work
//! without it, and the npm package looks before each turn.

use std::cmp::Ordering;

use crate::config::{self, Config, ConfigError};
use crate::driver::{Handle, Host, perform_within};
use crate::election::Election;
use crate::json::{self, Object};
use crate::lease::{Closed, Flaw, Lease, MAX_NAME_BYTES, MAX_RECORD_BYTES, Reading, Stamp};
use crate::store::{Condition, Fault, Operation, Outcome, Record, Store, Version};
use crate::text::{first, quoted};

/// The longest value, in bytes of JSON. The rest of the record is kept free, so that whoever leads next can open it,
/// whatever their name.
pub const MAX_VALUE_BYTES: usize = MAX_RECORD_BYTES - 4 * 1024;

/// How often a write begins anew because the object was changed under it. Only earlier terms can do that to an
/// opening, and each of them is at its end.
const MAX_ROUNDS: u32 = 8;

/// The longest pause that a store is granted on top of our own, in milliseconds.
const MAX_RETRY_AFTER_MS: u64 = 5_000;

/// The fields of the record that are no lease's.
const VALUE: &str = "value";
const OPENING: &str = "opening";

/// Who writes a checkpoint: one session in one of its terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    key: String,
    server_id: String,
    session: String,
    token: u64,
    request_timeout_ms: u64,
    retry_delays_ms: [u64; 2],
}

impl Owner {
    /// The session `session` in its term `token`; `key` is the one that the checkpoint's store was made for. A key
    /// belongs to one group: another group's tokens have nothing to do with these.
    ///
    /// # Errors
    /// The key is the lease's own, or none that a store would take; the session is none.
    pub fn new(config: &Config, session: &str, token: u64, key: &str) -> Result<Self, ConfigError> {
        let refuse = |rule: &str| Err(ConfigError::new("key", quoted(key), rule));
        if !config::is_key(key) {
            return refuse(
                "is the key of the checkpoint's object: 1 to 1024 bytes, without a leading slash, empty or dot \
                 segments, or control characters",
            );
        }
        if key == config.lockfile_path {
            return refuse("is the lease object (lockfilePath); a checkpoint needs one of its own");
        }
        if session.len() > MAX_NAME_BYTES {
            return refuse("needs a session of at most 1024 bytes");
        }
        Ok(Self::unchecked(config, session, token, key))
    }

    pub(crate) fn unchecked(config: &Config, session: &str, token: u64, key: &str) -> Self {
        let name = if config.server_id.is_empty() { session } else { &config.server_id };
        Self {
            key: key.to_owned(),
            server_id: name.to_owned(),
            session: session.to_owned(),
            token,
            request_timeout_ms: config.request_timeout_ms,
            retry_delays_ms: config.retry_delays_ms,
        }
    }

    /// The session that this elector is, in its term `token`.
    ///
    /// # Errors
    /// As [`Owner::new`]; and the elector is unfenced, so that its terms have no tokens.
    pub fn of(elector: &Handle, token: u64, key: &str) -> Result<Self, ConfigError> {
        if elector.with(Election::is_unfenced) {
            let rule =
                "needs an elector whose store has versions: over a locker a term has no token";
            return Err(ConfigError::new("checkpoint", quoted(key), rule));
        }
        elector.with(|election| Self::new(election.config(), election.session(), token, key))
    }
}

/// Why a checkpoint could not be opened or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointError {
    /// What kind of problem it is.
    pub kind: Refusal,
    /// The sentence for people: which checkpoint, why, what to do.
    pub message: String,
}

/// The kinds of [`CheckpointError`], by what can be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The value can't be stored. Nothing was sent.
    Value,
    /// A later term owns the checkpoint, or a later opening of this one does: this one never writes again. A write
    /// that was under way may have landed before that.
    Fenced,
    /// The write may have landed, and may still do so. The next [`Checkpoint::write`] finds out first, and so does
    /// opening it again.
    Unknown,
    /// The object is no checkpoint of this group's, or is gone. Nothing was written over it; somebody has to look.
    Unusable,
    /// The store did not do it.
    Store,
}

impl std::fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CheckpointError {}

/// A checkpoint that one term has opened.
///
/// ```
/// use edgelect::{Checkpoint, Handle, Host, Owner, S3Store, lead};
///
/// # async fn page(_from: u64) -> u64 { 0 }
/// async fn report<H: Host + Clone>(
///     elector: &Handle,
///     store: &S3Store<H>,
///     host: &H,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let cursor = store.at("reports/cursor.json")?;
///     lead(elector, store, host, async |term| {
///         let owner = Owner::of(elector, term.token, "reports/cursor.json")?;
///         let mut state = Checkpoint::open(&cursor, host, owner).await?;
///         let mut next: u64 = state.value().unwrap_or("0").parse()?;
///         loop {
///             next = page(next).await;
///             state.write(&next.to_string()).await?;
///         }
///     })
///     .await?
///     .unwrap_or(Ok(()))
/// }
/// ```
pub struct Checkpoint<'a, S, H> {
    store: &'a S,
    host: &'a H,
    opening: Opening,
}

impl<'a, S: Store, H: Host> Checkpoint<'a, S, H> {
    /// Opens the checkpoint that `store` keeps, creating it if need be: from here on no lower token can change it.
    /// A state that the same term opened before is refused from here on, too.
    ///
    /// # Errors
    /// [`Refusal::Fenced`] if a later term owns it; after [`Refusal::Unknown`] open it again.
    pub async fn open(store: &'a S, host: &'a H, owner: Owner) -> Result<Self, CheckpointError> {
        let random =
            host.random().map_err(|message| CheckpointError { kind: Refusal::Store, message })?;
        let id = json::of(&hex::encode(&random[..8]));
        if !store.condition_covers_version() || !store.keeps_any_body() {
            let message = [&store.describe(), KEEPS_LEASES_ONLY].concat();
            return Err(CheckpointError { kind: Refusal::Store, message });
        }
        let mut opening = Opening::new(owner, id, &store.describe());
        opening.carry_out(store, host).await?;
        Ok(Self { store, host, opening })
    }

    /// The state, as JSON: what was written last and is known to have landed. Nothing if nobody wrote any, or `null`.
    pub fn value(&self) -> Option<&str> {
        let value = self.opening.held.as_ref()?.value.as_deref();
        value.filter(|json| !json::is_null(json))
    }

    /// The token of the term that opened it.
    pub fn token(&self) -> u64 {
        self.opening.owner.token
    }

    /// Replaces the state by a value, which is JSON of at most [`MAX_VALUE_BYTES`].
    ///
    /// # Errors
    /// As the kinds of [`Refusal`] say. Only after [`Refusal::Unknown`] and [`Refusal::Fenced`], or if this was dropped,
    /// may the value have been there all the same.
    pub async fn write(&mut self, value: &str) -> Result<(), CheckpointError> {
        let value = value.trim_ascii();
        // One value and no more: what follows it would be fields of the record.
        let record = Object::read(format!("{}{value}}}", r#"{"value":"#).as_bytes());
        if record.is_none_or(|record| record.get(VALUE) != Some(value)) {
            let rule = "value = (not shown): must be JSON, nested no deeper than 126 levels";
            return Err(CheckpointError { kind: Refusal::Value, message: rule.to_owned() });
        }
        self.opening.begin(value)?;
        self.opening.carry_out(self.store, self.host).await
    }
}

/// What comes next.
enum Next {
    Ask(Operation),
    Sleep(u64),
    Done(Result<(), CheckpointError>),
}

/// The object as this opening knows it.
struct Held {
    version: Version,
    /// The newest attempt when it was found so. None up to this can land any more, for each was conditional on what the
    /// object was before; a later one may have landed, or may still do so.
    settled: u64,
    /// Nothing where it went on without.
    value: Option<String>,
}

/// One opening, and the change that it is at: without I/O and without a clock.
pub(crate) struct Opening {
    owner: Owner,
    /// What errors begin with.
    place: String,
    /// The random text of this opening, as JSON.
    id: String,
    /// What the next write is conditional on; nothing while an absent object is being opened.
    held: Option<Held>,
    /// The number of the newest attempt.
    issued: u64,
    /// What is to be written; nothing to seal what is there.
    wanted: Option<String>,
    /// The first attempt of this change on what is held now.
    first: u64,
    /// Whether the object is to be read before anything else is written.
    looks: bool,
    attempts: usize,
    rounds: u32,
    /// What was heard last of an attempt that is unresolved.
    why: Option<String>,
    /// The host's wall clock, for people to read in the record.
    wall_ms: u64,
    /// Whether whoever opens it holds numbers as JavaScript does, so that a value with another one is not theirs to change.
    holds_floats: bool,
}

impl Opening {
    /// To be carried out, which opens the checkpoint. `id` is a text that no other opening has, as JSON; `store`
    /// describes where it is.
    pub(crate) fn new(owner: Owner, id: String, store: &str) -> Self {
        Self {
            place: format!("checkpoint {} ({store}): ", quoted(&owner.key)),
            owner,
            id,
            held: None,
            issued: 0,
            wanted: None,
            first: 1,
            looks: true,
            attempts: 0,
            rounds: 0,
            why: None,
            wall_ms: 0,
            holds_floats: false,
        }
    }

    /// For one who holds numbers as JavaScript does.
    #[cfg(all(target_arch = "wasm32", feature = "js"))]
    pub(crate) fn with_floats(self) -> Self {
        Self { holds_floats: true, ..self }
    }

    /// The next thing to be carried out is to write this value, which is JSON.
    pub(crate) fn begin(&mut self, value: &str) -> Result<(), CheckpointError> {
        if value.len() > MAX_VALUE_BYTES {
            let (size, most) = (value.len().to_string(), MAX_VALUE_BYTES.to_string());
            let pieces = [
                "value = ",
                &size,
                " bytes: a checkpoint has at most ",
                &most,
                " bytes of JSON; keep more than that elsewhere, and its name in here",
            ];
            return Err(CheckpointError { kind: Refusal::Value, message: pieces.concat() });
        }
        self.wanted = Some(value.to_owned());
        // An earlier attempt may have landed: that is found out first.
        self.looks = self.held.as_ref().is_none_or(|held| held.settled < self.issued);
        self.rounds = 0;
        self.begin_round();
        Ok(())
    }

    pub(crate) async fn carry_out<S: Store, H: Host>(
        &mut self,
        store: &S,
        host: &H,
    ) -> Result<(), CheckpointError> {
        let mut heard = None;
        loop {
            match self.step(heard.take(), host.now().wall_ms) {
                Next::Ask(operation) => {
                    let timeout_ms = self.owner.request_timeout_ms;
                    heard = Some(perform_within(store, host, operation, timeout_ms).await.outcome);
                }
                // A store that takes one write a second refuses each one that comes so soon after the last.
                Next::Sleep(ms) => host.sleep(ms.max(store.writes_apart_ms())).await,
                Next::Done(end) => return end,
            }
        }
    }

    fn begin_round(&mut self) {
        self.first = self.issued + 1;
        self.attempts = 0;
        self.why = None;
    }

    /// To be called without an outcome to begin and after each sleep, and with that of each operation.
    fn step(&mut self, heard: Option<Outcome>, wall_ms: u64) -> Next {
        self.wall_ms = wall_ms;
        match heard {
            None if self.looks => Next::Ask(Operation::Read { unless: None }),
            None => self.write(),
            Some(outcome) if self.looks => self.looked(outcome),
            Some(outcome) => self.wrote(outcome),
        }
    }

    /// One attempt: a body unlike every other one (S4), on the condition that the object is as it is held (S3).
    fn write(&mut self) -> Next {
        self.issued += 1;
        let held = self.held.as_ref();
        let condition = match held {
            Some(held) => Condition::Match(held.version.clone()),
            None => Condition::Absent,
        };
        let mut extra = Object::new();
        extra.set(OPENING, &*self.id);
        extra.set(VALUE, self.next_value());
        let record = Record::Lease(Box::new(Lease {
            term: Some(self.owner.token),
            session: Some(self.owner.session.clone()),
            sequence: self.issued,
            extra,
            ..Lease::bare(&*self.owner.server_id, Stamp::At(self.wall_ms as i64))
        }));
        Next::Ask(Operation::Write { record, condition })
    }

    fn next_value(&self) -> &str {
        let held = || self.held.as_ref()?.value.as_deref();
        self.wanted.as_deref().or_else(held).unwrap_or("null")
    }

    fn wrote(&mut self, outcome: Outcome) -> Next {
        let mut asked_ms = None;
        let why = match outcome {
            Outcome::Written { version: Some(version) } => return self.landed(version),
            Outcome::Rejected(fault) if self.why.is_none() => {
                return self.failed(Refusal::Store, fault.message);
            }
            Outcome::Unknown { retry_after_ms, cause } => {
                asked_ms = Some(retry_after_ms.unwrap_or(0));
                cause.message
            }
            Outcome::Rejected(fault) => fault.message,
            _ => "the store did not take it, or does not show it yet".to_owned(),
        };
        self.why = Some(why);
        if let Some(asked_ms) = asked_ms
            && let Some(pause) = self.pause(asked_ms)
        {
            return pause;
        }
        // A refusal is not believed without the read-back: it may be one of our own write, which landed (S8).
        self.looks = true;
        Next::Ask(Operation::Read { unless: None })
    }

    fn looked(&mut self, outcome: Outcome) -> Next {
        let (version, reading) = match outcome {
            Outcome::Found { version, reading } => (version, reading),
            Outcome::Missing if self.held.is_none() => return self.unchanged(),
            Outcome::Missing => {
                return self.unusable("the object is gone: somebody deleted it under this term");
            }
            Outcome::Unknown { cause, .. } => return self.not_seen(cause, true),
            Outcome::Rejected(cause) => return self.not_seen(cause, false),
            // Nothing that answers a plain read.
            _ => return self.unusable(NO_CHECKPOINT),
        };
        if self.held.as_ref().is_some_and(|held| held.version == version) {
            return self.unchanged();
        }
        let mut lease = match reading {
            Reading::Lease(lease) => lease,
            Reading::Closed(Closed::NewerFormat(_)) => {
                return self.unusable("a newer edgelect wrote the object: update this one");
            }
            Reading::Unreadable(Flaw::TooLarge, _) => {
                return self.unusable("the object is larger than 64 KiB");
            }
            _ => return self.unusable(NO_CHECKPOINT),
        };
        let (value, term) = match (lease.extra.remove(VALUE), lease.term) {
            // What has a length of time is a lease, and never written over either.
            (Some(value), Some(term))
                if value.len() <= MAX_VALUE_BYTES && lease.lease_ms.is_none() =>
            {
                (value, term)
            }
            _ => return self.unusable(NO_CHECKPOINT),
        };
        let own = self.is_own(&lease);
        if let Some(end) = self.fenced_by(&lease, term, own) {
            return end;
        }
        if self.holds_floats
            && let Some(number) = json::unheld_number(&value)
        {
            let number = first(number, 40);
            return self.unusable(&["its value has the number ", number, UNHELD].concat());
        }
        self.hold(version, value);
        if own && lease.sequence >= self.first {
            return Next::Done(Ok(()));
        }
        // Nothing that was sent on the condition of another version can land any more.
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            let why = "an earlier term changed it under each of our writes; try again";
            return self.failed(Refusal::Store, [&self.place, why].concat());
        }
        self.begin_round();
        self.unchanged()
    }

    /// The object is as it is held: nothing has landed yet.
    fn unchanged(&mut self) -> Next {
        self.looks = false;
        if self.issued < self.first {
            self.attempts = 0;
            return self.write();
        }
        match self.pause(0) {
            Some(pause) => pause,
            None => self.unknown(),
        }
    }

    fn not_seen(&mut self, cause: Fault, again: bool) -> Next {
        let sent = self.issued >= self.first;
        self.looks = !sent;
        if (sent || again)
            && let Some(pause) = self.pause(0)
        {
            return pause;
        }
        if sent {
            self.why = Some(cause.message);
            return self.unknown();
        }
        self.failed(Refusal::Store, cause.message)
    }

    /// Why this term may not write over a record, if it may not.
    fn fenced_by(&self, lease: &Lease, term: u64, own: bool) -> Option<Next> {
        let opens = self.wanted.is_none();
        let by = quoted(first(&lease.leader_id, 60));
        let why: &[&str] = match term.cmp(&self.owner.token) {
            Ordering::Greater => &["it belongs to the later term ", &term.to_string(), " of ", &by],
            Ordering::Less if opens => return None,
            Ordering::Less => return Some(self.unusable("an older state was put back over ours")),
            Ordering::Equal if own => return None,
            // A term is of one session, and the tokens of a group only grow (S2).
            Ordering::Equal if lease.session.as_deref() != Some(&self.owner.session) => {
                &["another session, of ", &by, ", has this very token: a key belongs to one group"]
            }
            Ordering::Equal if opens => return None,
            Ordering::Equal => &["this term has opened it again since; keep one state of a key"],
        };
        Some(self.failed(Refusal::Fenced, [&self.place, &*why.concat()].concat()))
    }

    /// Whether this very opening wrote a record.
    fn is_own(&self, lease: &Lease) -> bool {
        lease.term == Some(self.owner.token)
            && lease.session.as_deref() == Some(&self.owner.session)
            && lease.extra.get(OPENING) == Some(&self.id)
    }

    fn landed(&mut self, version: Version) -> Next {
        let value = self.next_value().to_owned();
        self.hold(version, value);
        Next::Done(Ok(()))
    }

    fn hold(&mut self, version: Version, value: String) {
        self.held = Some(Held { version, settled: self.issued, value: Some(value) });
    }

    /// The pause before another attempt, unless this was the last.
    fn pause(&mut self, asked_ms: u64) -> Option<Next> {
        let ms = *self.owner.retry_delays_ms.get(self.attempts)?;
        self.attempts += 1;
        Some(Next::Sleep(ms.max(asked_ms.min(MAX_RETRY_AFTER_MS))))
    }

    fn unknown(&mut self) -> Next {
        let why = self.why.take().unwrap_or_default();
        let pieces = [
            &self.place,
            "the write may have landed, or may still do so; write or open it again to find out: ",
            &why,
        ];
        self.failed(Refusal::Unknown, pieces.concat())
    }

    fn unusable(&self, why: &str) -> Next {
        let advice = "; it is left as it is: use another key, or move it away while no member runs";
        self.failed(Refusal::Unusable, [&self.place, why, advice].concat())
    }

    fn failed(&self, kind: Refusal, message: String) -> Next {
        Next::Done(Err(CheckpointError { kind, message }))
    }
}

/// Between two writes JavaScript keeps what is held, so that nothing in here has to be given back.
#[cfg(all(target_arch = "wasm32", feature = "js"))]
impl Opening {
    /// What is held, as an event.
    pub(crate) fn suspend(&self) -> String {
        let mut told = Object::new();
        told.set("type", json::of("held"));
        told.set("issued", json::of(&self.issued));
        told.set(OPENING, self.id.as_str());
        if let Some(Held { version, settled, value }) = &self.held {
            told.set("version", json::of(&version.0));
            told.set("settled", json::of(settled));
            if let Some(value) = value {
                told.set(VALUE, value.as_str());
            }
        }
        told.to_json()
    }

    /// Takes what an earlier one held, once: two that go on with the same would make equal bodies (S4).
    pub(crate) fn resume(&mut self, held: &Object) {
        let number = |name: &str| held.get(name).and_then(json::whole).unwrap_or_default();
        // Without one it would open: a version that no object has is refused by every store.
        let version = held.get("version").and_then(json::text).unwrap_or_default();
        self.id = held.get(OPENING).unwrap_or_default().to_owned();
        self.issued = number("issued");
        let (version, settled) = (Version(version), number("settled"));
        self.held = Some(Held { version, settled, value: None });
    }
}

const KEEPS_LEASES_ONLY: &str = ": keeps leases only; a checkpoint needs an object that compare-and-swap changes, as \
                                 S3 buckets and R2 buckets have them (a store of your own says so by keeps_any_body)";

const UNHELD: &str = ", which JavaScript would change: its numbers are 64-bit floats";

const NO_CHECKPOINT: &str = "the object is no checkpoint, but a lease or a document of others";
