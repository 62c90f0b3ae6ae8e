//! What every store gives the election: one record, read and changed by compare-and-swap.
//!
//! A store turns one operation into one [`Answer`]. It never retries a conditional write on its own and
//! never guesses: what it cannot know is [`Outcome::Unknown`] (S8).

pub mod dynamodb;
pub mod epochs;
mod heard;
pub mod memory;
pub mod route53;
pub mod s3;
mod sentences;
pub mod service;

use serde::Serialize;

use crate::lease::{Format, Lease, Reading, Stamp};

/// The store's name for one state of the record: for S3 the ETag, quotes included. Opaque.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Version(pub String);

/// On what a write is conditional. There is no unconditional write (S3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The record must not exist: `If-None-Match: *`.
    Absent,
    /// The record must still have this version: `If-Match`.
    Match(Version),
}

/// One operation of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read the record; [`Outcome::Unchanged`] if it still has the version in `unless`.
    Read {
        /// The version that the caller already knows.
        unless: Option<Version>,
    },
    /// Replace the record if the condition holds.
    Write {
        /// What it is replaced by.
        record: Record,
        /// What must hold for the write to take effect.
        condition: Condition,
    },
    /// Delete the object of a [probe](is_probe). [`Outcome::Missing`] where it is gone. A store that cannot delete, or whose
    /// object is no probe's, above all a lease (S3), answers [`Fault::not_deleted`] and asks nobody.
    Delete,
}

/// What a write stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A lease, which each store writes in a form of its own.
    Lease(Box<Lease>),
    /// These bytes, as they are. A store that keeps leases in a form of its own refuses them.
    Raw(Vec<u8>),
}

impl From<Lease> for Record {
    fn from(lease: Lease) -> Self {
        Self::Lease(Box::new(lease))
    }
}

impl From<Box<Lease>> for Record {
    fn from(lease: Box<Lease>) -> Self {
        Self::Lease(lease)
    }
}

impl From<Vec<u8>> for Record {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Raw(bytes)
    }
}

impl Record {
    /// The bytes of an object with this record, whose leases are documents of this format.
    pub fn body(&self, format: Format) -> Vec<u8> {
        match self {
            Self::Lease(lease) => format.write(lease).into_bytes(),
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}

/// What a store knows after an operation. Outcomes are inputs of the election, not errors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The record and the version that this body has.
    Found {
        /// The version of exactly this body.
        version: Version,
        /// The body, judged.
        reading: Reading,
    },
    /// There is no record.
    Missing,
    /// The record still has the version that the caller named.
    Unchanged,
    /// The write took effect and made this version.
    Written {
        /// The new version; `None` where the answer named none, so that it must be read back.
        version: Option<Version>,
    },
    /// The store says that the condition did not hold (412, 404, 409). Not believed without a read-back (S8).
    Refused,
    /// The operation may have taken effect, or may still do (a timeout, a reset, a 5xx, a 429).
    Unknown {
        /// How many milliseconds the store asks to wait before the next request (`Retry-After`).
        retry_after_ms: Option<u64>,
        /// What happened, for people.
        cause: Fault,
    },
    /// The store did not do it and says why; a write did not take effect.
    Rejected(Fault),
}

/// A problem with a store, told so that somebody can act on it. Never carries a secret or a signature.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What kind of problem it is.
    pub kind: FaultKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The store's own code (`AccessDenied`), where it gave one; letters, digits, dots and dashes only.
    pub code: Option<String>,
    /// The sentence for people: the store, the operation, what to do.
    pub message: String,
    /// The sentence for anybody who asks, where another than `message`; see [`Fault::shown_as`].
    pub public: Option<String>,
}

/// The kinds of [`Fault`], split by what a caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No answer in time.
    Timeout,
    /// No answer: refused, reset, name not found.
    Network,
    /// The store has failed, or asks for fewer requests (5xx, 429, SlowDown).
    Unavailable,
    /// The credentials are not allowed to do this, or are wrong or expired.
    Denied,
    /// The store cannot be used as it is set up: no bucket, wrong region, no conditional writes. Trying again
    /// does not help.
    Misconfigured,
    /// The answer makes no sense (no ETag, a broken body); nothing may be concluded from it.
    Nonsense,
    /// This store never does such an operation on this object.
    Unsupported,
}

/// What the answer says about time, for the proofs of age (S6) and for storage time (S2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The `Date` header in milliseconds since the Unix epoch (whole seconds).
    pub date_ms: Option<u64>,
    /// The `Last-Modified` header in milliseconds since the Unix epoch (whole seconds).
    pub last_modified_ms: Option<u64>,
    /// Whether an `Age` or `Via` header, or what the answer contradicts, shows that something between us and the store
    /// answered or relayed.
    pub relayed: bool,
    /// Whether an `Age` header shows that a cache answered: the `Date` may be of long ago (RFC 9111, 5.1).
    pub cached: bool,
    /// Whether a write that was [`Outcome::Refused`] may have failed, or may have landed, for another reason than its condition:
    /// another write was under way, or the status is not the store's word for that. The election reads back whatever was
    /// refused; who does not must take it for [`Outcome::Unknown`] (S8).
    pub doubtful: bool,
}

impl Facts {
    /// What is left of the lease of a record that came with this, in milliseconds; negative once it has run out. A guess, for
    /// people: it grants nothing. `lease_ms` counts where the record names none.
    pub fn left_ms(&self, lease: &Lease, lease_ms: u64, storage_ms: u64) -> i64 {
        let lease_ms = lease.lease_ms.unwrap_or(lease_ms);
        let stamp_ms = match lease.last_updated {
            Stamp::At(ms) => u64::try_from(ms).ok(),
            Stamp::Released => None,
        };
        let modified_ms = self.last_modified_ms.filter(|_| self.date_ms.is_some() && !self.relayed);
        let written_ms = modified_ms.or(stamp_ms).unwrap_or(0);
        let age_ms = storage_ms.saturating_sub(written_ms);
        i64::try_from(lease_ms).unwrap_or(i64::MAX).saturating_sub_unsigned(age_ms)
    }
}

/// The end of one operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Answer {
    /// What is known now.
    pub outcome: Outcome,
    /// What the answer says about time.
    pub facts: Facts,
}

/// A place that keeps one record. `&self` throughout: a store may be asked by several electors.
///
/// What an implementation promises:
///
/// * A write takes effect only if its condition holds at that very moment, as one indivisible step (S3). A read
///   shows a state that the record had while the read was under way, and a body with its own version.
/// * Two different bodies never have the same version; equal ones may (S4).
/// * It sends each operation once and never repeats a write on its own, unless the answer shows that it did
///   nothing. [`Outcome::Refused`] and [`Outcome::Rejected`] are said only where the store itself says so, or where a
///   refusal that may be another's is told as such ([`Facts::doubtful`]); whatever else goes wrong with a write is [`Outcome::Unknown`] (S8).
/// * A body of more than [`MAX_RECORD_BYTES`](crate::lease::MAX_RECORD_BYTES) is not read to its end.
/// * [`Facts`] come from the answer to this very operation and from nowhere else, least of all from an own
///   clock; without them the age of a record is watched instead (S6).
///
/// It needs no timeout: the driver drops the future of what takes longer than the election allows, and takes
/// that for [`Outcome::Unknown`]. The operation may go on and take effect all the same; dropping must be safe
/// at every await, and the next operation must not wait for the dropped one. It does not panic.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Store {
    /// Performs one operation.
    async fn perform(&self, operation: Operation) -> Answer;

    /// The object at another key of the same store, which a probe may use: a long-running process tests such a store at its
    /// start, before the election trusts it. `None` by default, and for a store that keeps one record.
    fn beside(&self, _key: &str) -> Option<impl Store> {
        None::<Nowhere>
    }

    /// Whether a write on [`Condition::Match`] takes effect only while the record has exactly that version.
    ///
    /// For epochs it is `false`: there the condition proves only that nobody has written a later epoch. Then the election counts
    /// an age only up to the moment at which the last read that showed the version was sent. Such a store must change the version
    /// whenever `Last-Modified` changes, and must take the `Date` of a read from an answer that came before the request for the
    /// body was sent. An answer that is [relayed](Facts::relayed) then proves no age at all.
    ///
    /// A store that wraps another must forward what that one returns: wrongly returning `true` allows two leaders, so there
    /// is no default.
    fn condition_covers_version(&self) -> bool;

    /// Whether a write that is delayed on its way has no effect any more once a later write was accepted. This is `false` where
    /// a write names no version. Then the length of the lease stays the same for a whole term: a delayed renewal with a shorter
    /// lease would end the authority that a later renewal has granted (S5).
    ///
    /// A store that wraps another must forward what that one returns: wrongly returning `true` allows two leaders.
    fn stale_writes_fail(&self) -> bool {
        self.condition_covers_version()
    }

    /// For a store whose condition has several parts: versions that differ from this one in one part each. A probe writes on
    /// each of them, and the store must refuse. Empty where the store compares a version as a whole.
    fn near_misses(&self, _version: &Version) -> Vec<Version> {
        Vec::new()
    }

    /// Whether every body comes back whole and stays until it is replaced, as a checkpoint needs. A TXT record leaves out what
    /// does not fit, and an item with a `ttl` is deleted some time, so they return `false`, the default: they keep leases only.
    /// A store that wraps another must forward what that one returns.
    fn keeps_any_body(&self) -> bool {
        false
    }

    /// The shortest time between two writes of one record that the store takes, in milliseconds; it answers 429 to others. Members
    /// that hear of a release at once then wait for so long before they claim. 0 where it has no such limit, the default.
    fn writes_apart_ms(&self) -> u64 {
        0
    }

    /// A problem that costs no term and that somebody should still act on, such as old objects that can't be deleted. The
    /// status shows it as its error while no operation fails.
    fn complaint(&self) -> Option<Fault> {
        None
    }

    /// The name for errors and status, such as `S3 bucket "jobs" at https://…`. No secret is in it.
    fn describe(&self) -> String;
}

/// A store that can't exist: the type of [`Store::beside`] where there is none.
enum Nowhere {}

impl Store for Nowhere {
    async fn perform(&self, _operation: Operation) -> Answer {
        match *self {}
    }

    fn condition_covers_version(&self) -> bool {
        match *self {}
    }

    fn describe(&self) -> String {
        match *self {}
    }
}

/// The codes by which stores say that they do not know an access key, or that a signature was made with another secret: S3's,
/// R2's, DynamoDB's and Route 53's.
const REFUSED_KEYS: [&str; 6] = [
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "Unauthorized",
    "UnrecognizedClientException",
    "InvalidSignatureException",
    "InvalidClientTokenId",
];

/// The name of Deno's error for a request that its permissions forbid, as the host puts it before the error's text: a storage's
/// own text may have that word anywhere.
const NOT_CAPABLE: &str = ": NotCapable: ";

/// What marks the key of an object that a probe makes, before 32 hex digits.
pub const PROBE_MARK: &str = ".probe-";

/// Whether a key is that of a probe's object.
pub fn is_probe(key: &str) -> bool {
    let Some(at) = key.len().checked_sub(32) else { return false };
    let (before, digits) = key.as_bytes().split_at(at);
    before.ends_with(PROBE_MARK.as_bytes()) && digits.iter().all(u8::is_ascii_hexdigit)
}

impl Answer {
    /// Nobody knows whether the operation took effect, and no answer tells anything about time.
    pub fn unknown(cause: Fault) -> Self {
        let outcome = Outcome::Unknown { retry_after_ms: None, cause };
        Self { outcome, facts: Facts::default() }
    }

    /// The operation certainly had no effect, and no answer tells anything about time.
    pub fn rejected(fault: Fault) -> Self {
        Self { outcome: Outcome::Rejected(fault), facts: Facts::default() }
    }
}

impl Fault {
    /// A fault without HTTP details.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, code: None, message: message.into(), public: None }
    }

    /// The same, where `message` has the words of the application's own code, such as its storage or its provider of credentials:
    /// they may name a password, so that only the program itself reads them. Everybody else reads this.
    pub fn shown_as(self, public: impl Into<String>) -> Self {
        Self { public: Some(public.into()), ..self }
    }

    /// Whether the set-up is wrong, so that the same request will fail again: the store cannot be used as it is set up, does not
    /// know the access key, or does not accept its signature, or the runtime forbids the request.
    pub fn is_for_good(&self) -> bool {
        let refused = || self.code.as_deref().is_some_and(|code| REFUSED_KEYS.contains(&code));
        match self.kind {
            FaultKind::Misconfigured => true,
            FaultKind::Denied => refused(),
            FaultKind::Network => self.message.contains(NOT_CAPABLE),
            _ => false,
        }
    }

    /// [`Operation::Delete`] was asked of a store of this name that cannot delete, or of an object that is no probe's.
    pub fn not_deleted(store: &str) -> Self {
        let why = ": nothing was deleted: the store cannot, or the object is no probe's";
        Self::new(FaultKind::Unsupported, [store, why].concat())
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
