//! What a trigger's election says of its slot: a claim that may have landed is never told as no claim.

use edgelect::config::HostClock;
use edgelect::election::{Election, Event, SlotsOver, Step};
use edgelect::lease::{Lease, Stamp};
use edgelect::slots::SlotEnd;
use edgelect::store::{Facts, Outcome};
use edgelect::{Input, Missed, Policy, Schedule, ScheduleSettings, Settings};

use crate::alone::told::{AT_MS, Alone, config, denied, found, matching, settings, text, unknown};

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;
const SLOT_MS: u64 = AT_MS + 200_000;
const TOMBSTONE: &str = r#"{"leaderID":"a","lastUpdated":"0001-01-01T00:00:00Z","term":1,"slot":5000,"slotDone":true,"acquired":"2026-11-21T06:00:00Z","session":"o","format":1}"#;

fn trigger(session: &str, clock: HostClock, schedule: ScheduleSettings) -> Alone {
    let schedule = ScheduleSettings { period_ms: Some(MINUTE_MS), ..schedule };
    let config = config(&Settings { clock, ..settings() });
    let schedule = Schedule::new(&schedule, &config).expect("the schedule keeps every rule");
    let election = Election::for_schedule(config, session.to_owned(), 7, schedule);
    Alone { dated: false, ..Alone::of(election) }
}

/// A trigger whose claim over this record has just left, and what it claims with; it makes up for nothing.
fn claiming(session: &str, record: &str) -> (Alone, Lease) {
    claiming_with(session, HostClock::Two, skipping(SLOT_MS), record)
}

fn skipping(slot_ms: u64) -> ScheduleSettings {
    let (slot_ms, missed) = (Some(slot_ms), Some(Missed::Skip));
    ScheduleSettings { slot_ms, missed, ..ScheduleSettings::default() }
}

fn claiming_with(
    session: &str,
    clock: HostClock,
    schedule: ScheduleSettings,
    record: &str,
) -> (Alone, Lease) {
    let mut alone = trigger(session, clock, schedule);
    alone.ms = SLOT_MS - AT_MS;
    alone.reads();
    alone.found("\"t\"", record);
    let (lease, _) = alone.claims();
    (alone, lease)
}

/// Answers every request until the schedule has ended; why it has.
fn ends(
    alone: &mut Alone,
    mut read: impl FnMut(&Alone) -> Outcome,
    mut write: impl FnMut(&Alone) -> Outcome,
) -> SlotsOver {
    let began_ms = alone.ms;
    loop {
        let outcome = match alone.step() {
            Step::Finished => break,
            Step::Read { .. } => read(alone),
            _ => write(alone),
        };
        match outcome {
            Outcome::Unknown { .. } => alone.timeout(),
            outcome => alone.answer(outcome),
        }
        assert!(alone.ms - began_ms < 70_000, "it outlasts its budget");
    }
    over(&alone.events()).expect("it was told")
}

fn over(events: &[Event]) -> Option<SlotsOver> {
    events.iter().find_map(|event| match event {
        Event::SlotsOver(why) => Some(*why),
        _ => None,
    })
}

fn silence(alone: &mut Alone) -> SlotsOver {
    ends(alone, |_| unknown(), |_| unknown())
}

/// The store is silent for longer than a lease; then this is what it shows, and it refuses every write.
fn after_silence(alone: &mut Alone, shown: &Outcome) -> SlotsOver {
    let until_ms = alone.ms + 18_000;
    let late = |alone: &Alone, outcome: Outcome| match alone.ms < until_ms {
        true => unknown(),
        false => outcome,
    };
    ends(alone, |alone| late(alone, shown.clone()), |alone| late(alone, Outcome::Refused))
}

fn of_slot(slot_ms: u64) -> String {
    TOMBSTONE.replace("5000", &slot_ms.to_string())
}

/// What follows a claim, and what the trigger is told of its slot then.
type Story = fn(&mut Alone, &Lease) -> SlotsOver;

const DOUBTFUL: [(&str, HostClock, Story); 10] = [
    ("the store itself says that it landed, and no more", HostClock::Two, |alone, _| {
        alone.answer(Outcome::Written { version: None });
        silence(alone)
    }),
    ("a single clock steps back under it", HostClock::One, |alone, _| {
        alone.ms -= 5;
        alone.election.poll(alone.now());
        alone.timeout();
        silence(alone)
    }),
    ("it lands too late to begin, and the next claim is refused", HostClock::Two, |alone, _| {
        alone.ms += 14_980;
        alone.written("\"mine\"");
        alone.claims();
        alone.answer(denied());
        ends(alone, |_| denied(), |_| denied())
    }),
    ("another make writes over the lease that lives", HostClock::Two, |alone, _| {
        alone.timeout();
        let later = of_slot(SLOT_MS + 1).replace(r#""session":"o","#, "");
        ends(alone, |_| found("\"later\"", &later), |_| Outcome::Refused)
    }),
    ("the next leader keeps its slot in the record", HostClock::Two, |alone, mine| {
        alone.timeout();
        let carried = Lease {
            session: Some("leader".to_owned()),
            leader_id: "L".to_owned(),
            last_updated: Stamp::Released,
            ..mine.clone()
        };
        after_silence(alone, &found("\"L\"", &text(&carried)))
    }),
    ("it landed without a version, under a later record", HostClock::Two, |alone, _| {
        alone.answer(Outcome::Written { version: None });
        after_silence(alone, &found("\"later\"", &of_slot(SLOT_MS + 1)))
    }),
    ("a single clock falls by 200 s under it", HostClock::One, |alone, mine| {
        alone.ms -= 200_000;
        alone.election.poll(alone.now());
        alone.ms += 990;
        alone.silence();
        let mine = text(mine);
        ends(alone, |_| found("\"mine\"", &mine), |_| Outcome::Refused)
    }),
    ("an old state is shown before the own record", HostClock::Two, |alone, mine| {
        alone.timeout();
        let records = [of_slot(5_000), text(mine), later()];
        let mut reads = (0..).map(|read: usize| {
            let last = read.min(records.len() - 1);
            found(&format!("\"{last}\""), &records[last])
        });
        ends(alone, |_| reads.next().expect("it never ends"), |_| Outcome::Refused)
    }),
    ("the host slept for longer than its lease", HostClock::Two, |alone, _| {
        (alone.from_ms, alone.ahead_ms) = (alone.from_ms + 60_000, 60_000);
        alone.timeout();
        ends(alone, |_| found("\"later\"", &later()), |_| Outcome::Refused)
    }),
    ("the settings of later have a longer lease", HostClock::Two, |alone, _| {
        let (leader_timeout_ms, max_lease_ms) = (Some(60_000), Some(60_000));
        let longer = Settings { leader_timeout_ms, max_lease_ms, ..settings() };
        alone.timeout();
        alone.tell(Input::Configure(Box::new(config(&longer))));
        after_silence(alone, &found("\"later\"", &later()))
    }),
];

/// A later slot, claimed by somebody else after the record that was read.
fn later() -> String {
    of_slot(SLOT_MS + 1).replace("\"term\":1", "\"term\":9")
}

#[test]
fn s8_a_claim_that_may_have_landed_is_told_as_unknown() {
    let told = DOUBTFUL.map(|(name, clock, story)| {
        let (mut alone, lease) = claiming_with("me", clock, skipping(SLOT_MS), TOMBSTONE);
        assert_eq!(lease.slot, Some(SLOT_MS));
        (name, story(&mut alone, &lease))
    });
    let wrong: Vec<_> = told.iter().filter(|(_, why)| *why != SlotsOver::Unknown).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Workers have one clock, and a lease may be hardly longer than what whole seconds and the store's clocks leave open.
#[test]
fn who_loses_a_race_for_a_slot_is_told_that_it_is_taken_also_with_a_short_lease() {
    for (clock, lease_ms) in
        [(HostClock::One, 3_000), (HostClock::One, 15_000), (HostClock::Two, 3_000)]
    {
        let settings = Settings { clock, leader_timeout_ms: Some(lease_ms), ..settings() };
        let config = config(&Settings { frequent_interval_ms: Some(lease_ms / 3), ..settings });
        let period_ms = Some(MINUTE_MS);
        let schedule = ScheduleSettings { period_ms, ..skipping(SLOT_MS) };
        let schedule = Schedule::new(&schedule, &config).expect("the schedule keeps every rule");
        let mut alone = Alone::of(Election::for_schedule(config, "me".to_owned(), 7, schedule));
        alone.ms = SLOT_MS - AT_MS;
        alone.reads();
        alone.found("\"t\"", TOMBSTONE);
        alone.claims();
        alone.answer(Outcome::Refused);
        let why = ends(&mut alone, |_| found("\"later\"", &later()), |_| Outcome::Refused);
        assert_eq!(why, SlotsOver::Taken, "{clock:?} {lease_ms} ms");
    }
}

/// The request is over the very write that the claim was to succeed: it may have refused the claim, or be an old one that was taken
/// back before.
#[test]
fn a_claim_is_told_as_unknown_where_a_pause_over_the_same_write_is_read_next() {
    let pause = r#","operator":{"ask":"pause","id":"1","by":"ada","why":"x"}}"#;
    let (mut alone, _) = claiming("me", TOMBSTONE);
    alone.answer(Outcome::Refused);
    let paused = TOMBSTONE.replace('}', pause);
    let why = ends(&mut alone, |_| found("\"p\"", &paused), |_| Outcome::Refused);
    assert_eq!(why, SlotsOver::Unknown);
}

#[test]
fn s12_a_trigger_that_was_told_to_resign_and_then_to_stop_parks_nothing() {
    let (mut alone, _) = claiming("me", TOMBSTONE);
    alone.written("\"c\"");
    assert!(alone.leads());
    let term = alone.election.authority(alone.now()).expect("it leads").term;
    alone.tell(Input::Resign);
    alone.tell(Input::Stop { park: true });
    let end = SlotEnd { done: false, failed: false, result: String::new(), took_ms: 0 };
    alone.tell(Input::SlotEnded { term, end });
    let (last, _) = alone.renews();
    assert!(last.released() && !last.parked, "{last:?}");
}

/// What was read first was older than the record that it had claimed over.
#[test]
fn an_old_state_hides_no_winner_that_is_read_after_it() {
    let living = TOMBSTONE.replace("0001-01-01T00:00:00Z", "2026-11-21T06:58:12Z");
    let (mut alone, _) =
        claiming("me", &TOMBSTONE.replace("\"session\"", "\"sequence\":5,\"session\""));
    alone.answer(Outcome::Refused);
    let records = [living.replace("\"session\"", "\"sequence\":4,\"session\""), later()];
    let mut reads = (0..).map(|read: usize| {
        let last = read.min(records.len() - 1);
        found(&format!("\"{last}\""), &records[last])
    });
    let why = ends(&mut alone, |_| reads.next().expect("it never ends"), |_| Outcome::Refused);
    assert_eq!(why, SlotsOver::Taken);
}

/// It claims another slot in between, and hears that it has it: that says nothing of the own one.
#[test]
fn s8_a_claim_in_doubt_is_told_also_where_a_later_slot_was_run_again_meanwhile() {
    let schedule = ScheduleSettings { policy: Some(Policy::AtLeastOnce), ..skipping(SLOT_MS) };
    let before = of_slot(SLOT_MS - 4 * MINUTE_MS);
    let (mut alone, _) = claiming_with("me", HostClock::Two, schedule, &before);
    let open = of_slot(SLOT_MS + MINUTE_MS).replace("\"slotDone\":true", "\"slotDone\":false");
    let until_ms = alone.ms + 18_000;
    alone.timeout();
    let mut ran = false;
    loop {
        match alone.step() {
            Step::Finished => break,
            _ if alone.ms < until_ms => alone.timeout(),
            Step::Read { .. } => alone.found("\"open\"", &open),
            Step::Claim { lease, .. } => {
                assert_eq!(lease.slot, Some(SLOT_MS + MINUTE_MS));
                alone.written("\"again\"");
                let (done, failed, result, took_ms) = (true, false, "ok".to_owned(), 10);
                let end = SlotEnd { done, failed, result, took_ms };
                alone.tell(Input::SlotEnded { term: lease.term.expect("it has one"), end });
                ran = true;
            }
            _ => alone.written("\"done\""),
        }
    }
    assert_eq!((ran, over(&alone.events())), (true, Some(SlotsOver::Unknown)));
    let left_out = alone.election.own_slot_ms();
    assert_eq!(left_out, Some((SLOT_MS, 3)), "if it landed, nobody else says so");
}

#[test]
fn s11_a_single_clock_that_stood_still_under_its_claim_does_not_say_that_it_cannot_have_landed() {
    for (stood_still_ms, told) in [(0, SlotsOver::Taken), (60_000, SlotsOver::Unknown)] {
        let mut alone = trigger("me", HostClock::One, skipping(SLOT_MS));
        (alone.dated, alone.ms) = (true, SLOT_MS - AT_MS);
        alone.reads();
        alone.found("\"t\"", TOMBSTONE);
        alone.claims();
        alone.ahead_ms = stood_still_ms;
        alone.timeout();
        let why = ends(&mut alone, |_| found("\"later\"", &later()), |_| Outcome::Refused);
        assert_eq!(why, told, "{stood_still_ms} ms");
    }
}

/// Without a `Date` a clock that is a day fast covers slots a day ahead; its read-back names a `Date`, by which that is
/// no slot at all. The trigger knows that its own write landed, whatever it is told meanwhile.
#[test]
fn a_cover_that_landed_is_told_after_a_stop_and_a_date_that_contradicts_it() {
    let slotless = TOMBSTONE.replace("\"slot\":5000,\"slotDone\":true,", "");
    for stop in [Input::Resign, Input::Stop { park: false }] {
        let mut alone = trigger("me", HostClock::Two, skipping(AT_MS - DAY_MS - 30_000));
        alone.reads();
        alone.found("\"t\"", &slotless);
        let (lease, _) = alone.claims();
        assert!(lease.released() && lease.slot_done == Some(true), "it covers: {lease:?}");
        alone.answer(Outcome::Refused);
        alone.reads();
        alone.tell(stop);
        let date_ms = Some(AT_MS - DAY_MS);
        let facts = Facts { date_ms, ..Facts::default() };
        alone.answer_with(found("\"mine\"", &text(&lease)), |_| facts);
        assert_eq!(alone.step(), Step::Finished);
        assert_eq!(over(&alone.events()), Some(SlotsOver::NewGroup));
    }
}

/// The slots between belong to whoever's claim landed.
#[test]
fn slots_that_a_refused_claim_would_have_left_out_are_not_counted() {
    let claims = |session: &str| claiming(session, &of_slot(SLOT_MS - 4 * MINUTE_MS));
    let ((mut first, theirs), (mut second, _)) = (claims("first"), claims("second"));
    first.written("\"1\"");
    assert_eq!(first.election.own_slot_ms(), Some((SLOT_MS, 3)));
    second.answer(Outcome::Refused);
    let theirs = found("\"1\"", &text(&theirs));
    let why = ends(&mut second, |_| theirs.clone(), |_| panic!("there is nothing to claim"));
    assert_eq!((why, second.election.own_slot_ms()), (SlotsOver::Taken, Some((SLOT_MS, 0))));
    let (mut third, _) = claims("third");
    third.timeout();
    assert_eq!(silence(&mut third), SlotsOver::Unknown);
    let left_out = third.election.own_slot_ms();
    assert_eq!(left_out, Some((SLOT_MS, 3)), "if it landed, nobody else says so");
}

#[test]
fn what_a_claim_left_out_that_is_known_only_after_its_fence_is_counted_with_the_next() {
    let (mut alone, mine) = claiming("me", &of_slot(SLOT_MS - 4 * MINUTE_MS));
    let fence_ms = alone.ms + 20_000;
    alone.timeout();
    loop {
        match alone.step() {
            Step::Read { .. } if alone.ms > fence_ms => alone.found("\"1\"", &text(&mine)),
            Step::Claim { seen, .. } if seen == matching("\"1\"") => break,
            _ => alone.timeout(),
        }
    }
    alone.written("\"2\"");
    let told = alone.events();
    assert!(matches!(told[..], [.., Event::Acquired { .. }]), "{told:?}");
    assert_eq!(alone.election.own_slot_ms(), Some((SLOT_MS, 3)));
}

/// Claimed, never run, and was told as not claimed.
#[test]
fn authority_that_ends_in_the_turn_in_which_it_began_is_lost() {
    let (mut alone, _) = claiming("me", TOMBSTONE);
    alone.written("\"mine\"");
    alone.ms += 20_000;
    alone.election.poll(alone.now());
    let told = alone.events();
    assert_eq!(told.last(), Some(&Event::SlotsOver(SlotsOver::Lost)), "{told:?}");
}

/// A resignation under the job: its end was told by `SlotClosed`, and nobody heard `GivenUp` or `SlotsOver`.
#[test]
fn a_resignation_under_a_job_tells_that_the_slots_are_over() {
    let (mut alone, lease) = claiming("me", TOMBSTONE);
    let term = lease.term.expect("a claim has a term");
    alone.written("\"1\"");
    alone.tell(Input::Resign);
    let (done, failed, result, took_ms) = (false, false, "stopped".to_owned(), 10);
    alone.tell(Input::SlotEnded { term, end: SlotEnd { done, failed, result, took_ms } });
    assert!(matches!(alone.step(), Step::Renew { .. }), "it closes the slot");
    alone.written("\"2\"");
    assert_eq!(alone.step(), Step::Finished);
    let told = alone.events();
    assert!(told.contains(&Event::GivenUp) && over(&told).is_some(), "{told:?}");
}

/// A trigger that may run missed slots, too, is told to stop under its claim of one: how many it says that nobody will run.
fn left_out_after_a_stop(policy: Policy, behind: u64) -> u64 {
    let (policy, missed) = (Some(policy), Some(Missed::All));
    let schedule = ScheduleSettings { policy, missed, ..skipping(SLOT_MS) };
    let record = of_slot(SLOT_MS - (behind + 1) * MINUTE_MS);
    let (mut alone, claimed) = claiming_with("s", HostClock::Two, schedule, &record);
    assert_eq!(claimed.slot, Some(SLOT_MS - behind * MINUTE_MS));
    alone.tell(Input::Stop { park: false });
    alone.written("\"mine\"");
    assert!(matches!(alone.step(), Step::Renew { lease, .. } if lease.released()));
    alone.written("\"over\"");
    assert_eq!(alone.step(), Step::Finished);
    alone.election.own_slot_ms().expect("it has one").1
}

#[test]
fn a_missed_slot_that_is_claimed_and_dropped_is_told_as_one_that_nobody_will_run() {
    assert_eq!(left_out_after_a_stop(Policy::AtMostOnce, 2), 1);
    assert_eq!(left_out_after_a_stop(Policy::AtMostOnce, 0), 0, "its own has an outcome");
    assert_eq!(left_out_after_a_stop(Policy::AtLeastOnce, 2), 0, "the next trigger runs it");
}

/// A store that takes no time accepts each creation and shows none, as one that reads and writes two different keys.
#[test]
fn a_creation_that_is_accepted_and_never_shown_is_not_made_over_and_over() {
    let mut alone = trigger("me", HostClock::One, skipping(SLOT_MS));
    alone.takes_ms = 0;
    let mut asked = 0;
    let ends_ms = loop {
        match alone.step() {
            Step::Read { .. } => alone.answer(Outcome::Missing),
            Step::Claim { .. } => alone.written(&format!("\"{asked}\"")),
            Step::Finished => break alone.ms,
            other => panic!("{other:?}"),
        }
        asked += 1;
        assert!(asked < 2_000, "{asked} requests within {} ms", alone.ms);
    };
    assert!(ends_ms >= 40_000, "it has its whole budget: {ends_ms} ms, {asked} requests");
}

/// The first is skipped, and the record that it leaves is one that the second may claim.
#[test]
fn s7_the_second_slot_of_a_new_group_runs() {
    let mut first = trigger("first", HostClock::Two, skipping(SLOT_MS));
    (first.dated, first.ms) = (true, SLOT_MS - AT_MS);
    first.modified_ms = Some(SLOT_MS);
    let reserved = first.makes();
    first.reads();
    first.shows("\"r\"", &reserved);
    assert_eq!(first.step(), Step::Finished);
    assert_eq!(over(&first.events()), Some(SlotsOver::NewGroup));
    let second_ms = SLOT_MS + MINUTE_MS;
    let mut second = trigger("second", HostClock::Two, skipping(second_ms));
    (second.dated, second.ms, second.modified_ms) = (true, second_ms - AT_MS, first.modified_ms);
    second.reads();
    second.shows("\"r\"", &reserved);
    let (claim, _) = second.claims();
    assert_eq!((claim.slot, claim.slot_done), (Some(second_ms), Some(false)));
    assert!(claim.acquired.is_some(), "{claim:?}");
}

/// What gets in the way is the store, whatever it has made before.
#[test]
fn a_trigger_whose_store_fails_in_the_grace_of_a_new_group_says_so() {
    let mut alone = trigger("me", HostClock::Two, skipping(SLOT_MS));
    alone.ms = SLOT_MS - AT_MS;
    let reserved = alone.makes();
    alone.reads();
    alone.shows("\"r\"", &reserved);
    while alone.step() != Step::Finished {
        alone.silence();
    }
    assert_eq!(over(&alone.events()), Some(SlotsOver::Budget));
}

/// The next trigger covers this slot, too: it does not know what ran before.
#[test]
fn a_trigger_that_is_stopped_in_the_grace_of_a_new_group_says_that_its_slot_never_runs() {
    let mut alone = trigger("me", HostClock::Two, skipping(SLOT_MS));
    alone.ms = SLOT_MS - AT_MS;
    let reserved = alone.makes();
    alone.reads();
    alone.shows("\"r\"", &reserved);
    alone.tell(Input::Stop { park: false });
    assert_eq!(alone.step(), Step::Finished);
    assert_eq!(over(&alone.events()), Some(SlotsOver::NewGroup));
}
