//! What each answer of Route 53 means.

use edgelect::lease::{self, Flaw, Lease, Reading, Remains};
use edgelect::protocol::Protocol;
use edgelect::request::Response;
use edgelect::store::route53::{Route53, Route53Config, check_owner};
use edgelect::store::{Condition, Fault, FaultKind, Operation, Outcome, Version};

use crate::answers::told::Means::{Missing, Refused, Rejected, Unknown, Unsure};
use crate::answers::told::{
    self, DATE, NOW_MS, Talk, all_say, credentials, cut, fault, found_in, header, lease_in, mean,
    read, read_unless, refreshes, sent, told, told_at, url, with, write_lease,
};

const XMLNS: &str = "xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"";
const RECORD: &str = "<ResourceRecordSet><Name>lock.jobs.example.com.</Name><Type>TXT</Type>\
    <TTL>60</TTL><ResourceRecords>VALUES</ResourceRecords></ResourceRecordSet>";

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

fn response(status: u16, body: impl Into<Vec<u8>>) -> Response {
    told::response(status, &[("date", DATE)], body)
}

fn error(status: u16, code: &str, message: &str) -> Response {
    let error = format!("<Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>");
    let text = format!(
        "<?xml version=\"1.0\"?>\n<ErrorResponse {XMLNS}><Error>{error}</Error>\
         <RequestId>1</RequestId></ErrorResponse>"
    );
    response(status, text)
}

fn listing(values: &[&str]) -> Response {
    let value = |value: &&str| {
        let value = value.replace('&', "&amp;").replace('"', "&quot;");
        format!("<ResourceRecord><Value>{value}</Value></ResourceRecord>")
    };
    let values: String = values.iter().map(value).collect();
    listing_of(&RECORD.replace("VALUES", &values))
}

fn listing_of(sets: &str) -> Response {
    let text = format!(
        "<?xml version=\"1.0\"?>\n<ListResourceRecordSetsResponse {XMLNS}>\
         <ResourceRecordSets>{sets}</ResourceRecordSets><IsTruncated>false</IsTruncated>\
         <MaxItems>1</MaxItems></ListResourceRecordSetsResponse>"
    );
    response(200, text)
}

fn changed() -> Response {
    response(
        200,
        "<ChangeResourceRecordSetsResponse><ChangeInfo><Id>/change/C1</Id><Status>PENDING</Status>\
         </ChangeInfo></ChangeResourceRecordSetsResponse>",
    )
}

fn body(id: &str, session: &str, sequence: u64, term: u64) -> Vec<u8> {
    format!(
        "{{\"leaderID\":\"{id}\",\"lastUpdated\":\"2025-11-21T10:00:00Z\",\"session\":\"{session}\",\
         \"sequence\":{sequence},\"term\":{term},\"leaseMs\":15000,\"acquired\":\"2025-11-21T10:00:00Z\"}}"
    )
    .into_bytes()
}

fn create_of(body: impl Into<Vec<u8>>) -> Operation {
    write_lease(body, Condition::Absent)
}

fn create() -> Operation {
    create_of(body("a", "s", 1, 5))
}

fn update(version: &str) -> Operation {
    write_lease(body("a", "s", 2, 5), Condition::Match(Version(version.to_owned())))
}

fn outcome(operation: Operation, response: Response) -> Outcome {
    told(&store(), operation, response).outcome
}

#[track_caller]
fn unknown(outcome: Outcome) -> Fault {
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    fault(outcome)
}

fn written(store: &Route53, operation: Operation, wall_ms: u64) -> Vec<String> {
    let version = told::written(told_at(store, operation, changed(), wall_ms).outcome);
    version.0.split('\n').map(str::to_owned).collect()
}

fn shown(store: &Route53, values: &[String], wall_ms: u64) -> Outcome {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    told_at(store, read(), listing(&values), wall_ms).outcome
}

fn found(outcome: Outcome) -> (Version, Lease) {
    let (version, reading) = found_in(outcome);
    (version, lease_in(reading))
}

#[test]
fn a_read_asks_for_one_record_set_from_this_name_on_signed_for_the_services_one_region() {
    let request = sent(&store(), read());
    assert_eq!((request.method().as_str(), request.body().as_slice()), ("GET", &b""[..]));
    assert_eq!(
        url(&request),
        "https://route53.amazonaws.com/2013-04-01/hostedzone/Z1234567890ABC/rrset\
        ?maxitems=1&name=lock.jobs.example.com.&type=TXT"
    );
    let authorization = header(&request, "authorization").unwrap();
    assert!(authorization.contains("/20251121/us-east-1/route53/aws4_request"), "{authorization}");
}

#[test]
fn each_partition_of_aws_has_its_one_region() {
    for (host, region) in [
        ("route53.amazonaws.com.cn", "cn-northwest-1"),
        ("route53.us-gov.amazonaws.com", "us-gov-west-1"),
        ("route53.amazonaws.com", "us-east-1"),
    ] {
        let endpoint = Some(format!("https://{host}/"));
        let store = Route53::new(Route53Config { endpoint, ..config() }).unwrap();
        let authorization = header(&sent(&store, read()), "authorization").unwrap().to_owned();
        assert!(authorization.contains(&format!("/{region}/route53/")), "{authorization}");
    }
}

#[test]
fn a_create_creates_and_an_update_deletes_what_was_read_and_creates() {
    let batch = |operation| {
        let request = sent(&store(), operation);
        let zone = "https://route53.amazonaws.com/2013-04-01/hostedzone/Z1234567890ABC/rrset/";
        assert_eq!((request.method().as_str(), url(&request).as_str()), ("POST", zone));
        String::from_utf8(request.into_body()).unwrap()
    };
    let created = batch(create());
    assert!(created.contains("<Action>CREATE</Action>") && !created.contains("DELETE"));
    // 10:00:00 plus the lease, rounded up, and one second.
    assert!(created.contains("<Value>&quot;a 1763719216&quot;</Value>"), "{created}");
    assert!(created.contains("<Name>lock.jobs.example.com</Name><Type>TXT</Type><TTL>60</TTL>"));
    let updated = batch(update("300\n\"v=spf1 -all\"\n\"x\" \"y\""));
    let old = "<Action>DELETE</Action><ResourceRecordSet><Name>lock.jobs.example.com</Name>\
               <Type>TXT</Type><TTL>300</TTL><ResourceRecords>\
               <ResourceRecord><Value>&quot;v=spf1 -all&quot;</Value></ResourceRecord>\
               <ResourceRecord><Value>&quot;x&quot; &quot;y&quot;</Value></ResourceRecord>\
               </ResourceRecords>";
    assert!(updated.contains(old), "{updated}");
    assert!(updated.find("DELETE") < updated.find("CREATE"));
}

#[test]
fn an_own_record_comes_back_as_it_was_written_also_with_other_escapes() {
    let store = store();
    let values = written(&store, create(), NOW_MS);
    assert_eq!(values[0], "\"a 1763719216\"");
    let (version, lease) = found(shown(&store, &values, NOW_MS));
    assert_eq!(version.0, values.join("\n"));
    assert_eq!(Reading::Lease(Box::new(lease)), lease::read(&body("a", "s", 1, 5)));
    let texts: Vec<&str> = values.iter().map(String::as_str).collect();
    assert_eq!(outcome(read_unless(&version), listing(&texts)), Outcome::Unchanged);
    let escaped = [values[0].replace("a ", "\\141 "), values[1].clone()];
    assert_eq!(found(shown(&store, &escaped, NOW_MS)).0, version);
}

#[test]
fn epochs_follow_the_services_time_and_not_the_own_clock_and_a_tombstones_is_zero() {
    let store = store();
    // This machine is an hour behind; storage time is what the election says.
    let own_ms = NOW_MS - 3_600_000;
    told_at(&store, read(), listing_of(""), own_ms);
    let body = String::from_utf8(body("a", "s", 1, 5)).unwrap();
    let late = body.replacen("10:00:00Z", "10:00:00.4Z", 1);
    assert_eq!(written(&store, create_of(late), own_ms + 400)[0], "\"a 1763719217\"");
    let released = body.replacen("2025-11-21T10:00:00Z", "0001-01-01T00:00:00Z", 1);
    assert_eq!(written(&store, create_of(released), own_ms)[0], "\"a 0\"");
}

#[test]
fn neither_a_gateways_time_nor_a_step_of_the_own_clock_ends_a_lease_early_for_members_of_the_other_make()
 {
    let store = store();
    told(&store, read(), listing_of(""));
    for (status, body) in [(502, "<html>bad gateway</html>"), (403, "denied")] {
        let hour_ago = with(response(status, body), "date", "Fri, 21 Nov 2025 09:00:00 GMT");
        unknown(told(&store, create(), hour_ago).outcome);
        for wall_ms in [NOW_MS, NOW_MS - 3_600_000, NOW_MS + 3_600_000] {
            assert_eq!(written(&store, create(), wall_ms)[0], "\"a 1763719216\"", "{wall_ms}");
        }
    }
}

#[test]
fn the_name_is_found_whatever_its_case_and_only_as_a_txt_record() {
    let foreign = "<ResourceRecord><Value>&quot;w 1763719210&quot;</Value></ResourceRecord>";
    let set = RECORD.replace("VALUES", foreign);
    let upper = set.replace("lock.jobs", "Lock.JOBS");
    assert_eq!(found(outcome(read(), listing_of(&upper))).1.leader_id, "w");
    let others = [set.replace("lock.jobs.", "lock.jobs2."), set.replace(">TXT<", ">SPF<")];
    mean(store, &[read()], others.map(|other| listing_of(&other)), Missing);
}

#[test]
fn a_foreign_lease_counts_from_the_answer_that_first_showed_it() {
    for (owner, epoch, lease_ms) in [
        ("w", 1_763_719_205_u64, 15_000),
        // That second itself, and one by which their clocks may differ.
        ("w", 1_763_719_240, 42_000),
        // No owner that could be ours.
        ("~host", 1_763_719_240, 42_000),
    ] {
        let store = store();
        let foreign = listing(&[&format!("\"{owner} {epoch}\"")]);
        let later = with(foreign.clone(), "date", "Fri, 21 Nov 2025 10:00:25 GMT");
        let stale = with(foreign.clone(), "date", "Thu, 01 Jan 1970 00:00:00 GMT");
        for (response, wall_ms) in [(foreign, NOW_MS), (later, NOW_MS + 25_000)] {
            let lease = found(told_at(&store, read(), response, wall_ms).outcome).1;
            assert_eq!(lease.lease_ms, Some(lease_ms), "{owner} {epoch} {wall_ms}");
            assert_eq!((lease.term, lease.session), (None, None), "{owner}");
            assert!(owner != "w" || lease.leader_id == "w");
        }
        let lease = found(told_at(&store, read(), stale, NOW_MS + 26_000).outcome).1;
        assert_eq!(lease.lease_ms, Some(3_600_000), "an odd clock keeps nobody waiting for good");
    }
}

#[test]
fn anything_else_in_the_record_is_unreadable_and_its_version_is_all_of_it() {
    for values in [vec!["\"v=spf1 -all\""], vec!["\"w 1763719210\"", "\"x 1763719210\""]] {
        let outcome = outcome(read(), listing(&values));
        let reading = Reading::Unreadable(Flaw::Foreign, Remains::NONE);
        let version = Version(values.join("\n"));
        assert_eq!(outcome, Outcome::Found { version, reading }, "{values:?}");
    }
}

#[test]
fn s7_a_damaged_record_is_waited_out_until_the_epoch_beside_it() {
    let native = r#""~edgelect {\"leaderID\":7,\"term\":9,\"leaseMs\":20000}""#;
    let now_s = NOW_MS / 1_000;
    for (epoch, lease_ms) in
        [(now_s + 40, 42_000), (now_s + 7_200, 3_600_000), (0, 20_000), (NOW_MS, 20_000)]
    {
        let (_, reading) = found_in(outcome(read(), listing(&[&format!("\"w {epoch}\""), native])));
        let told = Remains { term: Some(9), lease_ms: Some(lease_ms) };
        assert_eq!(reading, Reading::Unreadable(Flaw::Foreign, told), "{epoch}");
    }
}

#[test]
fn a_record_that_no_batch_could_replace_is_not_ours_to_use() {
    let value = "<ResourceRecord><Value>&quot;w 1&quot;</Value></ResourceRecord>";
    let set = RECORD.replace("VALUES", value);
    let many = value.repeat(500).replace("w 1", &"x".repeat(60));
    let weighted = set.replace("<TTL>", "<SetIdentifier>a</SetIdentifier><Weight>1</Weight><TTL>");
    let alias = set
        .replace("<TTL>60</TTL>", "")
        .replace("<ResourceRecords>", "<AliasTarget/><ResourceRecords>");
    let special = [weighted, alias, RECORD.replace("VALUES", &many)].map(|set| listing_of(&set));
    let faults = mean(store, &[read()], special, Rejected(FaultKind::Misconfigured));
    all_say(&faults, &["recordPrefix"]);
}

#[test]
fn a_batch_whose_condition_did_not_hold_is_refused() {
    let set = "resource record set [name='lock.jobs.example.com.', type='TXT']";
    for message in [
        format!("Tried to create {set} but it already exists"),
        format!("[Tried to delete {set} but it was not found]"),
        format!("Tried to delete {set} but the values provided do not match the current values"),
        format!(
            "[Tried to delete {set} but the values provided do not match the current values, \
            Tried to create {set} but it already exists]"
        ),
    ] {
        let message = message.replace('\'', "&apos;");
        let messages = format!("<Messages><Message>{message}</Message></Messages>");
        let bare = format!("<InvalidChangeBatch>{messages}</InvalidChangeBatch>");
        let answers = [error(400, "InvalidChangeBatch", &message), response(400, bare)];
        mean(store, &[create(), update("\"x\"")], answers, Refused);
    }
}

#[test]
fn a_batch_refused_for_another_reason_was_not_carried_out_and_says_why() {
    let elsewhere =
        "RRSet with DNS name lock.jobs.example.com. is not permitted in zone example.net.";
    // No race was lost.
    let other = "RRSet of type TXT with DNS name a. is not permitted because a conflicting RRSet of type \
                 CNAME with the same DNS name already exists in zone example.com.";
    let answers = [elsewhere, other].map(|message| error(400, "InvalidChangeBatch", message));
    mean(store, &[create()], answers, Rejected(FaultKind::Misconfigured));
    // Nothing final: a later version of Route 53 may word a lost race anew.
    let later = "Invalid Resource Record: FATAL problem: CharacterStringTooLong";
    let answers = [error(400, "InvalidChangeBatch", later)];
    let faults = mean(store, &[create()], answers, Rejected(FaultKind::Nonsense));
    all_say(&faults, &["CharacterStringTooLong"]);
    let secret = "5f".repeat(32);
    let quotes = [format!("Signature={secret}"), format!("no {secret}"), format!("TOKEN {secret}")];
    let answers = quotes.map(|message| error(400, "InvalidChangeBatch", &message));
    for fault in mean(store, &[create()], answers, Rejected(FaultKind::Nonsense)) {
        assert!(!fault.message.contains(&secret), "{fault}");
    }
}

#[test]
fn a_busy_or_unwell_service_leaves_a_write_unknown() {
    for (status, code) in [
        (400, "Throttling"),
        (400, "PriorRequestNotComplete"),
        (503, "ServiceUnavailable"),
        (500, "InternalFailure"),
    ] {
        let busy = [error(status, code, "Rate exceeded")];
        for fault in mean(store, &[create(), read()], busy, Unknown(FaultKind::Unavailable)) {
            assert_eq!(fault.code.as_deref(), Some(code));
            let under_way = code == "PriorRequestNotComplete";
            let said = if under_way { "another write is under way" } else { "the store is busy" };
            assert!(fault.message.contains(said) && !fault.message.contains("again"), "{fault}");
        }
    }
    // S8: nor does a refusal of a kind that nobody knows here say what became of it.
    let unforeseen = [(400, "RequestTimeout"), (409, "AccessDenied"), (400, "SomethingOfLater")];
    let [timeout, conflict, later] = unforeseen.map(|(status, code)| error(status, code, "no"));
    mean(store, &[read()], [later.clone()], Rejected(FaultKind::Nonsense));
    mean(store, &[create()], [timeout, conflict, later, response(429, "")], Unsure);
}

#[test]
fn what_has_to_be_set_up_is_named_with_the_services_own_code() {
    let (misconfigured, denied) = (FaultKind::Misconfigured, FaultKind::Denied);
    let [zone, right] =
        ["404 NoSuchHostedZone: create the zone", "route53:ChangeResourceRecordSets"];
    // A wrong secret, and an unknown access key id.
    let secret = "ListResourceRecordSets was answered 403 SignatureDoesNotMatch: check the secret \
                  access key, and that";
    let key = "ChangeResourceRecordSets was answered 403 InvalidClientTokenId: check the access key \
               id and the session token";
    let expired = "the credentials have expired, and no fresh ones came";
    for (operation, status, code, kind, said) in [
        (read(), 404, "NoSuchHostedZone", misconfigured, zone),
        (create(), 403, "AccessDenied", denied, right),
        (read(), 400, "InvalidInput", misconfigured, "400 InvalidInput"),
        (read(), 403, "SignatureDoesNotMatch", denied, secret),
        (create(), 403, "InvalidClientTokenId", denied, key),
        (read(), 403, "ExpiredToken", denied, expired),
        (create(), 403, "ExpiredToken", denied, expired),
        // S8: the service has not even looked at such a write.
        (create(), 400, "ExpiredToken", denied, expired),
        (create(), 400, "RequestExpired", denied, "set this machine's clock"),
        (read(), 403, "AccessDenied", denied, "need route53:ListResourceRecordSets on the zone"),
    ] {
        let faults = mean(store, &[operation], [error(status, code, "no")], Rejected(kind));
        assert_eq!(faults[0].code.as_deref(), Some(code));
        all_say(&faults, &[said, "lock.jobs.example.com"]);
    }
    // Expired credentials are refreshed once, and a wrong clock is learned.
    let expired = error(403, "ExpiredToken", "x");
    assert_eq!(refreshes(&store(), &create(), &expired, [0]), [true]);
    let store = store();
    let mut talk = Talk::at(&store, create(), NOW_MS - 3_600_000);
    talk.again(error(403, "SignatureDoesNotMatch", "Signature expired"));
}

#[test]
fn what_route_53_did_not_say_leaves_a_write_unknown_and_a_read_rejected() {
    let answers = vec![
        response(200, "<html><body>Sign in</body></html>"),
        cut(changed()),
        error(200, "AccessDenied", ""),
        response(302, ""),
        response(403, "denied"),
        response(404, "not found"),
        response(400, "{\"message\":\"no\"}"),
        cut(response(200, vec![b'x'; Route53::ANSWER_LIMIT])),
    ];
    mean(store, &[read()], answers.clone(), Rejected(FaultKind::Nonsense));
    mean(store, &[create()], answers, Unsure);
    // Answers to another question.
    mean(store, &[create()], [listing_of("")], Unsure);
    assert!(matches!(outcome(read(), changed()), Outcome::Rejected(_)));
    let (store, silent) = (store(), Fault::new(FaultKind::Network, "reset"));
    unknown(store.silence(&mut store.begin(create()), silent).outcome);
}

#[test]
fn an_earlier_record_than_one_that_was_seen_says_nothing_for_a_while() {
    let store = store();
    // By a store of its own: nothing is learned from this.
    let write = |session: &str, sequence, term| {
        written(&self::store(), create_of(body("a", session, sequence, term)), NOW_MS)
    };
    let show = |values: &[String], after_ms| shown(&store, values, NOW_MS + after_ms);
    let (old, before, now) = (write("r", 9, 4), write("s", 1, 5), write("s", 2, 5));
    assert_eq!(found(show(&now, 0)).1.sequence, 2);
    for earlier in [&old, &before] {
        all_say(&[unknown(show(earlier, 1_000))], &["earlier record"]);
    }
    assert_eq!(found(show(&now, 2_000)).1.sequence, 2);
    assert_eq!(found(show(&write("t", 1, 6), 3_000)).1.term, Some(6));
    unknown(show(&now, 4_000));
    assert_eq!(found(show(&now, 700_000)).1.term, Some(5), "a restored record is met one day");
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
    let named = |change: &dyn Fn(&mut Route53Config)| {
        let mut config = config();
        change(&mut config);
        let store = Route53::new(config).map_err(|error| error.field.clone())?;
        Ok(store.describe())
    };
    let shard = |shard: &str| named(&|config| config.shard_id = shard.to_owned());
    for id in ["jobs", "a_b.c-1", &"x".repeat(63)] {
        let told = shard(id).expect("a name");
        assert!(told.contains(&format!("lock.{id}.example.com")), "{told}");
    }
    for id in ["", "a b", "a/b", ".a", "a.", "a..b", "Jobs", "ü", "a*", "a\n", &"x".repeat(64)] {
        assert_eq!(shard(id), Err("lockfilePath".to_owned()), "{id:?}");
    }
    let whole = vec!["x".repeat(59); 4].join(".");
    assert!(shard(&whole[..237]).is_ok() && shard(&whole).is_err());
    type Change = fn(&mut Route53Config);
    let changes: [(_, Change); 5] = [
        ("hostedZoneId", |config| config.hosted_zone_id = "Z/../x".to_owned()),
        ("recordPrefix", |config| config.record_prefix = String::new()),
        ("domainName", |config| config.domain_name = "exa mple".to_owned()),
        ("leaseMs", |config| config.lease_ms = 999),
        ("endpoint", |config| config.endpoint = Some("http://example.com".to_owned())),
    ];
    for (field, change) in changes {
        assert_eq!(named(&change), Err(field.to_owned()));
    }
    let probe = format!("jobs.probe-{}", "0".repeat(32));
    assert!(shard(&probe).is_ok_and(|told| told.contains(&probe)));
}

#[test]
fn an_owner_id_with_a_space_is_refused_and_never_written() {
    let error = check_owner("my host").unwrap_err();
    assert_eq!(error.field, "serverId");
    assert!(error.rule.contains("no space"), "{error}");
    assert!(check_owner("my-host").is_ok());
    let store = store();
    let mut talk = Talk::new(&store, create_of(body("my host", "s", 1, 5)));
    let fault = talk.tries(&credentials()).unwrap_err();
    assert_eq!(fault.kind, FaultKind::Misconfigured);
    all_say(&[fault], &["nothing was sent", "no space"]);
}

#[test]
fn a_version_that_this_store_never_gave_is_not_sent() {
    for version in ["", "*", "x", "60\n"] {
        let fault = Talk::new(&store(), update(version)).tries(&credentials()).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Nonsense, "{version}");
    }
}
