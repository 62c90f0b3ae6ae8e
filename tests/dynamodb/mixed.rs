//! Members of shardcoordinator and of edgelect share one item.

use edgelect::election::{Event, Input, LostReason, Problem};
use edgelect::store::FaultKind;
use edgelect::{Config, Follow, Settings};
use serde_json::json;

use crate::fleet::{Fleet, Member, Way};
use crate::foreign::{Foreign, Lost, Travel};

/// Our members' settings beside foreign ones of 15 s and 5 s: what their leases last at most is said.
fn beside(lease_s: u64) -> Settings {
    Settings { max_lease_ms: Some(lease_s * 1_000 + 3_000), ..Settings::default() }
}

fn fifteen(fleet: &Fleet, id: &str) -> Foreign {
    Foreign::new(id, &fleet.table, 15_000, 5_000)
}

#[test]
fn a_foreign_leader_is_left_alone_and_succeeded_when_it_has_crashed() {
    let mut fleet = Fleet::new();
    let foreign = fleet.join_foreign(fifteen(&fleet, "worker-1"));
    fleet.pass(1_000);
    let member = fleet.join("server-1", &beside(15));
    fleet.pass(60_000);
    assert_eq!(fleet.leaders(), ["worker-1"]);
    let known = |fleet: &Fleet| {
        let now = edgelect::Host::now(&fleet.host);
        member.handle.with(|election| election.leader_id(now).map(str::to_owned))
    };
    assert_eq!(known(&fleet).as_deref(), Some("worker-1"));
    foreign.stands_still.set(true);
    let leads = |fleet: &Fleet| fleet.leaders() == ["session-1"];
    assert!(fleet.pass_until(25_000, leads), "a lease, what its clock may differ by, and a look");
    assert_eq!(member.handle.with(|election| election.problem().cloned()), None);
    fleet.pass(60_000);
    foreign.stands_still.set(false);
    fleet.pass(60_000);
    assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["session-1".to_owned()], 1));
}

#[test]
fn a_leader_of_ours_that_crashed_is_succeeded_by_a_foreign_member_and_not_before_its_fence() {
    let mut fleet = Fleet::new();
    let member = fleet.join("server-1", &beside(15));
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
    let foreign = fleet.join_foreign(Foreign::new("worker-1", &fleet.table, 15_000, 100));
    fleet.pass(30_000);
    assert_eq!(foreign.acquired.get(), 0, "a living lease was taken");
    member.way.set(Way::Cut);
    assert!(fleet.pass_until(20_000, |fleet| fleet.leaders() == ["worker-1"]));
    assert_eq!(member.lost(), [LostReason::Expired]);
}

#[test]
fn a_resignation_of_ours_lets_a_foreign_member_in_at_its_next_tick() {
    let mut fleet = Fleet::new();
    fleet.expires = true;
    let member = fleet.join("server-1", &beside(15));
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
    let foreign = fleet.join_foreign(fifteen(&fleet, "worker-1"));
    fleet.pass(12_000);
    member.handle.tell(Input::Stop { park: false });
    fleet.pass(1_000);
    assert_eq!(fleet.table.ttl_s(), Some(0), "and the TTL process left it alone");
    assert!(fleet.pass_until(5_000, |fleet| fleet.leaders() == ["worker-1"]), "it waits a tick");
    assert_eq!(foreign.acquired.get(), 1);
}

#[test]
fn a_foreign_release_is_a_deletion_so_that_our_members_lead_after_a_grace_with_higher_tokens() {
    let mut fleet = Fleet::new();
    fleet.join("server-1", &beside(15));
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
    fleet.members[0].handle.tell(Input::Stop { park: false });
    fleet.pass(1_000);
    let foreign = fleet.join_foreign(fifteen(&fleet, "worker-1"));
    fleet.pass(1_000);
    // This session has never seen the first one's token.
    fleet.join("server-2", &beside(15));
    fleet.pass(10_000);
    foreign.stop();
    let released_ms = fleet.host.now_ms.get();
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders() == ["session-2"]));
    let waited_ms = fleet.host.now_ms.get() - released_ms;
    assert!((15_000..40_000).contains(&waited_ms), "the grace, and looks: {waited_ms} ms");
    assert_eq!(fleet.tokens.borrow().len(), 2);
}

#[test]
fn tokens_grow_over_foreign_leaderships_that_drop_them_each_by_a_session_that_knows_none() {
    let mut fleet = Fleet::new();
    for round in 1..=5 {
        let member = fleet.join(&format!("server-{round}"), &beside(15));
        let leads =
            |fleet: &Fleet| member.handle.authority(edgelect::Host::now(&fleet.host)).is_some();
        assert!(fleet.pass_until(90_000, leads), "round {round}");
        fleet.pass(7_000);
        member.handle.tell(Input::Stop { park: false });
        fleet.pass(1_000);
        let foreign = fleet.join_foreign(fifteen(&fleet, &format!("worker-{round}")));
        assert!(fleet.pass_until(10_000, |_| foreign.leads()));
        assert_eq!(fleet.table.text("lease"), None, "it dropped our attributes");
        foreign.stands_still.set(true);
    }
    assert_eq!(fleet.tokens.borrow().len(), 5);
}

/// By the very last of our authority, with next to no margin and a foreign clock as far ahead as its document bears.
#[test]
fn no_foreign_member_takes_a_living_lease_at_any_part_of_a_second() {
    for phase_ms in (0..1_000).step_by(77) {
        let mut fleet = Fleet::new();
        fleet.pass(phase_ms);
        let close =
            Settings { margin_ms: Some(10), frequent_interval_ms: Some(3_333), ..beside(15) };
        let member = fleet.join("server-1", &close);
        assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
        let foreign = fleet.join_foreign(Foreign::new("worker-1", &fleet.table, 15_000, 20));
        foreign.ahead_ms.set(999);
        fleet.pass(10_000 + phase_ms);
        member.way.set(Way::Cut);
        assert!(fleet.pass_until(20_000, |fleet| fleet.leaders() == ["worker-1"]), "{phase_ms}");
        assert_eq!(member.lost(), [LostReason::Expired], "{phase_ms}");
    }
}

#[test]
fn a_foreign_lease_longer_than_ours_is_waited_out_to_the_last_second_of_a_slow_foreign_clock() {
    for phase_ms in (0..1_000).step_by(143) {
        let mut fleet = Fleet::new();
        // It renews more seldom than our whole lease lasts.
        let foreign = fleet.join_foreign(Foreign::new("worker-1", &fleet.table, 40_000, 25_000));
        foreign.ahead_ms.set(-999);
        fleet.pass(1_000 + phase_ms);
        fleet.join("server-1", &Settings { follow: Some(Follow::Tight), ..beside(40) });
        fleet.pass(100_000);
        assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
        foreign.stands_still.set(true);
        assert!(fleet.pass_until(50_000, |fleet| fleet.leaders() == ["session-1"]), "{phase_ms}");
    }
}

#[test]
fn a_date_that_a_proxy_sets_ahead_shortens_no_foreign_lease() {
    let mut fleet = Fleet::new();
    fleet.table.date_ahead_ms.set(30_000);
    let foreign = fleet.join_foreign(Foreign::new("worker-1", &fleet.table, 40_000, 25_000));
    fleet.pass(1_000);
    fleet.join("server-1", &Settings { follow: Some(Follow::Tight), ..beside(15) });
    fleet.pass(100_000);
    assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
    foreign.stands_still.set(true);
    assert!(fleet.pass_until(50_000, |fleet| fleet.leaders() == ["session-1"]));
}

/// The store was made for 15 s, and the foreign lease is shorter than that and longer than the new one.
#[test]
fn a_foreign_lease_is_waited_out_also_after_the_own_one_was_shortened() {
    let mut fleet = Fleet::new();
    let foreign = fleet.join_foreign(Foreign::new("worker-1", &fleet.table, 12_000, 9_000));
    fleet.pass(1_000);
    let member = fleet.join("server-1", &beside(15));
    fleet.pass(10_000);
    let settings = Settings {
        lockfile_path: Some("jobs".to_owned()),
        server_id: Some("server-1".to_owned()),
        leader_timeout_ms: Some(5_000),
        frequent_interval_ms: Some(1_000),
        ..beside(15)
    };
    let config = Config::new(&settings).expect("fine settings");
    member.handle.tell(Input::Configure(Box::new(config)));
    fleet.pass(120_000);
    assert_eq!((fleet.leaders(), foreign.acquired.get()), (vec!["worker-1".to_owned()], 1));
}

#[test]
fn a_foreign_process_of_our_name_that_renews_our_item_ends_our_term_and_is_not_taken_for_us() {
    let mut fleet = Fleet::new();
    let foreign = fleet.join_foreign(fifteen(&fleet, "worker-1"));
    fleet.pass(1_000);
    foreign.stands_still.set(true);
    let member = fleet.join("worker-1", &beside(15));
    assert!(fleet.pass_until(40_000, |fleet| fleet.leaders() == ["session-1"]));
    fleet.pass(6_000);
    let token = fleet.tokens.borrow()[0];
    // Its owner id is not unique, so its own condition does not hold it back.
    foreign.stands_still.set(false);
    fleet.foreign.clear();
    fleet.pass(20_000);
    assert_eq!(member.lost(), [LostReason::Overtaken]);
    assert!(fleet.table.text("lease").is_some(), "it moved ttl alone");
    foreign.stands_still.set(true);
    assert!(fleet.pass_until(40_000, |fleet| fleet.leaders() == ["session-1"]));
    assert!(fleet.tokens.borrow()[1] > token);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_not_adopted_once_a_foreign_hand_has_moved_its_ttl() {
    let mut fleet = Fleet::new();
    let foreign = Foreign::new("worker-1", &fleet.table, 15_000, 20);
    fleet.pass(500);
    foreign.tick();
    let member = fleet.join("worker-1", &beside(15));
    assert!(fleet.pass_until(40_000, |fleet| fleet.leaders() == ["session-1"]));
    let puts = fleet.table.puts.get();
    member.way.set(Way::LosesAnswer);
    assert!(fleet.pass_until(10_000, |fleet| fleet.table.puts.get() > puts));
    foreign.tick();
    fleet.pass(3_000);
    assert_eq!(member.lost(), [LostReason::Overtaken]);
}

#[test]
fn the_deletion_of_a_crashed_foreign_leader_by_the_table_is_waited_out_like_any_other() {
    let mut fleet = Fleet::new();
    fleet.expires = true;
    let foreign = fleet.join_foreign(fifteen(&fleet, "worker-1"));
    fleet.pass(1_000);
    fleet.join("server-1", &beside(15));
    fleet.pass(10_000);
    foreign.stands_still.set(true);
    assert!(fleet.pass_until(17_000, |fleet| fleet.table.item.borrow().is_none()));
    let deleted_ms = fleet.host.now_ms.get();
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders() == ["session-1"]));
    assert!(fleet.host.now_ms.get() - deleted_ms >= 15_000);
}

#[test]
fn an_item_of_another_shape_is_healed_after_the_grace_and_not_before() {
    let mut fleet = Fleet::new();
    let item =
        json!({ "pk": { "S": "SHARD#jobs" }, "sk": { "S": "LOCK" }, "ttl": { "S": "soon" } });
    *fleet.table.item.borrow_mut() = item.as_object().cloned();
    fleet.join("server-1", &beside(15));
    fleet.pass(17_900);
    assert_eq!(fleet.table.puts.get(), 0);
    assert!(fleet.pass_until(10_000, |fleet| fleet.leaders() == ["session-1"]));
}

/// A member that leads alone, after a while.
fn leading() -> (Fleet, Member) {
    let mut fleet = Fleet::new();
    let member = fleet.join("server-1", &beside(15));
    assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
    (fleet, member)
}

#[test]
fn s8_throttled_renewals_cost_no_term_while_an_attempt_gets_through_before_the_fence() {
    for code in ["ProvisionedThroughputExceededException", "InternalServerError"] {
        let (mut fleet, member) = leading();
        fleet.pass(4_500);
        member.way.set(Way::Says(code));
        fleet.pass(5_000);
        member.way.set(Way::Open);
        fleet.pass(60_000);
        assert_eq!((fleet.tokens.borrow().len(), member.lost()), (1, vec![]), "{code}");
    }
}

#[test]
fn s12_a_stop_over_a_table_that_does_not_answer_ends_all_the_same() {
    let (mut fleet, member) = leading();
    member.way.set(Way::Cut);
    member.handle.tell(Input::Stop { park: false });
    fleet.pass(20);
    assert_eq!(fleet.leaders().len(), 0, "authority ends first");
    fleet.pass(9_000);
    assert_eq!(member.told.borrow().last(), Some(&Event::GivenUp));
    assert_ne!(fleet.table.ttl_s(), Some(0), "nothing was released, so the lease runs out");
}

#[test]
fn permissions_that_are_revoked_end_the_term_at_its_fence_and_given_back_begin_another() {
    let (mut fleet, member) = leading();
    member.way.set(Way::Says("AccessDeniedException"));
    fleet.pass(30_000);
    assert_eq!(member.lost(), [LostReason::Expired]);
    let problem = member.handle.with(|election| election.problem().cloned());
    let said = matches!(&problem, Some(Problem::Store(fault)) if fault.kind == FaultKind::Denied);
    assert!(said, "{problem:?}");
    member.way.set(Way::Open);
    assert!(fleet.pass_until(90_000, |fleet| fleet.leaders().len() == 1));
    assert_eq!(fleet.tokens.borrow().len(), 2);
}

#[test]
fn a_table_that_is_gone_ends_the_term_at_its_fence_and_is_tried_again() {
    for code in ["ResourceNotFoundException", "ValidationException", "SerializationException"] {
        let (mut fleet, member) = leading();
        member.way.set(Way::Says(code));
        fleet.pass(30_000);
        assert_eq!(member.lost(), [LostReason::Expired]);
        let problem = member.handle.with(|election| election.problem().cloned());
        let said = matches!(&problem, Some(Problem::Store(fault)) if fault.kind == FaultKind::Misconfigured);
        assert!(said && !failed(&member), "{code}: {problem:?}");
        member.way.set(Way::Open);
        assert!(fleet.pass_until(90_000, |fleet| fleet.leaders().len() == 1), "{code}");
    }
}

#[test]
fn a_table_that_was_never_there_ends_the_elector_with_an_error_that_names_it() {
    let mut fleet = Fleet::new();
    let member = fleet.join("server-1", &beside(15));
    member.way.set(Way::Says("ResourceNotFoundException"));
    fleet.pass(30_000);
    let told = member.told.borrow();
    let failed = told.iter().find_map(|event| match event {
        Event::Failed(fault) => Some(fault.message.clone()),
        _ => None,
    });
    assert!(failed.as_ref().is_some_and(|text| text.contains("no such table")), "{failed:?}");
}

fn failed(member: &Member) -> bool {
    member.told.borrow().iter().any(|event| matches!(event, Event::Failed(_)))
}

#[test]
fn a_stable_group_costs_one_put_and_each_follower_one_get_for_each_interval() {
    let (mut fleet, leader) = leading();
    let follower = fleet.join("server-2", &beside(15));
    fleet.pass(60_000);
    let before = (leader.handle.requests(), follower.handle.requests());
    fleet.pass(600_000);
    let after = (leader.handle.requests(), follower.handle.requests());
    let puts = after.0.write - before.0.write;
    let gets = after.1.read - before.1.read;
    let others = (after.0.read - before.0.read, after.1.write - before.1.write);
    assert_eq!((puts, others), (120, (0, 0)));
    assert!((120..=132).contains(&gets), "{gets} GETs");
    let item = fleet.table.item.borrow().clone().expect("an item");
    let text = |value: &serde_json::Value| {
        value
            .as_object()
            .into_iter()
            .flatten()
            .next()
            .and_then(|(_, text)| text.as_str().map(str::len))
    };
    let bytes: usize = item.iter().map(|(name, value)| name.len() + text(value).unwrap_or(0)).sum();
    assert!(bytes <= 1_024, "{bytes} bytes are more than one write unit");
    println!("{gets} GETs, {bytes} bytes");
}

/// Draws from a number: crashes, pauses, cuts, resignations, releases and the TTL process over a fleet of both makes.
#[test]
fn a_mixed_fleet_has_one_leader_whatever_happens_to_its_members() {
    let (mut ours, mut theirs) = (0, 0);
    for seed in 1..=100_u64 {
        let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 33) % below
        };
        let mut fleet = Fleet::new();
        fleet.expires = draw(2) == 0;
        for number in 0..2 {
            let (lease_ms, renew_ms) =
                [(15_000, 5_000), (10_000, 3_000), (30_000, 10_000)][draw(3) as usize];
            let foreign =
                Foreign::new(&format!("worker-{number}"), &fleet.table, lease_ms, renew_ms);
            foreign.ahead_ms.set(draw(1_999) as i64 - 999);
            fleet.pass(draw(3_000));
            fleet.join_foreign(foreign);
            fleet.join(&format!("server-{number}"), &beside(30));
        }
        for turn in 0..12 {
            fleet.pass(draw(20_000));
            let newest = fleet.members.len() - 1 - draw(2) as usize;
            let member = fleet.members[newest].clone();
            match draw(8) {
                0 => fleet.foreign[draw(2) as usize].stands_still.set(true),
                1 => fleet.foreign[draw(2) as usize].stop(),
                2..=4 => {
                    fleet.foreign[0].stop();
                    fleet.foreign[1].stands_still.set(true);
                    fleet.pass(30_000 + draw(20_000));
                    member.way.set([Way::Cut, Way::LosesAnswer][draw(2) as usize]);
                }
                5 => member.way.set(Way::LosesAnswer),
                6 => member.handle.tell(Input::Resign),
                _ => {
                    member.handle.tell(Input::Stop { park: false });
                    fleet.join(&format!("late-{turn}"), &beside(30));
                }
            }
            fleet.pass(draw(15_000));
            for foreign in &fleet.foreign {
                foreign.stands_still.set(false);
            }
            for member in &fleet.members {
                member.way.set(Way::Open);
            }
        }
        ours += fleet.tokens.borrow().len();
        theirs += fleet.foreign.iter().map(|foreign| foreign.acquired.get()).sum::<u32>();
    }
    assert!(ours > 100 && theirs > 100, "{ours} terms of ours, {theirs} of theirs");
}

/// Numbers from a seed.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |below| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 33) % below
    }
}

/// Its calls take up to 300 ms each way, and one of six gets no answer.
fn on_a_bad_way(seed: u64) -> impl FnMut() -> Travel {
    let mut draw = draws(seed);
    move || Travel {
        there_ms: draw(300),
        back_ms: draw(300),
        lost: [Some(Lost::Request), Some(Lost::Answer)].get(draw(12) as usize).copied().flatten(),
    }
}

/// The longest that their leader acts after its last renewal left: a tick, and a call that is given up.
#[test]
fn who_acts_by_is_leader_alone_never_does_beside_ours_while_its_calls_end_within_its_lease() {
    let (mut ours, mut theirs) = (0, 0);
    for seed in 1..=60 {
        let mut draw = draws(seed);
        let mut fleet = Fleet::new();
        fleet.by_state = true;
        for number in 0..2 {
            let foreign = fifteen(&fleet, &format!("worker-{number}"));
            foreign.ahead_ms.set(draw(1_999) as i64 - 999);
            fleet.join_foreign(foreign.over(9_000, on_a_bad_way(seed * 2 + number)));
            fleet.pass(draw(3_000));
            fleet.join(&format!("server-{number}"), &beside(15));
        }
        for turn in 0..10 {
            fleet.pass(draw(30_000));
            match draw(3) {
                0 => {
                    let worker = fleet.foreign[draw(2) as usize].clone();
                    worker.crash();
                    fleet.pass(draw(30_000));
                    worker.stands_still.set(false);
                }
                1 => fleet.members.last().expect("some").way.set(Way::Cut),
                _ => {
                    for member in &fleet.members {
                        member.way.set(Way::Open);
                        member.handle.tell(Input::Resign);
                    }
                }
            }
            if turn % 3 == 0 {
                fleet.join(&format!("late-{turn}"), &beside(15));
            }
        }
        assert_eq!(fleet.beside_ms, 0, "seed {seed}");
        ours += fleet.tokens.borrow().len();
        theirs += fleet.foreign.iter().map(|foreign| foreign.acquired.get()).sum::<u32>();
    }
    println!("{ours} terms of ours, {theirs} of theirs");
    assert!(ours > 60 && theirs > 60, "{ours} terms of ours, {theirs} of theirs");
}

/// The row "slow response" of their document's failures: a call longer than `LeaseDuration - RenewPeriod`.
#[test]
fn s2_who_acts_by_is_leader_alone_does_so_beside_ours_while_its_call_is_slow_and_tokens_grow() {
    for lost in [None, Some(Lost::Request)] {
        let mut fleet = Fleet::new();
        fleet.by_state = true;
        fleet.join("server-0", &beside(15));
        assert!(fleet.pass_until(60_000, |fleet| fleet.leaders().len() == 1));
        fleet.members[0].handle.tell(Input::Stop { park: false });
        fleet.pass(1_000);
        let slow = std::rc::Rc::new(std::cell::Cell::new(false));
        let travels = {
            let slow = slow.clone();
            move || match slow.get() {
                true => Travel { there_ms: 14_000, back_ms: 14_000, lost },
                false => Travel::default(),
            }
        };
        let foreign = fifteen(&fleet, "worker-1").over(40_000, travels);
        let foreign = fleet.join_foreign(foreign);
        fleet.pass(2_000);
        fleet.join("server-1", &beside(15));
        fleet.pass(30_000);
        assert_eq!((fleet.leaders(), fleet.beside_ms), (vec!["worker-1".to_owned()], 0));
        slow.set(true);
        fleet.pass(60_000);
        println!("{lost:?}: beside ours for {} ms", fleet.beside_ms);
        assert!(fleet.beside_ms > 3_000, "{} ms", fleet.beside_ms);
        slow.set(false);
        fleet.pass(60_000);
        assert_eq!((fleet.leaders(), foreign.is_leader()), (vec!["session-2".to_owned()], false));
        assert_eq!(fleet.tokens.borrow().len(), 2);
    }
}
