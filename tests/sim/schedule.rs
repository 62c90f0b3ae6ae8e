//! One seed, one schedule: which members, which clocks, which faults (swarm style), and when it
//! heals.

use edgelect::config::{Config, Follow, HostClock, PeerSettings, Settings};
use edgelect::json::Object;
use edgelect::lease::{self, Lease, Stamp};
use edgelect::slots::{Missed, Policy};

use super::between::{self, Between};
use super::chance::Chance;
use super::clocks::Clocks;
use super::member::Cron;
use super::network::Weather;
use super::oracle::Contract;
use super::report::Kind;
use super::slots::{self, Plan};
use super::store::Manners;
use super::world::{Depth, Event, Turn, World};

listed! {
    /// What the environment does to a schedule between requests. `Busy` is long computing between
    /// two answers.
    Blow {
        Crash, CrashLoop, Pause, Busy, Suspend, StepBack, StepForward, Resign, Stop, Configure,
        CutMember, Outage, Delete, Garbage, Foreign, NewerFormat, RollBack,
    }
}

/// How one schedule was drawn.
pub struct Schedule {
    pub world: World,
    pub blows: Vec<Blow>,
    /// The mean time between two blows.
    pub pace_ms: u64,
    /// The longest lease of any member.
    pub lease_ms: u64,
    pub heal_ms: u64,
    /// Within which time of healing somebody must lead (I5).
    pub bound_ms: u64,
    /// What was drawn for each machine, but for that of members from outside.
    pub settings: Vec<Settings>,
    /// Leases that members may be configured to.
    pub leases_ms: Vec<u64>,
    pub stepped_forward: bool,
    /// Its clocks keep to no contract.
    pub wild: bool,
    /// A machine that crashes again and again, and how often it still will.
    pub crash_loop: (usize, u64),
    /// The options of the members that whoever runs the schedule brings, as JavaScript names them.
    pub outside: Vec<Settings>,
    /// The first of them reaches the store by a storage of its own.
    pub by_storage: bool,
}

/// What all members of a group share.
struct Group {
    leases_ms: Vec<u64>,
    max_lease_ms: u64,
    store_skew_ms: u64,
    /// One part in this many of a lease is the margin.
    margin_parts: u64,
    peers: bool,
    peer_settings: PeerSettings,
    worst_ppm: u64,
    /// The canary's clock rates.
    beyond: bool,
}

/// Members of one more machine.
#[derive(Clone, Copy, Default)]
pub struct Around {
    pub members: u64,
    /// The machine has one clock, where it runs no slots.
    pub single: bool,
    /// And where it runs slots, because they are those of a Worker.
    pub worker: bool,
}

impl Around {
    fn has_one_clock(self, slots: bool) -> bool {
        if slots { self.worker } else { self.single }
    }
}

/// How far clock rates may go beyond the contract, in thousandths of the contract; 900 keeps within
/// it.
pub const WITHIN_CONTRACT: u64 = 900;

/// One seed in so many runs clocks outside the contract.
const ONE_WILD_IN: u64 = 8;

/// By so much new settings may raise `storeSkew`, in milliseconds.
pub const RAISED_SKEW_MS: u64 = 1_500;

impl Schedule {
    pub fn draw(seed: u64, depth: Depth, rate_per_mille: u64) -> Self {
        Self::draw_around(seed, depth, rate_per_mille, Around::default())
    }

    /// The same around members of one more machine, which whoever runs the schedule brings.
    pub fn draw_around(seed: u64, depth: Depth, rate_per_mille: u64, around: Around) -> Self {
        let outside = around.members;
        let mut chance = Chance::new(seed ^ 0xED6E_1EC7);
        let beyond = rate_per_mille > WITHIN_CONTRACT;
        let wild = !beyond && outside == 0 && seed % ONE_WILD_IN == ONE_WILD_IN - 1;
        let mut group = Group::draw(&mut chance, rate_per_mille, wild);
        group.peer_settings = between::peer_settings(seed);
        let lease_ms = group.max_lease_ms;
        let slots = !beyond && slots::drawn(seed);
        let crons = chance.one_in(3) && !slots && outside == 0;
        let mut manners = draw_manners(&mut chance, &group);
        manners.unmodified = if slots { slots::unmodified(seed) } else { seed % 7 == 3 };
        let between = if beyond { Between::default() } else { Between::draw(seed) };
        // What a client asks anew by itself is told apart by its own code alone.
        manners.aws &= outside == 0;
        manners.credentials_ms = manners.credentials_ms.filter(|_| outside == 0);
        manners.unchanged = between.unchanged;
        // A trigger lives too short to know such a time for what it is: it leaves its slot out, and heals nothing.
        manners.moving = between.moving && !manners.unmodified && !slots && !crons;
        manners.late_dates_of_eight = if slots { 0 } else { late_dates_of_eight(seed) };
        let by_storage = outside > 0 && !slots && seed % 4 == 1;
        let contract = group.contract(&manners, wild, by_storage);
        let mut world = World::new(seed, manners, contract);
        world.depth = depth;
        world.late_ticks = chance.one_in(3);
        world.claims_early = between::claims_early(seed);
        world.writes_apart_ms = between::writes_apart_ms(seed);
        if wild {
            world.tally.fault(Kind::WildClocks);
        }
        if world.store.manners.unquoted {
            world.tally.fault(Kind::EtagUnquoted);
        }
        world.weather = Weather::draw(&mut chance, lease_ms);
        between.join(&mut world.weather);
        world.peers.repeats = between.repeats;
        world.peers.trouble = chance.pick(&[0, 100, 500]);
        if beyond {
            // The canary needs the shortest ways, so that only the clocks can be at fault.
            world.weather = Weather::calm();
        }
        let mut schedule = Self {
            world,
            blows: Vec::new(),
            pace_ms: lease_ms * chance.between(2, 16) / 4,
            lease_ms,
            heal_ms: lease_ms * chance.between(12, 32),
            bound_ms: 0,
            settings: Vec::new(),
            leases_ms: group.leases_ms.clone(),
            stepped_forward: false,
            wild,
            crash_loop: (0, 0),
            outside: Vec::new(),
            by_storage,
        };
        if outside > 0 {
            schedule.draw_outside(&mut chance, &group, around, slots);
        }
        schedule.draw_members(&mut chance, &group, crons, slots, seed);
        schedule.draw_outside_machine(&mut chance, slots, around.has_one_clock(slots));
        schedule.draw_blows(&mut chance);
        schedule.first_record(&mut chance);
        if slots {
            schedule.draw_slots(&mut chance, seed);
        }
        schedule.bound_ms = schedule.leader_bound_ms();
        schedule.world.at(schedule.heal_ms, Event::Turn(Turn::Heal));
        schedule.world.after(schedule.pace_ms, Event::Turn(Turn::Chaos));
        if !beyond {
            schedule.others_begin(seed);
        }
        schedule
    }

    /// Who is neither a member of ours nor a fault.
    fn others_begin(&mut self, seed: u64) {
        self.world.operator_begins(seed, self.lease_ms);
        // A record without a lease is waited out by each member's own: safe where all have the same one.
        if !self.wild && self.leases_ms.len() == 1 {
            self.world.foreign_members_begin(seed, self.lease_ms);
        }
    }

    fn draw_members(
        &mut self,
        chance: &mut Chance,
        group: &Group,
        crons: bool,
        slots: bool,
        seed: u64,
    ) {
        let members = match self.outside.len() {
            0 => chance.pick(&[1, 2, 2, 3, 3, 4, 5]),
            _ => chance.pick(&[1, 1, 1, 2]),
        };
        // Somebody who leads on the same key lets the jobs of slots wait.
        let mixed = slots && members > 1 && chance.one_in(8);
        let late_dates = self.world.store.manners.late_dates_of_eight > 0;
        // In half of those schedules members with two clocks meet such a `Date`, too.
        let one_clock = late_dates && seed % 32 != 5;
        for member in 0..members {
            let cron = crons && chance.one_in(2);
            let twin = member > 0 && chance.one_in(6);
            if twin {
                self.world.tally.fault(Kind::TwinIdentity);
            }
            let name = if twin { member - 1 } else { member };
            let runs_slots = slots && !(mixed && member == 0);
            let single = cron || (runs_slots && chance.one_in(2)) || one_clock;
            let settings = group.settings(chance, name, member, single);
            let mut config = Config::new(&settings).expect("they were drawn to be valid");
            self.settings.push(settings);
            let rate_ppm = group.rate_ppm(chance, member);
            // A clock that runs worse denies no late `Date`: to it the right ones jump.
            let rate_ppm = if late_dates { rate_ppm.clamp(-1_000, 1_000) } else { rate_ppm };
            let wall_ms = chance.pick(&[0, 10_000, 3_600_000, 86_400_000]);
            let wall_ms = if chance.one_in(2) { wall_ms } else { -wall_ms };
            let origin_ms = chance.below(1_000_000);
            let clocks = Clocks::new(single, rate_ppm, origin_ms, wall_ms);
            // A tick has to outlast the grace and everybody's lease, or a fleet of crons never
            // leads.
            let least_ms = config.grace_ms(self.lease_ms)
                + config.store_skew_ms
                + 4 * config.request_timeout_ms;
            let cron = cron.then(|| {
                let sustain_ms = 2 * least_ms + chance.below(2 * self.lease_ms);
                config.sustain_ms = Some(sustain_ms);
                let rest_ms = self.lease_ms / 4;
                let rest_ms = chance.between(1, rest_ms);
                let reserve_ms = chance.between(1, least_ms / 2);
                // Half of them go on leading until after the next trigger.
                let period_ms = match rest_ms % 2 {
                    0 => sustain_ms + rest_ms,
                    _ => sustain_ms - reserve_ms - rest_ms,
                };
                Cron { period_ms, sustain_ms, reserve_ms }
            });
            let machine = self.world.add_machine(config, clocks, cron);
            self.world.machines[machine].work_end_ms =
                chance.pick(&[0, 20, self.lease_ms / 20, self.lease_ms]);
            self.world.machines[machine].careless = chance.one_in(4);
            self.world.machines[machine].runs_slots = runs_slots;
            let begin_ms = chance.span(2 * self.lease_ms);
            let begin = match cron {
                Some(_) => Event::Tick { machine, copy: false },
                None => Event::Start { machine },
            };
            if !runs_slots {
                self.world.at(begin_ms, begin);
            }
        }
    }

    fn draw_outside(&mut self, chance: &mut Chance, group: &Group, around: Around, slots: bool) {
        let single = around.has_one_clock(slots);
        // Triggers of a Worker come once a period.
        let longer = if slots && single { 3 } else { 1 };
        self.heal_ms = self.lease_ms * chance.between(4, 10) * longer;
        for member in 0..around.members {
            self.outside.push(group.settings(chance, 10 + member, 10 + member, single));
        }
    }

    /// One process, so one machine, with clocks that keep time: they may be stepped, and sleep.
    fn draw_outside_machine(&mut self, chance: &mut Chance, slots: bool, single: bool) {
        let Some(settings) = self.outside.first() else { return };
        let config = Config::new(settings).expect("they were drawn to be valid");
        let wall_ms = chance.pick(&[0, 10_000, -10_000, -600_000]);
        let clocks = Clocks::new(single, 0, chance.below(1_000_000), wall_ms);
        let machine = self.world.add_machine(config, clocks, None);
        (self.world.machines[machine].outside, self.world.machines[machine].runs_slots) =
            (true, slots);
    }

    fn draw_slots(&mut self, chance: &mut Chance, seed: u64) {
        let World { machines, oracle, .. } = &self.world;
        let runners = machines.iter().filter(|machine| machine.runs_slots);
        let configs: Vec<&Config> = runners.map(|machine| &machine.config).collect();
        let dated = oracle.contract.always_dated;
        let plan = Plan::draw(chance, &configs, self.lease_ms, dated);
        let meddled = slots::meddled(seed);
        let early_per_mille = if meddled { 500 } else { plan.early_per_mille };
        self.world.slots = Some(Plan { meddled, early_per_mille, ..plan });
        self.world.first_slot();
    }

    /// Whether each slot that a trigger asks for must be run once the faults are over: none is given
    /// up, nobody else leads, and a trigger waits for as long as a dead runner's lease lasts.
    pub fn owes_slots(&self) -> bool {
        let World { slots, machines, sessions, oracle, .. } = &self.world;
        let runs_all = slots.as_ref().is_some_and(|plan| {
            (plan.policy, plan.missed) == (Policy::AtLeastOnce, Missed::All) && plan.patient
        });
        let alone = machines.iter().all(|machine| machine.runs_slots);
        // The job of a member that whoever runs the schedule brings may go on to the end, and all others wait for it.
        let idle = sessions.iter().all(|one| one.outside.is_none() || one.works.is_empty());
        runs_all && alone && idle && !self.wild && oracle.contract.always_dated
    }

    fn draw_blows(&mut self, chance: &mut Chance) {
        let drawn = Blow::ALL.into_iter().filter(|blow| *blow != Blow::RollBack);
        for blow in drawn {
            if chance.per_mille(400) {
                self.blows.push(blow);
            }
        }
        let outside = self.world.machines.iter().find(|machine| machine.outside);
        let single = outside.is_some_and(|machine| machine.clocks.single);
        if single {
            // It shows nothing where the next request leaves soon after it, so that most find nothing.
            self.blows.extend([Blow::StepBack; 6]);
        }
        if self.wild {
            // A backup that is restored under a running group: documented as not to be done.
            self.blows.push(Blow::RollBack);
            self.world.store.keeps_past = true;
        }
        // A suspend and a step back together hide from both clocks of a host: beyond S11.
        if self.blows.contains(&Blow::Suspend) && !self.wild {
            self.blows.retain(|blow| *blow != Blow::StepBack);
        }
        // A foreign record is waited out by each member's own lease: safe where all have the same
        // one.
        if self.leases_ms.len() > 1 {
            self.blows.retain(|blow| *blow != Blow::Foreign);
        }
    }

    fn first_record(&mut self, chance: &mut Chance) {
        let term = 1_700_000_000_000;
        match chance.below(6) {
            0 => self.world.store.put(0, &foreign_record(0, "old", Some(term), true)),
            1 => self.world.store.put(0, &foreign_record(1, "old", Some(term), false)),
            2 => self.world.store.put(0, b"not a record"),
            _ => {}
        }
    }

    /// I5. The slowest way to a leader after healing, by true time: the longest pause that a member
    /// may be in (a capped back-off, an honoured Retry-After, the pause after a resignation, an
    /// interval of asking peers that says no), a look, a frugal follower's second look, the longest
    /// wait for a proof (a lease, the grace, a single clock's slack) begun anew once because a
    /// claimant's own write is in the way, and the round trips between; all of it on a slow clock.
    /// A fleet of crons adds two periods.
    fn leader_bound_ms(&self) -> u64 {
        let machines = &self.world.machines;
        let longest = |of: &dyn Fn(&Config) -> u64| {
            let outside = self.outside.iter().filter_map(|settings| Config::new(settings).ok());
            let outside = outside.map(|config| of(&config)).max().unwrap_or(0);
            machines.iter().map(|machine| of(&machine.config)).max().unwrap_or(0).max(outside)
        };
        let lease_ms = 2 * self.lease_ms;
        let raised_ms = if self.blows.contains(&Blow::Configure) { RAISED_SKEW_MS } else { 0 };
        let grace_ms = longest(&|config| {
            let store_skew_ms = config.store_skew_ms + raised_ms;
            Config { store_skew_ms, ..config.clone() }.grace_ms(lease_ms) + store_skew_ms
        });
        let intervals_ms = longest(&|config| config.infrequent_interval_ms);
        let requests_ms = longest(&|config| {
            let asked_ms = config.peer_timeout_ms
                + config.peers.wait_within_ms(lease_ms, config.peer_timeout_ms);
            8 * config.request_timeout_ms + 4 * config.frequent_interval_ms + asked_ms
        });
        let pause_ms = intervals_ms.max(lease_ms).max(self.world.weather.retry_after_ms);
        let crons_ms = machines.iter().filter_map(|machine| machine.cron);
        let crons_ms = crons_ms.map(|cron| 2 * cron.period_ms).max().unwrap_or(0);
        let local_ms = pause_ms + 2 * intervals_ms + 2 * grace_ms + requests_ms + 2_000 + crons_ms;
        // Three waits are over of each of two records, of seconds at least, before a `Last-Modified` that moves with each answer is known for
        // what it is.
        let moving = self.world.store.manners.moving;
        let moving_ms = if moving { 6 * grace_ms.max(6_000) } else { 0 };
        // A single clock's wait begins anew once some answers have denied a `Date`.
        let denied_ms =
            if self.world.oracle.contract.late_dates { 4 * intervals_ms + grace_ms } else { 0 };
        let local_ms = local_ms + moving_ms + denied_ms;
        local_ms + local_ms / 10
    }
}

/// See [`Manners::late_dates_of_eight`].
fn late_dates_of_eight(seed: u64) -> u64 {
    match seed % 64 {
        21 => 6,
        5 | 37 | 53 => 1,
        _ => 0,
    }
}

fn draw_manners(chance: &mut Chance, group: &Group) -> Manners {
    let (lease_ms, apart_ms) = (group.max_lease_ms, group.store_skew_ms);
    let relayed_per_mille = chance.pick(&[0, 0, 0, 200, 1_000]);
    let cached_ms = chance.pick(&[0, lease_ms, 4 * lease_ms]);
    Manners {
        front_end_ms: vec![0, chance.pick(&[0, apart_ms / 2, apart_ms])],
        undated: chance.one_in(8),
        undated_per_mille: chance.pick(&[0, 0, 0, 0, 0, 50, 500]),
        relayed_per_mille,
        cached_ms,
        stale_per_mille: chance.pick(&[0, 0, 0, 0, 20, 300]),
        full_304: chance.one_in(2),
        unquoted: chance.one_in(8),
        aws: chance.one_in(2),
        credentials_ms: chance.one_in(3).then_some(3 * lease_ms),
        ..Manners::default()
    }
}

impl Group {
    fn contract(&self, manners: &Manners, wild: bool, by_storage: bool) -> Contract {
        let late_dates = manners.late_dates_of_eight > 0;
        let told = !manners.undated && !late_dates;
        let dated = told && manners.undated_per_mille == 0 && !by_storage;
        let known = !manners.unmodified && !manners.moving;
        Contract {
            worst_ppm: self.worst_ppm,
            clocks: !self.beyond && !wild,
            shortest_lease_ms: self.leases_ms.iter().copied().min().unwrap_or(0),
            dated: !manners.undated,
            always_dated: dated,
            late_dates,
            timely: (manners.cached_ms == 0 || known) && !by_storage,
            // Such a storage tells no time of a record that came by a relay.
            changes_told: known && !by_storage,
            changes_made_up: manners.moving,
            wild,
        }
    }

    fn draw(chance: &mut Chance, rate_per_mille: u64, wild: bool) -> Self {
        // The seeds' settings most of the time, and the shortest for the edges.
        let base_ms = chance.pick(&[
            1_000, 1_500, 2_000, 6_000, 10_000, 10_000, 10_000, 15_000, 15_000, 15_000, 15_000,
            15_000, 30_000, 30_000, 30_000, 45_000,
        ]);
        let leases_ms = if chance.one_in(3) {
            vec![base_ms, 1_000.max(base_ms / 2), 1_000.max(base_ms / 3)]
        } else {
            vec![base_ms]
        };
        let margin_parts = chance.pick(&[10, 10, 10, 5, 20, 3]);
        // Rates r of leader and follower keep I1 while (D - M) / r_leader <= D / r_follower; with
        // both within 1 +- x that is x <= m / (2 - m) for m = M / D.
        let contract_ppm = 1_000_000 / (2 * margin_parts - 1);
        Self {
            leases_ms,
            max_lease_ms: base_ms,
            store_skew_ms: chance.pick(&[2_000, 2_000, 500, 100]),
            margin_parts,
            peers: chance.one_in(3),
            peer_settings: PeerSettings::default(),
            worst_ppm: if wild { 300_000 } else { contract_ppm * rate_per_mille / 1_000 },
            beyond: rate_per_mille > WITHIN_CONTRACT,
        }
    }

    fn rate_ppm(&self, chance: &mut Chance, member: u64) -> i64 {
        let worst = self.worst_ppm as i64;
        if self.beyond {
            // As far apart as can be, so that the canary does not depend on luck.
            return if member.is_multiple_of(2) { -worst } else { worst };
        }
        let between = chance.below(2 * self.worst_ppm + 1) as i64 - worst;
        chance.pick(&[0, worst, -worst, between, worst, -worst])
    }

    fn settings(&self, chance: &mut Chance, name: u64, member: u64, cron: bool) -> Settings {
        let lease_ms = chance.pick(&self.leases_ms);
        let server_id = (!chance.one_in(8)).then(|| format!("m{name}"));
        let address = format!("m{member}:80");
        let pace = chance.pick(&[1, 2, 3]);
        loop {
            // The seeds renew three times in a lease.
            let divisor = chance.pick(&[3, 3, 3, 3, 3, 4, 6, 12]);
            let settings = Settings {
                lockfile_path: Some("leader.json".to_owned()),
                server_id: server_id.clone(),
                server_addr: self.peers.then(|| address.clone()),
                frequent_interval_ms: Some((lease_ms / divisor).max(100)),
                infrequent_interval_ms: Some(lease_ms * pace),
                leader_timeout_ms: Some(lease_ms),
                peer_mode: Some(self.peers),
                peer_timeout_ms: Some((lease_ms / 5).max(50)),
                peers: self.peer_settings.clone(),
                follow: Some(chance.pick(&[Follow::Tight, Follow::Balanced, Follow::Frugal])),
                margin_ms: Some(lease_ms.div_ceil(self.margin_parts)),
                store_skew_ms: Some(self.store_skew_ms),
                max_lease_ms: Some(self.max_lease_ms),
                clock: if cron { HostClock::One } else { HostClock::Two },
                ..Settings::default()
            };
            if Config::new(&settings).is_ok() {
                return settings;
            }
        }
    }
}

/// A record that no session of the schedule wrote; each number makes other bytes.
pub fn foreign_record(number: u64, leader_id: &str, term: Option<u64>, released: bool) -> Vec<u8> {
    let mut extra = Object::new();
    extra.set("note", number.to_string());
    let stamp = if released { Stamp::Released } else { Stamp::At(1_795_000_000_000) };
    lease::write(&Lease { term, extra, ..Lease::bare(leader_id, stamp) })
}
