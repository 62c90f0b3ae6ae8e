//! What each answer of Route 53 means.

use edgelect::lease::{Flaw, Lease, Reading, Remains};
use edgelect::protocol::{Next, Protocol};
use edgelect::request::{Body, Response};
use edgelect::store::route53::{Route53, Route53Config, check_owner};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};
use edgelect::{Credentials, lease};

/// Fri, 21 Nov 2025 10:00:00 GMT
const NOW_MS: u64 = 1_763_719_200_000;
const DATE: &str = "Fri, 21 Nov 2025 10:00:00 GMT";
const RECORD: &str = "<ResourceRecordSet><Name>lock.jobs.example.com.</Name><Type>TXT</Type>\
<TTL>60</TTL><ResourceRecords>\
                      VALUES</ResourceRecords></ResourceRecordSet>";

fn config() -> Route53Config {
    Route53Config {
        endpoint: None,
        hosted_zone_id: "/hostedzone/Z1234567890ABC".to_owned(),
        record_prefix: "lock".to_owned(),
        domain_name: "example.com.".to_owned(),
        shard_id: "jobs".to_owned(),
        lease_ms: 15_000,
    }
}

fn store() -> Route53 {
    Route53::new(config()).unwrap()
}

fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: Some("the-token".to_owned()),
    }
}

fn response(status: u16, body: &str) -> Response {
    let headers = vec![("date".to_owned(), DATE.to_owned())];
    Response { status, headers, body: Body { bytes: body.into(), truncated: false } }
}

fn error(status: u16, code: &str, message: &str) -> Response {
    let body = format!(
        "<?xml version=\"1.0\"?>\n<ErrorResponse xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><Error>\
         <Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>\
         <RequestId>1</RequestId></ErrorResponse>"
    );
    response(status, &body)
}

fn listing(values: &[&str]) -> Response {
    let escape = |value: &&str| value.replace('&', "&amp;").replace('"', "&quot;");
    let values: Vec<String> = values
        .iter()
        .map(|value| format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", escape(value)))
        .collect();
    listing_of(&RECORD.replace("VALUES", &values.concat()))
}

fn listing_of(sets: &str) -> Response {
    let body = format!(
        "<?xml version=\"1.0\"?>\n<ListResourceRecordSetsResponse xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">\
         <ResourceRecordSets>{sets}</ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>1</MaxItems>\
         </ListResourceRecordSetsResponse>"
    );
    response(200, &body)
}

fn changed() -> Response {
    response(
        200,
        "<ChangeResourceRecordSetsResponse><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status></ChangeInfo>\
         </ChangeResourceRecordSetsResponse>",
    )
}

fn read() -> Operation {
    Operation::Read { unless: None }
}

fn body(id: &str, session: &str, sequence: u64, term: u64) -> Vec<u8> {
    format!(
        "{{\"leaderID\":\"{id}\",\"lastUpdated\":\"2025-11-21T10:00:00Z\",\"session\":\"{session}\",\
         \"sequence\":{sequence},\"term\":{term},\"leaseMs\":15000,\"acquired\":\"2025-11-21T10:00:00Z\"}}"
    )
    .into_bytes()
}

fn create() -> Operation {
    Operation::Write { body: body("a", "s", 1, 5), condition: Condition::Absent }
}

fn update(version: &str) -> Operation {
    let condition = Condition::Match(Version(version.to_owned()));
    Operation::Write { body: body("a", "s", 2, 5), condition }
}

/// Sends an operation and answers it, again where that asks for fresh credentials.
fn told_at(store: &Route53, operation: Operation, response: Response, wall_ms: u64) -> Answer {
    let mut exchange = store.begin(operation);
    store.request(&mut exchange, &credentials(), wall_ms).expect("it can be sent");
    let mut next = store.answer(&mut exchange, response.clone(), wall_ms);
    if next == Next::Refresh {
        store.request(&mut exchange, &credentials(), wall_ms).expect("it can be sent");
        next = store.answer(&mut exchange, response, wall_ms);
    }
    match next {
        Next::Done(answer) => answer,
        other => panic!("{other:?}"),
    }
}

fn told(operation: Operation, response: Response) -> Outcome {
    told_at(&store(), operation, response, NOW_MS).outcome
}

fn rejected(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Rejected(fault) => fault,
        other => panic!("{other:?}"),
    }
}

fn unknown(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Unknown { cause, .. } => cause,
        other => panic!("{other:?}"),
    }
}

/// The text of the request that an operation is.
fn sent(operation: Operation) -> (String, String, String) {
    let store = store();
    let mut exchange = store.begin(operation);
    let request = store.request(&mut exchange, &credentials(), NOW_MS).unwrap();
    (request.method, request.url, String::from_utf8(request.body).unwrap())
}

/// The values that an operation writes.
fn written(store: &Route53, operation: Operation, wall_ms: u64) -> Vec<String> {
    let answer = told_at(store, operation, changed(), wall_ms);
    let Outcome::Written { version: Some(version) } = answer.outcome else { panic!("{answer:?}") };
    version.0.split('\n').map(str::to_owned).collect()
}

fn found(outcome: Outcome) -> (Version, Lease) {
    match outcome {
        Outcome::Found { version, reading: Reading::Lease(lease) } => (version, *lease),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_read_asks_for_one_record_set_from_this_name_on() {
    let (method, url, body) = sent(read());
    assert_eq!((method.as_str(), body.as_str()), ("GET", ""));
    assert_eq!(
        url,
        "https://route53.amazonaws.com/2013-04-01/hostedzone/Z1234567890ABC/rrset\
        ?maxitems=1&name=lock.jobs.example.com.&type=TXT"
    );
}

#[test]
fn a_create_creates_and_an_update_deletes_what_was_read_and_creates() {
    let (method, url, created) = sent(create());
    assert_eq!(method, "POST");
    assert!(url.ends_with("/2013-04-01/hostedzone/Z1234567890ABC/rrset/"), "{url}");
    assert!(
        created.contains("<Action>CREATE</Action>") && !created.contains("DELETE"),
        "{created}"
    );
    // 10:00:00 plus the lease, rounded up, and one second.
    assert!(created.contains("<Value>&quot;a 1763719216&quot;</Value>"), "{created}");
    assert!(created.contains("<Name>lock.jobs.example.com</Name><Type>TXT</Type><TTL>60</TTL>"));
    let (_, _, updated) = sent(update("300\n\"v=spf1 -all\"\n\"x\" \"y\""));
    let old = "<Action>DELETE</Action><ResourceRecordSet><Name>lock.jobs.example.com</Name>\
    <Type>TXT</Type><TTL>300</TTL>\
               <ResourceRecords><ResourceRecord><Value>&quot;v=spf1 -all&quot;</Value></ResourceRecord><ResourceRecord>\
               <Value>&quot;x&quot; &quot;y&quot;</Value></ResourceRecord></ResourceRecords>";
    assert!(updated.contains(old), "{updated}");
    assert!(updated.find("DELETE") < updated.find("CREATE"));
}

#[test]
fn signatures_name_the_service_and_its_one_region() {
    let store = store();
    let request = store.request(&mut store.begin(read()), &credentials(), NOW_MS).unwrap();
    let authorization = request.headers.iter().find(|(name, _)| name == "authorization").unwrap();
    assert!(
        authorization.1.contains("/20251121/us-east-1/route53/aws4_request"),
        "{authorization:?}"
    );
}

#[test]
fn an_own_record_comes_back_as_it_was_written() {
    let store = store();
    let values = written(&store, create(), NOW_MS);
    assert_eq!(values[0], "\"a 1763719216\"");
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    let (version, lease) = found(told_at(&store, read(), listing(&texts), NOW_MS).outcome);
    assert_eq!(version.0, values.join("\n"));
    assert_eq!(Reading::Lease(Box::new(lease)), lease::read(&body("a", "s", 1, 5)));
    let known = Operation::Read { unless: Some(version) };
    assert_eq!(told(known, listing(&texts)), Outcome::Unchanged);
}

#[test]
fn a_value_that_comes_back_with_other_escapes_has_the_version_that_was_written() {
    let store = store();
    let values = written(&store, create(), NOW_MS);
    let escaped = [values[0].replace("a ", "\\141 "), values[1].clone()];
    let texts: Vec<&str> = escaped.iter().map(String::as_str).collect();
    let (version, _) = found(told_at(&store, read(), listing(&texts), NOW_MS).outcome);
    assert_eq!(version.0, values.join("\n"));
}

#[test]
fn a_tombstone_is_free_for_shardcoordinator_at_once() {
    let released = String::from_utf8(body("a", "s", 2, 5)).unwrap();
    let released =
        released.replace("2025-11-21T10:00:00Z\",\"session", "0001-01-01T00:00:00Z\",\"session");
    let body = released.into_bytes();
    let operation = Operation::Write { body, condition: Condition::Absent };
    assert_eq!(written(&store(), operation, NOW_MS)[0], "\"a 0\"");
}

#[test]
fn epochs_follow_the_services_time_and_not_the_own_clock() {
    let store = store();
    // This machine is an hour behind; storage time is what the election says.
    let own_ms = NOW_MS - 3_600_000;
    told_at(&store, read(), listing_of(""), own_ms);
    let body = String::from_utf8(body("a", "s", 1, 5)).unwrap();
    let body = body.replacen("10:00:00Z", "10:00:00.4Z", 1).into_bytes();
    let operation = Operation::Write { body, condition: Condition::Absent };
    assert_eq!(written(&store, operation, own_ms + 400)[0], "\"a 1763719217\"");
}

#[test]
fn neither_a_gateways_time_nor_a_step_of_the_own_clock_ends_a_lease_early_for_members_of_the_other_make()
 {
    let hour_ago = |status: u16, body: &str| Response {
        headers: vec![("date".to_owned(), "Fri, 21 Nov 2025 09:00:00 GMT".to_owned())],
        ..response(status, body)
    };
    for strange in [hour_ago(502, "<html>bad gateway</html>"), hour_ago(403, "denied")] {
        let store = store();
        told_at(&store, read(), listing_of(""), NOW_MS);
        unknown(told_at(&store, create(), strange, NOW_MS).outcome);
        assert_eq!(written(&store, create(), NOW_MS)[0], "\"a 1763719216\"");
    }
    let stepped = store();
    told_at(&stepped, read(), listing_of(""), NOW_MS);
    for step_ms in [-3_600_000, 3_600_000] {
        let wall_ms = NOW_MS.saturating_add_signed(step_ms);
        assert_eq!(written(&stepped, create(), wall_ms)[0], "\"a 1763719216\"", "{step_ms}");
    }
}

#[test]
fn s8_a_refusal_of_a_kind_that_nobody_knows_here_leaves_a_write_unknown() {
    for (status, code) in [
        (400, "RequestTimeout"),
        (409, "OperationAborted"),
        (409, "AccessDenied"),
        (400, "SlowDown"),
        (400, "SomethingOfLater"),
    ] {
        unknown(told(create(), error(status, code, "no")));
    }
    assert_eq!(
        rejected(told(read(), error(400, "SomethingOfLater", "no"))).kind,
        FaultKind::Nonsense
    );
}

#[test]
fn a_foreign_owner_that_could_not_be_ours_is_waited_out_to_its_epoch_all_the_same() {
    for owner in ["x".repeat(244), "~host".to_owned(), "a\\\\b".to_owned()] {
        let lease = found(told(read(), listing(&[&format!("\"{owner} 1763719240\"")]))).1;
        assert_eq!((lease.lease_ms, lease.session), (Some(42_000), None), "{owner}");
    }
}

#[test]
fn the_name_is_found_whatever_its_case_and_only_as_a_txt_record() {
    let foreign = "<ResourceRecord><Value>&quot;w 1763719210&quot;</Value></ResourceRecord>";
    let set = RECORD.replace("VALUES", foreign);
    let upper = set.replace("lock.jobs", "Lock.JOBS");
    assert_eq!(found(told(read(), listing_of(&upper))).1.leader_id, "w");
    for other in [
        "".to_owned(),
        set.replace("lock.jobs.", "lock.jobs2."),
        set.replace("lock.jobs.", "\\052.jobs."),
        set.replace(">TXT<", ">SPF<"),
    ] {
        assert_eq!(told(read(), listing_of(&other)), Outcome::Missing, "{other}");
    }
}

#[test]
fn a_foreign_record_has_no_term_and_a_lease_no_shorter_than_the_own() {
    let lease = |epoch: u64| found(told(read(), listing(&[&format!("\"w {epoch}\"")]))).1;
    let (near, far) = (lease(1_763_719_205), lease(1_763_719_240));
    assert_eq!((near.leader_id.as_str(), near.term, near.session), ("w", None, None));
    // That second itself, and one by which their clocks may differ.
    assert_eq!((near.lease_ms, far.lease_ms), (Some(15_000), Some(42_000)));
    assert_eq!(lease(1_763_719_200 + 7_200).lease_ms, Some(7_202_000), "longer than any of ours");
    assert_eq!(lease(u64::MAX).lease_ms, Some(365 * 24 * 3_600_000));
}

#[test]
fn a_foreign_lease_counts_from_the_answer_that_first_showed_it() {
    let store = store();
    let foreign = listing(&["\"w 1763719240\""]);
    let first = found(told_at(&store, read(), foreign.clone(), NOW_MS).outcome).1;
    let later = Response {
        headers: vec![("date".to_owned(), "Fri, 21 Nov 2025 10:00:25 GMT".to_owned())],
        ..foreign
    };
    let second = found(told_at(&store, read(), later, NOW_MS + 25_000).outcome).1;
    assert_eq!((first.lease_ms, second.lease_ms), (Some(42_000), Some(42_000)));
}

#[test]
fn anything_else_in_the_record_is_unreadable_and_its_version_is_all_of_it() {
    for values in [
        vec!["\"v=spf1 -all\""],
        vec!["\"w 1763719210\"", "\"x 1763719210\""],
        vec!["\"a 1\"", "\"b\"", "\"~edgelect {}\""],
        vec!["\"w w 1763719210\""],
    ] {
        let outcome = told(read(), listing(&values));
        let reading = Reading::Unreadable(Flaw::Foreign, Remains::NONE);
        let version = Version(values.join("\n"));
        assert_eq!(outcome, Outcome::Found { version, reading }, "{values:?}");
    }
}

#[test]
fn s7_a_damaged_record_is_waited_out_until_the_epoch_beside_it() {
    let native = r#""~edgelect {\"leaderID\":7,\"term\":9,\"leaseMs\":20000}""#;
    // 10:00:00 is 1763719200.
    for (epoch, lease_ms) in [
        (1_763_719_240, 42_000),
        (1_763_719_200 + 7_200, 3_600_000),
        (0, 20_000),
        (1_763_719_200_000_u64, 20_000),
    ] {
        let outcome = told(read(), listing(&[&format!("\"w {epoch}\""), native]));
        let Outcome::Found { reading, .. } = outcome else { panic!("{outcome:?}") };
        let told = Remains { term: Some(9), lease_ms: Some(lease_ms) };
        assert_eq!(reading, Reading::Unreadable(Flaw::Foreign, told), "{epoch}");
    }
}

#[test]
fn a_record_that_no_batch_could_replace_is_not_ours_to_use() {
    let value = "<ResourceRecord><Value>&quot;w 1&quot;</Value></ResourceRecord>";
    let set = RECORD.replace("VALUES", value);
    let many = value.repeat(500).replace("w 1", &"x".repeat(60));
    for special in [
        set.replace("<TTL>", "<SetIdentifier>a</SetIdentifier><Weight>1</Weight><TTL>"),
        set.replace("<TTL>60</TTL>", "")
            .replace("<ResourceRecords>", "<AliasTarget/><ResourceRecords>"),
        RECORD.replace("VALUES", &many),
    ] {
        let fault = rejected(told(read(), listing_of(&special)));
        assert_eq!(fault.kind, FaultKind::Misconfigured);
        assert!(fault.message.contains("recordPrefix"), "{}", fault.message);
    }
}

#[test]
fn a_batch_whose_condition_did_not_hold_is_refused() {
    let set = "resource record set [name='lock.jobs.example.com.', type='TXT']";
    for message in [
        format!("Tried to create {set} but it already exists"),
        format!("[Tried to delete {set} but it was not found]"),
        format!(
            "[Tried to delete {set} but the values provided do not match the current values, \
            Tried to create {set} but it already exists]"
        ),
    ] {
        let message = message.replace('\'', "&apos;");
        assert_eq!(
            told(update("\"x\""), error(400, "InvalidChangeBatch", &message)),
            Outcome::Refused
        );
        let bare = format!(
            "<InvalidChangeBatch><Messages><Message>{message}</Message></Messages></InvalidChangeBatch>"
        );
        assert_eq!(told(create(), response(400, &bare)), Outcome::Refused);
    }
}

#[test]
fn a_batch_refused_for_another_reason_was_not_carried_out_and_says_why() {
    let batch = |message: &str| rejected(told(create(), error(400, "InvalidChangeBatch", message)));
    let outside =
        batch("RRSet with DNS name lock.jobs.example.com. is not permitted in zone example.net.");
    assert_eq!(outside.kind, FaultKind::Misconfigured);
    let cname = batch(
        "RRSet of type TXT with DNS name a. is not permitted because a conflicting RRSet of type CNAME with the \
                       same DNS name already exists in zone example.com.",
    );
    assert_eq!(cname.kind, FaultKind::Misconfigured, "no race was lost");
    let long = batch("Invalid Resource Record: FATAL problem: CharacterStringTooLong");
    assert_eq!(
        long.kind,
        FaultKind::Nonsense,
        "nothing final: a later version of Route 53 may word a lost race anew"
    );
    assert!(long.message.contains("CharacterStringTooLong"), "{}", long.message);
}

#[test]
fn a_busy_or_unwell_service_leaves_a_write_unknown() {
    for (status, code) in [
        (400, "Throttling"),
        (400, "ThrottlingException"),
        (400, "PriorRequestNotComplete"),
        (503, "ServiceUnavailable"),
        (500, "InternalFailure"),
    ] {
        let fault = unknown(told(create(), error(status, code, "Rate exceeded")));
        assert_eq!((fault.kind, fault.code.as_deref()), (FaultKind::Unavailable, Some(code)));
        unknown(told(read(), error(status, code, "Rate exceeded")));
    }
    unknown(told(create(), response(502, "<html>bad gateway</html>")));
    unknown(told(create(), response(429, "")));
}

#[test]
fn what_has_to_be_set_up_is_named_with_the_services_own_code() {
    let gone = rejected(told(read(), error(404, "NoSuchHostedZone", "No hosted zone found")));
    assert_eq!(gone.kind, FaultKind::Misconfigured);
    assert!(gone.message.contains("404 NoSuchHostedZone: create the zone"), "{}", gone.message);
    let denied = rejected(told(create(), error(403, "AccessDenied", "User is not authorized")));
    assert_eq!(denied.kind, FaultKind::Denied);
    assert!(denied.message.contains("route53:ChangeResourceRecordSets"), "{}", denied.message);
    // A wrong secret, and an unknown access key id.
    for code in ["SignatureDoesNotMatch", "InvalidClientTokenId"] {
        for (operation, action) in
            [(create(), "ChangeResourceRecordSets"), (read(), "ListResourceRecordSets")]
        {
            let fault = rejected(told(operation, error(403, code, "no")));
            assert_eq!((fault.kind, fault.code.as_deref()), (FaultKind::Denied, Some(code)));
            let said = format!("{action} was answered 403 {code}: check the credentials");
            assert!(fault.message.contains(&said), "{fault}");
        }
    }
    let input = rejected(told(read(), error(400, "InvalidInput", "no")));
    assert_eq!(input.kind, FaultKind::Misconfigured);
    for fault in [gone, denied, input] {
        assert!(fault.message.contains("lock.jobs.example.com"), "{}", fault.message);
        assert!(!fault.message.contains("the-secret") && !fault.message.contains("the-token"));
    }
}

#[test]
fn expired_credentials_are_refreshed_once_and_a_wrong_clock_is_learned() {
    let store = store();
    let mut exchange = store.begin(create());
    store.request(&mut exchange, &credentials(), NOW_MS).unwrap();
    let expired = || error(403, "ExpiredToken", "x");
    assert_eq!(store.answer(&mut exchange, expired(), NOW_MS), Next::Refresh);
    assert!(matches!(store.answer(&mut exchange, expired(), NOW_MS), Next::Done(_)));
    let mut exchange = store.begin(create());
    let skewed = error(403, "SignatureDoesNotMatch", "Signature expired");
    assert_eq!(store.answer(&mut exchange, skewed, NOW_MS - 3_600_000), Next::Again);
}

#[test]
fn what_route_53_did_not_say_leaves_a_write_unknown_and_a_read_rejected() {
    let big = Response {
        body: Body { bytes: vec![b'x'; Route53::ANSWER_LIMIT], truncated: true },
        ..changed()
    };
    let utf16: Vec<u8> =
        "<ChangeResourceRecordSetsResponse/>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let utf16 = Response { body: Body { bytes: utf16, truncated: false }, ..changed() };
    let whole = String::from_utf8(changed().body.bytes).unwrap();
    for (answer, what) in [
        (response(200, ""), "empty"),
        (response(200, "<html><body>Sign in</body></html>"), "a page"),
        (response(200, &whole[..whole.len() - 5]), "cut off"),
        (
            Response { body: Body { truncated: true, ..changed().body }, ..changed() },
            "longer than it was read",
        ),
        (response(200, &format!("<!DOCTYPE x [<!ENTITY a \"b\">]>{whole}")), "entities"),
        (response(200, &format!("{}{}", "<a>".repeat(40_000), "</a>".repeat(40_000))), "nested"),
        (error(200, "AccessDenied", ""), "an error with the status of a success"),
        (listing_of(""), "an answer to another question"),
        (response(302, ""), "a redirect"),
        (response(403, "denied"), "a gateway"),
        (response(404, "not found"), "a web server"),
        (response(400, "{\"message\":\"no\"}"), "JSON"),
        (big, "huge"),
        (utf16, "another encoding"),
    ] {
        unknown(told(create(), answer.clone()));
        if what != "an answer to another question" {
            assert_eq!(rejected(told(read(), answer)).kind, FaultKind::Nonsense, "{what}");
        }
    }
    rejected(told(read(), changed()));
    let silent = Fault::new(FaultKind::Network, "reset");
    let store = store();
    let mut exchange = store.begin(create());
    unknown(store.silence(&mut exchange, silent).outcome);
}

#[test]
fn an_earlier_record_than_one_that_was_seen_says_nothing_for_a_while() {
    let store = store();
    let texts = |values: &[String]| values.to_vec();
    let write = |session: &str, sequence, term| {
        let body = body("a", session, sequence, term);
        let operation = Operation::Write { body, condition: Condition::Absent };
        // A store of its own: nothing is learned from this.
        texts(&written(&self::store(), operation, NOW_MS))
    };
    let show = |values: &[String], wall_ms| {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        told_at(&store, read(), listing(&values), wall_ms).outcome
    };
    let (old, before, now) = (write("r", 9, 4), write("s", 1, 5), write("s", 2, 5));
    assert_eq!(found(show(&now, NOW_MS)).1.sequence, 2);
    for earlier in [&old, &before] {
        let fault = unknown(show(earlier, NOW_MS + 1_000));
        assert!(fault.message.contains("earlier record"), "{}", fault.message);
    }
    assert_eq!(found(show(&now, NOW_MS + 2_000)).1.sequence, 2);
    assert_eq!(found(show(&write("t", 1, 6), NOW_MS + 3_000)).1.term, Some(6));
    unknown(show(&now, NOW_MS + 4_000));
    assert_eq!(
        found(show(&now, NOW_MS + 700_000)).1.term,
        Some(5),
        "a restored record is met one day"
    );
}

#[test]
fn absence_soon_after_an_accepted_write_says_nothing_until_another_record_was_seen() {
    let gone = |store: &Route53, after_ms| {
        told_at(store, read(), listing_of(""), NOW_MS + after_ms).outcome
    };
    let live = store();
    written(&live, create(), NOW_MS);
    assert!(unknown(gone(&live, 59_000)).message.contains("shows no record"));
    assert_eq!(gone(&live, 61_000), Outcome::Missing);
    let overtaken = store();
    written(&overtaken, create(), NOW_MS);
    told_at(&overtaken, read(), listing(&["\"w 1763719230\""]), NOW_MS + 16_000);
    assert_eq!(gone(&overtaken, 20_000), Outcome::Missing, "its release deletes the record");
}

#[test]
fn names_that_can_not_be_a_record_are_refused_with_the_rule() {
    let refused = |change: fn(&mut Route53Config)| {
        let mut config = config();
        change(&mut config);
        Route53::new(config)
            .map(|store| store.record_name().to_owned())
            .map_err(|error| error.field)
    };
    assert_eq!(refused(|_| {}), Ok("lock.jobs.example.com".to_owned()));
    let dotted = refused(|config| config.shard_id = "a_b.c-1".to_owned());
    assert_eq!(dotted, Ok("lock.a_b.c-1.example.com".to_owned()));
    for shard in ["", "a b", "a/b", ".a", "a.", "a..b", "Jobs", "ü", "a*", "a\n"] {
        let config = Route53Config { shard_id: shard.to_owned(), ..config() };
        assert_eq!(Route53::new(config).unwrap_err().field, "lockfilePath", "{shard:?}");
    }
    let long = |label: usize| Route53Config { shard_id: "x".repeat(label), ..config() };
    assert!(Route53::new(long(63)).is_ok() && Route53::new(long(64)).is_err());
    let labels = |shard: &str| Route53Config { shard_id: shard.to_owned(), ..config() };
    let whole = vec!["x".repeat(59); 4].join(".");
    assert!(Route53::new(labels(&whole[..237])).is_ok() && Route53::new(labels(&whole)).is_err());
    assert_eq!(
        refused(|config| config.hosted_zone_id = "Z/../x".to_owned()),
        Err("hostedZoneId".to_owned())
    );
    assert_eq!(
        refused(|config| config.record_prefix = String::new()),
        Err("recordPrefix".to_owned())
    );
    assert_eq!(
        refused(|config| config.domain_name = "exa mple".to_owned()),
        Err("domainName".to_owned())
    );
    assert_eq!(refused(|config| config.lease_ms = 999), Err("leaseMs".to_owned()));
    assert_eq!(
        refused(|config| config.endpoint = Some("http://example.com".to_owned())),
        Err("endpoint".to_owned())
    );
    let probe = format!("jobs.probe-{}", "0".repeat(32));
    assert_eq!(store().at(&probe).unwrap().record_name(), format!("lock.{probe}.example.com"));
}

#[test]
fn an_owner_id_with_a_space_is_refused_and_never_written() {
    let error = check_owner("my host").unwrap_err();
    assert_eq!(error.field, "serverId");
    assert!(error.rule.contains("no space"), "{error}");
    assert!(check_owner("my-host").is_ok());
    let store = store();
    let condition = Condition::Absent;
    let mut exchange =
        store.begin(Operation::Write { body: body("my host", "s", 1, 5), condition });
    let fault = store.request(&mut exchange, &credentials(), NOW_MS).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Misconfigured);
    assert!(
        fault.message.contains("nothing was sent") && fault.message.contains("no space"),
        "{fault}"
    );
    let answer = store.unsent(&mut exchange, fault);
    rejected(answer.outcome);
}

#[test]
fn a_version_that_this_store_never_gave_is_not_sent() {
    let store = store();
    for version in ["", "*", "x", "60\n"] {
        let mut exchange = store.begin(update(version));
        let fault = store.request(&mut exchange, &credentials(), NOW_MS).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Nonsense, "{version}");
    }
}
