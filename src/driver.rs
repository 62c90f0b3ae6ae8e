//! One election, one store, one host: the only file that knows all three.
//!
//! [`run`] carries out the steps of an [`Election`] one after the other. While a request is under way it still
//! watches the fence, so that the end of an authority is told when it happens, not when the answer comes.

mod peers;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::{Either, select};

use serde::Serialize;

use self::peers::{Ask, Heart};
pub use self::peers::{Asked, Held};

use crate::clock::Now;
use crate::config::{Config, HostClock};
use crate::election::{Authority, Election, Event, Input, Problem, Standing, Step};
use crate::lease::{self, Lease, Stamp};
use crate::peer::Desk;
use crate::request::{Request, Response};
use crate::slots::Schedule;
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use crate::tally::{Tally, UnderWay};
use crate::trouble::{self, Trouble};

/// The longest single sleep that a host is asked for, in milliseconds; JavaScript's timers end near 2^31.
const LONGEST_SLEEP_MS: u64 = 3_600_000;

/// While it leads, a host of two clocks is asked for no longer sleep than this, in milliseconds: a machine that was suspended
/// counts nothing of it in its timers, and the end of an authority would be told late.
const WATCH_MS: u64 = 1_000;

const DRIVEN_BEFORE: &str = "this election is driven already, or was, and that was dropped before its end: make another one";

/// How long one request may take where nobody's lease waits for it, in milliseconds.
pub(crate) const UNHURRIED_MS: u64 = 10_000;

/// What an elector needs from the place where it runs. Time, chance and the network come from here and nowhere
/// else.
///
/// The driver polls these futures from one task and drops those that it no longer needs: a sleep when
/// something else happened first, a fetch when its time is over. Dropping must be safe at every await.
/// A panic in here ends the elector; its lease then runs out.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Host {
    /// Reads the clocks, at this very moment: a kept reading would lengthen an authority (S5).
    ///
    /// The monotonic clock never goes back, is the same for all clones of a host, and does not run faster than
    /// real time; it may stand still while the machine is suspended. The wall clock is the machine's own, and
    /// may step: what is held counts by the faster of the two, what is watched by the monotonic one (S11). A
    /// host that has one clock only gives it twice, and says so by `Settings::clock`.
    fn now(&self) -> Now;

    /// Ends once the monotonic clock has moved on by `ms` milliseconds or more (1 to an hour); a few
    /// milliseconds late is usual, more costs authority but no safety. Never before: the driver would ask
    /// again and again until it is time. Dropping the future gives the timer back.
    async fn sleep(&self, ms: u64);

    /// Random bytes of the quality that keys are made of: the session's identity is made of them, and two
    /// equal sessions would take each other's writes for their own (S4). Asked when an election is made, and
    /// with each question to a peer and from one.
    ///
    /// # Errors
    /// There is no randomness here (the global scope of a Worker). Never fall back to something weaker.
    fn random(&self) -> Result<[u8; 16], String>;

    /// Sends one HTTP request, once, and reads the answer's body up to `limit` bytes; of a longer one the rest
    /// is left, and [`Body::truncated`](crate::request::Body::truncated) says so. Whatever the status is, it is
    /// an answer.
    ///
    /// The request goes out as it is: it is signed, so no header that it has may be changed. It must not be
    /// sent again once a byte of it may have left (S8), no redirect may be followed, no cache asked. It needs no
    /// timeout of its own: the driver drops the future when the time is over, which should end the
    /// connection; the request may have been carried out all the same.
    ///
    /// # Errors
    /// No whole answer came, for people: short, without the address and without any header. It counts as a
    /// request of which nobody knows whether it took effect.
    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String>;

    /// Sends a question to a peer, by the same rules. By default as every request: a host differs where peers have certificates
    /// that others do not trust.
    ///
    /// # Errors
    /// As for [`Host::fetch`]; the store is read then.
    async fn ask_peer(&self, request: Request, limit: usize) -> Result<Response, String> {
        self.fetch(request, limit).await
    }

    /// Shows the operator one line: a problem that lasts, or its end. By default nobody sees it; the
    /// [event](crate::election::Event::Troubled) is told all the same.
    fn warn(&self, _line: &str) {}
}

impl<H: Host> Host for &H {
    fn now(&self) -> Now {
        H::now(self)
    }

    async fn sleep(&self, ms: u64) {
        H::sleep(self, ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        H::random(self)
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        H::fetch(self, request, limit).await
    }

    async fn ask_peer(&self, request: Request, limit: usize) -> Result<Response, String> {
        H::ask_peer(self, request, limit).await
    }

    fn warn(&self, line: &str) {
        H::warn(self, line);
    }
}

/// How many requests an elector has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    /// Reads of the store.
    pub read: u64,
    /// Conditional writes to the store.
    pub write: u64,
    /// Questions to a peer, heartbeats among them.
    pub peer: u64,
}

/// An election that is being driven, and what others may ask and tell it meanwhile. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    inner: Rc<Inner>,
}

struct Inner {
    election: RefCell<Election>,
    commands: RefCell<VecDeque<Input>>,
    waker: RefCell<Option<Waker>>,
    requests: Cell<Requests>,
    under_way: Cell<Option<UnderWay>>,
    tally: RefCell<Tally>,
    desk: RefCell<Desk>,
    /// The term whose questions are held, as of the last turn, and who holds one, by a number of its own.
    steady: Cell<Option<u64>>,
    holders: RefCell<BTreeMap<u64, Option<Waker>>>,
    questions: Cell<u64>,
    driven: Cell<bool>,
}

impl Handle {
    /// Takes an election; [`run`] drives it.
    pub fn new(election: Election) -> Self {
        Self {
            inner: Rc::new(Inner {
                election: RefCell::new(election),
                commands: RefCell::default(),
                waker: RefCell::default(),
                requests: Cell::default(),
                under_way: Cell::default(),
                tally: RefCell::new(Tally::begun()),
                desk: RefCell::default(),
                steady: Cell::default(),
                holders: RefCell::default(),
                questions: Cell::default(),
                driven: Cell::default(),
            }),
        }
    }

    /// The right to act at this reading of the host's clocks, or none.
    pub fn authority(&self, now: Now) -> Option<Authority> {
        self.inner.election.borrow().authority(now)
    }

    /// What this reading of the host's clocks says of the own term. To ask ends no term.
    pub fn standing(&self, now: Now) -> Standing {
        self.inner.election.borrow().standing(now)
    }

    /// Looks at the election.
    pub fn with<T>(&self, look: impl FnOnce(&Election) -> T) -> T {
        look(&self.inner.election.borrow())
    }

    /// As [`Election::store_held`].
    pub fn store_held(&self) {
        self.inner.election.borrow_mut().store_held();
    }

    /// As [`Election::unfence`].
    pub(crate) fn unfence(&self) {
        self.inner.election.borrow_mut().unfence();
    }

    /// The requests made so far.
    pub fn requests(&self) -> Requests {
        self.inner.requests.get()
    }

    /// What this session has counted so far.
    pub fn tally(&self) -> Tally {
        self.inner.tally.borrow().clone()
    }

    /// Tells the election something; it is heard at the driver's next turn.
    pub fn tell(&self, input: Input) {
        if let Input::SlotEnded { end, .. } = &input {
            self.inner.tally.borrow_mut().job_ended(end);
        }
        self.inner.commands.borrow_mut().push_back(input);
        if let Some(waker) = self.inner.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Ends as soon as something has been told.
    fn told(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|context| {
            if !self.inner.commands.borrow().is_empty() {
                return Poll::Ready(());
            }
            *self.inner.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Ends as soon as a stop has been told that the driver has yet to hear.
    pub(crate) fn stop_told(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|context| {
            if self.stops() {
                return Poll::Ready(());
            }
            *self.inner.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Refuses an election that has a driver, or that had one before its end.
    pub(crate) fn check_undriven(&self) -> Result<(), Fault> {
        if self.inner.driven.get() && !self.with(Election::has_finished) {
            return Err(Fault::new(FaultKind::Misconfigured, DRIVEN_BEFORE));
        }
        Ok(())
    }

    /// Whether a stop has been told that the driver has yet to hear.
    pub(crate) fn stops(&self) -> bool {
        let stop = |input: &Input| matches!(input, Input::Stop { .. });
        self.inner.commands.borrow().iter().any(stop)
    }

    /// The request under way has ended. Gives what there is to tell of problems.
    fn ended(
        &self,
        now: Now,
        input: Input,
        complaint: Option<Fault>,
        trouble: &mut Trouble,
    ) -> impl Iterator<Item = Event> + use<> {
        let election = &mut *self.inner.election.borrow_mut();
        if let Some(request) = self.inner.under_way.take() {
            self.inner.tally.borrow_mut().request_ended(request, &input, now.mono_ms);
        }
        election.handle(now, input);
        election.complain(complaint);
        let waiting = election.waiting(now).filter(|_| !election.has_schedule());
        // What ends the election, at this refusal or at the next, is told as its end.
        let goes_on =
            !election.has_failed() && (election.is_heard() || election.problem().is_none());
        let troubled = goes_on.then(|| trouble.note(election.problem()));
        [troubled.flatten(), trouble.note_waiting(waiting)].into_iter().flatten()
    }

    /// Whether the end of an authority may come while the host sleeps and no timer runs. Not in JavaScript, whose package
    /// looks at its clocks itself.
    fn watches(&self, now: Now) -> bool {
        let two = self.with(|election| election.config().clock == HostClock::Two);
        two && cfg!(not(target_arch = "wasm32")) && self.authority(now).is_some()
    }

    /// Counts what the application is about to be told.
    fn noted(&self, event: Event) -> Event {
        let election = self.inner.election.borrow();
        let left_out = election.own_slot_ms().map_or(0, |(_, left_out)| left_out);
        self.inner.tally.borrow_mut().told(&event, election.has_schedule(), left_out);
        event
    }

    fn count(&self, step: &Step, now: Now) {
        if let Some(request) = UnderWay::of(step, now.mono_ms) {
            self.inner.under_way.set(Some(request));
        }
        let mut requests = self.inner.requests.get();
        match step {
            Step::Read { .. } => requests.read += 1,
            Step::Claim { .. } | Step::Renew { .. } => requests.write += 1,
            Step::AskPeer { .. } => requests.peer += 1,
            Step::Wait { .. } | Step::Finished => {}
        }
        self.inner.requests.set(requests);
    }
}

/// Tells an election that it is driven from now on, and what its store can do.
fn know(handle: &Handle, store: &impl Store) {
    handle.inner.driven.set(true);
    let election = &mut *handle.inner.election.borrow_mut();
    election.condition_covers_version(store.condition_covers_version());
    election.stale_writes_fail(store.stale_writes_fail());
    election.writes_apart_ms(store.writes_apart_ms());
}

/// Drives an election until it has finished. `tell_app` hears each event once, in order, and must not block;
/// after [`Event::Lost`] the application says [`Input::WorkEnded`] with its term when its work has stopped: until then
/// nothing is claimed.
///
/// [`Event::Lost`] may come late: up to a second after a machine was suspended, and as late as this future is polled. Before each
/// effect ask [`Handle::authority`] with the host's clocks of that moment.
///
/// An election is driven once. Where an earlier call was dropped before its end, nobody knows any more what became of its request
/// and its work: this one tells [`Event::Failed`] and ends, and the lease runs out. So does a second call beside the first.
pub async fn run<S: Store, H: Host>(
    handle: &Handle,
    store: &S,
    host: &H,
    mut tell_app: impl FnMut(Event),
) {
    if let Err(fault) = handle.check_undriven() {
        return tell_app(Event::Failed(fault));
    }
    know(handle, store);
    let mut tell_app = |event| tell_app(handle.noted(event));
    let mut trouble = Trouble::default();
    let heart = Heart::default();
    let mut beats: Pin<Box<dyn Future<Output = Vec<Event>> + '_>> =
        Box::pin(heart.next(handle, host));
    let mut request: Option<Pin<Box<dyn Future<Output = Input> + '_>>> = None;
    loop {
        let commands = std::mem::take(&mut *handle.inner.commands.borrow_mut());
        for input in commands {
            handle.inner.election.borrow_mut().handle(host.now(), input);
        }
        let now = host.now();
        let step = handle.inner.election.borrow_mut().poll(now);
        heart.end_at(&step, handle).into_iter().for_each(&mut tell_app);
        loop {
            // Not borrowed while the application hears it: it may call back into the handle.
            let event = handle.inner.election.borrow_mut().next_event();
            let Some(event) = event else { break };
            tell_app(event);
        }
        handle.wake_holders(handle.steady_term(host.now()));
        handle.count(&step, now);
        let until_ms = match step {
            Step::Finished => return,
            Step::Wait { until_ms } => until_ms,
            step => {
                let config = handle.with(|election| election.config().clone());
                request = Some(Box::pin(carry_out(store, host, step, config)));
                continue;
            }
        };
        // A clock that steps back meanwhile must not make the pause longer.
        let from_ms = now.mono_ms.max(host.now().mono_ms);
        let longest_ms = if handle.watches(now) { WATCH_MS } else { LONGEST_SLEEP_MS };
        let ms = until_ms.saturating_sub(from_ms).clamp(1, longest_ms);
        let pause = async {
            let (asleep, told) = (pin!(host.sleep(ms)), pin!(handle.told()));
            match select(select(asleep, told), beats.as_mut()).await {
                Either::Left(_) => None,
                Either::Right((events, _)) => Some(events),
            }
        };
        let mut heard = None;
        match request.take() {
            Some(under_way) => match select(under_way, pin!(pause)).await {
                Either::Left((input, _)) => {
                    let complaint = store.complaint();
                    for event in handle.ended(host.now(), input, complaint, &mut trouble) {
                        if let Some(line) = trouble_line(handle, &event) {
                            host.warn(&line);
                        }
                        tell_app(event);
                    }
                }
                Either::Right((beaten, under_way)) => {
                    request = Some(under_way);
                    heard = beaten;
                }
            },
            None => heard = pause.await,
        }
        if let Some(events) = heard {
            beats = Box::pin(heart.next(handle, host));
            events.into_iter().for_each(&mut tell_app);
        }
    }
}

fn trouble_line(handle: &Handle, event: &Event) -> Option<String> {
    handle.with(|election| trouble::line(event, &election.config().lockfile_path))
}

async fn carry_out<S: Store, H: Host>(store: &S, host: &H, step: Step, config: Config) -> Input {
    let (operation, timeout_ms) = match step {
        Step::Read { unless, timeout_ms } => (Operation::Read { unless }, timeout_ms),
        Step::Claim { lease, seen, timeout_ms } => (write(lease, seen), timeout_ms),
        Step::Renew { lease, held, timeout_ms } => {
            (write(lease, Condition::Match(held)), timeout_ms)
        }
        Step::AskPeer { addr, term, wait_ms, timeout_ms } => {
            let ask = Ask { addr: &addr, term, wait_ms, from: "", timeout_ms };
            return Input::Peer(peers::ask(host, &ask, &config).await);
        }
        Step::Wait { .. } | Step::Finished => {
            unreachable!("the loop keeps these to itself")
        }
    };
    Input::Answer(perform_within(store, host, operation, timeout_ms).await)
}

fn write(lease: Box<Lease>, condition: Condition) -> Operation {
    Operation::Write { record: lease.into(), condition }
}

/// One operation within its time. No two records are the same (S4): a success with the version that was to be replaced says
/// nothing of the write.
pub(crate) async fn perform_within<S: Store, H: Host>(
    store: &S,
    host: &H,
    operation: Operation,
    timeout_ms: u64,
) -> Answer {
    let replaced = match &operation {
        Operation::Write { record: Record::Lease(_), condition: Condition::Match(version) } => {
            Some(version.clone())
        }
        _ => None,
    };
    let mut answer = perform_as_told(store, host, operation, timeout_ms).await;
    if let Outcome::Written { version } = &mut answer.outcome {
        *version = version.take().filter(|version| Some(version) != replaced.as_ref());
    }
    answer
}

/// The same with what the store says, whatever that is worth.
pub(crate) async fn perform_as_told<S: Store, H: Host>(
    store: &S,
    host: &H,
    operation: Operation,
    timeout_ms: u64,
) -> Answer {
    let name = match &operation {
        Operation::Read { .. } => "read",
        Operation::Write { .. } => "write",
        Operation::Delete => "delete",
    };
    match select(pin!(store.perform(operation)), pin!(host.sleep(timeout_ms))).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => {
            let within = timeout_ms.to_string();
            let pieces = [&store.describe(), ": ", name, ": no answer within ", &within, " ms"];
            let message = pieces.concat();
            let cause = Fault::new(FaultKind::Timeout, message);
            let outcome = Outcome::Unknown { retry_after_ms: None, cause };
            Answer { outcome, facts: Facts::default() }
        }
    }
}

/// A new election on this host: a session id of 128 random bits, made here and not before, and a seed.
///
/// # Errors
/// The host has no randomness.
pub fn new_election<H: Host>(host: &H, config: Config) -> Result<Election, String> {
    let (session, seed) = identity(host)?;
    Ok(Election::new(config, session, seed))
}

/// A new election that runs the slots of a schedule and finishes; see [`new_election`].
///
/// # Errors
/// The host has no randomness.
pub fn new_schedule<H: Host>(
    host: &H,
    config: Config,
    schedule: Schedule,
) -> Result<Election, String> {
    let (session, seed) = identity(host)?;
    Ok(Election::for_schedule(config, session, seed, schedule))
}

fn identity<H: Host>(host: &H) -> Result<(String, u64), String> {
    let session = session_id(host.random()?);
    let [a, b, c, d, e, f, g, h, ..] = host.random()?;
    Ok((session, u64::from_le_bytes([a, b, c, d, e, f, g, h])))
}

/// A UUID of version 4: <https://www.rfc-editor.org/rfc/rfc9562#section-5.4>.
pub(crate) fn session_id(mut random: [u8; 16]) -> String {
    random[6] = (random[6] & 0x0F) | 0x40;
    random[8] = (random[8] & 0x3F) | 0x80;
    let hex = hex::encode(random);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Why [`init`] made no new group.
#[derive(Clone, Debug, PartialEq)]
pub enum InitError {
    /// There is a record already.
    Exists,
    /// The store failed, so that nobody knows whether the record was made; or something else than a usable record is there.
    Store(Fault),
}

impl InitError {
    /// What to tell people.
    pub fn message(&self) -> &str {
        match self {
            Self::Exists => {
                "the lease object exists already: this group was started before, and needs no init"
            }
            Self::Store(fault) => &fault.message,
        }
    }
}

impl std::fmt::Display for InitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for InitError {}

/// Starts a new group without the grace: creates a tombstone, if there is no record. It is the operator's
/// word that no member ran within `maxLease` (S7), so it belongs into no start script.
///
/// # Errors
/// [`InitError::Exists`] if there is a record, [`InitError::Store`] if the store could not be asked, or shows what is no usable
/// record.
pub async fn init<S: Store, H: Host>(
    store: &S,
    host: &H,
    config: &Config,
) -> Result<(), InitError> {
    let random = host
        .random()
        .map_err(|message| InitError::Store(Fault::new(FaultKind::Network, message)))?;
    let session = session_id(random);
    let Now { mono_ms: began_ms, wall_ms: mut now_ms, .. } = host.now();
    let mut init = Init { made: false, last: None };
    // What was made just now is written over without a look.
    let mut known = None;
    for attempt in 0..INIT_ATTEMPTS {
        let pause_ms = match attempt {
            0 => 0,
            1 => store.writes_apart_ms(),
            more => store.writes_apart_ms().max(INIT_PAUSE_MS << (more - 2)),
        };
        if pause_ms > 0 {
            host.sleep(pause_ms).await;
        }
        let step = match known.take() {
            Some((lease, version)) => InitStep::Confirm(lease, version),
            None => {
                let seen = look(store, host).await;
                now_ms = seen.facts.date_ms.unwrap_or(host.now().wall_ms);
                init.next(store, &session, &seen.outcome)?
            }
        };
        let mut lease = Box::new(tombstone(config, &session, now_ms));
        lease.sequence += u64::from(attempt);
        let condition = match step {
            InitStep::Done => return Ok(()),
            InitStep::Look => continue,
            // The operator's word is of now.
            InitStep::Make
                if host.now().mono_ms.saturating_sub(began_ms) >= config.leader_timeout_ms =>
            {
                if init.wrote() {
                    continue;
                }
                return Err(InitError::Store(init.fault(store)));
            }
            InitStep::Make => Condition::Absent,
            InitStep::Confirm(made, version) => {
                confirm(&mut lease, *made);
                Condition::Match(version)
            }
        };
        if attempt + 1 == INIT_ATTEMPTS {
            // What is written last is read back.
            break;
        }
        let makes = condition == Condition::Absent;
        let operation = write(lease.clone(), condition);
        match perform_within(store, host, operation, UNHURRIED_MS).await.outcome {
            Outcome::Rejected(cause) => return Err(InitError::Store(cause)),
            Outcome::Written { version: Some(version) } if makes => {
                (init.made, known) = (true, Some((lease, version)));
            }
            Outcome::Written { version: Some(_) } => {
                init.made = true;
                if look(store, host).await.outcome != Outcome::Missing {
                    return Ok(());
                }
            }
            // A refused or unknown one may have landed all the same (S8).
            outcome => init.last = Some(outcome),
        }
    }
    Err(InitError::Store(init.fault(store)))
}

async fn look<S: Store, H: Host>(store: &S, host: &H) -> Answer {
    perform_within(store, host, Operation::Read { unless: None }, UNHURRIED_MS).await
}

/// Makes a tombstone the one that is claimed at once: only a record that is no creation is known not to have come back after a
/// deletion (S7).
fn confirm(lease: &mut Lease, made: Lease) {
    lease.acquired = Some(0);
    lease.sequence += made.sequence.saturating_sub(1);
    (lease.term, lease.slot) = (lease.term.max(made.term), lease.slot.max(made.slot));
    (lease.operator, lease.extra) = (made.operator, made.extra);
}

/// How often [`init`] looks or writes before it gives up.
const INIT_ATTEMPTS: u32 = 8;

/// How long it waits before the third time, in milliseconds; each wait after it is twice as long.
const INIT_PAUSE_MS: u64 = 250;

/// What became of an [`init`] so far.
struct Init {
    /// Its record was made, as the store says.
    made: bool,
    /// The newest answer that was no success.
    last: Option<Outcome>,
}

/// What an [`init`] does next.
enum InitStep {
    Make,
    /// This record is written over: it was made by an `init`.
    Confirm(Box<Lease>, Version),
    /// What was made is not shown, or nothing is.
    Look,
    Done,
}

impl Init {
    fn next<S: Store>(
        &mut self,
        store: &S,
        session: &str,
        shown: &Outcome,
    ) -> Result<InitStep, InitError> {
        match shown {
            Outcome::Missing if !self.made => Ok(InitStep::Make),
            Outcome::Missing => {
                self.last = None;
                Ok(InitStep::Look)
            }
            Outcome::Unknown { .. } | Outcome::Rejected(_) if self.wrote() => {
                self.last = Some(shown.clone());
                Ok(InitStep::Look)
            }
            Outcome::Unknown { cause, .. } | Outcome::Rejected(cause) => {
                Err(InitError::Store(cause.clone()))
            }
            Outcome::Found { version, reading: lease::Reading::Lease(lease) } => {
                // Also one that another `init` has left like this.
                if lease.is_creation() && lease.released() {
                    return Ok(InitStep::Confirm(lease.clone(), version.clone()));
                }
                let own = lease.session.as_deref() == Some(session);
                // A member may have taken it since.
                let started = self.wrote() && (own || self.made) && !lease.in_grace();
                if started { Ok(InitStep::Done) } else { Err(InitError::Exists) }
            }
            Outcome::Found { reading, .. } => Err(already_there(store, reading)),
            // No answer to a read, so that nothing is known of a record.
            _ => {
                let message = [&store.describe(), ": says nothing of the lease object"].concat();
                Err(InitError::Store(Fault::new(FaultKind::Nonsense, message)))
            }
        }
    }

    /// Whether a write has left, whatever became of it.
    fn wrote(&self) -> bool {
        self.made || self.last.is_some()
    }

    /// Why it gave up.
    fn fault<S: Store>(self, store: &S) -> Fault {
        let what = match self.last {
            Some(Outcome::Unknown { cause, .. } | Outcome::Rejected(cause)) => return cause,
            Some(Outcome::Refused) if self.made => {
                ": refuses to write over what `init` has made; run it again"
            }
            Some(Outcome::Refused) => ": refused to create an absent object",
            None if !self.made => {
                ": took longer than `leaderTimeout` to say that there is no object, so that nothing was written; run `init` again"
            }
            _ => ": says created, and shows no such object",
        };
        Fault::new(FaultKind::Nonsense, [&store.describe(), what].concat())
    }
}

/// Why [`init`] makes no group where the store shows this: only a record says that one was started.
fn already_there<S: Store>(store: &S, reading: &lease::Reading) -> InitError {
    let problem = match reading {
        lease::Reading::Lease(_) => return InitError::Exists,
        lease::Reading::Unreadable(flaw, _) => Problem::Unreadable(*flaw),
        lease::Reading::Closed(why) => Problem::closed(*why),
    };
    let message = [&store.describe(), ": ", &problem.to_string()].concat();
    InitError::Store(Fault::new(FaultKind::Misconfigured, message))
}

fn tombstone(config: &Config, session: &str, storage_ms: u64) -> Lease {
    // `Date` has whole seconds; more than rounding it up would let a first token run ahead of storage time.
    let term = storage_ms.saturating_add(999).max(config.term_floor);
    let server_id = if config.server_id.is_empty() { session } else { &config.server_id };
    Lease {
        term: Some(term),
        session: Some(session.to_owned()),
        sequence: 1,
        lease_ms: Some(config.leader_timeout_ms),
        // All that came before counts as claimed; said here for stores that name no `Last-Modified`.
        slot: Some(storage_ms.saturating_add(2 * config.store_skew_ms + 2_999)),
        slot_done: Some(true),
        ..Lease::bare(server_id, Stamp::Released)
    }
}
