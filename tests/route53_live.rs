//! The Route 53 store on real sockets beside ministack. `EDGELECT_TEST_AWS_*` say where it is.
#![cfg(feature = "route53")]

#[path = "../examples/native/host.rs"]
mod host;

use std::time::Duration;

use edgelect::calendar;
use edgelect::driver;
use edgelect::lease::{Lease, Reading, Stamp};
use edgelect::probe::{self, Finding, Step};
use edgelect::request::{Request, Response};
use edgelect::sigv4::{self, KeyCache};
use edgelect::store::{Condition, FaultKind, Operation, Outcome, Store, Version};
use edgelect::{
    Config, Credentials, Event, Handle, Host, Input, Route53Config, Route53Store, Settings,
    new_election,
};
use futures::future::join_all;
use host::Native;

const DOMAIN: &str = "coordination.example.com";

fn variable(name: &str) -> String {
    std::env::var(["EDGELECT_TEST_AWS_", name].concat())
        .expect("an AWS is named: run this beside js/tools/ministack.mjs")
}

fn native() -> Native {
    Native::new().expect("the client can be set up")
}

fn credentials() -> Credentials {
    Credentials {
        access_key_id: variable("ACCESS_KEY_ID"),
        secret_access_key: variable("SECRET_ACCESS_KEY"),
        session_token: None,
    }
}

/// A signed request to the service itself.
async fn raw(method: &str, path: &str, body: &str) -> Response {
    let host = native();
    let url = [variable("ENDPOINT").as_str(), "/2013-04-01", path].concat();
    let mut request = Request { body: body.into(), ..Request::new(method, url) };
    let (now_ms, keys) = (host.now().wall_ms, &mut KeyCache::default());
    sigv4::sign(&mut request, &credentials(), "us-east-1", "route53", now_ms, keys)
        .expect("it can be signed");
    host.fetch(request, 1 << 20).await.expect("it answers")
}

/// A new zone; its id.
async fn zone() -> String {
    let reference = hex::encode(native().random().expect("randomness"));
    let body = format!(
        "<CreateHostedZoneRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Name>{DOMAIN}</Name>\
         <CallerReference>{reference}</CallerReference></CreateHostedZoneRequest>"
    );
    let answer = raw("POST", "/hostedzone", &body).await;
    let text = String::from_utf8(answer.body.bytes).expect("XML is text");
    assert_eq!(answer.status, 201, "{text}");
    let (_, rest) = text.split_once("<Id>/hostedzone/").expect("it names the zone");
    rest.split('<').next().expect("there is always a first").to_owned()
}

fn config(zone: &str, shard: &str) -> Route53Config {
    Route53Config {
        endpoint: Some(variable("ENDPOINT")),
        hosted_zone_id: zone.to_owned(),
        record_prefix: "lock".to_owned(),
        domain_name: DOMAIN.to_owned(),
        shard_id: shard.to_owned(),
        lease_ms: 15_000,
    }
}

fn store(zone: &str, shard: &str) -> Route53Store<Native> {
    Route53Store::new(config(zone, shard), credentials(), native()).expect("the names are fine")
}

fn body(id: &str, session: &str, sequence: u64, term: u64, released: bool) -> Vec<u8> {
    let now_ms = i64::try_from(native().now().wall_ms).expect("this century");
    let updated = if released { "0001-01-01T00:00:00Z" } else { &calendar::rfc3339(now_ms) };
    format!(
        "{{\"leaderID\":\"{id}\",\"lastUpdated\":\"{updated}\",\"session\":\"{session}\",\"sequence\":{sequence},\
         \"term\":{term},\"leaseMs\":15000,\"theirs\":\"<&'é\\\\\\\"\"}}"
    )
    .into_bytes()
}

async fn write(store: &impl Store, body: Vec<u8>, condition: Condition) -> Outcome {
    store.perform(Operation::Write { body, condition }).await.outcome
}

async fn landed(store: &impl Store, body: Vec<u8>, condition: Condition) -> Version {
    match write(store, body, condition).await {
        Outcome::Written { version: Some(version) } => version,
        other => panic!("{other:?}"),
    }
}

async fn found(store: &impl Store) -> (Version, Lease) {
    match store.perform(Operation::Read { unless: None }).await.outcome {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, *lease),
        other => panic!("{other:?}"),
    }
}

/// What a resolver would be given: the strings of each value, joined.
async fn resolved(zone: &str, shard: &str) -> Vec<String> {
    let path = format!("/hostedzone/{zone}/rrset?maxitems=1&name=lock.{shard}.{DOMAIN}.&type=TXT");
    let answer = raw("GET", &path, "").await;
    let text = String::from_utf8(answer.body.bytes).expect("XML is text").replace("&quot;", "\"");
    let values = text.split("<Value>").skip(1).map(|rest| rest.split("</Value>").next().unwrap());
    values.map(|value| value.trim_matches('"').replace("\" \"", "")).collect()
}

#[tokio::test]
async fn a_record_is_created_updated_released_and_never_replaced_under_a_stale_condition() {
    let zone = zone().await;
    let store = store(&zone, "life");
    assert_eq!(store.perform(Operation::Read { unless: None }).await.outcome, Outcome::Missing);
    let first = landed(&store, body("a", "s", 1, 5, false), Condition::Absent).await;
    assert_eq!(
        write(&store, body("b", "t", 1, 5, false), Condition::Absent).await,
        Outcome::Refused
    );
    let (version, lease) = found(&store).await;
    assert_eq!((&version, lease.leader_id.as_str(), lease.sequence), (&first, "a", 1));
    assert_eq!(lease.extra.get("theirs"), Some("\"<&'é\\\\\\\"\""), "to the byte");
    let known = Operation::Read { unless: Some(first.clone()) };
    assert_eq!(store.perform(known).await.outcome, Outcome::Unchanged);
    let second = landed(&store, body("a", "s", 2, 5, false), Condition::Match(first.clone())).await;
    let stale = write(&store, body("b", "t", 2, 6, false), Condition::Match(first.clone())).await;
    assert_eq!(stale, Outcome::Refused);
    assert_eq!(found(&store).await.1.sequence, 2);
    let third = landed(&store, body("a", "s", 3, 5, true), Condition::Match(second)).await;
    assert!(found(&store).await.1.released());
    landed(&store, body("b", "t", 3, 6, false), Condition::Match(third)).await;
    let gone = self::store(&zone, "other");
    let update = write(&gone, body("a", "s", 1, 5, false), Condition::Match(first)).await;
    assert_eq!(update, Outcome::Refused, "there is nothing to delete");
    assert_eq!(gone.perform(Operation::Read { unless: None }).await.outcome, Outcome::Missing);
}

#[tokio::test]
async fn of_ten_that_race_for_one_version_one_wins() {
    let zone = zone().await;
    let store = store(&zone, "race");
    let mut condition = Condition::Absent;
    for round in 1..=5 {
        let write = |worker: u64| {
            let (store, condition) = (self::store(&zone, "race"), condition.clone());
            async move {
                let body = body(&format!("w{worker}"), "s", 10 * round + worker, round, false);
                write(&store, body, condition).await
            }
        };
        let outcomes = join_all((0..10).map(write)).await;
        let won = outcomes.iter().filter(|one| matches!(one, Outcome::Written { .. })).count();
        let lost = outcomes.iter().filter(|one| **one == Outcome::Refused).count();
        assert_eq!((won, lost), (1, 9), "{outcomes:?}");
        condition = Condition::Match(found(&store).await.0);
    }
}

#[tokio::test]
async fn a_missing_zone_and_an_owner_with_a_space_are_named_and_nothing_is_written() {
    let nowhere = store("ZNOSUCHZONE", "life");
    for operation in [
        Operation::Read { unless: None },
        Operation::Write { body: body("a", "s", 1, 5, false), condition: Condition::Absent },
    ] {
        let Outcome::Rejected(fault) = nowhere.perform(operation).await.outcome else {
            panic!("there is no such zone");
        };
        assert_eq!(fault.kind, FaultKind::Misconfigured);
        assert!(fault.message.contains("404 NoSuchHostedZone: create the zone"), "{fault}");
    }
    let zone = zone().await;
    let store = store(&zone, "spaced");
    let spaced = write(&store, body("my host", "s", 1, 5, false), Condition::Absent).await;
    let Outcome::Rejected(fault) = spaced else { panic!("{spaced:?}") };
    assert!(fault.message.contains("no space"), "{fault}");
    assert_eq!(store.perform(Operation::Read { unless: None }).await.outcome, Outcome::Missing);
}

#[tokio::test]
async fn the_lock_is_seen_as_dns_shows_it_and_a_foreign_record_is_read() {
    let zone = zone().await;
    let store = store(&zone, "seen");
    let first = landed(&store, body("worker-1", "s", 1, 5, false), Condition::Absent).await;
    let shown = resolved(&zone, "seen").await;
    let (owner, epoch) = shown[0].split_once(' ').expect("owner and epoch");
    let now_s = native().now().wall_ms / 1_000;
    assert_eq!(owner, "worker-1");
    assert!((now_s + 5..now_s + 60).contains(&epoch.parse::<u64>().expect("seconds")), "{epoch}");
    assert!(shown[1].starts_with("~edgelect {"), "{shown:?}");
    // The emulator has no TestDNSAnswer and no name server; the day it has, this is to ask it.
    let asked =
        format!("/testdnsanswer?hostedzoneid={zone}&recordname=lock.seen.{DOMAIN}&recordtype=TXT");
    assert_ne!(raw("GET", &asked, "").await.status, 200);
    landed(&store, body("worker-1", "s", 2, 5, true), Condition::Match(first)).await;
    assert_eq!(resolved(&zone, "seen").await[0], "worker-1 0");
    let (version, _) = found(&store).await;
    let epoch = now_s + 40;
    let values: String = version
        .0
        .split('\n')
        .map(|value| {
            let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            format!("<ResourceRecord><Value>{value}</Value></ResourceRecord>")
        })
        .collect();
    let change = |action: &str, values: &str| {
        format!(
            "<Change><Action>{action}</Action><ResourceRecordSet><Name>lock.seen.{DOMAIN}</Name>\
            <Type>TXT</Type><TTL>60</TTL>\
         <ResourceRecords>{values}</ResourceRecords></ResourceRecordSet></Change>"
        )
    };
    let theirs = format!(
        "<ResourceRecord><Value>&quot;coordinator-2 {epoch}&quot;</Value></ResourceRecord>"
    );
    let changes = [change("DELETE", &values), change("CREATE", &theirs)].concat();
    let batch = format!(
        "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
        <ChangeBatch><Changes>\
         {changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
    );
    let answer = raw("POST", &format!("/hostedzone/{zone}/rrset/"), &batch).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body.bytes));
    let (_, lease) = found(&store).await;
    assert_eq!((lease.leader_id.as_str(), lease.term), ("coordinator-2", None));
    let lease_ms = lease.lease_ms.expect("it has an epoch");
    assert!((20_000..=42_000).contains(&lease_ms), "{lease_ms}");
}

fn settings(id: &str) -> Config {
    let settings = Settings {
        lockfile_path: Some("elected".to_owned()),
        server_id: Some(id.to_owned()),
        ..Settings::default()
    };
    Config::new(&settings).expect("the settings are fine")
}

#[tokio::test]
async fn c26_the_emulator_passes_the_probe_on_a_shard_of_its_own() {
    let (zone, host) = (zone().await, native());
    let shard = probe::key("elected", &host).expect("randomness");
    let object = store(&zone, "elected").at(&shard).expect("it is a label");
    let (settings, effort) = (settings("a"), probe::Effort::thorough(5));
    let report = probe::probe(&object, &host, &settings, effort, |_| {}).await.expect("randomness");
    let judged = report.judged;
    let unclear = |one: &probe::Judged| matches!(one.finding, Finding::Unclear(_));
    assert!(judged.iter().all(|one| one.finding == Finding::Holds || unclear(one)), "{judged:?}");
    let steps: Vec<Step> = judged.iter().filter(|one| unclear(one)).map(|one| one.step).collect();
    assert_eq!(
        (judged.len(), steps),
        (10, vec![Step::Clocks]),
        "it has no Last-Modified: {judged:?}"
    );
}

#[tokio::test]
async fn an_elector_leads_on_a_started_group_and_leaves_a_tombstone() {
    let (zone, host) = (zone().await, native());
    let store = store(&zone, "elected");
    driver::init(&store, &host, &settings("worker-1")).await.expect("a new group");
    let election = new_election(&host, settings("worker-1")).expect("randomness");
    let handle = Handle::new(election);
    let (led, teller) = (std::cell::Cell::new(0), handle.clone());
    let running = driver::run(&handle, &store, &host, |event| match event {
        Event::Acquired { term } => {
            led.set(term);
            teller.tell(Input::Stop { park: false });
        }
        Event::Lost { term, .. } => teller.tell(Input::WorkEnded { term }),
        _ => {}
    });
    tokio::time::timeout(Duration::from_secs(60), running).await.expect("it stops by itself");
    let (_, lease) = found(&store).await;
    assert_eq!((lease.last_updated, lease.term), (Stamp::Released, Some(led.get())));
    assert_eq!(resolved(&zone, "elected").await[0], "worker-1 0");
}
