//! The conformance list and random histories on real stores, one test for each store; and what they answer to a wrong
//! set-up. `npm test -- --only stores` starts them all and sets the variables.

mod aws;
mod dynamodb;
pub mod real;

use std::cell::Cell;
use std::time::Duration;

use crate::conformance::{self, Traits, create, found, read, update};
use crate::histories::{self, Plan};
use aws::Aws;
use dynamodb::KEYS;
use edgelect::EpochStore;
use edgelect::lease::{Flaw, Format, Lease, Reading, Remains, Stamp};
use edgelect::request::Request;
use edgelect::store::epochs::Epochs;
use edgelect::store::{Answer, Fault, FaultKind, Operation, Outcome, Store, Version};
use futures::StreamExt;
use real::{Between, Bucket, native, random, variable};

/// Everything that a store must show, with so many histories in a long run. `at` gives the place of a key.
async fn conforms<S: Store>(traits: Traits, long: u64, at: impl Fn(&str) -> S) {
    let fresh = || at(&format!("conformance/{}.json", random()));
    let count = histories::how_many(long, std::env::var("EDGELECT_LONG").ok());
    let tally = histories::conforms(traits, Plan { count, at_once: 8 }, fresh).await;
    println!("{}: {tally:?}", fresh().describe());
}

impl Bucket {
    fn r2() -> Self {
        Self::named("R2_", variable("R2_BUCKET"), "auto")
    }

    async fn ministack() -> Self {
        let bucket = Self::named("AWS_", format!("conformance-{}", &random()[..8]), "us-east-1");
        let response = bucket.send("PUT", "").await;
        assert_eq!(response.status().as_u16(), 200, "ministack makes a bucket");
        bucket
    }

    async fn conforms(self, traits: Traits, histories: u64) {
        conforms(traits, histories, |key| self.at(key)).await;
    }

    async fn put(&self, key: &str, kind: &str, body: &str) {
        let response = self.send_as("PUT", &format!("/{key}"), kind, body).await;
        assert_eq!(response.status().as_u16(), 200, "{key}");
    }
}

#[tokio::test]
async fn c08_seaweedfs_conforms() {
    Bucket::seaweed().conforms(Traits::S3, 1_000).await;
}

#[tokio::test]
async fn seaweedfs_conforms_with_records_for_kubernetes_members() {
    let bucket = Bucket { format: Format::Kubernetes, ..Bucket::seaweed() };
    // Other bodies are foreign-looking there, whatever else is wrong with them.
    bucket.conforms(Traits { keeps_any_body: false, ..Traits::S3 }, 250).await;
}

/// A missing key is 404 to `If-Match` there, as at AWS.
#[tokio::test]
async fn ministack_s3_conforms() {
    Bucket::ministack().await.conforms(Traits::S3, 250).await;
}

#[tokio::test]
async fn wranglers_local_r2_conforms_by_its_s3_endpoint() {
    Bucket::r2().conforms(Traits::R2, 100).await;
}

/// Two processes that share one place: each operation goes to the other one.
struct Alternating<S> {
    stores: [S; 2],
    turn: Cell<usize>,
}

impl<S: Store> Store for Alternating<S> {
    async fn perform(&self, operation: Operation) -> Answer {
        let turn = self.turn.replace(1 - self.turn.get());
        self.stores[turn].perform(operation).await
    }

    fn condition_covers_version(&self) -> bool {
        self.stores.iter().all(Store::condition_covers_version)
    }

    fn describe(&self) -> String {
        self.stores.each_ref().map(Store::describe).join(" and ")
    }
}

#[tokio::test]
async fn the_sqlite_storage_of_the_examples_conforms_over_two_processes() {
    // Behind the S3 endpoint of `conformance/serve.mjs`, which checks no signature.
    let sqlite = Bucket { bucket: "sqlite".to_owned(), ..Bucket::seaweed() };
    let [first, second] = ["JS_ENDPOINT", "JS_SECOND_ENDPOINT"]
        .map(|name| Bucket { endpoint: variable(name), ..sqlite.clone() });
    let at =
        |key: &str| Alternating { stores: [first.at(key), second.at(key)], turn: Cell::new(0) };
    conforms(Traits::COUNTED, 250, at).await;
}

#[tokio::test]
async fn dynamodb_conforms() {
    let aws = Aws::new();
    let table = aws.new_table(&KEYS).await;
    conforms(Traits::LEASES, 250, |shard| aws.item(&table, shard)).await;
}

/// Route 53 itself may show old records; ministack's are as new as any store's, and are held to it.
#[tokio::test]
async fn route_53_conforms() {
    let aws = Aws::new();
    let zone = aws.new_zone().await;
    conforms(Traits::LEASES, 250, |key| aws.record(&zone, key)).await;
}

/// Claims of the next epoch. What its creator's renewals do is told by `tests/epochs.rs`.
async fn epochs_conform(bucket: Bucket, histories: u64) {
    let at = |key: &str| {
        let store = EpochStore::new(bucket.config(key), bucket.credentials.clone(), native());
        store.expect("a usable configuration")
    };
    conforms(Traits::EPOCHS, histories, at).await;
}

#[tokio::test]
async fn epochs_on_seaweedfs_conform_in_both_formats() {
    epochs_conform(Bucket::seaweed(), 250).await;
    epochs_conform(Bucket { format: Format::Kubernetes, ..Bucket::seaweed() }, 100).await;
}

#[tokio::test]
async fn epochs_on_ministack_conform() {
    epochs_conform(Bucket::ministack().await, 100).await;
}

/// An epoch stays for two leases and two seconds, by whole seconds of the store; here a lease lasts one.
const RESTED: Duration = Duration::from_secs(6);

/// With a key of a space and an ampersand, and two keys to a page.
#[tokio::test]
async fn a_real_bucket_keeps_epochs_over_pages_cleans_them_and_believes_no_recreated_one() {
    let (bucket, folder) = (Bucket::seaweed(), format!("native epochs/{}&", random()));
    let place = || {
        let epochs = Epochs::new(bucket.config(&folder)).expect("a good folder");
        EpochStore::of(epochs.keys_per_page(2), bucket.credentials.clone(), native())
    };
    let (one, other) = (place(), place());
    // One session, which renews in place what it has claimed; each term is a claim.
    let epoch = |term, last_updated| Lease {
        term: Some(term),
        last_updated,
        lease_ms: Some(1_000),
        ..conformance::record("a", 1)
    };
    let held = |term| epoch(term, Stamp::At(1_795_000_000_000));
    assert_eq!(read(&one).await, Outcome::Missing);
    let first = create(&one, held(1)).await.expect("nothing is in the way");
    let mut version = first.clone();
    for term in 2..=6 {
        version = update(&one, held(term), &version).await.expect("the version is current");
    }
    let (newest, lease) = found(&other).await;
    assert!(newest.0.starts_with("lock_0000000006.json ") && lease.term == Some(6), "{newest:?}");
    tokio::time::sleep(RESTED).await;
    for _ in 0..6 {
        version = update(&one, held(6), &version).await.expect("the version is current");
    }
    // The first four are gone. Who comes late creates one anew, and is nobody.
    assert_eq!(update(&other, held(9), &first).await, None);
    update(&one, epoch(6, Stamp::Released), &version).await.expect("the version is current");
    assert!(found(&other).await.1.released());
    let encoded = folder.replace(' ', "%20").replace('&', "%26");
    let live = r#"{"validity_ms":60000,"expired":false}"#;
    bucket.put(&format!("{encoded}/lock-0000000007.json"), "", live).await;
    let (newest, lease) = found(&one).await;
    assert!(newest.0.starts_with("lock-0000000007.json "), "{newest:?}");
    assert_eq!(lease.lease_ms, Some(60_000));
    let gone = format!("/{encoded}/lock_0000000003.json");
    assert_eq!(bucket.send("GET", &gone).await.status().as_u16(), 404);
}

/// What a read, a create and an update end with where something is set up wrongly.
async fn faults_of(wrong: &impl Store, version: &Version) -> Vec<Fault> {
    let mut faults = Vec::new();
    let write = |version| conformance::written(conformance::record("b", 1), version);
    for operation in [Operation::Read { unless: None }, write(None), write(Some(version.clone()))] {
        let read = matches!(operation, Operation::Read { .. });
        match wrong.perform(operation).await.outcome {
            Outcome::Rejected(fault) => faults.push(fault),
            Outcome::Unknown { cause, .. } if !read => faults.push(cause),
            // Whoever takes every write proves nothing: it is read back.
            Outcome::Written { version: None } if !read => {}
            other => panic!("neither rejected nor unknown: {other:?}"),
        }
    }
    faults
}

/// The same beside a record at the right place, which must be the same afterwards.
async fn refused(wrong: &Bucket, right: &Bucket) -> Vec<Fault> {
    let key = format!("conformance/{}.json", random());
    let place = right.at(&key);
    let version = create(&place, conformance::record("a", 1)).await.expect("nothing is in the way");
    let before = read(&place).await;
    let faults = faults_of(&wrong.at(&key), &version).await;
    assert_eq!(before, read(&place).await, "the record was changed");
    for fault in &faults {
        let secrets = [&wrong.credentials, &right.credentials].map(|one| &one.secret_access_key);
        assert!(!secrets.iter().any(|secret| fault.message.contains(*secret)), "{}", fault.message);
        assert!(fault.message.contains(&format!("S3 bucket \"{}\"", wrong.bucket)));
    }
    faults
}

#[track_caller]
fn assert_all_name(faults: &[Fault], status: u16, code: &str) {
    for fault in faults {
        assert_eq!((fault.status, fault.code.as_deref()), (Some(status), Some(code)), "{fault}");
        assert!(fault.message.contains(&format!("{status} {code}")), "{fault}");
    }
}

#[tokio::test]
async fn a_wrong_bucket_secret_or_region_is_told_by_the_stores_own_code_and_nothing_is_overwritten()
{
    let bucket =
        |right: &Bucket| Bucket { bucket: "there-is-no-such-bucket".to_owned(), ..right.clone() };
    let aws = Bucket::ministack().await;
    for right in [aws.clone(), Bucket::r2()] {
        assert_all_name(&refused(&bucket(&right), &right).await, 404, "NoSuchBucket");
    }
    // A write would make the bucket there.
    let read = read(&bucket(&Bucket::seaweed()).at("leader.json")).await;
    let Outcome::Rejected(fault) = read else { panic!("{read:?}") };
    assert_all_name(&[fault], 404, "NoSuchBucket");
    for right in [Bucket::seaweed(), Bucket::r2()] {
        let mut wrong = right.clone();
        wrong.credentials.secret_access_key = "not-the-secret".to_owned();
        assert_all_name(&refused(&wrong, &right).await, 403, "SignatureDoesNotMatch");
    }
    // SeaweedFS and Wrangler's R2 take any region.
    let faults = refused(&Bucket { region: "xx-nowhere-9", ..aws.clone() }, &aws).await;
    assert_all_name(&faults, 301, "PermanentRedirect");
    assert!(faults.iter().all(|fault| fault.message.contains("set endpoint and region")));
}

/// SeaweedFS keeps folders, so a key that leads through a record, or is a folder of records, may be one that cannot be.
#[tokio::test]
async fn a_key_below_a_record_and_one_above_it_overwrite_nothing() {
    for bucket in [Bucket::seaweed(), Bucket::ministack().await, Bucket::r2()] {
        let folder = random();
        let key = format!("{folder}/record");
        create(&bucket.at(&key), conformance::record("a", 1)).await.expect("nothing is in the way");
        let before = read(&bucket.at(&key)).await;
        assert!(matches!(before, Outcome::Found { .. }), "{before:?}");
        for other in [format!("{key}/below"), folder] {
            let write = conformance::written(conformance::record("b", 1), None);
            let created = bucket.at(&other).perform(write).await.outcome;
            let landed = matches!(created, Outcome::Written { .. });
            let shown = read(&bucket.at(&other)).await;
            assert_eq!(landed, matches!(shown, Outcome::Found { .. }), "{created:?} {shown:?}");
        }
        assert_eq!(read(&bucket.at(&key)).await, before);
    }
}

/// The store itself says that this is the object, by `x-amz-request-id`. R2's endpoint does not, and waits for a hand.
#[tokio::test]
async fn a_page_and_an_error_document_that_somebody_put_at_the_key_can_be_healed() {
    for bucket in [Bucket::seaweed(), Bucket::ministack().await] {
        for (kind, body) in [
            ("text/html", "<html>It works!</html>"),
            ("application/xml", "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code></Error>"),
        ] {
            let key = format!("conformance/{}.json", random());
            bucket.put(&key, kind, body).await;
            let store = bucket.at(&key);
            let read = read(&store).await;
            let Outcome::Found { version, reading } = read else { panic!("{read:?}") };
            assert_eq!(reading, Reading::Unreadable(Flaw::NotJson, Remains::NONE));
            let healed = update(&store, conformance::record("a", 1), &version).await;
            assert!(healed.is_some(), "{kind}");
        }
    }
}

#[tokio::test]
async fn c26_a_real_listing_of_more_than_a_page_is_read_to_its_end_and_one_of_too_many_is_an_error()
{
    const KEYS: u64 = 1_100;
    for bucket in [Bucket::seaweed(), Bucket::ministack().await] {
        let folder = format!("conformance/{}", random());
        let body = String::from_utf8(conformance::body("a", 1)).expect("JSON");
        let put = async |number: u64| {
            let key = format!("{folder}/lock_{number:010}.json");
            bucket.put(&key, "application/json", &body).await;
        };
        let put = futures::stream::iter(1..=KEYS).map(put).buffer_unordered(16);
        put.collect::<()>().await;
        let count = Cell::new(0);
        let host = Between(native(), |_: &mut Request| count.set(count.get() + 1));
        let asked = || count.replace(0);
        let protocol = || Epochs::new(bucket.config(&folder)).expect("a usable configuration");
        let at = |protocol| EpochStore::of(protocol, bucket.credentials.clone(), host.clone());
        let (version, _) = found(&at(protocol())).await;
        assert!(version.0.starts_with(&format!("lock_{KEYS:010}.json ")), "{version:?}");
        assert_eq!(asked(), 3, "two pages and the newest");
        // More than sixteen pages: nothing is read of it, nothing written, and no request more is sent.
        let refused = read(&at(protocol().keys_per_page(50))).await;
        let Outcome::Rejected(fault) = refused else { panic!("{refused:?}") };
        assert_eq!((fault.kind, asked()), (FaultKind::Misconfigured, 16));
        assert!(fault.message.contains("more than 16 pages"), "{fault}");
        tokio::time::sleep(RESTED).await;
        let next = Lease { lease_ms: Some(1_000), ..conformance::record("b", 1) };
        let claimed = update(&at(protocol()), next, &version).await;
        assert!(claimed.is_some(), "the newest is succeeded");
        assert_eq!(asked(), 4, "the next number, two pages, the oldest deleted");
        let oldest = bucket.send("GET", &format!("/{folder}/lock_0000000001.json")).await;
        assert_eq!(oldest.status().as_u16(), 404);
    }
}
