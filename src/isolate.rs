//! What one isolate of a Worker knows from one event to the next, which is no more than it takes to answer
//! `GET /health/leadership`: no authority ever comes from here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

use futures::future::{Either, select};
use serde_json::json;

use crate::config::Config;
use crate::driver::{Handle, Host};
use crate::json::Object;
use crate::lease::{Lease, Reading, Stamp};
use crate::metrics::Sample;
use crate::peer::{self, HealthAnswer, Question};
use crate::status;
use crate::store::{Answer, Facts, Operation, Outcome, Store};

/// How long a failed read answers questions from peers, in milliseconds: the store may be well again soon.
const KEEP_FAILURE_MS: u64 = 1_000;

/// What is said of a group whose record nobody has read yet.
const NO_ANSWER: &str = "the store has not answered yet";

/// What is said of a group whose record nobody may read now.
const TOO_MANY: &str = "too many groups were asked for within a moment";

/// How many records are kept for questions: as many as one process has groups, so that each of them is read once an interval.
pub const MOST_SEEN: usize = 10_000;

/// From how many on those are forgotten that nobody has asked for in a while.
const FEW_SEEN: usize = 64;

/// How many intervals that is: an old record serves while the next one is on its way.
const LINGERS: u64 = 10;

/// The electors that run in this isolate and the records as they were read last.
pub struct Isolate<H> {
    /// Each with the clock that it is driven by.
    running: RefCell<Vec<(Handle, H)>>,
    /// The session that began last in each group, by its path.
    newest: RefCell<BTreeMap<String, String>>,
    /// The session that ended last in each group, by its path.
    ended: RefCell<BTreeMap<String, String>>,
    seen: Rc<RefCell<Table>>,
    /// What tells apart stores that describe themselves alike.
    place: u32,
}

/// The records that were asked for.
#[derive(Default)]
struct Table {
    /// By place, store and group.
    records: BTreeMap<String, Rc<Seen>>,
    /// At how many of them old ones are forgotten next.
    clears_at: usize,
}

/// A record as this isolate read it last.
#[derive(Default)]
struct Seen {
    /// When it was asked for, and what came.
    read: RefCell<Option<(u64, Answer)>>,
    /// When a read of the record left that has not come back: the questions are public, and one read is enough.
    asked_ms: Cell<Option<u64>>,
    /// The `frequentInterval` and the `requestTimeout` of who asked last, in milliseconds.
    interval_ms: Cell<u64>,
    timeout_ms: Cell<u64>,
}

impl Seen {
    /// Whether a read has not come back that still may.
    fn is_asked(&self, now_ms: u64) -> bool {
        self.asked_ms
            .get()
            .is_some_and(|asked_ms| left_ms(asked_ms, self.timeout_ms.get(), now_ms) > 0)
    }

    /// For how long what was read answers questions.
    fn kept_ms(&self, answer: &Answer) -> u64 {
        match answer.outcome {
            Outcome::Found { .. } | Outcome::Missing => self.interval_ms.get(),
            // Public questions wait no longer for a busy store than for one that is well.
            Outcome::Unknown { retry_after_ms: Some(asked_ms), .. } => {
                asked_ms.min(self.interval_ms.get()).max(KEEP_FAILURE_MS)
            }
            _ => KEEP_FAILURE_MS,
        }
    }

    /// For how much longer it is not to be forgotten, so that the record is not read again within `intervals`; 0 if it may be.
    fn left_ms(&self, intervals: u64, now_ms: u64) -> u64 {
        let asked = self.asked_ms.get().map(|at_ms| left_ms(at_ms, self.timeout_ms.get(), now_ms));
        let read = self.read.borrow();
        let kept = read.as_ref().map(|(at_ms, answer)| {
            left_ms(*at_ms, self.kept_ms(answer).saturating_mul(intervals), now_ms)
        });
        asked.max(kept).unwrap_or_default()
    }
}

/// How much is left of a time; nothing once the clock was put back behind its beginning.
fn left_ms(since_ms: u64, length_ms: u64, now_ms: u64) -> u64 {
    now_ms.checked_sub(since_ms).map_or(0, |age_ms| length_ms.saturating_sub(age_ms))
}

impl Table {
    /// The record of this key, to be read or known already. Where there is room for no more: after how many milliseconds there is.
    fn of(&mut self, key: String, now_ms: u64) -> Result<Rc<Seen>, u64> {
        if let Some(seen) = self.records.get(&key) {
            return Ok(Rc::clone(seen));
        }
        if self.records.len() >= self.clears_at.clamp(FEW_SEEN, MOST_SEEN) {
            self.records.retain(|_, seen| seen.left_ms(LINGERS, now_ms) > 0);
            self.clears_at = self.records.len() * 2;
        }
        if self.records.len() >= MOST_SEEN {
            self.records.retain(|_, seen| seen.left_ms(1, now_ms) > 0);
        }
        if self.records.len() >= MOST_SEEN {
            let left = self.records.values().map(|seen| seen.left_ms(1, now_ms));
            return Err(left.min().unwrap_or_default());
        }
        Ok(Rc::clone(self.records.entry(key).or_default()))
    }
}

/// Why a record is not known.
enum Unread {
    /// The store has not answered yet.
    NoAnswer,
    /// There is room for another record after so many milliseconds.
    NoRoom(u64),
}

/// A read that is under way. The runtime may drop the event that has begun it.
struct Asking<'a>(&'a Cell<Option<u64>>);

impl<'a> Asking<'a> {
    fn begin(asked_ms: &'a Cell<Option<u64>>, now_ms: u64) -> Self {
        asked_ms.set(Some(now_ms));
        Self(asked_ms)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

impl<H> Default for Isolate<H> {
    fn default() -> Self {
        let (running, newest, ended) = Default::default();
        Self { running, newest, ended, seen: Rc::default(), place: 0 }
    }
}

impl<H> Isolate<H> {
    /// Another one that shares the room for records, for stores that describe themselves as those of other places do.
    pub fn at(&self, place: u32) -> Self {
        let (running, newest, ended) = Default::default();
        Self { running, newest, ended, seen: Rc::clone(&self.seen), place }
    }
}

/// An elector that runs in an isolate until this is dropped.
#[must_use]
pub struct Running<H> {
    isolate: Rc<Isolate<H>>,
    path: String,
    session: String,
}

impl<H> Drop for Running<H> {
    fn drop(&mut self) {
        let mut running = self.isolate.running.borrow_mut();
        running.retain(|(handle, _)| session_of(handle) != self.session);
        let (path, session) = (std::mem::take(&mut self.path), std::mem::take(&mut self.session));
        self.isolate.ended.borrow_mut().insert(path, session);
    }
}

fn path_of(handle: &Handle) -> String {
    handle.with(|election| election.config().lockfile_path.clone())
}

fn session_of(handle: &Handle) -> String {
    handle.with(|election| election.session().to_owned())
}

impl<H: Host + Clone> Isolate<H> {
    /// An elector begins to run in this isolate.
    pub fn runs(self: &Rc<Self>, elector: &Handle, host: &H) -> Running<H> {
        self.running.borrow_mut().push((elector.clone(), host.clone()));
        let (path, session) = (path_of(elector), session_of(elector));
        self.newest.borrow_mut().insert(path.clone(), session.clone());
        Running { isolate: Rc::clone(self), path, session }
    }

    /// The answer to `GET /health/leadership` for the group of `config`: of an elector that runs here and leads, or of
    /// the store's record, which is read at most once per `frequentInterval`; 503 while a read is under way that another
    /// question has begun, and where [`MOST_SEEN`] others were asked for within theirs. `host` is the asking event's own; `bound`
    /// says that the store is a binding of the platform whose clock `host` has too, and `query` is that of the question;
    /// `ended` are sessions that were here and have no authority any more. No question is held: what one event waits for,
    /// another one can't wake.
    pub async fn health<S: Store>(
        &self,
        config: &Config,
        store: &S,
        host: &H,
        bound: bool,
        query: &str,
        ended: &[String],
    ) -> HealthAnswer {
        let (question, proven) = Question::read(query, &config.peers.secrets);
        let answer = match self.answer_from_here(config, proven) {
            Some(answer) => answer,
            None => {
                let read = self.read(config, store, host).await;
                // One that runs here may have been elected meanwhile.
                self.answer_from_here(config, proven).unwrap_or_else(|| match read {
                    Ok((at_ms, answer)) => {
                        let times = Times { at_ms, now_ms: host.now().wall_ms, bound };
                        self.answer_from_record(config, &answer, &times, ended)
                    }
                    Err(Unread::NoAnswer) => later(NO_ANSWER, 0),
                    Err(Unread::NoRoom(ms)) => later(TOO_MANY, ms),
                })
            }
        };
        answer.to(&question, &config.peers.secrets)
    }

    /// The electors of the group that run here.
    fn here(&self, config: &Config) -> Vec<(Handle, H)> {
        let mut here: Vec<(Handle, H)> = self.running.borrow().clone();
        here.retain(|(elector, _)| path_of(elector) == config.lockfile_path);
        here
    }

    /// Of an elector that runs here and leads.
    fn answer_from_here(&self, config: &Config, proven: bool) -> Option<HealthAnswer> {
        self.here(config).iter().find_map(|(elector, clock)| {
            let now = clock.now();
            let answer = elector.with(|election| peer::answer(election, now, proven));
            (answer.status == 200).then_some(answer)
        })
    }

    fn answer_from_record(
        &self,
        config: &Config,
        answer: &Answer,
        times: &Times,
        ended: &[String],
    ) -> HealthAnswer {
        let mut sessions = ended.to_vec();
        sessions.extend(self.ended.borrow().get(&config.lockfile_path).cloned());
        sessions.extend(self.here(config).iter().map(|(elector, _)| session_of(elector)));
        match &answer.outcome {
            // A session of ours that is or was here and has no authority speaks for its own record.
            Outcome::Found { reading: Reading::Lease(lease), .. }
                if lease.session.as_ref().is_some_and(|session| sessions.contains(session)) =>
            {
                HealthAnswer::not_leading(None)
            }
            Outcome::Found { version, reading: Reading::Lease(lease) } => peer::answer_from_store(
                &config.lockfile_path,
                &config.server_id,
                version,
                lease,
                times.age_ms(config, answer.facts, lease),
                config.leader_timeout_ms,
            ),
            Outcome::Unknown { retry_after_ms, .. } => {
                let ms = retry_after_ms.unwrap_or_default();
                later(NO_ANSWER, ms.min(config.frequent_interval_ms))
            }
            _ => HealthAnswer::not_leading(None),
        }
    }

    /// The answer to `GET /status.json` for the group of `config`: of an elector that runs here, one that leads first, or of
    /// the store's record, read as often as for [`Isolate::health`].
    pub async fn status<S: Store>(&self, config: &Config, store: &S, host: &H) -> String {
        if let Some((elector, clock)) = self.running_for(config) {
            let (now, requests) = (clock.now(), elector.requests());
            return elector.with(|election| status::public(election, now, requests));
        }
        match self.read(config, store, host).await {
            Ok((_, answer)) => status::of_record(config, answer, host.now()),
            Err(Unread::NoAnswer) => status::of_nobody(&config.lockfile_path, NO_ANSWER),
            Err(Unread::NoRoom(_)) => status::of_nobody(&config.lockfile_path, TOO_MANY),
        }
    }

    /// The same as metrics. An isolate is one of many, so that nothing is told that it has counted itself; who leads, it
    /// tells as [`Isolate::health`] does.
    pub async fn metrics<S: Store>(
        &self,
        config: &Config,
        store: &S,
        host: &H,
        bound: bool,
    ) -> Sample {
        let leading = || {
            let found = self.running_for(config);
            let found = found.filter(|(elector, clock)| elector.authority(clock.now()).is_some());
            found.map(|(elector, _)| elector.with(|election| Sample::read(election, true)))
        };
        if let Some(sample) = leading() {
            return sample;
        }
        let read = self.read(config, store, host).await;
        if let Some(sample) = leading() {
            return sample;
        }
        let Ok((at_ms, answer)) = read else {
            return Sample::unusable(&config.lockfile_path);
        };
        let times = Times { at_ms, now_ms: host.now().wall_ms, bound };
        let leads = self.answer_from_record(config, &answer, &times, &[]).status == 200;
        Sample::read(&status::reader_of(config, answer, host.now()), leads)
    }

    /// An elector of the group that runs here: one that leads, or else the one that began last. An older one may be of an event
    /// that was ended from outside, which tells nobody.
    fn running_for(&self, config: &Config) -> Option<(Handle, H)> {
        let path = &config.lockfile_path;
        let here = self.here(config);
        let leads = |(elector, clock): &(Handle, H)| elector.authority(clock.now()).is_some();
        let newest = |(elector, _): &(Handle, H)| {
            self.newest.borrow().get(path) == Some(&session_of(elector))
        };
        let found = here.iter().position(leads).or_else(|| here.iter().position(newest))?;
        here.into_iter().nth(found)
    }

    /// The store's answer and when it was asked for.
    async fn read<S: Store>(
        &self,
        config: &Config,
        store: &S,
        host: &H,
    ) -> Result<(u64, Answer), Unread> {
        let now_ms = host.now().wall_ms;
        let key = format!("{} {} {}", self.place, store.describe(), config.lockfile_path);
        let seen = self.seen.borrow_mut().of(key, now_ms).map_err(Unread::NoRoom)?;
        seen.interval_ms.set(config.frequent_interval_ms);
        seen.timeout_ms.set(config.request_timeout_ms);
        let asking = seen.is_asked(now_ms);
        if let Some((at_ms, answer)) = &*seen.read.borrow() {
            // While the next one is on its way the last one serves a little longer; its age counts on.
            let kept_ms = seen.kept_ms(answer) + if asking { config.request_timeout_ms } else { 0 };
            if left_ms(*at_ms, kept_ms, now_ms) > 0 {
                return Ok((*at_ms, answer.clone()));
            }
        }
        // What another event has begun can't be waited for in this one.
        if asking {
            return Err(Unread::NoAnswer);
        }
        let _asking = Asking::begin(&seen.asked_ms, now_ms);
        let (read, late) = (
            pin!(store.perform(Operation::Read { unless: None })),
            pin!(host.sleep(config.request_timeout_ms)),
        );
        match select(read, late).await {
            Either::Left((mut answer, _)) => {
                if let Outcome::Found { reading: Reading::Lease(lease), .. } = &mut answer.outcome {
                    // Nothing here shows fields of others, and thousands of records are to be small.
                    lease.extra = Object::new();
                }
                let at_ms = match answer.outcome {
                    // A pause that a store asks for begins with its answer.
                    Outcome::Unknown { .. } => host.now().wall_ms,
                    _ => now_ms,
                };
                *seen.read.borrow_mut() = Some((at_ms, answer.clone()));
                Ok((at_ms, answer))
            }
            Either::Right(_) => Err(Unread::NoAnswer),
        }
    }
}

/// 503: ask again after so many milliseconds, at least a second. Not 404, which would have a follower ask nobody for a lease.
fn later(why: &str, ms: u64) -> HealthAnswer {
    let seconds = ms.div_ceil(1_000).max(1);
    let body = json!({ "error": why, "retryAfterMs": seconds * 1_000, "relays": [] });
    HealthAnswer { retry_after_s: Some(seconds), ..HealthAnswer::of(503, body.to_string()) }
}

/// When a record was read, and when that is told.
struct Times {
    at_ms: u64,
    now_ms: u64,
    /// Whether the store is a binding of the platform.
    bound: bool,
}

impl Times {
    /// How old the record is, as far as an answer to a question may guess. It grants nothing and saves a read; to watch the
    /// version instead would call a dead leader alive for a whole lease from the first look of every new isolate.
    fn age_ms(&self, config: &Config, facts: Facts, lease: &Lease) -> Option<u64> {
        let kept_ms = self.now_ms.saturating_sub(self.at_ms);
        let (store_ms, written_ms) = match (facts.date_ms, facts.last_modified_ms) {
            // An answer out of somebody's cache says nothing of now (S6).
            _ if facts.relayed => return None,
            (Some(date_ms), Some(modified_ms)) => {
                return Some(date_ms.saturating_sub(modified_ms).saturating_add(kept_ms));
            }
            // The binding has no `Date`, but its clock and this isolate's are both the platform's.
            (None, Some(modified_ms)) if self.bound => (self.now_ms, modified_ms),
            // DynamoDB and Route 53 name no time of a write: the record's own is its leader's idea of the store's.
            (date_ms, _) => {
                let Stamp::At(stamp_ms) = lease.last_updated else { return None };
                let store_ms =
                    date_ms.map_or(self.now_ms, |date_ms| date_ms.saturating_add(kept_ms));
                (store_ms, u64::try_from(stamp_ms).ok()?)
            }
        };
        // Where the two clocks are apart by less than storeSkew, a dead leader is called alive for no longer than that beyond
        // its lease; by clocks further apart, for a lease, some time later. A `Date` has whole seconds, and the record's time
        // was rounded up from one.
        let room_ms = config.store_skew_ms + facts.date_ms.map_or(0, |_| 2 * 1_000);
        let ahead_ms = written_ms.saturating_sub(store_ms);
        (ahead_ms <= room_ms).then(|| store_ms.saturating_sub(written_ms))
    }
}
