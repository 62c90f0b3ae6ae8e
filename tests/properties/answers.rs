//! S3: any answers to any operations, drawn from what stores and gateways say.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::lease::MAX_RECORD_BYTES;
use edgelect::request::{self, Body, Response};
use edgelect::store::s3::{Next, S3};
use edgelect::store::{Condition, Operation, Version};

use super::draw::{self, Bytes};
use super::hold::{drew, hold, saw};
use super::rules::answers;
use crate::answers::told::means;

const REGRESSIONS: &str = "tests/properties/regressions/answers.txt";

const CODES: &str = "NoSuchKey NoSuchBucket AccessDenied RequestTimeTooSkewed ExpiredToken SlowDown \
    PreconditionFailed ConditionalRequestConflict NotImplemented PermanentRedirect \
    TemporaryRedirect AuthorizationHeaderMalformed InvalidArgument SignatureDoesNotMatch \
    InternalError X.y-1";

const STATUSES: [u16; 19] =
    [200, 201, 204, 301, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 412, 429, 500, 501, 503];

/// Where redirects lead, and where they would like to.
fn target() -> impl Strategy<Value = String> {
    let scheme = select(vec!["https://", "http://", "HTTPS://", "//", "", "ftp://", "https:/"]);
    let user = select(vec!["", "", "", "u:p@", "s3.eu-west-1.amazonaws.com@"]);
    let bucket = select(vec!["", "jobs.", "jobs.jobs.", "other.", "x-", "."]);
    let host = prop_oneof![
        draw::word(
            "s3.eu-central-1.amazonaws.com s3.amazonaws.com s3.cn-north-1.amazonaws.com.cn \
             s3-fips.dualstack.us-gov-west-1.amazonaws.com s3.eu-west-1.amazonaws.com. \
             s3.eu-central-1.amazonaws.com.evil.example s3.evil.elb.amazonaws.com localhost \
             s3x.eu-west-1.amazonaws.com store.example evil.example 169.254.169.254 [::1]"
        ),
        draw::text(20),
    ];
    let port = select(vec!["", "", ":443", ":9000", ":80", ":", ":99999"]);
    let path = prop_oneof![Just(String::new()), "/[a-z?#@\\\\%.]{0,12}", draw::text(10)];
    (scheme, user, bucket, host, port, path).prop_map(|(scheme, user, bucket, host, port, path)| {
        [scheme, user, bucket, &host, port, &path].concat()
    })
}

/// An error document as AWS, MinIO, Ceph and R2 write it, or nearly one.
fn document() -> impl Strategy<Value = String> {
    let declared = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let head = select(vec!["", declared, "\u{feff}", " \r\n<?xml version='1.0'?>", "x"]);
    let spaced = "<Error xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
    let root = select(vec!["<Error>", spaced, "<Errors>", ""]);
    let code = prop_oneof![4 => draw::word(CODES), 1 => draw::text(70)];
    let element = prop_oneof![
        target().prop_map(|target| format!("<Endpoint>{target}</Endpoint>")),
        "<Region>[a-z0-9-]{0,12}</Region>",
        draw::time().prop_map(|time| format!("<ServerTime>{time}</ServerTime>")),
        draw::text(20).prop_map(|text| format!("<Message>the-message {text}</Message>")),
        Just("<StringToSign>the-string</StringToSign>".to_owned()),
        draw::text(10),
    ];
    (head, root, code, vec(element, 0..4)).prop_map(|(head, root, code, elements)| {
        format!("{head}{root}<Code>{code}</Code>{}</Error>", elements.concat())
    })
}

fn header() -> impl Strategy<Value = (String, String)> {
    let etag = prop_oneof![
        3 => Just("\"9bb58f26192e4ba00f01e2e7b136bbd8\"".to_owned()),
        2 => draw::one_of([
            "*", "W/\"a\"", "\"a\", \"b\"", "\"\"", "\"a*,b\"", "a", "\"a\"b\"", "",
        ]),
        1 => draw::text(12),
    ];
    let date = prop_oneof![
        Just("Fri, 21 Nov 2025 10:00:00 GMT".to_owned()),
        Just("Sat Nov 22 10:00:00 2025".to_owned()),
        draw::text(10),
    ];
    let named = |name: &'static str| move |value| (name.to_owned(), value);
    prop_oneof![
        4 => etag.prop_map(named("etag")),
        2 => target().prop_map(named("location")),
        2 => date.clone().prop_map(named("date")),
        1 => date.prop_map(named("last-modified")),
        1 => "(-?[0-9]{1,21}|Fri, 21 Nov 2025 1[0-9]:00:00 GMT)".prop_map(named("retry-after")),
        1 => "[a-z0-9-]{0,20}".prop_map(named("x-amz-bucket-region")),
        1 => draw::one_of(["text/html; charset=utf-8", "application/xml"])
            .prop_map(named("content-type")),
        1 => (draw::one_of(["age", "via", "x-other"]), draw::text(4)),
    ]
}

/// An answer that a failure shows as text.
#[derive(Clone, Debug)]
struct Heard {
    status: u16,
    headers: Vec<(String, String)>,
    bytes: Bytes,
    truncated: bool,
}

impl From<Heard> for Response {
    fn from(Heard { status, headers, bytes, truncated }: Heard) -> Self {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let body = Body { bytes: bytes.0, truncated };
        request::answer(status, headers, body).expect("the status and the names are good")
    }
}

/// What stores say when they are well, and the refusals after which a request is sent once more.
fn usual() -> impl Strategy<Value = Heard> {
    let etag = ("etag", "\"9bb58f26192e4ba00f01e2e7b136bbd8\"");
    let heard = |status, (name, value): (&str, &str), bytes| {
        let headers = vec![(name.to_owned(), value.to_owned())];
        Heard { status, headers, bytes, truncated: false }
    };
    let error = move |status, header: (&str, &str), code: &str, more: &str| {
        let text = format!("<Error><Code>{code}</Code>{more}</Error>");
        heard(status, header, Bytes(text.into_bytes()))
    };
    let (none, skewed) = (("x-a", ""), "<ServerTime>2025-11-21T10:00:00Z</ServerTime>");
    let plain = select(vec![
        heard(304, etag, Bytes(Vec::new())),
        heard(200, etag, Bytes(Vec::new())),
        error(404, none, "NoSuchKey", ""),
        error(412, none, "PreconditionFailed", ""),
        error(403, none, "RequestTimeTooSkewed", skewed),
        error(400, none, "ExpiredToken", ""),
        error(400, none, "X", "<Region>eu-west-3</Region>"),
    ]);
    let record = draw::body().prop_map(move |bytes| heard(200, etag, bytes));
    let moved = (select(vec![301, 307, 308]), target())
        .prop_map(move |(status, target)| error(status, ("location", &target), "X", ""));
    prop_oneof![4 => plain, 1 => record, 2 => moved]
}

fn unusual() -> impl Strategy<Value = Heard> {
    let status = prop_oneof![8 => select(STATUSES.to_vec()), 1 => 100..1_000_u16];
    let lengths = MAX_RECORD_BYTES - 1..MAX_RECORD_BYTES + 2;
    let bytes = prop_oneof![
        3 => Just(Bytes(Vec::new())),
        3 => document().prop_map(|text| Bytes(text.into_bytes())),
        2 => draw::body(),
        1 => vec(any::<u8>(), 0..100).prop_map(Bytes),
        1 => lengths.prop_map(|length| Bytes(vec![b' '; length])),
    ];
    (status, vec(header(), 0..5), bytes, prop::bool::weighted(0.1))
        .prop_map(|(status, headers, bytes, truncated)| Heard { status, headers, bytes, truncated })
}

/// These of the operations that there are.
fn chosen(places: &[usize]) -> Vec<Operation> {
    places.iter().map(|place| answers::operations()[*place].clone()).collect()
}

#[test]
fn any_answers_to_any_operations_are_believed_for_no_more_than_they_say() {
    let operations = vec(0..4_usize, 1..4);
    let drawn =
        (any::<bool>(), operations, vec(prop_oneof![usual(), unusual()], 1..6), any::<u64>());
    hold(REGRESSIONS, 6_000, drawn, |(aws, operations, responses, wall_ms)| {
        let responses: Vec<Response> = responses.into_iter().map(Into::into).collect();
        let operations = chosen(&operations);
        let s3 = S3::new(answers::config(aws)).expect("the configuration is good");
        let next = s3.begin(operations[0].clone()).answer(&s3, responses[0].clone(), wall_ms);
        let outcome = match &next {
            Next::Done(answer) => format!("{:?}", means(&answer.outcome)),
            goes_on => format!("{goes_on:?}"),
        };
        saw(outcome.split('(').next().unwrap_or_default(), true);
        answers::answers(aws, &operations, &responses, wall_ms);
    });
    drew(["Found", "Missing", "Unchanged", "Written", "Refused"], 50);
    drew(["Unknown", "Rejected", "Again", "Refresh"], 50);
}

#[test]
fn c20_redirects_that_lead_round_and_round_end() {
    let places = ["eu-central-1", "us-east-2", "ap-south-1", "sa-east-1"];
    let moved = (select(vec![301_u16, 307, 308]), select(places.to_vec()), any::<bool>());
    let drawn = (vec(moved, 2..8), vec(0..4_usize, 1..4));
    hold(REGRESSIONS, 1_000, drawn, |(moved, operations)| {
        let responses = moved.iter().map(|(status, region, by_header)| {
            let location = format!("https://jobs.s3.{region}.amazonaws.com/leader/group.json");
            let there = ("x-amz-bucket-region", *region);
            let header = if *by_header { ("location", location.as_str()) } else { there };
            request::answer(*status, [header], Body::default()).expect("good")
        });
        let responses: Vec<_> = responses.collect();
        let operations = chosen(&operations);
        answers::answers(true, &operations, &responses, 0);
    });
}

#[test]
fn s3_a_version_that_no_store_gives_is_never_sent() {
    let version = prop_oneof![draw::text(30), "(W/|w/)?\"?[a-z*, ]{0,6}\"?"];
    hold(REGRESSIONS, 5_000, version, |version| {
        let writes = |version| {
            let condition = Condition::Match(Version(version));
            Operation::Write { record: Vec::new().into(), condition }
        };
        answers::condition(&version, writes(version.clone()));
    });
}
