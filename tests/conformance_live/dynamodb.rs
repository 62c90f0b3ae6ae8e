//! DynamoDB beside the list: items that other hands wrote, and the three calls of shardcoordinator in the service's own words.

use edgelect::lease::{Flaw, Lease, Reading, Remains, Stamp};
use edgelect::store::{FaultKind, Outcome, Version};
use edgelect::{DynamoDbConfig, DynamoDbStore, Host};
use serde_json::{Value, json};

use crate::conformance::{create, found, read, record, update};
use crate::conformance_live::aws::Aws;
use crate::conformance_live::real::{Native, native, random};

/// The key of an item of ours.
pub const KEYS: [&str; 2] = ["pk", "sk"];

/// A shard of its own in a table of its own.
struct Shard {
    aws: Aws,
    table: String,
    id: String,
}

impl Shard {
    async fn new() -> Self {
        let aws = Aws::new();
        Self { table: aws.new_table(&KEYS).await, id: random(), aws }
    }

    fn store(&self) -> DynamoDbStore<Native> {
        self.aws.item(&self.table, &self.id)
    }

    /// One call of the service itself for the key of the shard.
    async fn call(&self, verb: &str, mut asked: Value) -> (u16, Value) {
        let key = json!({ "pk": { "S": format!("SHARD#{}", self.id) }, "sk": { "S": "LOCK" } });
        asked["TableName"] = json!(self.table);
        match asked.get_mut("Item") {
            Some(item) => (item["pk"], item["sk"]) = (key["pk"].clone(), key["sk"].clone()),
            None => asked["Key"] = key,
        }
        self.aws.dynamodb(verb, &asked).await
    }

    async fn took_effect(&self, verb: &str, more: Value) -> bool {
        let (status, answer) = self.call(verb, more).await;
        let code = answer["__type"].as_str().unwrap_or_default();
        let failed = code.ends_with("ConditionalCheckFailedException");
        assert!(status == 200 || failed, "{answer}");
        status == 200
    }

    /// `TryAcquire` of the document; true if it acquired.
    async fn try_acquire(&self, owner: &str, ttl_s: u64, now_s: u64) -> bool {
        let condition = "attribute_not_exists(pk) OR (attribute_exists(pk) AND #t < :now)";
        let asked = json!({
            "Item": { "ownerId": { "S": owner }, "ttl": { "N": ttl_s.to_string() } },
            "ConditionExpression": condition, "ExpressionAttributeNames": { "#t": "ttl" },
            "ExpressionAttributeValues": { ":now": { "N": now_s.to_string() } },
        });
        self.took_effect("PutItem", asked).await
    }

    async fn renew(&self, owner: &str, ttl_s: u64, now_s: u64) -> bool {
        let asked = json!({
            "UpdateExpression": "SET #t = :ttl", "ExpressionAttributeNames": { "#t": "ttl" },
            "ConditionExpression": "ownerId = :me AND #t >= :now",
            "ExpressionAttributeValues": { ":now": { "N": now_s.to_string() },
                ":ttl": { "N": ttl_s.to_string() }, ":me": { "S": owner } },
        });
        self.took_effect("UpdateItem", asked).await
    }

    async fn release(&self, owner: &str) -> bool {
        let asked = json!({ "ConditionExpression": "ownerId = :me",
                            "ExpressionAttributeValues": { ":me": { "S": owner } } });
        self.took_effect("DeleteItem", asked).await
    }
}

/// Where no endpoint is given the host follows from the region, so that a wrong one has no such table, as here.
#[tokio::test]
async fn a_wrong_table_region_or_key_is_told_by_the_services_own_code_and_overwrites_nothing() {
    let right = Shard::new().await;
    let version = create(&right.store(), record("a", 1)).await.expect("nothing is in the way");
    let before = read(&right.store()).await;
    let other_keys = &right.aws.new_table(&["id"]).await;
    let missing = "was answered 400 ResourceNotFoundException: there is no such table here; create it, or \
                   correct its name, the region or the endpoint";
    for (name, table, region, code, said) in [
        ("no table", "no-such-table", None, "ResourceNotFoundException", missing),
        ("a region", &*right.table, Some("xx-nowhere-9"), "ResourceNotFoundException", missing),
        ("other keys", other_keys, None, "ValidationException", "keys must be pk and sk"),
    ] {
        let (endpoint, shard_id) = (Some(right.aws.endpoint.clone()), right.id.clone());
        let (region, table) = (region.map(str::to_owned), table.to_owned());
        let config = DynamoDbConfig { endpoint, region, table, shard_id, lease_ms: 15_000 };
        let wrong = DynamoDbStore::new(config.clone(), right.aws.credentials.clone(), native());
        let faults = super::faults_of(&wrong.expect("a fine configuration"), &version).await;
        assert_eq!(faults.len(), 3, "{name}");
        for fault in faults {
            assert_eq!((fault.kind, fault.status), (FaultKind::Misconfigured, Some(400)), "{name}");
            assert_eq!(fault.code.as_deref(), Some(code), "{name}");
            let names = [said, &config.table].map(|name| fault.message.contains(name));
            assert_eq!(names, [true, true], "{fault}");
        }
    }
    assert_eq!(read(&right.store()).await, before);
}

#[tokio::test]
async fn the_three_calls_of_shardcoordinator_meet_our_item_as_its_document_says() {
    let shard = Shard::new().await;
    let store = shard.store();
    let now_s = native().now().wall_ms / 1_000;
    // The item's `ttl` is a second after the lease, so what is written has to be of now.
    let now_ms = i64::try_from(native().now().wall_ms).expect("not for long");
    let at = |sequence: u64, last_updated: Stamp| Lease {
        last_updated,
        term: Some(7),
        ..record("server-1", sequence)
    };
    let of_s3 = Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned());
    assert_eq!(update(&store, record("a", 1), &of_s3).await, None, "no version of an item");
    let held = create(&store, at(1, Stamp::At(now_ms))).await.expect("nothing is in the way");
    assert!(!shard.try_acquire("worker-1", now_s + 15, now_s).await, "a living lease");
    assert!(!shard.renew("worker-1", now_s + 15, now_s).await);
    assert!(!shard.release("worker-1").await);
    assert!(update(&store, at(2, Stamp::Released), &held).await.is_some());
    let (_, item) = shard.call("GetItem", json!({})).await;
    assert_eq!(item["Item"]["ttl"], json!({ "N": "0" }), "a tombstone");
    assert!(!shard.renew("server-1", now_s + 15, now_s).await, "nobody renews a tombstone");
    assert!(shard.try_acquire("worker-1", now_s + 40, now_s).await, "at once");
    let (foreign, lease) = found(&store).await;
    assert_eq!((lease.leader_id.as_str(), lease.session, lease.term), ("worker-1", None, None));
    let lease_ms = lease.lease_ms.expect("it has a ttl");
    assert!((35_000..50_000).contains(&lease_ms), "{lease_ms}");
    assert_eq!(update(&store, at(3, Stamp::At(now_ms)), &held).await, None);
    assert!(shard.renew("worker-1", now_s + 41, now_s).await);
    assert_eq!(update(&store, at(3, Stamp::At(now_ms)), &foreign).await, None);
    let (renewed, _) = found(&store).await;
    assert!(update(&store, at(4, Stamp::At(now_ms)), &renewed).await.is_some());
    assert!(!shard.renew("worker-1", now_s + 42, now_s).await, "it was taken over");
    assert!(shard.renew("server-1", now_s + 99, now_s).await, "a process of the same name");
    let (_, lease) = found(&store).await;
    assert_eq!((lease.session, lease.term), (None, Some(7)), "its token is kept");
    assert!(shard.release("server-1").await);
    assert_eq!(read(&store).await, Outcome::Missing);
}

#[tokio::test]
async fn items_of_other_shapes_are_unreadable_and_can_be_replaced_as_they_were_read() {
    let large = "x".repeat(390_000);
    for item in [
        json!({}),
        json!({ "ttl": { "S": "soon" }, "ownerId": { "M": { "a": { "L": [{ "N": "1" }] } } } }),
        json!({ "ttl": { "N": "5" }, "ownerId": { "S": "a" }, "note": { "S": large } }),
        json!({ "ttl": { "N": "5" }, "ownerId": { "S": "a" }, "lease": { "S": large } }),
    ] {
        let shard = Shard::new().await;
        let store = shard.store();
        let (status, answer) = shard.call("PutItem", json!({ "Item": item })).await;
        assert_eq!(status, 200, "{answer}");
        let Outcome::Found { version, reading } = read(&store).await else { panic!("it is there") };
        match reading {
            Reading::Unreadable(Flaw::Foreign | Flaw::TooLarge, Remains::NONE) => {}
            // What is not asked for does no harm.
            Reading::Lease(lease) if item.get("note").is_some() => assert_eq!(lease.leader_id, "a"),
            other => panic!("{other:?}"),
        }
        assert_eq!(create(&store, record("b", 1)).await, None);
        assert!(update(&store, record("b", 1), &version).await.is_some());
        assert_eq!(update(&store, record("c", 1), &version).await, None);
    }
}
