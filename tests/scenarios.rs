//! Scenarios of scenarios.md in which time or a fault is the point, one named test each, on the
//! modelled store. The oracle watches all of them: a broken rule fails the test whatever else it
//! asserts.

use edgelect::clock::Now;
use edgelect::config::{Follow, PeerSettings, Settings};
use edgelect::election::{Event as Told, Input, LostReason, Problem};
use edgelect::lease::Stamp;
use edgelect::proof::Hidden;
use edgelect::store::{Answer, Facts, FaultKind, Outcome};

use worlds::sim::clocks::Clocks;
use worlds::sim::network::{Fate, Trouble};
use worlds::sim::oracle::Aim;
use worlds::sim::schedule::foreign_record;
use worlds::sim::stage::{INTERVAL_MS, LEASE_MS, MARGIN_MS, Stage, TERM, config, settings};

const FENCE_MS: u64 = LEASE_MS - MARGIN_MS;

fn lost_answer() -> Fate {
    Fate { answer_ms: None, ..Fate::calm(5, 5) }
}

fn after(trouble: Trouble) -> Fate {
    Fate { after: Some(trouble), ..Fate::calm(5, 5) }
}

fn before(trouble: Trouble) -> Fate {
    Fate { before: Some(trouble), ..Fate::calm(5, 5) }
}

fn run_until_a_write_leaves(stage: &mut Stage) {
    let sent = stage.world.oracle.deeds.len();
    while stage.world.oracle.deeds.len() == sent {
        stage.run(10);
    }
}

#[test]
fn c01_two_create_at_once_and_one_leads_after_the_grace() {
    let mut stage = Stage::absent(2);
    stage.world.start(0);
    stage.world.start(1);
    stage.run(LEASE_MS - 100);
    assert_eq!(stage.leader(), None, "a record created from absence grants nothing at first");
    stage.run(LEASE_MS);
    let leader = stage.leader().expect("the grace is over");
    assert_eq!(stage.acquired(0) + stage.acquired(1), 1);
    let read = stage.election(1 - leader).record().map(|(_, lease)| lease.leader_id.clone());
    assert_eq!(read, Some(format!("m{leader}")), "the other has read who won");
}

/// What a group meets that machine 0 leads.
type Meets = fn(&mut Stage);

#[test]
fn c03_c11_c35_c38_c57_c58_c61_c63_what_costs_nobody_a_term() {
    let long = |machine| Settings {
        leader_timeout_ms: Some(60_000),
        frequent_interval_ms: Some(10_000),
        ..settings(machine)
    };
    let pair = [settings(0), settings(1)];
    let rows: [(&str, &[Settings], Meets); 8] = [
        ("03: the answer to a renewal is lost", &pair, |stage| {
            stage.script(0, true, 1, lost_answer());
        }),
        ("03: a renewal lands and is answered by a 500", &pair, |stage| {
            stage.script(0, true, 1, after(Trouble::ServerError));
        }),
        ("11: a 409 to a renewal, and another", &pair, |stage| {
            stage.script(0, true, 2, before(Trouble::Conflict));
        }),
        ("35: two processes of one serverId", &[settings(0), settings(0)], |_| ()),
        ("38: a wall clock goes back", &pair, |stage| stage.world.step_wall(0, -3_600_000)),
        ("57: a blip shorter than the budget", &pair, |stage| stage.cut_off(0, 3_000)),
        ("58: a follower is cut off", &pair, |stage| stage.cut_off(1, 20 * LEASE_MS)),
        ("63: 30 s without a store, of a lease of 60", &[long(0), long(1)], |stage| {
            stage.outage(true, 30_000);
        }),
    ];
    for (what, group, meets) in rows {
        println!("{what}");
        let mut stage = Stage::led_by(group);
        meets(&mut stage);
        stage.run(25 * LEASE_MS);
        let terms = (stage.acquired(0), stage.lost(0).len(), stage.acquired(1));
        assert_eq!((stage.leader(), terms), (Some(0), (1, 0, 0)), "{what}");
    }
    for lease_ms in [1_000, 2_000, 10_000, 15_000, 45_000] {
        let (leader_timeout_ms, frequent_interval_ms) = (Some(lease_ms), None);
        let lasting = Settings { leader_timeout_ms, frequent_interval_ms, ..settings(0) };
        let mut stage = Stage::led_by(&[lasting]);
        stage.script(0, true, 2, Fate { request_ms: None, ..Fate::calm(0, 0) });
        stage.run(4 * lease_ms);
        assert_eq!(stage.lost(0).len(), 0, "61: three attempts before the fence of {lease_ms} ms");
    }
}

#[test]
fn c04_c05_c07_c08_c38_c42_c59_what_costs_a_term_ends_it_by_its_fence_and_a_new_one_follows() {
    use LostReason::{Deleted, Expired, Overtaken};
    let rows: [(&str, LostReason, u64, Meets); 8] = [
        ("04: overwritten before the read-back", Overtaken, INTERVAL_MS, |stage| {
            stage.run(INTERVAL_MS - 2_000);
            stage.script(0, true, 1, lost_answer());
            stage.script(0, true, 1, before(Trouble::Conflict));
            stage.run(1_500);
            stage.put(&foreign_record(9, "stranger", None, false));
        }),
        ("05: renewals land, and nobody says so", Expired, FENCE_MS, |stage| {
            stage.run(INTERVAL_MS);
            stage.cut(0, false, true, 600_000);
        }),
        ("59: the same from the first renewal on", Expired, FENCE_MS, |stage| {
            stage.cut(0, false, true, 600_000);
        }),
        ("07, 08: the object is deleted", Deleted, INTERVAL_MS, |stage| stage.world.store.delete()),
        ("38: a wall clock goes forward", Expired, INTERVAL_MS, |stage| {
            stage.world.step_wall(0, 3_600_000);
        }),
        ("42: a shorter lease, from the moment its renewal leaves", Expired, 6_000, |stage| {
            shorten(stage);
            stage.run(3_000);
            stage.cut(0, false, true, 600_000);
        }),
        ("42: a 403 to a renewal of a shorter lease that landed", Expired, 6_000, |stage| {
            shorten(stage);
            stage.script(0, true, 1, after(Trouble::Denied));
            stage.run(3_500);
            stage.cut_off(0, 600_000);
        }),
        ("42: renewals land after the lapse", Expired, INTERVAL_MS + FENCE_MS, |stage| {
            stage.script(0, true, u64::MAX, Fate::calm(14_000, 5));
        }),
    ];
    for (what, reason, most_ms, meets) in rows {
        println!("{what}");
        let mut stage = Stage::led(1);
        let term = stage.term();
        meets(&mut stage);
        let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
        assert!(left_ms <= most_ms, "{what}: {left_ms} ms");
        stage.world.script.clear();
        stage.cut(0, false, false, 0);
        stage.run(4 * LEASE_MS);
        assert_eq!((stage.leader(), stage.acquired(0)), (Some(0), 2), "{what}");
        assert_eq!((stage.lost(0), stage.term() > term), (vec![reason], true), "{what}");
    }
}

#[test]
fn c02_c06_c40_c44_c45_who_comes_back_after_a_takeover_has_lost_and_changes_nothing() {
    let rows: [(&str, Meets); 4] = [
        ("02: cut off", |stage| stage.cut_off(0, 40_000)),
        ("06: renewals arrive after the takeover", |stage| {
            stage.script(0, true, 3, Fate::calm(40_000, 5));
            stage.run(INTERVAL_MS);
            stage.cut_off(0, 60_000);
        }),
        ("40: suspended", |stage| stage.world.suspend(0, 10 * LEASE_MS)),
        ("44, 45: stopped between look and deed", |stage| stage.world.pause(0, 3 * LEASE_MS)),
    ];
    for (what, meets) in rows {
        println!("{what}");
        let mut stage = Stage::led(2);
        let held_up = stage.term();
        meets(&mut stage);
        let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
        assert!(took_ms <= LEASE_MS + 1_000, "{what}: {took_ms}");
        let term = stage.term();
        assert!(term > held_up, "{what}: a resource that has seen the newer token refuses a deed");
        stage.run(12 * LEASE_MS);
        assert_eq!((stage.leader(), stage.term()), (Some(1), term), "{what}");
        assert_eq!((stage.acquired(0), stage.lost(0)), (1, vec![LostReason::Expired]), "{what}");
    }
}

#[test]
fn c13_twenty_candidates_that_see_a_lease_run_out_at_once_spread_their_claims() {
    let balanced = |machine| Settings { follow: Some(Follow::Balanced), ..settings(machine) };
    let mut claims = 0;
    for rounds in 1..=8 {
        let mut stage = Stage::led_by(&(0..21).map(balanced).collect::<Vec<_>>());
        stage.run(rounds * LEASE_MS);
        stage.cut_off(0, 60_000);
        let writes = stage.world.oracle.deeds.len();
        stage.run_until_led_by_other(0, 2 * LEASE_MS);
        let claimed = stage.world.oracle.deeds[writes..].iter().filter(|deed| deed.session != 0);
        claims += claimed.count();
    }
    assert!(claims <= 24, "{claims} claims in eight failovers");
}

#[test]
fn c10_conflicts_that_pass_are_no_trouble() {
    let mut stage = Stage::released(1);
    stage.script(0, true, 3, before(Trouble::Conflict));
    stage.world.start(0);
    for _ in 0..2 * LEASE_MS / 10 {
        stage.run(10);
        assert_eq!(stage.election(0).problem(), None);
    }
    assert_eq!(stage.leader(), Some(0));
}

#[test]
fn c10_creations_that_conflict_are_tried_again_and_one_leads_after_the_grace() {
    let mut stage = Stage::absent(2);
    for machine in [0, 1] {
        stage.script(machine, true, 1, before(Trouble::Conflict));
        stage.world.start(machine);
    }
    stage.run(3 * LEASE_MS);
    let creations = |session| {
        let deeds = stage.world.oracle.deeds.iter();
        let own = deeds.filter(|deed| deed.session == session && deed.aim == Aim::Create);
        own.map(|deed| deed.sent_ms).collect::<Vec<_>>()
    };
    let all = [creations(0), creations(1)];
    assert!(all[0].len() + all[1].len() > 2, "{all:?}");
    // In the same moment both are refused, and not both come again in one.
    assert!(all[0][0].abs_diff(all[1][0]) < 20 && all[0].get(1) != all[1].get(1), "{all:?}");
    assert!(stage.leader().is_some());
    assert_eq!([0, 1].map(|machine| stage.election(machine).problem().cloned()), [None, None]);
}

#[test]
fn a_store_that_refuses_each_write_on_what_it_shows_is_told_in_the_status() {
    let mut stage = Stage::released(1);
    stage.script(0, true, u64::MAX, before(Trouble::Conflict));
    stage.world.start(0);
    stage.run(2 * LEASE_MS);
    assert_eq!(stage.election(0).problem(), Some(&Problem::Contradicted));
    stage.world.script.clear();
    stage.run(LEASE_MS);
    assert_eq!(stage.leader(), Some(0));
    assert_eq!(stage.election(0).problem(), None);
}

#[test]
fn a_last_modified_that_moves_with_each_answer_does_not_begin_the_grace_for_ever() {
    let mut stage = Stage::absent(1);
    stage.world.store.manners.moving = true;
    stage.world.oracle.contract.changes_told = false;
    stage.world.start(0);
    stage.run(3 * LEASE_MS);
    assert_eq!(stage.leader(), None, "a record that is made anew would look the same");
    let problem = stage.election(0).problem();
    assert_eq!(problem, Some(&Problem::MovingTimes), "it says why nobody leads");
    stage.run(3 * LEASE_MS);
    assert_eq!(stage.leader(), Some(0));
}

/// One that asks its peers.
fn asks(machine: usize) -> Settings {
    let server_addr = Some(format!("m{machine}:80"));
    Settings { peer_mode: Some(true), server_addr, ..settings(machine) }
}

/// How many reads, or questions to peers, the follower has sent.
fn sent(stage: &Stage, reads: bool) -> usize {
    let requests = stage.world.requests.iter();
    requests.filter(|one| one.session == 1 && one.asked.is_some() == reads).count()
}

#[test]
fn c66_whatever_a_peer_says_the_store_is_read_once_in_ten_leases() {
    let mut stage = Stage::led_by(&[asks(0), asks(1)]);
    stage.run(2 * LEASE_MS);
    let before = sent(&stage, true);
    stage.run(100 * LEASE_MS);
    let read = sent(&stage, true) - before;
    assert!((8..=12).contains(&read), "{read} reads in a hundred leases");
    assert_eq!(stage.leader(), Some(0));
}

#[test]
fn c66_a_leader_that_resigns_is_followed_at_once_by_one_look_and_one_write() {
    for secret in [None, Some(Hidden(vec!["0123456789abcdef".to_owned()]))] {
        let peers = PeerSettings { secret, ..PeerSettings::default() };
        let mut stage =
            Stage::led_by(&[0, 1].map(|one| Settings { peers: peers.clone(), ..asks(one) }));
        stage.run(2 * LEASE_MS + 1_234);
        let before = stage.world.requests.len();
        stage.stop(0, false);
        let took_ms = stage.run_until_led_by_other(0, LEASE_MS);
        assert!(took_ms <= 150, "{took_ms} ms, and the only follower waits for nobody");
        let of_follower = stage.world.requests[before..].iter().filter(|one| one.session == 1);
        assert_eq!(of_follower.count(), 2, "a look and a write");
    }
}

#[test]
fn c69_under_a_stale_address_the_store_is_read_within_one_interval() {
    let stale = Settings { server_addr: Some("m9:80".to_owned()), ..settings(0) };
    let mut stage = Stage::led_by(&[stale, asks(1)]);
    let (mut reads, mut since_ms, mut longest_ms) = (sent(&stage, true), 0, 0);
    for _ in 0..8 * LEASE_MS / 100 {
        stage.run(100);
        since_ms += 100;
        longest_ms = longest_ms.max(since_ms);
        if sent(&stage, true) > reads {
            (reads, since_ms) = (sent(&stage, true), 0);
        }
    }
    assert!(sent(&stage, false) >= 4, "it is asked again and again");
    let most_ms = INTERVAL_MS + INTERVAL_MS / 10 + 3_000 + 200;
    assert!(longest_ms <= most_ms, "{longest_ms} ms without a look");
    assert_eq!(stage.leader(), Some(0), "and nobody is deposed for it");
}

#[test]
fn c12_c15_a_store_that_turns_everybody_away_ends_the_term_at_its_fence_and_is_not_asked_often() {
    let slow_down = Fate { retry_after_ms: Some(20_000), ..before(Trouble::ServerError) };
    for (fate, told, most_soon, most) in [
        (slow_down, FaultKind::Unavailable, 2, 20),
        (before(Trouble::Denied), FaultKind::Denied, 10, 30),
    ] {
        let mut stage = Stage::led(1);
        stage.script(0, true, u64::MAX, fate);
        stage.script(0, false, u64::MAX, fate);
        let requests = stage.world.tally.requests;
        let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
        assert!((FENCE_MS - 2_500..=FENCE_MS).contains(&left_ms), "{told:?}: {left_ms}");
        assert_eq!(stage.store_problem(0), Some(told), "it says why");
        let soon = stage.world.tally.requests - requests;
        stage.run(10 * LEASE_MS);
        let spent = stage.world.tally.requests - requests;
        assert!(soon <= most_soon && spent <= most, "{told:?}: {soon}, and {spent} in 10 leases");
    }
}

#[test]
fn c22_resign_and_acquire_again_never_writes_the_same_bytes() {
    let mut stage = Stage::led(1);
    for _ in 0..4 {
        stage.tell(0, Input::Resign);
        stage.world.step_wall(0, -3_600_000);
        stage.run(3 * LEASE_MS);
        assert_eq!(stage.leader(), Some(0));
    }
    assert_eq!(stage.acquired(0), 5);
}

#[test]
fn c27_garbage_is_healed_after_the_grace_and_not_before() {
    for body in [&b""[..], b"{\"leaderID\":", &[0xFF; 300], &[b'x'; 10 << 20]] {
        let mut stage = Stage::led(2);
        stage.put(body);
        stage.run(LEASE_MS - 1_000);
        assert_eq!(stage.lost(0), [LostReason::Overtaken]);
        assert!(stage.record().is_none() && stage.leader().is_none(), "nothing is written yet");
        stage.run(2 * INTERVAL_MS);
        assert!(stage.leader().is_some(), "healed without a second grace");
    }
}

#[test]
fn c28_a_higher_format_is_never_claimed() {
    let mut stage = Stage::led(2);
    stage.put(br#"{"leaderID":"x","format":2}"#);
    stage.run(20 * LEASE_MS);
    assert_eq!(stage.leader(), None);
    let problem = stage.election(0).problem();
    assert_eq!(problem, Some(&Problem::NewerFormat(Some(2))), "it says why");
    stage.world.store.delete();
    stage.run(3 * LEASE_MS);
    assert!(stage.leader().is_some(), "the way out: stop all, delete, wait");
}

#[test]
fn c29_c30_c31_what_a_record_says_is_kept_and_never_a_shorter_wait_however_absurd() {
    let rows = ["\"leaseMs\":0", "\"leaseMs\":-5", "\"leaseMs\":9e18", "\"sequence\":\"many\""];
    let future = r#""lastUpdated":"9999-12-31T23:59:59Z","term":5,"leaseMs":15000"#;
    let unknown = r#""theirs":{"a":[1]}"#;
    for more in rows.into_iter().chain([future, unknown]) {
        let mut stage = Stage::absent(1);
        stage.put(format!(r#"{{"leaderID":"x",{more}}}"#).as_bytes());
        stage.world.start(0);
        stage.run(LEASE_MS - 1_000);
        assert_eq!(stage.leader(), None, "{more}");
        stage.run(2 * INTERVAL_MS);
        assert_eq!(stage.leader(), Some(0), "{more}");
        let theirs = stage.record().and_then(|lease| lease.extra.get("theirs"));
        assert_eq!(theirs, (more == unknown).then_some(r#"{"a":[1]}"#), "{more}");
    }
}

#[test]
fn c32_a_released_record_is_claimed_at_once_by_exactly_one() {
    let mut stage = Stage::released(2);
    stage.world.start(0);
    stage.world.start(1);
    stage.run(1_000);
    assert!(stage.leader().is_some() && stage.term() > Some(TERM));
    stage.run(10 * LEASE_MS);
    assert_eq!(stage.acquired(0) + stage.acquired(1), 1);
}

#[test]
fn c33_a_deletion_costs_a_grace_and_the_token_grows() {
    let mut stage = Stage::led(2);
    let before = stage.term();
    stage.world.store.delete();
    stage.run_until_without(0, LEASE_MS);
    let began_ms = stage.world.now_ms;
    while stage.leader().is_none() {
        stage.run(20);
    }
    let gap_ms = stage.world.now_ms - began_ms;
    assert!((LEASE_MS - INTERVAL_MS..2 * LEASE_MS).contains(&gap_ms), "{gap_ms}");
    assert!(stage.term() > before);
}

#[test]
fn c34_the_records_own_lease_counts() {
    let long = |machine: usize, lease_ms: u64| Settings {
        leader_timeout_ms: Some(lease_ms),
        frequent_interval_ms: Some(lease_ms / 3),
        max_lease_ms: Some(30_000),
        ..settings(machine)
    };
    let mut stage = Stage::led_by(&[long(0, 30_000), long(1, 6_000)]);
    stage.world.crash(0, 3_600_000);
    let took_ms = stage.run_until_led_by_other(0, 60_000);
    assert!((27_000..32_500).contains(&took_ms), "{took_ms}");
}

#[test]
fn c37_c39_wall_clocks_off_by_a_day_and_rates_within_the_margin_have_no_effect() {
    let offsets = [10_000_i64, 3_600_000, 86_400_000, -86_400_000];
    let rows = offsets.map(|ms| (ms, 0)).into_iter().chain([(0, 10_000), (0, 50_000)]);
    for (offset_ms, rate_ppm) in rows {
        let mut stage = Stage::released(2);
        stage.world.machines[0].clocks = Clocks::new(false, -rate_ppm, 1_000, 0);
        stage.world.machines[1].clocks = Clocks::new(false, rate_ppm, 1_000, offset_ms);
        stage.start_all();
        stage.run(10 * LEASE_MS);
        assert_eq!((stage.leader(), stage.lost(0).len()), (Some(0), 0));
        // It leads on to its fence, and the oracle looks at both.
        stage.cut_off(0, 600_000);
        let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
        assert_eq!(stage.lost(0), [LostReason::Expired]);
        let most_ms = FENCE_MS - INTERVAL_MS - LEASE_MS * rate_ppm as u64 / 1_000_000;
        assert!(took_ms > most_ms, "{offset_ms} ms, {rate_ppm} ppm: {took_ms}");
    }
}

/// Machine 0 gets a lease of 6 s in mid-term.
fn shorten(stage: &mut Stage) {
    let short = Settings {
        leader_timeout_ms: Some(6_000),
        frequent_interval_ms: Some(1_000),
        max_lease_ms: Some(LEASE_MS),
        ..settings(0)
    };
    stage.tell(0, Input::Configure(Box::new(config(&short))));
}

#[test]
fn c42_an_answer_that_is_processed_after_the_deadline_grants_nothing() {
    // The renewal before this one left an interval earlier, and its fence is what counts.
    let left_ms = FENCE_MS - INTERVAL_MS;
    for (after_ms, in_time) in [(left_ms - 100, true), (left_ms + 100, false)] {
        let mut stage = Stage::led(1);
        let term = stage.term().expect("m0 leads");
        stage.script(0, true, 1, lost_answer());
        run_until_a_write_leaves(&mut stage);
        let session = stage.session(0);
        let now = stage.world.look(session).now;
        let late = Now::new(now.mono_ms + after_ms, now.wall_ms + after_ms);
        let version = stage.world.oracle.deeds.last().map(|deed| deed.version.clone());
        let answer = Answer { outcome: Outcome::Written { version }, facts: Facts::default() };
        let election = &mut stage.world.sessions[session].election;
        election.handle(late, Input::Answer(answer));
        let held = election.authority(late).map(|authority| authority.term);
        assert_eq!(held, in_time.then_some(term));
        let lost = Told::Lost { term, reason: LostReason::Expired };
        assert_eq!(election.next_event(), (!in_time).then_some(lost));
    }
}

#[test]
fn c46_a_restart_finds_its_own_name_and_waits_all_the_same() {
    let mut stage = Stage::led(1);
    let before = stage.term();
    stage.script(0, true, 1, Fate::calm(200, 200));
    run_until_a_write_leaves(&mut stage);
    stage.world.crash(0, 500);
    stage.run(INTERVAL_MS);
    let written = stage.world.oracle.deeds.last().map(|deed| deed.version.clone());
    let stored = stage.world.store.object.as_ref().map(|object| object.version.clone());
    assert_eq!(stored, written, "it landed, and nobody remembers");
    assert_eq!(stage.leader(), None, "the record of another session is never confirmed");
    stage.run(2 * LEASE_MS);
    assert!(stage.leader() == Some(0) && stage.term() > before);
}

#[test]
fn c47_a_crash_loop_faster_than_the_lease_does_not_churn() {
    let mut stage = Stage::led(2);
    for _ in 0..40 {
        stage.world.crash(0, 100);
        stage.run(LEASE_MS / 4);
    }
    assert!(stage.world.tally.terms <= 3, "{} terms in ten leases", stage.world.tally.terms);
    assert_eq!(stage.leader(), Some(1));
}

#[test]
fn c48_a_stop_ends_the_work_then_writes_a_tombstone_on_its_own_record_only() {
    let mut stage = Stage::led(2);
    stage.world.machines[0].work_end_ms = 400;
    stage.stop(0, false);
    assert_eq!(stage.leader(), None, "authority ends before anything leaves");
    let took_ms = stage.run_until_led_by_other(0, LEASE_MS);
    assert!(took_ms <= INTERVAL_MS + 1_000, "{took_ms}");
    assert_eq!(stage.lost(0), [LostReason::Stopped]);
    let mut stage = Stage::led(1);
    stage.script(0, true, 1, Fate::calm(100, 900));
    run_until_a_write_leaves(&mut stage);
    stage.stop(0, false);
    stage.run(2_500);
    let stored = stage.record().map(|lease| lease.last_updated);
    assert_eq!(stored, Some(Stamp::Released), "a renewal that was in flight is released");
    let mut stage = Stage::led(1);
    stage.put(&foreign_record(3, "stranger", None, false));
    stage.stop(0, false);
    stage.run(3_000);
    assert!(!stage.alive(0), "bounded");
    assert_eq!(stage.record().map(|lease| lease.leader_id.as_str()), Some("stranger"));
}

#[test]
fn c49_a_stop_without_a_record_ends_and_writes_nothing() {
    for park in [true, false] {
        let mut stage = Stage::led(1);
        stage.world.store.delete();
        stage.stop(0, park);
        stage.run(3_000);
        assert!(!stage.alive(0), "a leader whose record is gone");
        assert!(stage.world.store.object.is_none());
    }
    let mut stage = Stage::absent(1);
    stage.outage(true, 60_000);
    stage.world.start(0);
    stage.run(1_000);
    stage.stop(0, false);
    stage.run(3_000);
    assert!(!stage.alive(0), "a candidate that never saw one");
    assert!(stage.world.store.object.is_none());
}

#[test]
fn c57_a_leader_that_is_cut_off_stops_at_its_fence_and_not_before() {
    let mut stage = Stage::led(2);
    stage.run(3 * LEASE_MS);
    let sent_ms = stage.world.oracle.deeds.last().expect("m0 renews").sent_ms;
    let gone_ms = stage.world.now_ms - sent_ms;
    stage.cut_off(0, 60_000);
    let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
    let span_ms = left_ms + gone_ms;
    assert!((FENCE_MS - 10..FENCE_MS + 30).contains(&span_ms), "{span_ms}");
}

#[test]
fn c60_a_link_that_flaps_every_second_bounds_the_changes_of_leader() {
    for (phase_ms, off_ms) in [(0, 1_000), (300, 1_000), (700, 1_000), (1_300, 1_500), (500, 1_800)]
    {
        let mut stage = Stage::led(3);
        stage.run(phase_ms);
        for _ in 0..120 {
            stage.cut_off(0, off_ms);
            stage.run(2_000);
        }
        let terms = stage.world.tally.terms;
        assert!(terms <= 3, "{phase_ms}, {off_ms} ms: {terms} terms in 16 leases");
    }
}

#[test]
fn c62_latency_that_climbs_to_the_lease_fails_closed() {
    let mut stage = Stage::led(2);
    let mut way_ms = 25;
    while way_ms < LEASE_MS {
        stage.world.weather.latency_ms = (way_ms, way_ms + 1);
        stage.run(LEASE_MS);
        way_ms *= 2;
    }
    assert_eq!(stage.leader(), None, "the oracle saw that no fence was passed on the way");
}

#[test]
fn c64_six_hours_of_outage_cost_patience_and_no_memory() {
    let mut stage = Stage::led(5);
    stage.outage(true, 6 * 3_600_000);
    stage.run(60_000);
    assert_eq!(stage.leader(), None);
    let told = |stage: &Stage| format!("{:?}", stage.world.sessions[0].election).len();
    let (size, requests) = (told(&stage), stage.world.tally.requests);
    stage.run(6 * 3_600_000 - 61_000);
    assert!(told(&stage) <= size + 1_000, "no growth");
    let each = (stage.world.tally.requests - requests) / 5;
    assert!(each <= 6 * 3_600 / 15, "{each} requests of each in six hours: the back-off is capped");
    let took_ms = stage.run_until_led_by_other(usize::MAX, 4 * LEASE_MS);
    assert!(took_ms <= 3 * LEASE_MS, "{took_ms}");
}

#[test]
fn c64_after_an_outage_of_hours_there_is_no_herd() {
    let mut stage = Stage::led(40);
    stage.outage(true, 2 * 3_600_000);
    stage.run(2 * 3_600_000 - 61_000);
    let mut busiest = 0;
    for _ in 0..60 {
        let requests = stage.world.tally.requests;
        stage.run(1_000);
        busiest = busiest.max(stage.world.tally.requests - requests);
    }
    // Two a second is what 40 make that look every 15 to 30 s.
    assert!(busiest <= 10, "{busiest} requests in one second: they have fallen into step");
    let deeds = stage.world.oracle.deeds.len();
    stage.run_until_led_by_other(usize::MAX, 4 * LEASE_MS);
    let claims = stage.world.oracle.deeds.len() - deeds;
    assert!(claims <= 3, "{claims} claims");
}

#[test]
fn c65_an_outage_that_begins_inside_a_takeover_grants_nothing_until_the_read_back() {
    let mut stage = Stage::released(1);
    stage.script(0, true, 1, lost_answer());
    stage.world.start(0);
    stage.run(60);
    stage.outage(false, 4_000);
    stage.run(4_000);
    assert_eq!(stage.leader(), None);
    stage.run(2 * LEASE_MS);
    assert_eq!((stage.leader(), stage.acquired(0)), (Some(0), 1));
}
