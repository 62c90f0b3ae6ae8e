//! What each answer of an S3 store means: its status, its code, its ETag.
//!
//! Source: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.

use super::document::ErrorDocument;
use super::{Exchange, S3, address};
use crate::calendar;
use crate::lease::{Flaw, Format, MAX_RECORD_BYTES, Reading, Remains};
use crate::planted::planted;
use crate::request::{self, Body, Response};
use crate::store::sentences::{self, BUSY, EXPIRED, OTHER_WRITE};
use crate::store::{Condition, Facts, Fault, FaultKind, Operation, Outcome, Version, heard};
use crate::text::quoted;

/// The longest version that is believed, in bytes; S3's ETags have 34.
const MAX_VERSION_BYTES: usize = 1024;

/// Codes of a store that is unwell or of a request that was damaged on the way, whatever the status.
const PASSING: [&str; 11] = [
    "BadDigest",
    "IncompleteBody",
    "InternalError",
    "RequestLimitExceeded",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "XAmzContentSHA256Mismatch",
];

/// Those of a damaged request.
const DAMAGED: [&str; 3] = ["BadDigest", "IncompleteBody", "XAmzContentSHA256Mismatch"];

/// Codes that mean "not with these credentials", whatever the 4xx: AWS answers some of them with 400.
const DENIED: [&str; 6] = [
    "AccessDenied",
    "InvalidAccessKeyId",
    "RequestExpired",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "Unauthorized",
];

/// With what stores refuse a conditional PUT that they do not know.
const CONDITION_REFUSED: [&str; 3] = ["InvalidArgument", "InvalidRequest", "NotImplemented"];

/// An answer, taken apart.
pub(super) struct Heard {
    pub response: Response,
    pub document: Option<ErrorDocument>,
}

impl Heard {
    /// The store's own code; empty if there is none.
    pub fn code(&self) -> &str {
        self.document.as_ref().map_or("", |document| &document.code)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        request::text(self.response.headers(), name)
    }

    /// Whether it may come from something else than the store, which is sure where it names the request. R2 does not.
    fn is_strange(&self) -> bool {
        self.header("x-amz-request-id").is_none()
    }

    /// Whether it is a page of a web server, which may have an ETag, too. A store that shows what somebody put there is no such.
    fn is_page(&self) -> bool {
        let is_html = |kind| begins(kind, "text/html");
        self.is_strange() && self.header("content-type").is_some_and(is_html)
    }

    /// Whether it is a file of a web server: what has been written a moment ago needs no time.
    fn is_file(&self) -> bool {
        self.is_strange() && self.header("last-modified").is_some()
    }

    fn retry_after_ms(&self, facts: &Facts) -> Option<u64> {
        heard::retry_after_ms(&self.response, facts, self.document.is_some())
    }
}

impl Exchange {
    pub(super) fn judge_read(
        &self,
        s3: &S3,
        heard: &Heard,
        facts: &Facts,
        unless: Option<&Version>,
    ) -> Outcome {
        let reject = |kind, advice: &str| Outcome::Rejected(self.fault(s3, heard, kind, advice));
        let version = version(&heard.response);
        let page = heard.is_page();
        match (heard.response.status().as_u16(), unless) {
            // Even with an ETag: web servers give their pages one, and this must not be healed as a record.
            (200 | 401 | 403, _) if page => reject(
                FaultKind::Nonsense,
                "this is a web page, not the answer of an S3 store; check the endpoint",
            ),
            // The lease is JSON: an error with a friendly status is no record, and is not to be healed.
            (200, _)
                if heard.is_strange()
                    && heard.document.is_some()
                    && !planted!(ErrorDocumentIsRecord) =>
            {
                reject(FaultKind::Nonsense, FRIENDLY_ERROR)
            }
            (200, _) => match version {
                Some(version) => Outcome::Found {
                    version,
                    reading: judge_body(s3.format, heard.response.body()),
                },
                None if planted!(NoEtagNoCondition) => Outcome::Found {
                    version: Version(String::new()),
                    reading: judge_body(s3.format, heard.response.body()),
                },
                None => reject(
                    FaultKind::Nonsense,
                    "the answer has no usable ETag, and nothing is written without one; something between \
                     here and the store may strip it, or compress the answer, which makes it a weak one",
                ),
            },
            // Another version than the one we asked about was not seen unchanged (S6).
            (304, Some(unless)) if version.as_ref().is_none_or(|found| same(found, unless)) => {
                Outcome::Unchanged
            }
            (304, _) => reject(FaultKind::Nonsense, "nothing was asked that this could answer"),
            (404, _) => match heard.code() {
                // Also a delete marker in a versioned bucket.
                "NoSuchKey" => Outcome::Missing,
                _ if planted!(AnyNotFoundIsAbsent) => Outcome::Missing,
                "NoSuchBucket" => reject(FaultKind::Misconfigured, NO_BUCKET),
                // Every store answers a GET with its code. A 404 of a web server or a gateway (Envoy's has
                // no body at all) says nothing about the record.
                _ => reject(
                    FaultKind::Nonsense,
                    "this does not come from an S3 store, so it does not mean that the record is absent; \
                     check the endpoint",
                ),
            },
            _ => self.judge_failure(s3, heard, facts),
        }
    }

    pub(super) fn judge_write(&self, s3: &S3, heard: &Heard, facts: &Facts) -> Outcome {
        let unknown = |advice: &str| Outcome::Unknown {
            retry_after_ms: heard.retry_after_ms(facts),
            cause: self.fault(s3, heard, FaultKind::Nonsense, advice),
        };
        match heard.response.status().as_u16() {
            200 | 201 | 204 if heard.document.is_some() => unknown(FRIENDLY_ERROR),
            // S3 has nothing to say about a success; whoever says something is not S3 alone.
            200 | 201 | 204
                if !heard.response.body().bytes.is_empty() || heard.response.body().truncated =>
            {
                Outcome::Written { version: None }
            }
            // An empty page of a web server has an ETag of its own, and a store has nothing to say of a time that it has just set.
            200 | 201 | 204 if heard.is_page() || heard.is_file() => {
                Outcome::Written { version: None }
            }
            200 | 201 | 204 => Outcome::Written { version: version(&heard.response) },
            // Old MinIO says 304 for a failed condition: https://github.com/minio/minio/issues/19442
            412 | 304 => Outcome::Refused,
            404 if heard.code() == "NoSuchBucket" => {
                let fault = self.fault(s3, heard, FaultKind::Misconfigured, NO_BUCKET);
                Outcome::Rejected(fault)
            }
            // AWS: the object of an If-Match was deleted meanwhile.
            404 => Outcome::Refused,
            // AWS: another operation on the key was under way; never "it exists".
            // What stands before another store says it without a code.
            409 if ["ConditionalRequestConflict", "OperationAborted", ""]
                .contains(&heard.code()) =>
            {
                Outcome::Refused
            }
            409 => unknown("the record is read back"),
            _ => self.judge_failure(s3, heard, facts),
        }
    }

    /// Whether a refused write may have failed for another reason than its condition, or not have failed at all. Some stores say
    /// 412 without a document, and whatever says something else may stand before the store.
    pub(super) fn is_doubtful(&self, heard: &Heard) -> bool {
        let creates =
            matches!(&self.operation, Operation::Write { condition: Condition::Absent, .. });
        match heard.response.status().as_u16() {
            412 => false,
            // Only the object of an If-Match can be missing.
            404 => creates || heard.code() != "NoSuchKey",
            _ => true,
        }
    }

    /// Statuses that mean the same for reads and writes.
    pub(super) fn judge_failure(&self, s3: &S3, heard: &Heard, facts: &Facts) -> Outcome {
        let writes = matches!(self.operation, Operation::Write { .. });
        let code = heard.code();
        let from_store = !code.is_empty();
        let reject = |kind, advice: &str| Outcome::Rejected(self.fault(s3, heard, kind, advice));
        let unknown = |kind, advice: &str| Outcome::Unknown {
            retry_after_ms: heard.retry_after_ms(facts),
            cause: self.fault(s3, heard, kind, advice),
        };
        if PASSING.contains(&code) {
            let damaged = DAMAGED.contains(&code);
            let advice = if damaged { "the request was damaged on the way" } else { BUSY };
            return unknown(FaultKind::Unavailable, advice);
        }
        let refused = (400..500).contains(&heard.response.status().as_u16());
        if refused && (EXPIRED.contains(&code) || DENIED.contains(&code)) {
            return reject(FaultKind::Denied, &self.denial(code));
        }
        match heard.response.status().as_u16() {
            409 => unknown(FaultKind::Unavailable, OTHER_WRITE),
            408 | 429 => unknown(FaultKind::Unavailable, BUSY),
            501 if writes && (from_store || planted!(GatewayIsTheStore)) => {
                reject(FaultKind::Misconfigured, NO_CONDITIONS)
            }
            501 if from_store => {
                reject(FaultKind::Misconfigured, "the store cannot do this; use another store")
            }
            501 => unknown(FaultKind::Nonsense, NO_STORE),
            500..=599 => unknown(FaultKind::Unavailable, BUSY),
            // Without the store's code it may be a gateway that judges answers too (S8).
            401 | 403 if writes && !from_store => unknown(FaultKind::Denied, NO_STORE),
            301 | 307 | 308 if writes && !from_store => {
                unknown(FaultKind::Nonsense, &redirect_advice(heard))
            }
            300..500 if writes && !from_store => unknown(FaultKind::Nonsense, NO_STORE),
            401 | 403 if !from_store => reject(
                FaultKind::Denied,
                &format!("{NO_DOCUMENT}. If it did: {}", self.denial(code)),
            ),
            401 | 403 => reject(FaultKind::Denied, &self.denial(code)),
            301 | 307 | 308 => {
                let kind = if from_store { FaultKind::Misconfigured } else { FaultKind::Nonsense };
                reject(kind, &redirect_advice(heard))
            }
            400 | 405 if writes && CONDITION_REFUSED.contains(&code) => {
                reject(FaultKind::Misconfigured, NO_CONDITIONS)
            }
            400 | 405 if from_store => reject(
                FaultKind::Misconfigured,
                "the store cannot do this as it is set up, and its code says why; check endpoint, bucket, region and key",
            ),
            _ if writes => unknown(FaultKind::Nonsense, "the record is read back"),
            _ => reject(FaultKind::Nonsense, "an S3 store answers otherwise; check the endpoint"),
        }
    }

    fn denial(&self, code: &str) -> String {
        if let Some(text) = sentences::denial(code) {
            return text.to_owned();
        }
        let text = match (code, &self.operation) {
            ("SignatureDoesNotMatch", _) => {
                "check the secret access key and the region, and that nothing on the way changes the request"
            }
            ("InvalidAccessKeyId" | "Unauthorized", _) => "check the access key id",
            ("InvalidObjectState", _) => {
                "a lifecycle rule has moved the object to an archive; restore the object, and leave its key out of the rule"
            }
            (_, Operation::Delete) => {
                "the credentials need s3:DeleteObject on the keys below lockfilePath: until they have it old epochs \
                 pile up, and more than 16,000 are an error"
            }
            (_, Operation::Read { .. }) => {
                "the credentials need s3:GetObject on the key and s3:ListBucket on the bucket: without \
                 s3:ListBucket, S3 answers a missing key with 403, so nothing is known about the record"
            }
            (_, Operation::Write { .. }) => "the credentials need s3:PutObject on the key",
        };
        // A used-up quota or a closed account comes with the same status.
        let rights = ["", "AccessDenied", "Forbidden"].contains(&code) || !text.starts_with(RIGHTS);
        if rights {
            text.to_owned()
        } else {
            format!("the store's code says why. If it means rights: {text}")
        }
    }

    /// A fault of this exchange: store, operation, status, the store's code, what to do.
    fn fault(&self, s3: &S3, heard: &Heard, kind: FaultKind, advice: &str) -> Fault {
        let (method, _) = self.method_and_condition();
        let (code, status) = (heard.code(), heard.response.status().as_u16());
        let message = format!(
            "{}: {method} {} was answered {status}{}{code}: {advice}",
            s3.describe(),
            quoted(self.key(s3)),
            if code.is_empty() { "" } else { " " }
        );
        let code = Some(code.to_owned()).filter(|code| !code.is_empty());
        Fault { status: Some(status), code, ..Fault::new(kind, message) }
    }
}

fn judge_body(format: Format, body: &Body) -> Reading {
    if body.truncated || body.bytes.len() > MAX_RECORD_BYTES {
        return Reading::Unreadable(Flaw::TooLarge, Remains::NONE);
    }
    format.read(&body.bytes)
}

const FRIENDLY_ERROR: &str = "an error came with the status of a success";

const RIGHTS: &str = "the credentials need";

const NO_DOCUMENT: &str = "this has no error document, so it may not be the S3 store that answered; check the endpoint \
                           and what is on the way";

const NO_STORE: &str = "this has no error document of an S3 store, so something on the way may have answered, and \
                        nobody knows what became of the request; check the endpoint, and whether a proxy on the \
                        way lets conditional PUTs through";

const NO_BUCKET: &str = "create the bucket, or correct its name or the endpoint";

const NO_CONDITIONS: &str = "the store does not take a PUT with If-Match or If-None-Match, and no leader can be \
                             elected without; use a store or a version that honours conditional writes, and a \
                             bucket without Object Lock";

fn redirect_advice(heard: &Heard) -> String {
    let location = heard.header("location");
    let target =
        location.or_else(|| heard.document.as_ref()?.endpoint.as_deref()).unwrap_or_default();
    // Only the host: the rest may repeat a signature.
    let after_scheme = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let to = if is_host(host) { format!(" to {}", quoted(host)) } else { String::new() };
    format!(
        "the redirect{to} is not followed; if that is where the bucket is, set endpoint and \
         region to it"
    )
}

/// Whether a text may be a host and its port: a signature is none, nor a part of one's name, which has at most 63 characters.
fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
    let short = text.split('.').all(|label| label.len() < 64);
    !text.is_empty() && text.len() <= 253 && text.bytes().all(plain) && short
}

/// The region that an answer names, in its header or its document.
pub(super) fn region_of(heard: &Heard) -> Option<String> {
    let named = heard
        .header("x-amz-bucket-region")
        .or_else(|| heard.document.as_ref()?.region.as_deref())?;
    address::is_region(named).then(|| named.to_owned())
}

/// The store's time, for signing: from the error document, which nothing on the way rewrites, or from `Date`.
pub(super) fn store_time_ms(heard: &Heard) -> Option<u64> {
    let told = heard.document.as_ref().and_then(|document| document.server_time.as_deref());
    let told_ms = told.and_then(calendar::read_rfc3339);
    let told_ms = told_ms.and_then(|instant| u64::try_from(instant.unix_ms).ok());
    told_ms.or_else(|| calendar::read_http_date(heard.header("date")?))
}

/// The one ETag of an answer, byte for byte, if it can serve as a condition.
fn version(response: &Response) -> Option<Version> {
    let text = request::text(response.headers(), "etag")?;
    (request::count(response.headers(), "etag") == 1 && is_version(text))
        .then(|| Version(text.to_owned()))
}

/// Whether these are one ETag. Something on the way may take the quotes away or add them.
fn same(one: &Version, other: &Version) -> bool {
    one.0.trim_matches('"') == other.0.trim_matches('"')
}

/// Whether a text is one strong ETag. Some stores leave the quotes out. Weak ones never match an `If-Match`, and
/// `*` or a list would match what was never read.
pub(super) fn is_version(text: &str) -> bool {
    let text = if planted!(WeakEtagAccepted) { text.trim_start_matches("W/") } else { text };
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let quoted = inner.is_some();
    let inner = inner.unwrap_or(text);
    let plain = |byte: u8| match byte {
        b'"' => false,
        b',' | b'*' => quoted,
        _ => (0x21..0x7f).contains(&byte),
    };
    if planted!(EtagUnvalidated) {
        return text.is_ascii();
    }
    let weak = begins(text, "w/");
    !inner.is_empty() && text.len() <= MAX_VERSION_BYTES && inner.bytes().all(plain) && !weak
}

/// Whether a text begins with this one, in any case.
fn begins(text: &str, with: &str) -> bool {
    text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_signature_is_no_host() {
        assert!(is_host("bucket.s3.eu-central-1.amazonaws.com:443") && is_host("[::1]:9000"));
        assert!(!is_host(&"a".repeat(64)) && !is_host("") && !is_host("a b"));
    }
}
