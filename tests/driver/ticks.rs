//! Cron ticks on virtual time, as a seed draws them: late, doubled, on isolates that vanish, beside
//! members that would like to lead as well. The real tick, the default settings, one clock.

use std::collections::BTreeSet;

use edgelect::clock::Now;
use edgelect::config::{HostClock, PeerSettings};
use edgelect::driver::Requests;
use edgelect::job::{JobTarget, schedule};
use edgelect::tick::{PARKING_MS, SUSTAIN_MS, check_tick, leads_for_ms, tick};
use edgelect::timers::Timers;
use edgelect::{Schedule, SlotOutcome, init, new_schedule, run, run_scheduled};

use crate::driver::prelude::*;
use crate::mixed::bucket::{Bucket, Shared, WAY_MS, Written};
use crate::mixed::world::World;

const PERIOD_MS: u64 = 60_000;
const LEASE_MS: u64 = 15_000;
const SKEW_MS: u64 = 2_000;
/// A lease is parked 2 s after the next trigger is due; a claim takes two round trips.
const MOST_LATE_MS: u64 = LEASE_MS + SUSTAIN_MS - PARKING_MS - PERIOD_MS - 4 * WAY_MS - 100;
/// What three groups of one trigger share on Cloudflare's free plan.
const THIRD_SUBREQUESTS: u64 = FREE_SUBREQUESTS / 3;
/// How many more a tick makes after one that was ended from outside.
const LOOKS_AFTER_AN_END: u64 = 5;
/// The subrequests that Cloudflare's free plan allows one event.
const FREE_SUBREQUESTS: u64 = 50;
/// How soon after a wait a follower looks again.
const LOOK_MS: u64 = 1_000;
const FOLLOWS: [Follow; 3] = [Follow::Tight, Follow::Balanced, Follow::Frugal];
const STEP_MS: u64 = 50;
const MINUTES: u64 = 20;
const SEEDS: u64 = 30;

/// A host in virtual time. With one clock it says when a timer holds it, as on Workers.
#[derive(Clone)]
struct Place {
    time: Virtual,
    timers: Timers,
}

impl Host for Place {
    fn now(&self) -> Now {
        let ms = EPOCH_MS + self.time.now_ms.get();
        self.timers.now(ms, ms)
    }

    async fn sleep(&self, ms: u64) {
        let due = self.timers.set(self.now().mono_ms + ms);
        self.time.sleep(ms).await;
        due.fired(self.now().mono_ms);
    }

    fn random(&self) -> Result<[u8; 16], String> {
        self.time.random()
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        self.time.fetch(request, limit).await
    }
}

#[derive(Clone, Copy, Default)]
struct Course {
    others: bool,
    /// Each trigger comes once and on time.
    on_time: bool,
    vanishing: bool,
    failing_per_mille: u64,
}

struct Ticks {
    bucket: Bucket,
    dated: bool,
    course: Course,
    isolates: RefCell<Vec<(String, Handle)>>,
    requests: Shared<Vec<Requests>>,
}

type Fleet = World<Ticks>;

#[derive(Debug, Default)]
struct Worst {
    gap_ms: u64,
    requests: u64,
    terms: usize,
    leaders: BTreeSet<String>,
}

fn config(name: &str, cron: bool, follow: Follow) -> Config {
    config_of(Settings {
        server_id: Some(name.to_owned()),
        clock: if cron { HostClock::One } else { HostClock::Two },
        sustain_ms: cron.then_some(SUSTAIN_MS),
        follow: Some(follow),
        ..Settings::default()
    })
}

fn fleet(seed: u64, course: Course) -> Fleet {
    let mut fleet = World::new(STEP_MS, seed, |time, chance| {
        let dated = chance.borrow_mut().one_in(2);
        let bucket = Bucket::new(time, dated, chance);
        bucket.failing_per_mille.set(course.failing_per_mille);
        let (isolates, requests) = Default::default();
        Ticks { bucket, dated, course, isolates, requests }
    });
    let bucket = fleet.place.bucket.clone();
    fleet.each_step = Box::new(move || bucket.arrive());
    let config = config("init", false, Follow::Balanced);
    block_on(init(&fleet.place.bucket.memory, &fleet.host(false), &config)).expect("a new group");
    fleet
}

impl Fleet {
    fn host(&self, single: bool) -> Place {
        let clock = if single { HostClock::One } else { HostClock::Two };
        Place { time: self.time.drawing(&self.chance), timers: Timers::new(clock) }
    }

    fn begin(&self, name: &'static str, cron: bool, scheduled_ms: u64) {
        let follow = self.chance.borrow_mut().pick(&FOLLOWS);
        self.begin_with(follow, name, cron, scheduled_ms);
    }

    fn begin_with(&self, follow: Follow, name: &'static str, cron: bool, scheduled_ms: u64) {
        let place = self.host(cron);
        let leads_for_ms = leads_for_ms(EPOCH_MS + scheduled_ms, place.now(), SUSTAIN_MS);
        if cron && leads_for_ms.is_none() {
            return;
        }
        let election = new_election(&place, config(name, cron, follow)).expect("it has chance");
        let handle = Handle::new(election);
        let (wire, requests) = (self.place.bucket.clone(), Rc::clone(&self.place.requests));
        let (running, host) = (handle.clone(), place.clone());
        let task = async move {
            match leads_for_ms.filter(|_| cron) {
                Some(ms) => {
                    tick(&running, &wire, &host, ms).await.expect("the store can be used");
                    requests.borrow_mut().push(running.requests());
                }
                None => run(&running, &wire, &host, |_| {}).await,
            }
        };
        let one = format!("{name} {}", self.next_number());
        if cron {
            self.place.isolates.borrow_mut().push((one.clone(), handle.clone()));
        }
        self.admit(&one, true, move || handle.authority(place.now()).is_some(), task);
    }

    fn vanish(&self) {
        let mut isolates = self.place.isolates.borrow_mut();
        if !isolates.is_empty() {
            let at = self.below(isolates.len() as u64) as usize;
            let (gone, handle) = isolates.swap_remove(at);
            self.place.requests.borrow_mut().push(handle.requests());
            self.kill(&gone);
        }
    }

    /// Draws when the triggers of all minutes come: each once or twice, on time or late.
    fn triggers(&self) -> Vec<(u64, u64, &'static str)> {
        let mut chance = self.chance.borrow_mut();
        let mut triggers = Vec::new();
        if self.place.course.on_time {
            let on_time = |minute| (minute * PERIOD_MS, minute * PERIOD_MS, "worker");
            return (0..MINUTES).map(on_time).collect();
        }
        let names = if self.place.course.others { &["worker", "another"][..] } else { &["worker"] };
        let names = |minute| names.iter().map(move |name| (minute, *name));
        for (minute, name) in (0..MINUTES).flat_map(names) {
            let scheduled_ms = minute * PERIOD_MS;
            let late_ms = if chance.one_in(3) { chance.between(0, MOST_LATE_MS) } else { 0 };
            // The first tick of all begins the group.
            let late_ms = if minute == 0 { u64::from(name == "another") * 5_000 } else { late_ms };
            triggers.push((scheduled_ms + late_ms, scheduled_ms, name));
            while chance.one_in(3) {
                let late_ms = late_ms + chance.span(PERIOD_MS);
                triggers.push((scheduled_ms + late_ms, scheduled_ms, name));
            }
        }
        triggers.sort_unstable();
        triggers
    }

    fn play_minutes(mut self, worst: &mut Worst) {
        let mut triggers = self.triggers().into_iter().peekable();
        let (mut led_ms, mut calm_ms) = (None, 0);
        let mut server = self.place.course.others;
        for now_ms in (0..MINUTES * PERIOD_MS).step_by(STEP_MS as usize) {
            while triggers.peek().is_some_and(|(at_ms, ..)| *at_ms <= now_ms) {
                let (_, scheduled_ms, name) = triggers.next().expect("it was peeked at");
                self.begin(name, true, scheduled_ms);
            }
            if server && now_ms >= 3_000 {
                self.begin("server", false, 0);
                server = false;
            }
            self.pass(STEP_MS);
            let draws_once_a_minute = || self.chance.borrow_mut().one_in(PERIOD_MS / STEP_MS);
            if self.place.course.vanishing && now_ms >= calm_ms && draws_once_a_minute() {
                self.vanish();
                // Time for the next to lead, so that one loss is measured and not a row of them.
                calm_ms = now_ms + 3 * PERIOD_MS;
            }
            if let Some(leader) = self.leaders().first() {
                worst.leaders.insert(leader.split(' ').next().unwrap_or_default().to_owned());
                let since_ms = led_ms.replace(now_ms).map_or(0, |before_ms| now_ms - before_ms);
                worst.gap_ms = worst.gap_ms.max(since_ms);
            }
        }
        self.judge(worst);
    }

    fn judge(&self, worst: &mut Worst) {
        let (seed, written) = (self.seed, self.place.bucket.written.borrow());
        let lease = |written: &Written| match lease::read(&written.body) {
            Reading::Lease(lease) => (written.at_ms, *lease),
            other => panic!("seed {seed}: {other:?}"),
        };
        let written: Vec<(u64, Lease)> = written.iter().map(lease).collect();
        for pair in written.windows(2) {
            let [(before_ms, before), (at_ms, after)] = pair else { unreachable!("two at a time") };
            if before.session == after.session {
                continue;
            }
            worst.terms += 1;
            assert!(after.term > before.term, "seed {seed}: {before:?}, then {after:?}");
            let parked = before.parked && before.leader_id == after.leader_id;
            let waited_ms = at_ms - before_ms;
            let free = before.released() || parked || Some(waited_ms) >= before.lease_ms;
            assert!(free, "seed {seed}: waited {waited_ms} ms for {before:?}, then {after:?}");
        }
        let requests = self.place.requests.borrow();
        let most = requests.iter().map(|requests| requests.read + requests.write).max();
        worst.requests = worst.requests.max(most.unwrap_or(0));
    }
}

/// Plays many courses: the worst of those with a store that names the time, and of those without.
fn play(course: Course) -> [Worst; 2] {
    let mut worst = [Worst::default(), Worst::default()];
    for seed in 0..SEEDS {
        let fleet = fleet(seed, course);
        let undated = usize::from(!fleet.place.dated);
        fleet.play_minutes(&mut worst[undated]);
    }
    println!("with a Date {:?}\nwithout one {:?}", worst[0], worst[1]);
    let most = worst.iter().map(|worst| worst.requests).max().unwrap_or(0);
    let failing = course.failing_per_mille > 0;
    assert!(most <= FREE_SUBREQUESTS || failing, "{most} requests in one tick");
    worst
}

#[test]
fn ticks_hand_over_within_a_second_and_three_groups_share_the_requests_of_a_trigger() {
    for worst in play(Course { on_time: true, ..Course::default() }) {
        assert!(worst.gap_ms <= 1_000, "{} ms without authority", worst.gap_ms);
        assert!(worst.requests <= THIRD_SUBREQUESTS, "{} requests in one tick", worst.requests);
        assert!(worst.terms as u64 >= MINUTES - 1, "{} terms", worst.terms);
    }
}

#[test]
fn c55_a_trigger_a_minute_keeps_the_lease_from_all_others_however_late_or_often_it_comes() {
    for worst in play(Course { others: true, ..Course::default() }) {
        assert_eq!(worst.leaders, ["worker".to_owned()].into());
        let most_ms = MOST_LATE_MS + 4 * WAY_MS + 2 * STEP_MS;
        assert!(worst.gap_ms <= most_ms, "{} ms without authority", worst.gap_ms);
        assert!(worst.terms as u64 >= MINUTES, "{} terms", worst.terms);
    }
}

#[test]
fn a_tick_that_follows_makes_no_more_requests_than_one_that_leads_is_counted_for() {
    for (seed, follow) in (0..SEEDS).flat_map(|seed| FOLLOWS.map(|follow| (seed, follow))) {
        let mut fleet = fleet(seed, Course::default());
        fleet.begin("server", false, 0);
        fleet.pass(3_000);
        for minute in 0..MINUTES {
            fleet.begin_with(follow, "worker", true, 3_000 + minute * PERIOD_MS);
            fleet.pass(PERIOD_MS);
        }
        fleet.pass(SUSTAIN_MS);
        let requests = fleet.place.requests.borrow();
        let most = requests.iter().map(|made| made.read + made.write).max().unwrap_or(0);
        let config = config("worker", true, follow);
        assert_eq!(requests.len() as u64, MINUTES);
        let counted = check_tick(&config, SUSTAIN_MS, most.saturating_sub(1)).is_err();
        assert!(counted, "seed {seed}: {most} requests");
        if fleet.place.dated && follow != Follow::Tight {
            // One in each lease, and one more where the first or the last is of a lease that is cut short.
            let leases = SUSTAIN_MS.div_ceil(LEASE_MS) + 1;
            assert!(most <= leases, "seed {seed}: {most} requests of a {follow:?} tick");
        }
    }
}

#[test]
fn the_heartbeats_of_a_tick_are_counted_beside_its_looks() {
    let least = |heartbeat_ms| {
        let peers = PeerSettings { heartbeat_ms, ..PeerSettings::default() };
        let config = config_of(Settings {
            server_id: Some("worker".to_owned()),
            server_addr: Some("worker.example:8443".to_owned()),
            peer_mode: Some(true),
            peers,
            ..Settings::default()
        });
        (0..1_000).find(|most| check_tick(&config, SUSTAIN_MS, *most).is_ok())
    };
    let heartbeats = (SUSTAIN_MS - PARKING_MS) / 1_000;
    assert_eq!(least(Some(1_000)), least(None).map(|looks| looks + heartbeats));
}

#[test]
fn c52_c53_isolates_that_vanish_cost_a_lease_and_never_two_lead() {
    let [dated, undated] = play(Course { vanishing: true, ..Course::default() });
    let most = dated.requests.max(undated.requests);
    assert!(most <= THIRD_SUBREQUESTS + LOOKS_AFTER_AN_END, "{most} requests in one tick");
    // Gone just after its claim, and the next trigger as late as may be.
    let empty_ms = PERIOD_MS + MOST_LATE_MS;
    let claim_ms = 4 * WAY_MS + 2 * STEP_MS;
    // The store's clock proves the lease over, less storeSkew and what whole seconds hide.
    assert!(dated.gap_ms <= empty_ms + claim_ms, "{} ms with a Date", dated.gap_ms);
    // Without one a new isolate watches for a whole lease and storeSkew, and looks soon after.
    let watched_ms = LEASE_MS + SKEW_MS + LOOK_MS;
    assert!(undated.gap_ms <= empty_ms + watched_ms + claim_ms, "{} ms", undated.gap_ms);
    for beside in play(Course { others: true, vanishing: true, ..Course::default() }) {
        assert_eq!(beside.leaders, ["another", "server", "worker"].map(str::to_owned).into());
    }
}

#[test]
fn c53_one_leads_at_a_time_whatever_the_store_fails_to_do() {
    for failing_per_mille in [50, 500, 900] {
        print!("{failing_per_mille} per mille of all requests fail: ");
        for worst in play(Course { failing_per_mille, others: true, ..Course::default() }) {
            // Or nothing of it would be judged.
            let leaders = if failing_per_mille < 500 { 1 } else { 3 };
            assert!(
                worst.terms > 10 && worst.leaders.len() == leaders,
                "{failing_per_mille}: {worst:?}"
            );
        }
    }
}

/// What is left beside two writes that are sent three times and read back.
const WITH_ROOM: u64 = FREE_SUBREQUESTS - 6;

/// What a trigger of the deployed Worker's job did: the outcome of its slot, the runs, and its requests with the calls.
type Job = (SlotOutcome, usize, u64);

impl Fleet {
    /// A trigger for the slot of a minute, with the deployed Worker's variables; `job_ms` says how long its n-th job
    /// takes, at most the timeout.
    fn fire(
        &self,
        name: &'static str,
        minute: u64,
        vars: &'static [(&str, &str)],
        job_ms: impl Fn(usize) -> u64 + 'static,
    ) -> Shared<Option<Job>> {
        let get = |name: &str| vars.iter().find(|var| var.0 == name).map(|var| var.1.to_owned());
        let config = config(name, true, Follow::Balanced);
        let settings = schedule(get, Some(EPOCH_MS + minute * PERIOD_MS)).expect("they are fine");
        let mut schedule = Schedule::new(&settings, &config).expect("it fits the config");
        let target = JobTarget::from_vars(get, true, &config, &schedule).expect("fine");
        let target = target.expect("it is bound");
        target.reserve(&config, &mut schedule);
        let (place, wire, told) = (self.host(true), self.place.bucket.clone(), Shared::default());
        let found = Rc::clone(&told);
        self.spawn(async move {
            let election = new_schedule(&place, config, schedule).expect("it has chance");
            let handle = Handle::new(election);
            let count = RefCell::new(0);
            let job = async |_| {
                let ms = job_ms(*count.borrow()).min(target.timeout_ms);
                *count.borrow_mut() += 1;
                place.sleep(ms).await;
                Ok::<_, ()>(())
            };
            let report = run_scheduled(&handle, &wire, &place, job).await.expect("the store works");
            let Requests { read, write, .. } = handle.requests();
            let made = read + write + report.runs.len() as u64;
            *found.borrow_mut() = Some((report.outcome, report.runs.len(), made));
        });
        told
    }
}

#[test]
fn c54_a_trigger_that_waits_for_its_lease_and_runs_its_longest_job_stays_under_its_subrequests() {
    let mut worst = [0; 2];
    for seed in 0..SEEDS {
        let mut world = fleet(seed, Course::default());
        world.pass(PERIOD_MS);
        world.fire("another", 1, &[], |_| PERIOD_MS + SUSTAIN_MS - 5_000);
        world.pass(PERIOD_MS);
        let waited = world.fire("worker", 2, &[], |_| u64::MAX);
        world.pass(5 * PERIOD_MS);
        let (outcome, runs, made) = waited.take().expect("it has ended");
        // The last look in the budget may come just before the lease is free.
        assert_eq!(runs, usize::from(outcome == SlotOutcome::Done), "seed {seed}: {outcome:?}");
        let worst = &mut worst[usize::from(!world.place.dated)];
        *worst = made.max(*worst);
    }
    println!("requests with a Date, without one: {worst:?}");
    // It has waited, or the limit would be far.
    assert!(worst.iter().all(|made| (36..=WITH_ROOM).contains(made)), "{worst:?}");
}

#[test]
fn c54_a_trigger_whose_jobs_renew_often_makes_up_for_a_missed_slot() {
    const VARS: &[(&str, &str)] =
        &[("EDGELECT_POLICY", "atLeastOnce"), ("EDGELECT_PERIOD", "60000")];
    let mut world = fleet(1, Course::default());
    world.pass(PERIOD_MS);
    world.fire("worker", 1, VARS, |_| 0);
    world.pass(2 * PERIOD_MS);
    let late = world.fire("worker", 3, VARS, |_| 40_000);
    world.pass(5 * PERIOD_MS);
    let (outcome, runs, made) = late.take().expect("it has ended");
    assert_eq!((outcome, runs), (SlotOutcome::Done, 2), "{made} requests");
    assert!(made <= WITH_ROOM, "{made}");
}

#[test]
fn c54_a_trigger_that_catches_up_leaves_the_requests_of_a_job_that_takes_all_its_time() {
    const VARS: &[(&str, &str)] =
        &[("EDGELECT_POLICY", "atLeastOnce"), ("EDGELECT_PERIOD", "60000")];
    let mut worst = 0;
    for (seed, long) in (0..SEEDS).flat_map(|seed| (0..12).map(move |long| (seed, long))) {
        let mut world = fleet(seed, Course::default());
        world.pass(PERIOD_MS);
        world.fire("worker", 1, VARS, |_| 0);
        world.pass(19 * PERIOD_MS);
        let late = world.fire("worker", 20, VARS, move |run| u64::MAX * u64::from(run == long));
        world.pass(5 * PERIOD_MS);
        let (_, runs, made) = late.take().expect("it has ended");
        assert!(runs > long.min(5), "seed {seed}: {runs} slots made up for");
        worst = made.max(worst);
    }
    println!("requests: {worst}");
    assert!((36..=WITH_ROOM).contains(&worst), "{worst}");
}
