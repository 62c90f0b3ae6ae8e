//! AWS Signature Version 4 for one HTTP request, with the time passed in.
//!
//! Hashes come from crates `hmac` and `sha2`. Of `aws-sigv4`, the two functions that fit here would make the wasm
//! 2.1 KB larger after gzip -9, and 8.7 KB more because they need `std`; and its signer derives the key anew for
//! every request: natively a signature takes 7.3 us there, 4.0 us here with the key kept and 5.2 us with a new key
//! (`cargo test --test sigv4_vectors -- --ignored --nocapture`). The tests hold this file against AWS's published
//! vectors and against that very signer.
//!
//! Source of the format: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::calendar;
use crate::request::{Parts, Request};

/// Percent-encodes everything but RFC 3986's unreserved characters, as SigV4 and S3 want it, and `kept`. By hand: the table
/// of crate percent-encoding costs the npm wasm 0.8 KB after gzip -9.
pub fn percent_encoded(bytes: &[u8], kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) || kept.contains(byte) {
            encoded.push(char::from(*byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                let letter = if digit < 10 { b'0' } else { b'A' - 10 };
                encoded.push(char::from(letter + digit));
            }
        }
    }
    encoded
}

const AUTHORIZATION: &str = "authorization";
const X_AMZ_DATE: &str = "x-amz-date";
const X_AMZ_CONTENT_SHA256: &str = "x-amz-content-sha256";
const X_AMZ_SECURITY_TOKEN: &str = "x-amz-security-token";

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
    /// `20130524`
    day: String,
    region: String,
    service: String,
    key: [u8; 32],
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

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
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

impl std::error::Error for SignError {}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key_id", &self.access_key_id)
            .finish_non_exhaustive()
    }
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
    request: &mut Request,
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
    let date_time = calendar::sigv4(wall_ms / 1_000);
    let (day, _) = date_time.split_at(8);
    let scope = [day, "/", region, "/", service, "/aws4_request"].concat();
    // Also when it is not sent, it ends the canonical request.
    let content_sha256 = hex::encode(Sha256::digest(&request.body));

    let mut added = Vec::with_capacity(4);
    added.push((X_AMZ_DATE, date_time.as_str()));
    if coverage.content_sha256 {
        added.push((X_AMZ_CONTENT_SHA256, &content_sha256));
    }
    if let Some(token) = &credentials.session_token {
        added.push((X_AMZ_SECURITY_TOKEN, token));
    }
    let parts = [region, service, &credentials.access_key_id];
    if parts.into_iter().chain(added.iter().map(|(_, value)| *value)).any(|text| !is_plain(text)) {
        return Err(SignError::BadCredentials);
    }
    let (canonical, signed) = canonical_request(request, &added, &content_sha256, coverage)?;
    let digest = hex::encode(Sha256::digest(canonical));
    let to_sign = ["AWS4-HMAC-SHA256\n", &date_time, "\n", &scope, "\n", &digest].concat();
    let key = key_cache.key(credentials, day, region, service);
    let signature = hex::encode(hmac(key, to_sign.as_bytes()));
    let authorization = [
        "AWS4-HMAC-SHA256 Credential=",
        &credentials.access_key_id,
        "/",
        &scope,
        ", SignedHeaders=",
        &signed,
        ", Signature=",
        &signature,
    ];
    let added: Vec<_> = added.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    request.headers.retain(|(name, _)| name != X_AMZ_SECURITY_TOKEN);
    for (name, value) in added {
        request.set(name, value);
    }
    request.set(AUTHORIZATION, authorization.concat());
    Ok(())
}

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

impl KeyCache {
    /// The signing key for this day, derived only when anything that it depends on is new.
    fn key(
        &mut self,
        credentials: &Credentials,
        day: &str,
        region: &str,
        service: &str,
    ) -> &[u8; 32] {
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
            let secret = ["AWS4", &credentials.secret_access_key].concat();
            let mut key = hmac(secret.as_bytes(), day.as_bytes());
            for part in [region, service, "aws4_request"] {
                key = hmac(&key, part.as_bytes());
            }
            CachedKey {
                access_key_id: credentials.access_key_id.clone(),
                secret_access_key: credentials.secret_access_key.clone(),
                day: day.to_owned(),
                region: region.to_owned(),
                service: service.to_owned(),
                key,
            }
        });
        &entry.key
    }
}

/// The canonical request and the names of the signed headers, joined by semicolons.
fn canonical_request(
    request: &Request,
    added: &[(&str, &str)],
    content_sha256: &str,
    coverage: &Coverage,
) -> Result<(String, String), SignError> {
    let parts = Parts::of(&request.url).ok_or(SignError::NoHost)?;
    if !parts.path.is_ascii() {
        return Err(SignError::RawPath);
    }
    let mut headers = Vec::with_capacity(8);
    headers.push(("host", host(&parts)?));
    for (name, value) in &request.headers {
        // A signature of before is replaced, and not signed.
        let replaced = matches!(
            name.as_str(),
            X_AMZ_DATE | X_AMZ_CONTENT_SHA256 | X_AMZ_SECURITY_TOKEN | AUTHORIZATION | "host"
        );
        if !replaced && (coverage.covers)(name) {
            headers.push((name, trimmed(value)));
        }
    }
    headers.extend(added.iter().map(|(name, value)| (*name, trimmed(value))));
    sort(&mut headers, |one, other| one.0 <= other.0);

    let path = if parts.path.is_empty() { "/" } else { parts.path };
    let query = canonical_query(parts.query);
    let mut canonical = [&request.method, "\n", path, "\n", &query].concat();
    let mut signed = String::with_capacity(96);
    let mut before = "";
    for (name, value) in &headers {
        if *name == before {
            canonical.push(',');
        } else {
            canonical.push('\n');
            canonical.push_str(name);
            canonical.push(':');
            if !signed.is_empty() {
                signed.push(';');
            }
            signed.push_str(name);
        }
        canonical.push_str(value);
        before = name;
    }
    for part in ["\n\n", &signed, "\n", content_sha256] {
        canonical.push_str(part);
    }
    Ok((canonical, signed))
}

/// Sorts a handful by insertion, which keeps the order of equals; the library's is 2 KB of code for each type.
fn sort<T>(items: &mut [T], in_order: impl Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && !in_order(&items[place - 1], &items[place]) {
            items.swap(place - 1, place);
            place -= 1;
        }
    }
}

/// The `Host` header as fetch and HTTP libraries send it: without the scheme's own port, without user info.
fn host(parts: &Parts<'_>) -> Result<String, SignError> {
    let (host, port) = parts.host_and_port();
    if host.is_empty() {
        return Err(SignError::NoHost);
    }
    let own_port = match parts.scheme {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    Ok(match port {
        Some(port) if port != own_port && !port.is_empty() => [host, ":", port].concat(),
        _ => host.to_owned(),
    })
}

/// Query parameters, encoded once more by SigV4's rules and sorted by name, then value.
fn canonical_query(query: &str) -> String {
    let recode = |text: &str| -> String {
        let text = text.replace('+', " ");
        let bytes: Vec<u8> = percent_encoding::percent_decode_str(&text).collect();
        percent_encoded(&bytes, b"")
    };
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (recode(name), recode(value)))
        .collect();
    sort(&mut pairs, |one, other| one <= other);
    let mut canonical = String::new();
    for (name, value) in pairs {
        if !canonical.is_empty() {
            canonical.push('&');
        }
        for part in [&name, "=", &value] {
            canonical.push_str(part);
        }
    }
    canonical
}

/// A header's value without spaces around it, and with one space where it has several.
fn trimmed(value: &str) -> String {
    let mut trimmed = String::with_capacity(value.len());
    for character in value.trim_ascii().chars() {
        if character != ' ' || !trimmed.ends_with(' ') {
            trimmed.push(character);
        }
    }
    trimmed
}

/// Whether a text can stand in a header: fetch refuses bytes above ASCII, or sends them in another encoding.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}
