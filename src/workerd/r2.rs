//! An R2 bucket that is bound to the Worker: no credentials, no signatures, and no `Date`.

use js_sys::futures::JsFuture;
use js_sys::{ArrayBuffer, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use web_sys::Headers;

use super::problem;
use crate::config::{ConfigError, is_key};
use crate::lease::{Flaw, Format, MAX_RECORD_BYTES, Reading, Remains};
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Store, Version,
};
use crate::text::quoted;

#[wasm_bindgen]
extern "C" {
    type Bucket;

    #[wasm_bindgen(method, catch)]
    fn get(this: &Bucket, key: &str, options: &JsValue) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    fn put(
        this: &Bucket,
        key: &str,
        body: &Uint8Array,
        options: &JsValue,
    ) -> Result<Promise, JsValue>;

    /// An `R2Object`; an `R2ObjectBody` if it has a body.
    type Stored;

    #[wasm_bindgen(method, getter, js_name = httpEtag)]
    fn http_etag(this: &Stored) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    fn size(this: &Stored) -> f64;

    #[wasm_bindgen(method, getter)]
    fn uploaded(this: &Stored) -> js_sys::Date;

    #[wasm_bindgen(method, getter)]
    fn body(this: &Stored) -> Option<web_sys::ReadableStream>;

    #[wasm_bindgen(method, catch, js_name = arrayBuffer)]
    fn array_buffer(this: &Stored) -> Result<Promise, JsValue>;
}

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
    ///
    /// # Errors
    /// The binding is no bucket.
    pub fn new(bucket: impl Into<JsValue>, key: &str) -> Result<Self, ConfigError> {
        let bucket = bucket.into();
        let is_bucket = ["get", "put"].iter().all(|name| {
            Reflect::get(&bucket, &(*name).into()).is_ok_and(|method| method.is_function())
        });
        if !is_bucket {
            let rule = "must be an R2 bucket, bound by [[r2_buckets]] in wrangler.toml";
            return Err(ConfigError::new("bucket", "(no bucket)", rule));
        }
        Ok(Self { bucket: bucket.unchecked_into(), key: key.to_owned(), format: Format::default() })
    }

    /// The same object, with records in this format.
    pub fn in_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Another object of the same bucket, as a native record whatever the format of this one is.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        if !is_key(key) {
            let rule = "is an object's key: 1 to 1024 bytes, without empty or dot segments or control characters";
            return Err(ConfigError::new("key", quoted(key), rule));
        }
        let bucket: &JsValue = self.bucket.as_ref();
        let bucket = bucket.clone().unchecked_into();
        Ok(Self { bucket, key: key.to_owned(), format: Format::Native })
    }

    async fn read(&self, unless: Option<Version>) -> Result<Answer, JsValue> {
        let only_if = unless.as_ref().map_or(JsValue::UNDEFINED, |version| {
            object([("etagDoesNotMatch", bare(version).into())])
        });
        let got = self.bucket.get(&self.key, &object([("onlyIf", only_if)]))?;
        let found = JsFuture::from(got).await?;
        if found.is_null() {
            return Ok(Answer { outcome: Outcome::Missing, facts: Facts::default() });
        }
        let found = found.unchecked_into::<Stored>();
        let facts = facts(&found);
        let version = found.http_etag().map(Version);
        let outcome = match (found.body(), version) {
            (None, version) if version.is_some() && version == unless => Outcome::Unchanged,
            (Some(body), Some(version)) => {
                Outcome::Found { version, reading: self.reading(&found, body).await? }
            }
            _ => Outcome::Rejected(self.fault(FaultKind::Nonsense, "read: no version or no body")),
        };
        Ok(Answer { outcome, facts })
    }

    async fn write(&self, body: &[u8], condition: Condition) -> Result<Answer, JsValue> {
        // As headers: older runtimes took the star in `etagDoesNotMatch` for an ordinary ETag, and overwrote
        // (https://github.com/cloudflare/workerd/issues/2572).
        let only_if = Headers::new()?;
        match &condition {
            Condition::Absent => only_if.set("if-none-match", "*")?,
            // A star would match whatever is there.
            Condition::Match(version) if version.0.contains('*') => {
                return Err("an ETag with a star in it is none of R2's".into());
            }
            Condition::Match(version) => only_if.set("if-match", &version.0)?,
        }
        let json = object([("contentType", "application/json".into())]);
        let options = object([("onlyIf", only_if.into()), ("httpMetadata", json)]);
        let put =
            self.bucket.put(&self.key, &Uint8Array::from(&*self.format.stored(body)), &options)?;
        let written = JsFuture::from(put).await?;
        if written.is_null() {
            return Ok(Answer { outcome: Outcome::Refused, facts: Facts::default() });
        }
        let written = written.unchecked_into::<Stored>();
        let version = written.http_etag().map(Version);
        Ok(Answer { outcome: Outcome::Written { version }, facts: facts(&written) })
    }

    /// The body, judged; what is too large is not read.
    async fn reading(
        &self,
        object: &Stored,
        body: web_sys::ReadableStream,
    ) -> Result<Reading, JsValue> {
        if object.size() > MAX_RECORD_BYTES as f64 {
            JsFuture::from(body.cancel()).await?;
            return Ok(Reading::Unreadable(Flaw::TooLarge, Remains::NONE));
        }
        let bytes = JsFuture::from(object.array_buffer()?).await?;
        let bytes = Uint8Array::new(&bytes.unchecked_into::<ArrayBuffer>());
        Ok(self.format.read(&bytes.to_vec()))
    }

    fn fault(&self, kind: FaultKind, what: &str) -> Fault {
        Fault::new(kind, format!("{}: {what}", self.describe()))
    }
}

impl Store for R2Store {
    async fn perform(&self, operation: Operation) -> Answer {
        let (name, ended) = match operation {
            Operation::Read { unless } => ("read: ", self.read(unless).await),
            Operation::Write { body, condition } => ("write: ", self.write(&body, condition).await),
            Operation::Delete => return Answer::rejected(Fault::not_deleted(&self.describe())),
        };
        ended.unwrap_or_else(|thrown| {
            let what = [name, &problem(&thrown)].concat();
            let cause = self.fault(FaultKind::Unavailable, &what);
            let outcome = Outcome::Unknown { retry_after_ms: None, cause };
            Answer { outcome, facts: Facts::default() }
        })
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

fn facts(object: &Stored) -> Facts {
    let uploaded_ms = object.uploaded().get_time();
    let last_modified_ms = (uploaded_ms > 0.0).then_some(uploaded_ms as u64);
    Facts { last_modified_ms, ..Facts::default() }
}
