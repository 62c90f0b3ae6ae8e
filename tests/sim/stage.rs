//! A small stage for one named scenario: a few machines, a calm network, one thing that goes wrong.

use edgelect::config::{Config, Follow, HostClock, Settings};
use edgelect::election::{Election, Event as Told, Input, LostReason, Problem};
use edgelect::lease::Lease;
use edgelect::store::FaultKind;

use super::clocks::Clocks;
use super::member::Cut;
use super::network::{Fate, Trouble};
use super::oracle::Contract;
use super::schedule::foreign_record;
use super::store::Manners;
use super::world::{Script, World};

pub const LEASE_MS: u64 = 15_000;
pub const MARGIN_MS: u64 = 1_500;
pub const INTERVAL_MS: u64 = 5_000;
pub const TERM: u64 = 1_700_000_000_000;

/// Machines `m0`, `m1`, … with S3lect's usual 15 s and 5 s; nothing runs yet.
pub struct Stage {
    pub world: World,
}

pub fn settings(machine: usize) -> Settings {
    Settings {
        lockfile_path: Some("leader.json".to_owned()),
        server_id: Some(format!("m{machine}")),
        leader_timeout_ms: Some(LEASE_MS),
        frequent_interval_ms: Some(INTERVAL_MS),
        follow: Some(Follow::Tight),
        ..Settings::default()
    }
}

pub fn config(settings: &Settings) -> Config {
    Config::new(settings).expect("a scenario's settings are valid")
}

impl Stage {
    /// A group of so many machines whose last leader has released the lease.
    pub fn released(machines: usize) -> Self {
        let mut stage = Self::absent(machines);
        stage.put(&foreign_record(0, "old", Some(TERM), true));
        stage
    }

    /// A group of so many machines without a record.
    pub fn absent(machines: usize) -> Self {
        let settings: Vec<Settings> = (0..machines).map(settings).collect();
        Self::of(&settings, false)
    }

    pub fn of(settings: &[Settings], undated: bool) -> Self {
        let manners = Manners { front_end_ms: vec![0], undated, ..Manners::default() };
        let leases_ms = settings.iter().filter_map(|settings| settings.leader_timeout_ms);
        let shortest_lease_ms = leases_ms.min().unwrap_or(LEASE_MS);
        let contract = Contract {
            worst_ppm: 52_000,
            clocks: true,
            shortest_lease_ms,
            dated: !undated,
            always_dated: !undated,
            timely: true,
            changes_told: true,
            ..Contract::default()
        };
        let mut world = World::new(7, manners, contract);
        world.restarts = false;
        world.told = Some(Vec::new());
        for settings in settings {
            let single = settings.clock == HostClock::One;
            world.add_machine(config(settings), Clocks::new(single, 0, 1_000, 0), None);
        }
        Self { world }
    }

    /// A released group in which machine 0 leads and the others follow.
    pub fn led(machines: usize) -> Self {
        let mut stage = Self::released(machines);
        stage.start_all();
        stage
    }

    /// The same of members with these settings.
    pub fn led_by(settings: &[Settings]) -> Self {
        let mut stage = Self::of(settings, false);
        stage.put(&foreign_record(0, "old", Some(TERM), true));
        stage.start_all();
        stage
    }

    /// Starts machine 0, and the others when it leads.
    pub fn start_all(&mut self) {
        self.world.start(0);
        self.run(1_000);
        for machine in 1..self.world.machines.len() {
            self.world.start(machine);
        }
        self.run(1_000);
        assert_eq!(self.leader(), Some(0), "m0 leads when a scenario begins");
    }

    pub fn run(&mut self, ms: u64) {
        self.world.run_until(self.world.now_ms + ms);
        if let Some(broken) = &self.world.oracle.violation {
            panic!("{} at {} ms: {}", broken.check, broken.at_ms, broken.text);
        }
    }

    /// Runs until somebody other than `machine` leads; how long that took.
    pub fn run_until_led_by_other(&mut self, machine: usize, most_ms: u64) -> u64 {
        let began_ms = self.world.now_ms;
        while self.leader().is_none_or(|leader| leader == machine) {
            assert!(self.world.now_ms - began_ms < most_ms, "nobody led within {most_ms} ms");
            self.run(20);
        }
        self.world.now_ms - began_ms
    }

    /// Runs until the machine has no authority; how long that took.
    pub fn run_until_without(&mut self, machine: usize, most_ms: u64) -> u64 {
        let began_ms = self.world.now_ms;
        while self.leader() == Some(machine) {
            assert!(self.world.now_ms - began_ms < most_ms, "m{machine} leads for too long");
            self.run(20);
        }
        self.world.now_ms - began_ms
    }

    /// The machine that has authority at this instant.
    pub fn leader(&self) -> Option<usize> {
        let leads = |session: &usize| self.world.authority(*session).is_some();
        let leader = (0..self.world.sessions.len()).find(leads);
        leader.map(|session| self.world.sessions[session].machine)
    }

    /// The term that is led at this instant.
    pub fn term(&self) -> Option<u64> {
        (0..self.world.sessions.len()).find_map(|session| self.world.authority(session))
    }

    /// The newest session of a machine.
    pub fn session(&self, machine: usize) -> usize {
        let of_machine = |session: &usize| self.world.sessions[*session].machine == machine;
        (0..self.world.sessions.len()).rfind(of_machine).expect("the machine was started")
    }

    pub fn election(&self, machine: usize) -> &Election {
        &self.world.sessions[self.session(machine)].election
    }

    pub fn alive(&self, machine: usize) -> bool {
        self.world.sessions[self.session(machine)].alive
    }

    /// What of the store a machine says in its status.
    pub fn store_problem(&self, machine: usize) -> Option<FaultKind> {
        match self.election(machine).problem() {
            Some(Problem::Store(fault)) => Some(fault.kind),
            _ => None,
        }
    }

    /// Tells the newest session of a machine.
    pub fn tell(&mut self, machine: usize, input: Input) {
        self.world.tell(self.session(machine), input);
    }

    pub fn stop(&mut self, machine: usize, park: bool) {
        self.tell(machine, Input::Stop { park });
    }

    /// A hand from outside overwrites the record.
    pub fn put(&mut self, body: &[u8]) {
        self.world.store.put(self.world.now_ms, body);
    }

    /// How often a machine's sessions were told that they lead.
    pub fn acquired(&self, machine: usize) -> usize {
        self.told(machine).filter(|told| matches!(told, Told::Acquired { .. })).count()
    }

    /// Why a machine's sessions lost their terms, in order.
    pub fn lost(&self, machine: usize) -> Vec<LostReason> {
        let reason = |told: &Told| match told {
            Told::Lost { reason, .. } => Some(*reason),
            _ => None,
        };
        self.told(machine).filter_map(reason).collect()
    }

    /// What a machine's sessions told their applications.
    fn told(&self, machine: usize) -> impl Iterator<Item = &Told> {
        let told = self.world.told.iter().flatten();
        let of_machine = move |session: usize| self.world.sessions[session].machine == machine;
        told.filter(move |(session, _)| of_machine(*session)).map(|(_, told)| told)
    }

    /// The readable record in the store.
    pub fn record(&self) -> Option<&Lease> {
        self.world.store.object.as_ref()?.shown.lease()
    }

    /// What becomes of the next writes (or reads) of a machine.
    pub fn script(&mut self, machine: usize, write: bool, times: u64, fate: Fate) {
        self.world.script.push(Script { machine, write, times, fate });
    }

    pub fn cut(&mut self, machine: usize, requests: bool, answers: bool, ms: u64) {
        let until_ms = self.world.now_ms + ms;
        let cut = Cut { until_ms, requests, answers, ..Cut::default() };
        self.world.machines[machine].cut = cut;
    }

    /// Neither requests nor answers of a machine get through.
    pub fn cut_off(&mut self, machine: usize, ms: u64) {
        self.cut(machine, true, true, ms);
    }

    pub fn outage(&mut self, refused: bool, ms: u64) {
        let until_ms = self.world.now_ms + ms;
        let (requests, answers) = (true, false);
        let says = refused.then_some(Trouble::ServerError);
        self.world.outage = Cut { until_ms, requests, answers, says, writes: false };
    }
}
