//! What a member counts, and what it shows monitors of it. tests/js/metrics.test.mjs has a real parser read the text.

use edgelect::isolate::Isolate;
use edgelect::metrics::{Sample, text};

use crate::driver::prelude::*;
use crate::driver::{World, config, world};

fn shown(world: &World) -> String {
    text([Sample::of(&world.handle, world.machine.host.now())])
}

/// The values of the series whose names begin so.
fn values<'a>(text: &'a str, series: &str) -> Vec<&'a str> {
    let of = |line: &'a str| line.strip_prefix(series)?.rsplit_once(' ').map(|(_, value)| value);
    text.lines().filter_map(of).collect()
}

#[test]
fn a_leader_counts_its_renewals_and_what_nobody_knows_of_them() {
    let mut world = world(true);
    world.pass(60_000);
    let group = r#"{group="leader/test.json""#;
    let of = |text: &str, name: &str, labels: &str| {
        let found = values(text, &format!("edgelect_{name}{group}{labels}"));
        assert_eq!(found.len(), 1, "{name}{labels} in {text}");
        found[0].to_owned()
    };
    let renewals = |outcome: &str| format!(r#",operation="renew",outcome="{outcome}"}}"#);
    let led = shown(&world);
    assert_eq!(of(&led, "authority", "}"), "1");
    assert_eq!(of(&led, "store_requests_total", &renewals("ok")), "12");
    assert_eq!(of(&led, "store_requests_total", &renewals("unknown")), "0", "there to be watched");
    assert_eq!(of(&led, "terms_total", r#",reason="expired"}"#), "0");
    world.store.hangs.set(true);
    world.pass(30_000);
    world.store.hangs.set(false);
    let lost = shown(&world);
    assert_eq!(of(&lost, "authority", "}"), "0");
    assert_eq!(of(&lost, "error", "}"), "1");
    assert_eq!(of(&lost, "terms_total", r#",reason="expired"}"#), "1");
    assert_ne!(of(&lost, "store_requests_total", &renewals("unknown")), "0");
    let within = |seconds: &str| {
        let labels = format!(r#"{{le="{seconds}",operation="renew"}}"#);
        values(&lost, &format!("edgelect_store_request_duration_seconds_bucket{labels}"))[0]
    };
    // A request that was cut off at its limit of 1,800 ms is in the range up to 2.5 s.
    assert!(within("1.0") == "12" && within("2.5") != "12", "{lost}");
}

#[test]
fn a_record_that_nobody_could_read_is_an_error_and_an_event_that_vanishes_blocks_no_other() {
    let mut machine = Machine::default();
    let (host, store) = (machine.host.clone(), Hanging::with_group(&machine.host));
    let isolate = Rc::new(Isolate::default());
    let told = Rc::<RefCell<Vec<String>>>::default();
    let ask = |machine: &Machine| {
        let (isolate, host, store, told) =
            (Rc::clone(&isolate), host.clone(), store.clone(), Rc::clone(&told));
        machine.run(async move {
            let status = isolate.status(&config(), &store, &host).await;
            let sample = isolate.metrics(&config(), &store, &host, false).await;
            told.borrow_mut().extend([status, text([sample])]);
        })
    };
    store.hangs.set(true);
    ask(&machine);
    machine.pass(60_000);
    {
        let told = told.borrow();
        assert!(told[0].contains(r#""error":"the store has not answered yet""#), "{told:?}");
        assert_eq!(values(&told[1], "edgelect_error"), ["1"]);
        assert!(!told[1].contains("_leader{") && !told[1].contains("authority"), "{told:?}");
    }
    let vanishes = ask(&machine);
    machine.pass(1);
    vanishes.abort();
    machine.pass(1);
    store.hangs.set(false);
    ask(&machine);
    machine.pass(1);
    let told = told.borrow();
    assert!(told[2].contains(r#""error":null"#), "{told:?}");
    assert_eq!(values(&told[3], "edgelect_record_leader"), ["0"]);
    assert!(!told[3].contains("authority"), "{told:?}");
}
