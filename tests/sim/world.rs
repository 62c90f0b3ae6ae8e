//! The world of one schedule: a queue of events over true time, and the driver's loop for each
//! session.

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::election::{Event as Told, Input, LostReason, PeerAnswer, Step};
use edgelect::lease::{Ask, Reading};
use edgelect::slots::Schedule;
use edgelect::store::{Answer, Facts, Fault, FaultKind, Outcome};
use serde::{Deserialize, Serialize};

use super::chance::Chance;
use super::clocks::Clocks;
use super::foreign::{self, ForeignMembers};
use super::member::{Cron, Cut, Due, Flight, Machine, Session};
use super::network::{Fate, Weather};
use super::operator::{self, Operator};
use super::oracle::{Aim, Contract, Look, Oracle};
use super::outside::Calls;
use super::peers::{self, PeerWorld};
use super::queue::Queue;
use super::report::{History, Kind, Tally};
use super::requests::{Reply, Request};
use super::resource::Resource;
use super::slots::Plan;
use super::store::{Manners, ModelStore};
use super::told;
use super::wire::Client;

/// Something that happens at one true instant.
#[derive(Clone, Debug)]
pub enum Event {
    /// A driver's timer.
    Wake { session: usize, wakes: u64 },
    /// A request is cut off.
    Timeout { session: usize, operation: usize },
    /// A request, or its second copy, takes effect.
    Arrive { request: usize, copy: bool },
    /// An answer reaches the driver.
    Deliver { session: usize, request: usize, reply: Box<Reply> },
    /// A question reaches the machine of a peer.
    PeerAsked { asker: usize, request: usize, machine: Option<usize>, asked: Box<peers::Asked> },
    /// The time is over for which a session was to hold a question.
    HoldOver { session: usize, hold: u64 },
    /// A peer's answer reaches the driver.
    Peer { session: usize, request: usize, asked: Box<peers::Asked>, told: Box<peers::Told> },
    /// The work of one lost term has stopped.
    WorkEnds { session: usize, term: u64 },
    /// The work of one term writes to the fenced resource.
    Act { session: usize, term: u64 },
    /// Such a write arrives.
    ActArrives { session: usize, term: u64 },
    /// A wall clock that was wrong for a moment is put right.
    PutRight { machine: usize, step_ms: i64 },
    /// A stopped process runs again.
    Resume { machine: usize },
    /// A new session starts.
    Start { machine: usize },
    /// A cron fires; its host ends the isolate at the given time.
    Tick { machine: usize, copy: bool },
    /// A slot of the group's cron comes near.
    Slot { slot_ms: u64 },
    /// One of its triggers fires.
    Trigger { machine: usize, slot_ms: u64 },
    /// The job of a slot ends by itself.
    JobEnds { session: usize, term: u64 },
    /// The trigger's budget is nearly used up.
    TickStop { session: usize },
    /// The isolate is gone, without notice.
    Vanish { session: usize },
    /// The operator looks at the record.
    OperatorAsks,
    /// Its request arrives at the store.
    OperatorArrives { asked: operator::Asked },
    /// What a member of another make does.
    Foreign { member: usize, turn: u64, act: foreign::Act },
    /// Something that whoever runs the schedule does.
    Turn(Turn),
}

/// What stands between the election and the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Depth {
    /// A store in the election's own words.
    #[default]
    Core,
    /// The real S3 store code, and HTTP.
    Store,
}

/// What a step was for whoever runs the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The schedule's next fault.
    Chaos,
    /// Somebody's hand on the object, soon after a slot was claimed.
    Meddle,
    /// No faults from here on.
    Heal,
    Usual,
}

/// Hosts cut longer timers short, as JavaScript's do.
const LONGEST_SLEEP_MS: u64 = 1 << 31;

/// No schedule is this long; one that is spins.
const MOST_STEPS: u64 = 1_000_000;

/// A fate that a scenario prescribes for the next requests of one machine.
pub struct Script {
    pub machine: usize,
    pub write: bool,
    pub times: u64,
    pub fate: Fate,
}

#[derive(Default)]
pub struct World {
    pub now_ms: u64,
    pub chance: Chance,
    pub depth: Depth,
    pub store: ModelStore,
    pub machines: Vec<Machine>,
    pub sessions: Vec<Session>,
    /// The sessions that are alive, oldest first.
    pub living: Vec<usize>,
    pub weather: Weather,
    pub script: Vec<Script>,
    pub outage: Cut,
    /// A session that has finished is followed by another one.
    pub restarts: bool,
    pub peers: PeerWorld,
    pub oracle: Oracle,
    pub tally: Tally,
    pub history: History,
    pub resource: Resource,
    /// How many operations have begun.
    pub operations: usize,
    /// Cron triggers come late.
    pub late_ticks: bool,
    /// Nobody waits for its turn: all claim as early as they ever may.
    pub claims_early: bool,
    pub writes_apart_ms: u64,
    pub operator: Option<Operator>,
    pub foreign: Option<ForeignMembers>,
    /// The cron whose triggers run slots, and its jobs.
    pub slots: Option<Plan>,
    /// Until when something on the way answers all reads with an old `Date`.
    pub old_dates_until_ms: u64,
    /// The last instant at which something injected can still take effect.
    pub trouble_until_ms: u64,
    pub healed: bool,
    /// How long nobody has led, and the longest such time since it was last reset.
    pub leaderless_since_ms: Option<u64>,
    pub leaderless_ms: u64,
    /// Whose token was the newest to be handed out.
    pub last_leader: Option<usize>,
    /// What the work was told, for scenarios.
    pub told: Option<Vec<(usize, Told)>>,
    /// What those who run the schedule have to hear of, for their own members.
    pub calls: Calls,
    queue: Queue,
    pub requests: Vec<Request>,
}

impl World {
    pub fn new(seed: u64, manners: Manners, contract: Contract) -> Self {
        Self {
            chance: Chance::new(seed),
            store: ModelStore::new(manners),
            weather: Weather::calm(),
            restarts: true,
            oracle: Oracle::new(contract),
            leaderless_since_ms: Some(0),
            ..Self::default()
        }
    }

    pub fn add_machine(&mut self, config: Config, clocks: Clocks, cron: Option<Cron>) -> usize {
        self.machines.push(Machine {
            config,
            clocks,
            paused_until_ms: 0,
            busy_ms: 0,
            frozen_ms: 0,
            cut: Cut::default(),
            cron,
            runs_slots: false,
            outside: false,
            absent: false,
            work_end_ms: 50,
            careless: false,
        });
        self.machines.len() - 1
    }

    /// Events of one instant happen in any order.
    pub fn at(&mut self, at_ms: u64, event: Event) {
        let order = self.chance.next();
        self.queue.push(at_ms.max(self.now_ms), order, event);
    }

    /// Before everything else of its instant.
    pub fn first_at(&mut self, at_ms: u64, event: Event) {
        self.queue.push(at_ms, 0, event);
    }

    pub fn after(&mut self, in_ms: u64, event: Event) {
        self.at(self.now_ms + in_ms, event);
    }

    /// Something injected can take effect until then.
    pub fn trouble_until(&mut self, until_ms: u64) {
        if !self.healed {
            self.trouble_until_ms = self.trouble_until_ms.max(until_ms);
        }
    }

    /// The next event up to `until_ms` happens; `None` when there is none. Chaos and healing are
    /// the caller's.
    pub fn step(&mut self, until_ms: u64) -> Option<Turn> {
        let at_ms = self.queue.next_ms().filter(|at_ms| *at_ms <= until_ms)?;
        let event = self.queue.pop()?;
        self.pass_to(at_ms);
        if self.means_nothing(&event) {
            return Some(Turn::Usual);
        }
        self.tally.steps += 1;
        let few = self.tally.steps < MOST_STEPS;
        require!(self.oracle, few, "no spinning"; "the schedule never ends");
        if let Some(resume_ms) = self.held_up(&event) {
            self.at(resume_ms, event);
            return Some(Turn::Usual);
        }
        let turn = match event {
            Event::Turn(turn) => turn,
            _ => Turn::Usual,
        };
        self.happen(event);
        self.look_at_holds();
        self.look_around();
        Some(turn)
    }

    pub fn pass_to(&mut self, now_ms: u64) {
        (self.now_ms, self.oracle.true_ms) = (now_ms, now_ms);
    }

    /// Runs a scripted scenario up to this true time.
    pub fn run_until(&mut self, until_ms: u64) {
        while self.oracle.violation.is_none() && self.step(until_ms).is_some() {}
        self.pass_to(self.now_ms.max(until_ms));
        self.look_around();
    }

    /// Most timers are set again or cancelled before they fire; and nobody starts on a machine that is absent.
    fn means_nothing(&self, event: &Event) -> bool {
        match event {
            Event::Wake { session, wakes } => {
                let Session { alive, wake, wakes: newest, .. } = &self.sessions[*session];
                !alive || wake.is_none() || newest != wakes
            }
            Event::Timeout { session, operation } => {
                let Session { alive, flight, outside, .. } = &self.sessions[*session];
                // One from outside has timers of its own.
                let other = |flight: &Flight| flight.operation != *operation;
                !alive || outside.is_some() || flight.as_ref().is_none_or(other)
            }
            Event::Start { machine }
            | Event::Tick { machine, .. }
            | Event::Trigger { machine, .. } => self.machines[*machine].absent,
            _ => false,
        }
    }

    /// A stopped process sees nothing before it runs again.
    fn held_up(&self, event: &Event) -> Option<u64> {
        let session = match event {
            Event::Wake { session, .. }
            | Event::Timeout { session, .. }
            | Event::Deliver { session, .. }
            | Event::Peer { session, .. }
            | Event::HoldOver { session, .. }
            | Event::WorkEnds { session, .. }
            | Event::Act { session, .. }
            | Event::JobEnds { session, .. }
            | Event::TickStop { session } => *session,
            Event::PeerAsked { machine, .. } => {
                let until_ms = self.machines[(*machine)?].paused_until_ms;
                return (until_ms > self.now_ms).then_some(until_ms);
            }
            // Nothing starts on a host that sleeps.
            Event::Start { machine }
            | Event::Tick { machine, .. }
            | Event::Trigger { machine, .. } => {
                let until_ms = self.machines[*machine].paused_until_ms;
                return (until_ms > self.now_ms).then_some(until_ms);
            }
            _ => return None,
        };
        let machine = &self.machines[self.sessions[session].machine];
        let runs = self.sessions[session].alive || self.lingers(session);
        let stopped = runs && machine.paused_until_ms > self.now_ms;
        stopped.then_some(machine.paused_until_ms)
    }

    fn happen(&mut self, event: Event) {
        self.history.mix(self.now_ms);
        match event {
            Event::Wake { session, wakes } => self.on_wake(session, wakes),
            Event::Timeout { session, operation } => self.on_timeout(session, operation),
            Event::Arrive { request, copy } => self.on_arrive(request, copy),
            Event::Deliver { session, request, reply } => {
                self.on_deliver(session, request, *reply);
            }
            Event::PeerAsked { asker, request, machine, asked } => {
                self.on_peer_asked(asker, request, machine, *asked);
            }
            Event::HoldOver { hold, .. } => self.end_hold(hold, true),
            Event::Peer { session, request, asked, told } => {
                self.on_peer_told(session, request, &asked, &told);
            }
            Event::WorkEnds { session, term } => self.on_work_ends(session, term),
            Event::Act { session, term } => self.on_act(session, term),
            Event::ActArrives { session, term } => {
                if !self.resource.receives(&mut self.oracle, session, term) {
                    self.tally.fault(Kind::ZombieRefused);
                }
            }
            Event::Resume { machine } => self.machines[machine].clocks.resume(self.now_ms),
            Event::PutRight { machine, step_ms } => self.step_wall(machine, step_ms),
            Event::Start { machine } => {
                self.start(machine);
            }
            Event::Tick { machine, copy } => self.on_tick(machine, copy),
            Event::Slot { slot_ms } => self.on_slot(slot_ms),
            Event::Trigger { machine, slot_ms } => self.on_trigger(machine, slot_ms),
            Event::JobEnds { session, term } => self.on_job_ends(session, term),
            Event::TickStop { session } => {
                if self.sessions[session].alive {
                    self.tell(session, Input::Stop { park: true });
                }
            }
            Event::Vanish { session } => {
                if self.sessions[session].alive {
                    self.tally.fault(Kind::VanishedIsolate);
                    self.kill(session);
                }
            }
            Event::OperatorAsks => self.operator_asks(),
            Event::OperatorArrives { asked } => self.operator_arrives(asked),
            Event::Foreign { member, turn, act } => self.foreign_acts(member, turn, act),
            Event::Turn(_) => {}
        }
    }

    /// I1 and the fences of everybody, at this true instant, stopped ones included.
    pub fn look_around(&mut self) {
        self.look_at_all(true);
    }

    /// The same where nothing has happened, and no simulated member takes notice: one that sees its term over holds on to that,
    /// and how often its clocks are looked at would decide what it does.
    pub fn glance(&mut self) {
        self.look_at_all(false);
    }

    fn look_at_all(&mut self, noticed: bool) {
        let mut leader: Option<(usize, u64)> = None;
        for index in 0..self.living.len() {
            let session = self.living[index];
            // Whoever was not told a term had no authority at its last turn, and gets none by itself.
            if self.oracle.views[session].announced.is_none() {
                continue;
            }
            let look = self.look(session);
            let member = &self.sessions[session];
            let noticed = noticed || member.outside.is_some();
            let authority = match noticed {
                true => member.authority(look.now),
                false => member.election.clone().authority(look.now),
            };
            // A process that stands still, or goes on at this instant, has not seen that a term is over by a wall clock which is put
            // right meanwhile.
            let still = self.machines[member.machine].paused_until_ms >= self.now_ms;
            let unseen = member.outside.is_some() && still;
            if (noticed && !unseen) || authority.is_some() {
                self.oracle.looked(look, authority, false);
            }
            if let Some(authority) = authority {
                let another = (session, authority.term);
                if let Some(acting) = self.foreign.as_ref().and_then(|some| some.acts(self.now_ms))
                {
                    self.oracle.beside(another, acting);
                }
                if let Some(first) = leader.replace(another) {
                    self.oracle.leaders(first, another);
                }
            }
        }
        self.history.mix(leader.map_or(0, |(_, term)| term));
        if leader.is_none() && !self.a_tick_leads() {
            let since_ms = *self.leaderless_since_ms.get_or_insert(self.now_ms);
            self.leaderless_ms = self.leaderless_ms.max(self.now_ms - since_ms);
        } else {
            self.leaderless_since_ms = None;
        }
    }

    pub fn look(&self, session: usize) -> Look {
        let Session { machine, .. } = self.sessions[session];
        let clocks = &self.machines[machine].clocks;
        let now = self.sessions[session].reading(clocks, self.now_ms);
        Look { session, now }
    }

    /// The term that a session has authority for at this instant.
    pub fn authority(&self, session: usize) -> Option<u64> {
        let now = self.look(session).now;
        let session = &self.sessions[session];
        session.authority(now).filter(|_| session.alive).map(|authority| authority.term)
    }

    pub fn start(&mut self, machine: usize) -> usize {
        self.start_with(machine, None)
    }

    /// Starts a session, for a schedule of slots or to lead.
    pub fn start_with(&mut self, machine: usize, schedule: Option<Schedule>) -> usize {
        let session = self.sessions.len();
        let name = format!("s{session}");
        let config = &self.machines[machine].config;
        let seed = self.chance.next();
        let client = (self.depth == Depth::Store).then(|| Client::new(&self.store.manners));
        let mut member = Session::new(machine, name.clone(), config, seed, client, schedule);
        if self.claims_early {
            member.election.claim_first();
        }
        member.election.writes_apart_ms(self.writes_apart_ms);
        self.enters(name, member);
        self.history.note(self.now_ms, || {
            let trigger = self.sessions[session].trigger.as_ref();
            let asked = trigger.map(|trigger| format!(" for {:?}", trigger.schedule));
            format!("m{machine} starts s{session}{}", asked.unwrap_or_default())
        });
        self.drive(session);
        session
    }

    /// A session takes its place, under the name by which the oracle knows it.
    pub fn enters(&mut self, name: String, member: Session) {
        let session = self.sessions.len();
        let clocks = &self.machines[member.machine].clocks;
        self.oracle.join(name, clocks.rate_ppm, clocks.single);
        self.sessions.push(member);
        self.living.push(session);
        let mono_ms = self.look(session).now.mono_ms;
        if let Some(trigger) = &mut self.sessions[session].trigger {
            (trigger.began_ms, trigger.began_mono_ms) = (self.now_ms, mono_ms);
        }
    }

    pub fn kill(&mut self, session: usize) {
        self.sessions[session].alive = false;
        self.living.retain(|living| *living != session);
        self.history.note(self.now_ms, || format!("s{session} is gone"));
    }

    fn on_tick(&mut self, machine: usize, copy: bool) {
        let Some(cron) = self.machines[machine].cron else { return };
        self.tally.fault(if copy { Kind::DoubledTick } else { Kind::CronTick });
        if !copy {
            let late = self.late_ticks && !self.healed && self.chance.one_in(4);
            let late_ms = if late { self.chance.span(2 * cron.period_ms) } else { 0 };
            if late {
                self.tally.fault(Kind::LateTick);
            }
            self.after(cron.period_ms + late_ms, Event::Tick { machine, copy: false });
            if !self.healed && self.chance.one_in(4) {
                let late_ms = self.chance.span(cron.period_ms / 4);
                self.after(late_ms, Event::Tick { machine, copy: true });
            }
        }
        let session = self.start(machine);
        let leads_ms = cron.sustain_ms - cron.reserve_ms;
        let park_ms = self.machines[machine].clocks.mono_ms(self.now_ms + leads_ms);
        self.tell(session, Input::ParkAt { mono_ms: park_ms });
        self.after(leads_ms, Event::TickStop { session });
        let early = !self.healed && self.chance.one_in(10);
        let last_ms = if early { self.chance.below(cron.sustain_ms) } else { cron.sustain_ms };
        self.after(last_ms, Event::Vanish { session });
    }

    /// When a timer fires whose host slept meanwhile: it counts on a clock that stood still.
    fn not_before(&self, session: usize, due: Due) -> Option<u64> {
        let clocks = &self.machines[self.sessions[session].machine].clocks;
        if clocks.single {
            return (due.true_ms > self.now_ms).then_some(due.true_ms);
        }
        let early = clocks.mono_ms(self.now_ms) < due.mono_ms;
        early.then(|| clocks.true_when(self.now_ms, due.mono_ms))
    }

    fn on_wake(&mut self, session: usize, wakes: u64) {
        let due = self.sessions[session].wake.expect("a stale timer is dropped before");
        if let Some(at_ms) = self.not_before(session, due) {
            return self.at(at_ms, Event::Wake { session, wakes });
        }
        self.sessions[session].wake = None;
        self.fired(session, due);
        self.drive(session);
    }

    /// A timer fired: on a single clock that is how a step back shows itself.
    fn fired(&mut self, session: usize, due: Due) {
        const TIMER_ROUNDING_MS: u64 = 2;
        let state = &mut self.sessions[session];
        let clocks = &self.machines[state.machine].clocks;
        if clocks.single && clocks.mono_ms(self.now_ms) + TIMER_ROUNDING_MS < due.mono_ms {
            state.early_timers += 1;
        }
    }

    fn on_timeout(&mut self, session: usize, operation: usize) {
        let flight = self.sessions[session].flight.as_ref();
        let Flight { due, awaited: request, .. } =
            *flight.expect("a stale timer is dropped before");
        if let Some(at_ms) = self.not_before(session, due) {
            return self.at(at_ms, Event::Timeout { session, operation });
        }
        self.fired(session, due);
        self.sessions[session].flight = None;
        if self.requests[request].asked.is_none() {
            return self.tell(session, Input::Peer(PeerAnswer::Silent));
        }
        self.ended(session, request, no_answer());
    }

    /// Whether the session waits for an answer to this request; late ones are dropped.
    pub fn awaits(&mut self, session: usize, request: usize) -> bool {
        let Session { alive, flight, .. } = &self.sessions[session];
        let awaited = *alive && flight.as_ref().is_some_and(|flight| flight.awaited == request);
        if !awaited {
            self.tally.fault(Kind::LateAnswer);
        }
        awaited
    }

    /// Whoever is told that all is over has no write under way that would have to be released.
    fn check_all_is_over(&mut self, session: usize) {
        let flight = self.sessions[session].flight.as_ref();
        let deed = flight.and_then(|flight| self.requests[flight.awaited].deed);
        let aim = deed.map(|deed| self.oracle.deeds[deed].aim);
        let takes = matches!(aim, Some(Aim::Claim | Aim::Reserve));
        require!(self.oracle, !takes, "S12 all is over";
            "s{session} says so while its {aim:?} {deed:?} is under way");
    }

    fn on_deliver(&mut self, session: usize, request: usize, reply: Reply) {
        if !self.awaits(session, request) {
            return;
        }
        if self.sessions[session].outside.is_some() {
            return self.outside_hears(session, request, reply);
        }
        let machine = self.sessions[session].machine;
        let frozen_ms = std::mem::take(&mut self.machines[machine].frozen_ms);
        if frozen_ms > 0 {
            self.step_wall(machine, -(frozen_ms as i64));
        }
        let look = self.look(session);
        if let Some(answer) = self.hear(look, request, reply) {
            self.sessions[session].flight = None;
            self.ended(session, request, answer);
        }
    }

    /// An operation of the store has ended with this answer.
    fn ended(&mut self, session: usize, request: usize, answer: Answer) {
        let look = self.look(session);
        if look.now.held {
            self.tally.fault(Kind::HeldClock);
        }
        let before = self.sessions[session].election.authority(look.now);
        self.oracle.looked(look, before, false);
        self.learns(look, request, &answer);
        let lost_time = self.hears(session, look.now, &answer);
        let shown = matches!(answer.outcome, Outcome::Found { .. } | Outcome::Unchanged);
        let facts = answer.facts;
        self.tell(session, Input::Answer(answer));
        self.check_heard(session, look.now, lost_time);
        if shown && self.sessions[session].alive {
            self.check_idle(session, look.now, &facts);
        }
    }

    /// What an answer says is known to its session from here on.
    pub fn learns(&mut self, look: Look, request: usize, answer: &Answer) {
        let session = look.session;
        let skew_ms = self.sessions[session].election.config().store_skew_ms;
        self.oracle.answered(look, self.requests[request].deed, answer, skew_ms);
        self.claims_heard(session, &answer.outcome);
        self.history.note(self.now_ms, || format!("s{session} {}", told::hears(answer, look.now)));
        self.requested(look, &answer.outcome);
    }

    fn on_work_ends(&mut self, session: usize, term: u64) {
        if self.sessions[session].trigger.is_some() {
            return self.job_stopped(session, term);
        }
        if self.sessions[session].alive {
            self.sessions[session].works.retain(|running| *running != term);
            self.tell(session, Input::WorkEnded { term });
        }
    }

    /// Whether its election is over while a job of its process goes on.
    fn lingers(&self, session: usize) -> bool {
        let Session { alive, works, trigger, .. } = &self.sessions[session];
        !alive && trigger.is_some() && !works.is_empty()
    }

    /// The work of a term looks at its authority, or carelessly does not, and writes.
    fn on_act(&mut self, session: usize, term: u64) {
        let Session { alive, works, machine, .. } = &self.sessions[session];
        if !(*alive || self.lingers(session)) || !works.contains(&term) {
            return;
        }
        let Machine { careless, config, .. } = &self.machines[*machine];
        let (careless, lease_ms) = (*careless, config.leader_timeout_ms);
        if careless || self.authority(session) == Some(term) {
            let travel_ms = self.chance.span(if careless { 3 * lease_ms } else { lease_ms / 4 });
            self.after(travel_ms, Event::ActArrives { session, term });
        }
        let next_ms = lease_ms / 2 + self.chance.below(lease_ms);
        self.after(next_ms, Event::Act { session, term });
    }

    /// Tells a session what happened, as the driver does: `handle`, then `poll` until it waits.
    pub fn tell(&mut self, session: usize, input: Input) {
        let Session { alive, outside, .. } = &self.sessions[session];
        if !alive || outside.is_some() {
            return;
        }
        let now = self.look(session).now;
        if matches!(input, Input::Resign) && self.sessions[session].stopping_ms.is_none() {
            let lease_ms = self.sessions[session].election.config().leader_timeout_ms;
            let look = self.look(session);
            self.oracle.resigns(look, lease_ms);
        }
        self.sessions[session].stopped |= matches!(input, Input::Stop { .. });
        if let Some(trigger) = &mut self.sessions[session].trigger {
            trigger.stopped |= matches!(input, Input::Resign | Input::Stop { .. });
            trigger.reconfigured |= matches!(input, Input::Configure(_));
        }
        if matches!(input, Input::Resign | Input::Stop { .. }) {
            // A clock that stands still between I/O may be behind by a whole pause.
            let machine = &self.machines[self.sessions[session].machine];
            let since_ms = machine.clocks.mono_ms(self.now_ms).max(now.mono_ms);
            self.sessions[session].stopping_ms.get_or_insert(since_ms);
        }
        if !matches!(input, Input::Answer(_)) {
            self.history.note(self.now_ms, || format!("s{session} is told {input:?}"));
        }
        let stepped = self.reads(session, now);
        let Session { liveness, election, .. } = &mut self.sessions[session];
        liveness.is_told(now, &input, election.config());
        election.handle(now, input);
        self.check_step_back(session, now, stepped);
        self.drain(session, now);
        self.drive(session);
    }

    /// The driver's loop: polls and carries out until the election waits.
    fn drive(&mut self, session: usize) {
        const TURNS: usize = 4;
        for _ in 0..TURNS {
            let look = self.look(session);
            let before = self.sessions[session].election.authority(look.now);
            self.oracle.looked(look, before, false);
            let stepped = self.reads(session, look.now);
            let step = self.sessions[session].election.poll(look.now);
            self.check_step_back(session, look.now, stepped);
            self.drain(session, look.now);
            let after = self.sessions[session].election.authority(look.now);
            self.oracle.looked(look, after, true);
            match step {
                Step::Wait { until_ms } => return self.wait(session, look, until_ms),
                Step::Finished => return self.finish(session),
                step => self.send(look, step),
            }
        }
        self.oracle.broke("no spinning", format!("s{session} never waits"));
    }

    fn wait(&mut self, session: usize, look: Look, until_ms: u64) {
        let ahead = until_ms > look.now.mono_ms;
        require!(self.oracle, ahead, "no spinning";
            "s{session} waits until {until_ms} at {}", look.now.mono_ms);
        if self.sessions[session].stopping_ms.is_some() {
            self.check_stop(look);
        }
        self.check_budget(look);
        let over = self.sessions[session].stopped && self.sessions[session].stopping_ms.is_none();
        require!(self.oracle, !over, "S12 a stop ends";
            "s{session} has given up and does not finish");
        let due = self.due(look, until_ms.min(look.now.mono_ms + LONGEST_SLEEP_MS));
        let state = &mut self.sessions[session];
        state.wakes += 1;
        state.wake = Some(due);
        let wakes = state.wakes;
        // The end of the request under way wakes the driver as well, and no later.
        if state.flight.as_ref().is_none_or(|flight| flight.due.true_ms > due.true_ms) {
            self.at(due.true_ms, Event::Wake { session, wakes });
        }
    }

    /// S12: a stop is bounded: by the fence while the work ends, by the request under way, then by
    /// the attempts of the tombstone.
    fn check_stop(&mut self, look: Look) {
        let state = &self.sessions[look.session];
        let config = state.election.config();
        let request_ms = config.request_timeout_ms.max(config.peer_timeout_ms);
        let most_ms = config.max_lease_ms + request_ms + config.attempts_ms() + 1_000;
        let since_ms = state.stopping_ms.unwrap_or(look.now.mono_ms);
        let passed_ms = look.now.mono_ms.saturating_sub(since_ms);
        require!(self.oracle, passed_ms <= most_ms, "S12 a stop is bounded";
            "s{} waits {passed_ms} ms after it was stopped", look.session);
    }

    pub fn due(&self, look: Look, mono_ms: u64) -> Due {
        let clocks = &self.machines[self.sessions[look.session].machine].clocks;
        Due { mono_ms, true_ms: clocks.true_when(self.now_ms, mono_ms) }
    }

    fn finish(&mut self, session: usize) {
        let machine = self.sessions[session].machine;
        let leads = self.authority(session).is_some();
        require!(self.oracle, !leads, "S12 finished without authority";
            "s{session} finished and still leads");
        let told = self.oracle.views[session].announced;
        require!(self.oracle, told.is_none(), "S10 lost is told";
            "s{session} finished and Lost({told:?}) was never told");
        let owed = self.sessions[session].stopping_ms.is_some();
        require!(self.oracle, !owed, "S12 given up once";
            "s{session} finished and GivenUp was never told");
        self.look_at_holds();
        self.kill(session);
        self.trigger_ends(session);
        if self.machines[machine].runs_for_long() && self.restarts {
            let lease_ms = self.machines[machine].config.leader_timeout_ms;
            let back_ms = self.chance.span(2 * lease_ms);
            self.trouble_until(self.now_ms + back_ms);
            self.after(back_ms, Event::Start { machine });
        }
    }

    fn drain(&mut self, session: usize, now: Now) {
        let mut drained = 0;
        while let Some(told) = self.sessions[session].election.next_event() {
            drained += 1;
            self.history.note(self.now_ms, || format!("s{session} says {told:?}"));
            if let Some(heard) = &mut self.told {
                heard.push((session, told.clone()));
            }
            match told {
                Told::Acquired { term } => {
                    self.check_begins(session, now, term);
                    let authority = self.sessions[session].election.authority(now);
                    let holds = authority.is_some_and(|authority| authority.term == term);
                    self.term_begins(session, term, holds);
                    self.job_begins(session, term);
                }
                Told::Lost { term, reason } => {
                    self.asked_to_end(session, now, reason);
                    self.term_ends(session, term, reason);
                    let runs_slots = self.sessions[session].trigger.is_some();
                    if runs_slots && reason == LostReason::Done {
                        continue;
                    }
                    let late_ms = self.machines[self.sessions[session].machine].work_end_ms;
                    let end_ms = self.chance.span(late_ms);
                    self.after(end_ms, Event::WorkEnds { session, term });
                }
                Told::NewLeader { leader_id } => {
                    self.oracle.told_leader(session, leader_id);
                }
                Told::Troubled(_)
                | Told::Solved
                | Told::InGrace { .. }
                | Told::Suspected { .. }
                | Told::Recovered { .. } => {
                    unreachable!("the driver tells these")
                }
                Told::GivenUp => {
                    self.given_up(session, now);
                }
                Told::SlotClosed { term, recorded } => {
                    let look = Look { session, now };
                    self.slot_closed(look, term, recorded);
                    // The end of a slot is also the end of a stop under its job.
                    self.sessions[session].liveness.gave_up();
                    self.sessions[session].stopping_ms = None;
                }
                Told::SlotsOver(why) => {
                    self.slots_over(Look { session, now }, why);
                    self.sessions[session].stopping_ms = None;
                }
                Told::Failed(_) => {
                    self.oracle.gave_up(session);
                    if let Some(trigger) = &mut self.sessions[session].trigger {
                        trigger.failed = true;
                    }
                }
            }
        }
        require!(self.oracle, drained <= 8, "bounded memory"; "{drained} events at once");
    }

    fn given_up(&mut self, session: usize, now: Now) {
        let state = &mut self.sessions[session];
        state.liveness.gave_up();
        let trigger = state.trigger.as_ref();
        // A store that fails ends the closing write of a slot as well.
        let ends = trigger.is_some_and(|trigger| trigger.failed || trigger.stopped);
        let told = state.stopping_ms.take().is_some();
        let requested = std::mem::take(&mut state.requested);
        if requested && !told {
            state.liveness.gave_up_untold(now, state.election.config());
        }
        let asked = requested || told || ends;
        require!(self.oracle, asked, "S12 given up once"; "s{session} was not asked to give up");
        self.check_all_is_over(session);
    }

    /// An operator's request ends a term as a resignation does.
    fn asked_to_end(&mut self, session: usize, now: Now, reason: LostReason) {
        if !matches!(reason, LostReason::SteppedDown | LostReason::Paused) {
            return;
        }
        let Session { liveness, election, stopping_ms, .. } = &mut self.sessions[session];
        let asked = match reason {
            LostReason::Paused => Input::Stop { park: false },
            _ => Input::Resign,
        };
        liveness.is_told(now, &asked, election.config());
        if stopping_ms.replace(now.mono_ms).is_none() {
            let rest_ms = rest_ms(reason, election.config());
            self.oracle.resigns(Look { session, now }, rest_ms);
        }
    }

    /// Its own record asks it to end a term, which it may not even know to have begun.
    pub fn requested(&mut self, look: Look, outcome: &Outcome) {
        let session = look.session;
        let Outcome::Found { reading: Reading::Lease(lease), .. } = outcome else { return };
        let Session { election, stopping_ms, liveness, .. } = &mut self.sessions[session];
        if self.oracle.is_asked_late(session, lease) && stopping_ms.is_none() {
            let config = election.config();
            let pauses = lease.operator.as_ref().is_some_and(|asked| asked.ask == Ask::Pause);
            let reason = if pauses { LostReason::Paused } else { LostReason::SteppedDown };
            self.oracle.resigns(look, rest_ms(reason, config));
            liveness.gave_up_untold(look.now, config);
        }
        let own = lease.session.as_ref() == Some(&self.oracle.views[session].name);
        if own && lease.operator.as_ref().is_some_and(|request| request.ask != Ask::Resume) {
            self.sessions[session].requested = true;
            if let Some(trigger) = &mut self.sessions[session].trigger {
                trigger.stopped = true;
            }
        }
    }

    fn check_begins(&mut self, session: usize, now: Now, term: u64) {
        let single = self.machines[self.sessions[session].machine].clocks.single;
        let rests = self.sessions[session].liveness.rests(single, now);
        require!(self.oracle, !rests, "S12 it sits out";
            "Acquired({term}) although it gave the leadership up");
    }

    /// A session says that a term of its own has begun.
    pub fn term_begins(&mut self, session: usize, term: u64, holds: bool) {
        let Session { works, trigger, outside, .. } = &self.sessions[session];
        // A session that runs slots lets its next job begin beside one that lingers.
        let idle = works.is_empty() || trigger.is_some();
        require!(self.oracle, idle, "S10 old work has stopped";
            "Acquired({term}) while that of {works:?} goes on");
        let by_machine = self.slots.is_some() && outside.is_none();
        self.oracle.told_acquired(session, term, holds);
        self.sessions[session].works.push(term);
        self.resource.begins(&mut self.oracle, session, term);
        self.after(1, Event::Act { session, term });
        self.tally.terms += 1;
        let another = |last: usize| match by_machine {
            // Each trigger is a session, and most of them hand over in peace.
            true => self.sessions[last].machine != self.sessions[session].machine,
            false => last != session,
        };
        self.tally.failovers += u64::from(self.last_leader.is_some_and(another));
        self.last_leader = Some(session);
    }

    /// A session says that its term is over.
    pub fn term_ends(&mut self, session: usize, term: u64, reason: LostReason) {
        let written = self.store.object.as_ref().and_then(|object| object.write);
        let written = written.filter(|_| !self.store.keeps_past);
        let own = written.map(|write| &self.oracle.deeds[write]);
        let own = own.filter(|deed| deed.session == session).map(|deed| deed.term);
        self.oracle.told_lost(session, (term, reason), own);
        if let Some(trigger) = &mut self.sessions[session].trigger {
            trigger.lost = true;
        }
    }
}

/// What is made of an operation that has taken too long.
pub fn no_answer() -> Answer {
    let cause = Fault::new(FaultKind::Timeout, "no answer in time");
    Answer { outcome: Outcome::Unknown { retry_after_ms: None, cause }, facts: Facts::default() }
}

/// For how long whoever gave the leadership up for this reason leaves it to others at least: a pause keeps all from it by itself.
pub fn rest_ms(reason: LostReason, config: &Config) -> u64 {
    if reason == LostReason::Paused { 0 } else { config.leader_timeout_ms }
}
