//! What an object per term means to the store: which requests an operation sends to a bucket without `If-Match`, and what
//! their answers come to.

use std::future::ready;
use std::ops::RangeInclusive;

use edgelect::json::Object;
use edgelect::lease::{Closed, Flaw, Remains};
use edgelect::planted::{Bug, plant};
use edgelect::protocol::Protocol;
use edgelect::store::Facts;
use edgelect::store::epochs::Epochs;
use edgelect::{S3Config, remote};

use crate::answers::told::{found_in, written};
use crate::driver::prelude::*;
use worlds::bucket::{BEGAN_MS, Bucket, add, error, lists};

/// What a hook answers in the bucket's place.
type Bent = Option<Result<Response, String>>;
type Hook = Box<dyn FnMut(&Request, &mut Bucket) -> Bent>;

/// A bucket that answers at once, unless the hook does.
pub struct Desk {
    pub bucket: Rc<RefCell<Bucket>>,
    hook: Rc<RefCell<Hook>>,
    pub host: Virtual,
}

impl Desk {
    pub fn new() -> Self {
        let (bucket, time) = (Rc::<RefCell<Bucket>>::default(), Virtual::default().seeded(7));
        time.now_ms.set(5_000);
        let hook: Rc<RefCell<Hook>> = Rc::new(RefCell::new(Box::new(|_, _| None)));
        let (asked, bent, clock) = (Rc::clone(&bucket), Rc::clone(&hook), time.clone());
        let host = time.asking(move |request| {
            let bucket = &mut *asked.borrow_mut();
            let answer = (bent.borrow_mut())(&request, bucket);
            ready(answer.unwrap_or_else(|| Ok(bucket.perform(clock.now_ms.get(), 0, &request))))
        });
        Self { bucket, hook, host }
    }

    fn with(objects: &[(&str, &str)]) -> Self {
        let desk = Self::new();
        for (name, body) in objects {
            desk.bucket.borrow_mut().put(0, &format!("leader/g/{name}"), body.as_bytes());
        }
        desk
    }

    /// With living epochs of these numbers.
    fn live(numbers: RangeInclusive<u64>) -> Self {
        let desk = Self::new();
        desk.put_live("leader/g", numbers);
        desk
    }

    fn put_live(&self, folder: &str, numbers: RangeInclusive<u64>) {
        for number in numbers {
            let key = format!("{folder}/lock_{number:010}.json");
            self.bucket.borrow_mut().put(0, &key, LIVE.as_bytes());
        }
    }

    fn hook(&self, hook: impl FnMut(&Request, &mut Bucket) -> Bent + 'static) {
        *self.hook.borrow_mut() = Box::new(hook);
    }

    fn facts(&self, epochs: &Epochs) -> Facts {
        self.perform(epochs, Operation::Read { unless: None }).facts
    }

    pub fn perform(&self, epochs: &Epochs, operation: Operation) -> Answer {
        block_on(remote::perform(epochs, &self.host, &worlds::credentials(), operation))
    }

    fn read(&self, epochs: &Epochs) -> Outcome {
        self.perform(epochs, Operation::Read { unless: None }).outcome
    }

    fn reading(&self, epochs: &Epochs) -> Reading {
        found_in(self.read(epochs)).1
    }

    fn write(&self, epochs: &Epochs, session: &str, term: u64, on: Condition) -> Outcome {
        let record = lease_of(session, term).into();
        self.perform(epochs, Operation::Write { record, condition: on }).outcome
    }

    fn names(&self) -> Vec<String> {
        let bucket = self.bucket.borrow();
        bucket.objects.keys().map(|key| key.replace("leader/g/", "")).collect()
    }

    fn count(&self, kind: &str) -> u64 {
        self.bucket.borrow().counts.get(kind).copied().unwrap_or(0)
    }
}

pub fn epochs() -> Epochs {
    Epochs::new(bucket_with("leader/g")).expect("a plain bucket")
}

pub fn lease_of(session: &str, term: u64) -> Lease {
    let (at_ms, session) = (1_795_244_292_000, Some(session.to_owned()));
    let (term, lease_ms, acquired) = (Some(term), Some(15_000), Some(at_ms));
    let bare = Lease::bare("a", Stamp::At(at_ms));
    Lease { term, session, sequence: 1, lease_ms, acquired, ..bare }
}

fn on(name: &str) -> Condition {
    Condition::Match(Version(format!("{name} 1795000000 \"e\"")))
}

const LIVE: &str = "{\"validity_ms\":60000,\"expired\":false}";

#[test]
fn a_first_epoch_is_created_renewed_in_place_and_succeeded_by_the_next() {
    let (desk, one, other) = (Desk::new(), epochs(), epochs());
    assert_eq!(desk.read(&one), Outcome::Missing);
    let version = written(desk.write(&one, "s", 7, Condition::Absent));
    assert_eq!(desk.names(), ["lock_0000000001.json"]);
    let (read, reading) = found_in(desk.read(&other));
    assert_eq!(read, version, "a written version is the one that is read");
    assert_eq!(reading, Reading::Lease(Box::new(lease_of("s", 7))));
    let body = desk.bucket.borrow().objects["leader/g/lock_0000000001.json"].bytes.clone();
    let body = Object::read(&body).expect("JSON");
    let said = (body.get("validity_ms"), body.get("expired"));
    assert_eq!(said, (Some("15000"), Some("false")), "{body:?}");
    // The same session's same term, here: in place.
    let version = written(desk.write(&one, "s", 7, Condition::Match(version)));
    assert_eq!(desk.names(), ["lock_0000000001.json"]);
    // Another instance, another session, another term: the next number.
    for (number, instance, session, term) in
        [(2, &other, "s", 7), (3, &one, "t", 7), (4, &one, "s", 8)]
    {
        let held = Condition::Match(version.clone());
        let held = if number == 2 { held } else { on(&format!("lock_{:010}.json", number - 1)) };
        written(desk.write(instance, session, term, held));
        assert_eq!(desk.names().len(), number);
    }
    assert_eq!(desk.write(&other, "x", 9, Condition::Absent), Outcome::Refused);
    assert_eq!(desk.write(&other, "x", 9, on("lock_0000000002.json")), Outcome::Refused);
    let unfit = desk.write(&one, "s", 9, Condition::Match(Version("\"e\"".to_owned())));
    assert!(matches!(unfit, Outcome::Rejected(_)), "{unfit:?}");
}

#[test]
fn s12_a_release_says_expired_for_members_that_know_no_other_sign_and_nothing_else_does() {
    for format in [Format::Native, Format::Kubernetes] {
        let epochs =
            Epochs::new(S3Config { format, ..bucket_with("leader/g") }).expect("a plain bucket");
        let (desk, held) = (Desk::new(), lease_of("s", 7));
        let parked = Lease { parked: true, sequence: 2, ..held.clone() };
        let again = Lease { sequence: 3, ..held.clone() };
        let released = Lease { last_updated: Stamp::Released, sequence: 4, ..held.clone() };
        let mut condition = Condition::Absent;
        for (lease, expired) in
            [(held, "false"), (parked, "false"), (again, "false"), (released, "true")]
        {
            let operation = Operation::Write { record: lease.clone().into(), condition };
            condition = Condition::Match(written(desk.perform(&epochs, operation).outcome));
            let bucket = desk.bucket.borrow();
            let fields = Object::read(&bucket.objects["leader/g/lock_0000000001.json"].bytes);
            let fields = fields.expect("JSON");
            let said = (fields.get("expired"), fields.get("validity_ms"));
            assert_eq!(said, (Some(expired), Some("15000")), "{}: {lease:?}", format.name());
        }
    }
}

#[test]
fn s3_a_claim_that_meets_its_twin_is_not_taken_for_won_by_its_read_back() {
    let desk = Desk::live(8..=8);
    let (one, other) = (epochs(), epochs());
    written(desk.write(&one, "s", 7, on("lock_0000000008.json")));
    // The other's read came before, and showed the name with a dash.
    let outcome = desk.write(&other, "t", 7, on("lock-0000000008.json"));
    assert_eq!(outcome, Outcome::Refused, "who made the first has authority");
    let Reading::Lease(lease) = desk.reading(&other) else { panic!("it is readable") };
    assert_eq!(lease.session, None, "its own session would take it for landed");
    // The same number under the other name is no confirmation either.
    let desk = Desk::with(&[("lock-0000000003.json", LIVE)]);
    let claim = desk.write(&epochs(), "s", 7, on("lock_0000000002.json"));
    assert_eq!(claim, Outcome::Refused);
}

#[test]
fn s6_of_two_names_of_the_newest_number_both_are_waited_out_and_neither_is_missed() {
    let twins = |dashed: &str, plain: &str| {
        Desk::with(&[("lock-0000000003.json", dashed), ("lock_0000000003.json", plain)])
    };
    let lease = |dashed: &str, plain: &str| match twins(dashed, plain).reading(&epochs()) {
        Reading::Lease(lease) => *lease,
        other => panic!("{dashed} {plain} read as {other:?}"),
    };
    let (short, gone) = (r#"{"validity_ms":2000,"expired":false}"#, r#"{"expired":true}"#);
    for (dashed, plain, lease_ms) in
        [(short, LIVE, 60_000), (LIVE, short, 60_000), (gone, LIVE, 60_000), (short, gone, 2_000)]
    {
        let both = lease(dashed, plain);
        assert!(!both.released(), "{dashed} {plain}");
        assert_eq!((both.lease_ms, both.session), (Some(lease_ms), None), "{dashed} {plain}");
    }
    assert!(lease(gone, gone).released());
    let mut slots = lease_of("s", 9);
    (slots.slot, slots.slot_done) = (Some(7), Some(true));
    let parked = Lease { parked: true, ..lease_of("t", 4) };
    let [slots, parked] =
        [slots, parked].map(|l| String::from_utf8(lease::write(&l)).expect("UTF-8"));
    let both = lease(&parked, &slots);
    assert_eq!((both.parked, both.term, both.slot), (false, Some(9), Some(7)));
    for (dashed, plain, lease_ms) in [("x", LIVE, Some(60_000)), (LIVE, "x", Some(60_000))] {
        let reading = twins(dashed, plain).reading(&epochs());
        let Reading::Unreadable(_, told) = reading else { panic!("{reading:?}") };
        assert_eq!(told.lease_ms, lease_ms, "{dashed} {plain}");
    }
    // A renewal of either is another version; that of both is known again.
    let (desk, epochs) = (twins(short, LIVE), epochs());
    let (version, _) = found_in(desk.read(&epochs));
    let known = || Operation::Read { unless: Some(version.clone()) };
    assert_eq!(desk.perform(&epochs, known()).outcome, Outcome::Unchanged);
    desk.bucket.borrow_mut().put(4_000, "leader/g/lock_0000000003.json", LIVE.as_bytes());
    let answer = desk.perform(&epochs, known());
    assert!(matches!(answer.outcome, Outcome::Found { .. }), "{answer:?}");
    let modified_ms = BEGAN_MS + 4_000;
    assert_eq!(answer.facts.last_modified_ms, Some(modified_ms), "the later of the two");
    written(desk.write(&epochs, "u", 10, Condition::Match(version)));
    assert_eq!(desk.names()[1], "lock-0000000004.json");
}

#[test]
fn s6_a_second_name_of_the_newest_number_is_noticed_beside_a_first_that_does_not_change() {
    let (desk, epochs) = (Desk::with(&[("lock-0000000003.json", LIVE)]), epochs());
    let (alone, _) = found_in(desk.read(&epochs));
    desk.bucket.borrow_mut().put(0, "leader/g/lock_0000000003.json", LIVE.as_bytes());
    let again = Operation::Read { unless: Some(alone.clone()) };
    let (both, _) = found_in(desk.perform(&epochs, again).outcome);
    assert_ne!(both, alone);
}

#[test]
fn s8_a_creation_that_lands_in_a_cleaned_number_after_the_listing_is_not_adopted() {
    let (desk, epochs) = (Desk::live(4..=5), epochs());
    let held_up = Rc::new(RefCell::new(None));
    let taken = Rc::clone(&held_up);
    desk.hook(move |request, _| {
        (request.method() == "PUT").then(|| {
            *taken.borrow_mut() = Some(request.body().clone());
            Err("reset".to_owned())
        })
    });
    let claim = desk.write(&epochs, "s", 7, on("lock_0000000005.json"));
    assert!(matches!(claim, Outcome::Unknown { .. }), "{claim:?}");
    let body = held_up.take().expect("it was sent");
    desk.put_live("leader/g", 6..=6);
    // While it is read, three others lead and clean up, and the creation lands.
    desk.hook(move |request, bucket| {
        if request.method() == "GET" && !lists(request) {
            for number in 4..=6 {
                bucket.objects.remove(&format!("leader/g/lock_{number:010}.json"));
            }
            bucket.put(0, "leader/g/lock_0000000006.json", &body);
            bucket.put(0, "leader/g/lock_0000000007.json", LIVE.as_bytes());
            bucket.put(0, "leader/g/lock_0000000008.json", LIVE.as_bytes());
        }
        None
    });
    let read = desk.read(&epochs);
    assert!(matches!(read, Outcome::Unknown { .. }), "{read:?}");
    desk.hook(|_, _| None);
    let (version, _) = found_in(desk.read(&epochs));
    assert!(version.0.starts_with("lock_0000000008.json"), "{version:?}");
}

#[test]
fn a_body_of_nearly_64_kib_stays_readable_with_what_the_layout_adds() {
    for filler in 65_000..65_336 {
        let (desk, epochs, mut lease) = (Desk::new(), epochs(), lease_of("s", 7));
        lease.extra.set("theirs", format!("\"{}\"", "x".repeat(filler)));
        let write = Operation::Write { record: lease.into(), condition: Condition::Absent };
        written(desk.perform(&epochs, write).outcome);
        let Reading::Lease(read) = desk.reading(&epochs) else { panic!("{filler}") };
        assert_eq!(read.session.as_deref(), Some("s"), "{filler}");
    }
}

#[test]
fn epochs_whose_leaders_never_renewed_do_not_pile_up() {
    let (desk, epochs) = (Desk::new(), epochs());
    let mut version = written(desk.write(&epochs, "s", 1, Condition::Absent));
    for term in 2..=100 {
        desk.host.now_ms.set(term * 5_000);
        version = written(desk.write(&epochs, "s", term, Condition::Match(version)));
    }
    assert!(desk.names().len() <= 17, "{}", desk.names().len());
}

#[test]
fn s8_after_the_write_has_left_nothing_is_a_rejection() {
    for answer in [
        Ok(error(403, "AccessDenied")),
        Ok(error(404, "NoSuchBucket")),
        Ok(error(503, "SlowDown")),
        Ok(error(200, "InternalError")),
        Err("reset".to_owned()),
    ] {
        let (desk, epochs) = (Desk::new(), epochs());
        desk.hook(move |request, _| lists(request).then(|| answer.clone()));
        let outcome = desk.write(&epochs, "s", 7, Condition::Absent);
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
        assert_eq!(desk.names(), ["lock_0000000001.json"], "it has landed");
        let read = desk.read(&epochs);
        let known = matches!(read, Outcome::Rejected(_) | Outcome::Unknown { .. });
        assert!(known, "a listing that fails is no absence: {read:?}");
    }
    let (desk, epochs) = (Desk::new(), epochs());
    // A listing that lags behind the write.
    desk.hook(|request, _| lists(request).then(|| Ok(Bucket::default().perform(0, 0, request))));
    let outcome = desk.write(&epochs, "s", 7, Condition::Absent);
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
}

#[test]
fn cleaning_leaves_the_newest_two_and_what_is_foreign_and_costs_a_renewal_one_request() {
    let desk = Desk::with(&[("lock_0000000001.json.bak", "x"), ("notes", "x")]);
    desk.put_live("leader/g", 1..=6);
    desk.host.now_ms.set(60_000);
    let epochs = epochs();
    let mut version = written(desk.write(&epochs, "s", 7, on("lock_0000000006.json")));
    assert_eq!(desk.count("delete"), 0, "a claim is not delayed");
    for renewals in 1..=8 {
        version = written(desk.write(&epochs, "s", 7, Condition::Match(version)));
        assert_eq!(desk.count("delete"), renewals.min(5));
    }
    let left =
        ["lock_0000000001.json.bak", "lock_0000000006.json", "lock_0000000007.json", "notes"];
    assert_eq!(desk.names(), left);
}

#[test]
fn s3_only_the_epochs_of_a_probe_are_taken_away_and_no_more_than_were_listed() {
    let (desk, lease) = (Desk::live(1..=4), epochs());
    let Outcome::Rejected(fault) = desk.perform(&lease, Operation::Delete).outcome else {
        panic!("it would delete the lease")
    };
    assert_eq!(fault.kind, FaultKind::Unsupported);
    assert_eq!((desk.count("delete"), desk.names().len()), (0, 4), "a lease's stay");

    let folder = format!("leader/g.probe-{}", "07".repeat(8) + &"a1".repeat(8));
    let probed = |refused_at: u64| {
        let (desk, epochs) = (Desk::live(1..=4), Epochs::new(bucket_with(&folder)));
        let epochs = epochs.expect("a plain bucket");
        desk.put_live(&folder, 1..=4);
        let mut deletes = 0;
        desk.hook(move |request, _| {
            deletes += u64::from(request.method() == "DELETE");
            let refuses = request.method() == "DELETE" && deletes == refused_at;
            refuses.then(|| Ok(error(403, "AccessDenied")))
        });
        let gone = desk.perform(&epochs, Operation::Delete).outcome == Outcome::Missing;
        assert_eq!(gone, refused_at == 0);
        let left = desk.names().iter().filter(|name| name.contains(".probe-")).count();
        assert_eq!(desk.names().len() - left, 4, "the lease's stay");
        (desk.count("list"), desk.count("delete"), left)
    };
    assert_eq!(probed(0), (1, 4, 0));
    assert_eq!(probed(2), (1, 1, 3), "what is forbidden is not tried again");
}

#[test]
fn a_missing_right_to_delete_is_told_by_operation_code_and_right_and_costs_no_renewal() {
    for answer in [Ok(error(403, "AccessDenied")), Err("reset".to_owned())] {
        let (desk, epochs) = (Desk::live(1..=6), epochs());
        desk.host.now_ms.set(60_000);
        let tries = Rc::new(Cell::new(0));
        let (tried, denied) = (Rc::clone(&tries), answer.clone());
        desk.hook(move |request, _| {
            tried.set(tried.get() + u64::from(request.method() == "DELETE"));
            (request.method() == "DELETE").then(|| denied.clone())
        });
        let mut version = written(desk.write(&epochs, "s", 7, on("lock_0000000006.json")));
        assert_eq!(epochs.complaint(), None);
        for _ in 0..40 {
            version = written(desk.write(&epochs, "s", 7, Condition::Match(version)));
        }
        assert_eq!(tries.get(), 3, "one renewal in seventeen asks again");
        let fault = epochs.complaint().expect("it is told");
        if answer.is_ok() {
            assert_eq!((fault.kind, fault.status), (FaultKind::Denied, Some(403)), "{fault}");
            let said = "DELETE \"leader/g/lock_0000000001.json\" was answered 403 AccessDenied: \
                        the credentials need s3:DeleteObject";
            assert!(fault.message.contains(said), "{fault}");
        }
        // Somebody grants it.
        desk.hook(|_, _| None);
        for _ in 0..30 {
            version = written(desk.write(&epochs, "s", 7, Condition::Match(version)));
        }
        assert_eq!(epochs.complaint(), None);
        assert_eq!(desk.names(), ["lock_0000000006.json", "lock_0000000007.json"]);
    }
}

#[test]
fn c26_a_listing_of_many_pages_is_read_to_its_end_and_one_of_a_million_keys_is_an_error() {
    let desk = Desk::live(1..=2_500);
    let reading = desk.reading(&epochs());
    assert!(matches!(reading, Reading::Lease(lease) if lease.leader_id.contains("2500")));
    assert_eq!(desk.count("list"), 3);
    let epochs = epochs().keys_per_page(100);
    let Outcome::Rejected(fault) = desk.read(&epochs) else { panic!("it ends in an error") };
    assert_eq!((fault.kind, desk.count("list")), (FaultKind::Misconfigured, 3 + 16));
    assert!(fault.message.contains("more than 16 pages"), "{fault}");
    assert_eq!(desk.count("create") + desk.count("overwrite") + desk.count("delete"), 0);
}

#[test]
fn an_epoch_that_is_gone_when_it_is_read_is_looked_for_three_times() {
    let desk = Desk::live(1..=1);
    desk.hook(|request, _| (!lists(request)).then(|| Ok(error(404, "NoSuchKey"))));
    let outcome = desk.read(&epochs());
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert_eq!(desk.count("list"), 3);
}

#[test]
fn s6_an_age_is_proven_by_the_date_of_before_the_body_was_asked_for() {
    let desk = Desk::live(1..=1);
    desk.hook(|request, bucket| {
        let late_ms = if lists(request) { 20_000 } else { 90_000 };
        Some(Ok(bucket.perform(late_ms, 0, request)))
    });
    let facts = desk.facts(&epochs());
    assert_eq!(facts.date_ms, Some(BEGAN_MS + 20_000));
    assert_eq!(facts.last_modified_ms, Some(BEGAN_MS));
    plant(Some(Bug::EpochDateOfBody));
    assert_eq!(desk.facts(&epochs()).date_ms, Some(BEGAN_MS + 90_000), "the bug is seen here");
    plant(None);
}

#[test]
fn s6_an_answer_from_in_between_or_one_that_the_listing_contradicts_is_said_to_prove_no_age() {
    // When the body was read was written by the listing, and by its own answer; and a header of one of the two.
    for (listed_ms, body_ms, header, doubted) in [
        (3_000, 3_000, None, false),
        (3_999, 3_000, None, false),
        (4_000, 3_000, None, true),
        (3_000, 4_000, None, true),
        (3_000, 3_000, Some(("list", "age", "0")), true),
        (3_000, 3_000, Some(("list", "via", "1.1 proxy")), true),
        (3_000, 3_000, Some(("get", "age", "7")), true),
        (3_000, 3_000, Some(("get", "via", "1.1 proxy")), true),
    ] {
        let (desk, epochs) = (Desk::live(1..=1), epochs());
        desk.hook(move |request, bucket| {
            let kind = if lists(request) { "list" } else { "get" };
            let object = bucket.objects.get_mut("leader/g/lock_0000000001.json").expect("it");
            object.modified_ms = BEGAN_MS + if kind == "list" { listed_ms } else { body_ms };
            let mut response = bucket.perform(5_000, 0, request);
            if let Some((_, name, value)) = header.filter(|(of, ..)| *of == kind) {
                add(&mut response, name, value);
            }
            Some(Ok(response))
        });
        assert_eq!(desk.facts(&epochs).relayed, doubted, "{listed_ms} {body_ms} {header:?}");
        // A renewal between the two is nobody's fault.
        let told = doubted && listed_ms >= body_ms;
        assert_eq!(epochs.complaint().is_some(), told, "{listed_ms} {body_ms} {header:?}");
        desk.hook(|_, _| None);
        written(desk.write(&epochs, "s", 2, on("lock_0000000001.json")));
        assert_eq!(epochs.complaint(), None, "a leader's way is clear now");
    }
    let desk = Desk::live(1..=1);
    desk.hook(|request, bucket| {
        let mut response = bucket.perform(5_000, 0, request);
        let text = String::from_utf8_lossy(&response.body().bytes);
        response.body_mut().bytes = text.replace("LastModified", "Modified").into_bytes();
        Some(Ok(response))
    });
    assert!(desk.facts(&epochs()).relayed, "a listing without it says nothing");
}

#[test]
fn s6_a_listing_from_a_cache_confirms_no_write_that_it_does_not_show() {
    let cached = |request: &Request, bucket: &mut Bucket, old: &Bucket| {
        let mut of = if lists(request) { old.clone() } else { bucket.clone() };
        let mut response = of.perform(9_000, 0, request);
        if request.method() == "PUT" {
            *bucket = of;
        }
        add(&mut response, "age", "9");
        response
    };
    // Epoch 3 was somebody else's once, when this was listed; it was cleaned, and a held-up claim makes it anew.
    let old = Desk::live(2..=3).bucket.take();
    let desk = Desk::live(8..=9);
    let epochs = epochs();
    desk.hook(move |request, bucket| Some(Ok(cached(request, bucket, &old))));
    let outcome = desk.write(&epochs, "s", 7, on("lock_0000000002.json"));
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    let outcome = desk.read(&epochs);
    assert!(matches!(outcome, Outcome::Unknown { .. }), "nor is it read back: {outcome:?}");
    // One that shows the write was made after it.
    let desk = Desk::live(2..=2);
    desk.hook(move |request, bucket| {
        let mut response = bucket.perform(9_000, 0, request);
        add(&mut response, "via", "1.1 proxy");
        Some(Ok(response))
    });
    let epochs = self::epochs();
    written(desk.write(&epochs, "s", 7, on("lock_0000000002.json")));
    assert!(matches!(desk.reading(&epochs), Reading::Lease(lease) if lease.session.is_some()));
}

#[test]
fn a_name_with_a_dash_is_succeeded_by_another_and_a_body_without_last_modified_is_none() {
    let (desk, epochs) = (Desk::with(&[("lock-0000000001.json", LIVE)]), epochs());
    let (version, _) = found_in(desk.read(&epochs));
    written(desk.write(&epochs, "s", 7, Condition::Match(version)));
    assert_eq!(desk.names()[1], "lock-0000000002.json", "members of this name compete for it");
    desk.hook(|request, bucket| {
        let mut response = bucket.perform(0, 0, request);
        response.headers_mut().remove("last-modified");
        Some(Ok(response))
    });
    let outcome = desk.read(&epochs);
    assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
}

#[test]
fn c20_a_region_that_a_listing_has_led_to_is_not_asked_for_again() {
    let (desk, epochs) = (Desk::new(), epochs());
    let sent_away = Rc::new(Cell::new(0));
    let counted = Rc::clone(&sent_away);
    desk.hook(move |request, _| {
        let signed =
            edgelect::request::text(request.headers(), "authorization").expect("a signature");
        let elsewhere = !signed.contains("/eu-north-1/");
        counted.set(counted.get() + u32::from(elsewhere));
        elsewhere.then(|| {
            let mut response = error(301, "PermanentRedirect");
            add(&mut response, "x-amz-bucket-region", "eu-north-1");
            Ok(response)
        })
    });
    for _ in 0..3 {
        assert_eq!(desk.read(&epochs), Outcome::Missing);
    }
    assert_eq!(sent_away.get(), 1);
}

#[test]
fn s7_foreign_bodies_are_read_by_their_validity_and_their_sign() {
    let read = |body: &str| Desk::with(&[("lock_0000000005.json", body)]).reading(&epochs());
    let lease = |body: &str| match read(body) {
        Reading::Lease(lease) => *lease,
        other => panic!("{body} reads as {other:?}"),
    };
    assert_eq!(read("{\"expired\":false}"), Reading::Closed(Closed::NoEnd));
    let plain = lease(LIVE);
    assert_eq!((plain.released(), plain.lease_ms, plain.term), (false, Some(60_000), None));
    let facts = Desk::live(5..=5).facts(&epochs());
    let changed_ms = facts.last_modified_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap();
    assert_eq!(lease(LIVE).last_updated, Stamp::At(changed_ms), "of the last change, for people");
    for (validity, lease_ms) in [
        ("3600001", 3_600_001),
        ("86400000", 86_400_000),
        ("\"60000\"", 60_000),
        ("59999.5", 60_000),
        ("6e4", 60_000),
        ("1e300", 365 * 24 * 3_600_000),
    ] {
        let told = lease(&format!("{{\"validity_ms\":{validity},\"expired\":false}}"));
        assert_eq!(told.lease_ms, Some(lease_ms), "{validity} is waited out in full");
    }
    assert!(lease("{\"expired\":true}").released());
    assert!(lease("{\"validity_ms\":60000,\"expired\":true}").released());
    let s3lects = "{\"leaderID\":\"a\",\"lastUpdated\":\"2026-11-21T06:58:12Z\",\"expired\":true}";
    assert!(lease(s3lects).released());
    let ours = lease::write(&lease_of("s", 3));
    let ours = String::from_utf8(ours).unwrap().replace('}', ",\"expired\":true}");
    let kept = lease(&ours);
    assert!(!kept.released(), "only its session says so, in its own words");
    assert_eq!((kept.term, kept.extra.get("expired")), (Some(5), None), "no less than its number");
    let minute = Some(60_000);
    for (body, flaw, lease_ms) in [
        (r#"{"validity_ms":999,"expired":false}"#, Flaw::Absurd, None),
        (r#"{"validity_ms":-7200000}"#, Flaw::Absurd, None),
        (r#"{"validity_ms":"an hour"}"#, Flaw::Absurd, None),
        (r#"{"validity_ms":7200000,"expired":1}"#, Flaw::Foreign, Some(3_600_000)),
        (r#"{"leaderID":7,"validity_ms":7200000}"#, Flaw::Foreign, Some(3_600_000)),
        (r#"{"expired":1}"#, Flaw::Foreign, None),
        (r#"{"expired":1,"validity_ms":60000}"#, Flaw::Foreign, minute),
        (r#"{"leaderID":7,"expired":false}"#, Flaw::Foreign, None),
        (r#"{"leaderID":7,"validity_ms":60000}"#, Flaw::Foreign, minute),
        (r#"{"session":"s","leaseMs":60000,"expired":false}"#, Flaw::Foreign, minute),
        (r#"{"leaderID":"a","lastUpdated":"x","validity_ms":60000}"#, Flaw::Foreign, minute),
        ("{}", Flaw::Foreign, None),
        ("nonsense", Flaw::NotJson, None),
    ] {
        let told = Remains { term: Some(5), lease_ms };
        assert_eq!(read(body), Reading::Unreadable(flaw, told), "{body}");
    }
    let last = Desk::live(9_999_999_999..=9_999_999_999);
    assert_eq!(last.reading(&epochs()), Reading::Closed(Closed::TermTooHigh));
}
