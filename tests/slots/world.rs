//! Triggers on one machine, over one store whose answers can be bent.

use edgelect::election::SlotsOver;
use edgelect::{
    Missed, Policy, Report, Schedule, ScheduleSettings, SlotOutcome, Term, driver, run_scheduled,
};
use futures::channel::oneshot;
use futures::future::AbortHandle;

use crate::driver::prelude::*;

pub const MINUTE_MS: u64 = 60_000;
/// The first whole minute after the hosts' clocks begin.
pub const FIRST_MS: u64 = EPOCH_MS / MINUTE_MS * MINUTE_MS + MINUTE_MS;
pub const NEW_GROUP: SlotOutcome = SlotOutcome::Skipped(SlotsOver::NewGroup);
pub const OUT_OF_TIME: SlotOutcome = SlotOutcome::Skipped(SlotsOver::Budget);

pub fn settings(policy: Policy, missed: Missed) -> ScheduleSettings {
    ScheduleSettings {
        period_ms: Some(MINUTE_MS),
        policy: Some(policy),
        missed: Some(missed),
        ..ScheduleSettings::default()
    }
}

/// At most once, and nothing is made up for.
pub fn once() -> ScheduleSettings {
    settings(Policy::AtMostOnce, Missed::Skip)
}

/// At least once, and nothing is made up for.
pub fn again() -> ScheduleSettings {
    settings(Policy::AtLeastOnce, Missed::Skip)
}

/// At least once, and all that was missed.
pub fn all_again() -> ScheduleSettings {
    settings(Policy::AtLeastOnce, Missed::All)
}

pub fn minute(number: u64) -> u64 {
    FIRST_MS + number * MINUTE_MS
}

pub fn schedule(slot_ms: u64, settings: &ScheduleSettings) -> Schedule {
    let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..settings.clone() };
    Schedule::new(&settings, &config()).expect("the schedule keeps every rule")
}

/// What the answers say of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Dates {
    #[default]
    Both,
    /// As R2's binding answers.
    LastModifiedOnly,
    /// As DynamoDB and Route 53 answer.
    DateOnly,
    Neither,
}

pub const EVERY_DATES: [Dates; 4] =
    [Dates::Both, Dates::LastModifiedOnly, Dates::DateOnly, Dates::Neither];
/// Where nothing says when the record has changed.
pub const UNCHANGED: [Dates; 2] = [Dates::DateOnly, Dates::Neither];

#[derive(Default)]
pub struct Odd {
    pub memory: Memory,
    pub dates: Cell<Dates>,
    /// Nothing happens, and there is no answer.
    pub hangs: Cell<bool>,
    /// The store cannot be used from here on.
    pub misconfigured: Cell<bool>,
    /// Writes say that they landed, without a version.
    pub unnamed: Cell<bool>,
    /// So many answers to writes are lost from here on.
    pub loses: Cell<u32>,
    /// The answer of the first write that claims this slot is lost.
    pub loses_slot: Cell<Option<u64>>,
    pub writes: Cell<u32>,
    /// A write of which so little time has passed since the last that landed is not taken, as R2's binding says it: without a status.
    pub apart_ms: Cell<u64>,
    landed_ms: Cell<u64>,
    /// The answer of the next write waits for this.
    gate: RefCell<Option<oneshot::Receiver<()>>>,
}

impl Odd {
    fn bend(&self, body: &[u8], outcome: Outcome) -> Outcome {
        self.writes.set(self.writes.get() + 1);
        let slot_ms = lease_of(body).slot;
        let this = slot_ms.is_some() && slot_ms == self.loses_slot.get();
        if this {
            self.loses_slot.set(None);
        } else if self.loses.get() > 0 {
            self.loses.set(self.loses.get() - 1);
        } else {
            let unnamed = self.unnamed.get() && matches!(outcome, Outcome::Written { .. });
            return if unnamed { Outcome::Written { version: None } } else { outcome };
        }
        Answer::unknown(Fault::new(FaultKind::Network, "reset")).outcome
    }

    async fn perform(&self, operation: Operation, now_ms: u64) -> Answer {
        if self.hangs.get() {
            return std::future::pending().await;
        }
        if self.misconfigured.get() {
            return Answer::rejected(Fault::new(FaultKind::Misconfigured, "no such bucket"));
        }
        let written = match &operation {
            Operation::Write { record, .. } => Some(record.body(Format::Native)),
            Operation::Read { .. } | Operation::Delete => None,
        };
        if written.is_some() && now_ms < self.landed_ms.get() + self.apart_ms.get() {
            return Answer::unknown(Fault::new(FaultKind::Unavailable, "reduce your request rate"));
        }
        let Answer { mut outcome, mut facts } = self.memory.perform(operation).await;
        if matches!(outcome, Outcome::Written { .. }) {
            self.landed_ms.set(now_ms);
        }
        match self.dates.get() {
            Dates::Both => {}
            Dates::LastModifiedOnly => facts.date_ms = None,
            Dates::DateOnly => facts.last_modified_ms = None,
            Dates::Neither => (facts.date_ms, facts.last_modified_ms) = (None, None),
        }
        if let Some(body) = written {
            outcome = self.bend(&body, outcome);
            let gate = self.gate.take();
            if let Some(gate) = gate {
                let _ = gate.await;
            }
        }
        Answer { outcome, facts }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Job {
    Takes(u64),
    Fails,
    Hangs,
}

pub struct Trigger {
    pub handle: Handle,
    pub kill: AbortHandle,
    report: Rc<RefCell<Option<Report<u64, &'static str>>>>,
}

impl Trigger {
    pub fn report(&self) -> Report<u64, &'static str> {
        self.report.borrow().clone().expect("it has ended")
    }

    pub fn outcome(&self) -> SlotOutcome {
        self.report().outcome
    }

    pub fn ended(&self) -> bool {
        self.report.borrow().is_some()
    }

    pub fn stop(&self) {
        self.handle.tell(Input::Stop { park: false });
    }
}

pub fn outcomes(triggers: &[Trigger]) -> Vec<&'static str> {
    let mut names: Vec<_> = triggers.iter().map(|trigger| trigger.outcome().name()).collect();
    names.sort_unstable();
    names
}

pub struct World {
    pub machine: Machine,
    pub store: Rc<Odd>,
    /// Every job that began: its slot and its token.
    begun: Rc<RefCell<Vec<(u64, u64)>>>,
    sessions: Cell<u64>,
    /// That of every member.
    pub config: Config,
}

struct Wire {
    store: Rc<Odd>,
    host: Virtual,
}

impl Store for Wire {
    async fn perform(&self, operation: Operation) -> Answer {
        self.store.perform(operation, self.host.wall_ms()).await
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn writes_apart_ms(&self) -> u64 {
        self.store.apart_ms.get()
    }

    fn describe(&self) -> String {
        "the store".to_owned()
    }
}

impl World {
    pub fn new(dates: Dates) -> Self {
        let machine = Machine::default();
        let now_ms = Rc::clone(&machine.host.now_ms);
        let memory = Memory::new(move || EPOCH_MS + now_ms.get());
        let store = Rc::new(Odd { memory, dates: Cell::new(dates), ..Odd::default() });
        Self { machine, store, begun: Rc::default(), sessions: Cell::new(0), config: config() }
    }

    /// A group whose operator has run `init`, when its first slot is due.
    pub fn with_init(dates: Dates) -> Self {
        let mut world = Self::new(dates);
        world.init();
        world.at(FIRST_MS);
        world
    }

    pub fn init(&self) {
        block_on(driver::init(&self.wire(), &self.machine.host, &config())).expect("a new group");
    }

    /// The way of one member to the store.
    pub fn wire(&self) -> impl Store + 'static {
        Wire { store: Rc::clone(&self.store), host: self.machine.host.clone() }
    }

    pub fn now_ms(&self) -> u64 {
        self.machine.host.wall_ms()
    }

    pub fn pass(&mut self, ms: u64) {
        self.machine.pass(ms);
    }

    /// Lets time pass until the wall clock shows this.
    pub fn at(&mut self, wall_ms: u64) {
        self.machine.at(wall_ms - EPOCH_MS);
    }

    pub fn trigger(&self, slot_ms: u64, settings: &ScheduleSettings, job: Job) -> Trigger {
        self.trigger_as(schedule(slot_ms, settings), job)
    }

    pub fn trigger_as(&self, schedule: Schedule, job: Job) -> Trigger {
        self.trigger_on(&self.machine.host, schedule, job)
    }

    pub fn trigger_on(&self, host: &Virtual, schedule: Schedule, job: Job) -> Trigger {
        let seed = self.sessions.get() + 1;
        self.sessions.set(seed);
        let config = Config { server_id: "m".to_owned(), ..self.config.clone() };
        let election = Election::for_schedule(config, format!("s{seed}"), seed, schedule);
        let handle = Handle::new(election);
        let report = Rc::new(RefCell::new(None));
        let (host, store, begun) = (host.clone(), self.wire(), Rc::clone(&self.begun));
        let (running, told) = (handle.clone(), Rc::clone(&report));
        let kill = self.machine.run(async move {
            let ran = run_scheduled(&running, &store, &host, async |term: Term<'_, Virtual>| {
                let slot_ms = term.slot_ms.expect("a slot is run");
                begun.borrow_mut().push((slot_ms, term.token));
                match job {
                    Job::Takes(ms) => host.sleep(ms).await,
                    Job::Fails => return Err("it failed"),
                    Job::Hangs => std::future::pending().await,
                }
                Ok(slot_ms)
            });
            *told.borrow_mut() = Some(ran.await.expect("the store can be used"));
        });
        Trigger { handle, kill, report }
    }

    /// A trigger for the slot of a minute, at that time or now if it is over, and so long after it.
    pub fn fires(&mut self, ms: u64, number: u64, of: &ScheduleSettings, job: Job) -> Trigger {
        self.at(minute(number).max(self.now_ms()));
        let trigger = self.trigger(minute(number), of, job);
        self.pass(ms);
        trigger
    }

    /// What such a trigger of a short job reports within 5 s.
    pub fn runs(&mut self, number: u64, settings: &ScheduleSettings) -> SlotOutcome {
        self.runs_within(5_000, number, settings)
    }

    pub fn runs_within(&mut self, ms: u64, number: u64, of: &ScheduleSettings) -> SlotOutcome {
        self.fires(ms, number, of, Job::Takes(10)).outcome()
    }

    /// The runner of this minute's slot dies in its job, so long after it has begun.
    pub fn dies(&mut self, number: u64, settings: &ScheduleSettings, after_ms: u64) {
        self.fires(after_ms, number, settings, Job::Hangs).kill.abort();
    }

    /// The minutes whose slots were run, in order; one that begins within a minute is no slot of ours.
    pub fn ran(&self) -> Vec<u64> {
        let minute = |(slot_ms, _): &(u64, u64)| {
            assert_eq!(slot_ms % MINUTE_MS, 0, "nobody has scheduled this slot");
            (slot_ms - FIRST_MS) / MINUTE_MS
        };
        self.begun.borrow().iter().map(minute).collect()
    }

    pub fn body(&self) -> Vec<u8> {
        self.store.memory.body().expect("there is a record")
    }

    pub fn lease(&self) -> Lease {
        lease_of(&self.body())
    }

    /// Writes what somebody else would, whatever is there.
    pub fn put(&self, body: impl Into<Vec<u8>>) {
        self.store.memory.overwrite(Some(body.into()));
    }

    pub fn change(&self, change: impl FnOnce(&mut Lease)) {
        let mut lease = self.lease();
        change(&mut lease);
        self.put(lease::write(&lease));
    }

    /// The answer of the next write waits until something is sent.
    pub fn hold_answer(&self) -> oneshot::Sender<()> {
        let (open, gate) = oneshot::channel();
        *self.store.gate.borrow_mut() = Some(gate);
        open
    }

    /// A member that runs no slots leads for so long, and stops.
    pub fn lead(&mut self, ms: u64) {
        let config = Config { server_id: "L".to_owned(), ..config() };
        let handle = Handle::new(Election::new(config, "lead".to_owned(), 3));
        self.machine.elect(&handle, self.wire(), &self.machine.host, |_| ());
        self.pass(ms);
        handle.tell(Input::Stop { park: false });
        self.pass(5_000);
    }
}
