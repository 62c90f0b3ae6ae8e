//! What any answer of an S3 store may make an elector believe, and where it may send it (S3, S8;
//! scenarios 20 to 27).

use edgelect::calendar::read_http_date;
use edgelect::lease::{self, Flaw, Format, MAX_RECORD_BYTES, Reading, Remains};
use edgelect::request::{self, Request, Response};
use edgelect::store::s3::{Exchange, Next, S3, S3Config};
use edgelect::store::{Answer, Condition, Fault, FaultKind, Operation, Outcome, Version};

use super::credentials;

/// Two redirects, one clock, one region and fresh credentials once; the next answer ends it.
const MAX_REQUESTS: usize = 6;

/// The longest fault: two names of places, the sentence and what to do.
const MAX_MESSAGE_BYTES: usize = 2_000;

const MAX_RETRY_AFTER_MS: u64 = 300_000;

/// AWS, or a store of one's own on a port of its own.
pub fn config(aws: bool) -> S3Config {
    S3Config {
        endpoint: (!aws).then(|| "https://store.example:9000".to_owned()),
        bucket: "jobs".to_owned(),
        region: aws.then(|| "eu-west-1".to_owned()),
        path_style: None,
        key: "leader/group.json".to_owned(),
        ..S3Config::default()
    }
}

/// The operations that there are.
pub fn operations() -> [Operation; 4] {
    let version = || Version("\"9bb58f26192e4ba00f01e2e7b136bbd8\"".to_owned());
    let body = br#"{"leaderID":"a","sequence":1}"#.to_vec();
    [
        Operation::Read { unless: None },
        Operation::Read { unless: Some(version()) },
        Operation::Write { record: body.clone().into(), condition: Condition::Absent },
        Operation::Write { record: body.into(), condition: Condition::Match(version()) },
    ]
}

/// One store hears these answers, over and over, to one operation after the other.
pub fn answers(aws: bool, operations: &[Operation], responses: &[Response], wall_ms: u64) {
    let s3 = S3::new(config(aws)).expect("the configuration is good");
    let mut heard = responses.iter().cycle();
    for operation in operations {
        let mut exchange = s3.begin(operation.clone());
        let mut sent = 0;
        let (answer, response) = loop {
            sent += 1;
            assert!(sent <= MAX_REQUESTS, "an exchange that does not end");
            let request = exchange.request(&s3, &credentials(), wall_ms);
            is_safe(aws, operation, &request.expect("the credentials and the version are good"));
            let response = heard.next().expect("there is an answer");
            let next = exchange.answer(&s3, response.clone(), wall_ms);
            is_discreet(&next, &exchange, &s3);
            if let Next::Done(answer) = next {
                break (answer, response);
            }
        };
        is_justified(operation, &answer, response);
    }
}

/// A write on a version of any spelling leaves only if that is one version, and then with it.
pub fn condition(version: &str, operation: Operation) {
    let s3 = S3::new(config(false)).expect("the configuration is good");
    let request = s3.begin(operation.clone()).request(&s3, &credentials(), 0);
    assert_eq!(request.is_ok(), is_strong(version), "{version:?}");
    if let Ok(request) = request {
        is_safe(false, &operation, &request);
    }
}

/// A request goes to the bucket's own key at the store, or at AWS, over https, with its condition,
/// signed.
fn is_safe(aws: bool, operation: &Operation, request: &Request) {
    let url = request.uri();
    assert_eq!(url.scheme_str(), Some("https"), "{url}");
    if aws {
        let host = url.authority().expect("a host").as_str();
        let host = host.strip_suffix(".cn").unwrap_or(host);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        assert!(host.ends_with(".amazonaws.com") && host.bytes().all(plain), "{url}");
        let service = host.strip_prefix("jobs.").unwrap_or(host);
        assert!(service.starts_with("s3.") || service.starts_with("s3-"), "{url}");
        let path = if service.len() < host.len() { "/" } else { "/jobs/" };
        assert_eq!(url.path(), format!("{path}leader/group.json"), "{url}");
    } else {
        assert_eq!(*url, "https://store.example:9000/jobs/leader/group.json");
    }
    let header = |name: &str| {
        let mut values = request.headers().get_all(name).iter();
        let value = values.next().map(|value| value.to_str().expect("ASCII"));
        assert!(values.next().is_none(), "{name} twice");
        value
    };
    let (method, none_match, matches) = match operation {
        Operation::Read { unless } => ("GET", unless.as_ref().map(|known| known.0.as_str()), None),
        Operation::Write { condition: Condition::Absent, .. } => ("PUT", Some("*"), None),
        Operation::Write { condition: Condition::Match(held), .. } => {
            ("PUT", None, Some(held.0.as_str()))
        }
        Operation::Delete => ("DELETE", None, None),
    };
    assert_eq!(request.method(), method);
    assert_eq!((header("if-none-match"), header("if-match")), (none_match, matches), "S3");
    let body = match operation {
        Operation::Write { record, .. } => record.body(Format::Native),
        Operation::Read { .. } | Operation::Delete => Vec::new(),
    };
    assert_eq!(*request.body(), body);
    assert_eq!(header("x-amz-security-token"), Some("the-token-of-it"));
    let authorization = header("authorization").expect("it is signed");
    let signed = authorization.split("SignedHeaders=").nth(1).expect("the list of what is");
    let signed: Vec<&str> = signed.split([';', ',']).collect();
    for name in request.headers().keys().filter(|name| *name != "authorization") {
        assert!(signed.contains(&name.as_str()), "{name} is not signed: {signed:?}");
    }
}

/// Nothing that is shown has a secret in it, or repeats what a store may say of one.
fn is_discreet(next: &Next, exchange: &Exchange, s3: &S3) {
    let shown = format!("{next:?} {exchange:?} {s3:?} {}", s3.describe());
    let secrets = ["the-secret-of-it", "the-token-of-it", "the-message", "the-string"];
    let word = secrets.iter().find(|word| shown.contains(**word));
    assert_eq!(word, None, "{shown}");
}

fn is_justified(operation: &Operation, answer: &Answer, response: &Response) {
    let headers = response.headers();
    let says = |name: &str| request::text(headers, name);
    let once = |name: &str| says(name).filter(|_| request::count(headers, name) == 1);
    assert_eq!(answer.facts.date_ms, once("date").and_then(read_http_date));
    assert_eq!(answer.facts.last_modified_ms, once("last-modified").and_then(read_http_date));
    let relayed = ["age", "via"].iter().any(|name| headers.contains_key(*name));
    assert_eq!(answer.facts.relayed, relayed);
    let writes = matches!(operation, Operation::Write { .. });
    let succeeded = matches!(response.status().as_u16(), 200 | 201 | 204);
    match &answer.outcome {
        Outcome::Found { version, reading } => {
            assert!(!writes && response.status().as_u16() == 200);
            is_the_one_etag(version, response);
            let body = response.body();
            let too_large = body.truncated || body.bytes.len() > MAX_RECORD_BYTES;
            let flaw = Reading::Unreadable(Flaw::TooLarge, Remains::NONE);
            assert_eq!(*reading, if too_large { flaw } else { lease::read(&body.bytes) });
        }
        Outcome::Missing => {
            let text = String::from_utf8_lossy(&response.body().bytes);
            assert!(!writes && response.status().as_u16() == 404 && text.contains("NoSuchKey"));
        }
        Outcome::Unchanged => {
            let Operation::Read { unless: Some(known) } = operation else {
                panic!("nobody asked whether it has changed")
            };
            assert_eq!(response.status().as_u16(), 304);
            // An ETag that can be no version says nothing; every other one must be the one asked
            // about.
            let etag = says("etag").filter(|_| request::count(response.headers(), "etag") == 1);
            assert!(etag.is_none_or(|etag| etag == known.0 || !is_strong(etag)), "{etag:?}");
        }
        Outcome::Written { version } => {
            assert!(writes && succeeded);
            if let Some(version) = version {
                assert!(response.body().bytes.is_empty() && !response.body().truncated);
                is_the_one_etag(version, response);
            }
        }
        Outcome::Refused => {
            assert!(writes && matches!(response.status().as_u16(), 304 | 404 | 409 | 412))
        }
        Outcome::Unknown { retry_after_ms, cause } => {
            assert!(retry_after_ms.is_none_or(|ms| ms <= MAX_RETRY_AFTER_MS), "{retry_after_ms:?}");
            is_readable(cause, response);
        }
        Outcome::Rejected(fault) => {
            // Whoever rejects a write says that it did not take effect; no success and no breakdown
            // says that (S8).
            let refusal = (300..500).contains(&response.status().as_u16())
                || response.status().as_u16() == 501;
            let late = response.status().as_u16() == 408 && fault.kind != FaultKind::Denied;
            assert!(!writes || (refusal && !late), "{fault:?}");
            is_readable(fault, response);
        }
    }
}

/// A version that could match anything, or nothing, would make a condition worthless (S3).
fn is_the_one_etag(version: &Version, response: &Response) {
    let etag = request::text(response.headers(), "etag");
    assert_eq!(etag, Some(version.0.as_str()), "byte for byte");
    assert_eq!(request::count(response.headers(), "etag"), 1, "which of them?");
    assert!(is_strong(&version.0), "{version:?}");
}

/// One entity tag of RFC 9110 that is not weak, or the same without quotes, which some stores leave
/// out.
fn is_strong(etag: &str) -> bool {
    let inner = etag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let list = inner.is_none() && etag.contains([',', '*']);
    let weak = etag.starts_with("W/") || etag.starts_with("w/");
    let inner = inner.unwrap_or(etag);
    let plain = inner.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    !inner.is_empty() && plain && !list && !weak && etag.len() <= 1024
}

fn is_readable(fault: &Fault, response: &Response) {
    assert_eq!(fault.status, Some(response.status().as_u16()));
    assert!(fault.message.len() <= MAX_MESSAGE_BYTES, "{} bytes", fault.message.len());
    assert!(!fault.message.chars().any(char::is_control), "{:?}", fault.message);
    if let Some(code) = &fault.code {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
        assert!((1..=64).contains(&code.len()) && code.bytes().all(plain), "{code:?}");
    }
}
