//! AWS Signature Version 4 for one HTTP request, with the time passed in.
//!
//! Key and signature are made by crate `aws-sigv4`. Its signer of whole requests derives the key anew for each of them, and
//! takes twice as long as this (`npm run figures -- signature`), so the canonical request is put together here. The tests
//! hold it against AWS's published vectors and against that signer.
//!
//! Source of the format: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use sha2::{Digest, Sha256};

use crate::calendar;
use crate::request::Request;

/// What SigV4 and S3 want percent-encoded: everything but RFC 3986's unreserved characters.
pub const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const X_AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const X_AMZ_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const X_AMZ_SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// What the signer adds itself; what a request has of it is replaced, and `host` is never sent from here.
const ADDED: [&str; 5] =
    ["authorization", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"];

/// What a request is signed with. Its `Debug` shows the access key id and no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The public name of the key.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// The session token of temporary credentials.
    pub session_token: Option<String>,
}

/// Which parts of a request a signature covers beyond method, address and body.
#[derive(Clone, Copy, Debug)]
pub struct Coverage {
    /// Whether `x-amz-content-sha256` is added and signed; S3 demands it.
    pub content_sha256: bool,
    /// Whether a header of this lower-case name is signed; `host` and the `x-amz-*` that are added always are.
    pub covers: fn(name: &str) -> bool,
}

impl Coverage {
    /// Host, `x-amz-*` and the two conditions. Nothing else, because hosts rewrite `accept-encoding`,
    /// `user-agent` and `content-type` on the way.
    pub const CONDITIONAL: Self = Self {
        content_sha256: true,
        covers: |name| name.starts_with("x-amz-") || name == "if-match" || name == "if-none-match",
    };

    /// Host and `x-amz-*`.
    pub const SERVICE: Self =
        Self { content_sha256: false, covers: |name| name.starts_with("x-amz-") };
}

/// Why a request could not be signed. Never shows a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignError {
    /// The address has no host.
    NoHost,
    /// The path has bytes that are not ASCII and would be sent percent-encoded.
    RawPath,
    /// Access key id or secret is empty.
    NoCredentials,
    /// Access key id, session token, region or service has a character that no header can carry.
    BadCredentials,
}

impl SignError {
    /// What is wrong.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoHost => "the address has no host",
            Self::RawPath => "the path is not percent-encoded",
            Self::NoCredentials => "the access key id or the secret access key is empty",
            Self::BadCredentials => {
                "the access key id, session token or region has a character that no header can carry"
            }
        }
    }
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for SignError {}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

/// The signing key of the day, kept from one request to the next.
#[derive(Default)]
pub struct KeyCache(Option<CachedKey>);

struct CachedKey {
    secret_access_key: String,
    /// `20130524/us-east-1/s3/aws4_request`
    scope: String,
    key: Vec<u8>,
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCache").finish_non_exhaustive()
    }
}

/// Signs a request: adds `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` (with temporary
/// credentials) and `authorization`. `host` is signed, not added: whoever sends the request sets it. The path is
/// signed as it stands, as S3 wants it. `wall_ms` is the time since the Unix epoch by the store's clock.
///
/// # Errors
/// See [`SignError`]; the request is then unchanged.
pub fn sign(
    request: &mut Request,
    credentials: &Credentials,
    [region, service]: [&str; 2],
    wall_ms: u64,
    keys: &mut KeyCache,
    coverage: &Coverage,
) -> Result<(), SignError> {
    let Credentials { access_key_id, secret_access_key, session_token } = credentials;
    check(request, credentials, [region, service])?;
    let seconds = wall_ms / 1_000;
    let date_time = calendar::basic(seconds);
    let scope = format!("{}/{region}/{service}/aws4_request", &date_time[..8]);
    // Also when it is not sent, it ends the canonical request.
    let content_sha256 = hex::encode(Sha256::digest(request.body()));
    let mut added = vec![(X_AMZ_DATE, date_time.as_str())];
    if coverage.content_sha256 {
        added.push((X_AMZ_CONTENT_SHA256, &content_sha256));
    }
    added.extend(session_token.as_deref().map(|token| (X_AMZ_SECURITY_TOKEN, token)));

    let (canonical, signed) = canonical_request(request, &added, &content_sha256, coverage)?;
    let digest = hex::encode(Sha256::digest(canonical));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date_time}\n{scope}\n{digest}");
    let key = keys.key(secret_access_key, seconds, [region, service], &scope);
    let signature = calculate_signature(key, to_sign.as_bytes());
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={access_key_id}/{scope}, SignedHeaders={signed}, \
         Signature={signature}"
    );
    let plain = |text: &str| HeaderValue::from_str(text).map_err(|_| SignError::BadCredentials);
    let mut values = vec![(AUTHORIZATION, plain(&authorization)?)];
    for (name, value) in added {
        values.push((name, plain(value)?));
    }
    request.headers_mut().remove(X_AMZ_SECURITY_TOKEN);
    for (name, mut value) in values {
        value.set_sensitive(name == AUTHORIZATION || name == X_AMZ_SECURITY_TOKEN);
        request.headers_mut().insert(name, value);
    }
    Ok(())
}

fn check(request: &Request, credentials: &Credentials, scope: [&str; 2]) -> Result<(), SignError> {
    let Credentials { access_key_id, secret_access_key, session_token } = credentials;
    if access_key_id.is_empty() || secret_access_key.is_empty() {
        return Err(SignError::NoCredentials);
    }
    if request.uri().host().is_none_or(str::is_empty) {
        return Err(SignError::NoHost);
    }
    if !request.uri().path().is_ascii() {
        return Err(SignError::RawPath);
    }
    // Fetch refuses bytes above ASCII in a header, or sends them in another encoding.
    let plain = |text: &str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let texts = scope.into_iter().chain([access_key_id.as_str()]);
    match texts.chain(session_token.as_deref()).all(plain) {
        true => Ok(()),
        false => Err(SignError::BadCredentials),
    }
}

impl KeyCache {
    /// The signing key for this scope, derived only when anything that it depends on is new.
    fn key(
        &mut self,
        secret: &str,
        seconds: u64,
        [region, service]: [&str; 2],
        scope: &str,
    ) -> &[u8] {
        let fits = |kept: &CachedKey| kept.scope == scope && kept.secret_access_key == secret;
        if !self.0.as_ref().is_some_and(fits) {
            self.0 = None;
        }
        let kept = self.0.get_or_insert_with(|| {
            let seconds = seconds.min(calendar::LAST_SECOND);
            let day = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            CachedKey {
                secret_access_key: secret.to_owned(),
                scope: scope.to_owned(),
                key: generate_signing_key(secret, day, region, service).as_ref().to_vec(),
            }
        });
        &kept.key
    }
}

/// The canonical request and the names of the signed headers, joined by semicolons.
fn canonical_request(
    request: &Request,
    added: &[(HeaderName, &str)],
    content_sha256: &str,
    coverage: &Coverage,
) -> Result<(String, String), SignError> {
    let host = host(request);
    let mut headers = vec![("host", host.as_str())];
    for (name, value) in request.headers() {
        let name = name.as_str();
        if !ADDED.contains(&name) && (coverage.covers)(name) {
            headers.push((name, value.to_str().map_err(|_| SignError::BadCredentials)?));
        }
    }
    headers.extend(added.iter().map(|(name, value)| (name.as_str(), *value)));
    // Values of one name stay in their order.
    headers.sort_by_key(|(name, _)| *name);

    let (method, path) = (request.method(), request.uri().path());
    let query = canonical_query(request.uri().query().unwrap_or_default());
    let mut canonical = format!("{method}\n{path}\n{query}");
    let mut names: Vec<&str> = Vec::new();
    for (name, value) in headers {
        if names.last() == Some(&name) {
            canonical.push(',');
        } else {
            canonical.extend(["\n", name, ":"]);
            names.push(name);
        }
        canonical.push_str(&trimmed(value));
    }
    let signed = names.join(";");
    canonical.extend(["\n\n", &signed, "\n", content_sha256]);
    Ok((canonical, signed))
}

/// The `Host` header as fetch and HTTP libraries send it: without the scheme's own port, without user info.
fn host(request: &Request) -> String {
    let uri = request.uri();
    let own_port = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    let host = uri.host().unwrap_or_default();
    match uri.port_u16().filter(|port| *port != own_port) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Query parameters, encoded once more by SigV4's rules and sorted by name, then value.
fn canonical_query(query: &str) -> String {
    let recode = |text: &str| {
        let decoded = percent_decode_str(&text.replace('+', " ")).collect::<Vec<u8>>();
        percent_encode(&decoded, RESERVED).to_string()
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (recode(name), recode(value)))
        .collect();
    pairs.sort();
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={value}"));
    pairs.collect::<Vec<_>>().join("&")
}

/// A header's value without spaces around it, and with one space where it has several.
fn trimmed(value: &str) -> String {
    let words = value.trim_ascii().split(' ').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}
