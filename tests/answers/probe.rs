//! The probe over an honest store, over one for each way to lie, and over stores that cannot be judged.

use edgelect::probe::{Effort, Finding, Judged, Offset, Step, key, probe_until, violation};
use edgelect::protocol::Protocol;
use edgelect::store::s3::S3;
use edgelect::store::{FaultKind, Operation, is_probe};
use edgelect::{Host, S3Config};
use serde_json::json;

use crate::answers::lies::{Manner, Stand};
use crate::answers::told::{NOW_MS, credentials, read, sent};
use worlds::virtual_time::{Virtual, config};

/// A store that asks for patience from the operation of this number on.
fn busy(from: u64) -> Stand {
    Stand::lying(&json!([[from, 999, "drops", "busy"], [from, 999, "read", "busy"]]))
}

fn ignoring_conditions() -> Stand {
    Stand::lying(&json!([[0, 999, "takes", "honest"]]))
}

fn refused_at(stand: &Stand) -> Option<Step> {
    let judged = stand.judged();
    let fault = violation(stand, &judged)?;
    let Judged { step, finding } = judged.last().expect("there is a violation");
    assert!(matches!(finding, Finding::Violated(_)), "it ends there: {judged:?}");
    assert_eq!(fault.kind, FaultKind::Misconfigured);
    let names_both = format!("the stand-in: probe step \"{}\": it", step.name());
    assert!(fault.message.starts_with(&names_both), "{}", fault.message);
    Some(*step)
}

#[test]
fn an_honest_store_passes_every_step() {
    let stand = Stand::new(Manner::Plain);
    let judged = stand.judged();
    let later = [Step::LaterCreate, Step::LaterUpdate];
    let holds = |steps: &[Step]| -> Vec<Judged> {
        steps.iter().map(|step| Judged { step: *step, finding: Finding::Holds }).collect()
    };
    let plain = Step::ALL.into_iter().filter(|step| *step != Step::NearUpdate);
    let at_start: Vec<Step> = plain.clone().filter(|step| !later.contains(step)).collect();
    assert_eq!(judged, holds(&at_start));
    assert_eq!(violation(&stand, &judged), None);
    let thorough = |manner| Stand::new(manner).report(Effort::thorough(1)).judged;
    assert_eq!(thorough(Manner::Plain), holds(&plain.collect::<Vec<_>>()));
    assert_eq!(thorough(Manner::HasParts(true)), holds(&Step::ALL));
}

/// What a thorough probe that leaves the object alone for so long ends with, and why.
fn ended(manner: Manner, age_ms: u64) -> (Step, Finding) {
    let effort = Effort { age_ms, ..Effort::thorough(3) };
    let mut judged = Stand::new(manner).report(effort).judged;
    let last = judged.pop().expect("steps were done");
    assert!(judged.iter().all(|one| one.finding == Finding::Holds), "{manner:?}: {judged:?}");
    (last.step, last.finding)
}

fn ends_with(manner: Manner, age_ms: u64, step: Step, why: &str) {
    let (at, finding) = ended(manner, age_ms);
    let Finding::Violated(told) = finding else { panic!("{manner:?}: {at:?} {finding:?}") };
    assert_eq!((at, told.contains(why)), (step, true), "{manner:?}: {told}");
}

#[test]
fn c26_a_store_that_keeps_conditions_of_young_objects_only_is_found_by_waiting() {
    ends_with(Manner::ForgetsAfter(60_000), 61_000, Step::LaterCreate, "did not hold");
    ends_with(Manner::ForgetsAfter(4_000), 5_000, Step::LaterCreate, "did not hold");
    let young = ended(Manner::ForgetsAfter(60_000), 59_000);
    assert_eq!(young, (Step::Clocks, Finding::Holds), "not by a shorter wait");
}

#[test]
fn c26_an_answer_that_a_condition_could_not_rest_on_is_a_violation() {
    let old_version = "each renewal would cost a term";
    ends_with(Manner::AnswersWithTheOldVersion, 0, Step::Update, old_version);
    ends_with(Manner::SaysUnchanged, 0, Step::StaleRead, "nothing has changed");
    ends_with(Manner::IsModifiedNow, 1_100, Step::Clocks, "another `Last-Modified`");
    // A condition that leaves out a part of the version.
    ends_with(Manner::HasParts(false), 0, Step::NearUpdate, "did not hold");
}

#[test]
fn c09_c26_a_store_that_breaks_a_condition_is_refused_and_the_step_is_named() {
    assert_eq!(refused_at(&ignoring_conditions()), Some(Step::UpdateOfNothing));
    let looks = Stand::new(Manner::LooksBeforeItWrites(0));
    assert_eq!(refused_at(&looks), Some(Step::Race));
}

#[test]
fn c26_clocks_that_are_further_apart_than_store_skew_are_refused() {
    // storeSkew is 2 s, and both times are whole seconds.
    for (shift_ms, step) in [(0, None), (3_000, None), (4_000, Some(Step::Clocks))] {
        for shift_ms in [shift_ms, -shift_ms] {
            let stand = Stand::new(Manner::TellsTimes(shift_ms, 0));
            assert_eq!(refused_at(&stand), step, "{shift_ms}");
        }
    }
    // What took long is old and no skew, and nor is a suspended machine.
    for manner in [Manner::IsSlow(1_700), Manner::Suspends(3_600_000)] {
        assert_eq!(refused_at(&Stand::new(manner)), None, "{manner:?}");
    }
}

#[test]
fn c26_what_the_store_refuses_for_good_is_told_apart_from_what_may_pass() {
    // How many steps there were, and how many of them are not clear.
    let denies = json!([[0, 999, "drops", "rejected"], [0, 999, "read", "rejected"]]);
    for (stand, steps, refused) in [
        (Stand::lying(&denies), (1, 1), Some(FaultKind::Denied)),
        (Stand::new(Manner::Relays), (8, 1), None),
        (busy(0), (1, 1), None),
        (ignoring_conditions(), (1, 0), None),
    ] {
        let report = stand.report(Effort::at_start(&config()));
        assert_eq!(report.refusal().map(|fault| fault.kind), refused, "{report:?}");
        let unclear =
            |one: &&Judged| matches!(one.finding, Finding::Unclear(_) | Finding::Refused(_));
        assert_eq!((report.judged.len(), report.judged.iter().filter(unclear).count()), steps);
    }
}

#[test]
fn c26_a_racy_store_is_found_by_the_first_race_that_shows_it() {
    let found = |races| {
        // From the third race on.
        let stand = Stand::new(Manner::LooksBeforeItWrites(10 + 2 * 6));
        let report = stand.report(Effort::thorough(races));
        (violation(&stand, &report.judged).is_some(), stand.asked.get())
    };
    assert_eq!(found(2), (false, 10 + 2 * 6 + 1 + 4 + 1));
    assert_eq!(found(3), (true, 10 + 3 * 6 + 1));
    assert_eq!(found(50), (true, 10 + 3 * 6 + 1), "it ends there");
}

#[test]
fn c26_a_store_that_says_nothing_delays_a_start_by_two_requests() {
    let stand = Stand::new(Manner::IsSilent);
    let report = stand.report(Effort::at_start(&config()));
    assert_eq!(report.judged.len(), 1);
    assert_eq!(report.offset, None);
    assert!(matches!(report.finding(), Finding::Unclear(_)));
    let took_ms = stand.host.now().mono_ms;
    assert!(took_ms <= 2 * config().request_timeout_ms + 20, "{took_ms} ms");
}

#[test]
fn c26_a_slow_store_delays_a_start_by_five_requests_at_most() {
    let request_ms = config().request_timeout_ms;
    for percent in [5, 25, 30, 60, 90, 99, 200] {
        let stand = Stand::new(Manner::IsFar(request_ms * percent / 100));
        let report = stand.report(Effort::at_start(&config()));
        let took_ms = stand.host.now().mono_ms;
        // Each of the nine rounds of a probe may end 10 ms late in this test.
        assert!(took_ms <= 5 * request_ms + 90, "{percent}: {took_ms} ms");
        assert_eq!(violation(&stand, &report.judged), None);
        let ends = report.judged.iter().all(|one| one.finding == Finding::Holds);
        assert_eq!(ends, percent <= 30, "{percent}: {report:?}");
    }
    let stand = busy(6);
    stand.report(Effort { limit_ms: 1_000, ..Effort::at_start(&config()) });
    assert!(stand.host.now().mono_ms < 1_000, "there is no time for a pause");
}

#[test]
fn c26_the_object_of_a_probe_is_taken_away_whatever_it_found() {
    for manner in [Manner::Plain, Manner::LooksBeforeItWrites(0)] {
        let stand = Stand::new(manner);
        stand.judged();
        assert!(stand.deleted.get(), "{manner:?}");
        assert_eq!(stand.memory.body(), None, "{manner:?}");
    }
}

#[test]
fn the_stores_clock_is_told_as_well_as_its_answers_tell_it() {
    for ahead_ms in [0, 1_000, 7_000] {
        let ahead = Stand::new(Manner::TellsTimes(ahead_ms, ahead_ms));
        let report = ahead.report(Effort::thorough(1));
        let Some(Offset { ms, error_ms }) = report.offset else { panic!("{report:?}") };
        assert!(ms.abs_diff(ahead_ms) <= error_ms, "{ahead_ms}: {ms} within {error_ms}");
        assert!(error_ms <= 500, "{error_ms}");
        assert_eq!(report.finding(), &Finding::Holds);
    }
    let report = Stand::new(Manner::Relays).report(Effort::thorough(1));
    assert_eq!(report.finding(), &Finding::Holds, "without times of its own ages are watched");
}

#[test]
fn s3_no_object_but_a_probes_can_be_deleted() {
    let probed = key("jobs/leader.json", &Virtual::default()).expect("randomness");
    assert!(is_probe(&probed), "{probed}");
    for key in ["jobs/leader.json", "leader.probe-", "leader.probe-1", ".probe-/leader.json"] {
        assert!(!is_probe(key), "{key}");
    }
    for (key, method) in [("jobs/leader.json".to_owned(), None), (probed, Some("DELETE"))] {
        let config = S3Config { bucket: "jobs".to_owned(), key, ..S3Config::default() };
        let s3 = S3::new(config).expect("a fine configuration");
        assert_eq!(sent(&s3, read()).method(), "GET");
        let asked = s3.request(&mut s3.begin(Operation::Delete), &credentials(), NOW_MS);
        assert_eq!(asked.map(|request| request.method().to_string()).ok().as_deref(), method);
    }
}

#[test]
fn c26_the_probes_of_two_servers_do_not_meet() {
    // Whatever a host draws goes into the key.
    let host = |drawn| Virtual::default().seeded(drawn);
    let keys = [1, 2].map(|drawn| key("jobs/leader.json", &host(drawn)).expect("randomness"));
    assert_ne!(keys[0], keys[1]);
    assert!(keys.iter().all(|key| key.starts_with("jobs/leader.json.probe-")), "{keys:?}");
    // Even if they did, neither would take the other's writes for its own.
    for sequence in 1..=10 {
        let stand = Stand::new(Manner::Plain);
        let theirs = format!(r#"{{"leaderID":"probe","session":"theirs","sequence":{sequence}}}"#);
        stand.memory.overwrite(Some(theirs.clone().into_bytes()));
        let judged = stand.judged();
        assert_eq!((judged.len(), violation(&stand, &judged)), (2, None), "{sequence}");
        assert_eq!(stand.memory.body(), Some(theirs.into_bytes()));
    }
}

#[test]
fn a_probe_that_was_stopped_has_not_shown_that_the_store_holds_and_deletes_its_object() {
    for ms in [1, 2_500, 4_500, 6_500] {
        let stand = Stand::new(Manner::IsLate);
        let (config, effort, stop) = (config(), Effort::thorough(1), stand.host.sleep(ms));
        let probing = probe_until(&stand, &stand.host, &config, effort, |_| {}, stop);
        let report = stand.ended(probing);
        assert!(matches!(report.finding(), Finding::Unclear(_)), "{ms}: {:?}", report.finding());
        // While its create is under way, too.
        assert!(ms != 2_500 || (stand.deleted.get() && stand.memory.body().is_none()));
    }
}
