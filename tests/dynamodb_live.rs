//! The DynamoDB store over real sockets, beside ministack, on the host of `examples/native`; and the three calls of
//! shardcoordinator in the service's own words. `EDGELECT_TEST_AWS_*` name the service.

#[path = "../examples/native/host.rs"]
mod host;

use std::cell::RefCell;

use edgelect::election::{Event, Input};
use edgelect::lease::{self, Flaw, Lease, Reading, Remains, Stamp};
use edgelect::request::Request;
use edgelect::sigv4::{self, Coverage, KeyCache};
use edgelect::store::{Condition, FaultKind, Operation, Outcome, Store, Version};
use edgelect::{
    Config, Credentials, DynamoDbConfig, DynamoDbStore, Handle, Host, Settings, init, new_election,
    run,
};
use futures::future::join_all;
use host::Native;
use serde_json::{Value, json};

const TABLE: &str = "edgelect-locks";

fn variable(name: &str) -> String {
    let name = format!("EDGELECT_TEST_AWS_{name}");
    std::env::var(&name)
        .unwrap_or_else(|_| panic!("{name} names the service; run this beside ministack"))
}

fn credentials() -> Credentials {
    Credentials {
        access_key_id: variable("ACCESS_KEY_ID"),
        secret_access_key: variable("SECRET_ACCESS_KEY"),
        session_token: None,
    }
}

fn native() -> Native {
    Native::new().expect("the client can be set up")
}

fn item_of(table: &str, shard_id: &str) -> DynamoDbStore<Native> {
    item_in(None, table, shard_id)
}

fn item_in(region: Option<&str>, table: &str, shard_id: &str) -> DynamoDbStore<Native> {
    let config = DynamoDbConfig {
        endpoint: Some(variable("ENDPOINT")),
        region: region.map(str::to_owned),
        table: table.to_owned(),
        shard_id: shard_id.to_owned(),
        lease_ms: 15_000,
    };
    DynamoDbStore::new(config, credentials(), native()).expect("a fine configuration")
}

/// A shard of its own in the table, which is there from now on.
async fn fresh() -> (DynamoDbStore<Native>, String) {
    create_table().await;
    let random = native().random().expect("the system has randomness");
    let id = format!("{:032x}", u128::from_le_bytes(random));
    (item_of(TABLE, &id), id)
}

/// One call of the service itself.
async fn call(verb: &str, asked: Value) -> (u16, Value) {
    let host = native();
    let mut request = Request::new("POST", format!("{}/", variable("ENDPOINT")));
    request.set("content-type", "application/x-amz-json-1.0".to_owned());
    request.set("x-amz-target", format!("DynamoDB_20120810.{verb}"));
    request.body = asked.to_string().into_bytes();
    let coverage = Coverage { content_sha256: false, covers: |name| name.starts_with("x-amz-") };
    let (wall_ms, mut keys) = (host.now().wall_ms, KeyCache::default());
    sigv4::sign_covering(
        &mut request,
        &credentials(),
        "us-east-1",
        "dynamodb",
        wall_ms,
        &mut keys,
        &coverage,
    )
    .expect("it can be signed");
    let response = host.fetch(request, 1 << 20).await.expect("ministack answers");
    (response.status, serde_json::from_slice(&response.body.bytes).expect("JSON"))
}

/// The two commands of `docs/dynamodb.md`, as calls.
async fn create_table() {
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let (status, answer) = call(
        "CreateTable",
        json!({
            "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [attribute("pk"), attribute("sk")],
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        }),
    )
    .await;
    let there =
        answer["__type"].as_str().is_some_and(|kind| kind.ends_with("ResourceInUseException"));
    assert!(status == 200 || there, "{answer}");
    let ttl = json!({ "Enabled": true, "AttributeName": "ttl" });
    call("UpdateTimeToLive", json!({ "TableName": TABLE, "TimeToLiveSpecification": ttl })).await;
}

fn key(id: &str) -> Value {
    json!({ "pk": { "S": format!("SHARD#{id}") }, "sk": { "S": "LOCK" } })
}

/// `TryAcquire` of the document; true if it acquired.
async fn try_acquire(id: &str, owner: &str, ttl_s: u64, now_s: u64) -> bool {
    let mut item = key(id);
    item["ownerId"] = json!({ "S": owner });
    item["ttl"] = json!({ "N": ttl_s.to_string() });
    let asked = json!({
        "TableName": TABLE, "Item": item,
        "ConditionExpression": "attribute_not_exists(pk) OR (attribute_exists(pk) AND #t < :now)",
        "ExpressionAttributeNames": { "#t": "ttl" },
        "ExpressionAttributeValues": { ":now": { "N": now_s.to_string() } },
    });
    took_effect(call("PutItem", asked).await)
}

/// `Renew` of the document.
async fn renew(id: &str, owner: &str, ttl_s: u64, now_s: u64) -> bool {
    let asked = json!({
        "TableName": TABLE, "Key": key(id), "UpdateExpression": "SET #t = :ttl",
        "ConditionExpression": "ownerId = :me AND #t >= :now",
        "ExpressionAttributeNames": { "#t": "ttl" },
        "ExpressionAttributeValues": { ":now": { "N": now_s.to_string() }, ":ttl": { "N": ttl_s.to_string() },
                                       ":me": { "S": owner } },
    });
    took_effect(call("UpdateItem", asked).await)
}

/// `Release` of the document.
async fn release(id: &str, owner: &str) -> bool {
    let asked = json!({
        "TableName": TABLE, "Key": key(id), "ConditionExpression": "ownerId = :me",
        "ExpressionAttributeValues": { ":me": { "S": owner } },
    });
    took_effect(call("DeleteItem", asked).await)
}

fn took_effect((status, answer): (u16, Value)) -> bool {
    let failed = answer["__type"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("ConditionalCheckFailedException"));
    assert!(status == 200 || failed, "{answer}");
    status == 200
}

fn now_s() -> u64 {
    native().now().wall_ms / 1_000
}

fn body(leader_id: &str, sequence: u64, released: bool) -> Vec<u8> {
    let text = format!(
        r#"{{"leaderID":"{leader_id}","session":"s","term":7,"leaseMs":15000,"theirs":{{"ä":[1]}}}}"#
    );
    let Reading::Lease(mut lease) = lease::read(text.as_bytes()) else { panic!("{text}") };
    lease.sequence = sequence;
    let now_ms = i64::try_from(native().now().wall_ms).expect("not for long");
    lease.last_updated = if released { Stamp::Released } else { Stamp::At(now_ms) };
    lease::write(&lease)
}

async fn read(store: &impl Store) -> Outcome {
    store.perform(Operation::Read { unless: None }).await.outcome
}

async fn found(store: &impl Store) -> (Version, Lease) {
    match read(store).await {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, *lease),
        other => panic!("no lease: {other:?}"),
    }
}

/// The new version, or `None` if the store refused.
async fn write(store: &impl Store, body: Vec<u8>, condition: Condition) -> Option<Version> {
    match store.perform(Operation::Write { body, condition }).await.outcome {
        Outcome::Written { version } => Some(version.expect("the answer names the new version")),
        Outcome::Refused => None,
        other => panic!("neither written nor refused: {other:?}"),
    }
}

#[tokio::test]
async fn absent_create_lose_update_and_stale_are_what_they_are_on_s3() {
    let (store, _) = fresh().await;
    assert_eq!(read(&store).await, Outcome::Missing);
    let first =
        write(&store, body("a", 1, false), Condition::Absent).await.expect("nothing is in the way");
    assert_eq!(write(&store, body("b", 1, false), Condition::Absent).await, None);
    let (version, lease) = found(&store).await;
    assert_eq!((&version, lease.leader_id.as_str(), lease.sequence), (&first, "a", 1));
    assert_eq!(lease.extra.get("theirs"), Some(r#"{"ä":[1]}"#), "unknown fields come back");
    let unless = Operation::Read { unless: Some(first.clone()) };
    assert_eq!(store.perform(unless.clone()).await.outcome, Outcome::Unchanged);
    let second = Condition::Match(first.clone());
    let second = write(&store, body("a", 2, false), second).await.expect("the version is current");
    assert_ne!(first, second);
    assert_eq!(write(&store, body("a", 3, false), Condition::Match(first)).await, None, "stale");
    assert_eq!(found(&store).await.0, second);
    assert!(matches!(store.perform(unless).await.outcome, Outcome::Found { .. }));
    let answer = store.perform(Operation::Read { unless: None }).await;
    let date_ms = answer.facts.date_ms.expect("the service tells its time");
    assert!(
        date_ms.abs_diff(native().now().wall_ms) < 60_000
            && answer.facts.last_modified_ms.is_none()
    );
    let (absent, _) = fresh().await;
    assert_eq!(write(&absent, body("a", 1, false), Condition::Match(second)).await, None);
    let other = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    assert_eq!(write(&absent, body("a", 1, false), Condition::Match(other)).await, None);
    assert_eq!(read(&absent).await, Outcome::Missing);
}

#[tokio::test]
async fn ten_creates_have_one_winner_and_ten_updates_of_one_version_too() {
    let (store, id) = fresh().await;
    let racers: Vec<_> = (0..10).map(|_| item_of(TABLE, &id)).collect();
    let race = |sequence: u64, condition: Condition| {
        let racers = &racers;
        async move {
            let writes = racers.iter().enumerate().map(|(number, racer)| {
                write(racer, body(&number.to_string(), sequence, false), condition.clone())
            });
            let won: Vec<_> = join_all(writes)
                .await
                .into_iter()
                .enumerate()
                .filter(|(_, won)| won.is_some())
                .collect();
            assert_eq!(won.len(), 1, "{won:?}");
            won[0].0.to_string()
        }
    };
    let winner = race(1, Condition::Absent).await;
    for sequence in 2..12 {
        let (version, lease) = found(&store).await;
        assert_eq!(
            lease.leader_id,
            if sequence == 2 { winner.clone() } else { lease.leader_id.clone() }
        );
        race(sequence, Condition::Match(version)).await;
    }
    assert_eq!(found(&store).await.1.sequence, 11);
}

#[tokio::test]
async fn a_missing_table_names_the_services_own_code() {
    let store = item_of("no-such-table", "jobs");
    let create = Operation::Write { body: body("a", 1, false), condition: Condition::Absent };
    for operation in [Operation::Read { unless: None }, create] {
        match store.perform(operation).await.outcome {
            Outcome::Rejected(fault) => {
                assert_eq!(fault.kind, FaultKind::Misconfigured);
                assert_eq!(fault.code.as_deref(), Some("ResourceNotFoundException"));
                assert!(fault.message.contains("\"no-such-table\""), "{}", fault.message);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Where no endpoint is given the host follows from the region, so that a wrong one has no such table, as here.
#[tokio::test]
async fn a_wrong_region_names_the_services_own_code_and_overwrites_nothing() {
    let (right, id) = fresh().await;
    write(&right, body("a", 1, false), Condition::Absent).await.expect("nothing is in the way");
    let before = read(&right).await;
    let Outcome::Found { version, .. } = &before else { panic!("{before:?}") };
    let wrong = item_in(Some("xx-nowhere-9"), TABLE, &id);
    let write = |condition| Operation::Write { body: body("b", 1, false), condition };
    for operation in [
        Operation::Read { unless: None },
        write(Condition::Absent),
        write(Condition::Match(version.clone())),
    ] {
        match wrong.perform(operation).await.outcome {
            Outcome::Rejected(fault) => {
                assert_eq!(
                    (fault.kind, fault.status, fault.code.as_deref()),
                    (FaultKind::Misconfigured, Some(400), Some("ResourceNotFoundException"))
                );
                let said = "was answered 400 ResourceNotFoundException: there is no such table here; create it, or \
                            correct its name, the region or the endpoint";
                assert!(fault.message.contains(said), "{fault}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(read(&right).await, before);
}

#[tokio::test]
async fn a_table_with_other_keys_is_refused_as_one() {
    let attributes = json!([{ "AttributeName": "id", "AttributeType": "S" }]);
    let keys = json!([{ "AttributeName": "id", "KeyType": "HASH" }]);
    let asked = json!({ "TableName": "edgelect-other", "BillingMode": "PAY_PER_REQUEST",
                        "AttributeDefinitions": attributes, "KeySchema": keys });
    let (status, answer) = call("CreateTable", asked).await;
    assert_eq!(status, 200, "{answer}");
    match read(&item_of("edgelect-other", "jobs")).await {
        Outcome::Rejected(fault) => {
            assert_eq!(
                (fault.kind, fault.code.as_deref()),
                (FaultKind::Misconfigured, Some("ValidationException"))
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_three_calls_of_shardcoordinator_meet_our_item_as_its_document_says() {
    let (store, id) = fresh().await;
    let now_s = now_s();
    write(&store, body("server-1", 1, false), Condition::Absent)
        .await
        .expect("nothing is in the way");
    assert!(!try_acquire(&id, "worker-1", now_s + 15, now_s).await, "a living lease");
    assert!(!renew(&id, "worker-1", now_s + 15, now_s).await && !release(&id, "worker-1").await);
    let (held, _) = found(&store).await;
    let tombstone = write(&store, body("server-1", 2, true), Condition::Match(held.clone())).await;
    assert!(tombstone.is_some());
    assert!(!renew(&id, "server-1", now_s + 15, now_s).await, "nobody renews a tombstone");
    assert!(try_acquire(&id, "worker-1", now_s + 40, now_s).await, "at once");
    let (foreign, lease) = found(&store).await;
    assert_eq!((lease.leader_id.as_str(), lease.session, lease.term), ("worker-1", None, None));
    assert!(
        lease.lease_ms.is_some_and(|ms| (35_000..50_000).contains(&ms)),
        "{:?}",
        lease.lease_ms
    );
    assert_eq!(write(&store, body("server-1", 3, false), Condition::Match(held)).await, None);
    assert!(renew(&id, "worker-1", now_s + 41, now_s).await);
    assert_eq!(write(&store, body("server-1", 3, false), Condition::Match(foreign)).await, None);
    let (renewed, _) = found(&store).await;
    assert!(write(&store, body("server-1", 4, false), Condition::Match(renewed)).await.is_some());
    assert!(!renew(&id, "worker-1", now_s + 42, now_s).await, "it was taken over");
    assert!(renew(&id, "server-1", now_s + 99, now_s).await, "a process of the same name");
    let (_, lease) = found(&store).await;
    assert_eq!(
        (lease.session, lease.term),
        (None, Some(7)),
        "no longer ours, and its token is kept"
    );
    assert!(release(&id, "server-1").await);
    assert_eq!(read(&store).await, Outcome::Missing);
}

#[tokio::test]
async fn items_of_other_shapes_are_unreadable_and_can_be_replaced_as_they_were_read() {
    let odd = [
        json!({}),
        json!({ "ttl": { "S": "soon" }, "ownerId": { "M": { "a": { "L": [{ "N": "1" }] } } } }),
        json!({ "ttl": { "N": "5" }, "ownerId": { "S": "a" }, "note": { "S": "x".repeat(390_000) } }),
        json!({ "ttl": { "N": "5" }, "ownerId": { "S": "a" }, "lease": { "S": "x".repeat(390_000) } }),
    ];
    for attributes in odd {
        let (store, id) = fresh().await;
        let mut item = key(&id);
        for (name, value) in attributes.as_object().expect("an object") {
            item[name] = value.clone();
        }
        let (status, answer) = call("PutItem", json!({ "TableName": TABLE, "Item": item })).await;
        assert_eq!(status, 200, "{answer}");
        let version = match read(&store).await {
            Outcome::Found {
                version,
                reading: Reading::Unreadable(Flaw::Foreign | Flaw::TooLarge, Remains::NONE),
            } => version,
            // What is not asked for does no harm.
            Outcome::Found { version, reading: Reading::Lease(lease) }
                if attributes.get("note").is_some() =>
            {
                assert_eq!(lease.leader_id, "a");
                version
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(write(&store, body("b", 1, false), Condition::Absent).await, None);
        assert!(
            write(&store, body("b", 1, false), Condition::Match(version.clone())).await.is_some()
        );
        assert_eq!(write(&store, body("c", 1, false), Condition::Match(version)).await, None);
    }
}

#[tokio::test]
async fn an_elector_leads_after_init_and_leaves_a_tombstone_of_ttl_0() {
    let (store, id) = fresh().await;
    let settings = Settings { lockfile_path: Some(id.clone()), ..Settings::default() };
    let (host, config) = (native(), Config::new(&settings).expect("the defaults are fine"));
    init(&store, &host, &config).await.expect("a new group");
    let handle = Handle::new(new_election(&host, config).expect("randomness"));
    let told = RefCell::new(Vec::new());
    let running = run(&handle, &store, &host, |event| {
        match &event {
            Event::Acquired { .. } => handle.tell(Input::Stop { park: false }),
            Event::Lost { term, .. } => handle.tell(Input::WorkEnded { term: *term }),
            _ => {}
        }
        told.borrow_mut().push(event);
    });
    tokio::time::timeout(std::time::Duration::from_secs(60), running)
        .await
        .expect("it ends by itself");
    let told = told.into_inner();
    assert!(matches!(told.first(), Some(Event::Acquired { .. })), "{told:?}");
    assert_eq!(told.last(), Some(&Event::GivenUp));
    let (_, item) = call("GetItem", json!({ "TableName": TABLE, "Key": key(&id) })).await;
    assert_eq!(item["Item"]["ttl"], json!({ "N": "0" }));
    assert!(found(&store).await.1.released());
}
