//! AWS Signature Version 4 for one HTTP request, by crate `aws-sigv4`, with the time passed in.
//!
//! Source of the format: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_sigv4::http_request::{
    self, PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode,
};
use aws_sigv4::sign::v4;
use http::header::AUTHORIZATION;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

use crate::request::Request;

/// What SigV4 and S3 want percent-encoded: everything but RFC 3986's unreserved characters.
pub const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const X_AMZ_SECURITY_TOKEN: &str = "x-amz-security-token";

/// What the signer adds itself; what a request has of it is replaced.
const ADDED: [&str; 5] =
    ["authorization", "host", "x-amz-content-sha256", "x-amz-date", X_AMZ_SECURITY_TOKEN];

/// 9999-12-31T23:59:59Z, the last time that a signature can have.
const LAST_SECOND: u64 = 253_402_300_799;

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
    coverage: &Coverage,
) -> Result<(), SignError> {
    check(request, credentials, [region, service])?;
    let Credentials { access_key_id, secret_access_key, session_token } = credentials;
    let identity = aws_credential_types::Credentials::new(
        access_key_id,
        secret_access_key,
        session_token.clone(),
        None,
        "edgelect",
    )
    .into();
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = match coverage.content_sha256 {
        true => PayloadChecksumKind::XAmzSha256,
        false => PayloadChecksumKind::NoHeader,
    };
    // A clock beyond the year 9999 signs with its last second; the store's refusal then corrects it.
    let since_epoch = Duration::from_secs((wall_ms / 1_000).min(LAST_SECOND));
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(service)
        .time(SystemTime::UNIX_EPOCH + since_epoch)
        .settings(settings)
        .build()
        .expect("every part of it is set")
        .into();
    let covered = request
        .headers()
        .iter()
        .filter(|(name, _)| !ADDED.contains(&name.as_str()) && (coverage.covers)(name.as_str()))
        .map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect::<Option<Vec<_>>>()
        .ok_or(SignError::BadCredentials)?;
    let body = SignableBody::Bytes(request.body());
    let url = request.uri().to_string();
    // What they refuse has been refused above, but for a header's value; their texts may quote it.
    let signable = SignableRequest::new(request.method().as_str(), url, covered.into_iter(), body);
    let signed = signable.and_then(|signable| http_request::sign(signable, &params));
    let (instructions, _) = signed.map_err(|_| SignError::BadCredentials)?.into_parts();
    request.headers_mut().remove(X_AMZ_SECURITY_TOKEN);
    instructions.apply_to_request_http1x(request);
    if let Some(value) = request.headers_mut().get_mut(AUTHORIZATION) {
        value.set_sensitive(true);
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
