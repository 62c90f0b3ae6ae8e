//! What each answer of DynamoDB means; and, below `mixed`, a fleet of both makes over one item.

#[path = "dynamodb/fleet.rs"]
mod fleet;
#[path = "dynamodb/foreign.rs"]
mod foreign;
#[path = "dynamodb/mixed.rs"]
mod mixed;
#[path = "dynamodb/table.rs"]
mod table;
#[allow(dead_code)] // The driver needs more of it.
mod virtual_time;

use edgelect::calendar;
use edgelect::lease::{self, Closed, Flaw, Lease, MAX_RECORD_BYTES, Reading, Remains, Stamp};
use edgelect::protocol::{Next, Protocol};
use edgelect::request::{Body, Request, Response};
use edgelect::store::dynamodb::{DynamoDb, DynamoDbConfig, Exchange};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};
use edgelect::{ConfigError, Credentials};
use serde_json::{Value, json};

/// Fri, 21 Nov 2025 10:00:00 GMT
const NOW_MS: u64 = 1_763_719_200_000;
const NOW_S: u64 = NOW_MS / 1_000;
const DATE: &str = "Fri, 21 Nov 2025 10:00:00 GMT";
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

fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: Some("the-token".to_owned()),
    }
}

fn record(change: impl FnOnce(&mut Lease)) -> Vec<u8> {
    let text = r#"{"leaderID":"server 1/ä","lastUpdated":"2025-11-21T10:00:00.001Z","term":7,"session":"s",
                   "sequence":3,"leaseMs":15000,"acquired":"2025-11-21T09:00:00Z","theirs":[1]}"#;
    match lease::read(text.as_bytes()) {
        Reading::Lease(mut lease) => {
            change(&mut lease);
            lease::write(&lease)
        }
        other => panic!("{other:?}"),
    }
}

fn read() -> Operation {
    Operation::Read { unless: None }
}

fn create() -> Operation {
    Operation::Write { body: record(|_| {}), condition: Condition::Absent }
}

fn update(version: Version) -> Operation {
    Operation::Write { body: record(|_| {}), condition: Condition::Match(version) }
}

fn response(status: u16, kind: &str, body: &str) -> Response {
    Response {
        status,
        headers: vec![
            ("content-type".to_owned(), kind.to_owned()),
            ("date".to_owned(), DATE.to_owned()),
        ],
        body: Body { bytes: body.into(), truncated: false },
    }
}

fn error(status: u16, code: &str) -> Response {
    let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
    response(status, JSON, &json!({ "__type": kind, "message": "the-message" }).to_string())
}

fn found(item: &Value) -> Response {
    response(200, JSON, &json!({ "Item": item }).to_string())
}

fn send(store: &DynamoDb, exchange: &mut Exchange) -> Request {
    store.request(exchange, &credentials(), NOW_MS).expect("it can be sent")
}

fn asked(request: &Request) -> Value {
    serde_json::from_slice(&request.body).expect("requests are JSON")
}

/// What one operation asks for.
fn asks(operation: Operation) -> Value {
    let store = store();
    asked(&send(&store, &mut store.begin(operation)))
}

/// The answer to an operation whose every response is this one; the first must end it, or ask for fresh credentials.
fn answer_of(store: &DynamoDb, operation: Operation, response: Response) -> Answer {
    let mut exchange = store.begin(operation);
    send(store, &mut exchange);
    let mut next = store.answer(&mut exchange, response.clone(), NOW_MS);
    if next == Next::Refresh {
        send(store, &mut exchange);
        next = store.answer(&mut exchange, response, NOW_MS);
    }
    match next {
        Next::Done(answer) => answer,
        other => panic!("the exchange goes on: {other:?}"),
    }
}

fn outcome(operation: Operation, response: Response) -> Outcome {
    answer_of(&store(), operation, response).outcome
}

fn fault(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Rejected(fault) | Outcome::Unknown { cause: fault, .. } => fault,
        other => panic!("no fault: {other:?}"),
    }
}

/// The item that a create of ours makes, and its version.
fn ours(change: impl FnOnce(&mut Lease)) -> (Value, Version) {
    let store = store();
    let operation = Operation::Write { body: record(change), condition: Condition::Absent };
    let mut exchange = store.begin(operation);
    let item = asked(&send(&store, &mut exchange))["Item"].clone();
    match store.answer(&mut exchange, response(200, JSON, "{}"), NOW_MS) {
        Next::Done(Answer { outcome: Outcome::Written { version: Some(version) }, .. }) => {
            (item, version)
        }
        other => panic!("{other:?}"),
    }
}

fn theirs(ttl_s: u64) -> Value {
    json!({ "pk": { "S": "SHARD#batch-processor" }, "ownerId": { "S": "host-1-2" },
            "ttl": { "N": ttl_s.to_string() } })
}

fn read_item(item: &Value) -> (Version, Reading) {
    match outcome(read(), found(item)) {
        Outcome::Found { version, reading } => (version, reading),
        other => panic!("{item}: {other:?}"),
    }
}

fn read_lease(item: &Value) -> Lease {
    match read_item(item).1 {
        Reading::Lease(lease) => *lease,
        other => panic!("{item}: {other:?}"),
    }
}

#[test]
fn a_read_asks_for_the_item_as_it_is_now_and_a_create_for_its_absence() {
    let store = store();
    let request = send(&store, &mut store.begin(read()));
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://dynamodb.eu-west-1.amazonaws.com/")
    );
    let header = |name: &str| {
        request.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    };
    assert_eq!(header("x-amz-target"), Some("DynamoDB_20120810.GetItem"));
    assert_eq!(header("content-type"), Some(JSON));
    assert_eq!(header("x-amz-security-token"), Some("the-token"));
    let authorization = header("authorization").expect("it is signed");
    assert!(authorization.contains("/20251121/eu-west-1/dynamodb/aws4_request"), "{authorization}");
    let signed = "SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target,";
    assert!(authorization.contains(signed), "{authorization}");
    let key = json!({ "pk": { "S": "SHARD#batch-processor" }, "sk": { "S": "LOCK" } });
    let names =
        json!({ "#p": "pk", "#t": "ttl", "#o": "ownerId", "#r": "revision", "#l": "lease" });
    assert_eq!(
        asked(&request),
        json!({ "TableName": "locks", "Key": key, "ConsistentRead": true,
                "ProjectionExpression": "#p,#t,#o,#r,#l", "ExpressionAttributeNames": names })
    );
    let put = asks(create());
    assert_eq!(put["ConditionExpression"], json!("attribute_not_exists(pk)"));
    assert_eq!(
        (put.get("ExpressionAttributeNames"), put.get("ExpressionAttributeValues")),
        (None, None)
    );
    let item = &put["Item"];
    assert_eq!((&item["pk"], &item["sk"]), (&key["pk"], &key["sk"]));
    assert_eq!(item["ownerId"], json!({ "S": "server 1/ä" }));
    assert_eq!(item["lease"]["S"].as_str().map(str::as_bytes), Some(record(|_| {}).as_slice()));
    assert_eq!(item.as_object().map(serde_json::Map::len), Some(6));
}

#[test]
fn what_was_written_is_read_back_to_the_byte_with_the_version_of_the_write() {
    let (item, version) = ours(|_| {});
    let expected = lease::read(&record(|_| {}));
    assert_eq!(read_item(&item), (version.clone(), expected));
    let unless = Operation::Read { unless: Some(version.clone()) };
    assert_eq!(outcome(unless.clone(), found(&item)), Outcome::Unchanged);
    let (other, changed) = ours(|lease| lease.sequence += 1);
    assert_ne!(version, changed);
    assert!(matches!(outcome(unless.clone(), found(&other)), Outcome::Found { .. }));
    assert_eq!(outcome(unless, response(200, JSON, "{}")), Outcome::Missing);
    assert!(version.0.bytes().all(|byte| byte.is_ascii_graphic()), "{version:?}");
}

#[test]
fn c26_a_probe_asks_for_each_of_the_three_by_a_condition_that_is_wrong_in_that_alone() {
    let (_, version) = ours(|_| {});
    let values =
        |version: &Version| asks(update(version.clone()))["ExpressionAttributeValues"].clone();
    let right = values(&version);
    let wrong: Vec<Vec<&str>> = Protocol::near_misses(&store(), &version)
        .iter()
        .map(|near| {
            let near = values(near);
            [":t", ":o", ":r"].into_iter().filter(|name| near[name] != right[name]).collect()
        })
        .collect();
    assert_eq!(wrong, [[":t"], [":o"], [":r"]]);
}

#[test]
fn s3_every_condition_names_revision_owner_and_ttl_and_that_there_is_an_item() {
    let (item, version) = ours(|_| {});
    let put = asks(update(version));
    assert_eq!(
        put["ConditionExpression"],
        json!("attribute_exists(pk) AND #t = :t AND #o = :o AND #r = :r")
    );
    assert_eq!(
        put["ExpressionAttributeNames"],
        json!({ "#t": "ttl", "#o": "ownerId", "#r": "revision" })
    );
    let values = json!({ ":t": item["ttl"], ":o": item["ownerId"], ":r": item["revision"] });
    assert_eq!(put["ExpressionAttributeValues"], values);

    let put = asks(update(read_item(&theirs(NOW_S)).0));
    let condition = "attribute_exists(pk) AND #t = :t AND #o = :o AND attribute_not_exists(#r)";
    assert_eq!(put["ConditionExpression"], json!(condition));
    let values = json!({ ":t": { "N": NOW_S.to_string() }, ":o": { "S": "host-1-2" } });
    assert_eq!(put["ExpressionAttributeValues"], values);

    let odd = json!({ "pk": { "S": "p" }, "ttl": { "M": { "a/b": { "S": "ü \"" } } }, "ownerId": { "NULL": true } });
    let put = asks(update(read_item(&odd).0));
    let values = json!({ ":t": odd["ttl"], ":o": odd["ownerId"] });
    assert_eq!(put["ExpressionAttributeValues"], values, "of whatever shape");

    let bare = asks(update(read_item(&json!({ "pk": { "S": "p" } })).0));
    let condition = "attribute_exists(pk) AND attribute_not_exists(#t) AND attribute_not_exists(#o) AND \
                     attribute_not_exists(#r)";
    assert_eq!(bare["ConditionExpression"], json!(condition));
    assert_eq!(bare.get("ExpressionAttributeValues"), None, "an empty map is refused");

    let put = asks(update(Version("\"d41d8cd98f00b204e9800998ecf8427e\"".to_owned())));
    let value = json!("\"d41d8cd98f00b204e9800998ecf8427e\"");
    assert_eq!(
        put["ExpressionAttributeValues"][":r"]["S"], value,
        "never true, and still a condition"
    );
}

#[test]
fn the_version_is_the_same_however_the_answer_is_spelt_and_another_for_every_other_state() {
    let (item, version) = ours(|_| {});
    let spelt = found(&item);
    let text = String::from_utf8(spelt.body.bytes.clone())
        .expect("text")
        .replace(':', " :\n")
        .replace('ä', "\\u00e4");
    // The blanks belong to the answer and not to the record in it.
    let text = text
        .replace("\\\" :\n", "\\\":")
        .replace("T10 :\n00 :\n00", "T10:00:00")
        .replace("T09 :\n00 :\n00", "T09:00:00");
    let unless = Operation::Read { unless: Some(version.clone()) };
    assert_eq!(outcome(unless, response(200, JSON, &text)), Outcome::Unchanged, "{text}");

    let mut versions = vec![version];
    let mut other = |change: &dyn Fn(&mut Value)| {
        let mut item = item.clone();
        change(&mut item);
        let (version, _) = read_item(&item);
        assert!(!versions.contains(&version), "{item}");
        versions.push(version);
    };
    other(&|item| item["ttl"] = json!({ "N": "1763719299" }));
    other(&|item| item["ownerId"] = json!({ "S": "server 1" }));
    other(&|item| item["ownerId"] = json!({ "N": "1" }));
    other(&|item| item["ownerId"] = json!({ "S": "1" }));
    other(&|item| item["revision"] = json!({ "S": "0" }));
    other(&|item| item["lease"] = json!({ "S": "{}" }));
    other(&|item| item["lease"] = json!({ "M": {} }));
    other(&|item| item["ownerId"] = json!({ "S": "-" }));
    other(&|item| drop(item.as_object_mut().map(|item| item.remove("ownerId"))));
    other(&|item| drop(item.as_object_mut().map(|item| item.remove("lease"))));
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
    assert_eq!(
        (lease.lease_ms, lease.parked, lease.last_updated),
        (Some(15_000), false, Stamp::At(0))
    );
    assert_eq!(read_lease(&theirs(0)).lease_ms, None, "an old one is waited for like any other");
    // Held to the end of that second, by a clock that may be a second slow.
    assert_eq!(read_lease(&theirs(NOW_S + 14)).lease_ms, Some(16_000));
    assert_eq!(read_lease(&theirs(NOW_S + 40)).lease_ms, Some(42_000));
    assert_eq!(read_lease(&theirs(NOW_S + 7_200)).lease_ms, Some(7_202_000), "longer than ours");
    for far in [u64::MAX / 1_000, u64::MAX] {
        assert_eq!(read_lease(&theirs(far)).lease_ms, Some(365 * 24 * 3_600_000), "a year at most");
    }
}

#[test]
fn how_long_a_foreign_item_is_waited_out_is_decided_at_its_first_sight() {
    let store = store();
    let seen = |item: &Value, date_ms: u64| {
        let mut response = found(item);
        response.headers[1].1 = httpdate::fmt_http_date(
            std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(date_ms),
        );
        match answer_of(&store, read(), response).outcome {
            Outcome::Found { reading: Reading::Lease(lease), .. } => lease.lease_ms,
            other => panic!("{other:?}"),
        }
    };
    let item = theirs(NOW_S + 40);
    assert_eq!(seen(&item, NOW_MS), Some(42_000));
    assert_eq!(seen(&item, NOW_MS + 20_000), Some(42_000), "its age counts from the first");
    assert_eq!(seen(&theirs(NOW_S + 45), NOW_MS - 20_000), Some(67_000), "another version");
    let ahead = seen(&theirs(NOW_S + 50), NOW_MS + 20_000);
    assert_eq!(ahead, Some(52_000), "what is ahead of the own clock may be a proxy's");
    let behind = seen(&theirs(NOW_S + 86_460), NOW_MS + 86_400_000);
    assert_eq!(behind, Some(362_000), "nor does a clock that is a day behind wait for a day");
    let mut dateless = found(&theirs(NOW_S + 30));
    dateless.headers.truncate(1);
    match answer_of(&store, read(), dateless).outcome {
        Outcome::Found { reading: Reading::Lease(lease), .. } => {
            assert_eq!(lease.lease_ms, Some(32_000), "by the own wall clock");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn s1_an_item_of_ours_that_another_hand_moved_is_not_ours_and_keeps_its_token_and_slot() {
    let change = |lease: &mut Lease| {
        (lease.slot, lease.slot_done, lease.parked) = (Some(9_000), Some(true), true);
    };
    let (item, version) = ours(change);
    for (name, value) in [
        ("ttl", json!({ "N": (NOW_S + 30).to_string() })),
        ("ownerId", json!({ "S": "somebody" })),
        ("revision", json!({ "S": "0123456789abcdef0123456789abcdef" })),
        (
            "lease",
            json!({ "S": String::from_utf8(record(|lease| lease.sequence = 4)).expect("text") }),
        ),
    ] {
        let mut moved = item.clone();
        moved[name] = value;
        let (other, reading) = read_item(&moved);
        assert_ne!(other, version, "{name}");
        let Reading::Lease(lease) = reading else { panic!("{name}: {reading:?}") };
        assert_eq!((lease.session, lease.parked, lease.acquired), (None, false, None), "{name}");
        assert_eq!(lease.term, Some(7), "{name}");
        assert_eq!(lease.leader_id, if name == "ownerId" { "somebody" } else { "server 1/ä" });
        assert_eq!(lease.slot, if name == "lease" { None } else { Some(9_000) });
    }
    let (mut released, _) = ours(|lease| lease.last_updated = Stamp::Released);
    released["ttl"] = json!({ "N": (NOW_S + 30).to_string() });
    assert!(!read_lease(&released).released(), "somebody holds it until then");
}

#[test]
fn s6_a_moved_item_of_a_member_with_a_longer_lease_is_waited_out_for_that_lease() {
    let (mut moved, _) = ours(|lease| lease.lease_ms = Some(60_000));
    for ttl_s in [0, NOW_S + 17] {
        moved["ttl"] = json!({ "N": ttl_s.to_string() });
        assert_eq!(read_lease(&moved).lease_ms, Some(60_000), "its session may still lead");
    }
}

#[test]
fn an_item_of_another_shape_is_unreadable_and_keeps_what_can_be_read() {
    let (item, _) = ours(|_| {});
    let odd = [
        ("ttl", json!({ "S": "1763719299" })),
        ("ttl", json!({ "N": "-1" })),
        ("ttl", json!({ "N": "1.5" })),
        ("ttl", json!({ "N": "99999999999999999999999" })),
        ("ttl", json!({ "N": "1", "S": "1" })),
        ("ttl", json!(1_763_719_299)),
        ("ttl", Value::Null),
        ("ownerId", json!({ "S": "" })),
        ("ownerId", json!({ "N": "5" })),
        ("ownerId", json!({ "S": "x".repeat(1_025) })),
        ("ownerId", json!({ "L": [{ "S": "a" }] })),
        ("ownerId", json!("a")),
    ];
    let told = |term, lease_ms| Reading::Unreadable(Flaw::Foreign, Remains { term, lease_ms });
    for (name, value) in odd {
        let mut item = item.clone();
        item[name] = value;
        // Its own lease, and until its `ttl` is over.
        let ahead_ms = (name != "ttl").then_some(19_000);
        assert_eq!(read_item(&item).1, told(Some(7), ahead_ms.or(Some(15_000))), "{item}");
        drop(item.as_object_mut().map(|item| item.remove("lease")));
        assert_eq!(read_item(&item).1, told(None, ahead_ms), "{item}");
    }
    let mut newer = item.clone();
    newer["lease"] = json!({ "S": r#"{"leaderID":"a","format":2}"# });
    assert_eq!(read_item(&newer).1, Reading::Closed(Closed::NewerFormat(Some(2))), "never claimed");
    newer["ttl"] = json!({ "S": "x" });
    assert_eq!(read_item(&newer).1, Reading::Closed(Closed::NewerFormat(Some(2))));
    let mut far = item.clone();
    (far["ttl"], far["ownerId"]) = (json!({ "N": (NOW_S * 1_000).to_string() }), json!("a"));
    assert_eq!(read_item(&far).1, told(Some(7), Some(15_000)), "nobody has so long a lease");
    let damaged = r#"{"leaderID":"a","parked":"no","term":9,"leaseMs":60000}"#;
    for (kept, term, lease_ms) in [
        (json!({ "S": damaged }), Some(9), Some(60_000)),
        (json!({ "S": "{" }), None, None),
        (json!({ "N": "9" }), None, None),
    ] {
        let mut broken = item.clone();
        (broken["lease"], broken["ttl"]) = (kept, json!({ "N": "0" }));
        assert_eq!(read_item(&broken).1, told(term, lease_ms), "its session may still lead");
        broken["ttl"] = json!({ "N": (NOW_S + 100).to_string() });
        assert_eq!(read_item(&broken).1, told(term, lease_ms.max(Some(102_000))));
        broken["ownerId"] = json!("a");
        assert_eq!(read_item(&broken).1, told(term, lease_ms.max(Some(102_000))));
    }
}

#[test]
fn an_item_of_400_kb_is_unreadable_and_can_still_be_healed() {
    let store = store();
    let mut exchange = store.begin(read());
    send(&store, &mut exchange);
    let mut cut = response(200, JSON, &"x".repeat(DynamoDb::ANSWER_LIMIT));
    cut.body.truncated = true;
    assert_eq!(store.answer(&mut exchange, cut.clone(), NOW_MS), Next::Again);
    let again = asked(&send(&store, &mut exchange));
    assert_eq!(again["ProjectionExpression"], json!("#p,#t,#o,#r"));
    assert_eq!(again["ExpressionAttributeNames"].as_object().map(serde_json::Map::len), Some(4));
    let (version, reading) = match store.answer(&mut exchange, found(&theirs(NOW_S)), NOW_MS) {
        Next::Done(Answer { outcome: Outcome::Found { version, reading }, .. }) => {
            (version, reading)
        }
        other => panic!("{other:?}"),
    };
    let held = Remains { term: None, lease_ms: Some(15_000) };
    assert_eq!(reading, Reading::Unreadable(Flaw::TooLarge, held), "until its `ttl` is over");
    assert_ne!(version, read_item(&theirs(NOW_S)).0);
    let values = json!({ ":t": { "N": NOW_S.to_string() }, ":o": { "S": "host-1-2" } });
    assert_eq!(asks(update(version))["ExpressionAttributeValues"], values);

    let mut exchange = store.begin(read());
    send(&store, &mut exchange);
    assert_eq!(store.answer(&mut exchange, cut.clone(), NOW_MS), Next::Again);
    send(&store, &mut exchange);
    match store.answer(&mut exchange, cut, NOW_MS) {
        Next::Done(answer) => {
            let fault = fault(answer.outcome);
            assert!(fault.message.contains("delete it when no member runs"), "{}", fault.message);
        }
        other => panic!("{other:?}"),
    }
    let large =
        json!({ "pk": { "S": "p" }, "ttl": { "N": "1" }, "ownerId": { "S": "x".repeat(9_000) } });
    assert_eq!(
        fault(outcome(read(), found(&large))).kind,
        FaultKind::Nonsense,
        "no condition holds so much"
    );
    let (mut item, _) = ours(|_| {});
    item["lease"] = json!({ "S": " ".repeat(MAX_RECORD_BYTES + 1) });
    item["ttl"] = json!({ "S": "x" });
    assert_eq!(read_item(&item).1, Reading::Unreadable(Flaw::Foreign, Remains::NONE));
}

#[test]
fn only_the_service_itself_says_that_there_is_no_item() {
    assert_eq!(outcome(read(), response(200, JSON, "{}")), Outcome::Missing);
    let counted = r#"{"ConsumedCapacity":{"TableName":"locks","CapacityUnits":1.0}}"#;
    assert_eq!(outcome(read(), response(200, JSON, counted)), Outcome::Missing);
    for (kind, body) in [
        ("application/json", "{}"),
        ("text/html", "<html>"),
        ("", "{}"),
        (JSON, ""),
        (JSON, "[]"),
        (JSON, "null"),
        (JSON, "{}{}"),
        (JSON, r#"{"message":"hello"}"#),
        (JSON, r#"{"__type":"x#InternalServerError"}"#),
        (JSON, r#"{"Item":null}"#),
        (JSON, r#"{"Item":[]}"#),
        (JSON, r#"{"Item":"{}"}"#),
    ] {
        let outcome = outcome(read(), response(200, kind, body));
        assert!(
            matches!(&outcome, Outcome::Rejected(fault) if fault.kind == FaultKind::Nonsense),
            "{body}: {outcome:?}"
        );
    }
    for status in [204, 301, 302, 400, 404, 410] {
        let outcome = outcome(read(), response(status, "text/html", "<html>not here</html>"));
        assert!(
            matches!(&outcome, Outcome::Rejected(fault) if fault.kind == FaultKind::Nonsense),
            "{status}: {outcome:?}"
        );
    }
}

/// Bytes that were changed, cut or doubled on the way.
#[test]
fn no_damage_makes_a_panic_an_absence_a_release_or_another_record_of_the_same_version() {
    let (item, version) = ours(|_| {});
    let (foreign, sound) = (theirs(NOW_S + 40), read_item(&item).1);
    let mut chance = 7_u64;
    let mut draw = |below: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (chance >> 33) as usize % below
    };
    let mut found_some = 0;
    for round in 0..20_000 {
        let mut answer = found(if round % 4 == 0 { &foreign } else { &item });
        let bytes = &mut answer.body.bytes;
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
            Outcome::Found { version: damaged, reading } if damaged == version => {
                assert_eq!(reading, sound, "round {round}");
                found_some += 1;
            }
            Outcome::Found { reading: Reading::Lease(lease), .. } => {
                assert!(!lease.released() && lease.session.is_none() && !lease.parked, "{lease:?}");
                found_some += 1;
            }
            Outcome::Found { .. } => found_some += 1,
            Outcome::Rejected(fault) => assert_eq!(fault.kind, FaultKind::Nonsense),
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert!(found_some > 1_000, "{found_some}");
}

#[test]
fn c01_a_put_that_took_effect_says_nothing_and_a_failed_condition_is_refused() {
    let (_, version) = ours(|_| {});
    for operation in [create(), update(version.clone())] {
        let written = Outcome::Written { version: Some(version.clone()) };
        assert_eq!(outcome(operation.clone(), response(200, JSON, "{}")), written);
        let counted = r#"{"ConsumedCapacity":{"TableName":"locks","CapacityUnits":1.0}}"#;
        assert_eq!(outcome(operation.clone(), response(200, JSON, counted)), written);
        let refused = error(400, "ConditionalCheckFailedException");
        assert_eq!(outcome(operation.clone(), refused), Outcome::Refused);
        let short = response(400, JSON, r#"{"__type":"ConditionalCheckFailedException"}"#);
        assert_eq!(outcome(operation, short), Outcome::Refused, "without the namespace");
    }
    let answer = answer_of(&store(), create(), response(200, JSON, "{}"));
    assert_eq!(answer.facts.date_ms, Some(NOW_MS));
    let mut relayed = response(200, JSON, "{}");
    relayed.headers.push(("last-modified".to_owned(), DATE.to_owned()));
    assert_eq!(
        answer_of(&store(), read(), relayed).facts.last_modified_ms,
        None,
        "not the service's"
    );
}

#[test]
fn s8_whatever_else_is_said_of_a_write_it_may_have_landed() {
    let unknown = |response: Response| {
        let outcome = outcome(create(), response.clone());
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{response:?}: {outcome:?}");
        fault(outcome)
    };
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "InternalServerError",
        "TransactionConflictException",
        "ServiceUnavailable",
        "ReplicatedWriteConflictException",
    ] {
        assert_eq!(unknown(error(400, code)).kind, FaultKind::Unavailable, "{code}");
        assert_eq!(unknown(error(500, code)).kind, FaultKind::Unavailable, "{code}");
        assert!(matches!(outcome(read(), error(400, code)), Outcome::Unknown { .. }), "{code}");
    }
    // A status after which it may have landed counts for more than the code.
    for code in [
        "AccessDeniedException",
        "ValidationException",
        "ConditionalCheckFailedException",
        "ExpiredTokenException",
    ] {
        for status in [200, 500, 503] {
            unknown(error(status, code));
        }
    }
    for status in
        [200, 201, 204, 301, 307, 400, 401, 403, 404, 408, 409, 413, 418, 429, 500, 502, 503, 504]
    {
        unknown(response(status, "text/html", "<html>gateway</html>"));
        unknown(response(status, "application/json", r#"{"__type":"AccessDeniedException"}"#));
        unknown(response(status, JSON, r#"{"__type":"a code of later"}"#));
        unknown(response(status, JSON, "{\"__type\":\"Condit"));
    }
    unknown(response(200, JSON, r#"{"Attributes":{}}"#));
    unknown(response(200, JSON, ""));
    let mut cut = response(200, JSON, "{}");
    cut.body.truncated = true;
    unknown(cut);
    let mut asked = error(400, "ThrottlingException");
    asked.headers.push(("retry-after".to_owned(), "7".to_owned()));
    let patience = outcome(create(), asked);
    assert!(
        matches!(patience, Outcome::Unknown { retry_after_ms: Some(7_000), .. }),
        "{patience:?}"
    );
}

#[test]
fn s8_without_an_answer_a_write_is_unknown_and_what_never_left_is_rejected() {
    let store = store();
    let mut exchange = store.begin(create());
    send(&store, &mut exchange);
    let cause = || Fault::new(FaultKind::Network, "reset");
    assert_eq!(store.silence(&mut exchange, cause()), Answer::unknown(cause()));
    let mut exchange = store.begin(create());
    let nobody = Credentials { secret_access_key: String::new(), ..credentials() };
    let fault = store.request(&mut exchange, &nobody, NOW_MS).expect_err("it can't be signed");
    assert!(fault.message.contains("nothing was sent"), "{}", fault.message);
    assert_eq!(store.unsent(&mut exchange, fault.clone()), Answer::rejected(fault));
}

#[test]
fn what_the_service_will_not_do_names_the_store_its_code_and_what_to_do() {
    for (code, kind, advice) in [
        ("ResourceNotFoundException", FaultKind::Misconfigured, "no such table"),
        ("ValidationException", FaultKind::Misconfigured, "keys must be pk and sk"),
        ("UnknownOperationException", FaultKind::Misconfigured, "check the endpoint"),
        ("AccessDeniedException", FaultKind::Denied, "dynamodb:"),
        ("UnrecognizedClientException", FaultKind::Denied, "access key id"),
        ("UnrecognizedClientException", FaultKind::Denied, "that the account uses this region"),
        ("IncompleteSignatureException", FaultKind::Denied, "secret access key"),
        ("InvalidSignatureException", FaultKind::Denied, "secret access key"),
    ] {
        for (operation, verb) in [(create(), "PutItem"), (read(), "GetItem")] {
            let outcome = outcome(operation, error(400, code));
            assert!(matches!(outcome, Outcome::Rejected(_)), "{code}: {outcome:?}");
            let fault = fault(outcome);
            assert_eq!((fault.kind, fault.status), (kind, Some(400)), "{code}");
            assert_eq!(fault.code.as_deref(), Some(code));
            let start = format!(
                "DynamoDB table \"locks\" at https://dynamodb.eu-west-1.amazonaws.com: {verb} of \
                 \"SHARD#batch-processor\" was answered 400 {code}: "
            );
            assert!(fault.message.starts_with(&start), "{}", fault.message);
            assert!(fault.message.contains(advice), "{}", fault.message);
            assert!(!fault.message.contains("the-message"), "what others say is not repeated");
        }
    }
    let denied = fault(outcome(create(), error(400, "AccessDeniedException"))).message;
    assert!(denied.contains("dynamodb:PutItem on the table"), "{denied}");
    let denied = fault(outcome(read(), error(400, "AccessDeniedException"))).message;
    assert!(denied.contains("dynamodb:GetItem on the table"), "{denied}");
}

/// What AWS answers where the endpoint and the region of the signature do not belong together.
#[test]
fn an_endpoint_of_another_region_is_told_as_that() {
    let body = r#"{"__type":"com.amazon.coral.service#InvalidSignatureException",
                   "message":"Credential should be scoped to a valid region, not 'eu-west-1'. "}"#;
    for operation in [create(), read()] {
        let outcome = outcome(operation, response(400, JSON, body));
        assert!(matches!(outcome, Outcome::Rejected(_)), "{outcome:?}");
        let fault = fault(outcome);
        assert_eq!(fault.code.as_deref(), Some("InvalidSignatureException"));
        assert!(fault.message.contains("set region to that of the endpoint"), "{fault}");
        assert!(!fault.message.contains("scoped"), "what others say is not repeated");
    }
}

#[test]
fn expired_credentials_are_asked_for_anew_once() {
    let store = store();
    let mut exchange = store.begin(create());
    send(&store, &mut exchange);
    let expired = error(400, "ExpiredTokenException");
    assert_eq!(store.answer(&mut exchange, expired.clone(), NOW_MS), Next::Refresh);
    send(&store, &mut exchange);
    match store.answer(&mut exchange, expired, NOW_MS) {
        Next::Done(Answer { outcome: Outcome::Rejected(fault), .. }) => {
            assert!(fault.message.contains("credentials provider"), "{}", fault.message);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_that_the_service_does_not_know_is_asked_for_anew_once_in_ten_seconds() {
    for code in ["UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException"]
    {
        let store = store();
        let asked = [0, 100, 9_999, 10_000].map(|ms| {
            let mut exchange = store.begin(create());
            send(&store, &mut exchange);
            store.answer(&mut exchange, error(400, code), NOW_MS + ms) == Next::Refresh
        });
        assert_eq!(asked, [true, false, false, true], "{code}");
    }
}

#[test]
fn a_wrong_clock_is_corrected_by_the_answer_and_the_request_signed_anew() {
    let store = store();
    let mut exchange = store.begin(read());
    let wrong_ms = NOW_MS - 86_400_000;
    let request = store.request(&mut exchange, &credentials(), wrong_ms).expect("it can be signed");
    let signed_at = |request: &Request| {
        request.headers.iter().find(|(name, _)| name == "x-amz-date").map(|(_, at)| at.clone())
    };
    assert_eq!(signed_at(&request), Some("20251120T100000Z".to_owned()));
    let skewed = error(400, "InvalidSignatureException");
    assert_eq!(store.answer(&mut exchange, skewed, wrong_ms), Next::Again);
    let request = store.request(&mut exchange, &credentials(), wrong_ms).expect("it can be signed");
    assert_eq!(signed_at(&request), Some(calendar::sigv4(NOW_S)));
}

#[test]
fn a_body_that_is_no_record_is_not_sent() {
    let store = store();
    for body in [&b"\xff\x00"[..], b"", b"{}", br#"{"leaderID":""}"#] {
        let operation = Operation::Write { body: body.to_vec(), condition: Condition::Absent };
        let sent = store.request(&mut store.begin(operation), &credentials(), NOW_MS);
        let message = sent.expect_err("there is no owner").message;
        assert!(message.contains("nothing was sent"), "{message}");
    }
}

#[test]
fn options_that_cannot_be_used_are_named_with_their_rule() {
    let refused = |change: &dyn Fn(&mut DynamoDbConfig)| -> ConfigError {
        let mut config = config();
        change(&mut config);
        DynamoDb::new(config).expect_err("it can't be used")
    };
    for table in ["", "ab", "a b c", "tâble", &"x".repeat(256), "arn:aws:dynamodb:table/x"] {
        assert_eq!(refused(&|config| config.table = table.to_owned()).field, "table", "{table}");
    }
    for id in ["", "a\nb", &"x".repeat(1_025)] {
        assert_eq!(refused(&|config| config.shard_id = id.to_owned()).field, "lockfilePath");
    }
    for lease_ms in [0, 999, 3_600_001] {
        assert_eq!(refused(&|config| config.lease_ms = lease_ms).field, "leaderTimeout");
    }
    for region in ["auto", "EU", "a b"] {
        assert_eq!(refused(&|config| config.region = Some(region.to_owned())).field, "region");
    }
    let plain = refused(&|config| config.endpoint = Some("http://dynamo.example".to_owned()));
    assert_eq!(plain.field, "endpoint");
    let china = DynamoDbConfig { region: Some("cn-north-1".to_owned()), ..config() };
    let china = DynamoDb::new(china).expect("a region of AWS").describe();
    assert_eq!(china, "DynamoDB table \"locks\" at https://dynamodb.cn-north-1.amazonaws.com.cn");
}
