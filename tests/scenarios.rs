//! Scenarios of scenarios.md in which time or a fault is the point, one named test each, on the
//! modelled store. The oracle watches all of them: a broken rule fails the test whatever else it
//! asserts.

use edgelect::clock::Now;
use edgelect::config::{Follow, HostClock, PeerSettings, Settings};
use edgelect::election::{Event as Told, Input, LostReason, Problem};
use edgelect::lease::{Lease, Stamp};
use edgelect::proof::Hidden;
use edgelect::slots::{Policy, ScheduleSettings};
use edgelect::store::{Answer, Facts, FaultKind, Outcome};

use worlds::sim::clocks::Clocks;
use worlds::sim::network::{Fate, Mangle, Trouble};
use worlds::sim::schedule::foreign_record;
use worlds::sim::slots::Ended;
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

#[test]
fn c02_a_refused_renewal_after_a_legal_takeover_is_a_loss() {
    let mut stage = Stage::led(2);
    stage.cut_off(0, 40_000);
    let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
    assert!(took_ms <= LEASE_MS + 1_000, "{took_ms}");
    stage.run(40_000);
    assert_eq!(stage.lost(0), [LostReason::Expired]);
    assert_eq!((stage.leader(), stage.acquired(0)), (Some(1), 1));
}

#[test]
fn c03_own_write_answered_412_is_adopted_with_its_own_anchor() {
    for fate in [lost_answer(), after(Trouble::ServerError)] {
        let mut stage = Stage::led(2);
        stage.script(0, true, 1, fate);
        stage.run(10 * LEASE_MS);
        assert_eq!((stage.acquired(0), stage.lost(0).len()), (1, 0));
        assert_eq!(stage.leader(), Some(0));
    }
}

#[test]
fn c04_overwritten_before_the_read_back_is_a_loss() {
    let mut stage = Stage::led(2);
    stage.run(INTERVAL_MS - 2_000);
    stage.script(0, true, 1, lost_answer());
    stage.script(0, true, 1, before(Trouble::Conflict));
    stage.run(1_500);
    stage.put(&foreign_record(9, "stranger", None, false));
    stage.run(INTERVAL_MS);
    assert_eq!(stage.lost(0), [LostReason::Overtaken]);
}

#[test]
fn c05_without_any_answer_authority_ends_with_the_previous_renewal() {
    let mut stage = Stage::led(1);
    stage.run(INTERVAL_MS);
    stage.cut(0, false, true, 60_000);
    let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
    assert!(left_ms <= FENCE_MS, "its renewals land, but nobody tells it: {left_ms}");
    assert_eq!(stage.lost(0), [LostReason::Expired]);
}

#[test]
fn c06_a_renewal_that_lands_after_the_takeover_changes_nothing() {
    let mut stage = Stage::led(2);
    stage.script(0, true, 3, Fate::calm(40_000, 5));
    stage.run(INTERVAL_MS);
    stage.cut_off(0, 60_000);
    stage.run_until_led_by_other(0, 2 * LEASE_MS);
    let term = stage.term();
    stage.run(60_000);
    assert_eq!((stage.leader(), stage.term()), (Some(1), term));
}

#[test]
fn c07_c08_a_deleted_object_is_a_loss_and_no_outage() {
    let mut stage = Stage::led(1);
    stage.world.store.delete();
    let left_ms = stage.run_until_without(0, LEASE_MS);
    assert!(left_ms <= INTERVAL_MS, "it stops at its next renewal, not at its fence: {left_ms}");
    assert_eq!(stage.lost(0), [LostReason::Deleted]);
}

#[test]
fn c10_a_conflict_on_create_is_tried_again() {
    let mut stage = Stage::absent(1);
    stage.script(0, true, 2, before(Trouble::Conflict));
    stage.world.start(0);
    stage.run(3_000);
    assert!(stage.record().is_some(), "the third attempt creates the record");
    stage.run(LEASE_MS + INTERVAL_MS);
    assert_eq!(stage.leader(), Some(0));
}

#[test]
fn c11_a_conflict_on_renewal_is_tried_again_inside_the_budget() {
    let mut stage = Stage::led(2);
    stage.script(0, true, 2, before(Trouble::Conflict));
    stage.run(4 * LEASE_MS);
    assert_eq!((stage.leader(), stage.lost(0).len()), (Some(0), 0));
}

#[test]
fn c12_slow_down_again_and_again_fences_on_time_and_is_honoured() {
    let mut stage = Stage::led(1);
    let slow_down = Fate { retry_after_ms: Some(20_000), ..before(Trouble::ServerError) };
    stage.script(0, true, u64::MAX, slow_down);
    stage.script(0, false, u64::MAX, slow_down);
    let requests = stage.world.tally.requests;
    stage.run(INTERVAL_MS + FENCE_MS);
    assert_eq!(stage.lost(0), [LostReason::Expired]);
    assert!(stage.world.tally.requests - requests <= 2, "Retry-After is honoured");
}

#[test]
fn c13_twenty_candidates_do_not_starve_the_leader() {
    let mut stage = Stage::led(21);
    let requests = stage.world.oracle.deeds.len();
    stage.run(10 * LEASE_MS);
    assert_eq!((stage.leader(), stage.lost(0).len()), (Some(0), 0));
    let writes = stage.world.oracle.deeds.len() - requests;
    assert!(writes <= 31, "only the leader writes: {writes}");
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
fn c14_a_store_without_conditional_writes_ends_the_elector() {
    let mut stage = Stage::released(1);
    stage.script(0, true, 1, before(Trouble::Misconfigured));
    stage.world.start(0);
    stage.run(2 * LEASE_MS);
    assert_eq!((stage.failed(0), stage.acquired(0)), (1, 0));
    assert!(!stage.alive(0), "nothing is tried again");
}

#[test]
fn c14_one_answer_ends_nobody_whose_write_the_store_has_taken() {
    let mut stage = Stage::led(1);
    stage.script(0, true, 1, before(Trouble::Misconfigured));
    stage.script(0, false, 1, before(Trouble::Misconfigured));
    stage.run(10 * LEASE_MS);
    assert_eq!((stage.failed(0), stage.lost(0).len(), stage.leader()), (0, 0, Some(0)));
    stage.script(0, true, u64::MAX, before(Trouble::Misconfigured));
    let requests = stage.world.tally.requests;
    stage.run(10 * LEASE_MS);
    let spent = stage.world.tally.requests - requests;
    assert!(spent <= 60, "it backs off: {spent} requests in ten leases");
    assert_eq!((stage.failed(0), stage.lost(0)), (0, vec![LostReason::Expired]));
    assert_eq!(stage.store_problem(0), Some(FaultKind::Misconfigured), "it says why");
    stage.world.script.clear();
    stage.run(4 * LEASE_MS);
    assert_eq!(stage.leader(), Some(0), "and goes on");
}

#[test]
fn c14_one_answer_ends_no_follower_who_has_read_the_record() {
    let mut stage = Stage::led(2);
    stage.script(1, false, 1, before(Trouble::Misconfigured));
    stage.run(2 * LEASE_MS);
    assert_eq!(stage.failed(1), 0);
    stage.cut_off(0, 10 * LEASE_MS);
    stage.run_until_led_by_other(0, 2 * LEASE_MS);
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

/// Two machines that ask their peers; machine 0 leads.
fn peers() -> Stage {
    let asks = |machine: usize| Settings {
        peer_mode: Some(true),
        server_addr: Some(format!("m{machine}:80")),
        ..settings(machine)
    };
    let mut stage = Stage::led_by(&[asks(0), asks(1)]);
    stage.run(2 * LEASE_MS);
    stage
}

#[test]
fn c66_a_peer_that_repeats_one_answer_blinds_nobody() {
    let mut stage = peers();
    stage.world.peers.repeats = true;
    stage.run(LEASE_MS);
    stage.cut_off(0, 100 * LEASE_MS);
    stage.run_until_led_by_other(0, 4 * LEASE_MS);
}

#[test]
fn c66_a_peer_that_makes_up_a_leader_delays_nobody_by_more_than_eleven_leases() {
    for undated in [false, true] {
        let asks = |machine: usize| Settings {
            peer_mode: Some(true),
            server_addr: Some(format!("m{machine}:80")),
            ..settings(machine)
        };
        let mut stage = Stage::of(&[asks(0), asks(1)], undated);
        stage.put(&foreign_record(0, "old", Some(TERM), true));
        stage.start_all();
        stage.world.peers.makes_up = true;
        // The leader renews once more after the follower's read.
        stage.run(INTERVAL_MS + 1_000);
        stage.cut_off(0, 100 * LEASE_MS);
        let most_ms = if undated { 12 * LEASE_MS } else { 11 * LEASE_MS };
        let took_ms = stage.run_until_led_by_other(0, most_ms);
        println!("undated {undated}: {took_ms} ms");
    }
}

#[test]
fn c66_whatever_a_peer_says_the_store_is_read_once_in_ten_leases() {
    let mut stage = peers();
    let reads = |stage: &Stage| {
        let of_follower = |request: &&worlds::sim::requests::Request| {
            request.session == 1 && request.asked.is_some()
        };
        stage.world.requests.iter().filter(of_follower).count()
    };
    let before = reads(&stage);
    stage.run(100 * LEASE_MS);
    let read = reads(&stage) - before;
    assert!((8..=12).contains(&read), "{read} reads in a hundred leases");
    assert_eq!(stage.leader(), Some(0));
}

#[test]
fn c69_under_a_stale_address_the_store_is_read_within_one_interval() {
    let stale = Settings { server_addr: Some("m9:80".to_owned()), ..settings(0) };
    let asks =
        Settings { peer_mode: Some(true), server_addr: Some("m1:80".to_owned()), ..settings(1) };
    let mut stage = Stage::led_by(&[stale, asks]);
    let sent = |stage: &Stage, reads: bool| {
        let of_follower = |request: &&worlds::sim::requests::Request| {
            request.session == 1 && request.asked.is_some() == reads
        };
        stage.world.requests.iter().filter(of_follower).count()
    };
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
    assert!(
        longest_ms <= INTERVAL_MS + INTERVAL_MS / 10 + 3_000 + 200,
        "{longest_ms} ms without a look"
    );
    assert_eq!(stage.leader(), Some(0), "and nobody is deposed for it");
}

#[test]
fn c66_a_leader_that_resigns_is_followed_within_a_second_by_one_look_and_one_write() {
    for secret in [None, Some(Hidden(vec!["0123456789abcdef".to_owned()]))] {
        let asks = |machine: usize| Settings {
            peer_mode: Some(true),
            server_addr: Some(format!("m{machine}:80")),
            peers: PeerSettings { secret: secret.clone(), ..PeerSettings::default() },
            ..settings(machine)
        };
        let mut stage = Stage::led_by(&[asks(0), asks(1)]);
        stage.run(2 * LEASE_MS + 1_234);
        let before = stage.world.requests.len();
        stage.stop(0, false);
        let took_ms = stage.run_until_led_by_other(0, LEASE_MS);
        assert!(took_ms <= 1_000, "{took_ms} ms");
        let of_follower = stage.world.requests[before..].iter().filter(|one| one.session == 1);
        assert_eq!(of_follower.count(), 2, "a look and a write");
    }
}

#[test]
fn c15_access_denied_in_mid_lease_ends_at_the_fence_without_spinning() {
    let mut stage = Stage::led(1);
    stage.script(0, true, u64::MAX, before(Trouble::Denied));
    stage.script(0, false, u64::MAX, before(Trouble::Denied));
    let requests = stage.world.tally.requests;
    let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
    assert!((FENCE_MS - 2_500..=FENCE_MS).contains(&left_ms), "{left_ms}");
    assert_eq!(stage.store_problem(0), Some(FaultKind::Denied), "it says why");
    stage.run(10 * LEASE_MS);
    let spent = stage.world.tally.requests - requests;
    assert!(spent <= 30, "{spent} requests in 150 s of denial");
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
fn c29_unknown_fields_survive_a_takeover_and_missing_ones_have_defaults() {
    let mut stage = Stage::absent(1);
    stage.world.store.put(0, br#"{"leaderID":"x","theirs":{"a":[1]}}"#);
    stage.world.start(0);
    stage.run(3 * LEASE_MS);
    assert_eq!(stage.leader(), Some(0));
    let theirs = stage.record().and_then(|lease| lease.extra.get("theirs").map(str::to_owned));
    assert_eq!(theirs.as_deref(), Some(r#"{"a":[1]}"#));
}

/// What lies there when the only member starts is claimed after a lease, and not before.
fn is_waited_out(body: &str, soon_ms: u64) {
    let mut stage = Stage::absent(1);
    stage.put(body.as_bytes());
    stage.world.start(0);
    stage.run(LEASE_MS - 1_000);
    assert_eq!(stage.leader(), None, "{body}");
    stage.run(soon_ms);
    assert_eq!(stage.leader(), Some(0), "{body}");
}

#[test]
fn c30_absurd_values_are_never_a_shorter_wait() {
    for field in ["\"leaseMs\":0", "\"leaseMs\":-5", "\"leaseMs\":9e18", "\"sequence\":\"many\""] {
        is_waited_out(&format!("{{\"leaderID\":\"x\",{field}}}"), 2 * INTERVAL_MS);
    }
}

#[test]
fn c31_a_record_dated_in_the_future_is_waited_out_like_any_other() {
    let future = r#""lastUpdated":"9999-12-31T23:59:59Z","term":5,"leaseMs":15000"#;
    is_waited_out(&format!("{{\"leaderID\":\"x\",{future}}}"), INTERVAL_MS);
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
fn c33_a_record_in_its_grace_is_neither_parked_nor_released() {
    for park in [true, false] {
        let mut stage = Stage::absent(2);
        stage.world.start(0);
        stage.run(3_000);
        assert!(stage.record().is_some_and(Lease::in_grace));
        stage.stop(0, park);
        stage.run(3_000);
        assert!(!stage.alive(0), "a stop does not wait for the grace");
        assert!(stage.record().is_some_and(|lease| lease.in_grace() && !lease.parked));
        stage.world.start(1);
        let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
        assert!(took_ms >= LEASE_MS - 6_000, "it was put into nobody's hands: {took_ms}");
    }
}

#[test]
fn c33_the_token_grows_though_the_new_term_begins_within_the_second_of_the_old_one() {
    let mut stage = Stage::released(1);
    stage.world.start(0);
    stage.run(100);
    let before = stage.term().expect("it leads at once");
    stage.world.store.delete();
    stage.world.crash(0, 50);
    stage.run(400);
    let provisional = stage.record().and_then(|lease| lease.term);
    assert!(provisional > Some(before), "{provisional:?} is stored after {before}");
    stage.run(LEASE_MS + INTERVAL_MS);
    assert!(stage.term() > Some(before));
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
fn c35_two_processes_with_one_server_id_are_told_apart_by_their_sessions() {
    let mut stage = Stage::led_by(&[settings(0), settings(0)]);
    stage.run(20 * LEASE_MS);
    assert_eq!((stage.acquired(0), stage.acquired(1)), (1, 0));
}

#[test]
fn c37_wall_clocks_off_by_a_day_have_no_effect() {
    for offset_ms in [10_000, 3_600_000, 86_400_000, -86_400_000] {
        let mut stage = Stage::released(2);
        stage.world.machines[1].clocks.wall_offset_ms = offset_ms;
        stage.start_all();
        stage.run(10 * LEASE_MS);
        assert_eq!((stage.leader(), stage.lost(0).len()), (Some(0), 0));
        stage.world.crash(0, 600_000);
        let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
        assert!(took_ms > FENCE_MS - INTERVAL_MS, "{took_ms}");
    }
}

#[test]
fn c38_a_stepped_wall_clock_costs_at_most_a_term() {
    let mut stage = Stage::led(2);
    stage.world.step_wall(0, -3_600_000);
    stage.run(4 * LEASE_MS);
    assert_eq!(stage.lost(0).len(), 0, "backward has no effect");
    stage.world.step_wall(0, 3_600_000);
    stage.run(4 * LEASE_MS);
    assert_eq!(stage.lost(0), [LostReason::Expired]);
    assert_eq!((stage.leader(), stage.acquired(0)), (Some(0), 2), "a new term of its own");
}

#[test]
fn c39_rates_within_the_margin_never_give_two_leaders() {
    for rate_ppm in [10_000, 50_000] {
        let mut stage = Stage::released(2);
        stage.world.machines[0].clocks = Clocks::new(false, -rate_ppm, 0, 0);
        stage.world.machines[1].clocks = Clocks::new(false, rate_ppm, 0, 0);
        stage.start_all();
        stage.cut_off(0, 60_000);
        let took_ms = stage.run_until_led_by_other(0, 2 * LEASE_MS);
        assert!(took_ms > LEASE_MS / 2, "{took_ms}");
    }
}

#[test]
fn c40_after_a_suspend_the_first_look_shows_no_authority() {
    let mut stage = Stage::led(2);
    stage.world.suspend(0, 10 * LEASE_MS);
    stage.run_until_led_by_other(0, 2 * LEASE_MS);
    stage.run(10 * LEASE_MS);
    assert_eq!((stage.leader(), stage.lost(0)), (Some(1), vec![LostReason::Expired]));
}

#[test]
fn c41_a_clock_that_is_held_gives_no_authority_before_the_next_answer() {
    let one = Settings { clock: HostClock::One, ..settings(0) };
    let mut stage = Stage::led_by(&[one]);
    // Long computing past the due time of the next renewal: the clock stands at it.
    stage.world.pause(0, 6_000);
    stage.run(5_500);
    assert!(stage.world.look(0).now.held && stage.leader().is_none());
    stage.run(2_000);
    assert_eq!((stage.leader(), stage.lost(0).len()), (Some(0), 0), "it was never lost");
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
fn c42_a_shorter_lease_binds_from_the_moment_its_renewal_leaves() {
    let mut stage = Stage::led(1);
    shorten(&mut stage);
    stage.run(3_000);
    stage.script(0, true, u64::MAX, lost_answer());
    stage.cut(0, false, true, 60_000);
    let left_ms = stage.run_until_without(0, LEASE_MS);
    assert!(left_ms <= 6_000, "the shorter fence holds: {left_ms}");
}

#[test]
fn c42_a_slow_write_counts_from_before_it_left() {
    for slow in [Fate::calm(1_600, 100), Fate::calm(100, 1_600)] {
        let mut stage = Stage::released(1);
        stage.script(0, true, 1, slow);
        stage.world.start(0);
        while stage.leader().is_none() {
            stage.run(20);
        }
        let sent_ms = stage.world.oracle.deeds.last().expect("m0 claims").sent_ms;
        stage.cut_off(0, 60_000);
        stage.run_until_without(0, LEASE_MS);
        let span_ms = stage.world.now_ms - sent_ms;
        assert!((FENCE_MS - 10..FENCE_MS + 30).contains(&span_ms), "{span_ms}");
    }
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
fn c42_a_shorter_lease_binds_also_where_a_403_came_after_its_renewal_had_landed() {
    let mut stage = Stage::led(1);
    shorten(&mut stage);
    stage.script(0, true, 1, after(Trouble::Denied));
    stage.run(3_500);
    stage.cut_off(0, 60_000);
    let left_ms = stage.run_until_without(0, LEASE_MS);
    assert!(left_ms <= 6_000, "the shorter fence holds: {left_ms}");
}

#[test]
fn c42_a_renewal_that_lands_after_the_lapse_is_a_loss_and_a_new_term() {
    let mut stage = Stage::led(1);
    stage.script(0, true, u64::MAX, Fate::calm(14_000, 5));
    stage.run(INTERVAL_MS + FENCE_MS);
    assert_eq!(stage.lost(0), [LostReason::Expired]);
    stage.world.script.clear();
    stage.run(2 * LEASE_MS);
    assert_eq!((stage.leader(), stage.acquired(0)), (Some(0), 2));
}

#[test]
fn c43_without_a_date_a_restarted_follower_watches_a_whole_lease() {
    let mut stage = Stage::of(&[settings(0), settings(1)], true);
    stage.world.store.put(0, &foreign_record(0, "old", Some(TERM), true));
    stage.start_all();
    stage.world.crash(0, 3_600_000);
    stage.run(10_000);
    stage.world.crash(1, 10);
    let took_ms = stage.run_until_led_by_other(0, 3 * LEASE_MS);
    assert!(took_ms >= LEASE_MS, "a restart starts at zero: {took_ms}");
}

#[test]
fn c44_a_stopped_process_sees_no_authority_when_it_runs_again() {
    let mut stage = Stage::led(2);
    let held_up = stage.term();
    stage.world.pause(0, 3 * LEASE_MS);
    stage.run_until_led_by_other(0, 2 * LEASE_MS);
    assert_eq!(stage.lost(0).len(), 0, "it has not run since");
    assert!(stage.term() > held_up, "a resource that has seen the newer token refuses the older");
    stage.run(3 * LEASE_MS);
    assert_eq!((stage.leader(), stage.lost(0)), (Some(1), vec![LostReason::Expired]));
}

#[test]
fn c45_a_fenced_resource_refuses_the_older_token() {
    let mut stage = Stage::led(2);
    let mut highest = 0;
    let mut accepts = |token: u64| {
        highest = highest.max(token);
        token == highest
    };
    let zombie = stage.term().expect("m0 leads");
    assert!(accepts(zombie), "between the look and the deed the process stops");
    stage.world.pause(0, 3 * LEASE_MS);
    stage.run_until_led_by_other(0, 2 * LEASE_MS);
    assert!(accepts(stage.term().expect("m1 leads")));
    assert!(!accepts(zombie), "the held-up deed carries the older token");
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
fn c48_a_stop_ends_the_work_then_writes_a_tombstone() {
    let mut stage = Stage::led(2);
    stage.world.machines[0].work_end_ms = 400;
    stage.stop(0, false);
    assert_eq!(stage.leader(), None, "authority ends before anything leaves");
    let took_ms = stage.run_until_led_by_other(0, LEASE_MS);
    assert!(took_ms <= INTERVAL_MS + 1_000, "{took_ms}");
    assert_eq!(stage.lost(0), [LostReason::Stopped]);
}

#[test]
fn c48_a_refused_tombstone_is_left_alone() {
    let mut stage = Stage::led(1);
    stage.put(&foreign_record(3, "stranger", None, false));
    stage.stop(0, false);
    stage.run(3_000);
    assert!(!stage.alive(0), "bounded");
    assert_eq!(stage.record().map(|lease| lease.leader_id.as_str()), Some("stranger"));
}

#[test]
fn c48_a_stop_during_a_renewal_in_flight_releases_what_landed() {
    let mut stage = Stage::led(1);
    stage.script(0, true, 1, Fate::calm(100, 900));
    run_until_a_write_leaves(&mut stage);
    stage.stop(0, false);
    stage.run(2_500);
    assert_eq!(stage.record().map(|lease| lease.last_updated), Some(Stamp::Released));
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
fn c55_a_parked_lease_goes_on_at_once_for_its_own_name_only() {
    let mut stage = Stage::of(&[settings(0), settings(0), settings(1)], false);
    stage.world.store.put(0, &foreign_record(0, "old", Some(TERM), true));
    stage.world.start(0);
    stage.run(1_000);
    stage.stop(0, true);
    stage.run(200);
    assert!(stage.record().is_some_and(|lease| lease.parked));
    stage.world.start(2);
    stage.run(500);
    assert_eq!(stage.leader(), None, "others wait the lease out");
    stage.world.start(1);
    stage.run(500);
    assert_eq!(stage.leader(), Some(1));
}

#[test]
fn c57_a_leader_that_is_cut_off_stops_at_its_fence_and_not_before() {
    let mut stage = Stage::led(2);
    stage.cut_off(0, 3_000);
    stage.run(3 * LEASE_MS);
    assert_eq!(stage.lost(0).len(), 0, "a blip shorter than the budget");
    let sent_ms = stage.world.oracle.deeds.last().expect("m0 renews").sent_ms;
    let gone_ms = stage.world.now_ms - sent_ms;
    stage.cut_off(0, 60_000);
    let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
    let span_ms = left_ms + gone_ms;
    assert!((FENCE_MS - 10..FENCE_MS + 30).contains(&span_ms), "{span_ms}");
}

#[test]
fn c58_a_follower_that_is_cut_off_takes_nothing_over() {
    let mut stage = Stage::led(2);
    stage.cut_off(1, 20 * LEASE_MS);
    stage.run(25 * LEASE_MS);
    assert_eq!((stage.leader(), stage.acquired(1), stage.lost(0).len()), (Some(0), 0, 0));
}

#[test]
fn c59_with_requests_through_and_answers_lost_it_fences_and_finds_its_own_record() {
    let mut stage = Stage::led(1);
    stage.cut(0, false, true, 120_000);
    let left_ms = stage.run_until_without(0, 2 * LEASE_MS);
    assert!(left_ms <= FENCE_MS, "{left_ms}");
    stage.run(120_000 + 4 * LEASE_MS);
    assert_eq!((stage.leader(), stage.acquired(0)), (Some(0), 2));
}

#[test]
fn c60_a_link_that_flaps_every_second_bounds_the_changes_of_leader() {
    let mut stage = Stage::led(3);
    for _ in 0..120 {
        stage.cut_off(0, 1_000);
        stage.run(2_000);
    }
    assert!(stage.world.tally.terms <= 3, "{} terms in 16 leases", stage.world.tally.terms);
}

#[test]
fn c61_two_hung_requests_do_not_cost_the_term() {
    for lease_ms in [1_000, 2_000, 10_000, 15_000, 45_000] {
        let lasting = Settings {
            leader_timeout_ms: Some(lease_ms),
            frequent_interval_ms: None,
            ..settings(0)
        };
        let mut stage = Stage::led_by(&[lasting]);
        stage.script(0, true, 2, Fate { request_ms: None, ..Fate::calm(0, 0) });
        stage.run(4 * lease_ms);
        assert_eq!(stage.lost(0).len(), 0, "three attempts fit before the fence of {lease_ms} ms");
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
fn c63_an_outage_shorter_than_the_lease_changes_nothing() {
    let long = Settings {
        leader_timeout_ms: Some(60_000),
        frequent_interval_ms: Some(10_000),
        ..settings(0)
    };
    let mut stage = Stage::led_by(&[long.clone(), long]);
    stage.outage(true, 30_000);
    stage.run(300_000);
    assert_eq!((stage.leader(), stage.lost(0).len(), stage.acquired(1)), (Some(0), 0, 0));
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

#[test]
fn frugal_and_balanced_followers_take_over_within_their_intervals() {
    for (follow, most_ms) in [(Follow::Balanced, LEASE_MS + 4_500), (Follow::Frugal, 46_000)] {
        let follower = Settings { follow: Some(follow), ..settings(1) };
        let mut stage = Stage::led_by(&[settings(0), follower]);
        stage.run(4 * LEASE_MS);
        stage.world.crash(0, 600_000);
        let took_ms = stage.run_until_led_by_other(0, 60_000);
        assert!(took_ms <= most_ms, "{follow:?} took {took_ms} ms");
    }
}

#[test]
fn a_tight_follower_is_soon_in_step_with_its_leader_wherever_it_starts() {
    for phase_ms in (0..INTERVAL_MS).step_by(250) {
        let mut stage = Stage::released(2);
        stage.world.start(0);
        stage.run(1_000 + phase_ms);
        stage.world.start(1);
        stage.run(8 * INTERVAL_MS);
        let requests = stage.world.tally.requests;
        stage.run(40 * INTERVAL_MS);
        let looks = stage.world.tally.requests - requests - 40;
        assert!(looks <= 44, "from {phase_ms} ms: {looks} reads in 40 intervals");
        // The worst moment is just after a renewal.
        let sequence = stage.record().expect("m0 leads").sequence;
        while stage.record().expect("m0 leads").sequence == sequence {
            stage.run(10);
        }
        stage.world.crash(0, 600_000);
        let took_ms = stage.run_until_led_by_other(0, 60_000);
        assert!(took_ms <= LEASE_MS + 1_000, "from {phase_ms} ms: took {took_ms} ms");
    }
}

fn slots(policy: Policy) -> ScheduleSettings {
    ScheduleSettings {
        period_ms: Some(2 * LEASE_MS),
        policy: Some(policy),
        ..ScheduleSettings::default()
    }
}

/// Long enough after the record that a slot can be claimed over one without any.
const SLOT_MS: u64 = 20_000;

#[test]
fn c54_triggers_out_of_order_and_overlapping_run_each_slot_once() {
    let mut stage = Stage::released(3);
    stage.run(SLOT_MS + 30_000);
    let later = stage.trigger(0, SLOT_MS + 30_000, slots(Policy::AtMostOnce));
    stage.run(1_000);
    let earlier = stage.trigger(1, SLOT_MS, slots(Policy::AtMostOnce));
    let doubled = stage.trigger(2, SLOT_MS + 30_000, slots(Policy::AtMostOnce));
    stage.run(1_000);
    stage.job_ends(later, Ended::Done);
    stage.run(1_000);
    let outcomes = [later, earlier, doubled].map(|session| stage.outcome(session));
    assert_eq!(outcomes, ["done", "taken", "taken"]);
    assert_eq!(stage.runs(later), [SLOT_MS + 30_000]);
}

#[test]
fn c54_a_claim_that_may_have_landed_is_never_reported_as_skipped() {
    let slow = Fate::calm(5, 300);
    let fates = [
        Fate { after: Some(Trouble::Denied), ..slow },
        Fate { after: Some(Trouble::Conflict), ..slow },
        Fate { mangle: Some(Mangle::NoEtag), ..slow },
        lost_answer(),
    ];
    for fate in fates {
        let mut stage = Stage::released(1);
        stage.run(SLOT_MS);
        stage.script(0, true, u64::MAX, fate);
        let trigger = stage.trigger(0, SLOT_MS, slots(Policy::AtMostOnce));
        run_until_a_write_leaves(&mut stage);
        stage.run(10);
        assert_eq!(stage.record().and_then(|lease| lease.slot_done), Some(false), "{fate:?}");
        stage.cut_off(0, 3_600_000);
        stage.run(70_000);
        assert_eq!((stage.outcome(trigger), stage.runs(trigger).len()), ("unknown", 0), "{fate:?}");
    }
}

#[test]
fn c54_a_body_that_was_damaged_on_the_way_says_nothing_of_slots() {
    let mut stage = Stage::released(1);
    stage.run(SLOT_MS);
    let first = stage.trigger(0, SLOT_MS, slots(Policy::AtMostOnce));
    stage.run(1_000);
    stage.job_ends(first, Ended::Done);
    stage.run(1_000);
    stage.script(0, false, 1, Fate { mangle: Some(Mangle::CutShort), ..Fate::calm(5, 5) });
    let second = stage.trigger(0, SLOT_MS + 2_000, slots(Policy::AtMostOnce));
    stage.run(8_000);
    stage.job_ends(second, Ended::Done);
    stage.run(1_000);
    assert_eq!((stage.outcome(first), stage.outcome(second)), ("done", "done"));
}

#[test]
fn c56_a_creation_that_lands_long_after_its_absence_covers_what_ran_meanwhile() {
    for policy in [Policy::AtMostOnce, Policy::AtLeastOnce] {
        let mut stage = Stage::absent(2);
        stage.script(0, true, 1, Fate::calm(60_000, 5));
        stage.trigger(0, 0, slots(policy));
        stage.run(1_000);
        stage.world.crash(0, 1);
        stage.trigger(1, 1_000, slots(policy));
        stage.run(29_000);
        let ran = stage.trigger(1, 30_000, slots(policy));
        stage.run(1_000);
        stage.job_ends(ran, Ended::Done);
        stage.run(9_000);
        assert_eq!((stage.outcome(ran), stage.runs(ran)), ("done", vec![30_000]));
        stage.world.store.delete();
        stage.run(45_000);
        assert!(stage.record().is_some_and(Lease::in_grace), "the creation has landed");
        let doubled = stage.trigger(1, 30_000, slots(policy));
        stage.run(1_000);
        assert_eq!((stage.outcome(doubled), stage.runs(doubled).len()), ("skipped", 0));
        stage.run(4_000);
        let next = stage.trigger(1, 90_000, slots(policy));
        stage.run(1_000);
        stage.job_ends(next, Ended::Done);
        stage.run(1_000);
        assert_eq!(stage.outcome(next), "done");
    }
}

#[test]
fn c56_a_runner_that_is_stopped_in_mid_slot_is_followed_by_a_rerun_and_its_end_changes_nothing() {
    let mut stage = Stage::released(2);
    stage.run(SLOT_MS);
    let stopped = stage.trigger(0, SLOT_MS, slots(Policy::AtLeastOnce));
    stage.run(1_000);
    stage.world.pause(0, 3 * LEASE_MS);
    stage.run(2 * LEASE_MS - 1_000);
    let next = stage.trigger(1, SLOT_MS + 2 * LEASE_MS, slots(Policy::AtLeastOnce));
    stage.run(1_000);
    stage.job_ends(next, Ended::Done);
    stage.run(1_000);
    stage.job_ends(next, Ended::Done);
    stage.run(2 * LEASE_MS);
    assert_eq!(stage.runs(next), [SLOT_MS, SLOT_MS + 2 * LEASE_MS]);
    assert_eq!((stage.outcome(stopped), stage.outcome(next)), ("lost", "done"));
}

#[test]
fn c56_a_stop_while_the_claim_is_under_way_reports_no_skipped_slot() {
    let mut stage = Stage::released(1);
    stage.run(SLOT_MS);
    stage.script(0, true, 1, Fate::calm(5, 500));
    let trigger = stage.trigger(0, SLOT_MS, slots(Policy::AtMostOnce));
    stage.run(100);
    stage.world.tell(trigger, Input::Stop { park: false });
    stage.run(2_000);
    let record = stage.record();
    assert!(record.is_some_and(|lease| lease.released() && lease.slot.is_some()));
    assert_eq!((stage.outcome(trigger), stage.runs(trigger).len()), ("lost", 0));
}
