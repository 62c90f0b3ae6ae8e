//! What each bug of the store's code changes in a request or in the meaning of an answer: that its site is
//! reached, whatever a simulation makes of it.

use edgelect::planted::{Bug, Depth, plant};
use edgelect::request::{Body, Response};
use edgelect::sigv4::Credentials;
use edgelect::store::s3::{Exchange, Next, S3, S3Config};
use edgelect::store::{Condition, Operation, Version};

use crate::table::bugs;

/// Fri, 21 Nov 2025 10:00:00 GMT
const NOW_MS: u64 = 1_763_719_200_000;
const ETAG: &str = "\"9bb58f26192e4ba00f01e2e7b136bbd8\"";
const LEASE: &str = r#"{"leaderID":"a","sequence":1}"#;
const TOMBSTONE: &str = r#"{"leaderID":"a","sequence":2,"lastUpdated":"0001-01-01T00:00:00Z"}"#;

fn store() -> S3 {
    let config = S3Config {
        region: Some("eu-west-1".to_owned()),
        bucket: "jobs".to_owned(),
        key: "leader.json".to_owned(),
        ..S3Config::default()
    };
    S3::new(config).expect("the configuration is valid")
}

fn read() -> Operation {
    Operation::Read { unless: None }
}

fn update(body: &str, version: &str) -> Operation {
    let condition = Condition::Match(Version(version.to_owned()));
    Operation::Write { body: body.into(), condition }
}

/// The conditions of the request that an exchange sends now.
fn sent(exchange: &mut Exchange, s3: &S3) -> String {
    let credentials = Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret".to_owned(),
        session_token: None,
    };
    match exchange.request(s3, &credentials, NOW_MS) {
        Ok(request) => {
            let request: http::Request<Vec<u8>> = request.try_into().expect("it can be sent");
            let headers = request.headers().iter();
            let conditions = headers.filter(|(name, _)| name.as_str().contains("match"));
            format!("{:?}", conditions.collect::<Vec<_>>())
        }
        Err(fault) => format!("{:?}", fault.kind),
    }
}

fn sends(operation: Operation) -> String {
    let s3 = store();
    sent(&mut s3.begin(operation), &s3)
}

/// What an answer means, without the words for people.
fn means(operation: Operation, status: u16, etag: &str, body: &str) -> String {
    let s3 = store();
    let mut exchange = s3.begin(operation);
    sent(&mut exchange, &s3);
    match exchange.answer(&s3, response(status, &[("etag", etag)], body), NOW_MS) {
        Next::Done(answer) => {
            let told = format!("{:?}", answer.outcome);
            told.split("message").next().unwrap_or_default().to_owned()
        }
        other => format!("{other:?}"),
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let mut builder = http::Response::builder().status(status);
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        builder = builder.header(*name, *value);
    }
    let body = Body { bytes: body.into(), truncated: false };
    builder.body(body).expect("the headers are valid").into()
}

fn error(code: &str) -> String {
    format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code></Error>")
}

/// The update that follows a redirect to another region of the same store.
fn sends_after_a_redirect() -> String {
    let s3 = store();
    let mut exchange = s3.begin(update(LEASE, ETAG));
    sent(&mut exchange, &s3);
    let location = "https://jobs.s3.eu-west-2.amazonaws.com/leader.json";
    let headers = [("location", location), ("x-amz-bucket-region", "eu-west-2")];
    let moved = response(307, &headers, &error("TemporaryRedirect"));
    assert_eq!(exchange.answer(&s3, moved, NOW_MS), Next::Again);
    sent(&mut exchange, &s3)
}

/// Whether an answer with this header counts as relayed.
fn relayed(name: &str, value: &str) -> String {
    let s3 = store();
    let mut exchange = s3.begin(read());
    sent(&mut exchange, &s3);
    match exchange.answer(&s3, response(200, &[("etag", ETAG), (name, value)], LEASE), NOW_MS) {
        Next::Done(answer) => format!("{:?}", answer.facts),
        other => format!("{other:?}"),
    }
}

/// What the store's code does where the bug has its site.
fn behaviour(bug: Bug) -> Vec<String> {
    match bug {
        Bug::CopySourceCondition | Bug::UpdateUnconditional => vec![sends(update(LEASE, ETAG))],
        Bug::TombstoneUnconditional => vec![sends(update(TOMBSTONE, ETAG))],
        Bug::RedirectDropsCondition => vec![sends_after_a_redirect()],
        Bug::NoEtagNoCondition => vec![means(read(), 200, "", LEASE), sends(update(LEASE, ""))],
        Bug::EtagUnvalidated => {
            vec![means(read(), 200, "*", LEASE), sends(update(LEASE, "\"a\", \"b\""))]
        }
        Bug::WeakEtagAccepted => {
            let weak = format!("W/{ETAG}");
            vec![means(read(), 200, &weak, LEASE), sends(update(LEASE, &weak))]
        }
        Bug::ViaIgnored => vec![relayed("via", "1.1 cache"), relayed("age", "30")],
        Bug::AnyNotFoundIsAbsent => {
            vec![means(read(), 404, "", &error("NoSuchBucket")), means(read(), 404, "", "")]
        }
        Bug::ErrorDocumentIsRecord => vec![means(read(), 200, ETAG, &error("InternalError"))],
        Bug::FailureDidNotLand => vec![
            means(update(LEASE, ETAG), 500, "", &error("InternalError")),
            means(update(LEASE, ETAG), 409, "", &error("InvalidBucketState")),
            means(update(LEASE, ETAG), 429, "", ""),
        ],
        bug => panic!("say here what {bug:?} changes in a request or an answer"),
    }
}

#[test]
fn each_bug_of_the_stores_code_changes_what_is_sent_or_what_an_answer_means() {
    for bug in bugs(Depth::Store) {
        plant(None);
        let sound = behaviour(bug);
        plant(Some(bug));
        let broken = behaviour(bug);
        plant(None);
        for (sound, broken) in sound.iter().zip(&broken) {
            println!("{bug:?}: {sound} becomes {broken}");
            assert_ne!(sound, broken, "{bug:?}");
        }
    }
}
