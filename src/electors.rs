//! Thousands of groups in one process: each is an election of its own, and all of them share one budget of connections and
//! requests, one judgement of the store, and a spread of their renewals over the interval.
//!
//! ```
//! use edgelect::{Config, Electors, Host, Limits, Store};
//! use futures::future::{join, join_all};
//!
//! async fn serve(
//!     host: impl Host + Clone + 'static,
//!     tenants: Vec<(Config, impl Store)>,
//!     shutdown: impl Future<Output = ()>,
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let electors = Electors::new(host, Limits { max_connections: 32, ..Limits::default() })?;
//!     let members: Result<Vec<_>, _> =
//!         tenants.into_iter().map(|(config, store)| electors.add(config, store)).collect();
//!     let members = members?;
//!     // One group that fails ends its own future; the others go on.
//!     let leading = members.iter().map(async |member| {
//!         if let Err(fault) = member.lead(async |term| work(term.token).await).await {
//!             eprintln!("{fault}");
//!         }
//!     });
//!     // The members are polled until they have released their leases: to drop their futures leaves the leases to run out.
//!     let stopping = async {
//!         shutdown.await;
//!         electors.stop().await;
//!     };
//!     join(join_all(leading), stopping).await;
//!     Ok(())
//! }
//! # async fn work(_token: u64) {}
//! ```

pub mod budget;
pub mod queue;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::select;

use self::budget::{Budget, Limits, Load, Ticket, Urgency, need_milli, start_delay_ms};
use self::queue::{Budgeted, Queue};
use crate::clock::Now;
use crate::config::{Config, ConfigError};
use crate::driver::{Handle, Host, new_election, run};
use crate::election::{Event, Input};
use crate::isolate;
use crate::lead::{Term, lead};
use crate::metrics::{self, Sample};
use crate::peer::{Desk, HealthAnswer, Question};
use crate::probe::{Judgement, judge};
use crate::proof::Secrets;
use crate::status;
use crate::store::{Fault, Store};
use crate::text::quoted;

/// How many groups one process may have.
pub const MOST_GROUPS: usize = 10_000;

/// How many questions of peers all groups hold together, unless one of them alone may hold more.
pub(crate) const MOST_HELD: u64 = 1_000;

// Questions about each of them cost one read an interval.
const _: () = assert!(isolate::MOST_SEEN >= MOST_GROUPS);

/// Between the releases of two leases, in milliseconds.
const RELEASES_APART_MS: u64 = 5;

/// Whether the one store of all groups has been judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Not,
    UnderWay,
    Done,
}

struct Shared<H> {
    host: H,
    limits: Limits,
    budget: RefCell<Budget>,
    /// Who waits for a turn, and what wakes them. A turn that was granted has no entry any more.
    waiting: RefCell<BTreeMap<Ticket, Option<Waker>>>,
    groups: RefCell<BTreeMap<String, Handle>>,
    /// How many thousandths of a request a second the groups need.
    need_milli: Cell<u64>,
    added: Cell<u64>,
    judged: Cell<Judged>,
    /// Who waits for the judgement.
    wakers: RefCell<Vec<Waker>>,
    /// How many questions of peers are held: counted, because thousands of groups are not asked at each question.
    held: Cell<u64>,
}

impl<H: Host> Shared<H> {
    /// Wakes those who may leave; and whoever is the first of the others by that, who looks at the clock for them.
    fn grant(&self) {
        let now_ms = self.host.now().mono_ms;
        let mut changed = false;
        while let Some(ticket) = self.budget.borrow_mut().grant(now_ms) {
            changed = true;
            if let Some(Some(waker)) = self.waiting.borrow_mut().remove(&ticket) {
                waker.wake();
            }
        }
        if changed {
            self.wake_first();
        }
    }

    fn wake_first(&self) {
        let first = self.budget.borrow().first();
        let waker = first.and_then(|first| self.waiting.borrow_mut().get_mut(&first)?.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A place among the requests that are under way.
pub struct Turn<H: Host> {
    shared: Rc<Shared<H>>,
    ticket: Ticket,
}

impl<H: Host> Drop for Turn<H> {
    fn drop(&mut self) {
        self.shared.waiting.borrow_mut().remove(&self.ticket);
        self.shared.budget.borrow_mut().leave(self.ticket);
        self.shared.grant();
        self.shared.wake_first();
    }
}

/// The queue of the groups of one [`Electors`].
pub struct Line<H: Host>(Rc<Shared<H>>);

impl<H: Host> Queue for Line<H> {
    type Turn = Turn<H>;

    async fn turn(&self, urgency: Urgency) -> Turn<H> {
        let shared = &self.0;
        let ticket = shared.budget.borrow_mut().ask(urgency);
        shared.waiting.borrow_mut().insert(ticket, None);
        let turn = Turn { shared: Rc::clone(shared), ticket };
        loop {
            // Awake already: to be woken by its own look would have it look again and again.
            if let Some(place) = shared.waiting.borrow_mut().get_mut(&ticket) {
                *place = None;
            }
            shared.grant();
            if !shared.waiting.borrow().contains_key(&ticket) {
                return turn;
            }
            let first = shared.budget.borrow().first() == Some(ticket);
            let now_ms = shared.host.now().mono_ms;
            let wait_ms = shared.budget.borrow().wait_ms(now_ms).filter(|_| first);
            let woken = poll_once_more(|waker| {
                if let Some(place) = shared.waiting.borrow_mut().get_mut(&ticket) {
                    *place = Some(waker.clone());
                }
            });
            let pause = async {
                match wait_ms {
                    Some(ms) => shared.host.sleep(ms).await,
                    None => pending().await,
                }
            };
            select(pin!(woken), pin!(pause)).await;
        }
    }
}

/// Leaves the waker with `leave` and ends when the task is polled again.
fn poll_once_more(mut leave: impl FnMut(&Waker)) -> impl Future<Output = ()> {
    let mut left = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut left, true) {
            return Poll::Ready(());
        }
        leave(context.waker());
        Poll::Pending
    })
}

/// Why a group was not added.
#[derive(Clone, Debug, PartialEq)]
pub enum AddError {
    /// An option breaks a rule.
    Config(ConfigError),
    /// The host has no randomness.
    Randomness(String),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => f.write_str(&error.message()),
            Self::Randomness(message) => write!(f, "no randomness here: {message}"),
        }
    }
}

impl std::error::Error for AddError {}

/// The groups of one process. Cheap to clone; clones are the same.
pub struct Electors<H> {
    shared: Rc<Shared<H>>,
}

impl<H> Clone for Electors<H> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared) }
    }
}

impl<H: Host + Clone + 'static> Electors<H> {
    /// No group yet.
    ///
    /// # Errors
    /// A limit is out of its range.
    pub fn new(host: H, limits: Limits) -> Result<Self, ConfigError> {
        let limits = limits.checked()?;
        let budget = Budget::new(limits, host.now().mono_ms);
        Ok(Self {
            shared: Rc::new(Shared {
                host,
                limits,
                budget: RefCell::new(budget),
                waiting: RefCell::default(),
                groups: RefCell::default(),
                need_milli: Cell::default(),
                added: Cell::default(),
                judged: Cell::new(Judged::Not),
                wakers: RefCell::default(),
                held: Cell::default(),
            }),
        })
    }

    /// Adds the group of these settings, whose record is in `store`. All stores are to be of one kind, in one place: only the
    /// first that is used and can be is judged. The group is gone again when the member is dropped.
    ///
    /// # Errors
    /// The group is there already, there are too many, or the limits are too small for one more.
    pub fn add<S: Store>(&self, config: Config, store: S) -> Result<Member<S, H>, AddError> {
        let shared = &self.shared;
        let group = config.lockfile_path.clone();
        let there = shared.groups.borrow().contains_key(&group);
        check_room(there, shared.groups.borrow().len(), &group).map_err(AddError::Config)?;
        let more = need_milli(config.frequent_interval_ms);
        let need = shared.need_milli.get() + more;
        check_rate(&shared.limits, need, shared.groups.borrow().len() + 1)
            .map_err(AddError::Config)?;
        let delay_ms = start_delay_ms(shared.added.get(), config.frequent_interval_ms);
        let election = new_election(&shared.host, config).map_err(AddError::Randomness)?;
        let handle = Handle::new(election);
        shared.need_milli.set(need);
        shared.added.set(shared.added.get() + 1);
        shared.groups.borrow_mut().insert(group.clone(), handle.clone());
        let line = Line(Rc::clone(shared));
        let store = Budgeted::new(store, line, handle.clone(), shared.host.clone());
        Ok(Member { shared: Rc::clone(shared), handle, store, group, delay_ms, need_milli: more })
    }

    /// How much of the limits is in use.
    pub fn load(&self) -> Load {
        self.shared.budget.borrow().load()
    }

    /// The members that are there, by their groups.
    pub fn handles(&self) -> Vec<(String, Handle)> {
        let groups = self.shared.groups.borrow();
        groups.iter().map(|(group, handle)| (group.clone(), handle.clone())).collect()
    }

    /// How many questions of peers all groups hold at most, because each needs a connection and a process has a limit of them:
    /// 1,000, or the largest `maxPeers` of a group.
    pub fn most_held(&self) -> u64 {
        let of = |handle: &Handle| handle.with(|election| election.config().peers.most);
        self.shared.groups.borrow().values().map(of).fold(MOST_HELD, u64::max)
    }

    /// How many questions of peers are held.
    pub fn questions_held(&self) -> u64 {
        self.shared.held.get()
    }

    /// Whether no more questions are held.
    fn is_full(&self) -> bool {
        let held = self.questions_held();
        held >= MOST_HELD && held >= self.most_held()
    }

    /// Tells every member to stop; those that lead one after the other, so that every lease is released: the releases of a thousand
    /// at once would not be answered in time. Until then each leads, and its work goes on. Their futures have to be polled on, to
    /// their ends: what is dropped before releases nothing.
    pub async fn stop(&self) {
        let rate = self.shared.limits.max_requests_per_second;
        let apart_ms = rate.map_or(0, |rate| 1_000_u64.div_ceil(rate)).max(RELEASES_APART_MS);
        for (_, handle) in self.handles() {
            let leads = handle.authority(self.shared.host.now()).is_some();
            handle.tell(Input::Stop { park: false });
            if leads {
                self.shared.host.sleep(apart_ms).await;
            }
        }
    }

    /// The status of each group, as a JSON list in the order of their names.
    pub fn status(&self) -> String {
        let of = |handle: &Handle| {
            let (now, requests) = (self.shared.host.now(), handle.requests());
            handle.with(|election| status::status(election, now, requests))
        };
        let groups = self.handles();
        let told: Vec<String> = groups.iter().map(|(_, handle)| of(handle)).collect();
        format!("[{}]", told.join(","))
    }

    /// The metrics of all groups, in OpenMetrics.
    pub fn metrics(&self) -> String {
        let sample = |(_, handle): (_, Handle)| Sample::of(&handle, self.shared.host.now());
        metrics::text(self.handles().into_iter().map(sample))
    }

    /// The same for anybody who asks, without the sessions' ids.
    pub fn public_status(&self) -> String {
        let now = self.shared.host.now();
        let of = |(_, handle): &(String, Handle)| {
            handle.with(|election| status::public(election, now, handle.requests()))
        };
        let told: Vec<String> = self.handles().iter().map(of).collect();
        format!(r#"{{"groups":[{}]}}"#, told.join(","))
    }

    /// The group of this name, or the only one where none is named.
    fn asked(&self, group: &str) -> Option<Handle> {
        let groups = self.shared.groups.borrow();
        match (group, groups.len()) {
            ("", 1) => groups.values().next().cloned(),
            (group, _) => groups.get(group).cloned(),
        }
    }

    /// Answers a question of a peer to `GET /health/leadership`, the query of its URL, whose `group` says of which group; 404 for
    /// one that is not here. It may wait as [`Handle::answer_peer`] does, where fewer than [`most_held`](Self::most_held) wait.
    pub async fn answer_peer(&self, query: &str) -> HealthAnswer {
        let (question, _) = Question::read(query, &Secrets::default());
        let waits = question.wait_ms > 0;
        match self.asked(&question.group) {
            Some(handle) if waits && self.is_full() => {
                let chance = self.shared.host.random().map_or(0, |bytes| u64::from(bytes[0]));
                answer_full(&handle, self.shared.host.now(), query, chance)
            }
            Some(handle) => {
                let _place = Place::take(&self.shared);
                handle.answer_peer(&self.shared.host, query).await
            }
            None if question.group.is_empty() => HealthAnswer::of(400, WHICH_GROUP.to_owned()),
            None => HealthAnswer::not_leading(None),
        }
    }
}

/// The answer to a question that would be held, if all groups together had room; news are told all the same. `chance` is any number.
pub(crate) fn answer_full(handle: &Handle, now: Now, query: &str, chance: u64) -> HealthAnswer {
    handle.with(|election| {
        let config = election.config();
        let (question, proven) = Question::read(query, &config.peers.secrets);
        if !Desk::is_steady(election, now, &question) {
            return Desk::default().answer(election, now, (&question, proven));
        }
        let lease_s = (config.leader_timeout_ms / 1_000).max(1);
        // Those who were sent away together do not all come back together.
        let pause_s = lease_s + chance % (lease_s / 2 + 1);
        HealthAnswer::busy(pause_s, &[]).to(&question, &config.peers.secrets)
    })
}

/// A place among the questions that are held, given back also when its asker goes.
struct Place<'a, H>(&'a Shared<H>);

impl<'a, H> Place<'a, H> {
    fn take(shared: &'a Shared<H>) -> Self {
        shared.held.set(shared.held.get() + 1);
        Self(shared)
    }
}

impl<H> Drop for Place<'_, H> {
    fn drop(&mut self) {
        self.0.held.set(self.0.held.get() - 1);
    }
}

const WHICH_GROUP: &str = r#"{"error":"which group? ask with ?group=LOCKFILE_PATH"}"#;

/// Refuses a group that is there, and one too many.
pub(crate) fn check_room(there: bool, groups: usize, group: &str) -> Result<(), ConfigError> {
    if there {
        let rule = "this group is there already: two members of one process would only compete with each other";
        return Err(ConfigError::new("lockfilePath", quoted(group), rule));
    }
    if groups >= MOST_GROUPS {
        let rule =
            format!("one process has at most {MOST_GROUPS} groups; spread them over several");
        return Err(ConfigError::new("lockfilePath", quoted(group), rule));
    }
    Ok(())
}

/// Refuses a rate at which the groups could not be led.
pub(crate) fn check_rate(limits: &Limits, need: u64, groups: usize) -> Result<(), ConfigError> {
    let [_, name] = Limits::OPTIONS;
    let Some(rate) = limits.max_requests_per_second else { return Ok(()) };
    if need <= rate.saturating_mul(1_000) {
        return Ok(());
    }
    let rule = format!(
        "{groups} groups send {} requests a second, one for each frequentInterval, so that their leases could not be renewed; \
         raise it, or raise frequentInterval and leaderTimeout",
        need.div_ceil(1_000)
    );
    Err(ConfigError::new(name, rate.to_string(), rule))
}

/// One group of an [`Electors`].
pub struct Member<S, H: Host> {
    shared: Rc<Shared<H>>,
    handle: Handle,
    store: Budgeted<S, Line<H>>,
    group: String,
    delay_ms: u64,
    need_milli: u64,
}

impl<S: Store, H: Host> Member<S, H> {
    /// What others may ask and tell the election meanwhile.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// As [`lead`]; its first request waits a moment, so that the renewals of many groups do not come in one burst.
    ///
    /// # Errors
    /// As those of [`lead`].
    pub async fn lead<'a, T>(
        &'a self,
        work: impl AsyncFnMut(Term<'a, H>) -> T,
    ) -> Result<Option<T>, Fault> {
        self.begin().await?;
        lead(&self.handle, &self.store, &self.shared.host, work).await
    }

    /// As [`run`], after the same wait.
    ///
    /// # Errors
    /// The store breaks a condition.
    pub async fn run(&self, tell_app: impl FnMut(Event)) -> Result<(), Fault> {
        self.begin().await?;
        run(&self.handle, &self.store, &self.shared.host, tell_app).await;
        Ok(())
    }

    /// Waits for this group's place in the interval, and for the judgement of the store.
    async fn begin(&self) -> Result<(), Fault> {
        let shared = &self.shared;
        if self.delay_ms > 0 {
            select(pin!(shared.host.sleep(self.delay_ms)), pin!(self.handle.stop_told())).await;
        }
        loop {
            match shared.judged.get() {
                Judged::Done => return Ok(()),
                Judged::Not => break,
                Judged::UnderWay => {
                    let woken = poll_once_more(|waker| {
                        shared.wakers.borrow_mut().push(waker.clone());
                    });
                    select(pin!(woken), pin!(self.handle.stop_told())).await;
                    if self.handle.stops() {
                        return Ok(());
                    }
                }
            }
        }
        let judging = Judging(shared);
        shared.judged.set(Judged::UnderWay);
        let judgement = judge(&self.handle, self.store.inner(), &shared.host).await?;
        // A group may be one that judges nothing: the next is asked.
        if judgement == Judgement::Made {
            judging.0.judged.set(Judged::Done);
        }
        Ok(())
    }
}

/// Lets the next one judge where this one has come to no end, whatever the reason.
struct Judging<'a, H>(&'a Shared<H>);

impl<H> Drop for Judging<'_, H> {
    fn drop(&mut self) {
        if self.0.judged.get() == Judged::UnderWay {
            self.0.judged.set(Judged::Not);
        }
        self.0.wakers.take().into_iter().for_each(Waker::wake);
    }
}

impl<S, H: Host> Drop for Member<S, H> {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.groups.borrow_mut().remove(&self.group);
        shared.need_milli.set(shared.need_milli.get() - self.need_milli);
    }
}
