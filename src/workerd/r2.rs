//! An R2 bucket that is bound to the Worker: no credentials, no signatures, and no `Date`.

use wasm_bindgen::prelude::*;
use worker::js_sys::futures::JsFuture;
use worker::js_sys::{Object, Reflect, Uint8Array};
use worker::web_sys::Headers;
use worker::worker_sys::{R2Bucket, R2Object};
use worker::{Bucket, Conditional, ObjectBody, ResponseBody, Result};

use super::problem::told;
use crate::config::{ConfigError, is_key};
use crate::lease::{Flaw, Format, MAX_RECORD_BYTES, Reading, Remains};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Record, Store, Version,
};
use crate::text::quoted;

/// R2 takes one write of one object in a second (<https://developers.cloudflare.com/r2/platform/limits/>).
const WRITES_APART_MS: u64 = 1_000;

/// One lease object in an R2 bucket, reached through a binding (`[[r2_buckets]]` in `wrangler.toml`).
///
/// Its answers have no `Date`, so the age of a record is watched: a tick that finds somebody else's lease needs a
/// whole lease to see that it has run out (S6).
pub struct R2Store {
    bucket: Bucket,
    key: String,
    format: Format,
}

impl R2Store {
    /// The object `key`, the group's `lockfilePath`, in a bucket such as `env.bucket("EDGELECT_R2")?`.
    pub fn new(bucket: Bucket, key: &str) -> Self {
        Self { bucket, key: key.to_owned(), format: Format::default() }
    }

    /// The same object, with records in this format.
    pub fn in_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Another object of the same bucket, as a native record whatever the format of this one is.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> std::result::Result<Self, ConfigError> {
        if !is_key(key) {
            let rule = "is an object's key: 1 to 1024 bytes, without empty or dot segments or control characters";
            return Err(ConfigError::new("key", quoted(key), rule));
        }
        Ok(Self::new(self.bucket.clone(), key))
    }

    async fn read(&self, unless: Option<Version>) -> Result<Answer> {
        let mut get = self.bucket.get(self.key.as_str());
        if let Some(version) = &unless {
            let etag_does_not_match = Some(bare(version).to_owned());
            get = get.only_if(Conditional { etag_does_not_match, ..Conditional::default() });
        }
        let Some(found) = get.execute().await? else {
            return Ok(Answer { outcome: Outcome::Missing, facts: Facts::default() });
        };
        let facts = facts(found.uploaded().as_millis());
        let version = Version(found.http_etag());
        let outcome = match found.body() {
            Some(body) => {
                Outcome::Found { version, reading: self.reading(found.size(), body).await? }
            }
            None if unless.as_ref() == Some(&version) => Outcome::Unchanged,
            None => Outcome::Rejected(self.fault(FaultKind::Nonsense, "read: no body")),
        };
        Ok(Answer { outcome, facts })
    }

    async fn write(&self, record: Record, condition: Condition) -> Result<Answer> {
        // As headers, which crate `worker` does not give: older runtimes took the star in `etagDoesNotMatch` for an ordinary
        // ETag, and overwrote (https://github.com/cloudflare/workerd/issues/2572).
        let only_if = Headers::new()?;
        match &condition {
            Condition::Absent => only_if.set("if-none-match", "*")?,
            // A star would match whatever is there.
            Condition::Match(version) if version.0.contains('*') => {
                return Err("an ETag with a star in it is none of R2's".into());
            }
            Condition::Match(version) => only_if.set("if-match", &version.0)?,
        }
        // Without a content type: JSON is compressed on its way to members over S3, and its ETag is then a weak one.
        let options = object([("onlyIf", only_if.into())]);
        let bucket = JsValue::from(self.bucket.clone()).unchecked_into::<R2Bucket>();
        let body = Uint8Array::from(&*record.body(self.format));
        let put = bucket.put(self.key.clone(), body.into(), options)?;
        let written = JsFuture::from(put).await?;
        if written.is_null() {
            return Ok(Answer { outcome: Outcome::Refused, facts: Facts::default() });
        }
        let written = written.unchecked_into::<R2Object>();
        let version = written.http_etag().ok().map(Version);
        let facts = written.uploaded().map(|at| facts(at.get_time() as u64)).unwrap_or_default();
        Ok(Answer { outcome: Outcome::Written { version }, facts })
    }

    /// The body, judged; what is too large is not read.
    async fn reading(&self, size: u64, body: ObjectBody<'_>) -> Result<Reading> {
        if size <= MAX_RECORD_BYTES as u64 {
            return Ok(self.format.read(&body.bytes().await?));
        }
        if let ResponseBody::Stream(unread) = body.response_body()? {
            JsFuture::from(unread.cancel()).await?;
        }
        Ok(Reading::Unreadable(Flaw::TooLarge, Remains::NONE))
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Fault {
        Fault::new(kind, format!("{}: {what}", self.describe()))
    }
}

impl Store for R2Store {
    async fn perform(&self, operation: Operation) -> Answer {
        let (name, ended) = match operation {
            Operation::Read { unless } => ("read: ", self.read(unless).await),
            Operation::Write { record, condition } => {
                ("write: ", self.write(record, condition).await)
            }
            Operation::Delete => return Answer::rejected(Fault::not_deleted(&self.describe())),
        };
        ended.unwrap_or_else(|error| {
            let what = [name, &told(&error.into())].concat();
            Answer::unknown(self.fault(FaultKind::Unavailable, &what))
        })
    }

    fn writes_apart_ms(&self) -> u64 {
        WRITES_APART_MS
    }

    fn condition_covers_version(&self) -> bool {
        true
    }

    fn keeps_any_body(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("R2 binding, key {}", quoted(&self.key))
    }
}

/// The version is the entity tag of HTTP, as over S3; the binding's own conditions want it without its quotes.
fn bare(version: &Version) -> &str {
    let text = version.0.as_str();
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

fn object<const N: usize>(fields: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in fields {
        Reflect::set(&object, &name.into(), &value).expect("a new object takes every field");
    }
    object.into()
}

fn facts(uploaded_ms: u64) -> Facts {
    let last_modified_ms = Some(uploaded_ms).filter(|ms| *ms > 0);
    Facts { last_modified_ms, ..Facts::default() }
}
