//! What each answer of an S3 store means, by the numbers of the scenarios.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use edgelect::lease::{self, Flaw, MAX_RECORD_BYTES, Reading, Remains};
use edgelect::protocol::{Next, Protocol};
use edgelect::request::{Request, Response};
use edgelect::store::s3::{S3, S3Config};
use edgelect::store::{Condition, FaultKind, Operation, Outcome, Store, Version};
use edgelect::{Credentials, S3Store};
use futures::executor::block_on;
use worlds::virtual_time::Virtual;

use crate::answers::told::Means::{Missing, Refused, Rejected, Unchanged, Unknown, Unsure};
use crate::answers::told::{
    DATE, NOW_MS, Talk, all_say, credentials, cut, fault, header, mean, means, read, read_unless,
    refreshes, response, sent, told, url, with, write, write_lease,
};

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

fn at(endpoint: &str) -> S3 {
    S3::new(S3Config { endpoint: Some(endpoint.to_owned()), ..config() }).unwrap()
}

fn aws() -> S3 {
    let config = S3Config { endpoint: None, region: Some("eu-west-1".to_owned()), ..config() };
    S3::new(config).unwrap()
}

fn store() -> S3 {
    S3::new(config()).unwrap()
}

fn version() -> Version {
    Version(ETAG.to_owned())
}

fn create() -> Operation {
    write(LEASE, Condition::Absent)
}

fn update() -> Operation {
    write(LEASE, Condition::Match(version()))
}

fn all() -> [Operation; 3] {
    [read(), create(), update()]
}

fn outcome(operation: Operation, response: Response) -> Outcome {
    told(&store(), operation, response).outcome
}

/// An answer with the ETag of [`version`].
fn tagged(status: u16, body: &str) -> Response {
    response(status, &[("etag", ETAG)], body)
}

fn error(status: u16, code: &str) -> Response {
    response(status, &[("date", DATE)], document(code, ""))
}

fn document(code: &str, more: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>the-message</Message>{more}<RequestId>1</RequestId></Error>"
    )
}

fn unreadable(flaw: Flaw) -> Outcome {
    Outcome::Found { version: version(), reading: Reading::Unreadable(flaw, Remains::NONE) }
}

#[test]
fn c01_create_and_read_of_the_winner() {
    let written = outcome(create(), tagged(200, ""));
    assert_eq!(written, Outcome::Written { version: Some(version()) });
    mean(store, &[create()], [error(412, "PreconditionFailed")], Refused);
    let reading = lease::read(LEASE.as_bytes());
    assert_eq!(outcome(read(), tagged(200, LEASE)), Outcome::Found { version: version(), reading });
    mean(store, &[read()], [error(404, "NoSuchKey")], Missing);
}

#[test]
fn c03_an_error_status_after_a_write_may_hide_that_it_landed() {
    for body in ["", &document("InternalError", "")] {
        let answers = [500, 502, 503, 504, 507, 520, 599].map(|status| response(status, &[], body));
        let faults = mean(store, &[update()], answers, Unknown(FaultKind::Unavailable));
        all_say(&faults, &["the store is busy or unwell"]);
        assert!(faults.iter().all(|fault| !fault.message.contains("again")), "{faults:?}");
    }
    // A success that is an error inside, and what nobody has foreseen.
    let unforeseen =
        [100, 202, 206, 226, 300, 303, 402, 406, 410, 421, 428].map(|status| tagged(status, ""));
    let inside = tagged(200, &document("InternalError", ""));
    let answers = unforeseen.into_iter().chain([inside]);
    mean(store, &[update()], answers, Unknown(FaultKind::Nonsense));
    // A status after which it may have landed counts for more than the code.
    for code in ["AccessDenied", "ExpiredToken", "RequestTimeTooSkewed"] {
        mean(store, &[update()], [200, 500, 503].map(|status| error(status, code)), Unsure);
    }
}

#[test]
fn c10_c11_a_conflict_is_refused_and_never_means_that_a_record_exists() {
    let conflicts = ["ConditionalRequestConflict", "OperationAborted"].map(|code| error(409, code));
    mean(store, &[create(), update()], conflicts, Refused);
    let between = [response(409, &[], ""), response(409, &[], "<html>conflict</html>")];
    mean(store, &[create(), update()], between, Refused);
    let other = [error(409, "InvalidBucketState")];
    mean(store, &[create(), update()], other, Unknown(FaultKind::Nonsense));
    let faults = mean(store, &[read()], [error(409, "X")], Unknown(FaultKind::Unavailable));
    all_say(&faults, &["another write is under way"]);
}

#[test]
fn c07_c08_s8_a_refusal_is_in_doubt_unless_the_store_says_that_the_condition_did_not_hold() {
    for (answer, creates, updates) in [
        (error(412, "PreconditionFailed"), false, false),
        // Not every store has a document for it.
        (response(412, &[], ""), false, false),
        (error(404, "NoSuchKey"), true, false),
        (error(404, "NoSuchAccessPoint"), true, true),
        (response(404, &[], "<html>no route</html>"), true, true),
        (response(404, &[], ""), true, true),
        // Old MinIO.
        (response(304, &[], ""), true, true),
        (error(409, "ConditionalRequestConflict"), true, true),
        (error(409, "OperationAborted"), true, true),
        (response(409, &[], ""), true, true),
    ] {
        for (operation, doubtful) in [(create(), creates), (update(), updates)] {
            let told = told(&store(), operation.clone(), answer.clone());
            assert_eq!(told.outcome, Outcome::Refused, "the election reads it back: {answer:?}");
            assert_eq!(told.facts.doubtful, doubtful, "{operation:?}: {answer:?}");
        }
    }
    for operation in [create(), update()] {
        assert!(!told(&store(), operation, tagged(200, "")).facts.doubtful);
    }
    assert!(!told(&store(), read(), error(404, "NoSuchKey")).facts.doubtful);
}

#[test]
fn c12_c13_patience_is_asked_for_in_seconds_or_by_a_date_and_bounded() {
    let undated = |retry_after: &'static str| vec![("retry-after", retry_after)];
    let dated = |retry_after| [undated(retry_after), vec![("date", DATE)]].concat();
    for (headers, expected) in [
        (undated(" 7 "), Some(7_000)),
        (undated("0"), Some(0)),
        (undated("86400"), Some(300_000)),
        (undated("18446744073709551615"), Some(300_000)),
        (undated("99999999999999999999999"), Some(300_000)),
        (undated("-1"), None),
        (dated("Fri, 21 Nov 2025 10:00:30 GMT"), Some(30_000)),
        (dated("Fri, 21 Nov 2025 09:00:00 GMT"), Some(0)),
        (dated("Fri, 21 Nov 2025 22:00:00 GMT"), Some(300_000)),
        // Without the answer's own date it would be a comparison of two machines' clocks.
        (undated("Fri, 21 Nov 2025 10:00:30 GMT"), None),
        (vec![], None),
    ] {
        for (status, code) in [(503, "SlowDown"), (429, "TooManyRequests")] {
            let outcome = outcome(update(), response(status, &headers, document(code, "")));
            let Outcome::Unknown { retry_after_ms, cause } = outcome else { panic!("{outcome:?}") };
            assert_eq!(retry_after_ms, expected, "{headers:?}");
            let told = (cause.kind, cause.code.as_deref());
            assert_eq!(told, (FaultKind::Unavailable, Some(code)));
        }
    }
    let bare = [response(429, &[], ""), error(400, "RequestTimeout")];
    let faults = mean(store, &[update()], bare, Unknown(FaultKind::Unavailable));
    all_say(&faults, &["the store is busy or unwell"]);
}

#[test]
fn c14_a_store_without_conditional_writes_is_a_configuration_error_that_names_it() {
    let mut answers = vec![error(501, "NotImplemented"), error(405, "NotImplemented")];
    let codes = ["InvalidArgument", "InvalidRequest", "NotImplemented"];
    answers.extend(codes.map(|code| error(400, code)));
    let faults = mean(store, &[create(), update()], answers, Rejected(FaultKind::Misconfigured));
    let place = "S3 bucket \"jobs\" at https://store.example:9000";
    all_say(&faults, &[place, "conditional writes"]);
    // A gateway's, perhaps.
    let gateway = [response(400, &[], "<html>")];
    mean(store, &[read()], gateway, Rejected(FaultKind::Nonsense));
}

#[test]
fn a_status_without_the_stores_own_error_document_says_nothing_of_what_became_of_a_write() {
    for status in [300, 301, 302, 307, 308, 400, 401, 402, 403, 405, 411, 418, 431, 451, 501] {
        for body in ["", "<html>Not Implemented</html>", "{\"message\":\"no\"}"] {
            mean(store, &[create(), update()], [response(status, &[], body)], Unsure);
        }
        let told = outcome(read(), response(status, &[], "<html>"));
        assert_ne!(means(&told), Rejected(FaultKind::Misconfigured), "{status} is no final word");
    }
}

/// R2's dashboard shows an address that ends in the bucket. Members with it and members without would be two groups.
#[test]
fn an_endpoint_that_names_the_bucket_is_refused() {
    for endpoint in [
        "https://account.r2.cloudflarestorage.com/jobs",
        "https://account.eu.r2.cloudflarestorage.com/other",
        "https://jobs.account.r2.cloudflarestorage.com",
        "https://s3.eu-west-1.amazonaws.com/jobs/",
        "https://jobs.s3.eu-west-1.amazonaws.com",
        "https://jobs.s3.cn-north-1.amazonaws.com.cn",
        "https://jobs.nyc3.digitaloceanspaces.com",
        "https://jobs.fsn1.your-objectstorage.com",
        "https://store.example/s3/jobs",
    ] {
        let config = S3Config { endpoint: Some(endpoint.to_owned()), ..config() };
        let error = S3::new(config).err().unwrap_or_else(|| panic!("{endpoint} is taken"));
        assert!(error.to_string().contains("without the bucket"), "{endpoint}: {error}");
    }
    assert_eq!(
        at("https://store.example/s3").describe(),
        "S3 bucket \"jobs\" at https://store.example/s3"
    );
}

#[test]
fn c15_denied_names_the_right_that_is_missing() {
    let whole = "S3 bucket \"jobs\" at https://store.example:9000: PUT \"leader/group.json\" was \
                 answered 403 AccessDenied: the credentials need s3:PutObject on the key";
    for (operations, status, code, advice) in [
        (&[update()][..], 403, "AccessDenied", whole),
        (&[update()][..], 403, "QuotaExceeded", "the store's code says why"),
        (&[read()][..], 403, "InvalidObjectState", "restore the object"),
        (&all(), 403, "SignatureDoesNotMatch", "secret access key"),
        (&all(), 403, "InvalidAccessKeyId", "access key id"),
        (&all(), 401, "Unauthorized", "access key id"),
        (&all(), 400, "InvalidAccessKeyId", "access key id"),
    ] {
        let faults = mean(store, operations, [error(status, code)], Rejected(FaultKind::Denied));
        all_say(&faults, &[advice]);
        for fault in faults {
            assert_eq!((fault.status, fault.code.as_deref()), (Some(status), Some(code)));
        }
    }
    // A gateway may have judged the answer after the write.
    let gateway = [response(403, &[], "<html>forbidden</html>")];
    mean(store, &[update()], gateway, Unknown(FaultKind::Denied));
}

#[test]
fn c16_a_missing_key_without_the_right_to_list_is_neither_missing_nor_found() {
    let answers = [error(403, "AccessDenied"), response(403, &[], "")];
    for answer in answers {
        let fault = fault(outcome(read(), answer));
        assert_eq!(fault.kind, FaultKind::Denied);
        all_say(&[fault], &["s3:ListBucket", "s3:GetObject"]);
    }
}

#[test]
fn a_web_page_is_no_record_and_no_denial_even_with_an_etag() {
    for (status, kind) in
        [(200, "Text/HTML; charset=utf-8"), (401, "text/html"), (403, "text/html")]
    {
        let page = with(tagged(status, "<html>It works!</html>"), "content-type", kind);
        let faults = mean(store, &[read()], [page], Rejected(FaultKind::Nonsense));
        all_say(&faults, &["check the endpoint"]);
        assert_eq!(faults[0].status, Some(status));
    }
}

#[test]
fn s7_a_page_or_an_error_that_somebody_put_at_the_key_is_unreadable_and_no_wrong_endpoint() {
    for (kind, body) in [
        ("text/html; charset=utf-8", "<html>It works!</html>".to_owned()),
        ("application/xml", document("AccessDenied", "")),
        ("text/html", document("NoSuchKey", "")),
    ] {
        let headers = [("content-type", kind), ("x-amz-request-id", "18EA4A3E")];
        let untagged = response(200, &headers, body);
        let found = outcome(read(), with(untagged.clone(), "etag", ETAG));
        assert_eq!(found, unreadable(Flaw::NotJson), "{kind}");
        // Nothing is conditional on it without an ETag.
        all_say(&[fault(outcome(read(), untagged))], &["no usable ETag"]);
    }
    // Whatever came with the status of a success, the record is read back.
    let error = with(tagged(200, &document("InternalError", "")), "x-amz-request-id", "18EA4A3E");
    mean(store, &[update()], [error], Unknown(FaultKind::Nonsense));
}

fn skewed(server_time: &str, date: Option<&str>) -> Response {
    let more = format!("<ServerTime>{server_time}</ServerTime>");
    let headers: Vec<_> = date.map(|date| ("date", date)).into_iter().collect();
    response(403, &headers, document("RequestTimeTooSkewed", &more))
}

fn signed_at(request: &Request) -> Option<&str> {
    header(request, "x-amz-date")
}

#[test]
fn c17_a_wrong_clock_is_corrected_for_signing_once() {
    for (odd, expected) in [
        (skewed("2025-11-21T11:30:00Z", None), "20251121T113000Z"),
        (skewed("2025-11-21T08:00:00.500Z", None), "20251121T080000Z"),
        (skewed("garbage", Some("Fri, 21 Nov 2025 12:00:00 GMT")), "20251121T120000Z"),
        // The document is the store's own word, the header may be rewritten on the way.
        (skewed("2025-11-21T11:30:00Z", Some(DATE)), "20251121T113000Z"),
    ] {
        let s3 = store();
        let (mut talk, first) = Talk::begun(&s3, update());
        assert_eq!(signed_at(&first), Some("20251121T100000Z"));
        let again = talk.again(odd.clone());
        assert_eq!(signed_at(&again), Some(expected));
        assert_eq!(header(&again, "if-match"), Some(ETAG), "the condition is kept");
        talk.ends(response(200, &[("etag", ETAG)], ""));
        // The next operation begins with what was learned.
        let (mut talk, next) = Talk::begun(&s3, update());
        assert_eq!(signed_at(&next), Some(expected));
        // Which is given up where it is refused twice, too: the own clock may have been set right meanwhile.
        talk.again(odd.clone());
        assert_eq!(means(&talk.ends(odd).outcome), Rejected(FaultKind::Denied));
        assert_eq!(signed_at(&sent(&s3, read())), Some("20251121T100000Z"));
    }
}

#[test]
fn c17_c20_what_one_odd_answer_taught_is_given_up_when_the_store_refuses_it() {
    let region = response(400, &[("x-amz-bucket-region", "eu-bogus-1")], "");
    for odd in [skewed("2025-11-20T10:00:00Z", None), region] {
        let s3 = store();
        let scope = |request: Request| {
            let scope = header(&request, "authorization").unwrap().to_owned();
            scope.split("Signature=").next().unwrap().to_owned()
        };
        let (mut talk, first) = Talk::begun(&s3, read());
        let before = scope(first);
        assert_ne!(scope(talk.again(odd)), before, "it is signed otherwise");
        let refused = error(403, "SignatureDoesNotMatch");
        if talk.hears(refused.clone()) == Next::Refresh {
            talk.sends();
            talk.ends(refused);
        }
        assert_eq!(scope(sent(&s3, read())), before, "as the settings say");
    }
}

#[test]
fn c17_without_any_time_in_the_answer_there_is_nothing_to_learn_and_no_clock_overflows() {
    // R2's local endpoint sends neither.
    let answers = [skewed("", None), skewed("1900-01-01T00:00:00Z", Some("yesterday"))];
    let faults = mean(store, &[update()], answers, Rejected(FaultKind::Denied));
    all_say(&faults, &["set this machine's clock"]);
    for wall_ms in [0, u64::MAX] {
        let s3 = store();
        let mut talk = Talk::at(&s3, read(), wall_ms);
        talk.sends();
        if talk.hears(skewed("2025-11-21T10:00:00Z", None)) == Next::Again {
            talk.sends();
        }
        Talk::at(&s3, read(), u64::MAX - wall_ms).sends();
    }
}

#[test]
fn c18_a_clock_that_is_put_right_later_is_learned_anew() {
    let (s3, hour_ms) = (store(), 3_600_000);
    for (wall_ms, before) in [
        (NOW_MS + hour_ms, "20251121T110000Z"),
        // An hour was learned to be too much, and now is too little.
        (NOW_MS, "20251121T090000Z"),
    ] {
        let mut talk = Talk::at(&s3, update(), wall_ms);
        assert_eq!(signed_at(&talk.sends()), Some(before));
        let again = talk.again(skewed("2025-11-21T10:00:00Z", None));
        assert_eq!(signed_at(&again), Some("20251121T100000Z"));
    }
}

#[test]
fn c19_expired_credentials_are_refreshed_once() {
    let codes = ["ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"];
    for expired in codes.map(|code| error(400, code)).into_iter().chain([error(403, codes[0])]) {
        for operation in [read(), update()] {
            assert_eq!(refreshes(&store(), &operation, &expired, [0]), [true]);
            let answer = [expired.clone()];
            let faults = mean(store, &[operation], answer, Rejected(FaultKind::Denied));
            all_say(&faults, &["credentials provider"]);
        }
    }
}

#[test]
fn a_key_that_the_store_does_not_know_is_asked_for_anew_once_in_ten_seconds() {
    for code in ["InvalidAccessKeyId", "SignatureDoesNotMatch", "Unauthorized"] {
        let s3 = store();
        // A wall clock that was set back does not put the next question off for long.
        let after_ms = [0, 100, 9_999, 10_000, 10_001, 4_000, 0];
        let asked = refreshes(&s3, &update(), &error(403, code), after_ms);
        assert_eq!(asked, [true, false, false, true, false, false, true], "{code}");
        let expired = refreshes(&s3, &read(), &error(400, "ExpiredToken"), [0]);
        assert_eq!(expired, [true], "what has expired is another matter");
    }
}

fn redirect(status: u16, location: &str, headers: &[(&str, &str)]) -> Response {
    let answer = response(status, headers, document("TemporaryRedirect", ""));
    if location.is_empty() { answer } else { with(answer, "location", location) }
}

fn is_for(request: &Request, region: &str) -> bool {
    header(request, "authorization").unwrap().contains(&format!("/{region}/s3/"))
}

#[test]
fn c20_a_redirect_within_aws_is_signed_anew_with_its_condition() {
    let s3 = aws();
    let (mut talk, first) = Talk::begun(&s3, update());
    let location = "https://jobs.s3-eu-central-1.amazonaws.com/leader/group.json?x=y";
    let second = talk.again(redirect(307, location, &[]));
    assert_eq!(Some(url(&second).as_str()), location.strip_suffix("?x=y"));
    assert_eq!(header(&second, "if-match"), Some(ETAG));
    assert!(is_for(&second, "eu-central-1") && is_for(&first, "eu-west-1"));
    assert_eq!(url(&sent(&s3, read())), url(&first), "it is not for the next operation");
}

#[test]
fn c20_a_permanent_redirect_is_remembered_once_the_store_has_answered_from_there() {
    let body = document("PermanentRedirect", "<Endpoint>s3.eu-north-1.amazonaws.com</Endpoint>");
    let region = ("x-amz-bucket-region", "eu-north-1");
    let there = ("location", "https://s3.dualstack.eu-north-1.amazonaws.com/");
    for (operation, answer, then) in [
        (create(), response(301, &[], body), response(412, &[], "")),
        (read(), response(301, &[region], ""), error(404, "NoSuchKey")),
        (create(), response(308, &[there], ""), response(200, &[("etag", ETAG)], "")),
    ] {
        let endpoint = Some("https://s3.amazonaws.com".to_owned());
        let s3 = S3::new(S3Config { endpoint, path_style: Some(true), ..config() }).unwrap();
        let here = "https://s3.amazonaws.com/jobs/leader/group.json";
        let goes = |request: &Request| {
            assert!(url(request).ends_with("eu-north-1.amazonaws.com/jobs/leader/group.json"));
            assert!(is_for(request, "eu-north-1"));
        };
        for (then, remembered) in [(error(404, "NoSuchBucket"), false), (then, true)] {
            let (mut talk, first) = Talk::begun(&s3, operation.clone());
            assert_eq!(url(&first), here, "what has not worked is not remembered");
            let again = talk.again(answer.clone());
            goes(&again);
            assert_eq!(header(&again, "if-none-match"), header(&first, "if-none-match"));
            talk.ends(then);
            if remembered {
                goes(&sent(&s3, create()));
            }
        }
    }
}

/// Something on the way may have said it after the store had carried the write out.
#[test]
fn c20_a_write_follows_no_redirect_that_shows_nothing_of_the_stores() {
    let region = [("x-amz-bucket-region", "eu-north-1")];
    for status in [301, 307, 308, 400] {
        let unfounded = [response(status, &region, "")];
        mean(aws, &[create()], unfounded, Unknown(FaultKind::Nonsense));
        let s3 = aws();
        let mut talk = Talk::begun(&s3, read()).0;
        assert!(is_for(&talk.again(response(status, &region, "")), "eu-north-1"), "{status}");
    }
}

#[test]
fn c20_a_fips_or_dual_stack_endpoint_is_not_left_for_a_plain_one() {
    let plain = ("location", "https://jobs.s3.us-west-2.amazonaws.com/");
    let region = ("x-amz-bucket-region", "us-west-2");
    for kind in ["", "-fips", ".dualstack", "-fips.dualstack"] {
        let there = format!("https://jobs.s3{kind}.us-west-2.amazonaws.com/leader/group.json");
        for (status, header) in [(301, region), (301, plain), (307, plain)] {
            let s3 = at(&format!("https://s3{kind}.us-east-1.amazonaws.com"));
            let again = Talk::begun(&s3, read()).0.again(response(status, &[header], ""));
            assert_eq!(url(&again), there, "{status} {header:?}");
        }
    }
}

#[test]
fn a_store_of_one_write_a_second_says_so() {
    for (host, apart_ms) in [
        ("0123.eu.r2.cloudflarestorage.com", 1_000),
        ("s3.eu-central-1.amazonaws.com", 0),
        ("0123.eu.r2.cloudflarestorage.com.example", 0),
    ] {
        assert_eq!(at(&format!("https://{host}")).writes_apart_ms(), apart_ms, "{host}");
    }
}

#[test]
fn c20_a_redirect_elsewhere_is_refused_and_its_query_is_not_repeated() {
    // The last two lead nowhere new.
    let refused = "http://jobs.s3.eu-central-1.amazonaws.com/leader/group.json \
        https://jobs.s3.eu-central-1.amazonaws.com:8443/ https://s3evil-1.amazonaws.com/ \
        https://evil.example/leader/group.json?X-Amz-Signature=abc //evil.example/ \
        https://s3.eu-central-1.amazonaws.com.evil.example/ /elsewhere https:// \
        https://evil-s3.eu-central-1.amazonaws.com/ javascript:alert(1) \
        https://s3-evil-1.eu-central-1.elb.amazonaws.com/ \
        https://other.s3.eu-central-1.amazonaws.com/ \
        https://user:word@s3.eu-central-1.amazonaws.com/ \
        https://s3.eu-central-1.amazonaws.com@evil.example/ \
        https://evil.example\\@s3.eu-central-1.amazonaws.com/ \
        https://jobs.s3.eu-west-1.amazonaws.com/leader/group.json";
    for location in refused.split(' ').chain([""]) {
        for status in [301, 307, 308] {
            let s3 = aws();
            let before = sent(&s3, update());
            let fault = fault(told(&s3, update(), redirect(status, location, &[])).outcome);
            assert_eq!(fault.kind, FaultKind::Misconfigured, "{location}");
            let repeats = ["X-Amz-Signature", "word"].map(|word| fault.message.contains(word));
            assert_eq!(repeats, [false, false], "{fault}");
            assert_eq!(url(&sent(&s3, read())), url(&before), "nothing is learned");
        }
    }
}

#[test]
fn no_signature_that_an_answer_repeats_is_shown() {
    let signature = "5f".repeat(32);
    let locations = [format!("Signature={signature}"), format!("https://{signature}.example/")];
    let answers = locations.map(|location| redirect(307, &location, &[]));
    for answer in answers.into_iter().chain([error(400, &signature)]) {
        let fault = fault(told(&store(), read(), answer).outcome);
        assert!(!fault.message.contains(&signature), "{fault}");
    }
}

#[test]
fn c20_outside_aws_only_the_region_may_change() {
    let (s3, region) = (store(), [("x-amz-bucket-region", "fr-par")]);
    let there = redirect(307, "https://store.example:9000/elsewhere", &region);
    let request = Talk::begun(&s3, update()).0.again(there);
    assert_eq!(url(&request), "https://store.example:9000/jobs/leader/group.json");
    assert!(is_for(&request, "fr-par"));
    let elsewhere = "https://store.example/jobs/leader/group.json https://store.example:9001/ \
        http://store.example:9000/ https://eu.store.example:9000/ \
        https://s3.eu-central-1.amazonaws.com/";
    let answers = elsewhere.split(' ').map(|location| redirect(307, location, &region));
    mean(store, &[update()], answers, Rejected(FaultKind::Misconfigured));
    // A portal in a hotel is no reason to stop for good.
    let portal = response(307, &[("location", "http://portal.example/login")], "<html>");
    mean(store, &[read()], [portal], Rejected(FaultKind::Nonsense));
}

#[test]
fn c20_the_region_that_a_400_names_is_learned_once() {
    let wrong = |region: &str| {
        let more = format!("<Region>{region}</Region>");
        response(400, &[], document("AuthorizationHeaderMalformed", &more))
    };
    let s3 = aws();
    let mut talk = Talk::begun(&s3, update()).0;
    let request = talk.again(wrong("me-south-1"));
    assert_eq!(url(&request), "https://jobs.s3.me-south-1.amazonaws.com/leader/group.json");
    assert!(is_for(&request, "me-south-1"));
    let answer = talk.ends(wrong("eu-west-1"));
    assert_eq!(means(&answer.outcome), Rejected(FaultKind::Misconfigured));
    let unusable = ["us-east-1", "", "EU", "a/b", "x\"><"].map(wrong);
    mean(store, &[update()], unusable, Rejected(FaultKind::Misconfigured));
}

/// Every other text that is no version is drawn by `properties/answers.rs`.
#[test]
fn c21_no_etag_after_a_put_is_read_back_and_after_a_get_is_no_ground_for_a_claim() {
    let nothing = Outcome::Written { version: None };
    for etag in ["", "*", "a,b", "\"\"", "\"a\", \"b\"", "\"a\"b\"", "W/\"9bb58f26\"", "W/9bb58f26"]
    {
        let headers = [("etag", etag)];
        assert_eq!(outcome(update(), response(200, &headers, "")), nothing, "{etag}");
        let found = [response(200, &headers, LEASE)];
        mean(store, &[read()], found, Rejected(FaultKind::Nonsense));
    }
    all_say(&[fault(outcome(read(), response(200, &[], LEASE)))], &["no usable ETag"]);
    let two = [("etag", "\"a\""), ("etag", "\"b\"")];
    // The last is a portal that takes every PUT.
    for answer in
        [response(200, &[], ""), response(200, &two, ""), tagged(200, "<html>welcome</html>")]
    {
        assert_eq!(outcome(update(), answer.clone()), nothing, "{answer:?}");
    }
    // An empty page in place of an error, as nginx gives it by `error_page 502 =200 /empty.html`.
    for other in [("content-type", "text/html"), ("last-modified", DATE)] {
        let headers = [("etag", "\"65f1c2a0-0\""), other];
        assert_eq!(outcome(update(), response(200, &headers, "")), nothing, "{other:?}");
        let named = [headers[0], other, ("x-amz-request-id", "1")];
        assert_ne!(outcome(update(), response(200, &named, "")), nothing, "{other:?} of the store");
    }
}

#[test]
fn c23_c24_etags_are_passed_through_byte_for_byte() {
    let odd = ["9bb58f26192e4ba0", "\"9bb58f26-17\"", "\"!#$%&'()*+,-./:;<=>?@[]^_`{|}~\""];
    for etag in [ETAG, "\"abc-gzip\""].into_iter().chain(odd) {
        let expected = Version(etag.to_owned());
        let answer = |body: &str| response(200, &[("etag", etag)], body);
        let written = outcome(create(), answer(""));
        assert_eq!(written, Outcome::Written { version: Some(expected.clone()) });
        let found = outcome(read(), answer(LEASE));
        assert!(matches!(found, Outcome::Found { version, .. } if version == expected), "{etag}");
        let request = sent(&store(), write(LEASE, Condition::Match(expected)));
        assert_eq!(header(&request, "if-match"), Some(etag));
    }
}

#[test]
fn c23_unchanged_is_only_what_was_asked_and_still_has_that_version() {
    let weak = format!("W/{ETAG}");
    let not_modified = |etag: &str| response(304, &[("etag", etag)], "");
    let same = [response(304, &[], ""), not_modified(ETAG), not_modified(&weak)];
    mean(store, &[read_unless(&version())], same, Unchanged);
    let other = [not_modified("\"other\"")];
    mean(store, &[read_unless(&version())], other, Rejected(FaultKind::Nonsense));
    mean(store, &[read()], [response(304, &[], "")], Rejected(FaultKind::Nonsense));
}

#[test]
fn c25_a_delete_marker_is_absence_and_a_foreign_404_is_not() {
    let no_bucket = [error(404, "NoSuchBucket")];
    let faults = mean(store, &all(), no_bucket, Rejected(FaultKind::Misconfigured));
    all_say(&faults, &["create the bucket"]);
    let foreign = "|<html><h1>404</h1><Code>NoSuchKey</Code></html>|{\"Code\":\"NoSuchKey\"}|\
        no <Error><Code>NoSuchKey</Code></Error>|<Error><Code>NoSuchKey|\
        <Error><Code>NoSuch Key</Code></Error>|<Error><Code>NoSuchUpload</Code></Error>|\
        <Error><Message><Code>NoSuchKey</Message></Error>";
    let answers = foreign.split('|').map(|body| response(404, &[], body));
    mean(store, &[read()], answers, Rejected(FaultKind::Nonsense));
    let own = "\u{feff}<?xml version=\"1.0\"?>\r\n<Error xmlns=\"http://s3.amazonaws.com/doc/\">\n  \
               <Code>\n NoSuchKey </Code></Error>";
    let marker = with(error(404, "NoSuchKey"), "x-amz-delete-marker", "true");
    mean(store, &[read()], [marker, response(404, &[], own)], Missing);
}

#[test]
fn c27_a_body_that_is_too_long_or_cut_off_keeps_its_version() {
    let long = " ".repeat(MAX_RECORD_BYTES + 1);
    assert_eq!(outcome(read(), tagged(200, &long)), unreadable(Flaw::TooLarge));
    assert_eq!(outcome(read(), cut(tagged(200, LEASE))), unreadable(Flaw::TooLarge));
    assert_eq!(outcome(read(), tagged(200, "")), unreadable(Flaw::NotJson));
    // An error that came with a success is not a broken record: it is not to be healed.
    let error = tagged(200, &document("SlowDown", ""));
    let odd = [201, 204, 206, 300, 302, 410, 412, 418].map(|status| tagged(status, LEASE));
    mean(store, &[read()], odd.into_iter().chain([error]), Rejected(FaultKind::Nonsense));
}

#[test]
fn c43_facts_are_dates_after_the_epoch_and_the_marks_of_a_relay() {
    let times = |date: &str, modified: &str| {
        let headers = [("etag", ETAG), ("date", date), ("last-modified", modified)];
        let facts = told(&store(), read(), response(200, &headers, LEASE)).facts;
        (facts.date_ms, facts.last_modified_ms, facts.relayed)
    };
    let told_ms = times(DATE, "Fri, 21 Nov 2025 09:59:45 GMT");
    assert_eq!(told_ms, (Some(NOW_MS), Some(NOW_MS - 15_000), false));
    for garbage in ["", "now", "Thu, 01 Jan 1960 00:00:00 GMT", "Fri, 99 Nov 2025 10:00:00 GMT"] {
        assert_eq!(times(garbage, garbage), (None, None, false), "{garbage}");
    }
    for (name, value) in [("age", "0"), ("age", "?"), ("via", "1.1 proxy")] {
        for (operation, status) in [(read(), 404), (read_unless(&version()), 304), (update(), 412)]
        {
            let headers = [("date", DATE), (name, value)];
            let facts = told(&store(), operation, response(status, &headers, "")).facts;
            let found = (facts.relayed, facts.cached, facts.date_ms);
            assert_eq!(found, (true, value == "?", Some(NOW_MS)), "{name}: {value}");
        }
    }
}

#[test]
fn in_a_bucket_of_records_for_kubernetes_members_other_objects_are_native() {
    let written = Rc::<RefCell<Vec<bool>>>::default();
    let heard = Rc::clone(&written);
    let host = Virtual::default().asking(move |request: Request| {
        let body = String::from_utf8_lossy(request.body());
        heard.borrow_mut().push(body.contains("holderIdentity"));
        ready(Ok(tagged(200, "")))
    });
    let variables = |name: &str| match name {
        "EDGELECT_FORMAT" => Some("kubernetes".to_owned()),
        "EDGELECT_ENDPOINT" => config().endpoint,
        name => {
            ["_BUCKET", "_ID", "_KEY"].iter().any(|end| name.ends_with(end)).then(|| "jobs".into())
        }
    };
    let leases = S3Store::from_vars(variables, "leader/group.json", host).unwrap();
    let others = leases.at("leader/group.json.state").unwrap();
    for store in [leases, others] {
        let answer = block_on(store.perform(write_lease(LEASE, Condition::Absent)));
        assert_eq!(answer.outcome, Outcome::Written { version: Some(version()) });
    }
    assert_eq!(*written.borrow(), [true, false]);
}

fn url_of(config: S3Config) -> String {
    url(&sent(&S3::new(config).unwrap(), read()))
}

#[test]
fn addresses_by_path_and_by_host() {
    let aws = |region: &str, bucket: &str| S3Config {
        endpoint: None,
        region: Some(region.to_owned()),
        bucket: bucket.to_owned(),
        ..config()
    };
    let at = |endpoint: &str, path_style: Option<bool>| S3Config {
        endpoint: Some(endpoint.to_owned()),
        path_style,
        ..config()
    };
    let by_path = S3Config { path_style: Some(true), ..aws("us-east-1", "jobs") };
    for (config, expected) in [
        (aws("us-east-1", "jobs"), "https://jobs.s3.us-east-1.amazonaws.com/"),
        (aws("cn-north-1", "jobs"), "https://jobs.s3.cn-north-1.amazonaws.com.cn/"),
        // No certificate covers a host with a dotted bucket.
        (aws("us-east-1", "my.jobs"), "https://s3.us-east-1.amazonaws.com/my.jobs/"),
        (by_path, "https://s3.us-east-1.amazonaws.com/jobs/"),
        (at("https://S3.amazonaws.com:443/", None), "https://jobs.s3.amazonaws.com/"),
        (at("https://id.r2.example", None), "https://id.r2.example/jobs/"),
        (at("https://minio.example/a/b/", None), "https://minio.example/a/b/jobs/"),
        (at("https://minio.example/a", Some(false)), "https://jobs.minio.example/a/"),
        (at("http://127.9.9.9:80", None), "http://127.9.9.9/jobs/"),
        (at("http://localhost:8333", Some(false)), "http://jobs.localhost:8333/"),
        (at("http://[::1]:8333/local/r2", None), "http://[::1]:8333/local/r2/jobs/"),
        (at("https://[2001:DB8:0::1]", None), "https://[2001:db8::1]/jobs/"),
        (at("https://s3_internal:9000", None), "https://s3_internal:9000/jobs/"),
    ] {
        assert_eq!(url_of(config), format!("{expected}leader/group.json"));
    }
}

#[test]
fn keys_are_percent_encoded_as_s3_wants_it() {
    let key = "a/b.json/A-Z_0.9~/a b+c/%2e%2e/ä/漢/a?b#c&d=e/!*'()/a\\b:c@d/...";
    let encoded = "a/b.json/A-Z_0.9~/a%20b%2Bc/%252e%252e/%C3%A4/%E6%BC%A2/a%3Fb%23c%26d%3De/\
                   %21%2A%27%28%29/a%5Cb%3Ac%40d/...";
    let url = url_of(S3Config { key: key.to_owned(), ..config() });
    assert_eq!(url, format!("https://store.example:9000/jobs/{encoded}"));
}

#[test]
fn a_wrong_option_is_named_and_no_secret_of_an_endpoint_is_shown() {
    type Change = fn(&mut S3Config, String);
    let endpoint: Change = |config, to| config.endpoint = Some(to);
    let unusable = "store.example ftp://store.example http://store.example http://10.0.0.1:8333 \
        http://127.0.0.1.example http://127.1 https://127.1 https://0x7f000001 https:// \
        https://store.example:0 https://store.example:70000 https://store.example:x \
        https://store.example/a/../b https://store.example//a https://store.example/%2e \
        https://store.example/a?b=c https://store.example/#a https://ex%61mple/ https://a..b/ \
        https://exämple/ https://[::1 https://[fe80::1%25eth0]/ //store.example";
    let secret = "https://u:gehe?im@h https://user:geheim@h/ https://h/?X-Amz-Signature=geheim \
        https://h/#geheim";
    let endpoints: Vec<_> = [unusable, secret].iter().flat_map(|all| all.split(' ')).collect();
    let endpoints = [&endpoints[..], &["", "https://a b/"]].concat();
    let bucket: Change = |config, to| config.bucket = to;
    let region: Change = |config, to| config.region = Some(to);
    let alone: Change = |config, to| (config.endpoint, config.region) = (None, Some(to));
    let key: Change = |config, to| config.key = to;
    let by_host: Change = |config, to| {
        let (endpoint, bucket) = to.split_once(' ').unwrap();
        config.endpoint = Some(endpoint.to_owned());
        (config.bucket, config.path_style) = (bucket.to_owned(), Some(false));
    };
    let [long, longer, longest] = ["a".repeat(64), "a".repeat(65), "ä".repeat(513)];
    let keys = ["", "/a", "a/", "a//b", ".", "a/./b", "a/..", "a\nb", "a\u{7f}", &longest];
    let buckets = ["", "ab", "Jobs", "a_b", "-ab", "ab-", "a..b", "a/b", "jöbs", &long];
    for (field, change, values) in [
        ("endpoint", endpoint, &endpoints[..]),
        ("bucket", bucket, &buckets),
        ("region", region, &["", "EU", "eu west", "eu/west", &longer]),
        ("region", alone, &["auto"]),
        ("lockfilePath", key, &keys),
        ("pathStyle", by_host, &["https://a.example my.jobs", "http://127.0.0.1:8333 jobs"]),
    ] {
        for value in values {
            let mut config = config();
            change(&mut config, (*value).to_owned());
            let error = S3::new(config).expect_err("the option is wrong");
            assert_eq!(error.field, field, "{value}: {error}");
            assert!(!error.to_string().contains("gehe"), "{error}");
        }
    }
}

#[test]
fn credentials_that_no_header_can_carry_are_a_fault_and_nothing_is_sent() {
    for id in ["", "A\nB"] {
        let credentials = Credentials { access_key_id: id.to_owned(), ..credentials() };
        let fault = Talk::new(&store(), update()).tries(&credentials).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Denied);
        assert!(fault.message.contains("credentials"), "{fault}");
        assert!(!fault.message.contains("the-secret"), "{fault}");
    }
}
