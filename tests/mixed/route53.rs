//! Real elections on a zone that shows old states, throttles, and loses what it is sent; alone, and beside
//! members that act by shardcoordinator's document.

#[path = "route53/zone.rs"]
mod zone;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use edgelect::driver;
use edgelect::election::LostReason;
use edgelect::probe::{self, Finding};
use edgelect::{
    Config, Handle, Host, Input, Route53Config, Route53Store, Schedule, ScheduleSettings, Settings,
    SlotOutcome, Term, new_election, new_schedule, run_scheduled,
};

use self::zone::{Batch, Faults, Net, Set, Zone};
use crate::mixed::coordinator::{Coordinator, Lock};
use crate::mixed::world::{Ours, World};
use worlds::credentials;
use worlds::virtual_time::{Virtual, config_of};

const LEASE_MS: u64 = 15_000;
const RENEW_MS: u64 = 5_000;

fn store(host: &Virtual) -> Route53Store<Virtual> {
    let config = Route53Config {
        hosted_zone_id: "Z1".to_owned(),
        record_prefix: "lock".to_owned(),
        domain_name: "example.com".to_owned(),
        shard_id: "jobs".to_owned(),
        lease_ms: LEASE_MS,
        ..Route53Config::default()
    };
    Route53Store::new(config, credentials(), host.clone()).expect("the names are fine")
}

fn config(id: &str) -> Config {
    config_of(Settings { server_id: Some(id.to_owned()), ..Settings::default() })
}

impl Lock for Net {
    /// List, parse, compare the epoch with the own clock, and replace.
    async fn take(&self, id: &str, leads: bool, lease_ms: u64, clock: &Virtual) -> Option<u64> {
        let epoch = (clock.wall_ms() + lease_ms) / 1_000;
        let existing = self.list().await.ok()?;
        let now_s = clock.wall_ms() / 1_000;
        match (existing.as_ref().map(parse), leads) {
            (None, true) => return None,
            (Some((owner, until)), true) if owner != id || now_s > until => return None,
            (Some((_, until)), false) if now_s < until => return None,
            _ => {}
        }
        let create = Set { ttl: "60".to_owned(), values: vec![format!("\"{id} {epoch}\"")] };
        // It deletes with a TTL of 60, whatever there is.
        let delete = existing.map(|set| Set { ttl: "60".to_owned(), ..set });
        self.change(Batch { delete, create: Some(create) }).await.ok()?;
        Some(epoch * 1_000)
    }

    async fn release(&self, id: &str) {
        if let Some(set) = self.list().await.ok().flatten().filter(|set| parse(set).0 == id) {
            let _ = self.change(Batch { delete: Some(set), create: None }).await;
        }
    }
}

/// As shardcoordinator reads a record.
fn parse(set: &Set) -> (String, u64) {
    let value = set.values[0].trim_matches('"');
    let parsed = value.split_once(' ').and_then(|(owner, epoch)| {
        Some((owner.to_owned(), epoch.parse::<i64>().ok()?.max(0).unsigned_abs()))
    });
    parsed
        .unwrap_or_else(|| panic!("shardcoordinator can read every record of edgelect's: {set:?}"))
}

type Fleet = World<Rc<RefCell<Zone>>>;
type Member = Ours<Net>;

/// What was held up arrives in time.
fn fleet(seed: u64, faults: Faults) -> Fleet {
    let mut fleet = World::new(20, |_| Zone::new(seed, faults));
    fleet.seed = seed;
    let (zone, time) = (Rc::clone(&fleet.place), fleet.time.clone());
    fleet.each_step = Box::new(move || zone.borrow_mut().catch_up(time.now_ms.get()));
    fleet
}

impl Fleet {
    fn below(&self, bound: u64) -> u64 {
        self.place.borrow_mut().chance.below(bound)
    }

    fn join(&self, id: &str) -> Member {
        let net = Net::new(&self.time, &self.place);
        let host = net.host();
        let election = new_election(&host, config(id)).expect("it has randomness");
        self.elect(id, Handle::new(election), store(&host), host, net)
    }

    /// One of theirs, whose clock is so far ahead of Route 53's.
    fn join_coordinator(&self, id: &str, lease_ms: u64, ahead_ms: i64) -> Coordinator<Net> {
        let (net, host) = (Net::new(&self.time, &self.place), self.time.ahead(ahead_ms));
        self.coordinate(Coordinator::new(id, net, host, lease_ms, RENEW_MS))
    }

    fn is_led_by(&self, member: &Member) -> bool {
        member.handle.authority(self.time.now()).is_some()
    }

    /// What operators and machines do to a fleet: networks come and go, processes die and are started, leaders resign.
    fn misfortune(&self, members: &mut Vec<Member>) {
        let member = members[self.below(members.len() as u64) as usize].clone();
        match self.below(4) {
            0 => member.way.cut.set(!member.way.cut.get()),
            1 => member.handle.tell(Input::Resign),
            2 => {
                // It is never heard of again, and goes on believing what it believes until its fence.
                member.way.cut.set(true);
                let id = member.handle.with(|election| election.server_id().to_owned());
                members.push(self.join(&id));
            }
            _ => member.way.cut.set(false),
        }
    }
}

/// Seconds to minutes of old answers, five requests a second, one of seven without an answer.
const BAD: Faults = Faults { stale_ms: 180_000, lost_percent: 14, throttles: true, lies: false };

/// Hours of misfortunes, alone or beside theirs: how many terms there were, and leaderships of theirs.
fn played(seed: u64, stale_ms: u64, beside: bool, seen: &mut [u64; 3]) -> [u64; 2] {
    let mut fleet = fleet(seed, Faults { stale_ms, ..BAD });
    let ids = if beside { &["a", "b"][..] } else { &["a", "b", "c"] };
    let mut members: Vec<Member> = ids.iter().map(|id| fleet.join(id)).collect();
    let mut coordinators = Vec::new();
    for (id, lease_ms) in [("x", LEASE_MS), ("y", 3 * LEASE_MS)].into_iter().filter(|_| beside) {
        // The page's bound: `margin` and a second ahead, two seconds behind.
        let ahead_ms = fleet.below(4_400) as i64 - 1_900;
        coordinators.push(fleet.join_coordinator(id, lease_ms, ahead_ms));
    }
    for round in 0..24 {
        fleet.pass(40_000);
        fleet.misfortune(&mut members);
        // A rolling restart: it releases by deletion.
        let leader = coordinators.iter().find(|coordinator| coordinator.leads());
        if let Some(leader) = leader.filter(|_| round % 4 == 3) {
            leader.stop();
        }
        if beside && coordinators.iter().filter(|one| !one.stands_still.get()).count() < 2 {
            coordinators.push(fleet.join_coordinator("z", LEASE_MS, 0));
        }
    }
    let counts = fleet.place.borrow().seen;
    *seen = std::array::from_fn(|index| seen[index] + counts[index]);
    let terms = fleet.observer.tokens.borrow().len() as u64;
    [terms, coordinators.iter().map(|one| u64::from(one.acquired.get())).sum()]
}

#[test]
fn old_reads_lost_answers_and_throttling_never_make_two_leaders_and_tokens_grow() {
    for (beside, stale_ms) in [(false, &[4_000, 30_000, 180_000][..]), (true, &[4_000, 30_000])] {
        let (mut sum, mut seen) = ([0; 2], [0; 3]);
        for seed in 0..24 {
            let stale_ms = stale_ms[seed as usize % stale_ms.len()];
            let [terms, acquired] = played(seed, stale_ms, beside, &mut seen);
            sum = [sum[0] + terms, sum[1] + acquired];
        }
        assert!(sum[0] > 24 && (sum[1] > 24) == beside, "{sum:?} terms here and there");
        assert!(seen.iter().all(|count| *count >= 10), "throttled, old, late: {seen:?}");
    }
}

/// For how long one of theirs led beside ours that were cut off, its clock being so far ahead.
fn beside_ms(ahead_ms: i64) -> u64 {
    let mut beside_ms = 0;
    for seed in 0..40 {
        let mut fleet = fleet(seed, Faults::default());
        let member = fleet.join("a");
        let phase_ms = fleet.below(RENEW_MS);
        fleet.watch(40_000 + phase_ms);
        let x = fleet.join_coordinator("x", LEASE_MS, ahead_ms);
        fleet.watch(20_000);
        member.way.cut.set(true);
        fleet.watch(LEASE_MS + 2 * RENEW_MS);
        assert!(x.leads() && !fleet.is_led_by(&member), "seed {seed}");
        beside_ms += fleet.observer.beside_ms.get();
    }
    beside_ms
}

#[test]
fn a_clock_of_theirs_within_margin_and_a_second_takes_no_living_lease_and_one_beyond_is_seen_to() {
    assert_eq!(beside_ms(2_499), 0);
    assert!(beside_ms(5_000) > 0, "nobody has seen it");
}

#[test]
fn a_leader_on_a_good_zone_keeps_its_term_and_writes_one_batch_an_interval() {
    let mut fleet = fleet(1, Faults { throttles: true, ..Faults::default() });
    let members = ["a", "b"].map(|id| fleet.join(id));
    fleet.pass(40_000);
    assert_eq!(fleet.leaders().len(), 1);
    let writes = || members.iter().map(|member| member.handle.requests().write).sum::<u64>();
    let before = writes();
    fleet.pass(100_000);
    let batches = writes() - before;
    assert!((19..=21).contains(&batches), "{batches} batches in 100 s");
    assert_eq!(fleet.observer.tokens.borrow().len(), 1);
}

#[test]
fn a_leader_whose_answers_are_lost_keeps_its_term_through_old_read_backs() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 200..220 {
        let faults = Faults { stale_ms: 8_000, lost_percent: 20, ..Faults::default() };
        let mut fleet = fleet(seed, faults);
        fleet.join("a");
        fleet.pass(300_000);
        match fleet.observer.tokens.borrow().len() {
            1 => kept += 1,
            _ => lost += 1,
        }
    }
    assert!(kept > lost, "{kept} kept their only term, {lost} did not");
}

#[test]
fn s8_throttled_renewals_cost_no_term_while_an_attempt_gets_through_before_the_fence() {
    for code in ["Throttling", "PriorRequestNotComplete"] {
        let mut fleet = fleet(9, Faults::default());
        let member = fleet.join("a");
        fleet.pass(40_000);
        assert_eq!(fleet.leaders(), ["a"], "{code}");
        for round in 0..12 {
            // At another part of the interval each time: from the one renewal over the next, and not over the fence.
            fleet.pass(10_000 + 400 * round);
            member.way.says.set(Some(code));
            fleet.pass(RENEW_MS + 1_000);
            member.way.says.set(None);
        }
        fleet.pass(60_000);
        assert_eq!((fleet.observer.tokens.borrow().len(), member.lost()), (1, vec![]), "{code}");
        member.way.says.set(Some(code));
        fleet.pass(LEASE_MS);
        assert_eq!((fleet.ours_leads(), member.lost()), (None, vec![LostReason::Expired]));
        member.way.says.set(None);
        fleet.pass(2 * LEASE_MS);
        assert_eq!((fleet.ours_leads(), fleet.observer.tokens.borrow().len()), (Some(true), 2));
    }
}

#[test]
fn a_resignation_here_is_honoured_there_at_once_and_the_other_way_round() {
    let mut fleet = fleet(2, Faults::default());
    let member = fleet.join("a");
    fleet.pass(40_000);
    assert!(fleet.is_led_by(&member));
    let x = fleet.join_coordinator("x", LEASE_MS, 0);
    fleet.pass(30_000);
    assert!(!x.leads(), "the lease is held");
    member.handle.tell(Input::Resign);
    fleet.pass(RENEW_MS + 1_000);
    assert!(x.leads(), "a tombstone is free at once");
    fleet.pass(60_000);
    assert!(x.leads() && !fleet.is_led_by(&member));
    let named = |member: &Member, now| {
        member.handle.with(|election| election.leader_id(now).map(str::to_owned))
    };
    assert_eq!(named(&member, fleet.time.now()).as_deref(), Some("x"));
    let lease_ms = member.handle.with(|election| election.record().unwrap().1.lease_ms);
    assert!((Some(15_000)..=Some(18_000)).contains(&lease_ms), "{lease_ms:?}");
    let before = *fleet.observer.tokens.borrow().last().unwrap();
    x.stop();
    // It deletes the record, and what is missing is no permission: the grace passes first (S7).
    fleet.pass(RENEW_MS + LEASE_MS + 20_000);
    assert!(fleet.is_led_by(&member));
    assert!(*fleet.observer.tokens.borrow().last().unwrap() > before);
}

#[test]
fn a_foreign_leader_that_dies_is_waited_out_through_the_second_of_its_epoch() {
    for (name, lease_ms, ahead_ms, date_ahead_ms) in [
        ("of our lease", LEASE_MS, 0, 0),
        ("of a longer one", 3 * LEASE_MS, 0, 0),
        ("by a slow clock", 3 * LEASE_MS, -999, 0),
        ("and a proxy sets Date ahead", 3 * LEASE_MS, 0, 30_000),
    ] {
        let mut fleet = fleet(3, Faults::default());
        fleet.place.borrow_mut().date_ahead_ms = date_ahead_ms;
        let x = fleet.join_coordinator("x", lease_ms, ahead_ms);
        fleet.pass(1_000);
        assert!(x.leads(), "{name}");
        let member = fleet.join("a");
        fleet.pass(21_000);
        x.lock.cut.set(true);
        // It renews while its clock shows no later second than that.
        let until_ms = x.until_ms.get().expect("it leads") + 1_000;
        while x.host.wall_ms() < until_ms {
            fleet.pass(20);
            assert!(!fleet.is_led_by(&member), "{name}");
        }
        fleet.pass(20_000);
        assert!(fleet.is_led_by(&member), "{name}");
    }
}

#[test]
fn a_record_of_another_make_is_healed_after_the_grace_and_not_before() {
    let mut fleet = fleet(5, Faults::default());
    let spf = Set { ttl: "300".to_owned(), values: vec!["\"v=spf1 -all\"".to_owned()] };
    let batch = Batch { delete: None, create: Some(spf.clone()) };
    fleet.place.borrow_mut().change(0, &batch).unwrap();
    let member = fleet.join("a");
    fleet.pass(LEASE_MS - 1_000);
    assert_eq!(fleet.place.borrow().current(), Some(&spf));
    fleet.pass(10_000);
    assert!(fleet.is_led_by(&member));
}

/// What the probe finds on a zone.
fn probed(seed: u64, faults: Faults) -> Vec<probe::Judged> {
    let mut fleet = fleet(seed, faults);
    let host = Net::new(&fleet.time, &fleet.place).host();
    let judged: Rc<RefCell<Vec<probe::Judged>>> = Rc::default();
    let task = {
        let judged = Rc::clone(&judged);
        async move {
            let config = config("a");
            let effort = probe::Effort::at_start(&config);
            let found = probe::probe(&store(&host), &host, &config, effort, |_| {}).await;
            *judged.borrow_mut() = found.expect("randomness").judged;
        }
    };
    fleet.spawn(task);
    fleet.pass(60_000);
    judged.take()
}

#[test]
fn c26_the_probe_accepts_a_zone_and_does_not_accuse_one_that_is_busy_or_shows_old_states() {
    let judged = probed(6, Faults::default());
    let holds = judged.iter().filter(|one| one.finding == Finding::Holds).count();
    assert_eq!((judged.len(), holds), (8, 7), "a record set has no Last-Modified: {judged:?}");
    for seed in 0..100 {
        let judged = probed(seed, BAD);
        let accused = judged.iter().any(|one| matches!(one.finding, Finding::Violated(_)));
        assert!(!accused && !judged.is_empty(), "seed {seed}: {judged:?}");
    }
}

#[test]
fn c26_the_probe_refuses_a_zone_that_takes_a_stale_delete_and_a_second_create() {
    let judged = probed(7, Faults { lies: true, ..Faults::default() });
    let violated = |one: &&probe::Judged| matches!(one.finding, Finding::Violated(_));
    let step = judged.iter().find(violated).map(|one| one.step);
    assert_eq!(step, Some(probe::Step::UpdateOfNothing), "{judged:?}");
}

/// One trigger: its slot, its session, and what it has reported.
struct Trigger {
    slot_ms: u64,
    session: String,
    outcome: Rc<Cell<Option<SlotOutcome>>>,
}

impl Fleet {
    fn trigger(&self, slot_ms: u64, begun: &Rc<RefCell<Vec<(u64, String)>>>) -> Trigger {
        let host = Net::new(&self.time, &self.place).host();
        let settings = ScheduleSettings {
            slot_ms: Some(slot_ms),
            period_ms: Some(60_000),
            budget_ms: Some(50_000),
            ..ScheduleSettings::default()
        };
        let schedule = Schedule::new(&settings, &config("m")).expect("it is fine");
        let handle = Handle::new(new_schedule(&host, config("m"), schedule).expect("randomness"));
        let session = handle.with(|election| election.session().to_owned());
        let outcome = Rc::new(Cell::new(None));
        let task = {
            let (outcome, session, begun) =
                (Rc::clone(&outcome), session.clone(), Rc::clone(begun));
            async move {
                let store = store(&host);
                let job = async |term: Term<'_, Virtual>| {
                    let slot_ms = term.slot_ms.expect("a slot is run");
                    begun.borrow_mut().push((slot_ms, session.clone()));
                    host.sleep(3_000).await;
                    Ok::<(), ()>(())
                };
                let report = run_scheduled(&handle, &store, &host, job).await;
                outcome.set(Some(report.expect("the zone is there").outcome));
            }
        };
        self.spawn(task);
        Trigger { slot_ms, session, outcome }
    }
}

#[test]
fn slots_are_run_once_and_whoever_claimed_one_and_did_not_run_it_says_so_whatever_old_reads_show() {
    let (mut ran, mut unknown) = (0, 0);
    for seed in 300..330 {
        let mut fleet = fleet(seed, Faults { stale_ms: 600_000, lost_percent: 25, ..BAD });
        let begun: Rc<RefCell<Vec<(u64, String)>>> = Rc::default();
        let mut triggers = Vec::new();
        for _ in 0..15 {
            let slot_ms = fleet.time.now().wall_ms / 60_000 * 60_000;
            triggers.push(fleet.trigger(slot_ms, &begun));
            fleet.pass(700);
            triggers.push(fleet.trigger(slot_ms, &begun));
            fleet.pass(59_300);
        }
        fleet.pass(120_000);
        let begun = begun.borrow();
        let mut slots: Vec<u64> = begun.iter().map(|(slot_ms, _)| *slot_ms).collect();
        slots.sort_unstable();
        assert!(slots.is_sorted_by(|a, b| a < b), "seed {seed}: {begun:?}");
        ran += slots.len();
        for Trigger { slot_ms, session, outcome } in &triggers {
            let outcome = outcome.get().expect("its budget is over");
            unknown += u64::from(outcome == SlotOutcome::Unknown);
            let claimed = format!("\\\"slot\\\":{slot_ms},\\\"slotDone\\\":false");
            let holds = |value: &str| {
                let whole = value.replace("\" \"", "");
                whole.contains(session) && whole.contains(&claimed)
            };
            let held = fleet.place.borrow().history().any(holds);
            let runs = begun.contains(&(*slot_ms, session.clone()));
            let told = matches!(outcome, SlotOutcome::Unknown | SlotOutcome::Lost);
            assert!(
                !held || runs || told,
                "seed {seed}: {session} holds {slot_ms} and says {outcome:?}"
            );
        }
    }
    assert!(ran > 100 && unknown > 0, "{ran} ran, {unknown} unknown");
}

#[test]
fn a_claim_that_was_not_heard_of_stays_unknown_where_only_older_records_are_shown() {
    let mut fleet = fleet(8, Faults::default());
    let host = Net::new(&fleet.time, &fleet.place).host();
    let init = async move {
        driver::init(&store(&host), &host, &config("m")).await.expect("a new group");
    };
    fleet.spawn(init);
    let minute_ms = |fleet: &Fleet| fleet.time.now().wall_ms / 60_000 * 60_000;
    let begun: Rc<RefCell<Vec<(u64, String)>>> = Rc::default();
    fleet.pass(120_000);
    let first = fleet.trigger(minute_ms(&fleet), &begun);
    fleet.pass(60_000);
    assert_eq!(first.outcome.get(), Some(SlotOutcome::Done));
    let live = fleet.place.borrow().live_state_of(&first.session);
    fleet.place.borrow_mut().trap = Some(live);
    let second = fleet.trigger(minute_ms(&fleet), &begun);
    fleet.pass(120_000);
    assert_eq!(begun.borrow().len(), 1, "nobody runs it: its claim is not known to have landed");
    assert_eq!(second.outcome.get(), Some(SlotOutcome::Unknown));
}
