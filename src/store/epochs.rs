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
//! | renewal, park, tombstone | PUT of its own number, LIST; one DELETE while there are more than two epochs |
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

mod listing;

use std::cell::{Cell, RefCell};

use percent_encoding::utf8_percent_encode;
use serde::Serialize;

use self::listing::{BEGINNING, Epoch, LAST, Listing};
use crate::config::ConfigError;
use crate::json::{self, Object};
use crate::lease::{
    self, Closed, Flaw, Format, History, Lease, MAX_FOREIGN_LEASE_MS, MAX_LEASE_MS,
    MAX_RECORD_BYTES, MAX_TERM, MIN_LEASE_MS, Reading, Remains, Stamp,
};
use crate::planted::planted;
use crate::protocol::{Next, Protocol};
use crate::request::{Body, Request, Response};
use crate::sigv4::{Credentials, RESERVED};
use crate::store::s3::{self, S3, S3Config, Target};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Version, heard, is_probe,
};
use crate::text::quoted;

/// How many pages of a listing are read before it is given up.
const MAX_PAGES: u32 = 16;

/// With more epochs than this, a claim cleans as well.
const MANY_EPOCHS: u32 = 16;

/// How often a read looks again because the newest epoch was gone when it was asked for.
const MAX_LOOKS: u32 = 3;

/// How many creations, and how many bodies of its own, an instance remembers; what it has forgotten is renewed by the
/// next number.
const MAX_MADE: usize = 32;

/// How many writes pass before cleaning is tried again that was not answered.
const CLEANING_PAUSE: u32 = 16;

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

/// One operation on its way.
#[derive(Debug)]
pub struct Exchange {
    goal: Goal,
    stage: Stage,
    inner: s3::Exchange,
    listing: Listing,
    pages: u32,
    token: String,
    looks: u32,
    /// What the answers to a listing say about time.
    listed: Facts,
}

#[derive(Debug)]
enum Goal {
    Read {
        unless: Option<Version>,
    },
    Write(Write),
    /// All epochs of a probe go.
    Delete,
    /// An operation that cannot be sent.
    Unfit(FaultKind, &'static str),
}

#[derive(Debug)]
struct Write {
    epoch: Epoch,
    /// Whether its creator overwrites the epoch, on no condition.
    overwrites: bool,
    body: Vec<u8>,
    made: Option<Made>,
    sequence: u64,
    etag: Option<Version>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    List,
    Get(Epoch),
    /// The same number under the other name, after the one with a dash was read.
    GetTwin(Epoch, Version, Box<Reading>, Facts),
    Put,
    /// The listing that confirms a write.
    Confirm,
    /// Deletes an old epoch; what the operation has come to is known.
    Clean(Answer),
    /// Deletes an epoch of a probe, and then the next.
    Delete(Epoch),
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
        let operation = Operation::Write { body: write.body.clone(), condition };
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
    fn plan(&self, body: &[u8], condition: &Condition) -> Goal {
        let lease = match lease::read(body) {
            Reading::Lease(lease) => Some(lease),
            _ => None,
        };
        let made = |epoch: Epoch| {
            let lease = lease.as_ref()?;
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
        let body = match &lease {
            Some(lease) => self.written(lease),
            None => body.to_vec(),
        };
        let sequence = lease.as_ref().map_or(0, |lease| lease.sequence);
        Goal::Write(Write { epoch, overwrites, body, made: made(epoch), sequence, etag: None })
    }

    /// A record as its epoch's body.
    fn written(&self, lease: &Lease) -> Vec<u8> {
        let lock = Lock { validity_ms: lease.lease_ms, expired: lease.released() };
        self.format.write_with(lease, &Object::of(&lock)).into_bytes()
    }

    fn judge(&self, epoch: Epoch, body: &[u8], modified_ms: u64) -> Reading {
        // Nothing can follow it, whatever it says.
        if epoch.number >= LAST {
            return Reading::Closed(Closed::TermTooHigh);
        }
        let number = epoch.number;
        match read_body(self.format, epoch, body) {
            Reading::Lease(mut lease) => {
                lease.term = match lease.term {
                    Some(term) => Some(term.max(number)),
                    // The election counts the storage time of the last change, unless that is no time of ours.
                    None => Some(number).filter(|number| *number > modified_ms),
                };
                Reading::Lease(lease)
            }
            Reading::Unreadable(flaw, told) => {
                Reading::Unreadable(flaw, Remains { term: told.term.max(Some(number)), ..told })
            }
            closed => closed,
        }
    }
}

/// What a record says to those who know these two fields alone.
#[derive(Serialize)]
struct Lock {
    #[serde(skip_serializing_if = "Option::is_none")]
    validity_ms: Option<u64>,
    expired: bool,
}

const VALIDITY: &str = "validity_ms";
const EXPIRED: &str = "expired";

const USED_UP: &str = "no epoch can follow number 9999999999: stop all members, delete the epochs, wait for the longest \
                       lease, and start them again";

const NOT_LISTED: &str = ": a listing that came through something in between, or names another Last-Modified, does not \
                          show what was written; it is read again";

const RELAYED: &str = ": the answers have Age or Via, so that they may be older than their requests, and nobody succeeds \
                       a leader that dies by them; let nothing stand between here and the store";

const OLDER: &str = ": the listing names a later Last-Modified or none, so that the object may be older than its request, \
                     and nobody succeeds a leader that dies by it; let no cache stand between here and the store";

/// Reads a body: a record of `format`, or one that says `validity_ms` and `expired` alone.
fn read_body(format: Format, epoch: Epoch, body: &[u8]) -> Reading {
    match format.read(body) {
        Reading::Lease(mut lease) => {
            let expired = take(&mut lease.extra, EXPIRED).map(|json| json::flag(&json));
            let validity = take(&mut lease.extra, VALIDITY).map(|json| validity_ms(&json));
            if lease.session.is_none() {
                // Whoever knows no sessions says by these two what it means.
                lease.lease_ms = lease.lease_ms.max(validity.flatten());
                let told =
                    Remains { lease_ms: remaining_ms(lease.lease_ms), ..Remains::of(&lease) };
                match (expired, validity) {
                    (Some(None), _) => return Reading::Unreadable(Flaw::Foreign, told),
                    (_, Some(None)) => return Reading::Unreadable(Flaw::Absurd, told),
                    (Some(Some(true)), _) => lease.last_updated = Stamp::Released,
                    _ => {}
                }
            }
            Reading::Lease(lease)
        }
        Reading::Unreadable(flaw, told) => match Object::read(body) {
            Some(fields) if flaw == Flaw::Foreign && foreign(&fields) => {
                read_foreign(epoch, fields)
            }
            fields => {
                let validity = fields.and_then(|fields| validity_ms(fields.get(VALIDITY)?));
                let lease_ms = remaining_ms(validity);
                Reading::Unreadable(flaw, told.and(Remains { term: None, lease_ms }))
            }
        },
        other => other,
    }
}

/// What two records of one number say together: nobody's lease ends before both have.
fn of_twins(one: &Reading, other: &Reading) -> Reading {
    let told = |reading: &Reading| match reading {
        Reading::Lease(lease) => {
            Remains { lease_ms: remaining_ms(lease.lease_ms), ..Remains::of(lease) }
        }
        Reading::Unreadable(_, told) => *told,
        Reading::Closed(_) => Remains::NONE,
    };
    match (one, other) {
        (Reading::Closed(why), _) | (_, Reading::Closed(why)) => Reading::Closed(*why),
        (Reading::Unreadable(flaw, _), _) | (_, Reading::Unreadable(flaw, _)) => {
            Reading::Unreadable(*flaw, told(one).and(told(other)))
        }
        (Reading::Lease(one), Reading::Lease(other)) => {
            let (held, less) = if one.released() { (other, one) } else { (one, other) };
            let living = !less.released();
            if living && held.lease_ms.is_some() != less.lease_ms.is_some() {
                // The one that names none lasts for as long as a lease of the reader's.
                let told = Remains::of(held).and(Remains::of(less));
                let lease_ms = remaining_ms(told.lease_ms);
                return Reading::Unreadable(Flaw::Foreign, Remains { lease_ms, ..told });
            }
            let mut both = held.clone();
            both.session = None;
            both.parked &= !living || less.parked && less.leader_id == held.leader_id;
            both.term = held.term.max(less.term);
            both.lease_ms = held.lease_ms.max(less.lease_ms.filter(|_| living));
            if less.slot > held.slot {
                (both.slot, both.slot_done) = (less.slot, less.slot_done);
                both.slot_result.clone_from(&less.slot_result);
                (both.slot_took_ms, both.slot_failures) = (less.slot_took_ms, less.slot_failures);
                both.slot_term = less.slot_term;
            }
            Reading::Lease(both)
        }
    }
}

/// Whether a body has at least one of the two fields and none that only a record of ours, damaged, would have.
fn foreign(fields: &Object) -> bool {
    let given = |name: &&str| fields.get(name).is_some_and(|json| !json::is_null(json));
    let ours = ["leaderID", "holderIdentity", "session", "leaseMs"];
    !ours.iter().any(given) && [VALIDITY, EXPIRED].iter().any(given)
}

/// Source of the format: <https://www.morling.dev/blog/leader-election-with-s3-conditional-writes/>.
fn read_foreign(epoch: Epoch, mut fields: Object) -> Reading {
    let validity = take(&mut fields, VALIDITY).map(|json| validity_ms(&json));
    let lease_ms = validity.flatten();
    let term = match take(&mut fields, "term") {
        None => None,
        Some(json) => match json::whole(&json) {
            Some(term) if term <= MAX_TERM => Some(term),
            None if !json::is_at_least(&json, MAX_TERM) => {
                return Reading::Unreadable(
                    Flaw::Foreign,
                    Remains { term: None, lease_ms: remaining_ms(lease_ms) },
                );
            }
            _ => return Reading::Closed(Closed::TermTooHigh),
        },
    };
    if validity == Some(None) {
        return Reading::Unreadable(Flaw::Absurd, Remains { term, lease_ms });
    }
    let released = match take(&mut fields, EXPIRED).map(|json| json::flag(&json)) {
        Some(None) => {
            return Reading::Unreadable(
                Flaw::Foreign,
                Remains { term, lease_ms: remaining_ms(lease_ms) },
            );
        }
        given => given.flatten().unwrap_or(false),
    };
    Reading::Lease(Box::new(Lease {
        leader_id: epoch.name(),
        leader_addr: String::new(),
        last_updated: if released { Stamp::Released } else { Stamp::At(0) },
        term,
        session: None,
        sequence: 0,
        lease_ms,
        acquired: None,
        transitions: 0,
        parked: false,
        park_at: None,
        slot: None,
        slot_done: None,
        slot_result: None,
        slot_took_ms: None,
        slot_failures: None,
        slot_term: None,
        history: History::default(),
        extra: fields,
    }))
}

/// How long somebody else's lock is valid: waited out in full, also where no lease of ours is as long.
fn validity_ms(json: &str) -> Option<u64> {
    let told_ms = json::rounded_up(json).filter(|ms| *ms >= MIN_LEASE_MS);
    told_ms.map(|ms| ms.min(MAX_FOREIGN_LEASE_MS))
}

/// The same where the body cannot be used, of which an hour at most is waited out (S7).
fn remaining_ms(validity: Option<u64>) -> Option<u64> {
    validity.map(|ms| ms.min(MAX_LEASE_MS))
}

/// A field's JSON; `null` counts as not there. It is written anew, so none of its name stays, whatever its case.
fn take(fields: &mut Object, name: &str) -> Option<String> {
    let json = fields.remove(name).filter(|json| !json::is_null(json));
    let named = |other: &&str| other.eq_ignore_ascii_case(name);
    let others: Vec<String> =
        fields.iter().map(|(other, _)| other).filter(named).map(ToOwned::to_owned).collect();
    for other in others {
        fields.remove(&other);
    }
    json
}

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
            Operation::Write { body, condition } => (self.plan(&body, &condition), Stage::Put),
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

impl Write {
    /// Whether a listing was made after this write: it names its ETag.
    fn is_shown(&self, listing: &Listing) -> bool {
        self.etag.as_ref().is_some_and(|etag| listing.shows(&etag.0))
    }
}

impl Exchange {
    /// A page of a listing came.
    fn on_page(&mut self, epochs: &Epochs, response: Response, wall_ms: u64) -> Next {
        let facts = heard::facts(&response);
        self.listed = Facts {
            date_ms: facts.date_ms,
            last_modified_ms: None,
            relayed: facts.relayed || self.listed.relayed,
            cached: facts.cached || self.listed.cached,
        };
        if response.status().as_u16() != 200 {
            return match self.inner.answer(&epochs.s3, response, wall_ms) {
                Next::Done(answer) => self.not_listed(epochs, answer),
                next => next,
            };
        }
        let page = match response.body().truncated {
            true => Err("a page of the listing is longer than what is read of it"),
            false => listing::read_page(&response.body().bytes, &epochs.folder, &mut self.listing),
        };
        let (kind, why) = match page {
            Ok(None) => return self.on_listing(epochs),
            Ok(Some(token)) if token == self.token => {
                (FaultKind::Nonsense, "the listing goes on where it was")
            }
            Ok(Some(_)) if self.pages + 1 >= MAX_PAGES => (FaultKind::Misconfigured, TOO_MANY),
            Ok(Some(token)) => {
                self.pages += 1;
                self.inner = epochs.list(&token);
                self.token = token;
                return Next::Again;
            }
            Err(why) => (FaultKind::Nonsense, why),
        };
        let prefix = quoted(&[&*epochs.folder, BEGINNING].concat());
        let fault = epochs.fault(kind, ["LIST ", &prefix, &format!(": {why}")]);
        let answer = Answer { outcome: Outcome::Rejected(fault), facts: self.listed };
        self.not_listed(epochs, answer)
    }

    /// The listing failed; a write that left before may have landed.
    fn not_listed(&self, epochs: &Epochs, answer: Answer) -> Next {
        let Answer { outcome, facts } = answer;
        let nonsense = || {
            let pieces = ["LIST: an S3 store answers otherwise; check the endpoint", "", ""];
            epochs.fault(FaultKind::Nonsense, pieces)
        };
        let outcome = match outcome {
            Outcome::Unknown { .. } => outcome,
            outcome => {
                let cause = match outcome {
                    Outcome::Rejected(fault) => fault,
                    _ => nonsense(),
                };
                match self.stage {
                    Stage::Confirm => Outcome::Unknown { retry_after_ms: None, cause },
                    _ => Outcome::Rejected(cause),
                }
            }
        };
        Next::Done(Answer { outcome, facts })
    }

    /// The listing is whole.
    fn on_listing(&mut self, epochs: &Epochs) -> Next {
        if self.stage == Stage::Confirm {
            return self.on_confirmation(epochs);
        }
        match self.listing.newest {
            None => Next::Done(Answer { outcome: Outcome::Missing, facts: self.listed }),
            Some(_) if matches!(self.goal, Goal::Delete) => {
                self.delete(epochs, self.listing.oldest)
            }
            Some((newest, _)) => {
                self.stage = Stage::Get(newest);
                self.inner = epochs.get(newest);
                Next::Again
            }
        }
    }

    /// Deletes this epoch of a probe, no more of them than were listed.
    fn delete(&mut self, epochs: &Epochs, epoch: Option<Epoch>) -> Next {
        let due = self.looks < self.listing.count;
        self.looks += 1;
        match epoch.filter(|_| due) {
            Some(epoch) => {
                self.inner = epochs.delete(epoch);
                self.stage = Stage::Delete(epoch);
                Next::Again
            }
            None => Next::Done(Answer { outcome: Outcome::Missing, facts: self.listed }),
        }
    }

    fn begin_listing(&mut self, epochs: &Epochs, stage: Stage) -> Next {
        self.stage = stage;
        self.listing = Listing::default();
        self.listed = Facts::default();
        self.pages = 0;
        self.token.clear();
        self.inner = epochs.list("");
        Next::Again
    }

    /// The newest epoch's body came, or its error.
    fn on_body(&mut self, epochs: &Epochs, epoch: Epoch, response: Response, wall_ms: u64) -> Next {
        let body = response.body().clone();
        let Answer { outcome, facts } = match self.inner.answer(&epochs.s3, response, wall_ms) {
            Next::Done(answer) => answer,
            next => return next,
        };
        let Goal::Read { unless } = &self.goal else { unreachable!("only a read asks for a body") };
        let listed = &self.listing;
        let modified_s = facts.last_modified_ms.map(|modified_ms| modified_ms / 1_000);
        let listed_s = match self.stage {
            Stage::GetTwin(..) => listed.second_s,
            _ => listed.newest.and_then(|(_, modified_s)| modified_s),
        };
        let relayed = facts.relayed || self.listed.relayed;
        let same = listed_s.is_some() && listed_s == modified_s;
        let outcome = match (outcome, facts.last_modified_ms) {
            (Outcome::Found { version: etag, .. }, Some(modified_ms)) => {
                // Whether the listing is of this very object: a cached one may be of an epoch that was cleaned since.
                let agrees = same && (!relayed || listed.shows(&etag.0));
                epochs.doubt(epoch, relayed, listed_s > modified_s || listed_s.is_none());
                let version = version_of(epoch, modified_ms / 1_000, &etag);
                if unless.as_ref() == Some(&version) {
                    Outcome::Unchanged
                } else {
                    self.found(epochs, epoch, version, &body, modified_ms, agrees)
                }
            }
            (Outcome::Found { .. }, None) => {
                let why = " has no Last-Modified, without which nobody can tell whether it was written again; something \
                           between here and the store may strip it";
                let name = quoted(&epoch.name());
                Outcome::Rejected(epochs.fault(FaultKind::Nonsense, ["GET ", &name, why]))
            }
            // Cleaned or deleted since it was listed.
            (Outcome::Missing, _) => {
                self.looks += 1;
                if self.looks < MAX_LOOKS {
                    return self.begin_listing(epochs, Stage::List);
                }
                let why = " is listed and cannot be read; the listings of this store may lag behind its writes";
                let name = quoted(&epoch.name());
                let cause = epochs.fault(FaultKind::Unavailable, ["GET ", &name, why]);
                Outcome::Unknown { retry_after_ms: None, cause }
            }
            (outcome, _) => outcome,
        };
        // A `Date` of before the GET left, so that an age proven by it was complete by then.
        let date_ms = if planted!(EpochDateOfBody) { facts.date_ms } else { self.listed.date_ms };
        let cached = facts.cached || self.listed.cached;
        let last_modified_ms = facts.last_modified_ms;
        // Where the two do not name one time, one of them may be older than its request, whatever its headers say.
        let facts = Facts { date_ms, last_modified_ms, relayed: relayed || !same, cached };
        self.with_twin(epochs, Answer { outcome, facts })
    }

    /// Where two members that did not see each other made the newest number under both names, the record is what both say:
    /// either may have a leader.
    fn with_twin(&mut self, epochs: &Epochs, answer: Answer) -> Next {
        let second = self.listing.second.filter(|_| self.listing.twin());
        let (Some(second), Answer { outcome: Outcome::Found { version, reading }, facts }) =
            (second, &answer)
        else {
            return Next::Done(answer);
        };
        let Stage::GetTwin(_, first, other, first_facts) = &self.stage else {
            let (version, reading) = (version.clone(), Box::new(reading.clone()));
            self.stage = Stage::GetTwin(second, version, reading, *facts);
            self.inner = epochs.get(second);
            return Next::Again;
        };
        let state = version.0.split_once(' ').map_or("", |(_, state)| state);
        let both = Version(format!("{} {state}", first.0));
        let facts = Facts {
            date_ms: facts.date_ms,
            last_modified_ms: facts.last_modified_ms.max(first_facts.last_modified_ms),
            relayed: facts.relayed || first_facts.relayed,
            cached: facts.cached || first_facts.cached,
        };
        let Goal::Read { unless } = &self.goal else { unreachable!("only a read asks for a body") };
        let outcome = match unless {
            Some(unless) if *unless == both => Outcome::Unchanged,
            _ => Outcome::Found { version: both, reading: of_twins(other, reading) },
        };
        Next::Done(Answer { outcome, facts })
    }

    /// What the newest epoch's body says.
    fn found(
        &self,
        epochs: &Epochs,
        epoch: Epoch,
        version: Version,
        body: &Body,
        modified_ms: u64,
        agrees: bool,
    ) -> Outcome {
        if body.truncated || body.bytes.len() > MAX_RECORD_BYTES {
            let told = Remains { term: Some(epoch.number), lease_ms: None };
            return Outcome::Found { version, reading: Reading::Unreadable(Flaw::TooLarge, told) };
        }
        let mut reading = epochs.judge(epoch, &body.bytes, modified_ms);
        if let Reading::Lease(lease) = &mut reading {
            if self.listing.twin() {
                // Its twin may have been confirmed before, so that nobody may take it for a claim that won.
                lease.session = None;
            }
            if let (Some(session), Some(term)) = (lease.session.clone(), lease.term) {
                let made = Made { epoch, session, term };
                let own = epochs.is_own(&made, lease.sequence);
                if own && !agrees {
                    let name = quoted(&epoch.name());
                    let cause = epochs.fault(FaultKind::Unavailable, ["GET ", &name, NOT_LISTED]);
                    return Outcome::Unknown { retry_after_ms: None, cause };
                }
                if own {
                    remember(&mut epochs.held.borrow_mut(), (made, version.clone()));
                }
            }
        }
        Outcome::Found { version, reading }
    }

    /// The write was answered.
    fn on_put(&mut self, epochs: &Epochs, response: Response, wall_ms: u64) -> Next {
        let Answer { outcome, facts } = match self.inner.answer(&epochs.s3, response, wall_ms) {
            Next::Done(answer) => answer,
            next => return next,
        };
        match (&mut self.goal, outcome) {
            (Goal::Write(write), Outcome::Written { version }) => {
                write.etag = version;
                self.begin_listing(epochs, Stage::Confirm)
            }
            (_, outcome) => Next::Done(Answer { outcome, facts }),
        }
    }

    /// The deletion of an old epoch was answered; whatever it says, the write before it has come to what it has.
    fn on_cleaned(
        &mut self,
        epochs: &Epochs,
        answer: Answer,
        response: Response,
        wall_ms: u64,
    ) -> Next {
        let fault = match self.inner.answer(&epochs.s3, response, wall_ms) {
            Next::Done(Answer {
                outcome: Outcome::Rejected(fault) | Outcome::Unknown { cause: fault, .. },
                ..
            }) => Some(fault),
            Next::Done(_) => None,
            next => return next,
        };
        if fault.is_none() {
            epochs.cleaning_pause.set(0);
        }
        epochs.uncleaned.replace(fault);
        Next::Done(answer)
    }

    /// A listing that left after the write has come: the epoch must be the newest.
    fn on_confirmation(&mut self, epochs: &Epochs) -> Next {
        let Goal::Write(write) = &self.goal else { unreachable!("only a write is confirmed") };
        let outcome = match self.listing.newest {
            // Somebody has gone on from a later number, or from a name of the other kind.
            Some((newest, _)) if newest.number > write.epoch.number => Outcome::Refused,
            Some(_) if self.listed.relayed && !write.is_shown(&self.listing) => {
                let name = quoted(&write.epoch.name());
                let cause = epochs.fault(FaultKind::Unavailable, ["LIST: ", &name, NOT_LISTED]);
                Outcome::Unknown { retry_after_ms: None, cause }
            }
            Some((newest, modified_s)) if newest == write.epoch => {
                let version = write.etag.as_ref().zip(modified_s);
                let version =
                    version.map(|(etag, modified_s)| version_of(newest, modified_s, etag));
                if let (Some(made), Some(version), false) =
                    (&write.made, &version, self.listing.twin())
                {
                    remember(&mut epochs.held.borrow_mut(), (made.clone(), version.clone()));
                }
                if self.listing.twin() { Outcome::Refused } else { Outcome::Written { version } }
            }
            Some((newest, _)) if newest.number == write.epoch.number => Outcome::Refused,
            _ => {
                let why = " was written and is not listed; the listings of this store may lag behind its writes, and \
                           no leader can be elected then";
                let name = quoted(&write.epoch.name());
                let cause = epochs.fault(FaultKind::Unavailable, ["LIST: ", &name, why]);
                Outcome::Unknown { retry_after_ms: None, cause }
            }
        };
        // A claim is not delayed by it, unless leaders come and go without a renewal, whose epochs nobody would clean.
        let due = write.overwrites || self.listing.count > MANY_EPOCHS;
        let cleans = due && matches!(outcome, Outcome::Written { .. });
        let answer = Answer { outcome, facts: self.listed };
        let spare = self.listing.spare().filter(|_| cleans);
        let pause = epochs.cleaning_pause.get();
        epochs.cleaning_pause.set(pause.saturating_sub(1));
        match spare {
            Some(spare) if pause == 0 => {
                // Until it is answered: a store that hangs on it must not cost a renewal each time.
                epochs.cleaning_pause.set(CLEANING_PAUSE);
                self.inner = epochs.delete(spare);
                self.stage = Stage::Clean(answer);
                Next::Again
            }
            _ => Next::Done(answer),
        }
    }
}

const TOO_MANY: &str = "more than 16 pages of keys begin like this; delete the old epochs, but never the newest two, \
                        and what else begins so";
