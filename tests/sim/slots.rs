//! Crons whose triggers run one job per slot: when they fire and where, what the jobs do, and what
//! each trigger reports in the end.

use edgelect::config::Config;
use edgelect::election::{Input, SlotsOver};
use edgelect::lease::Reading;
use edgelect::slots::{Missed, Policy, Schedule as Slots, ScheduleSettings, SlotEnd};
use edgelect::store::{Condition, Outcome};

use super::chance::Chance;
use super::clocks::EPOCH_MS;
use super::member::Session;
use super::oracle::{Aim, Look, Sight, View};
use super::report::Kind;
use super::slot_oracle::End;
use super::store::Shown;
use super::world::{Event, Turn, World};

/// One seed in so many runs slots.
const ONE_IN: u64 = 4;

/// Chosen so that no seed that ever broke a rule means another schedule than it did, nor the one
/// that finds the rarest of the planted bugs.
const SALT: u64 = 20859 << 40;

/// Of those, one in so many has a store without `Last-Modified`.
const ONE_UNMODIFIED_IN: u64 = 6;

/// Chosen as the other.
const UNMODIFIED_SALT: u64 = 847 << 40;

/// Whether the store of this seed's slots tells nobody when its object changed.
pub fn unmodified(seed: u64) -> bool {
    Chance::new(seed ^ UNMODIFIED_SALT).one_in(ONE_UNMODIFIED_IN)
        || (meddled(seed) && seed.is_multiple_of(2))
}

/// Whether the schedule of this seed runs slots.
pub fn drawn(seed: u64) -> bool {
    Chance::new(seed ^ SALT).one_in(ONE_IN)
}

/// One in so many schedules of slots has somebody who meddles with the object soon after a claim.
const ONE_MEDDLED_IN: u64 = 4;

/// Chosen as the others.
const MEDDLED_SALT: u64 = 3_294 << 40;

/// Whether somebody meddles with the object of this seed's slots.
pub fn meddled(seed: u64) -> bool {
    Chance::new(seed ^ MEDDLED_SALT).one_in(ONE_MEDDLED_IN)
}

/// What all triggers of one group share.
#[derive(Clone, Debug)]
pub struct Plan {
    pub policy: Policy,
    pub missed: Missed,
    pub period_ms: u64,
    /// The triggers say how long a period is.
    pub periodic: bool,
    /// The triggers say no slot, only that it is time for one.
    pub timers: bool,
    pub attempts: u64,
    pub budget_ms: u64,
    /// Within the budget any lease is waited out.
    pub patient: bool,
    /// How long before its slot a trigger may fire, by a clock that is off.
    pub early_ms: u64,
    pub early_per_mille: u64,
    pub late_per_mille: u64,
    pub doubled_per_mille: u64,
    pub skipped_per_mille: u64,
    pub fails_per_mille: u64,
    pub lease_ms: u64,
    pub meddled: bool,
    /// The newest slot that a trigger has asked for.
    pub asked_ms: u64,
}

impl Plan {
    pub fn draw(chance: &mut Chance, configs: &[&Config], lease_ms: u64, dated: bool) -> Self {
        let of = |of: &dyn Fn(&Config) -> u64| configs.iter().map(|c| of(c)).max().unwrap_or(0);
        let skew_ms = of(&|config| config.store_skew_ms);
        let least_ms = of(&|config| {
            config.grace_ms(lease_ms) + 2 * config.store_skew_ms + 4 * config.request_timeout_ms
        });
        let (patience_ms, patient) = match chance.one_in(4) {
            true => (chance.between(1_000, least_ms), false),
            false => (2 * least_ms + 2_000 + chance.below(lease_ms), true),
        };
        let policy = chance.pick(&[Policy::AtMostOnce, Policy::AtLeastOnce, Policy::AtLeastOnce]);
        let missed = chance.pick(&[Missed::Skip, Missed::Latest, Missed::All, Missed::All]);
        let periodic = missed != Missed::Skip || chance.one_in(2);
        Self {
            policy,
            missed,
            period_ms: lease_ms * chance.pick(&[10, 10, 11, 13, 20, 40]) / 10,
            periodic,
            timers: periodic && dated && chance.one_in(4),
            attempts: chance.pick(&[1, 2, 3, 3]),
            budget_ms: patience_ms.min(900_000),
            patient,
            early_ms: 3 * skew_ms,
            early_per_mille: chance.pick(&[0, 50, 500]),
            late_per_mille: chance.pick(&[0, 100, 300]),
            doubled_per_mille: chance.pick(&[0, 200, 600]),
            skipped_per_mille: chance.pick(&[0, 50, 300]),
            fails_per_mille: chance.pick(&[0, 0, 100, 500]),
            lease_ms,
            meddled: false,
            asked_ms: 0,
        }
    }

    /// How long a job takes; some would take for ever.
    fn job_ms(&self, chance: &mut Chance) -> u64 {
        match chance.below(8) {
            0 | 1 => 0,
            2 | 3 => chance.between(1, 200),
            4 | 5 => chance.span(2 * self.lease_ms),
            6 => chance.between(self.lease_ms, 2 * self.lease_ms),
            _ => self.period_ms + chance.span(self.period_ms),
        }
    }
}

/// How one job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    Failed,
    Lost,
}

impl Ended {
    /// The word for it in a record.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "failed",
            Self::Lost => "stopped",
        }
    }

    pub fn told(self, took_ms: u64) -> SlotEnd {
        let (done, failed) = (self == Self::Done, self == Self::Failed);
        SlotEnd { done, failed, result: self.word().to_owned(), took_ms }
    }
}

/// One job that a session began.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    pub slot_ms: u64,
    pub term: u64,
    pub ended: Option<Ended>,
}

/// One trigger: what it asked for and what became of it.
#[derive(Clone, Debug)]
pub struct Triggered {
    pub schedule: Slots,
    /// When it fired, in true time and by its own clock.
    pub began_ms: u64,
    pub began_mono_ms: u64,
    /// How much later than its budget says it may end, for what befell its host.
    pub forgiven_ms: u64,
    /// Other settings count since.
    pub reconfigured: bool,
    pub over: Option<SlotsOver>,
    pub runs: Vec<Ran>,
    /// What it told the election of the job of a term.
    pub told: Option<(u64, SlotEnd)>,
    /// When its newest closing write was over, by its own clock.
    pub closed_mono_ms: Option<u64>,
    /// Claims that left and whose job did not begin, and writes that count slots as claimed: what each was conditional
    /// on.
    pub claims: Vec<(usize, Condition)>,
    /// Whether one of them ever left.
    pub claimed: bool,
    pub lost: bool,
    pub failed: bool,
    /// It was told to stop.
    pub stopped: bool,
}

impl Triggered {
    pub fn new(schedule: Slots) -> Self {
        Self {
            schedule,
            began_ms: 0,
            began_mono_ms: 0,
            forgiven_ms: 0,
            reconfigured: false,
            over: None,
            runs: Vec::new(),
            told: None,
            closed_mono_ms: None,
            claims: Vec::new(),
            claimed: false,
            lost: false,
            failed: false,
            stopped: false,
        }
    }

    pub fn began(&self, slot_ms: u64) -> bool {
        self.runs.iter().any(|ran| ran.slot_ms == slot_ms)
    }

    /// Whether its job ran to a good end in this session.
    pub fn ended_well(&self, slot_ms: u64) -> bool {
        self.runs.iter().any(|ran| ran.slot_ms == slot_ms && ran.ended == Some(Ended::Done))
    }

    /// The job of a term has ended.
    pub fn ends(&mut self, term: u64, ended: Ended) {
        if let Some(ran) = self.runs.iter_mut().find(|ran| ran.term == term) {
            ran.ended = Some(ended);
        }
    }

    /// What the runner reports, word by word as `src/scheduled.rs` says it.
    pub fn outcome(&self, own_ms: Option<u64>) -> &'static str {
        let own = self.runs.iter().rev().find(|ran| Some(ran.slot_ms) == own_ms);
        match (own.map(|ran| ran.ended), self.over) {
            (None, _) if self.failed => "an error",
            (Some(Some(Ended::Done)), _) => "done",
            (Some(Some(Ended::Failed)), _) => "failed",
            (Some(_), _) | (None, Some(SlotsOver::Ran | SlotsOver::Lost)) => "lost",
            (None, Some(SlotsOver::Taken)) => "taken",
            (None, Some(SlotsOver::Unknown)) => "unknown",
            (None, _) => "skipped",
        }
    }
}

impl World {
    /// The time of a slot by the all-seeing clock.
    fn slot_true_ms(slot_ms: u64) -> u64 {
        slot_ms.saturating_sub(EPOCH_MS)
    }

    fn slot_runners(&self) -> Vec<usize> {
        (0..self.machines.len()).filter(|m| self.machines[*m].runs_slots).collect()
    }

    /// The first slot after the schedule has begun.
    pub fn first_slot(&mut self) {
        let Some(plan) = &self.slots else { return };
        let slot_ms = (EPOCH_MS / plan.period_ms + 1) * plan.period_ms;
        self.at(Self::slot_true_ms(slot_ms).saturating_sub(plan.early_ms), Event::Slot { slot_ms });
    }

    /// A slot comes near: its triggers are drawn.
    pub fn on_slot(&mut self, slot_ms: u64) {
        let Some(mut plan) = self.slots.take() else { return };
        let next_ms = slot_ms + plan.period_ms;
        let at_ms = Self::slot_true_ms(next_ms).saturating_sub(plan.early_ms);
        self.at(at_ms, Event::Slot { slot_ms: next_ms });
        let due_ms = Self::slot_true_ms(slot_ms);
        let skipped = !self.healed && self.chance.per_mille(plan.skipped_per_mille);
        let runners = self.slot_runners();
        if skipped {
            self.tally.fault(Kind::SlotSkipped);
        }
        let mut triggers = u64::from(!skipped);
        while triggers > 0 && triggers < 5 && self.chance.per_mille(plan.doubled_per_mille) {
            self.tally.fault(Kind::SlotDoubled);
            triggers += 1;
        }
        for _ in 0..triggers {
            let machine = self.chance.pick(&runners);
            let fires_ms = if self.healed {
                due_ms + self.chance.span(500)
            } else if self.chance.per_mille(plan.early_per_mille) {
                self.tally.fault(Kind::SlotEarly);
                due_ms.saturating_sub(self.chance.span(plan.early_ms))
            } else if self.chance.per_mille(plan.late_per_mille) {
                self.tally.fault(Kind::SlotLate);
                due_ms + self.chance.span(3 * plan.period_ms)
            } else {
                due_ms + self.chance.span(500)
            };
            plan.asked_ms = plan.asked_ms.max(slot_ms);
            self.trouble_until(fires_ms);
            self.at(fires_ms, Event::Trigger { machine, slot_ms });
        }
        self.slots = Some(plan);
    }

    /// A copy of the newest trigger comes late, and finds another record than the first did.
    pub fn late_double(&mut self) {
        let Some(plan) = &self.slots else { return };
        let late_ms = if plan.meddled { plan.early_ms / 6 } else { 2 * plan.lease_ms };
        let slot_ms = plan.asked_ms;
        // What a cache says of the time must not hide what ran before.
        if self.store.object.is_none() && self.chance.one_in(2) {
            self.old_dates_until_ms = self.now_ms + self.chance.span(late_ms);
        }
        let runners = self.slot_runners();
        for _ in 0..2 {
            if slot_ms > 0 && self.chance.one_in(2) {
                let machine = self.chance.pick(&runners);
                let in_ms = self.chance.span(late_ms);
                self.tally.fault(Kind::SlotDoubled);
                self.trouble_until(self.now_ms + in_ms);
                self.after(in_ms, Event::Trigger { machine, slot_ms });
            }
        }
    }

    pub fn on_trigger(&mut self, machine: usize, slot_ms: u64) {
        let Some(plan) = &self.slots else { return };
        let settings = ScheduleSettings {
            slot_ms: (!plan.timers).then_some(slot_ms),
            period_ms: plan.periodic.then_some(plan.period_ms),
            policy: Some(plan.policy),
            missed: Some(plan.missed),
            attempts: Some(plan.attempts),
            budget_ms: Some(plan.budget_ms.max(self.machines[machine].config.take_over_ms())),
            subrequests: None,
        };
        let schedule = Slots::new(&settings, &self.machines[machine].config);
        let schedule = schedule.expect("a group's plan keeps the rules");
        self.tally.fault(Kind::SlotTrigger);
        if self.machines[machine].outside {
            return self.calls.triggers.push(schedule);
        }
        self.start_with(machine, Some(schedule));
    }

    /// A term for a slot began: its job does.
    pub fn job_begins(&mut self, session: usize, term: u64) {
        let own_ms = self.sessions[session].election.own_slot_ms();
        let slot_ms = self.sessions[session].election.slot_ms();
        let previous = self.sessions[session].election.previous_slot().cloned();
        if self.sessions[session].trigger.is_none() {
            return;
        }
        let slot_ms = slot_ms.unwrap_or(0);
        self.oracle.check_previous(session, previous.as_ref());
        let again = self.slot_runs(session, (slot_ms, term));
        self.history.note(self.now_ms, || {
            let slot_ms = slot_ms as i64 - EPOCH_MS as i64;
            format!("s{session} runs the job of slot {:.3}s in term {term}", slot_ms as f64 / 1e3)
        });
        self.tally.fault(match own_ms.is_some_and(|(own_ms, _)| own_ms != slot_ms) {
            _ if again => Kind::SlotRerun,
            true => Kind::SlotMissed,
            false => Kind::SlotRun,
        });
        let Some(plan) = &self.slots else { return };
        let job_ms = match self.healed {
            true => self.chance.span(plan.lease_ms / 20),
            false => plan.job_ms(&mut self.chance),
        };
        if plan.meddled && !self.healed && self.chance.one_in(2) {
            let in_ms = self.chance.span(plan.early_ms / 6);
            self.trouble_until(self.now_ms + in_ms);
            self.after(in_ms, Event::Turn(Turn::Meddle));
        }
        self.trouble_until(self.now_ms + job_ms);
        self.after(job_ms, Event::JobEnds { session, term });
    }

    /// A session runs a slot in a term; whether that is a rerun.
    pub fn slot_runs(&mut self, session: usize, (slot_ms, term): (u64, u64)) -> bool {
        let Some(trigger) = &mut self.sessions[session].trigger else { return false };
        let again = self.oracle.slot_begins(session, (slot_ms, term), trigger);
        trigger.claims.clear();
        trigger.runs.push(Ran { slot_ms, term, ended: None });
        again
    }

    /// A job has ended by itself.
    pub fn on_job_ends(&mut self, session: usize, term: u64) {
        let Session { alive, works, .. } = &self.sessions[session];
        let leads = self.oracle.views[session].announced == Some(term);
        if !alive || !leads || !works.contains(&term) {
            return;
        }
        let fails = self.slots.as_ref().map_or(0, |plan| plan.fails_per_mille);
        let fails = !self.healed && self.chance.per_mille(fails);
        // Without authority at this look it is dropped, and its end is nobody's (`with_authority`).
        let ended = match (self.authority(session) == Some(term), fails) {
            (false, _) => Ended::Lost,
            (true, true) => Ended::Failed,
            (true, false) => Ended::Done,
        };
        self.job_ended(session, term, ended);
    }

    /// Whatever the job of a term was doing, nothing of it goes on.
    pub fn job_ended(&mut self, session: usize, term: u64, ended: Ended) {
        let Self { sessions, tally, .. } = self;
        let state = &mut sessions[session];
        state.works.retain(|running| *running != term);
        let Some(trigger) = &mut state.trigger else { return };
        trigger.ends(term, ended);
        if !state.alive {
            return;
        }
        tally.fault(match ended {
            Ended::Done => Kind::SlotDone,
            Ended::Failed => Kind::SlotFailed,
            Ended::Lost => Kind::SlotStopped,
        });
        let end = ended.told(term % 1_000);
        trigger.told = Some((term, end.clone()));
        self.oracle.slots.ended.insert((session, term), ended);
        trigger.closed_mono_ms = None;
        self.tell(session, Input::SlotEnded { term, end });
    }

    /// The work of a lost term has stopped.
    pub fn job_stopped(&mut self, session: usize, term: u64) {
        if self.sessions[session].works.contains(&term) {
            // Told to stop, it may still come to its end.
            let done = self.sessions[session].stopped && self.chance.one_in(4);
            self.job_ended(session, term, if done { Ended::Done } else { Ended::Lost });
        }
    }

    /// What an answer says of the claims of a session whose jobs did not begin.
    pub fn claims_heard(&mut self, session: usize, outcome: &Outcome) {
        let Self { oracle, sessions, .. } = self;
        let Some(trigger) = &mut sessions[session].trigger else { return };
        let other = match outcome {
            Outcome::Missing => true,
            // A body that nobody can read does not say whose it is.
            Outcome::Found { reading: Reading::Unreadable(..), .. } => false,
            Outcome::Found { version, .. } => !trigger.claims.iter().any(|(deed, seen)| {
                oracle.deeds[*deed].version == *version
                    || *seen == Condition::Match(version.clone())
            }),
            _ => false,
        };
        if other {
            trigger.claims.clear();
        }
    }

    /// The closing write of a slot is over.
    pub fn slot_closed(&mut self, look: Look, term: u64, recorded: bool) {
        if let Some(trigger) = &mut self.sessions[look.session].trigger {
            trigger.closed_mono_ms = Some(look.now.mono_ms);
        }
        if recorded {
            self.slot_recorded(look.session, term);
        }
    }

    /// A session says that the end of a slot is in the store.
    pub fn slot_recorded(&mut self, session: usize, term: u64) {
        self.tally.fault(Kind::SlotRecorded);
        let written = self.oracle.closed(session, term);
        require!(self.oracle, written, "slot: what is recorded is in the store";
            "s{session} says that the end of term {term} is recorded");
    }

    pub fn slots_over(&mut self, look: Look, why: SlotsOver) {
        let own = self.sessions[look.session].election.own_slot_ms();
        let version = self.oracle.views[look.session].sight.as_ref().map(|s| s.version.clone());
        let born_ms = version.and_then(|version| self.store.born_ms(&version));
        let front_ms = self.store.manners.front_end_ms.iter().max().copied().unwrap_or(0);
        let skew_ms = self.sessions[look.session].election.config().store_skew_ms;
        let through_ms = born_ms.map(|ms| EPOCH_MS + ms + front_ms + 2 * skew_ms + 2_000);
        let grace_ms = self.sessions[look.session].election.config().grace_ms(0);
        // Damaged for longer than the grace, it is healed like any other that nobody can read (S7).
        let healable = born_ms.is_some_and(|ms| 2 * (self.now_ms - ms) >= grace_ms);
        let Some(trigger) = &mut self.sessions[look.session].trigger else { return };
        let (own_ms, stale) = (own.map(|(slot_ms, _)| slot_ms), self.store.keeps_past);
        let end = End { why, own_ms, through_ms, healable, stale };
        self.oracle.told_over(look, trigger, &end);
        trigger.over = Some(why);
    }

    /// The session of a trigger has ended: what it reports, held against what may still happen.
    pub fn trigger_ends(&mut self, session: usize) {
        let Session { trigger, election, .. } = &self.sessions[session];
        let Some(trigger) = trigger else { return };
        let own_ms = election.own_slot_ms().map(|(slot_ms, _)| slot_ms);
        let outcome = trigger.outcome(own_ms);
        self.reports(session, outcome);
    }

    /// The same of what anybody reports of it.
    pub fn reports(&mut self, session: usize, outcome: &str) {
        let Session { trigger, election, .. } = &self.sessions[session];
        let Some(trigger) = trigger else { return };
        let own_ms = election.own_slot_ms().map(|(slot_ms, _)| slot_ms);
        self.history.note(self.now_ms, || format!("s{session} reports {outcome}"));
        let object = self.store.object.as_ref();
        let covers = |(deed, _): &(usize, Condition)| {
            let deed = &self.oracle.deeds[*deed];
            deed.aim == Aim::Cover && deed.landed_ms.is_some()
        };
        let covered = trigger.claims.iter().any(covers);
        let ran_later = |own_ms| trigger.runs.iter().any(|ran| ran.slot_ms > own_ms);
        let later = trigger.over == Some(SlotsOver::Taken) && own_ms.is_some_and(ran_later);
        let may_land = |(deed, seen): &&(usize, Condition)| {
            let deed = &self.oracle.deeds[*deed];
            let holds = match (seen, object) {
                (Condition::Match(version), Some(object)) => object.version == *version,
                _ => false,
            };
            let lands = deed.landed_ms.is_some() || (deed.under_way > 0 && holds);
            let over = matches!(trigger.over, Some(SlotsOver::NewGroup | SlotsOver::Ahead { .. }));
            // What its own cover has followed is told with it: the slot is over, and nobody has begun it.
            let told = over && (deed.aim == Aim::Cover || covered);
            // Its own slot was claimed before the later one that it ran again: a cover since says nothing new of it.
            let told = told || (later && deed.aim == Aim::Cover);
            lands && !told && (deed.lease.slot == own_ms || deed.aim == Aim::Cover)
        };
        let claim = trigger.claims.iter().find(may_land).map(|(deed, _)| *deed);
        let silent = matches!(outcome, "skipped" | "taken") && !self.store.keeps_past;
        self.tally.fault(match outcome {
            "taken" => Kind::SlotTaken,
            "unknown" => Kind::SlotUnknown,
            "lost" => Kind::SlotLost,
            "skipped" => Kind::SlotWaited,
            _ => Kind::SlotReported,
        });
        require!(self.oracle, claim.is_none() || !silent, "slot: unknown is told";
            "s{session} reports {outcome}, while its claim {claim:?} landed or may land");
        // Whatever was read since: its claim has landed, and nobody has begun the job.
        let lost = own_ms.filter(|slot_ms| self.oracle.claimed_in_vain(session, *slot_ms));
        let told = !matches!(outcome, "skipped" | "taken");
        require!(self.oracle, told || lost.is_none(), "slot: a lost job is told";
            "s{session} reports {outcome} of its slot, which it has claimed and nobody has begun");
        // Its own claim, too late for its job, is the newest that it was shown.
        let View { sight, name, .. } = &self.oracle.views[session];
        let late = |sight: &Sight| match &sight.shown {
            Shown::Lease(lease) => {
                let open = (lease.slot, lease.slot_done) == (own_ms, Some(false));
                open && lease.session.as_ref() == Some(name)
            }
            Shown::Other(_) => false,
        };
        let idle = own_ms.is_some_and(|slot_ms| !trigger.began(slot_ms));
        let late = idle && sight.as_ref().is_some_and(late);
        require!(self.oracle, !late || !matches!(outcome, "skipped" | "taken"), "slot: a late claim is told";
            "s{session} reports {outcome} of its slot, which it has claimed");
    }

    /// A trigger ends within its budget, what its last claim may take, and a request once it leads nothing.
    pub fn check_budget(&mut self, look: Look) {
        let Session { trigger, election, works, .. } = &self.sessions[look.session];
        let Some(trigger) = trigger else { return };
        let leads = self.oracle.views[look.session].announced.is_some() || !works.is_empty();
        let closing = trigger.told.as_ref().is_some_and(|_| trigger.closed_mono_ms.is_none());
        if leads || closing || trigger.reconfigured || trigger.stopped {
            return;
        }
        let config = election.config();
        let from_ms = trigger.began_mono_ms + trigger.schedule.budget_ms;
        let from_ms = from_ms.max(trigger.closed_mono_ms.unwrap_or(0));
        let most_ms = from_ms
            + 2 * config.attempts_ms()
            + config.request_timeout_ms
            + trigger.forgiven_ms
            + 100;
        require!(self.oracle, look.now.mono_ms <= most_ms, "slot: the budget";
            "s{} waits at {}, due by {most_ms}", look.session, look.now.mono_ms);
    }
}
