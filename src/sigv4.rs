//! AWS Signature Version 4 for one HTTP request, with the time passed in.
//!
//! Keys and signatures come from crate `aws-sigv4`. The canonical request is built here, because
//! `aws_sigv4::http_request::sign` derives the signing key anew for every request and offers no way to keep it:
//! natively a signature takes 7.3 us there, 4.0 us here with the key kept and 5.2 us with a new key
//! (`cargo test --test sigv4_vectors -- --ignored --nocapture`). The tests hold this file against AWS's published
//! vectors and against that very function.
//!
//! Source of the format: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// Everything but RFC 3986's unreserved characters: what SigV4 and S3 want percent-encoded.
pub const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The last second of the year 9999: later times have no form in `x-amz-date`.
const LAST_SECOND: u64 = 253_402_300_799;

const X_AMZ_DATE: HeaderName = HeaderName::from_static("x-amz-date");
const X_AMZ_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const X_AMZ_SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

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

/// The signing key of the day, kept from one request to the next.
#[derive(Default)]
pub struct KeyCache {
    entry: Option<CachedKey>,
}

struct CachedKey {
    access_key_id: String,
    secret_access_key: String,
    /// Days since the Unix epoch.
    day: u64,
    region: String,
    service: String,
    key: Vec<u8>,
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

impl std::fmt::Display for SignError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoHost => "the address has no host",
            Self::RawPath => "the path is not percent-encoded",
            Self::NoCredentials => "the access key id or the secret access key is empty",
            Self::BadCredentials => {
                "the access key id, session token or region has a character that no header can carry"
            }
        })
    }
}

impl std::error::Error for SignError {}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
    request: &mut http::Request<Vec<u8>>,
    credentials: &Credentials,
    region: &str,
    service: &str,
    wall_ms: u64,
    key_cache: &mut KeyCache,
) -> Result<(), SignError> {
    sign_covering(request, credentials, region, service, wall_ms, key_cache, &Coverage::CONDITIONAL)
}

/// [`sign`] with another choice of what is signed.
///
/// # Errors
/// See [`SignError`]; the request is then unchanged.
pub fn sign_covering(
    request: &mut http::Request<Vec<u8>>,
    credentials: &Credentials,
    region: &str,
    service: &str,
    wall_ms: u64,
    key_cache: &mut KeyCache,
    coverage: &Coverage,
) -> Result<(), SignError> {
    if credentials.access_key_id.is_empty() || credentials.secret_access_key.is_empty() {
        return Err(SignError::NoCredentials);
    }
    // A clock beyond the year 9999 signs with its last second; the store's refusal then corrects it.
    let seconds = (wall_ms / 1_000).min(LAST_SECOND);
    let date_time = date_time(seconds);
    let scope = format!("{}/{region}/{service}/aws4_request", &date_time[..8]);
    // Also when it is not sent, it ends the canonical request.
    let content_sha256 = hex::encode(Sha256::digest(request.body()));

    let mut added = vec![(X_AMZ_DATE, header(&date_time)?)];
    if coverage.content_sha256 {
        added.push((X_AMZ_CONTENT_SHA256, header(&content_sha256)?));
    }
    if let Some(token) = &credentials.session_token {
        let mut value = header(token)?;
        value.set_sensitive(true);
        added.push((X_AMZ_SECURITY_TOKEN, value));
    }
    let (canonical, signed) = canonical_request(request, &added, &content_sha256, coverage)?;
    let digest = hex::encode(Sha256::digest(&canonical));
    let to_sign = format!("AWS4-HMAC-SHA256\n{date_time}\n{scope}\n{digest}");
    let key = key_cache.key(credentials, seconds, region, service);
    let signature = calculate_signature(key, to_sign.as_bytes());
    let mut authorization = header(&format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
        credentials.access_key_id
    ))?;
    authorization.set_sensitive(true);

    let headers = request.headers_mut();
    headers.remove(X_AMZ_SECURITY_TOKEN);
    for (name, value) in added {
        headers.insert(name, value);
    }
    headers.insert(AUTHORIZATION, authorization);
    Ok(())
}

impl KeyCache {
    /// The signing key for this day, derived only when anything that it depends on is new.
    fn key(
        &mut self,
        credentials: &Credentials,
        seconds: u64,
        region: &str,
        service: &str,
    ) -> &[u8] {
        let day = seconds / 86_400;
        let fits = |entry: &CachedKey| {
            entry.day == day
                && entry.region == region
                && entry.service == service
                && entry.access_key_id == credentials.access_key_id
                && entry.secret_access_key == credentials.secret_access_key
        };
        if !self.entry.as_ref().is_some_and(fits) {
            self.entry = None;
        }
        let entry = self.entry.get_or_insert_with(|| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let key = generate_signing_key(&credentials.secret_access_key, time, region, service);
            CachedKey {
                access_key_id: credentials.access_key_id.clone(),
                secret_access_key: credentials.secret_access_key.clone(),
                day,
                region: region.to_owned(),
                service: service.to_owned(),
                key: key.as_ref().to_vec(),
            }
        });
        &entry.key
    }
}

/// The canonical request and the names of the signed headers, joined by semicolons.
fn canonical_request(
    request: &http::Request<Vec<u8>>,
    added: &[(HeaderName, HeaderValue)],
    content_sha256: &str,
    coverage: &Coverage,
) -> Result<(Vec<u8>, String), SignError> {
    let uri = request.uri();
    let path = uri.path();
    if !path.is_ascii() {
        return Err(SignError::RawPath);
    }
    let mut headers: Vec<(&str, Vec<u8>)> = vec![("host", host(uri)?.into_bytes())];
    for name in request.headers().keys() {
        // A signature of before is replaced, and not signed.
        let replaced = *name == X_AMZ_DATE
            || *name == X_AMZ_CONTENT_SHA256
            || *name == X_AMZ_SECURITY_TOKEN
            || name == AUTHORIZATION
            || name == http::header::HOST;
        if !replaced && (coverage.covers)(name.as_str()) {
            let values: Vec<_> = request.headers().get_all(name).iter().map(trimmed).collect();
            headers.push((name.as_str(), values.join(&b',')));
        }
    }
    headers.extend(added.iter().map(|(name, value)| (name.as_str(), trimmed(value))));
    headers.sort_unstable();

    let mut canonical = Vec::with_capacity(1024);
    let query = canonical_query(uri.query().unwrap_or_default());
    for line in [request.method().as_str(), path, &query] {
        canonical.extend_from_slice(line.as_bytes());
        canonical.push(b'\n');
    }
    let mut signed = String::with_capacity(96);
    for (name, value) in &headers {
        canonical.extend_from_slice(name.as_bytes());
        canonical.push(b':');
        canonical.extend_from_slice(value);
        canonical.push(b'\n');
        if !signed.is_empty() {
            signed.push(';');
        }
        signed.push_str(name);
    }
    canonical.push(b'\n');
    canonical.extend_from_slice(signed.as_bytes());
    canonical.push(b'\n');
    canonical.extend_from_slice(content_sha256.as_bytes());
    Ok((canonical, signed))
}

/// The `Host` header as fetch and HTTP libraries send it: without the scheme's own port, without user info.
fn host(uri: &http::Uri) -> Result<String, SignError> {
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(SignError::NoHost)?;
    let default_port = match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    Ok(match uri.port_u16() {
        Some(port) if Some(port) != default_port => format!("{host}:{port}"),
        _ => host.to_owned(),
    })
}

/// Query parameters, encoded once more by SigV4's rules and sorted by name, then value.
fn canonical_query(query: &str) -> String {
    let recode = |text: &str| {
        let text = text.replace('+', " ");
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(&text).collect();
        percent_encoding::percent_encode(&bytes, RESERVED).to_string()
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (recode(name), recode(value)))
        .collect();
    pairs.sort_unstable();
    let mut canonical = String::new();
    for (name, value) in pairs {
        let separator = if canonical.is_empty() { "" } else { "&" };
        write!(canonical, "{separator}{name}={value}").expect("a String takes every write");
    }
    canonical
}

/// A header's value without spaces around it, and with one space where it has several.
fn trimmed(value: &HeaderValue) -> Vec<u8> {
    let mut bytes = value.as_bytes().trim_ascii().to_vec();
    bytes.dedup_by(|later, earlier| *later == b' ' && *earlier == b' ');
    bytes
}

fn header(text: &str) -> Result<HeaderValue, SignError> {
    // Not from_str: it lets bytes above ASCII pass, which fetch would refuse or send in another encoding.
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let value = HeaderValue::from_str(text).ok().filter(|_| plain);
    value.ok_or(SignError::BadCredentials)
}

/// `20130524T000000Z`
fn date_time(seconds: u64) -> String {
    let instant = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .expect("seconds were clamped to the year 9999");
    let (year, month, day) = instant.to_calendar_date();
    let (hour, minute, second) = instant.to_hms();
    format!("{year:04}{:02}{day:02}T{hour:02}{minute:02}{second:02}Z", u8::from(month))
}
