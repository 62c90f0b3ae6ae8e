//! What a session must not leave undone: to give a term up that its clock no longer measures, to
//! sit out after it gave the leadership up, to claim a lease that was shown to have run out.

use edgelect::clock::Now;
use edgelect::config::Config;
use edgelect::election::Input;
use edgelect::lease::Ask;
use edgelect::store::{Answer, Facts, Outcome, Version};

use super::world::World;

/// Since when a session has been shown one version, by the clock that counts.
#[derive(Clone, Debug)]
struct Watch {
    version: Version,
    mono_ms: u64,
    date_ms: Option<u64>,
    modified_ms: Option<u64>,
    /// The `Date` may be an old one.
    relayed: bool,
}

/// The observer's notes on one session.
#[derive(Default)]
pub struct Liveness {
    mono_ms: u64,
    early_timers: u32,
    dated: Option<(u64, u64)>,
    giving_up: bool,
    sits_out_until_ms: u64,
    /// By when a pause is over that followed a term which nobody was told of. When it began nothing tells.
    may_sit_out_until_ms: u64,
    watch: Option<Watch>,
    idle: u32,
    /// Of how many answers since its last write it has made nothing.
    since_write: Option<u32>,
}

impl Liveness {
    /// A reading that the election is about to get; whether a single clock stepped back before it.
    pub fn reads(&mut self, single: bool, now: Now) -> bool {
        let stepped = single && self.stepped_back(now);
        (self.mono_ms, self.early_timers) = (now.mono_ms, now.early_timers);
        if let Some(watch) = self.watch.as_mut().filter(|_| stepped) {
            (watch.mono_ms, watch.date_ms) = (now.mono_ms, None);
        }
        if stepped {
            // What an answer said at this very reading was said after the step.
            self.dated = self.dated.filter(|(_, mono_ms)| *mono_ms == now.mono_ms);
        }
        stepped
    }

    fn stepped_back(&self, now: Now) -> bool {
        now.mono_ms < self.mono_ms || now.early_timers != self.early_timers
    }

    /// An answer that the election is about to get; whether its `Date` moved on by 2 s more than a
    /// single clock (S11).
    fn hears(&mut self, now: Now, answer: &Answer) -> bool {
        let heard = !matches!(answer.outcome, Outcome::Unknown { .. });
        if matches!(answer.outcome, Outcome::Missing | Outcome::Written { .. }) {
            self.watch = None;
        }
        if self.stepped_back(now) {
            self.dated = None;
        }
        let Some(date_ms) = answer.facts.date_ms.filter(|_| heard) else { return false };
        let ahead_ms = |(date_before_ms, mono_before_ms): (u64, u64)| {
            let moved_ms = date_ms as i64 - date_before_ms as i64;
            moved_ms - (now.mono_ms as i64 - mono_before_ms as i64)
        };
        let apart_ms = self.dated.map_or(0, ahead_ms);
        let learned = !matches!(answer.outcome, Outcome::Rejected(_));
        if learned && (!answer.facts.cached || apart_ms >= -2_000) {
            self.dated = Some((date_ms, now.mono_ms));
        }
        apart_ms > 2_000
    }

    pub fn is_told(&mut self, now: Now, input: &Input, config: &Config) {
        match input {
            // One that meets a giving up begins the pause anew.
            Input::Resign => {
                // Never for less than it has said before, by another lease.
                self.sits_out_until_ms = self.sits_out_until_ms.max(now.mono_ms + rest_ms(config));
                self.giving_up = true;
                // Its turn to claim comes anew as well: what it was shown before obliges it to nothing.
                self.idle = 0;
            }
            Input::Stop { .. } => self.giving_up = true,
            // A claim that has not left yet is judged again.
            Input::Configure(_) => self.idle = 0,
            _ => {}
        }
    }

    pub fn gave_up(&mut self) {
        self.giving_up = false;
    }

    /// An operator's request ends a term as a resignation does, also one that was not known to have begun (a claim without
    /// an answer, read back with the request in it). No `Lost` tells of that one, only its end.
    pub fn gave_up_untold(&mut self, now: Now, config: &Config) {
        self.may_sit_out_until_ms = now.mono_ms + rest_ms(config);
    }

    /// Whether no term may begin: it is giving the leadership up, or sits out.
    pub fn rests(&self, single: bool, now: Now) -> bool {
        // A single clock that steps shortens its own pause.
        self.giving_up || (!single && now.mono_ms < self.sits_out_until_ms)
    }

    /// For how long the session has been shown this version.
    fn watches(&mut self, version: Version, single: bool, now: Now, facts: &Facts) -> u64 {
        let here = Watch {
            version,
            mono_ms: now.mono_ms,
            date_ms: facts.date_ms,
            modified_ms: facts.last_modified_ms,
            relayed: facts.relayed,
        };
        let watch = match self.watch.take() {
            // A copy of its creation can bring a version back after a deletion.
            Some(watch) if watch.modified_ms.is_some() && here.modified_ms > watch.modified_ms => {
                here
            }
            Some(watch) if watch.version == here.version => {
                let better = (watch.relayed || watch.date_ms.is_none()) && !facts.relayed;
                if single && better { here } else { watch }
            }
            _ => here,
        };
        let own_ms = now.mono_ms.saturating_sub(watch.mono_ms);
        let passed_ms = match (watch.date_ms, facts.date_ms) {
            (Some(from_ms), Some(to_ms)) if single && !watch.relayed && !facts.relayed => {
                own_ms.min(to_ms.saturating_sub(from_ms))
            }
            _ if single => 0,
            _ => own_ms,
        };
        self.watch = Some(watch);
        passed_ms
    }
}

/// How long who resigned leaves the lease to others.
fn rest_ms(config: &Config) -> u64 {
    config.leader_timeout_ms + config.frequent_interval_ms
}

impl World {
    fn single(&self, session: usize) -> bool {
        self.machines[self.sessions[session].machine].clocks.single
    }

    /// S11: after a step back that the election could see, no authority is left.
    pub fn reads(&mut self, session: usize, now: Now) -> bool {
        let single = self.single(session);
        self.sessions[session].liveness.reads(single, now)
    }

    pub fn check_step_back(&mut self, session: usize, now: Now, stepped: bool) {
        if stepped {
            let still = self.sessions[session].election.authority(now);
            require!(self.oracle, still.is_none(), "S11 a step back ends the term";
                "{still:?} after a step back");
        }
    }

    /// Whether the answer shows that a single clock lost time.
    pub fn hears(&mut self, session: usize, now: Now, answer: &Answer) -> bool {
        self.sessions[session].liveness.hears(now, answer) && self.single(session)
    }

    /// What must hold once the election has dealt with an answer.
    pub fn check_heard(&mut self, session: usize, now: Now, lost_time: bool) {
        if lost_time && self.sessions[session].alive {
            let still = self.sessions[session].election.authority(now);
            require!(self.oracle, still.is_none(), "S11 a Date ahead ends the term";
                "{still:?} after a Date that moved on by 2 s more");
        }
    }

    /// S6: whoever was shown again and again that a lease ran out, by own watching alone, claims it. A claim that was refused is
    /// read back, and looked at once more before the next.
    pub fn check_idle(&mut self, session: usize, now: Now, facts: &Facts) {
        let single = self.single(session);
        let view = &self.oracle.views[session];
        // Where old states are shown, a version can come back that nobody has been watching.
        let Some(sight) = view.sight.as_ref().filter(|_| !self.store.keeps_past) else { return };
        let (version, lease) = (sight.version.clone(), sight.shown.lease());
        let foreign = lease.filter(|lease| lease.session.as_deref() != Some(view.name.as_str()));
        let own_lease_ms = self.sessions[session].election.config().leader_timeout_ms;
        let skew_ms = self.sessions[session].election.config().store_skew_ms;
        let lease_ms =
            foreign.map(|lease| match (lease.lease_ms.unwrap_or(own_lease_ms), lease.term) {
                (ms, Some(_)) => ms,
                // What it counts as must not be ahead of storage time (S2).
                (ms, None) => ms.max(skew_ms + 2_000),
            });
        let Self { sessions, requests, oracle, .. } = self;
        let state = &mut sessions[session];
        let passed_ms = state.liveness.watches(version, single, now, facts);
        let due_ms = lease_ms.map(|ms| if single { ms + 2 * skew_ms + 2_000 } else { ms });
        let writes = state.flight.as_ref().is_some_and(|flight| {
            let request = &requests[flight.awaited];
            request.deed.is_some()
        });
        // Before an old `Date` no slot is known to be due.
        let undue = state.trigger.is_some() && facts.cached;
        // A wrong one proves what a single clock may not believe.
        let undue = undue || oracle.contract.late_dates;
        let paused = oracle.shown_lease(session).and_then(|lease| lease.operator.as_ref());
        let may_rest = undue
            || paused.is_some_and(|request| request.ask == Ask::Pause)
            // Nobody competes while work of its last term goes on.
            || !state.works.is_empty()
            || state.liveness.giving_up
            || state.stopping_ms.is_some()
            || now.mono_ms < state.liveness.sits_out_until_ms
            || now.mono_ms < state.liveness.may_sit_out_until_ms;
        let since_write = state.liveness.since_write.map(|answers| answers.saturating_add(1));
        state.liveness.since_write = if writes { Some(0) } else { since_write };
        let idle = due_ms.is_some_and(|due_ms| passed_ms >= due_ms) && !writes && !may_rest;
        state.liveness.idle = if idle { state.liveness.idle + 1 } else { 0 };
        let few = state.liveness.idle < 2 || since_write.is_some_and(|answers| answers <= 2);
        require!(self.oracle, few, "S6 a proven age is used";
            "s{session} was shown again and again that the lease ran out and claimed nothing");
    }
}
