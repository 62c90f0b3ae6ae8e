//! One object per leader epoch, for S3 stores that know `If-None-Match: *` and no `If-Match`: which requests an
//! operation is, and what the answers mean.
//!
//! `leader/my-group` as the lockfile path gives `leader/my-group/lock_0000000001.json` and so on; `lock-0000000001.json`
//! is read too, and succeeded under names of its own kind. The newest number is the record; the number of the next is
//! one more. A body is the record of [`Format`] with `validity_ms` and `expired` beside it; a body that has these two
//! alone is read as a foreign record. The token is the body's `term`, never below the number.
//!
//! | operation | requests |
//! |---|---|
//! | read | LIST (a page per 1,000 keys), GET of the newest, of both where two names have the newest number |
//! | claim | PUT of the next number with `If-None-Match: *`, LIST |
//! | renewal, park, tombstone | PUT of its own number, LIST; one DELETE while there is a third epoch that is two leases old |
//!
//! Its own is the number whose creation by this very session is known to have landed: by the listing after it, or by
//! a body with its session, its term and its sequence in it. A write on a version that is not one of these creates the
//! next number, whatever numbers it has in common with a creation that was refused (S3).
//!
//! The store's listings have to show every write that was answered before they were asked for, as S3's do.
//!
//! # Why this elects one
//!
//! A claim is conditional on the next number being free, not on the record being what it was: a renewal may land
//! between the read that justified the claim and the claim. So let a follower's deciding read leave at `s`, with the
//! proof of age complete by then, and look at what the leader of that record has sent:
//!
//! * What landed before the body was read was seen by it, and is no younger than the proof says. (a) An unchanged
//!   ETag alone does not say so: no condition keeps a late duplicate of an earlier body from coming back, and a
//!   foreign leader renews by writing the same bytes. So the version has `Last-Modified` in it, and because that has
//!   whole seconds and the store more than one clock, a second and `storeSkew` are taken off the watched time.
//!   (b) `Date - Last-Modified` counts with the `Date` of the LIST, which came before the GET left. An answer from a
//!   cache may show a body of before `s`: with `Age` or `Via`, or where LIST and GET name two times, it proves neither.
//! * What lands later is answered after `s`. By then every fence of that leader has passed, and an answer that is
//!   processed after the fence grants nothing (S5, S9): the term never resumes, however late the claim leaves.
//!
//! The same holds for a tombstone, a parked record and an own one: their term had ended when they were written. A late
//! duplicate over one of them hides it until it has not changed for a lease; nobody believes in its term. The healing
//! of an unreadable record rests on the same proof of age as a claim.
//!
//! A number that was cleaned can be created anew by a held-up claim, and a renewal can recreate one. So no write is
//! known to have landed before a LIST that left after it shows it as the newest; and the newest two are never cleaned,
//! so that the newest number never falls. Deleting the newest by hand under a running group is outside the contract.
//! Members of another make believe in a creation without another LIST; an older epoch stays for them until none can come.

mod exchange;
mod listing;
mod record;

use std::cell::{Cell, RefCell};

use percent_encoding::utf8_percent_encode;

pub use self::exchange::Exchange;
use self::exchange::{Goal, Stage, Write};
use self::listing::{BEGINNING, Epoch, Listing};
use crate::config::ConfigError;
use crate::lease::{Format, MAX_LEASE_MS};
use crate::planted::planted;
use crate::protocol::{Next, Protocol};
use crate::request::{Request, Response};
use crate::sigv4::{Credentials, RESERVED};
use crate::store::s3::{self, S3, S3Config, Target};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Version, is_probe,
};
use crate::text::quoted;

/// How many creations, and how many bodies of its own, an instance remembers; what it has forgotten is renewed by the
/// next number.
const MAX_MADE: usize = 32;

/// How many leases an epoch stays at least. Members of another make look at no listing after a creation, and so long as one of
/// theirs may arrive, its number must not be free. They give it up within the shortest lease of ours after the listing that it rests on; the second
/// one is for servers of the store whose clocks differ.
const RESTS: u64 = 2;

/// The epochs of one group, and which of them this instance is known to have made.
#[derive(Debug)]
pub struct Epochs {
    s3: S3,
    /// With its slash at the end.
    folder: String,
    format: Format,
    keys_per_page: u16,
    /// Creations that have left; nothing says that they landed.
    sent: RefCell<Vec<(Made, u64)>>,
    /// Bodies of epochs whose creation is known to have landed, each as it was read there or confirmed.
    held: RefCell<Vec<(Made, Version)>>,
    /// Until how many more writes have passed nothing is cleaned.
    cleaning_pause: Cell<u32>,
    /// Why the last cleaning failed.
    uncleaned: RefCell<Option<Fault>>,
    /// Why the last read proves no age.
    doubted: RefCell<Option<Fault>>,
}

/// An epoch with this session's term in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    epoch: Epoch,
    session: String,
    term: u64,
}

impl Epochs {
    /// The epochs of a bucket. The configuration's `key`, the group's `lockfilePath`, is their folder, without a slash at the
    /// end.
    ///
    /// # Errors
    /// The option that cannot be used, its value (without what may be a secret) and the rule.
    pub fn new(mut config: S3Config) -> Result<Self, ConfigError> {
        let folder = format!("{}/", config.key);
        // Bodies are made here, beside what the layout adds to them.
        let format = std::mem::take(&mut config.format);
        s3::address::check_key(&[&folder, &*Epoch::FIRST.name()].concat())?;
        Ok(Self {
            s3: S3::new(config)?,
            folder,
            format,
            keys_per_page: 1_000,
            sent: RefCell::default(),
            held: RefCell::default(),
            cleaning_pause: Cell::new(0),
            uncleaned: RefCell::default(),
            doubted: RefCell::default(),
        })
    }

    /// How many keys one page of a listing has at most: 1,000 unless set, from 1 to there.
    pub fn keys_per_page(self, keys: u16) -> Self {
        Self { keys_per_page: keys.clamp(1, 1_000), ..self }
    }

    /// Whether this very session's term was in the body of this version, in an epoch that it is known to have created:
    /// then it may overwrite it (S3). That numbers are equal says nothing: a creation that was refused may have the
    /// number and the term of somebody else's.
    fn holds(&self, made: &Made, version: &Version) -> bool {
        let sent = |(one, _): &(Made, u64)| one == made;
        if planted!(EpochCreationUnconfirmed) && self.sent.borrow().iter().any(sent) {
            return true;
        }
        self.held.borrow().iter().any(|(one, held)| one == made && held == version)
    }

    /// Whether a body with this session and term in it is known to be of an own creation: one that is known to have
    /// landed, or that shows itself here by its sequence.
    fn is_own(&self, made: &Made, sequence: u64) -> bool {
        let sent = |(one, sent): &(Made, u64)| one == made && *sent == sequence;
        self.sent.borrow().iter().any(sent) || self.held.borrow().iter().any(|(one, _)| one == made)
    }

    fn list(&self, token: &str) -> s3::Exchange {
        let encode = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
        let prefix = [&*self.folder, BEGINNING].concat();
        let mut encoded = "?".to_owned();
        if !token.is_empty() {
            encoded.push_str(&format!("continuation-token={}&", encode(token)));
        }
        let keys = self.keys_per_page.to_string();
        encoded.push_str(&format!("list-type=2&max-keys={keys}&prefix={}", encode(&prefix)));
        let read = Operation::Read { unless: None };
        let target = Target { key: prefix, encoded, unconditional: false };
        self.s3.begin_at(read, target)
    }

    fn target(&self, epoch: Epoch) -> Target {
        let key = [&*self.folder, &epoch.name()].concat();
        let encoded = s3::address::encode_key(&key);
        Target { key, encoded, unconditional: false }
    }

    fn get(&self, epoch: Epoch) -> s3::Exchange {
        self.s3.begin_at(Operation::Read { unless: None }, self.target(epoch))
    }

    fn put(&self, write: &Write) -> s3::Exchange {
        let condition = match write.overwrites {
            true => Condition::Match(Version(String::new())),
            false => Condition::Absent,
        };
        let record = Record::Raw(write.body.clone());
        let operation = Operation::Write { record, condition };
        let target = Target { unconditional: write.overwrites, ..self.target(write.epoch) };
        self.s3.begin_at(operation, target)
    }

    fn delete(&self, epoch: Epoch) -> s3::Exchange {
        self.s3.begin_at(Operation::Delete, self.target(epoch))
    }

    fn fault(&self, kind: FaultKind, pieces: [&str; 3]) -> Fault {
        Fault::new(kind, format!("{}: {}", self.s3.describe(), pieces.concat()))
    }

    /// Takes note of a read that proves no age, for people: nobody succeeds a leader that dies by such reads.
    fn doubt(&self, epoch: Epoch, relayed: bool, older: bool) {
        let why = match (relayed, older) {
            (true, _) => RELAYED,
            (_, true) => OLDER,
            _ => {
                self.doubted.replace(None);
                return;
            }
        };
        let fault = self.fault(FaultKind::Nonsense, ["GET ", &quoted(&epoch.name()), why]);
        self.doubted.replace(Some(fault));
    }

    /// What a write to the record is here: which number, and whether it is an overwriting.
    fn plan(&self, record: Record, condition: &Condition) -> Goal {
        let lease = match &record {
            Record::Lease(lease) => Some(&**lease),
            Record::Raw(_) => None,
        };
        let made = |epoch: Epoch| {
            let lease = lease?;
            let term = lease.term?.max(epoch.number);
            Some(Made { epoch, session: lease.session.clone()?, term })
        };
        let (epoch, overwrites) = match condition {
            Condition::Absent => (Epoch::FIRST, false),
            Condition::Match(version) => {
                let Some(held) = epoch_of(version) else {
                    return Goal::Unfit(FaultKind::Nonsense, "the version is not one of an epoch");
                };
                let own = made(held).is_some_and(|made| self.holds(&made, version));
                match held.next() {
                    _ if own || planted!(EpochOverwritten) => (held, true),
                    Some(next) => (next, false),
                    None => return Goal::Unfit(FaultKind::Misconfigured, USED_UP),
                }
            }
        };
        let (made, sequence) = (made(epoch), lease.map_or(0, |lease| lease.sequence));
        let lease_ms = lease.and_then(|lease| lease.lease_ms).unwrap_or(MAX_LEASE_MS);
        let rest_ms = RESTS.saturating_mul(lease_ms) + 2_000;
        let body = match record {
            Record::Lease(lease) => record::write(self.format, &lease),
            Record::Raw(bytes) => bytes,
        };
        let (etag, relayed) = (None, false);
        Goal::Write(Write { epoch, overwrites, body, made, sequence, rest_ms, etag, relayed })
    }
}

const USED_UP: &str = "no epoch can follow number 9999999999: stop all members, delete the epochs, wait for the longest \
                       lease, and start them again";

const RELAYED: &str = ": the answers have Age or Via, so that they may be older than their requests, and nobody succeeds \
                       a leader that dies by them; let nothing stand between here and the store";

const OLDER: &str = ": the listing names a later Last-Modified or none, so that the object may be older than its request, \
                     and nobody succeeds a leader that dies by it; let no cache stand between here and the store";

/// Keeps the newest few.
fn remember<T: PartialEq>(known: &mut Vec<T>, new: T) {
    known.retain(|one| *one != new);
    if known.len() >= MAX_MADE {
        known.remove(0);
    }
    known.push(new);
}

/// `lock_0000000001.json 1795244292 "etag"`: which epoch, when its object was written last in whole seconds, and which
/// body it has. No key has a name with a space before its end, and no ETag begins with one.
fn version_of(epoch: Epoch, modified_s: u64, etag: &Version) -> Version {
    let modified = if planted!(EpochTouchUnseen) { 0 } else { modified_s };
    Version(format!("{} {modified} {}", epoch.name(), etag.0))
}

fn epoch_of(version: &Version) -> Option<Epoch> {
    let (name, rest) = version.0.split_once(' ')?;
    let (modified, etag) = rest.split_once(' ')?;
    let plain = !modified.is_empty() && modified.bytes().all(|byte| byte.is_ascii_digit());
    Epoch::of(name).filter(|_| plain && !etag.is_empty())
}

impl Protocol for Epochs {
    type Exchange = Exchange;

    // A page of 1,000 keys of usual length has less than half of it.
    const ANSWER_LIMIT: usize = 1 << 20;

    fn begin(&self, operation: Operation) -> Exchange {
        let (goal, stage) = match operation {
            Operation::Read { unless } => (Goal::Read { unless }, Stage::List),
            Operation::Write { record, condition } => (self.plan(record, &condition), Stage::Put),
            Operation::Delete if is_probe(self.folder.trim_end_matches('/')) => {
                (Goal::Delete, Stage::List)
            }
            Operation::Delete => {
                (Goal::Unfit(FaultKind::Unsupported, "the epochs are not a probe's"), Stage::List)
            }
        };
        let inner = match &goal {
            Goal::Write(write) => self.put(write),
            _ => self.list(""),
        };
        let (listing, token) = (Listing::default(), String::new());
        let listed = Facts::default();
        Exchange { goal, stage, inner, listing, pages: 0, token, looks: 0, listed }
    }

    fn request(
        &self,
        exchange: &mut Exchange,
        credentials: &Credentials,
        wall_ms: u64,
    ) -> Result<Request, Fault> {
        if let Goal::Unfit(kind, why) = exchange.goal {
            return Err(self.fault(kind, ["nothing was sent: ", why, ""]));
        }
        let request = exchange.inner.request(&self.s3, credentials, wall_ms)?;
        if let (Stage::Put, Goal::Write(Write { made: Some(made), sequence, overwrites, .. })) =
            (&exchange.stage, &exchange.goal)
            && !overwrites
        {
            remember(&mut self.sent.borrow_mut(), (made.clone(), *sequence));
        }
        Ok(request)
    }

    fn answer(&self, exchange: &mut Exchange, response: Response, wall_ms: u64) -> Next {
        match exchange.stage.clone() {
            Stage::List | Stage::Confirm => exchange.on_page(self, response, wall_ms),
            Stage::Get(epoch) | Stage::GetTwin(epoch, ..) => {
                exchange.on_body(self, epoch, response, wall_ms)
            }
            Stage::Put => exchange.on_put(self, response, wall_ms),
            Stage::Clean(answer) => exchange.on_cleaned(self, answer, response, wall_ms),
            Stage::Delete(epoch) => match exchange.inner.answer(&self.s3, response, wall_ms) {
                Next::Done(Answer { outcome: Outcome::Missing, .. }) => {
                    exchange.delete(self, epoch.next())
                }
                next => next,
            },
        }
    }

    fn silence(&self, exchange: &mut Exchange, cause: Fault) -> Answer {
        match &exchange.stage {
            Stage::Clean(answer) => {
                self.uncleaned.replace(Some(cause));
                answer.clone()
            }
            _ => Answer::unknown(cause),
        }
    }

    fn unsent(&self, exchange: &mut Exchange, fault: Fault) -> Answer {
        match &exchange.stage {
            Stage::Clean(answer) => answer.clone(),
            // The write has left before.
            Stage::Confirm => Answer::unknown(fault),
            _ => Answer::rejected(fault),
        }
    }

    fn beside(&self, key: &str) -> Option<Self> {
        let folder = format!("{key}/");
        let s3 = self.s3.at(&[&folder, &*Epoch::FIRST.name()].concat()).ok()?;
        let (format, keys_per_page) = (Format::Native, self.keys_per_page);
        Some(Self {
            s3,
            folder,
            format,
            keys_per_page,
            sent: RefCell::default(),
            held: RefCell::default(),
            cleaning_pause: Cell::default(),
            uncleaned: RefCell::default(),
            doubted: RefCell::default(),
        })
    }

    fn condition_covers_version(&self) -> bool {
        false
    }

    fn complaint(&self) -> Option<Fault> {
        self.uncleaned.borrow().clone().or_else(|| self.doubted.borrow().clone())
    }

    fn describe(&self) -> String {
        self.s3.describe()
    }
}
