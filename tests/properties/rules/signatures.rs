//! Signing any request ends with a signed request or with the request as it was.

use edgelect::request::Request;
use edgelect::sigv4::{self, Coverage, Credentials, KeyCache};

/// What a request is signed with.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The credentials.
    pub credentials: Credentials,
    /// The region.
    pub region: String,
    /// The service.
    pub service: String,
    /// The time.
    pub wall_ms: u64,
}

impl Signer {
    fn sign(&self, request: &Request, cache: &mut KeyCache) -> Option<Request> {
        let mut signed = request.clone();
        let Self { credentials, region, service, wall_ms } = self;
        let (scope, coverage) = ([region.as_str(), service], &Coverage::CONDITIONAL);
        let done = sigv4::sign(&mut signed, credentials, scope, *wall_ms, cache, coverage);
        match done {
            Ok(()) => Some(signed),
            Err(_) => {
                assert!(same(&signed, request), "what cannot be signed is left alone");
                None
            }
        }
    }
}

fn same(one: &Request, other: &Request) -> bool {
    let parts = |request: &Request| {
        (request.method().clone(), request.uri().clone(), request.headers().clone())
    };
    parts(one) == parts(other) && one.body() == other.body()
}

/// Any request, signed by one signer after the other with one cache of keys.
pub fn request(request: &Request, signers: &[Signer]) {
    let mut kept = KeyCache::default();
    for signer in signers {
        let signed = signer.sign(request, &mut KeyCache::default());
        let again = signer.sign(request, &mut kept);
        assert_eq!(signed.is_some(), again.is_some(), "a kept key signs as a new one does");
        let (Some(signed), Some(again)) = (signed, again) else { continue };
        assert!(same(&signed, &again), "a kept key signs as a new one does");
        let again = signer.sign(&signed, &mut kept).expect("it was signed before");
        assert!(same(&signed, &again), "signed again");
        is_signed(request, &signed, signer);
    }
}

fn is_signed(before: &Request, signed: &Request, signer: &Signer) {
    let one = |name: &str| {
        let mut values = signed.headers().get_all(name).iter();
        let value = values.next().map(|value| value.to_str().expect("ASCII"));
        assert!(values.next().is_none(), "{name} twice");
        value
    };
    let authorization = one("authorization").expect("it is signed");
    let is_plain = |text: &str| text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    assert!(is_plain(authorization), "{authorization:?}");
    let (_, signature) = authorization.split_once(", Signature=").expect("the signature is last");
    let hexadecimal = signature.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
    assert!(signature.len() == 64 && hexadecimal, "{authorization}");
    let secret = &signer.credentials.secret_access_key;
    let known = [&signer.credentials.access_key_id, &signer.region, &signer.service];
    if secret.len() > 8 && !known.iter().any(|text| text.contains(secret.as_str())) {
        assert!(!authorization.contains(secret.as_str()), "the secret is shown");
    }
    assert_eq!(one("x-amz-security-token"), signer.credentials.session_token.as_deref());
    assert!(one("x-amz-date").is_some_and(|date| date.len() == 16));
    assert!(one("x-amz-content-sha256").is_some_and(|hash| hash.len() == 64));
    let kept = |request: &Request| {
        let ours = |name: &str| name == "authorization" || name.starts_with("x-amz-");
        let others = request.headers().iter().filter(|(name, _)| !ours(name.as_str()));
        let others: http::HeaderMap =
            others.map(|(name, value)| (name.clone(), value.clone())).collect();
        (request.method().clone(), request.uri().clone(), request.body().clone(), others)
    };
    assert!(kept(before) == kept(signed), "nothing else is changed");
}
