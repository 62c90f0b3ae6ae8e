//! Signatures: any request, by any signers.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::request::{self, Request};
use edgelect::sigv4::{self, Coverage, Credentials, KeyCache};

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::signatures::{self, Signer};

const REGRESSIONS: &str = "tests/properties/regressions/signatures.txt";

fn requests() -> impl Strategy<Value = Request> {
    let method =
        prop_oneof![4 => select(vec!["GET", "PUT"]).prop_map(str::to_owned), 1 => draw::text(5)];
    let url = prop_oneof![
        6 => concat!(
            "https?://([a-z]{1,3}@)?(host|\\[::1\\]|1\\.2\\.3\\.4)(:[0-9]{0,5})?",
            "(/[a-z%ä+ ]{0,5}){0,3}(\\?[a-z=&%+ä]{0,12})?(#[a-z]{0,3})?",
        ),
        1 => draw::text(30),
    ];
    let name = prop_oneof![
            3 => draw::one_of([
    "if-match", "if-none-match", "host", "authorization",
    "x-amz-date", "x-amz-security-token", "x-amz-meta-a",
    ]),
            1 => draw::text(10),
        ];
    let headers = vec((name, draw::text(20)), 0..4);
    (method, url, headers, vec(any::<u8>(), 0..64)).prop_filter_map(
        "crate http takes it",
        |(method, url, headers, body)| {
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value): &(String, String)| (&**name, &**value))
                .collect();
            request::new(method.parse().ok()?, &url, &headers, body).ok()
        },
    )
}

fn signer() -> impl Strategy<Value = Signer> {
    let plain = || prop_oneof![9 => "[ -~]{1,20}", 1 => draw::text(20)];
    let few = |texts: [&'static str; 2]| select(texts.to_vec()).prop_map(str::to_owned);
    // Few of each, so that kept keys are met again.
    let region = prop_oneof![9 => few(["us-east-1", "auto"]), 1 => draw::text(8)];
    let id = prop_oneof![9 => few(["AKIAONE", "AKIATWO"]), 1 => plain()];
    let secret = prop_oneof![9 => few(["first-secret", "second-secret"]), 1 => draw::text(90)];
    let wall_ms = prop_oneof![8 => 0..2 * 86_400_000_u64, 1 => any::<u64>()];
    (id, secret, prop::option::of(plain()), region, few(["s3", "sts"]), wall_ms).prop_map(
        |(access_key_id, secret_access_key, session_token, region, service, wall_ms)| Signer {
            credentials: Credentials { access_key_id, secret_access_key, session_token },
            region,
            service,
            wall_ms,
        },
    )
}

#[test]
fn any_request_is_signed_or_left_alone_and_kept_keys_change_nothing() {
    hold(REGRESSIONS, 8_000, (requests(), vec(signer(), 1..5)), |(request, signers)| {
        let Signer { credentials, region, service, wall_ms } = &signers[0];
        let mut first = request.clone();
        let cache = &mut KeyCache::default();
        let (scope, coverage) = ([region.as_str(), service], &Coverage::CONDITIONAL);
        let done = sigv4::sign(&mut first, credentials, scope, *wall_ms, cache, coverage);
        saw("signed", done.is_ok());
        signatures::request(&request, &signers);
    });
    drew(["signed"], 500);
}
