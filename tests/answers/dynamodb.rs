//! What each answer of DynamoDB means.

use edgelect::calendar;
use edgelect::lease::{self, Closed, Flaw, Lease, MAX_RECORD_BYTES, Reading, Remains, Stamp};
use edgelect::look::look;
use edgelect::protocol::Protocol;
use edgelect::request::{Request, Response};
use edgelect::store::dynamodb::{DynamoDb, DynamoDbConfig};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};
use edgelect::{Config, Settings};
use futures::executor::block_on;
use serde_json::{Value, json};
use worlds::sim::chance::Chance;
use worlds::sim::port::http_date;
use worlds::virtual_time::{Machine, Through};

use crate::answers::told::Means::{Missing, Refused, Rejected, Unknown, Unsure};
use crate::answers::told::{
    DATE, NOW_MS, Talk, all_say, credentials, cut, fault, found_in, header, lease_in, mean, read,
    read_unless, refreshes, sent, told, told_at, url, with, write, write_lease, written,
};

const NOW_S: u64 = NOW_MS / 1_000;
const JSON: &str = "application/x-amz-json-1.0";

fn config() -> DynamoDbConfig {
    DynamoDbConfig {
        endpoint: None,
        region: Some("eu-west-1".to_owned()),
        table: "locks".to_owned(),
        shard_id: "batch-processor".to_owned(),
        lease_ms: 15_000,
    }
}

fn store() -> DynamoDb {
    DynamoDb::new(config()).expect("a fine configuration")
}

fn record(change: impl FnOnce(&mut Lease)) -> Vec<u8> {
    let text = r#"{"leaderID":"server 1/ä","lastUpdated":"2025-11-21T10:00:00.001Z","term":7,"session":"s",
                   "sequence":3,"leaseMs":15000,"acquired":"2025-11-21T09:00:00Z","theirs":[1]}"#;
    let mut lease = lease_in(lease::read(text.as_bytes()));
    change(&mut lease);
    lease::write(&lease)
}

fn create() -> Operation {
    write_lease(record(|_| {}), Condition::Absent)
}

fn update(version: Version) -> Operation {
    write_lease(record(|_| {}), Condition::Match(version))
}

fn response(status: u16, kind: &str, body: &str) -> Response {
    crate::answers::told::response(status, &[("content-type", kind), ("date", DATE)], body)
}

fn error(status: u16, code: &str) -> Response {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    response(status, JSON, &json!({ "__type": kind, "message": "the-message" }).to_string())
}

fn found(item: &Value) -> Response {
    response(200, JSON, &json!({ "Item": item }).to_string())
}

/// The same with this `Date`, or with none.
fn found_at(item: &Value, date_ms: Option<u64>) -> Response {
    let mut response = found(item);
    response.headers_mut().remove("date");
    match date_ms {
        Some(ms) => with(response, "date", &http_date(ms)),
        None => response,
    }
}

fn asked(request: &Request) -> Value {
    serde_json::from_slice(request.body()).expect("requests are JSON")
}

fn asks(operation: Operation) -> Value {
    asked(&sent(&store(), operation))
}

fn outcome(operation: Operation, response: Response) -> Outcome {
    told(&store(), operation, response).outcome
}

/// The item that a create of ours makes, and its version.
fn ours(change: impl FnOnce(&mut Lease)) -> (Value, Version) {
    let store = store();
    let mut talk = Talk::new(&store, write_lease(record(change), Condition::Absent));
    let item = asked(&talk.sends())["Item"].clone();
    (item, written(talk.ends(response(200, JSON, "{}")).outcome))
}

fn theirs(ttl_s: u64) -> Value {
    json!({ "pk": { "S": "SHARD#batch-processor" }, "ownerId": { "S": "host-1-2" },
            "ttl": { "N": ttl_s.to_string() } })
}

/// A copy of an item with other attributes, and without those that are null.
fn changed(item: &Value, attributes: &Value) -> Value {
    let mut item = item.clone();
    let fields = item.as_object_mut().expect("an object");
    fields.extend(attributes.as_object().expect("an object").clone());
    fields.retain(|_, value| !value.is_null());
    item
}

fn until(item: &Value, ttl_s: u64) -> Value {
    changed(item, &json!({ "ttl": { "N": ttl_s.to_string() } }))
}

fn read_item(item: &Value) -> (Version, Reading) {
    found_in(outcome(read(), found(item)))
}

fn read_lease(item: &Value) -> Lease {
    lease_in(read_item(item).1)
}

/// What an answer with this `Date`, or with none, makes of an item.
fn lease_at(store: &DynamoDb, item: &Value, wall_ms: u64, date_ms: Option<u64>) -> Lease {
    lease_in(found_in(told_at(store, read(), found_at(item, date_ms), wall_ms).outcome).1)
}

#[test]
fn a_read_asks_for_the_item_as_it_is_now_and_a_create_for_its_absence() {
    let request = sent(&store(), read());
    assert_eq!(request.method(), "POST");
    assert_eq!(url(&request), "https://dynamodb.eu-west-1.amazonaws.com/");
    assert_eq!(header(&request, "x-amz-target"), Some("DynamoDB_20120810.GetItem"));
    assert_eq!(header(&request, "content-type"), Some(JSON));
    let authorization = header(&request, "authorization").expect("it is signed");
    let signed = "/20251121/eu-west-1/dynamodb/aws4_request, \
                  SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target,";
    assert!(authorization.contains(signed), "{authorization}");
    let key = json!({ "pk": { "S": "SHARD#batch-processor" }, "sk": { "S": "LOCK" } });
    let names =
        json!({ "#p": "pk", "#t": "ttl", "#o": "ownerId", "#r": "revision", "#l": "lease" });
    let get = json!({ "TableName": "locks", "Key": key, "ConsistentRead": true,
                      "ProjectionExpression": "#l,#o,#p,#r,#t", "ExpressionAttributeNames": names });
    assert_eq!(asked(&request), get);
    let put = asks(create());
    assert_eq!(put["ConditionExpression"], json!("attribute_not_exists(pk)"));
    let named = ["ExpressionAttributeNames", "ExpressionAttributeValues"].map(|name| put.get(name));
    assert_eq!(named, [None, None]);
    let item = &put["Item"];
    assert_eq!((&item["pk"], &item["sk"]), (&key["pk"], &key["sk"]));
    assert_eq!(item["ownerId"], json!({ "S": "server 1/ä" }));
    assert_eq!(item["lease"]["S"].as_str().map(str::as_bytes), Some(record(|_| {}).as_slice()));
    assert_eq!(item.as_object().map(serde_json::Map::len), Some(6));
}

#[test]
fn what_was_written_is_read_back_to_the_byte_with_the_version_of_the_write() {
    let (item, version) = ours(|_| {});
    assert_eq!(read_item(&item), (version.clone(), lease::read(&record(|_| {}))));
    assert_eq!(outcome(read_unless(&version), found(&item)), Outcome::Unchanged);
    let (other, other_version) = ours(|lease| lease.sequence += 1);
    assert_ne!(version, other_version);
    assert!(matches!(outcome(read_unless(&version), found(&other)), Outcome::Found { .. }));
    mean(store, &[read_unless(&version)], [response(200, JSON, "{}")], Missing);
    assert!(version.0.bytes().all(|byte| byte.is_ascii_graphic()), "{version:?}");
}

#[test]
fn c26_a_probe_asks_for_each_of_the_three_by_a_condition_that_is_wrong_in_that_alone() {
    let (_, version) = ours(|_| {});
    let values =
        |version: &Version| asks(update(version.clone()))["ExpressionAttributeValues"].clone();
    let right = values(&version);
    let differs = |near: &Version| -> Vec<&str> {
        let near = values(near);
        [":t", ":o", ":r"].into_iter().filter(|name| near[name] != right[name]).collect()
    };
    let wrong: Vec<_> = store().near_misses(&version).iter().map(differs).collect();
    assert_eq!(wrong, [[":t"], [":o"], [":r"]]);
}

#[test]
fn s3_every_condition_names_revision_owner_and_ttl_and_that_there_is_an_item() {
    let (item, _) = ours(|_| {});
    let odd = json!({ "pk": { "S": "p" }, "ttl": { "M": { "a/b": { "S": "ü \"" } } }, "ownerId": { "NULL": true } });
    let of_another_hand = "#t = :t AND #o = :o AND attribute_not_exists(#r)";
    let (bare, theirs) = (json!({ "pk": { "S": "p" } }), theirs(NOW_S));
    let of_bare =
        "attribute_not_exists(#t) AND attribute_not_exists(#o) AND attribute_not_exists(#r)";
    let values = |item: &Value| json!({ ":t": item["ttl"], ":o": item["ownerId"] });
    for (item, condition, values) in [
        (
            &item,
            "#t = :t AND #o = :o AND #r = :r",
            changed(&values(&item), &json!({ ":r": item["revision"] })),
        ),
        (&theirs, of_another_hand, values(&theirs)),
        (&odd, of_another_hand, values(&odd)),
        // An empty map would be refused.
        (&bare, of_bare, Value::Null),
    ] {
        let put = asks(update(read_item(item).0));
        let condition = format!("attribute_exists(pk) AND {condition}");
        assert_eq!(put["ConditionExpression"], json!(condition));
        let names = json!({ "#t": "ttl", "#o": "ownerId", "#r": "revision" });
        assert_eq!(put["ExpressionAttributeNames"], names, "{condition}");
        assert_eq!(put["ExpressionAttributeValues"], values, "{condition}");
    }
    let of_s3 = "\"d41d8cd98f00b204e9800998ecf8427e\"";
    let put = asks(update(Version(of_s3.to_owned())));
    let revision = &put["ExpressionAttributeValues"][":r"]["S"];
    assert_eq!(revision, of_s3, "never true, and still a condition");
}

#[test]
fn the_version_is_the_same_however_the_answer_is_spelt_and_another_for_every_other_state() {
    let (item, version) = ours(|_| {});
    let spelt = serde_json::to_string_pretty(&json!({ "Item": item })).expect("JSON");
    let spelt = response(200, JSON, &spelt.replace('ä', "\\u00e4"));
    assert_eq!(outcome(read_unless(&version), spelt), Outcome::Unchanged);
    let mut versions = vec![version];
    let others = json!([
        { "ttl": { "N": "1763719299" } }, { "ownerId": { "N": "1" } }, { "ownerId": { "S": "1" } },
        { "ownerId": { "S": "-" } }, { "ownerId": null }, { "revision": { "S": "0" } },
        { "lease": { "S": "{}" } }, { "lease": { "M": {} } }, { "lease": null },
    ]);
    for other in others.as_array().expect("a list") {
        let (version, _) = read_item(&changed(&item, other));
        assert!(!versions.contains(&version), "{other}");
        versions.push(version);
    }
}

#[test]
fn ttl_is_a_second_after_the_lease_a_tombstones_is_zero_and_a_parked_record_keeps_one() {
    let ttl = |change: fn(&mut Lease)| ours(change).0["ttl"]["N"].as_str().map(str::to_owned);
    let after = |seconds: u64| Some((NOW_S + seconds).to_string());
    assert_eq!(ttl(|_| {}), after(17), "15.001 s is begun");
    assert_eq!(ttl(|lease| lease.last_updated = Stamp::At(NOW_MS as i64)), after(16));
    assert_eq!(ttl(|lease| lease.last_updated = Stamp::At(NOW_MS as i64 - 1)), after(16));
    assert_eq!(ttl(|lease| lease.last_updated = Stamp::Released), Some("0".to_owned()));
    assert_eq!(ttl(|lease| (lease.parked, lease.lease_ms) = (true, Some(60_000))), after(62));
    assert_eq!(ttl(|lease| lease.lease_ms = None), after(17), "the own leaderTimeout");
    assert_eq!(ttl(|lease| lease.last_updated = Stamp::At(-5)), Some("16".to_owned()));
}

#[test]
fn a_foreign_item_has_a_leader_without_session_and_term_and_a_lease_no_shorter_than_ours() {
    let lease = read_lease(&theirs(NOW_S + 5));
    assert_eq!((lease.leader_id.as_str(), lease.session, lease.term), ("host-1-2", None, None));
    assert!(!lease.parked);
    let year_ms = 365 * 24 * 3_600_000;
    for (ttl_s, lease_ms) in [
        (NOW_S + 5, Some(15_000)),
        // An old one is waited for like any other.
        (0, None),
        // Held to the end of that second, by a clock that may be a second slow.
        (NOW_S + 14, Some(16_000)),
        (NOW_S + 40, Some(42_000)),
        // Longer than ours, and a year at most.
        (NOW_S + 7_200, Some(7_202_000)),
        (u64::MAX / 1_000, Some(year_ms)),
        (u64::MAX, Some(year_ms)),
    ] {
        assert_eq!(read_lease(&theirs(ttl_s)).lease_ms, lease_ms, "{ttl_s}");
    }
}

#[test]
fn a_foreign_item_was_written_a_lease_before_its_ttl() {
    let stamp = |item: &Value| match read_lease(item).last_updated {
        Stamp::At(ms) => ms,
        Stamp::Released => panic!("{item}: somebody holds it"),
    };
    let now_ms = NOW_MS as i64;
    assert_eq!(stamp(&theirs(NOW_S + 13)), now_ms - 2_000);
    assert_eq!(stamp(&theirs(NOW_S - 100)), now_ms - 115_000);
    assert_eq!(stamp(&theirs(NOW_S + 40)), now_ms - 2_000, "a longer lease than ours");
    assert_eq!(stamp(&theirs(0)), 0);
    assert_eq!(stamp(&theirs(u64::MAX)), 253_402_300_799_999, "a time that a record can name");
    let (ours, _) = ours(|lease| lease.last_updated = Stamp::At(now_ms - 50_000));
    assert_eq!(stamp(&until(&ours, NOW_S + 60)), now_ms - 2_000, "its `lease` is of before");
    let reset = until(&ours, 0);
    assert_eq!(stamp(&reset), now_ms - 50_000, "nothing is older than what it keeps");
    let store = store();
    let at = |wall_ms| lease_at(&store, &theirs(NOW_S + 40), wall_ms, None).last_updated;
    assert_eq!(at(NOW_MS), at(NOW_MS + 30_000), "one version says one thing");
}

#[test]
fn whoever_looks_sees_a_living_leader_of_shardcoordinator() {
    let memory = Settings::default();
    let settings = Settings { lockfile_path: Some("batch-processor".to_owned()), ..memory };
    let config = Config::new(&settings).expect("fine settings");
    let machine = Machine::default();
    let now_ms = machine.host.wall_ms();
    let shown = |ttl_s: u64| {
        let answer = told_at(&store(), read(), found_at(&theirs(ttl_s), None), now_ms);
        let store = Through(async |_| answer.clone());
        let shown = block_on(look(&store, &machine.host, &config, None)).expect("it answers");
        serde_json::from_str::<Value>(&shown).expect("JSON")
    };
    let led = shown(now_ms / 1_000 + 13);
    assert_eq!((&led["state"], &led["leaderId"]), (&json!("led"), &json!("host-1-2")), "{led}");
    let left_ms = led["leftMs"].as_u64().expect("a number");
    assert!((12_000..=13_000).contains(&left_ms), "{led}");
    let expired = shown(now_ms / 1_000 - 100);
    assert_eq!(expired["state"], json!("expired"), "{expired}");
    assert!(expired["why"].as_str().expect("a sentence").contains("ran out 10"), "{expired}");
}

#[test]
fn how_long_a_foreign_item_is_waited_out_is_decided_at_its_first_sight() {
    let store = store();
    let seen = |ttl_s, date_ms| lease_at(&store, &theirs(NOW_S + ttl_s), NOW_MS, date_ms).lease_ms;
    let day_ms = 86_400_000;
    for (name, ttl_s, date_ms, lease_ms) in [
        ("the first sight", 40, NOW_MS, 42_000),
        ("its age counts from the first", 40, NOW_MS + 20_000, 42_000),
        ("another version", 45, NOW_MS - 20_000, 67_000),
        ("what is ahead of the own clock may be a proxy's", 50, NOW_MS + 20_000, 52_000),
        ("nor does a clock that is a day behind wait for a day", 86_460, NOW_MS + day_ms, 362_000),
    ] {
        assert_eq!(seen(ttl_s, Some(date_ms)), Some(lease_ms), "{name}");
    }
    assert_eq!(seen(30, None), Some(32_000), "by the own wall clock");
}

/// A clock that stands still or is far off, here or on the way, must neither keep the lease from everybody for good nor take it
/// from whoever holds it.
#[test]
fn later_answers_make_a_foreign_item_last_as_long_as_it_does_and_an_hour_at_most() {
    let (minute_ms, hour_ms, day_ms) = (60_000, 3_600_000, 86_400_000);
    let at = |store: &DynamoDb, item: &Value, wall_ms: u64, date_ms: Option<u64>| {
        let shown = told_at(store, read(), found_at(item, date_ms), wall_ms);
        match found_in(shown.outcome).1 {
            Reading::Lease(lease) => lease.lease_ms,
            Reading::Unreadable(_, told) => told.lease_ms,
            other => panic!("{other:?}"),
        }
    };
    let item = theirs(NOW_S + 40);
    for (name, wall_ms, date_ms, lease_ms) in [
        ("a Date of 1970", NOW_MS + 1_000, Some(0), hour_ms),
        ("a Date that stands still", NOW_MS + 30 * minute_ms, Some(NOW_MS), 1_842_000),
        ("a step of the wall clock", NOW_MS + day_ms, Some(NOW_MS + 1_000), hour_ms),
    ] {
        let store = store();
        assert_eq!(at(&store, &item, NOW_MS, Some(NOW_MS)), Some(42_000), "{name}");
        assert_eq!(at(&store, &item, wall_ms, date_ms), Some(lease_ms), "{name}");
        assert_eq!(at(&store, &item, NOW_MS, None), Some(lease_ms), "{name}; no Date, no proof");
    }
    let slow = store();
    assert!(at(&slow, &item, NOW_MS - day_ms, None) > Some(day_ms), "by the own clock alone");
    assert_eq!(at(&slow, &item, NOW_MS - day_ms, Some(NOW_MS)), Some(hour_ms), "a Date bounds it");
    // Twenty minutes are left, and something on the way is a day ahead.
    let long = theirs(NOW_S + 1_200);
    for date_ms in [Some(NOW_MS), None] {
        let store = store();
        at(&store, &long, NOW_MS, date_ms);
        let left_ms = at(&store, &long, NOW_MS + 1_000, Some(NOW_MS + day_ms));
        assert_eq!(left_ms, Some(1_202_000), "{date_ms:?} before it");
    }
    let ahead = store();
    at(&ahead, &long, NOW_MS, Some(NOW_MS + day_ms));
    let left_ms = at(&ahead, &long, NOW_MS + 1_000, Some(NOW_MS + 1_000));
    assert_eq!(left_ms, Some(1_202_000), "what comes after it counts");
    // Five hours, of which the first two have answers without a `Date`.
    let (undated, hours) = (store(), theirs(NOW_S + 18_000));
    at(&undated, &hours, NOW_MS, None);
    let now_ms = NOW_MS + 2 * hour_ms;
    assert_eq!(at(&undated, &hours, now_ms, Some(now_ms)), Some(18_002_000));
    let unreadable = changed(&theirs(NOW_S + 7_200), &json!({ "ownerId": null }));
    let store = store();
    for ms in (0..=hour_ms).step_by(600_000) {
        let lease_ms = at(&store, &unreadable, NOW_MS + ms, Some(NOW_MS + ms));
        assert_eq!(lease_ms, Some(hour_ms), "an hour at most is waited out");
    }
}

#[test]
fn s1_an_item_of_ours_that_another_hand_moved_is_not_ours_and_keeps_its_token_and_slot() {
    let (item, version) = ours(|lease| {
        (lease.slot, lease.slot_done, lease.parked) = (Some(9_000), Some(true), true);
    });
    let later = String::from_utf8(record(|lease| lease.sequence = 4)).expect("text");
    for (name, value) in [
        ("ttl", json!({ "N": (NOW_S + 30).to_string() })),
        ("ownerId", json!({ "S": "somebody" })),
        ("revision", json!({ "S": "0123456789abcdef0123456789abcdef" })),
        ("lease", json!({ "S": later })),
    ] {
        let (other, reading) = read_item(&changed(&item, &json!({ name: value })));
        assert_ne!(other, version, "{name}");
        let Reading::Lease(lease) = reading else { panic!("{name}: {reading:?}") };
        assert_eq!((lease.session, lease.parked, lease.acquired), (None, false, None), "{name}");
        assert_eq!(lease.term, Some(7), "{name}");
        assert_eq!(lease.leader_id, if name == "ownerId" { "somebody" } else { "server 1/ä" });
        assert_eq!(lease.slot, if name == "lease" { None } else { Some(9_000) });
    }
    let (released, _) = ours(|lease| lease.last_updated = Stamp::Released);
    let held = until(&released, NOW_S + 30);
    assert!(!read_lease(&held).released(), "somebody holds it until then");
}

#[test]
fn s6_a_moved_item_of_a_member_with_a_longer_lease_is_waited_out_for_that_lease() {
    let (item, _) = ours(|lease| lease.lease_ms = Some(60_000));
    for ttl_s in [0, NOW_S + 17] {
        let lease_ms = read_lease(&until(&item, ttl_s)).lease_ms;
        assert_eq!(lease_ms, Some(60_000), "its session may still lead");
    }
}

#[test]
fn an_item_of_another_shape_is_unreadable_and_keeps_what_can_be_read() {
    let (item, _) = ours(|_| {});
    let told = |term, lease_ms| Reading::Unreadable(Flaw::Foreign, Remains { term, lease_ms });
    let odd = json!([
        { "ttl": { "S": "1763719299" } }, { "ttl": { "N": "-1" } }, { "ttl": { "N": "1.5" } },
        { "ttl": { "N": "99999999999999999999999" } }, { "ttl": { "N": "1", "S": "1" } },
        { "ttl": 1_763_719_299 }, { "ownerId": { "S": "" } }, { "ownerId": { "N": "5" } },
        { "ownerId": { "S": "x".repeat(1_025) } }, { "ownerId": "a" },
    ]);
    for odd in odd.as_array().expect("a list") {
        // Its own lease, and until its `ttl` is over.
        let ahead_ms = odd.get("ttl").is_none().then_some(19_000);
        let item = changed(&item, odd);
        assert_eq!(read_item(&item).1, told(Some(7), ahead_ms.or(Some(15_000))), "{odd}");
        let bare = changed(&item, &json!({ "lease": null }));
        assert_eq!(read_item(&bare).1, told(None, ahead_ms), "{odd}");
    }
    let far = changed(&until(&item, NOW_S * 1_000), &json!({ "ownerId": "a" }));
    assert_eq!(read_item(&far).1, told(Some(7), Some(15_000)), "nobody has so long a lease");
    let newer = json!({ "S": r#"{"leaderID":"a","format":2}"# });
    for ttl in [item["ttl"].clone(), json!({ "S": "x" })] {
        let newer = read_item(&changed(&item, &json!({ "lease": newer, "ttl": ttl }))).1;
        assert_eq!(newer, Reading::Closed(Closed::NewerFormat(Some(2))), "never claimed");
    }
    let damaged = r#"{"leaderID":"a","parked":"no","term":9,"leaseMs":60000}"#;
    for (kept, term, lease_ms) in
        [(json!({ "S": damaged }), Some(9), Some(60_000)), (json!({ "N": "9" }), None, None)]
    {
        let item = changed(&item, &json!({ "lease": kept }));
        let past = read_item(&until(&item, 0)).1;
        assert_eq!(past, told(term, lease_ms), "its session may still lead");
        let held = until(&item, NOW_S + 100);
        for item in [changed(&held, &json!({ "ownerId": "a" })), held] {
            assert_eq!(read_item(&item).1, told(term, lease_ms.max(Some(102_000))), "{item}");
        }
    }
}

#[test]
fn an_item_of_400_kb_is_unreadable_and_can_still_be_healed() {
    let large = cut(response(200, JSON, &"x".repeat(DynamoDb::ANSWER_LIMIT)));
    let store = store();
    let mut talk = Talk::begun(&store, read()).0;
    let again = asked(&talk.again(large.clone()));
    assert_eq!(again["ProjectionExpression"], json!("#o,#p,#r,#t"));
    assert_eq!(again["ExpressionAttributeNames"].as_object().map(serde_json::Map::len), Some(4));
    let (version, reading) = found_in(talk.ends(found(&theirs(NOW_S))).outcome);
    let held = Remains { term: None, lease_ms: Some(15_000) };
    assert_eq!(reading, Reading::Unreadable(Flaw::TooLarge, held), "until its `ttl` is over");
    assert_ne!(version, read_item(&theirs(NOW_S)).0);
    let values = json!({ ":t": { "N": NOW_S.to_string() }, ":o": { "S": "host-1-2" } });
    assert_eq!(asks(update(version))["ExpressionAttributeValues"], values);
    let mut talk = Talk::begun(&store, read()).0;
    talk.again(large.clone());
    all_say(&[fault(talk.ends(large).outcome)], &["delete it when no member runs"]);
    // No condition holds so much.
    let owner =
        json!({ "pk": { "S": "p" }, "ttl": { "N": "1" }, "ownerId": { "S": "x".repeat(9_000) } });
    mean(self::store, &[read()], [found(&owner)], Rejected(FaultKind::Nonsense));
    let blanks = json!({ "S": " ".repeat(MAX_RECORD_BYTES + 1) });
    let item = changed(&ours(|_| {}).0, &json!({ "lease": blanks, "ttl": { "S": "x" } }));
    assert_eq!(read_item(&item).1, Reading::Unreadable(Flaw::Foreign, Remains::NONE));
}

#[test]
fn only_the_service_itself_says_that_there_is_no_item() {
    let answers = ["{}", COUNTED].map(|body| response(200, JSON, body));
    mean(store, &[read()], answers, Missing);
    let failed = r#"{"__type":"x#InternalServerError"}"#;
    let odd =
        ["", "[]", "{}{}", r#"{"message":"a"}"#, failed, r#"{"Item":null}"#, r#"{"Item":"{}"}"#];
    let odd = odd.map(|body| response(200, JSON, body)).into_iter();
    let others = ["application/json", ""].map(|kind| response(200, kind, "{}"));
    let pages = [204, 301, 400, 404].map(|status| response(status, "text/html", "<html>no</html>"));
    mean(store, &[read()], odd.chain(others).chain(pages), Rejected(FaultKind::Nonsense));
}

const COUNTED: &str = r#"{"ConsumedCapacity":{"TableName":"locks","CapacityUnits":1.0}}"#;

/// Bytes that were changed, cut or doubled on the way.
#[test]
fn no_damage_makes_a_panic_an_absence_a_release_or_another_record_of_the_same_version() {
    let (item, version) = ours(|_| {});
    let (foreign, sound) = (theirs(NOW_S + 40), read_item(&item).1);
    let mut chance = Chance::new(7);
    let mut draw = |below: usize| chance.below(below as u64) as usize;
    let mut found_some = 0;
    for round in 0..20_000 {
        let mut answer = found(if round % 4 == 0 { &foreign } else { &item });
        let bytes = &mut answer.body_mut().bytes;
        for _ in 0..=draw(3) {
            let at = draw(bytes.len());
            match draw(4) {
                0 => bytes[at] = draw(256) as u8,
                1 => bytes[at] = b"{}[]:,\"\\0-N"[draw(11)],
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[draw(bytes.len())]),
            }
        }
        match outcome(read(), answer) {
            Outcome::Found { version: damaged, reading } => {
                found_some += 1;
                if damaged == version {
                    assert_eq!(reading, sound, "round {round}");
                } else if let Reading::Lease(lease) = reading {
                    let claims = lease.released() || lease.session.is_some() || lease.parked;
                    assert!(!claims, "round {round}: {lease:?}");
                }
            }
            Outcome::Rejected(fault) => assert_eq!(fault.kind, FaultKind::Nonsense),
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert!(found_some > 1_000, "{found_some}");
}

#[test]
fn c01_a_put_that_took_effect_says_nothing_and_a_failed_condition_is_refused() {
    let (_, version) = ours(|_| {});
    let writes = [create(), update(version.clone())];
    for (operation, body) in writes.iter().flat_map(|write| ["{}", COUNTED].map(|b| (write, b))) {
        let answer = told(&store(), operation.clone(), response(200, JSON, body));
        assert_eq!(answer.outcome, Outcome::Written { version: Some(version.clone()) });
        assert_eq!(answer.facts.date_ms, Some(NOW_MS));
    }
    let bare = response(400, JSON, r#"{"__type":"ConditionalCheckFailedException"}"#);
    mean(store, &writes, [error(400, "ConditionalCheckFailedException"), bare], Refused);
    let relayed = with(response(200, JSON, "{}"), "last-modified", DATE);
    let facts = told(&store(), read(), relayed).facts;
    assert_eq!(facts.last_modified_ms, None, "not the service's");
}

#[test]
fn s8_whatever_else_is_said_of_a_write_it_may_have_landed() {
    let busy = "ProvisionedThroughputExceededException ThrottlingException RequestLimitExceeded \
                InternalServerError TransactionConflictException ServiceUnavailable \
                ReplicatedWriteConflictException";
    for code in busy.split_whitespace() {
        let unavailable = Unknown(FaultKind::Unavailable);
        mean(store, &[create()], [error(500, code)], unavailable);
        let other = ["TransactionConflictException", "ReplicatedWriteConflictException"];
        let said =
            if other.contains(&code) { "another write is under way" } else { "the store is busy" };
        for fault in mean(store, &[create(), read()], [error(400, code)], unavailable) {
            assert!(fault.message.contains(said) && !fault.message.contains("again"), "{fault}");
        }
    }
    let mut answers = vec![
        response(200, JSON, r#"{"Attributes":{}}"#),
        response(200, JSON, ""),
        cut(response(200, JSON, "{}")),
    ];
    // A status after which it may have landed counts for more than the code.
    for status in [200, 500, 503] {
        let codes = ["AccessDenied", "ConditionalCheckFailed", "ExpiredToken"];
        answers.extend(codes.map(|code| error(status, &format!("{code}Exception"))));
    }
    for status in [200, 201, 204, 301, 307, 400, 401, 403, 404, 408, 413, 418, 429, 500, 503] {
        let denied = r#"{"__type":"AccessDeniedException"}"#;
        answers.extend([
            response(status, "text/html", "<html>gateway</html>"),
            response(status, "application/json", denied),
            response(status, JSON, r#"{"__type":"a code of later"}"#),
            response(status, JSON, "{\"__type\":\"Condit"),
        ]);
    }
    mean(store, &[create()], answers, Unsure);
    let patience = outcome(create(), with(error(400, "ThrottlingException"), "retry-after", "7"));
    let waits = matches!(patience, Outcome::Unknown { retry_after_ms: Some(7_000), .. });
    assert!(waits, "{patience:?}");
}

#[test]
fn s8_without_an_answer_a_write_is_unknown_and_what_never_left_is_rejected() {
    let store = store();
    let mut talk = Talk::begun(&store, create()).0;
    let cause = || Fault::new(FaultKind::Network, "reset");
    assert_eq!(store.silence(&mut talk.exchange, cause()), Answer::unknown(cause()));
    let mut talk = Talk::new(&store, create());
    let nobody = edgelect::Credentials { secret_access_key: String::new(), ..credentials() };
    let fault = talk.tries(&nobody).expect_err("it can't be signed");
    assert!(fault.message.contains("nothing was sent"), "{fault}");
    assert_eq!(store.unsent(&mut talk.exchange, fault.clone()), Answer::rejected(fault));
}

#[test]
fn what_the_service_will_not_do_names_the_store_its_code_and_what_to_do() {
    let (misconfigured, denied) = (FaultKind::Misconfigured, FaultKind::Denied);
    for (code, kind, advice) in [
        ("ResourceNotFoundException", misconfigured, "no such table"),
        ("ValidationException", misconfigured, "keys must be pk and sk"),
        ("UnknownOperationException", misconfigured, "check the endpoint"),
        ("SerializationException", misconfigured, "check the endpoint"),
        ("AccessDeniedException", denied, "dynamodb:VERB on the table"),
        ("UnrecognizedClientException", denied, "that the account uses this region"),
        ("IncompleteSignatureException", denied, "secret access key"),
        ("InvalidSignatureException", denied, "secret access key"),
    ] {
        for (operation, verb) in [(create(), "PutItem"), (read(), "GetItem")] {
            let faults = mean(store, &[operation], [error(400, code)], Rejected(kind));
            assert_eq!((faults[0].status, faults[0].code.as_deref()), (Some(400), Some(code)));
            let start = format!(
                "DynamoDB table \"locks\" at https://dynamodb.eu-west-1.amazonaws.com: {verb} of \
                 \"SHARD#batch-processor\" was answered 400 {code}: "
            );
            all_say(&faults, &[&start, &advice.replace("VERB", verb)]);
        }
    }
    // What AWS answers where the endpoint and the region of the signature do not belong together.
    let body = r#"{"__type":"com.amazon.coral.service#InvalidSignatureException",
        "message":"Credential should be scoped to a valid region, not 'eu-west-1'. the-message"}"#;
    let answer = [response(400, JSON, body)];
    let faults = mean(store, &[create(), read()], answer, Rejected(denied));
    all_say(&faults, &["set region to that of the endpoint"]);
}

#[test]
fn expired_credentials_and_unknown_keys_are_asked_for_anew_and_a_wrong_clock_is_corrected() {
    let expired = error(400, "ExpiredTokenException");
    assert_eq!(refreshes(&store(), &create(), &expired, [0]), [true]);
    let faults = mean(store, &[create()], [expired], Rejected(FaultKind::Denied));
    all_say(&faults, &["credentials provider"]);
    for code in ["UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException"]
    {
        let asked = refreshes(&store(), &create(), &error(400, code), [0, 100, 9_999, 10_000]);
        assert_eq!(asked, [true, false, false, true], "{code}: not at once again");
    }
    let store = store();
    let mut talk = Talk::at(&store, read(), NOW_MS - 86_400_000);
    assert_eq!(header(&talk.sends(), "x-amz-date"), Some("20251120T100000Z"));
    let again = talk.again(error(400, "InvalidSignatureException"));
    assert_eq!(header(&again, "x-amz-date"), Some(&*calendar::basic(NOW_S)));
    // Once in each operation, for a service that names another time with every answer.
    let day_later = http_date(NOW_MS + 86_400_000);
    talk.refreshed(with(error(400, "InvalidSignatureException"), "date", &day_later));
}

#[test]
fn a_clock_that_a_false_date_taught_is_given_up_when_the_service_refuses_it() {
    let store = store();
    let refused = |code: &str| with(error(400, code), "date", &http_date(NOW_MS + 600_000));
    let signed = |request: &Request| header(request, "x-amz-date").map(str::to_owned);
    let mut talk = Talk::new(&store, read());
    let right = signed(&talk.sends());
    // The key was changed a moment ago, and something on the way sets `Date`.
    let by_date = talk.again(refused("InvalidSignatureException"));
    assert_ne!(signed(&by_date), right);
    let fresh = talk.refreshed(refused("InvalidSignatureException"));
    assert_ne!(signed(&fresh), right);
    assert_eq!(signed(&talk.again(refused("InvalidSignatureException"))), right);
    talk.ends(found(&theirs(NOW_S)));
    assert_eq!(signed(&sent(&store, read())), right);
}

#[test]
fn a_body_that_is_no_record_is_not_sent() {
    for body in [&b"\xff\x00"[..], b"", b"{}", br#"{"leaderID":""}"#] {
        let sent = Talk::new(&store(), write(body, Condition::Absent)).tries(&credentials());
        let message = sent.expect_err("there is no owner").message;
        assert!(message.contains("nothing was sent"), "{message}");
    }
}

#[test]
fn options_that_cannot_be_used_are_named_with_their_rule() {
    let [long, longer] = [256, 1_025].map(|length| "x".repeat(length));
    for (field, values) in [
        ("table", vec!["", "ab", "a b c", "tâble", &long, "arn:aws:dynamodb:table/x"]),
        ("lockfilePath", vec!["", "a\nb", &longer]),
        ("leaderTimeout", vec!["0", "999", "3600001"]),
        ("region", vec!["auto", "EU", "a b"]),
        ("endpoint", vec!["http://dynamo.example"]),
    ] {
        for value in values {
            let (mut config, value) = (config(), value.to_owned());
            match field {
                "table" => config.table = value,
                "lockfilePath" => config.shard_id = value,
                "leaderTimeout" => config.lease_ms = value.parse().expect("a number"),
                "region" => config.region = Some(value),
                _ => config.endpoint = Some(value),
            }
            let refused = DynamoDb::new(config.clone()).expect_err("it can't be used");
            assert_eq!(refused.field, field, "{config:?}");
        }
    }
    let china = DynamoDbConfig { region: Some("cn-north-1".to_owned()), ..config() };
    let china = DynamoDb::new(china).expect("a region of AWS").describe();
    assert_eq!(china, "DynamoDB table \"locks\" at https://dynamodb.cn-north-1.amazonaws.com.cn");
}
