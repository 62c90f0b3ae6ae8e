//! `sigv4` against AWS's published vectors, and `aws-sigv4`'s own signer.

use std::time::{Duration, SystemTime};

use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode,
};
use aws_sigv4::sign::v4;
use edgelect::sigv4::{self, Coverage, Credentials, KeyCache, SignError};
use worlds::sim::chance::Chance;

/// By another hand than the crate's own.
const RESERVED: &percent_encoding::AsciiSet =
    &percent_encoding::NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const AUG_30_2015_MS: u64 = 1_440_938_160_000;

fn credentials(id: &str, secret: &str, token: Option<&str>) -> Credentials {
    Credentials {
        access_key_id: id.to_owned(),
        secret_access_key: secret.to_owned(),
        session_token: token.map(str::to_owned),
    }
}

fn authorization(request: &http::Request<Vec<u8>>) -> &str {
    request.headers()["authorization"].to_str().unwrap()
}

fn sign(
    request: &mut http::Request<Vec<u8>>,
    credentials: &Credentials,
    region: &str,
    wall_ms: u64,
    key_cache: &mut KeyCache,
) -> Result<(), SignError> {
    let (scope, coverage) = ([region, "s3"], &Coverage::CONDITIONAL);
    sigv4::sign(request, credentials, scope, wall_ms, key_cache, coverage)
}

/// A target, headers, a token, and the signature.
type Vector =
    (&'static str, &'static [(&'static str, &'static str)], Option<&'static str>, &'static str);

/// AWS's own vectors (`aws-signing-test-suite/v4` of crate `aws-sigv4` 1.6.4, Apache-2.0) for what the requests drawn below
/// do not have.
#[rustfmt::skip]
const VECTORS: [Vector; 5] = [
    ("/", &[("my-header1", "value2"), ("my-header1", "value2"), ("my-header1", "value1")], None,
     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
    ("/", &[("my-header1", " value1"), ("my-header2", " \"a   b   c\"")], None,
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    ("/%E1%88%B4", &[], None, "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    ("/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1", &[], None,
     "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"),
    ("/", &[], Some("6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"),
     "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"),
];

fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> http::Request<Vec<u8>> {
    let mut builder = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(body.as_bytes().to_vec()).unwrap()
}

#[test]
fn published_vectors_give_the_published_signatures() {
    for (target, headers, token, expected) in VECTORS {
        let url = format!("https://example.amazonaws.com{target}");
        let mut request = request("GET", &url, headers, "");
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let credentials = credentials("AKIDEXAMPLE", secret, token);
        let coverage = Coverage { content_sha256: false, covers: |_| true };
        let (scope, keys) = (["us-east-1", "service"], &mut KeyCache::default());
        sigv4::sign(&mut request, &credentials, scope, AUG_30_2015_MS, keys, &coverage).unwrap();
        let (_, signature) = authorization(&request).rsplit_once("Signature=").unwrap();
        assert_eq!(signature, expected, "{target} {headers:?}");
    }
}

/// A text of at least one of these letters.
fn text(dice: &mut Chance, alphabet: &[char], longest: u64) -> String {
    (0..=dice.below(longest)).map(|_| dice.pick(alphabet)).collect()
}

const KEY_LETTERS: &[char] =
    &['a', 'Z', '0', '-', '_', '.', '~', ' ', '+', '%', 'ä', '漢', '!', '*', '\'', '(', '=', '&'];

fn random_request(dice: &mut Chance) -> http::Request<Vec<u8>> {
    let scheme = dice.pick(&["http", "https"]);
    let host = dice.pick(&["127.0.0.1", "s3.eu-central-1.amazonaws.com", "b.example", "[::1]"]);
    let port = dice.pick(&["", ":80", ":443", ":8333"]);
    let encode = |text: &str| percent_encoding::utf8_percent_encode(text, RESERVED).to_string();
    let parts: Vec<_> = (0..=dice.below(3)).map(|_| encode(&text(dice, KEY_LETTERS, 12))).collect();
    let pairs: Vec<_> = (0..dice.below(4))
        .map(|_| {
            let [name, value] = [0; 2].map(|_| encode(&text(dice, KEY_LETTERS, 6)));
            if dice.one_in(4) { name } else { format!("{name}={value}") }
        })
        .collect();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    let uri = format!("{scheme}://{host}{port}/{}{query}", parts.join("/"));
    let hex = text(dice, &['0', '9', 'a', 'f'], 32);
    let etag = format!("\"{hex}\"");
    match dice.below(4) {
        0 => request("GET", &uri, &[], ""),
        1 => request("GET", &uri, &[("if-none-match", &etag)], ""),
        2 => request("PUT", &uri, &[("if-none-match", "*")], &hex),
        _ => request("PUT", &uri, &[("if-match", &etag)], &hex),
    }
}

/// The same request through `aws_sigv4::http_request::sign`, with the settings that S3 wants.
fn sign_by_library(
    request: &mut http::Request<Vec<u8>>,
    credentials: &Credentials,
    region: &str,
    wall_ms: u64,
) {
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity = aws_credential_types::Credentials::new(
        &credentials.access_key_id,
        &credentials.secret_access_key,
        credentials.session_token.clone(),
        None,
        "test",
    )
    .into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::UNIX_EPOCH + Duration::from_millis(wall_ms))
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let signable = SignableRequest::new(
        request.method().as_str(),
        request.uri().to_string(),
        request.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())),
        SignableBody::Bytes(request.body()),
    )
    .unwrap();
    let (instructions, _) = aws_sigv4::http_request::sign(signable, &params).unwrap().into_parts();
    instructions.apply_to_request_http1x(request);
}

#[test]
fn random_requests_are_signed_as_the_library_signs_them() {
    let mut dice = Chance::new(7);
    // One cache for all, so that a key kept for too long shows.
    let mut cache = KeyCache::default();
    for round in 0..400 {
        let mut ours = random_request(&mut dice);
        let mut theirs = ours.clone();
        let token = dice.pick(&[None, Some("IQoJb3JpZ2luX2VjE//+=="), Some("tok")]);
        let id = dice.pick(&["AKIA1", "AKIA2"]);
        let secret = dice.pick(&["secret/one", "secret+two"]);
        let credentials = credentials(id, secret, token);
        let region = dice.pick(&["auto", "us-east-1", "eu-central-1"]);
        let wall_ms = dice.pick(&[1_763_719_199_999, 1_763_683_200_000, 1_763_683_199_999]);
        sign_by_library(&mut theirs, &credentials, region, wall_ms);
        for time in ["signed", "signed again"] {
            sign(&mut ours, &credentials, region, wall_ms, &mut cache).unwrap();
            assert_eq!(ours.headers(), theirs.headers(), "round {round}: {time}: {}", ours.uri());
        }
        assert_eq!(ours.uri(), theirs.uri());
    }
}

#[test]
fn only_host_amz_and_conditions_are_signed_host_is_not_added_and_debug_shows_no_secret() {
    let headers =
        [("if-match", "\"1\""), ("content-type", "application/json"), ("user-agent", "a")];
    let mut request = request("PUT", "http://127.0.0.1:8333/bucket/key", &headers, "{}");
    let (credentials, mut cache) =
        (credentials("AKIA", "geheim", Some("marke")), KeyCache::default());
    sign(&mut request, &credentials, "auto", AUG_30_2015_MS, &mut cache).unwrap();
    let signed =
        "SignedHeaders=host;if-match;x-amz-content-sha256;x-amz-date;x-amz-security-token,";
    assert!(authorization(&request).contains(signed), "{}", authorization(&request));
    assert!(!request.headers().contains_key("host"));
    let shown = format!("{credentials:?} {cache:?} {request:?}");
    assert!(shown.contains("AKIA"), "{shown}");
    for secret in ["geheim", "marke", "Signature="] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn what_no_header_can_carry_is_an_error_and_leaves_the_request_alone() {
    for (uri, credentials, region, expected) in [
        ("https://h/k", credentials("", "S", None), "auto", SignError::NoCredentials),
        ("https://h/k", credentials("A", "", None), "auto", SignError::NoCredentials),
        ("https://h/k", credentials("A\n", "S", None), "auto", SignError::BadCredentials),
        ("https://h/k", credentials("A", "S", Some("t\0")), "auto", SignError::BadCredentials),
        ("https://h/k", credentials("A", "S", Some("tökén")), "auto", SignError::BadCredentials),
        ("https://h/k", credentials("A", "S", None), "a\r\nb: c", SignError::BadCredentials),
        ("/k", credentials("A", "S", None), "auto", SignError::NoHost),
        ("https://h/ä", credentials("A", "S", None), "auto", SignError::RawPath),
    ] {
        let mut request = request("GET", uri, &[], "");
        let result = sign(&mut request, &credentials, region, 0, &mut KeyCache::default());
        assert_eq!(result, Err(expected), "{uri} {credentials:?}");
        assert!(request.headers().is_empty());
    }
    let condition = http::HeaderValue::from_bytes(b"\"\xe4\"").unwrap();
    let request = http::Request::builder().uri("https://h/k").header("if-match", condition);
    let mut request = request.body(Vec::new()).unwrap();
    let (usable, keys) = (credentials("A", "S", None), &mut KeyCache::default());
    let result = sign(&mut request, &usable, "auto", 0, keys);
    assert_eq!((result, request.headers().len()), (Err(SignError::BadCredentials), 1));
}
