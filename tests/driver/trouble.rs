//! What somebody sees of a member whose store fails, or that does not lead.

use edgelect::election::Waiting;

use crate::driver::lead::begin;
use crate::driver::prelude::*;
use crate::driver::{Told, World, world};

fn shown(machine: &Machine) -> Vec<String> {
    machine.host.shown.borrow().iter().map(|(_, line)| line.clone()).collect()
}

#[test]
fn a_member_says_what_it_waits_for_and_for_how_long() {
    let mut world = world(true);
    let waits = |world: &World| world.handle.with(|one| one.waiting(world.machine.host.now()));
    assert_eq!(waits(&world), Some((Waiting::Store, Some(0))), "it has asked nobody yet");
    world.pass(1_000);
    assert_eq!(waits(&world), None, "it leads");
    world.handle.tell(Input::Resign);
    world.pass(1_000);
    assert_eq!(waits(&world), Some((Waiting::SittingOut, Some(19_000))));
    world.pass(20_000);
    assert_eq!(waits(&world), None);
    world.store.hangs.set(true);
    world.pass(40_000);
    assert!(matches!(waits(&world), Some((Waiting::Store, Some(1..)))), "{:?}", waits(&world));
}

/// Leads over this store for ten minutes, if it does not end before; its elector, how it ended, and what was shown.
fn leads(config: Config, store: impl Store + 'static) -> (Handle, Option<Fault>, Vec<String>) {
    let mut machine = Machine::default();
    let (elector, ended) = begin(&machine, store, config, async |_| std::future::pending().await);
    machine.pass(600_000);
    let fault = ended.take().map(|(at_ms, ended)| {
        assert!((1_000..=5_100).contains(&at_ms), "{at_ms}");
        ended.expect_err("its work does not end")
    });
    (elector, fault, shown(&machine))
}

#[test]
fn a_new_group_is_told_once_that_it_waits_out_its_grace() {
    let (_, fault, lines) = leads(config(), Memory::default());
    let told = "waiting out the grace of a new group, 15 s left; `init` avoids this where no member has run";
    assert!(fault.is_none() && lines.len() == 1 && lines[0].ends_with(told), "{lines:?}");
}

/// Refused with this code.
fn refusal(code: &str) -> Answer {
    let code = Some(code.to_owned());
    let fault = Fault { code, status: Some(403), ..Fault::new(FaultKind::Denied, "refused") };
    undated(Outcome::Rejected(fault))
}

#[test]
fn a_store_that_does_not_know_the_key_ends_lead_at_the_second_refusal_unless_somebody_waits() {
    let patient = config_of(Settings { fail_fast: Some(false), ..Settings::default() });
    for (code, config, ends) in [
        ("InvalidAccessKeyId", config(), true),
        ("SignatureDoesNotMatch", config(), true),
        ("UnrecognizedClientException", config(), true),
        ("InvalidAccessKeyId", patient, false),
        ("AccessDenied", config(), false),
    ] {
        let store = Through(async move |_| refusal(code));
        let (elector, fault, lines) = leads(config, store);
        let reads = elector.requests().read;
        match ends {
            // One refusal may be of a key that is new.
            true => assert_eq!((reads, fault.and_then(|fault| fault.code)), (2, Some(code.into()))),
            false => assert!(reads > 10 && fault.is_none() && lines.len() == 1, "{code} {lines:?}"),
        }
    }
}

#[test]
fn a_key_that_has_read_is_not_given_up_for_one_write() {
    let store = Through(async |operation| match operation {
        Operation::Read { .. } => undated(Outcome::Missing),
        _ => refusal("InvalidAccessKeyId"),
    });
    let (elector, fault, _) = leads(config(), store);
    assert!(fault.is_none() && elector.requests().write > 1, "{fault:?}");
}

#[test]
fn what_ends_an_elector_is_no_trouble_beside() {
    let (mut machine, busy) = (Machine::default(), Cell::new(true));
    let store = Through(async move |_| match busy.replace(false) {
        true => Answer::unknown(Fault::new(FaultKind::Unavailable, "busy")),
        false => refusal("InvalidAccessKeyId"),
    });
    let elector = Handle::new(Election::new(config(), "session-1".to_owned(), 1));
    let told = Told::default();
    machine.elect(&elector, store, &machine.host, told.note(&machine.host));
    machine.pass(60_000);
    let told = told.of(|_, event| Some(event.clone()));
    assert!(matches!(told[..], [Event::Failed(_)]), "{told:?}");
    assert!(shown(&machine).is_empty());
}
