//! What each answer of an S3 store means, by the numbers of the scenarios.

use edgelect::config::ConfigError;
use edgelect::lease::{Flaw, MAX_RECORD_BYTES, Reading, Remains};
use edgelect::request::Body;
use edgelect::sigv4::Credentials;
use edgelect::store::s3::{Exchange, Next, S3, S3Config};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};
use http::{Request, Response};

/// Fri, 21 Nov 2025 10:00:00 GMT
const NOW_MS: u64 = 1_763_719_200_000;
const DATE: &str = "Fri, 21 Nov 2025 10:00:00 GMT";
const ETAG: &str = "\"9bb58f26192e4ba00f01e2e7b136bbd8\"";
const LEASE: &str = r#"{"leaderID":"a","sequence":1}"#;

fn config() -> S3Config {
    S3Config {
        endpoint: Some("https://store.example:9000".to_owned()),
        bucket: "jobs".to_owned(),
        key: "leader/group.json".to_owned(),
        ..S3Config::default()
    }
}

fn aws() -> S3 {
    let config = S3Config { endpoint: None, region: Some("eu-west-1".to_owned()), ..config() };
    S3::new(config).unwrap()
}

fn store() -> S3 {
    S3::new(config()).unwrap()
}

fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: Some("the-token".to_owned()),
    }
}

fn version() -> Version {
    Version(ETAG.to_owned())
}

fn read() -> Operation {
    Operation::Read { unless: None }
}

fn read_unless() -> Operation {
    Operation::Read { unless: Some(version()) }
}

fn create() -> Operation {
    Operation::Write { body: LEASE.into(), condition: Condition::Absent }
}

fn update() -> Operation {
    Operation::Write { body: LEASE.into(), condition: Condition::Match(version()) }
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Body { bytes: body.into(), truncated: false }).unwrap()
}

fn error(status: u16, code: &str) -> Response<Body> {
    response(status, &[("date", DATE)], &document(code, ""))
}

fn document(code: &str, more: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>the-message</Message>{more}<RequestId>1</RequestId></Error>"
    )
}

fn send(exchange: &mut Exchange, s3: &S3) -> Request<Vec<u8>> {
    exchange.request(s3, &credentials(), NOW_MS).unwrap().try_into().unwrap()
}

/// The answer to an operation whose every response is this one; the first must end it, or ask for fresh credentials.
fn answer(operation: Operation, response: Response<Body>) -> Answer {
    let s3 = store();
    let mut exchange = s3.begin(operation);
    send(&mut exchange, &s3);
    let next = exchange.answer(&s3, response.clone(), NOW_MS);
    if next != Next::Refresh {
        return done(next);
    }
    send(&mut exchange, &s3);
    done(exchange.answer(&s3, response, NOW_MS))
}

fn outcome(operation: Operation, response: Response<Body>) -> Outcome {
    answer(operation, response).outcome
}

fn done(next: Next) -> Answer {
    match next {
        Next::Done(answer) => answer,
        other => panic!("the exchange goes on: {other:?}"),
    }
}

#[derive(Debug, PartialEq)]
enum Kind {
    Rejected(FaultKind),
    Unknown(FaultKind),
    Refused,
    Missing,
    Other,
}

fn kind(outcome: &Outcome) -> Kind {
    match outcome {
        Outcome::Rejected(fault) => Kind::Rejected(fault.kind),
        Outcome::Unknown { cause, .. } => Kind::Unknown(cause.kind),
        Outcome::Refused => Kind::Refused,
        Outcome::Missing => Kind::Missing,
        _ => Kind::Other,
    }
}

fn fault(outcome: Outcome) -> Fault {
    match outcome {
        Outcome::Rejected(fault) | Outcome::Unknown { cause: fault, .. } => fault,
        other => panic!("no fault: {other:?}"),
    }
}

fn header<'a>(request: &'a Request<Vec<u8>>, name: &str) -> Option<&'a str> {
    request.headers().get(name).map(|value| value.to_str().unwrap())
}

#[test]
fn the_requests_carry_their_conditions_and_nothing_unsigned() {
    let s3 = store();
    let cases = [
        (read(), "GET", None, None, ""),
        (read_unless(), "GET", Some(ETAG), None, ""),
        (create(), "PUT", Some("*"), None, LEASE),
        (update(), "PUT", None, Some(ETAG), LEASE),
    ];
    for (operation, method, if_none_match, if_match, body) in cases {
        let request = send(&mut s3.begin(operation), &s3);
        assert_eq!(request.method().as_str(), method);
        assert_eq!(request.uri(), "https://store.example:9000/jobs/leader/group.json");
        assert_eq!(header(&request, "if-none-match"), if_none_match);
        assert_eq!(header(&request, "if-match"), if_match);
        assert_eq!(request.body(), body.as_bytes());
        assert_eq!(header(&request, "x-amz-security-token"), Some("the-token"));
        let authorization = header(&request, "authorization").unwrap();
        assert!(authorization.contains("/20251121/us-east-1/s3/aws4_request"), "{authorization}");
        for name in request.headers().keys().map(|name| name.as_str()) {
            let signed = format!("{name};");
            let last = format!("{name},");
            let covered = authorization.contains(&signed) || authorization.contains(&last);
            assert!(covered || name == "authorization", "{name} is not signed: {authorization}");
        }
    }
}

#[test]
fn c01_create_and_read_of_the_winner() {
    let written = outcome(create(), response(200, &[("etag", ETAG)], ""));
    assert_eq!(written, Outcome::Written { version: Some(version()) });
    assert_eq!(outcome(create(), error(412, "PreconditionFailed")), Outcome::Refused);
    match outcome(read(), response(200, &[("etag", ETAG)], LEASE)) {
        Outcome::Found { version: found, reading: Reading::Lease(lease) } => {
            assert_eq!((found, lease.leader_id.as_str()), (version(), "a"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(outcome(read(), error(404, "NoSuchKey")), Outcome::Missing);
}

#[test]
fn c03_an_error_status_after_a_write_may_hide_that_it_landed() {
    let unavailable = Kind::Unknown(FaultKind::Unavailable);
    for status in [500, 502, 503, 504, 507, 520, 599] {
        for body in ["", "<html>bad gateway</html>", &document("InternalError", "")] {
            let outcome = outcome(update(), response(status, &[], body));
            assert_eq!(kind(&outcome), unavailable, "{status} {body}");
        }
    }
    // A success that is an error inside.
    let inside = response(200, &[("etag", ETAG)], &document("InternalError", ""));
    assert_eq!(kind(&outcome(update(), inside)), Kind::Unknown(FaultKind::Nonsense));
    // A status after which it may have landed counts for more than the code.
    for code in ["AccessDenied", "ExpiredToken", "RequestTimeTooSkewed"] {
        for status in [200, 500, 503] {
            match kind(&outcome(update(), error(status, code))) {
                Kind::Unknown(_) => {}
                other => panic!("{status} {code}: {other:?}"),
            }
        }
    }
    // What nobody has foreseen is no failure of the write either.
    for status in [100, 202, 206, 226, 300, 302, 303, 402, 406, 410, 411, 418, 421, 425, 428, 451] {
        let outcome = outcome(update(), response(status, &[("etag", ETAG)], ""));
        assert_eq!(kind(&outcome), Kind::Unknown(FaultKind::Nonsense), "{status}");
    }
}

#[test]
fn c07_c08_an_update_of_a_deleted_record_is_refused_by_404_and_by_412() {
    assert_eq!(outcome(update(), error(404, "NoSuchKey")), Outcome::Refused);
    assert_eq!(outcome(update(), response(404, &[], "")), Outcome::Refused);
    assert_eq!(outcome(update(), error(412, "PreconditionFailed")), Outcome::Refused);
    assert_eq!(outcome(update(), response(412, &[], "")), Outcome::Refused);
    // Old MinIO.
    assert_eq!(outcome(create(), response(304, &[], "")), Outcome::Refused);
}

#[test]
fn c10_c11_a_conflict_is_refused_and_never_means_that_a_record_exists() {
    for operation in [create(), update()] {
        for code in ["ConditionalRequestConflict", "OperationAborted"] {
            assert_eq!(outcome(operation.clone(), error(409, code)), Outcome::Refused);
        }
        let other = outcome(operation, error(409, "InvalidBucketState"));
        assert_eq!(kind(&other), Kind::Unknown(FaultKind::Nonsense));
    }
    assert_eq!(kind(&outcome(read(), error(409, "X"))), Kind::Unknown(FaultKind::Unavailable));
}

#[test]
fn c12_c13_patience_is_asked_for_in_seconds_or_by_a_date_and_bounded() {
    let cases = [
        (vec![("retry-after", "7")], Some(7_000)),
        (vec![("retry-after", " 7 ")], Some(7_000)),
        (vec![("retry-after", "0")], Some(0)),
        (vec![("retry-after", "86400")], Some(300_000)),
        (vec![("retry-after", "18446744073709551615")], Some(300_000)),
        (vec![("retry-after", "99999999999999999999999")], None),
        (vec![("retry-after", "-1")], None),
        (vec![("retry-after", "soon")], None),
        (vec![("retry-after", "Fri, 21 Nov 2025 10:00:30 GMT"), ("date", DATE)], Some(30_000)),
        (vec![("retry-after", "Fri, 21 Nov 2025 09:00:00 GMT"), ("date", DATE)], Some(0)),
        (vec![("retry-after", "Fri, 21 Nov 2025 22:00:00 GMT"), ("date", DATE)], Some(300_000)),
        // Without the answer's own date it would be a comparison of two machines' clocks.
        (vec![("retry-after", "Fri, 21 Nov 2025 10:00:30 GMT")], None),
        (vec![], None),
    ];
    for (headers, expected) in cases {
        for (status, code) in [(503, "SlowDown"), (429, "TooManyRequests")] {
            for operation in [read(), update()] {
                match outcome(operation, response(status, &headers, &document(code, ""))) {
                    Outcome::Unknown { retry_after_ms, cause } => {
                        assert_eq!(retry_after_ms, expected, "{headers:?}");
                        assert_eq!(cause.kind, FaultKind::Unavailable);
                        assert_eq!(cause.code.as_deref(), Some(code));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    let bare = outcome(update(), response(429, &[], ""));
    assert_eq!(kind(&bare), Kind::Unknown(FaultKind::Unavailable));
    let damaged = outcome(update(), error(400, "RequestTimeout"));
    assert_eq!(kind(&damaged), Kind::Unknown(FaultKind::Unavailable));
}

#[test]
fn c14_a_store_without_conditional_writes_is_a_configuration_error_that_names_it() {
    let answers = [
        error(501, "NotImplemented"),
        error(400, "InvalidArgument"),
        error(400, "InvalidRequest"),
        error(400, "NotImplemented"),
        error(405, "NotImplemented"),
    ];
    for answer in answers {
        for operation in [create(), update()] {
            let fault = fault(outcome(operation, answer.clone()));
            assert_eq!(fault.kind, FaultKind::Misconfigured);
            assert!(fault.message.contains("S3 bucket \"jobs\" at https://store.example:9000"));
            assert!(fault.message.contains("conditional writes"), "{}", fault.message);
        }
    }
    let reading = outcome(read(), response(400, &[], "<html>"));
    assert_eq!(kind(&reading), Kind::Rejected(FaultKind::Nonsense), "a gateway's, perhaps");
}

#[test]
fn a_status_without_the_stores_own_error_document_says_nothing_of_what_became_of_a_write() {
    for status in [300, 301, 302, 307, 308, 400, 401, 402, 403, 405, 411, 418, 431, 451, 501] {
        for body in ["", "<html>Not Implemented</html>", "{\"message\":\"no\"}"] {
            for operation in [create(), update()] {
                let outcome = outcome(operation, response(status, &[], body));
                assert!(matches!(outcome, Outcome::Unknown { .. }), "{status} {body}: {outcome:?}");
            }
        }
        let told = kind(&outcome(read(), response(status, &[], "<html>")));
        let final_word = told == Kind::Rejected(FaultKind::Misconfigured);
        assert!(!final_word, "{status} to a read: {told:?}");
    }
}

#[test]
fn c15_denied_names_the_right_that_is_missing() {
    let fault = fault(outcome(update(), error(403, "AccessDenied")));
    assert_eq!((fault.kind, fault.status), (FaultKind::Denied, Some(403)));
    assert_eq!(fault.code.as_deref(), Some("AccessDenied"));
    assert!(fault.message.contains("s3:PutObject"), "{}", fault.message);
    for (status, code, advice) in [
        (403, "SignatureDoesNotMatch", "secret access key"),
        (403, "InvalidAccessKeyId", "access key id"),
        (401, "Unauthorized", "access key id"),
        (400, "InvalidAccessKeyId", "access key id"),
    ] {
        for operation in [read(), create(), update()] {
            let outcome = outcome(operation, error(status, code));
            assert_eq!(kind(&outcome), Kind::Rejected(FaultKind::Denied), "{status} {code}");
            assert!(self::fault(outcome).message.contains(advice));
        }
    }
    // A gateway may have judged the answer after the write.
    let gateway = outcome(update(), response(403, &[], "<html>forbidden</html>"));
    assert_eq!(kind(&gateway), Kind::Unknown(FaultKind::Denied));
}

#[test]
fn c16_a_missing_key_without_the_right_to_list_is_neither_missing_nor_found() {
    for response in [error(403, "AccessDenied"), response(403, &[], "")] {
        let fault = fault(outcome(read(), response));
        assert_eq!(fault.kind, FaultKind::Denied);
        assert!(fault.message.contains("s3:ListBucket"), "{}", fault.message);
        assert!(fault.message.contains("s3:GetObject"), "{}", fault.message);
    }
}

#[test]
fn a_web_page_is_no_record_and_no_denial_even_with_an_etag() {
    let kinds = ["text/html; charset=utf-8", "Text/HTML"];
    for (status, kind) in
        [200, 401, 403].into_iter().flat_map(|status| kinds.map(|kind| (status, kind)))
    {
        let headers = [("content-type", kind), ("etag", "\"page\"")];
        let fault = fault(outcome(read(), response(status, &headers, "<html>It works!</html>")));
        assert_eq!((fault.kind, fault.status), (FaultKind::Nonsense, Some(status)));
        assert!(fault.message.contains("check the endpoint"), "{}", fault.message);
    }
}

#[test]
fn s7_a_page_or_an_error_that_somebody_put_at_the_key_is_unreadable_and_no_wrong_endpoint() {
    for (kind, body) in [
        ("text/html; charset=utf-8", "<html>It works!</html>".to_owned()),
        ("application/xml", document("AccessDenied", "")),
        ("text/html", document("NoSuchKey", "")),
    ] {
        let mut headers =
            vec![("content-type", kind), ("etag", ETAG), ("x-amz-request-id", "18EA4A3E")];
        let found = outcome(read(), response(200, &headers, &body));
        let (version, reading) =
            (Version(ETAG.to_owned()), Reading::Unreadable(Flaw::NotJson, Remains::NONE));
        assert_eq!(found, Outcome::Found { version, reading }, "{body}");
        // Nothing is conditional on it without an ETag.
        headers.remove(1);
        let fault = fault(outcome(read(), response(200, &headers, &body)));
        assert!(fault.message.contains("no usable ETag"), "{fault}");
    }
    // Whatever came with the status of a success, the record is read back.
    let headers = [("etag", ETAG), ("x-amz-request-id", "18EA4A3E")];
    let error = outcome(update(), response(200, &headers, &document("InternalError", "")));
    assert_eq!(kind(&error), Kind::Unknown(FaultKind::Nonsense));
}

fn skewed(server_time: &str, date: Option<&str>) -> Response<Body> {
    let more = format!("<ServerTime>{server_time}</ServerTime>");
    let headers: Vec<_> = date.map(|date| ("date", date)).into_iter().collect();
    response(403, &headers, &document("RequestTimeTooSkewed", &more))
}

#[test]
fn c17_a_wrong_clock_is_corrected_for_signing_once() {
    let cases = [
        (skewed("2025-11-21T11:30:00Z", None), "20251121T113000Z"),
        (skewed("2025-11-21T08:00:00.500Z", None), "20251121T080000Z"),
        (skewed("garbage", Some("Fri, 21 Nov 2025 12:00:00 GMT")), "20251121T120000Z"),
        // The document is the store's own word, the header may be rewritten on the way.
        (skewed("2025-11-21T11:30:00Z", Some(DATE)), "20251121T113000Z"),
    ];
    for (response, expected) in cases {
        let s3 = store();
        let mut exchange = s3.begin(update());
        assert_eq!(header(&send(&mut exchange, &s3), "x-amz-date"), Some("20251121T100000Z"));
        assert_eq!(exchange.answer(&s3, response.clone(), NOW_MS), Next::Again);
        let again = send(&mut exchange, &s3);
        assert_eq!(header(&again, "x-amz-date"), Some(expected));
        assert_eq!(header(&again, "if-match"), Some(ETAG), "the condition is kept");
        // Not a second time in one exchange.
        let answer = done(exchange.answer(&s3, response, NOW_MS));
        assert_eq!(kind(&answer.outcome), Kind::Rejected(FaultKind::Denied));
        // The next operation begins with what was learned.
        let next = send(&mut s3.begin(read()), &s3);
        assert_eq!(header(&next, "x-amz-date"), Some(expected));
    }
}

#[test]
fn c17_c20_what_one_odd_answer_taught_is_given_up_when_the_store_refuses_it() {
    let region = response(400, &[("x-amz-bucket-region", "eu-bogus-1")], "");
    for odd in [skewed("2025-11-20T10:00:00Z", None), region] {
        let s3 = store();
        let signed = |exchange: &mut Exchange| {
            let request = send(exchange, &s3);
            let scope = header(&request, "authorization").unwrap().to_owned();
            scope.split("Signature=").next().unwrap().to_owned()
        };
        let mut exchange = s3.begin(read());
        let before = signed(&mut exchange);
        assert_eq!(exchange.answer(&s3, odd, NOW_MS), Next::Again);
        assert_ne!(signed(&mut exchange), before, "it is signed otherwise");
        let refused = error(403, "SignatureDoesNotMatch");
        if exchange.answer(&s3, refused.clone(), NOW_MS) == Next::Refresh {
            signed(&mut exchange);
            done(exchange.answer(&s3, refused, NOW_MS));
        }
        assert_eq!(signed(&mut s3.begin(read())), before, "as the settings say");
    }
}

#[test]
fn c17_without_any_time_in_the_answer_there_is_nothing_to_learn() {
    // R2's local endpoint sends neither.
    for response in [skewed("", None), skewed("1900-01-01T00:00:00Z", Some("yesterday"))] {
        let fault = fault(outcome(update(), response));
        assert_eq!(fault.kind, FaultKind::Denied);
        assert!(fault.message.contains("set this machine's clock"), "{}", fault.message);
    }
}

#[test]
fn c18_a_clock_that_is_put_right_later_is_learned_anew() {
    let s3 = store();
    let hour_ms = 3_600_000;
    let mut exchange = s3.begin(update());
    exchange.request(&s3, &credentials(), NOW_MS + hour_ms).unwrap();
    let response = || skewed("2025-11-21T10:00:00Z", None);
    assert_eq!(exchange.answer(&s3, response(), NOW_MS + hour_ms), Next::Again);
    let request =
        exchange.request(&s3, &credentials(), NOW_MS + hour_ms).unwrap().try_into().unwrap();
    assert_eq!(header(&request, "x-amz-date"), Some("20251121T100000Z"));

    let mut exchange = s3.begin(update());
    assert_eq!(header(&send(&mut exchange, &s3), "x-amz-date"), Some("20251121T090000Z"));
    assert_eq!(exchange.answer(&s3, response(), NOW_MS), Next::Again);
    assert_eq!(header(&send(&mut exchange, &s3), "x-amz-date"), Some("20251121T100000Z"));
}

#[test]
fn c17_no_clock_makes_the_offset_overflow() {
    for wall_ms in [0, u64::MAX] {
        let s3 = store();
        let mut exchange = s3.begin(read());
        exchange.request(&s3, &credentials(), wall_ms).unwrap();
        let next = exchange.answer(&s3, skewed("2025-11-21T10:00:00Z", None), wall_ms);
        if next == Next::Again {
            exchange.request(&s3, &credentials(), wall_ms).unwrap();
        }
    }
}

#[test]
fn c19_expired_credentials_are_refreshed_once() {
    for (status, code) in [
        (400, "ExpiredToken"),
        (403, "ExpiredToken"),
        (403, "ExpiredTokenException"),
        (400, "InvalidToken"),
        (400, "TokenRefreshRequired"),
    ] {
        for operation in [read(), create(), update()] {
            let s3 = store();
            let mut exchange = s3.begin(operation);
            send(&mut exchange, &s3);
            assert_eq!(exchange.answer(&s3, error(status, code), NOW_MS), Next::Refresh);
            send(&mut exchange, &s3);
            let answer = done(exchange.answer(&s3, error(status, code), NOW_MS));
            assert_eq!(kind(&answer.outcome), Kind::Rejected(FaultKind::Denied));
            assert!(fault(answer.outcome).message.contains("credentials provider"));
        }
    }
}

#[test]
fn a_key_that_the_store_does_not_know_is_asked_for_anew_once_in_ten_seconds() {
    for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "Unauthorized"] {
        let s3 = store();
        let refreshes = |wall_ms: u64| {
            let mut exchange = s3.begin(update());
            send(&mut exchange, &s3);
            let refreshed = exchange.answer(&s3, error(403, code), wall_ms) == Next::Refresh;
            if refreshed {
                send(&mut exchange, &s3);
                let answer = done(exchange.answer(&s3, error(403, code), wall_ms));
                assert_eq!(kind(&answer.outcome), Kind::Rejected(FaultKind::Denied));
            }
            refreshed
        };
        // A wall clock that was set back does not put the next question off for long.
        let asked = [0, 100, 9_999, 10_000, 10_001, 4_000, 0].map(|ms| refreshes(NOW_MS + ms));
        assert_eq!(asked, [true, false, false, true, false, false, true], "{code}");
        let mut exchange = s3.begin(read());
        send(&mut exchange, &s3);
        let expired = exchange.answer(&s3, error(400, "ExpiredToken"), NOW_MS);
        assert_eq!(expired, Next::Refresh, "what has expired is another matter");
    }
}

fn redirect(status: u16, location: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut headers = headers.to_vec();
    if !location.is_empty() {
        headers.push(("location", location));
    }
    response(status, &headers, &document("TemporaryRedirect", ""))
}

#[test]
fn c20_a_redirect_within_aws_is_signed_anew_with_its_condition() {
    let s3 = aws();
    let mut exchange = s3.begin(update());
    let first = send(&mut exchange, &s3);
    assert_eq!(first.uri(), "https://jobs.s3.eu-west-1.amazonaws.com/leader/group.json");
    let location = "https://jobs.s3-eu-central-1.amazonaws.com/leader/group.json?x=y";
    assert_eq!(exchange.answer(&s3, redirect(307, location, &[]), NOW_MS), Next::Again);
    let second = send(&mut exchange, &s3);
    assert_eq!(second.uri(), "https://jobs.s3-eu-central-1.amazonaws.com/leader/group.json");
    assert_eq!(header(&second, "if-match"), Some(ETAG));
    assert!(header(&second, "authorization").unwrap().contains("/eu-central-1/s3/"));
    assert_ne!(header(&first, "authorization"), header(&second, "authorization"));
    // A temporary redirect is not for the next operation.
    assert_eq!(send(&mut s3.begin(read()), &s3).uri(), first.uri());
}

#[test]
fn c20_a_permanent_redirect_is_remembered() {
    let body = document("PermanentRedirect", "<Endpoint>s3.eu-north-1.amazonaws.com</Endpoint>");
    let answers = [
        response(301, &[], &body),
        response(301, &[("x-amz-bucket-region", "eu-north-1")], ""),
        response(308, &[("location", "https://s3.dualstack.eu-north-1.amazonaws.com/")], ""),
    ];
    for answer in answers {
        let s3 = S3::new(S3Config {
            endpoint: Some("https://s3.amazonaws.com".to_owned()),
            path_style: Some(true),
            ..config()
        })
        .unwrap();
        let mut exchange = s3.begin(create());
        let uri = send(&mut exchange, &s3).uri().to_string();
        assert_eq!(uri, "https://s3.amazonaws.com/jobs/leader/group.json");
        assert_eq!(exchange.answer(&s3, answer, NOW_MS), Next::Again);
        for mut exchange in [exchange, s3.begin(create())] {
            let request = send(&mut exchange, &s3);
            assert!(request.uri().host().unwrap().ends_with("eu-north-1.amazonaws.com"));
            assert!(request.uri().path().ends_with("/jobs/leader/group.json"));
            assert_eq!(header(&request, "if-none-match"), Some("*"));
            assert!(header(&request, "authorization").unwrap().contains("/eu-north-1/s3/"));
        }
    }
}

#[test]
fn c20_a_fips_or_dual_stack_endpoint_is_not_left_for_a_plain_one() {
    let plain = "https://jobs.s3.us-west-2.amazonaws.com/";
    let region: &[(&str, &str)] = &[("x-amz-bucket-region", "us-west-2")];
    for kind in ["", "-fips", ".dualstack", "-fips.dualstack"] {
        let endpoint = format!("https://s3{kind}.us-east-1.amazonaws.com");
        let there = format!("https://jobs.s3{kind}.us-west-2.amazonaws.com/leader/group.json");
        for (status, headers) in [
            (301, region.to_vec()),
            (301, vec![("location", plain)]),
            (307, vec![("location", plain)]),
            (308, vec![("location", plain), region[0]]),
        ] {
            let config = S3Config { endpoint: Some(endpoint.clone()), ..config() };
            let s3 = S3::new(config).expect("a plain bucket");
            let mut exchange = s3.begin(create());
            let answer = response(status, &headers, "");
            assert_eq!(exchange.answer(&s3, answer, NOW_MS), Next::Again, "{kind} {headers:?}");
            let request = send(&mut exchange, &s3);
            assert_eq!(request.uri().to_string(), there, "{status} {headers:?}");
        }
    }
}

#[test]
fn c20_redirects_are_bounded() {
    let s3 = aws();
    let mut exchange = s3.begin(update());
    for hop in 0..2 {
        send(&mut exchange, &s3);
        let location = format!("https://jobs.s3.eu-south-{}.amazonaws.com/", hop + 1);
        assert_eq!(exchange.answer(&s3, redirect(307, &location, &[]), NOW_MS), Next::Again);
    }
    send(&mut exchange, &s3);
    let third = redirect(307, "https://jobs.s3.eu-west-3.amazonaws.com/", &[]);
    let answer = done(exchange.answer(&s3, third, NOW_MS));
    assert_eq!(kind(&answer.outcome), Kind::Rejected(FaultKind::Misconfigured));
}

#[test]
fn c20_a_redirect_elsewhere_is_refused_and_its_query_is_not_repeated() {
    let refused = [
        "http://jobs.s3.eu-central-1.amazonaws.com/leader/group.json",
        "https://jobs.s3.eu-central-1.amazonaws.com:8443/",
        "https://evil.example/leader/group.json?X-Amz-Signature=abc",
        "https://s3.eu-central-1.amazonaws.com.evil.example/",
        "https://evil-s3.eu-central-1.amazonaws.com/",
        "https://s3-evil-1.eu-central-1.elb.amazonaws.com/",
        "https://s3evil-1.amazonaws.com/",
        "https://other.s3.eu-central-1.amazonaws.com/",
        "https://user:word@s3.eu-central-1.amazonaws.com/",
        "https://s3.eu-central-1.amazonaws.com@evil.example/",
        "https://evil.example\\@s3.eu-central-1.amazonaws.com/",
        "//evil.example/",
        "/elsewhere",
        "https://",
        "javascript:alert(1)",
        // Nowhere new.
        "https://jobs.s3.eu-west-1.amazonaws.com/leader/group.json",
        "",
    ];
    for location in refused {
        for status in [301, 307, 308] {
            let s3 = aws();
            let mut exchange = s3.begin(update());
            let before = send(&mut exchange, &s3);
            let answer = done(exchange.answer(&s3, redirect(status, location, &[]), NOW_MS));
            let fault = fault(answer.outcome);
            assert_eq!(fault.kind, FaultKind::Misconfigured, "{location}");
            for secret in ["X-Amz-Signature", "word"] {
                assert!(!fault.message.contains(secret), "{}", fault.message);
            }
            assert_eq!(send(&mut s3.begin(read()), &s3).uri(), before.uri(), "nothing is learned");
        }
    }
}

#[test]
fn c20_outside_aws_only_the_region_may_change() {
    let s3 = store();
    let mut exchange = s3.begin(update());
    send(&mut exchange, &s3);
    let there = "https://store.example:9000/elsewhere";
    let answer = redirect(307, there, &[("x-amz-bucket-region", "fr-par")]);
    assert_eq!(exchange.answer(&s3, answer, NOW_MS), Next::Again);
    let request = send(&mut exchange, &s3);
    assert_eq!(request.uri(), "https://store.example:9000/jobs/leader/group.json");
    assert!(header(&request, "authorization").unwrap().contains("/fr-par/s3/"));

    for location in [
        "https://store.example/jobs/leader/group.json",
        "https://store.example:9001/",
        "http://store.example:9000/",
        "https://eu.store.example:9000/",
        "https://s3.eu-central-1.amazonaws.com/",
    ] {
        let answer = redirect(307, location, &[("x-amz-bucket-region", "fr-par")]);
        let outcome = outcome(update(), answer);
        assert_eq!(kind(&outcome), Kind::Rejected(FaultKind::Misconfigured), "{location}");
    }
    // A portal in a hotel is no reason to stop for good.
    let portal = response(307, &[("location", "http://portal.example/login")], "<html>");
    assert_eq!(kind(&outcome(read(), portal)), Kind::Rejected(FaultKind::Nonsense));
}

#[test]
fn c20_the_region_that_a_400_names_is_learned_once() {
    let wrong = |region: &str| {
        let more = format!("<Region>{region}</Region>");
        response(400, &[], &document("AuthorizationHeaderMalformed", &more))
    };
    let s3 = aws();
    let mut exchange = s3.begin(update());
    send(&mut exchange, &s3);
    assert_eq!(exchange.answer(&s3, wrong("me-south-1"), NOW_MS), Next::Again);
    let request = send(&mut exchange, &s3);
    assert_eq!(request.uri(), "https://jobs.s3.me-south-1.amazonaws.com/leader/group.json");
    assert!(header(&request, "authorization").unwrap().contains("/me-south-1/s3/"));
    let answer = done(exchange.answer(&s3, wrong("eu-west-1"), NOW_MS));
    assert_eq!(kind(&answer.outcome), Kind::Rejected(FaultKind::Misconfigured));

    for region in ["us-east-1", "", "EU", "a/b", "x\"><"] {
        let outcome = outcome(update(), wrong(region));
        assert_eq!(kind(&outcome), Kind::Rejected(FaultKind::Misconfigured), "{region}");
    }
}

#[test]
fn c21_no_etag_after_a_put_is_read_back_and_after_a_get_is_no_ground_for_a_claim() {
    let long = format!("\"{}\"", "a".repeat(1_023));
    let unusable = [
        "",
        "\"\"",
        "\"",
        "*",
        "\"a\", \"b\"",
        "a,b",
        "W/\"9bb58f26\"",
        "w/\"9bb58f26\"",
        "\"a b\"",
        "\"a\"b\"",
        "a\"b",
        "a\tb",
        &long,
    ];
    for etag in unusable {
        let headers = [("etag", etag)];
        let written = outcome(update(), response(200, &headers, ""));
        assert_eq!(written, Outcome::Written { version: None }, "{etag}");
        let found = outcome(read(), response(200, &headers, LEASE));
        assert_eq!(kind(&found), Kind::Rejected(FaultKind::Nonsense), "{etag}");
    }
    let none = outcome(update(), response(200, &[], ""));
    assert_eq!(none, Outcome::Written { version: None });
    let none = outcome(read(), response(200, &[], LEASE));
    assert!(fault(none).message.contains("no usable ETag"));
    let two = [("etag", "\"a\""), ("etag", "\"b\"")];
    let none = outcome(update(), response(200, &two, ""));
    assert_eq!(none, Outcome::Written { version: None });
    let bytes = http::HeaderValue::from_bytes(b"\"\xff\"").unwrap();
    let mut odd = response(200, &[], "");
    odd.headers_mut().insert("etag", bytes);
    assert_eq!(outcome(update(), odd), Outcome::Written { version: None });
    // A portal that takes every PUT.
    let page = outcome(update(), response(200, &[("etag", ETAG)], "<html>welcome</html>"));
    assert_eq!(page, Outcome::Written { version: None });
}

#[test]
fn c21_no_condition_that_would_match_anything_is_ever_sent() {
    let s3 = store();
    for text in ["*", "", "\"a\", \"b\"", "a\r\nb", "W/\"a\"", "ä"] {
        let version = Version(text.to_owned());
        let condition = Condition::Match(version.clone());
        for operation in [
            Operation::Write { body: LEASE.into(), condition },
            Operation::Read { unless: Some(version) },
        ] {
            let result = s3.begin(operation).request(&s3, &credentials(), NOW_MS);
            assert_eq!(result.unwrap_err().kind, FaultKind::Nonsense, "{text}");
        }
    }
}

#[test]
fn c23_c24_etags_are_passed_through_byte_for_byte() {
    for etag in [
        ETAG,
        "9bb58f26192e4ba00f01e2e7b136bbd8",
        "\"9bb58f26192e4ba00f01e2e7b136bbd8-17\"",
        "\"!#$%&'()*+,-./:;<=>?@[]^_`{|}~\"",
        "\"abc-gzip\"",
    ] {
        let expected = Version(etag.to_owned());
        let written = outcome(create(), response(200, &[("etag", etag)], ""));
        assert_eq!(written, Outcome::Written { version: Some(expected.clone()) });
        match outcome(read(), response(200, &[("etag", etag)], LEASE)) {
            Outcome::Found { version, .. } => assert_eq!(version, expected),
            other => panic!("{other:?}"),
        }
        let s3 = store();
        let condition = Condition::Match(expected);
        let mut exchange = s3.begin(Operation::Write { body: LEASE.into(), condition });
        assert_eq!(header(&send(&mut exchange, &s3), "if-match"), Some(etag));
    }
}

#[test]
fn c23_unchanged_is_only_what_was_asked_and_still_has_that_version() {
    assert_eq!(outcome(read_unless(), response(304, &[], "")), Outcome::Unchanged);
    assert_eq!(outcome(read_unless(), response(304, &[("etag", ETAG)], "")), Outcome::Unchanged);
    let weak = format!("W/{ETAG}");
    let answer = response(304, &[("etag", &weak)], "");
    assert_eq!(outcome(read_unless(), answer), Outcome::Unchanged);
    let other = outcome(read_unless(), response(304, &[("etag", "\"other\"")], ""));
    assert_eq!(kind(&other), Kind::Rejected(FaultKind::Nonsense));
    let unasked = outcome(read(), response(304, &[], ""));
    assert_eq!(kind(&unasked), Kind::Rejected(FaultKind::Nonsense));
}

#[test]
fn c25_a_delete_marker_is_absence_and_a_foreign_404_is_not() {
    let marker =
        response(404, &[("x-amz-delete-marker", "true")], &document("NoSuchKey", "<Key>k</Key>"));
    assert_eq!(outcome(read(), marker), Outcome::Missing);
    for operation in [read(), create(), update()] {
        let fault = fault(outcome(operation, error(404, "NoSuchBucket")));
        assert_eq!(fault.kind, FaultKind::Misconfigured);
        assert!(fault.message.contains("create the bucket"), "{}", fault.message);
    }
    for body in [
        "",
        "404 page not found",
        "<html><h1>404</h1><Code>NoSuchKey</Code></html>",
        "{\"Code\":\"NoSuchKey\"}",
        "no <Error><Code>NoSuchKey</Code></Error>",
        "<Error><Code>NoSuchKey",
        "<Error><Code>NoSuch Key</Code></Error>",
        "<Error><Code></Code></Error>",
        "<Error><Code>NoSuchUpload</Code></Error>",
        "<Error><Message><Code>NoSuchKey</Message></Error>",
    ] {
        let outcome = outcome(read(), response(404, &[], body));
        assert_eq!(kind(&outcome), Kind::Rejected(FaultKind::Nonsense), "{body}");
    }
    for body in [
        "<Error><Code>NoSuchKey</Code></Error>",
        "\u{feff}<?xml version=\"1.0\"?>\r\n<Error xmlns=\"http://s3.amazonaws.com/doc/\">\n  <Code>\n NoSuchKey </Code></Error>",
    ] {
        assert_eq!(outcome(read(), response(404, &[], body)), Outcome::Missing, "{body}");
    }
}

#[test]
fn c27_a_body_that_is_too_long_or_cut_off_keeps_its_version() {
    let expected = Outcome::Found {
        version: version(),
        reading: Reading::Unreadable(Flaw::TooLarge, Remains::NONE),
    };
    let long = " ".repeat(MAX_RECORD_BYTES + 1);
    assert_eq!(outcome(read(), response(200, &[("etag", ETAG)], &long)), expected);
    let mut cut = response(200, &[("etag", ETAG)], LEASE);
    cut.body_mut().truncated = true;
    assert_eq!(outcome(read(), cut), expected);
    let empty = outcome(read(), response(200, &[("etag", ETAG)], ""));
    let reading = Reading::Unreadable(Flaw::NotJson, Remains::NONE);
    assert_eq!(empty, Outcome::Found { version: version(), reading });
    // An error that came with a success is not a broken record: it is not to be healed.
    let error = response(200, &[("etag", ETAG)], &document("SlowDown", ""));
    assert_eq!(kind(&outcome(read(), error)), Kind::Rejected(FaultKind::Nonsense));
    for status in [201, 204, 206, 300, 302, 410, 412, 418] {
        let odd = outcome(read(), response(status, &[("etag", ETAG)], LEASE));
        assert_eq!(kind(&odd), Kind::Rejected(FaultKind::Nonsense), "{status}");
    }
}

#[test]
fn c43_facts_are_dates_after_the_epoch_and_the_marks_of_a_relay() {
    let modified = "Fri, 21 Nov 2025 09:59:45 GMT";
    let headers = [("etag", ETAG), ("date", DATE), ("last-modified", modified)];
    let facts = answer(read(), response(200, &headers, LEASE)).facts;
    assert_eq!((facts.date_ms, facts.last_modified_ms), (Some(NOW_MS), Some(NOW_MS - 15_000)));
    assert!(!facts.relayed);
    for garbage in ["", "now", "Thu, 01 Jan 1960 00:00:00 GMT", "Fri, 99 Nov 2025 10:00:00 GMT"] {
        let headers = [("etag", ETAG), ("date", garbage), ("last-modified", garbage)];
        let facts = answer(read(), response(200, &headers, LEASE)).facts;
        assert_eq!((facts.date_ms, facts.last_modified_ms), (None, None), "{garbage}");
    }
    for (name, value) in [("age", "0"), ("age", "?"), ("via", "1.1 proxy")] {
        for (operation, status) in [(read(), 404), (read_unless(), 304), (update(), 412)] {
            let headers = [("date", DATE), (name, value)];
            let facts = answer(operation, response(status, &headers, "")).facts;
            assert!(facts.relayed, "{name}");
            assert_eq!(facts.cached, value == "?", "{name}: {value}");
            assert_eq!(facts.date_ms, Some(NOW_MS), "every answer tells the time");
        }
    }
}

#[test]
fn no_message_repeats_a_secret_or_the_stores_own_words() {
    let codes =
        ["AccessDenied", "SignatureDoesNotMatch", "InvalidArgument", "SlowDown", "X", "a<b"];
    for status in [200, 301, 304, 400, 401, 403, 404, 405, 409, 412, 418, 429, 500, 501, 503] {
        for code in codes {
            for operation in [read(), update()] {
                let more = "<StringToSign>the-string</StringToSign>";
                let answer = response(
                    status,
                    &[("location", "https://u:p@x/?sig=the-sig")],
                    &document(code, more),
                );
                let s3 = store();
                let mut exchange = s3.begin(operation);
                send(&mut exchange, &s3);
                let shown =
                    format!("{:?} {exchange:?} {s3:?}", exchange.answer(&s3, answer, NOW_MS));
                for word in
                    ["the-secret", "the-token", "the-message", "the-string", "the-sig", "u:p"]
                {
                    assert!(!shown.contains(word), "{status} {code}: {shown}");
                }
            }
        }
    }
    let message = fault(outcome(update(), error(403, "AccessDenied"))).message;
    assert_eq!(
        message,
        "S3 bucket \"jobs\" at https://store.example:9000: PUT \"leader/group.json\" was answered 403 \
         AccessDenied: the credentials need s3:PutObject on the key"
    );
}

#[test]
fn no_answer_panics() {
    let mut state = 1_u64;
    let mut roll = |sides: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % sides
    };
    let pieces = [
        "<Error>",
        "<Code>",
        "NoSuchKey",
        "</Code>",
        "</Error>",
        "<Endpoint>",
        "ä漢",
        "<",
        ">",
        "\"",
        "\0",
        "<Region>eu-west-1</Region>",
        "RequestTimeTooSkewed",
        "<ServerTime>9999-12-31T23:59:59Z</ServerTime>",
        "https://",
        "[::1]",
        ":",
        "@",
        "amazonaws.com",
        "s3.",
        "{}",
        "*",
        "W/",
        "Fri, 21 Nov 2025 10:00:00 GMT",
    ];
    for _ in 0..50_000 {
        let mut text = |longest: usize| {
            (0..roll(longest)).map(|_| pieces[roll(pieces.len())]).collect::<String>()
        };
        let (body, location, etag, date) = (text(20), text(6), text(3), text(2));
        let statuses = [200, 301, 304, 307, 308, 400, 403, 404, 409, 412, 500, 503];
        let mut builder = Response::builder().status(statuses[roll(statuses.len())]);
        for (name, value) in [("location", &location), ("etag", &etag), ("date", &date)] {
            if let Ok(value) = http::HeaderValue::from_bytes(value.as_bytes()) {
                builder = builder.header(name, value);
            }
        }
        let mut bytes = body.into_bytes();
        bytes.truncate(roll(80));
        let response = builder.body(Body { bytes, truncated: roll(2) == 0 }).unwrap();
        let s3 = if roll(2) == 0 { store() } else { aws() };
        let operation = [read(), read_unless(), create(), update()][roll(4)].clone();
        let mut exchange = s3.begin(operation);
        for _ in 0..8 {
            send(&mut exchange, &s3);
            if let Next::Done(_) = exchange.answer(&s3, response.clone(), NOW_MS) {
                break;
            }
        }
    }
}

fn url(config: S3Config) -> String {
    let s3 = S3::new(config).unwrap();
    send(&mut s3.begin(read()), &s3).uri().to_string()
}

#[test]
fn addresses_by_path_and_by_host() {
    let with = |endpoint: &str, path_style: Option<bool>| {
        let endpoint = Some(endpoint.to_owned()).filter(|endpoint| !endpoint.is_empty());
        url(S3Config { endpoint, path_style, ..config() })
    };
    let cases = [
        ("", None, "https://jobs.s3.us-east-1.amazonaws.com/"),
        ("", Some(true), "https://s3.us-east-1.amazonaws.com/jobs/"),
        ("https://s3.eu-west-1.amazonaws.com", None, "https://jobs.s3.eu-west-1.amazonaws.com/"),
        ("https://S3.amazonaws.com:443/", None, "https://jobs.s3.amazonaws.com/"),
        ("https://id.r2.cloudflarestorage.com", None, "https://id.r2.cloudflarestorage.com/jobs/"),
        ("https://minio.example", Some(false), "https://jobs.minio.example/"),
        ("https://minio.example/a/b/", None, "https://minio.example/a/b/jobs/"),
        ("https://minio.example/a", Some(false), "https://jobs.minio.example/a/"),
        ("http://127.0.0.1:8333", None, "http://127.0.0.1:8333/jobs/"),
        ("http://127.9.9.9:80", None, "http://127.9.9.9/jobs/"),
        ("http://localhost:8333", Some(false), "http://jobs.localhost:8333/"),
        (
            "http://[::1]:8333/cdn-cgi/local/r2/s3",
            None,
            "http://[::1]:8333/cdn-cgi/local/r2/s3/jobs/",
        ),
        ("https://[2001:DB8:0::1]", None, "https://[2001:db8::1]/jobs/"),
        ("https://s3_internal:9000", None, "https://s3_internal:9000/jobs/"),
    ];
    for (endpoint, path_style, expected) in cases {
        let url = with(endpoint, path_style);
        assert_eq!(url, format!("{expected}leader/group.json"), "{endpoint} {path_style:?}");
    }
    let dotted = S3Config { endpoint: None, bucket: "my.jobs".to_owned(), ..config() };
    let expected = "https://s3.us-east-1.amazonaws.com/my.jobs/leader/group.json";
    assert_eq!(url(dotted), expected, "no certificate covers a host with a dotted bucket");
    let china = S3Config { endpoint: None, region: Some("cn-north-1".to_owned()), ..config() };
    assert_eq!(url(china), "https://jobs.s3.cn-north-1.amazonaws.com.cn/leader/group.json");
}

#[test]
fn keys_are_percent_encoded_as_s3_wants_it() {
    let cases = [
        ("a/b.json", "a/b.json"),
        ("A-Z_0.9~", "A-Z_0.9~"),
        ("a b+c", "a%20b%2Bc"),
        ("%2e%2e/x", "%252e%252e/x"),
        ("ä/漢", "%C3%A4/%E6%BC%A2"),
        ("a?b#c&d=e", "a%3Fb%23c%26d%3De"),
        ("!*'()", "%21%2A%27%28%29"),
        ("a\\b:c@d", "a%5Cb%3Ac%40d"),
        ("...", "..."),
    ];
    for (key, expected) in cases {
        let url = url(S3Config { key: key.to_owned(), ..config() });
        assert_eq!(url, format!("https://store.example:9000/jobs/{expected}"));
    }
}

/// The error for the configuration with one change.
fn broken(change: &dyn Fn(&mut S3Config)) -> ConfigError {
    let mut config = config();
    change(&mut config);
    S3::new(config).expect_err("the option is wrong")
}

#[test]
fn a_wrong_endpoint_is_named_and_shows_no_secret() {
    for endpoint in [
        "",
        "store.example",
        "ftp://store.example",
        "http://store.example",
        "http://10.0.0.1:8333",
        "http://127.0.0.1.example",
        "http://127.1",
        "https://127.1",
        "https://0x7f000001",
        "https://",
        "https://store.example:0",
        "https://store.example:70000",
        "https://store.example:x",
        "https://store.example/a/../b",
        "https://store.example//a",
        "https://store.example/%2e",
        "https://store.example/a?b=c",
        "https://store.example/#a",
        "https://ex%61mple/",
        "https://a..b/",
        "https://exämple/",
        "https://[::1",
        "https://[fe80::1%25eth0]/",
        "//store.example",
        "https://a b/",
    ] {
        let error = broken(&|config| config.endpoint = Some(endpoint.to_owned()));
        assert_eq!(error.field, "endpoint", "{endpoint}: {error}");
    }
    for secret in [
        "https://u:gehe?im@h",
        "https://user:geheim@h/",
        "https://h/?X-Amz-Signature=geheim",
        "https://h/#geheim",
    ] {
        let error = broken(&|config| config.endpoint = Some(secret.to_owned()));
        assert!(!error.to_string().contains("gehe"), "{error}");
    }
}

#[test]
fn a_wrong_option_is_named_with_its_value_and_the_rule() {
    for bucket in
        ["", "ab", "Jobs", "a_b", "-ab", "ab-", "a..b", "a/b", "jöbs", &"a".repeat(64), ".."]
    {
        let error = broken(&|config| config.bucket = bucket.to_owned());
        assert_eq!(error.field, "bucket", "{bucket}");
    }
    for region in ["", "EU", "eu west", "eu/west", &"a".repeat(65)] {
        let error = broken(&|config| config.region = Some(region.to_owned()));
        assert_eq!(error.field, "region", "{region}");
    }
    for key in
        ["", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "a\nb", "a\u{7f}", &"ä".repeat(513)]
    {
        let error = broken(&|config| config.key = key.to_owned());
        assert_eq!(error.field, "lockfilePath", "{key}");
    }
    let auto = broken(&|config| (config.endpoint, config.region) = (None, Some("auto".to_owned())));
    assert_eq!(auto.field, "region");
    let dotted = broken(&|config| {
        (config.bucket, config.path_style) = ("my.jobs".to_owned(), Some(false));
    });
    assert_eq!(dotted.field, "pathStyle");
    let ip = broken(&|config| {
        config.endpoint = Some("http://127.0.0.1:8333".to_owned());
        config.path_style = Some(false);
    });
    assert_eq!(ip.field, "pathStyle");
}

#[test]
fn credentials_that_no_header_can_carry_are_a_fault_and_nothing_is_sent() {
    let s3 = store();
    for (id, token) in [("", None), ("A\nB", None), ("A", Some("tökén"))] {
        let credentials = Credentials {
            access_key_id: id.to_owned(),
            session_token: token.map(str::to_owned),
            ..credentials()
        };
        let fault = s3.begin(update()).request(&s3, &credentials, NOW_MS).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Denied);
        assert!(fault.message.contains("credentials"), "{}", fault.message);
        assert!(!fault.message.contains("the-secret"), "{}", fault.message);
    }
}
