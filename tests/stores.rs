//! The conformance list against the stores that run natively, and against stores that break it: each is found out.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::conformance::{self, Traits};
use crate::double::{Double, Manner};
use crate::histories::{self, Plan};
use edgelect::lease::Format;
use edgelect::store::memory::Memory;
use edgelect::store::{Operation, Store};
use edgelect::{EpochStore, S3Config};
use futures::executor::block_on;
use worlds::bucket::Bucket;
use worlds::virtual_time::Virtual;
use worlds::{bucket_with, credentials};

#[test]
fn memory_conforms_in_each_form_and_each_of_its_random_histories_has_an_order() {
    block_on(histories::conforms(Traits::TIMELESS, plan(), Memory::default));
    block_on(conformance::check(Traits::S3, || Memory::new(|| 1_795_000_000_999)));
    let fresh = || Memory::default().in_format(Format::Kubernetes);
    block_on(conformance::check(Traits { keeps_any_body: false, ..Traits::TIMELESS }, fresh));
}

fn plan() -> Plan {
    let count = histories::how_many(1_000, std::env::var("EDGELECT_LONG").ok());
    Plan { count, at_once: 1 }
}

/// The list, without what it says when it fails.
fn fails_the_list(manner: Manner) -> bool {
    let traits = Traits { tells_time: false, dates_records: false, ..Traits::COUNTED };
    let list = || block_on(conformance::check(traits, || Double::new(manner)));
    catch_unwind(AssertUnwindSafe(list)).map_or(true, |ran| ran != conformance::ALL)
}

fn broken_history(manner: Manner) -> bool {
    block_on(histories::check(plan(), || Double::new(manner))).is_err()
}

#[test]
fn a_store_that_breaks_the_contract_now_and_then_fails_the_list_and_the_histories() {
    assert!(!fails_the_list(Manner::Honest) && !broken_history(Manner::Honest));
    for manner in Manner::BROKEN {
        assert!(fails_the_list(manner), "{manner:?} passes the list");
        assert!(broken_history(manner), "{manner:?} has an order");
    }
}

/// Epochs in a bucket without `If-Match`, which takes one of so many creations without looking, if said.
fn epochs(blind: Option<u64>, format: Format) -> EpochStore<Virtual> {
    let bucket = Rc::<RefCell<Bucket>>::default();
    let host = Virtual::default().seeded(7).asking(move |mut request| {
        let bucket = Rc::clone(&bucket);
        async move {
            conformance::pause().await;
            let created = bucket.borrow().counts.get("create").copied().unwrap_or_default();
            if blind.is_some_and(|every| created % every == every - 1) {
                request.headers_mut().remove("if-none-match");
                *bucket.borrow_mut().counts.entry("create").or_default() += 1;
            }
            let response = bucket.borrow_mut().perform(5_000, 0, &request);
            conformance::pause().await;
            Ok(response)
        }
    });
    host.now_ms.set(5_000);
    let config = S3Config { format, ..bucket_with("leader/g") };
    EpochStore::new(config, credentials(), host).expect("a usable configuration")
}

#[test]
fn epochs_conform_and_each_history_of_their_claims_has_an_order() {
    for format in [Format::Native, Format::named("kubernetes").expect("a format")] {
        block_on(histories::conforms(Traits::EPOCHS, plan(), || epochs(None, format)));
    }
}

#[test]
fn epochs_of_a_bucket_that_ignores_a_condition_now_and_then_have_no_order() {
    let fresh = || epochs(Some(4), Format::Native);
    let broken = block_on(histories::check(plan(), fresh));
    broken.expect_err("its creations are held to the order");
    let list = || block_on(conformance::check(Traits::EPOCHS, fresh));
    assert!(catch_unwind(AssertUnwindSafe(list)).is_err(), "it passes the list");
}

#[test]
fn memory_tells_when_the_record_was_written_in_whole_seconds() {
    let clock = Rc::new(Cell::new(10_999));
    let shown = Rc::clone(&clock);
    let store = Memory::new(move || shown.get());
    block_on(conformance::create(&store, conformance::record("a", 1)));
    clock.set(25_500);
    let facts = block_on(store.perform(Operation::Read { unless: None })).facts;
    assert_eq!((facts.date_ms, facts.last_modified_ms), (Some(25_000), Some(10_000)));
}
