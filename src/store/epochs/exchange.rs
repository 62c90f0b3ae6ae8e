//! One operation over the epochs: what each answer means, and which request follows it.

use super::listing::{self, BEGINNING, Epoch, Listing};
use super::{Epochs, Made, record, remember, version_of};
use crate::lease::{Flaw, MAX_RECORD_BYTES, Reading, Remains};
use crate::planted::planted;
use crate::protocol::Next;
use crate::request::{Body, Response};
use crate::store::s3;
use crate::store::{Answer, Facts, FaultKind, Outcome, Version, heard};
use crate::text::quoted;

/// How many pages of a listing are read before it is given up.
const MAX_PAGES: u32 = 16;

/// With more epochs than this, a claim cleans as well.
const MANY_EPOCHS: u32 = 16;

/// How often a read looks again because the newest epoch was gone when it was asked for.
const MAX_LOOKS: u32 = 3;

/// How many writes pass before cleaning is tried again that was not answered.
const CLEANING_PAUSE: u32 = 16;

/// One operation on its way.
#[derive(Debug)]
pub struct Exchange {
    pub(super) goal: Goal,
    pub(super) stage: Stage,
    pub(super) inner: s3::Exchange,
    pub(super) listing: Listing,
    pub(super) pages: u32,
    pub(super) token: String,
    pub(super) looks: u32,
    /// What the answers to a listing say about time.
    pub(super) listed: Facts,
}

#[derive(Debug)]
pub(super) enum Goal {
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
pub(super) struct Write {
    pub(super) epoch: Epoch,
    /// Whether its creator overwrites the epoch, on no condition.
    pub(super) overwrites: bool,
    pub(super) body: Vec<u8>,
    pub(super) made: Option<Made>,
    pub(super) sequence: u64,
    /// For how long an epoch stays that has had its time.
    pub(super) rest_ms: u64,
    pub(super) etag: Option<Version>,
    /// Whether something on the way answered it.
    pub(super) relayed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
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

impl Write {
    /// Whether a listing was made after this write: it names its ETag.
    fn is_shown(&self, listing: &Listing) -> bool {
        self.etag.as_ref().is_some_and(|etag| listing.shows(&etag.0))
    }
}

impl Exchange {
    /// A page of a listing came.
    pub(super) fn on_page(&mut self, epochs: &Epochs, response: Response, wall_ms: u64) -> Next {
        let facts = heard::facts(&response);
        self.listed = Facts {
            date_ms: facts.date_ms,
            last_modified_ms: None,
            relayed: facts.relayed || self.listed.relayed,
            cached: facts.cached || self.listed.cached,
            doubtful: false,
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
            Ok(None) => {
                self.inner.has_answered(&epochs.s3);
                return self.on_listing(epochs);
            }
            Ok(Some(token)) if token == self.token => {
                (FaultKind::Nonsense, "the listing goes on where it was")
            }
            Ok(Some(_)) if self.pages + 1 >= MAX_PAGES => (FaultKind::Misconfigured, TOO_MANY),
            Ok(Some(token)) => {
                self.inner.has_answered(&epochs.s3);
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
                self.delete(epochs, self.listing.oldest.map(|(oldest, _)| oldest))
            }
            Some((newest, _)) => {
                self.stage = Stage::Get(newest);
                self.inner = epochs.get(newest);
                Next::Again
            }
        }
    }

    /// Deletes this epoch of a probe, no more of them than were listed.
    pub(super) fn delete(&mut self, epochs: &Epochs, epoch: Option<Epoch>) -> Next {
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
    pub(super) fn on_body(
        &mut self,
        epochs: &Epochs,
        epoch: Epoch,
        response: Response,
        wall_ms: u64,
    ) -> Next {
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
                // Whether the listing is of this very object: the number may have been cleaned and created anew since.
                let shown = listed.shows(&etag.0) || (listed.etag.is_none() && !relayed);
                let agrees = same && shown;
                epochs.doubt(epoch, relayed, listed_s > modified_s || listed_s.is_none());
                let version = version_of(epoch, modified_ms / 1_000, &etag);
                // Of two names, the other one may have been made since.
                if unless.as_ref() == Some(&version) && !listed.twin() {
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
        let relayed = relayed || !same;
        let facts = Facts { date_ms, last_modified_ms, relayed, cached, doubtful: false };
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
            doubtful: false,
        };
        let Goal::Read { unless } = &self.goal else { unreachable!("only a read asks for a body") };
        let outcome = match unless {
            Some(unless) if *unless == both => Outcome::Unchanged,
            _ => Outcome::Found { version: both, reading: record::of_twins(other, reading) },
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
        let mut reading = record::judge(epochs.format, epoch, &body.bytes, modified_ms);
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
    pub(super) fn on_put(&mut self, epochs: &Epochs, response: Response, wall_ms: u64) -> Next {
        let Answer { outcome, facts } = match self.inner.answer(&epochs.s3, response, wall_ms) {
            Next::Done(answer) => answer,
            next => return next,
        };
        match (&mut self.goal, outcome) {
            (Goal::Write(write), Outcome::Written { version }) => {
                write.etag = version;
                write.relayed = facts.relayed;
                self.begin_listing(epochs, Stage::Confirm)
            }
            (_, outcome) => Next::Done(Answer { outcome, facts }),
        }
    }

    /// The deletion of an old epoch was answered; whatever it says, the write before it has come to what it has.
    pub(super) fn on_cleaned(
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
                if self.listing.twin() {
                    Outcome::Refused
                } else {
                    if !self.listed.relayed && !write.relayed {
                        // The way is clear now: what an earlier read has shown says nothing of a leader's term.
                        epochs.doubted.replace(None);
                    }
                    Outcome::Written { version }
                }
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
        let spare = self.listing.spare(write.rest_ms).filter(|_| cleans);
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

const NOT_LISTED: &str = ": a listing that came through something in between, or names another ETag or Last-Modified, does \
                          not show what was written; it is read again";
