//! What befalls the members, the clocks and the object in a schedule, until it heals.

use edgelect::Follow;
use edgelect::calendar;
use edgelect::config::{Config, Settings};
use edgelect::election::Input;
use edgelect::lease::Reading;

use super::clocks::EPOCH_MS;
use super::member::{Cut, Session};
use super::network::{Trouble, Weather};
use super::report::Kind;
use super::schedule::{Blow, RAISED_SKEW_MS, Schedule, foreign_record};
use super::store::{Object, Shown};
use super::world::{Event, Turn, World};

/// What a store that is out of order, or something before it, may say to every request for a while.
const LASTING: [Trouble; 6] = [
    Trouble::Reset,
    Trouble::ServerError,
    Trouble::TooMany,
    Trouble::Denied,
    Trouble::Denied,
    Trouble::Conflict,
];

impl Schedule {
    /// One blow, and the time of the next.
    pub fn strike(&mut self) {
        if self.world.healed {
            return;
        }
        let (again, left) = self.crash_loop;
        if left > 0 {
            self.crash_loop.1 = left - 1;
            let next_ms = self.world.chance.between(1, self.lease_ms / 2);
            self.world.after(next_ms, Event::Turn(Turn::Chaos));
            return self.world.crash(again, 1);
        }
        let next_ms = self.world.chance.between(1, 2 * self.pace_ms);
        self.world.after(next_ms, Event::Turn(Turn::Chaos));
        if self.blows.is_empty() {
            return;
        }
        let blow = self.world.chance.pick(&self.blows.clone());
        let machine = self.world.chance.below(self.world.machines.len() as u64) as usize;
        // Those who bring members decide themselves when these end, resign and change.
        let own = [Blow::Crash, Blow::CrashLoop, Blow::Stop, Blow::Configure];
        if self.world.machines[machine].outside && own.contains(&blow) {
            return;
        }
        self.world.history.note(self.world.now_ms, || format!("*** {blow:?} m{machine}"));
        match blow {
            Blow::Crash => {
                let back_ms = 1 + self.world.chance.span(2 * self.lease_ms);
                self.world.crash(machine, back_ms);
            }
            Blow::CrashLoop => self.crash_loop = (machine, self.world.chance.between(2, 8)),
            Blow::Pause => {
                let pause_ms = self.world.chance.span(3 * self.lease_ms);
                self.world.pause(machine, pause_ms);
            }
            Blow::Busy => {
                let machine = self.single_clock(machine);
                let busy_ms = self.world.chance.between(1, self.lease_ms);
                // Mostly while an answer is on its way, which may meet a held clock (S11).
                match self.world.chance.one_in(4) {
                    true => self.world.pause(machine, busy_ms),
                    false => self.world.machines[machine].busy_ms = busy_ms,
                }
            }
            Blow::Suspend => {
                let sleep_ms = self.world.chance.span(3 * self.lease_ms);
                self.world.suspend(machine, sleep_ms);
            }
            Blow::StepBack => self.step_back(machine),
            Blow::StepForward => {
                // The rules that a step meets are mostly those of hosts with one clock.
                let single = self.world.chance.one_in(2);
                let machine = if single { self.single_clock(machine) } else { machine };
                self.step_forward(machine);
            }
            Blow::Resign => self.resign_in_doubt(machine),
            Blow::Stop => self.stop(machine),
            Blow::Configure => self.configure(machine),
            Blow::CutMember => {
                let cut = self.draw_cut();
                self.world.trouble_until(cut.until_ms);
                self.world.machines[machine].cut = cut;
            }
            Blow::Outage => {
                let cut = self.draw_cut();
                self.world.trouble_until(cut.until_ms);
                self.world.outage = cut;
            }
            Blow::RollBack => self.roll_back(),
            Blow::Delete => self.delete(),
            Blow::Garbage | Blow::Foreign | Blow::NewerFormat => self.tamper(blow),
        }
    }

    fn step_back(&mut self, machine: usize) {
        let step_ms = self.world.chance.span(4 * self.lease_ms);
        let machines = &self.world.machines;
        let single = machines.iter().position(|one| one.outside && one.clocks.single);
        // One of much less than a lease shows itself before a term is over.
        let step_ms = single.map_or(step_ms, |_| step_ms.max(self.lease_ms / 2));
        self.world.step_wall(single.unwrap_or(machine), -(step_ms as i64));
    }

    /// Soon after a slot was claimed nothing but the time of the change tells the next trigger of it.
    pub fn meddle(&mut self) {
        if self.world.healed {
            return;
        }
        self.world.history.note(self.world.now_ms, || "*** somebody meddles".to_owned());
        let (garbage, again) = (self.world.chance.one_in(4), self.world.chance.one_in(2));
        self.tamper(if garbage { Blow::Garbage } else { Blow::Delete });
        // Where old states are shown, the time of a change may be that of its first life (docs/proof.md).
        if again && !garbage && !self.world.store.keeps_past {
            let held_up_ms = self.world.chance.span(200);
            self.world.creation_comes_again(held_up_ms);
        }
    }

    fn delete(&mut self) {
        self.tamper(Blow::Delete);
        let world = &mut self.world;
        let told = world.oracle.contract.changes_told && !world.store.keeps_past;
        if world.chance.one_in(3) && told && world.slots.is_none() {
            let held_up_ms = world.chance.span(self.lease_ms);
            world.creation_comes_again(held_up_ms);
        }
    }

    /// Any machine with one clock only, if there is one.
    fn single_clock(&mut self, otherwise: usize) -> usize {
        let machines = self.world.machines.iter().enumerate();
        let single = machines.filter(|(_, machine)| machine.clocks.single);
        let single: Vec<usize> = single.map(|(number, _)| number).collect();
        if single.is_empty() { otherwise } else { self.world.chance.pick(&single) }
    }

    /// A single clock's step is seen beside a `Date` from 6 s on: 2 s of tolerance, a second of
    /// rounding, and front ends that differ. Before a session has heard of any `Date` one step of
    /// `storeSkew` is allowed for (S11).
    fn step_forward(&mut self, machine: usize) {
        let single = self.world.machines[machine].clocks.single;
        let oracle = &self.world.oracle;
        let mut sessions = self.world.sessions.iter().enumerate();
        let dated = oracle.contract.always_dated
            || sessions.all(|(number, session)| {
                !session.alive
                    || session.machine != machine
                    || oracle.views[number].latest_date_ms.is_some()
            });
        let step_ms = self.world.chance.span(4 * self.lease_ms);
        let skew_ms = self.world.machines[machine].config.store_skew_ms;
        let step_ms = match (single && !self.wild, dated) {
            // Nothing is left that could tell a wrong `Date` from a step.
            (true, _) if oracle.contract.late_dates => return,
            (true, true) => 6_000 + step_ms,
            (true, false) if self.stepped_forward => return,
            (true, false) => skew_ms,
            _ => step_ms,
        };
        self.stepped_forward |= single;
        self.world.step_wall(machine, step_ms as i64);
        // A suspend and a clock put right hide from both clocks of a host: beyond S11.
        let put_right = !single && (self.wild || !self.blows.contains(&Blow::Suspend));
        if put_right && self.world.chance.one_in(2) {
            let interval_ms = self.world.machines[machine].config.frequent_interval_ms;
            let in_ms = self.world.chance.between(1, interval_ms);
            let step_ms = -(step_ms as i64);
            self.world.after(in_ms, Event::PutRight { machine, step_ms });
        }
    }

    /// Rarely a claim is under way at a given instant, and that is when a resignation matters.
    fn resign_in_doubt(&mut self, otherwise: usize) {
        let World { oracle, sessions, .. } = &self.world;
        let claims = |session: &usize| sessions[*session].alive && oracle.claims(*session);
        let doubtful = (0..sessions.len()).rfind(claims);
        let machine = doubtful.map_or(otherwise, |session| sessions[session].machine);
        self.resign(machine);
        if doubtful.is_some() && self.world.chance.one_in(2) {
            // Nobody knows how that claim ended before the resignation is over.
            let attempts_ms = self.world.machines[machine].config.attempts_ms();
            let until_ms = self.world.now_ms + attempts_ms + attempts_ms / 8;
            self.world.trouble_until(until_ms);
            let cut = Cut { until_ms, answers: true, ..Cut::default() };
            self.world.machines[machine].cut = cut;
        }
    }

    fn resign(&mut self, machine: usize) {
        for session in self.world.sessions_of(machine) {
            self.world.tally.fault(Kind::Resign);
            self.world.tell(session, Input::Resign);
        }
    }

    fn stop(&mut self, machine: usize) {
        let park = self.world.machines[machine].cron.is_some() || self.world.chance.one_in(4);
        for session in self.world.sessions_of(machine) {
            self.world.tally.fault(Kind::Stop);
            self.world.tell(session, Input::Stop { park });
        }
    }

    /// Another lease in mid-term, shorter or longer, within the group's `maxLease`, and now and then another way to follow.
    fn configure(&mut self, machine: usize) {
        let config = &self.world.machines[machine].config;
        let lease_ms = self.world.chance.pick(&self.leases_ms);
        let parts = config.leader_timeout_ms / config.margin_ms;
        // The ticks of a cron outlast the waits of the settings that they began with, and no longer ones.
        let raises = self.world.machines[machine].cron.is_none();
        let settings = Settings {
            frequent_interval_ms: Some((lease_ms / 5).max(50)),
            infrequent_interval_ms: Some(lease_ms),
            leader_timeout_ms: Some(lease_ms),
            peer_timeout_ms: Some((lease_ms / 5).max(50)),
            margin_ms: Some(lease_ms.div_ceil(parts.max(2))),
            follow: Some(match self.world.now_ms % 8 {
                0 => Follow::Frugal,
                1 => Follow::Balanced,
                2 => Follow::Tight,
                _ => config.follow,
            }),
            store_skew_ms: match self.world.now_ms % 5 {
                0 if raises => self.settings[machine].store_skew_ms.map(|ms| ms + RAISED_SKEW_MS),
                _ => Some(config.store_skew_ms),
            },
            ..self.settings[machine].clone()
        };
        let sustain_ms = config.sustain_ms;
        let Ok(config) = Config::new(&settings) else { return };
        let config = Config { sustain_ms, ..config };
        self.world.machines[machine].config = config.clone();
        for session in self.world.sessions_of(machine) {
            self.world.tally.fault(Kind::Configure);
            self.world.tell(session, Input::Configure(Box::new(config.clone())));
        }
    }

    fn draw_cut(&mut self) -> Cut {
        let chance = &mut self.world.chance;
        let (requests, answers) = chance.pick(&[(true, true), (true, false), (false, true)]);
        let until_ms = self.world.now_ms + chance.span(4 * self.lease_ms);
        let says = chance.one_in(3).then(|| chance.pick(&LASTING));
        // Rights to read and none to write, or a bucket that is made read-only.
        let writes = says.is_some() && (chance.one_in(2) || says == Some(Trouble::Conflict));
        Cut { until_ms, requests, answers, says, writes }
    }

    /// An operator's or a stranger's hand on the object.
    fn tamper(&mut self, blow: Blow) {
        let World { store, chance, tally, now_ms, oracle, slots, machines, .. } = &mut self.world;
        let number = chance.next() >> 12;
        match blow {
            Blow::Delete => {
                tally.fault(Kind::Deleted);
                store.delete();
            }
            Blow::Garbage => {
                tally.fault(Kind::Garbage);
                let body = match chance.below(5) {
                    0 => format!("\u{1}\u{2}{number}"),
                    // What can be read of it was written by a leader with a longer lease than any member expects.
                    1 => {
                        // A tick that alone would heal it never watches for so long (docs/worker.md).
                        let crons = machines.iter().any(|machine| machine.cron.is_some());
                        let more_ms = if crons { 0 } else { number % (self.lease_ms + 1) };
                        let told_ms = self.lease_ms + more_ms;
                        format!("{{\"leaderID\":{number},\"leaseMs\":{told_ms}}}")
                    }
                    2 => format!("{{\"leaderID\":\"x\",\"leaseMs\":0,\"sequence\":{number}}}"),
                    3 => {
                        // Ahead of storage time, so that the next deletion may lower tokens.
                        oracle.contract.always_dated = false;
                        let term = EPOCH_MS + *now_ms + 3_600_000;
                        let lease = "\"leaderID\":\"x\",\"leaseMs\":1e19";
                        format!("{{{lease},\"term\":{term},\"sequence\":{number}}}")
                    }
                    _ => format!("{{\"leaderID\":\"x\",\"leaseMs\":3600001,\"note\":{number}}}"),
                };
                // A script that goes wrong puts the same each time; nobody can tell without `Last-Modified`, or where
                // old states are shown, and a slot is claimed in one write (docs/proof.md).
                let told = !store.manners.unmodified && !store.keeps_past && slots.is_none();
                let same = told && number.is_multiple_of(2);
                let again = store.garbage.take().filter(|_| same);
                let body = again.unwrap_or_else(|| body.into_bytes());
                store.put(*now_ms, &body);
                store.garbage = Some(body);
            }
            Blow::Foreign => {
                // A stranger that keeps to its own rules does not overwrite what is a moment old.
                let born_ms = store.object.as_ref().and_then(|held| store.born_ms(&held.version));
                if born_ms.is_some_and(|born_ms| born_ms + 1_000 > *now_ms) {
                    return;
                }
                tally.fault(Kind::ForeignRecord);
                // A stranger may resign only what it has led for a lease: anything else is its own
                // breach.
                let own = |object: &Object| {
                    let held_ms = store.born_ms(&object.version).map(|born_ms| *now_ms - born_ms);
                    object.shown.lease().is_some_and(|lease| lease.session.is_none())
                        && held_ms > Some(2 * self.lease_ms)
                };
                let released = store.object.as_ref().is_some_and(own) && chance.one_in(2);
                store.put(*now_ms, &foreign_record(number, "foreign", None, released));
            }
            _ => {
                tally.fault(Kind::NewerFormat);
                // With a time, which members of S3lect's make wait for; a record without one they take at once.
                let time = calendar::rfc3339((EPOCH_MS + *now_ms) as i64);
                let body = format!(
                    "{{\"leaderID\":\"x\",\"lastUpdated\":\"{time}\",\"format\":2,\"note\":{number}}}"
                );
                store.put(*now_ms, body.as_bytes());
            }
        }
        self.world.oracle.tampered();
        self.world.late_double();
    }

    fn roll_back(&mut self) {
        let World { store, chance, tally, now_ms, oracle, .. } = &mut self.world;
        let back = chance.below(4) as usize;
        if store.roll_back(*now_ms, back) {
            tally.fault(Kind::RolledBack);
            oracle.rolled_back();
        }
    }

    /// Everything injected ends; what is still on its way may arrive.
    pub fn heal(&mut self) {
        let world = &mut self.world;
        world.healed = true;
        world.weather = Weather::calm();
        world.peers.trouble = 0;
        world.foreign_members_end();
        let manners = &mut world.store.manners;
        (manners.undated_per_mille, manners.cached_ms, manners.stale_per_mille) = (0, 0, 0);
        let mut until_ms = world.trouble_until_ms.max(world.now_ms);
        for machine in &world.machines {
            until_ms = until_ms.max(machine.paused_until_ms);
        }
        world.trouble_until_ms = until_ms;
        // The way out of a record that is too new is the operator's (S7).
        let closed = world
            .store
            .object
            .as_ref()
            .is_some_and(|object| matches!(object.shown, Shown::Other(Reading::Closed(_))));
        if closed {
            world.store.delete();
            world.oracle.tampered();
        }
        world.operator_resumes();
        world.history.note(world.now_ms, || "*** healed".to_owned());
    }
}

/// Single blows, also for scripted scenarios.
impl World {
    /// The living sessions of a machine that run at this instant.
    pub fn sessions_of(&self, machine: usize) -> Vec<usize> {
        let running = self.machines[machine].paused_until_ms <= self.now_ms;
        let living = |session: &usize| {
            running && self.sessions[*session].alive && self.sessions[*session].machine == machine
        };
        (0..self.sessions.len()).filter(living).collect()
    }

    /// All processes of a machine die; a long-running one is started again.
    pub fn crash(&mut self, machine: usize, back_ms: u64) {
        let mut died = false;
        for session in 0..self.sessions.len() {
            if self.sessions[session].machine == machine && self.sessions[session].alive {
                self.kill(session);
                died = true;
            }
            if self.sessions[session].machine == machine {
                self.sessions[session].works.clear();
            }
        }
        if died {
            self.tally.fault(Kind::Crash);
        }
        if died && self.machines[machine].runs_for_long() {
            self.tally.fault(Kind::Restart);
            self.trouble_until(self.now_ms + back_ms);
            self.after(back_ms, Event::Start { machine });
        }
    }

    /// The process stops (SIGSTOP); both its clocks run on.
    pub fn pause(&mut self, machine: usize, pause_ms: u64) {
        let until_ms = &mut self.machines[machine].paused_until_ms;
        *until_ms = (*until_ms).max(self.now_ms + pause_ms);
        let until_ms = *until_ms;
        self.trouble_until(until_ms);
        self.forgive_stop(machine, pause_ms);
        self.tally.fault(Kind::Pause);
    }

    /// The host sleeps: the process stops, and so does its monotonic clock.
    pub fn suspend(&mut self, machine: usize, sleep_ms: u64) {
        if self.machines[machine].paused_until_ms > self.now_ms {
            return;
        }
        let now_ms = self.now_ms;
        self.machines[machine].clocks.suspend(now_ms);
        if self.machines[machine].clocks.single {
            self.stand_still(machine, sleep_ms);
        }
        self.machines[machine].paused_until_ms = now_ms + sleep_ms;
        self.trouble_until(now_ms + sleep_ms);
        self.forgive_stop(machine, sleep_ms);
        self.tally.fault(Kind::Suspend);
        // Before anything else of that instant: the clock runs again when the host wakes.
        self.first_at(now_ms + sleep_ms, Event::Resume { machine });
    }

    /// A single clock sleeps with its host, and its timers with it: nothing but a `Date` shows it.
    fn stand_still(&mut self, machine: usize, sleep_ms: u64) {
        for session in 0..self.sessions.len() {
            let state = &mut self.sessions[session];
            if state.machine != machine {
                continue;
            }
            let timers = state.wake.iter_mut();
            for due in timers.chain(state.flight.as_mut().map(|flight| &mut flight.due)) {
                due.true_ms += sleep_ms;
            }
            self.oracle.stepped(session, self.now_ms + sleep_ms, -(sleep_ms as i64));
        }
    }

    /// A stopped process can't end in time.
    fn forgive_stop(&mut self, machine: usize, pause_ms: u64) {
        let of_machine = |session: &&mut Session| session.machine == machine;
        for session in self.sessions.iter_mut().filter(of_machine) {
            session.stopping_ms = session.stopping_ms.map(|since_ms| since_ms + 2 * pause_ms);
            if let Some(trigger) = &mut session.trigger {
                trigger.forgiven_ms += 2 * pause_ms;
            }
        }
    }

    pub fn step_wall(&mut self, machine: usize, step_ms: i64) {
        let back = step_ms < 0;
        self.tally.fault(if back { Kind::StepBack } else { Kind::StepForward });
        self.machines[machine].clocks.wall_offset_ms += step_ms;
        if self.machines[machine].outside {
            self.outside_stepped(machine, step_ms);
        }
        if self.machines[machine].clocks.single {
            self.forgive_stop(machine, step_ms.unsigned_abs());
            for session in 0..self.sessions.len() {
                if self.sessions[session].machine == machine {
                    self.oracle.stepped(session, self.now_ms, step_ms);
                    if back && self.sessions[session].outside.is_some() {
                        let now = self.look(session).now;
                        self.oracle.may_have_seen(session, now);
                    }
                }
            }
        }
    }
}
