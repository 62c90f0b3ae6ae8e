//! What `js/elector.js` builds the npm package's `Elector` on: one election, driven in this runtime.
//!
//! Everything that crosses the boundary is a text, a number or bytes, so that nothing on either side holds
//! on to the other. The JavaScript side owns promises, signals and callbacks; this side owns the election.

use alloc::rc::Rc;

use js_sys::{Function, JsString, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

use crate::bucket::{Bucket, CredentialSource};
use crate::config::{Config, ConfigError, Settings};
use crate::driver::{self, Handle, Host};
use crate::election::{Event, Input, LostReason};
use crate::json::{self, Object as Fields, Writer, quoted};
use crate::lease;
use crate::prelude::*;
use crate::store::{
    Answer, Condition, Facts, Fault, FaultKind, Operation, Outcome, Store, Version,
};
use crate::web::{Web, describe};
use crate::{peer, status, vars};

/// One elector instance from its start to its stop: one session.
#[wasm_bindgen]
pub struct RawElector {
    handle: Handle,
    store: Rc<AnyStore>,
    web: Web,
}

enum AnyStore {
    Bucket(Box<Bucket>),
    Custom(CustomStore),
}

impl Store for AnyStore {
    async fn perform(&self, operation: Operation) -> Answer {
        match self {
            Self::Bucket(bucket) => bucket.perform(operation).await,
            Self::Custom(custom) => custom.perform(operation).await,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Bucket(bucket) => bucket.describe(),
            Self::Custom(custom) => custom.describe(),
        }
    }
}

#[wasm_bindgen]
impl RawElector {
    /// An elector over an S3 bucket. `settings` and `bucket` are JSON objects; `credentials` is an object or
    /// a function that gives one, or a promise of one.
    #[wasm_bindgen(js_name = overBucket)]
    pub fn over_bucket(
        settings: &str,
        bucket: &str,
        credentials: JsValue,
        unref: bool,
    ) -> Result<RawElector, JsValue> {
        let (config, store, web) = bucket_parts(settings, bucket, credentials, unref)?;
        Self::over(config, store, web)
    }

    /// An elector over any object with `get` and `putIfMatch`.
    #[wasm_bindgen(js_name = overStorage)]
    pub fn over_storage(
        settings: &str,
        storage: JsValue,
        unref: bool,
    ) -> Result<RawElector, JsValue> {
        let (config, store, web) = storage_parts(settings, &storage, unref)?;
        Self::over(config, store, web)
    }

    fn over(config: Config, store: AnyStore, web: Web) -> Result<RawElector, JsValue> {
        let election = driver::new_election(&web, config).map_err(|message| {
            plain_error("EDGELECT_RANDOMNESS", &["no randomness here: ", &message].concat())
        })?;
        Ok(Self { handle: Handle::new(election), store: Rc::new(store), web })
    }

    /// Drives the election until it has finished. `tell` hears each event as JSON.
    pub fn run(&self, tell: Function) -> Promise {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        future_to_promise(async move {
            driver::run(&handle, &*store, &web, |event| {
                // The JavaScript side catches what its callbacks throw.
                let _ = tell.call1(&JsValue::NULL, &event_json(&event).into());
            })
            .await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Starts a new group: creates a tombstone if there is no record.
    pub fn init(&self) -> Promise {
        let (handle, store, web) = (self.handle.clone(), Rc::clone(&self.store), self.web.clone());
        future_to_promise(async move {
            let config = handle.with(|election| election.config().clone());
            match driver::init(&*store, &web, &config).await {
                Ok(()) => Ok(JsValue::UNDEFINED),
                Err(error @ driver::InitError::Exists) => {
                    Err(plain_error("EDGELECT_EXISTS", error.message()))
                }
                Err(error) => Err(plain_error("EDGELECT_STORE", error.message())),
            }
        })
    }

    /// Has the election look at the clocks.
    pub fn tick(&self) {
        self.handle.tell(Input::Tick);
    }

    /// Gives the leadership up and sits out for a while.
    pub fn resign(&self) {
        self.handle.tell(Input::Resign);
    }

    /// Gives the leadership up and finishes; `park` keeps the lease for this `serverId`.
    pub fn stop(&self, park: bool) {
        self.handle.tell(Input::Stop { park });
    }

    /// The work of this term, which ended, has stopped.
    #[wasm_bindgen(js_name = workEnded)]
    pub fn work_ended(&self, term: f64) {
        self.handle.tell(Input::WorkEnded { term: term as u64 });
    }

    /// New settings, complete, as JSON. The group and the name can't change.
    pub fn configure(&self, settings: &str) -> Result<(), JsValue> {
        let config = read_config(settings)?;
        let old = self.handle.with(|election| election.config().clone());
        for (field, was, is) in [
            ("lockfilePath", &old.lockfile_path, &config.lockfile_path),
            ("serverId", &old.server_id, &config.server_id),
        ] {
            if was != is {
                let rule = "can't change while the elector runs; stop it and make a new one";
                return Err(config_error(ConfigError::new(field, quoted(is), &[rule])));
            }
        }
        self.handle.tell(Input::Configure(Box::new(config)));
        Ok(())
    }

    /// `[term, remainingMs]` with authority, `undefined` without.
    pub fn authority(&self) -> Option<Vec<f64>> {
        let authority = self.handle.authority(self.web.now())?;
        Some([authority.term as f64, authority.remaining_ms as f64].into())
    }

    /// The status as JSON.
    pub fn status(&self) -> String {
        let (now, requests) = (self.web.now(), self.handle.requests());
        self.handle.with(|election| status::status(election, now, requests))
    }

    /// The settings in force as JSON.
    pub fn config(&self) -> String {
        self.handle.with(|election| election.config().to_json())
    }

    /// The answer to `GET /health/leadership` as JSON: `{ status, etag, body }`.
    pub fn health(&self) -> String {
        let now = self.web.now();
        let answer = self.handle.with(|election| peer::answer(election, now));
        let etag = answer.etag.map(|version| version.0);
        Writer::new()
            .number("status", answer.status.into())
            .maybe_text("etag", etag.as_deref())
            .text("body", &answer.body)
            .end()
    }
}

/// Checks what `RawElector.overBucket` would take, without a session: there is no randomness for one in the
/// global scope of a Worker.
#[wasm_bindgen(js_name = checkOverBucket)]
pub fn check_over_bucket(
    settings: &str,
    bucket: &str,
    credentials: JsValue,
) -> Result<(), JsValue> {
    bucket_parts(settings, bucket, credentials, false).map(drop)
}

/// Checks what `RawElector.overStorage` would take, without a session.
#[wasm_bindgen(js_name = checkOverStorage)]
pub fn check_over_storage(settings: &str, storage: JsValue) -> Result<(), JsValue> {
    storage_parts(settings, &storage, false).map(drop)
}

fn bucket_parts(
    settings: &str,
    bucket: &str,
    credentials: JsValue,
    unref: bool,
) -> Result<(Config, AnyStore, Web), JsValue> {
    let config = read_config(settings)?;
    let web = Web::new(config.clock, unref);
    let source = CredentialSource::from_js(credentials).map_err(config_error)?;
    let options = object(bucket)?;
    let bucket = Bucket::from_options(&options, &config.lockfile_path, source, web.clone())
        .map_err(config_error)?;
    Ok((config, AnyStore::Bucket(Box::new(bucket)), web))
}

fn storage_parts(
    settings: &str,
    storage: &JsValue,
    unref: bool,
) -> Result<(Config, AnyStore, Web), JsValue> {
    let config = read_config(settings)?;
    let web = Web::new(config.clock, unref);
    let custom = CustomStore::new(storage, &config.lockfile_path)?;
    Ok((config, AnyStore::Custom(custom), web))
}

/// Checks settings without starting anything; gives them back complete, as JSON.
#[wasm_bindgen(js_name = checkSettings)]
pub fn check_settings(settings: &str) -> Result<String, JsValue> {
    Ok(read_config(settings)?.to_json())
}

/// Checks a bucket's options (`endpoint`, `bucket`, `region`, `pathStyle`, as JSON) and its credentials.
#[wasm_bindgen(js_name = checkBucket)]
pub fn check_bucket(bucket: &str, credentials: JsValue) -> Result<(), JsValue> {
    let source = CredentialSource::from_js(credentials).map_err(config_error)?;
    let web = Web::new(Web::detect_clock(), false);
    Bucket::from_options(&object(bucket)?, "check", source, web).map_err(config_error)?;
    Ok(())
}

/// Reads settings, bucket and credentials from variables given as a JSON object of texts:
/// `{ settings, bucket, credentials }` as JSON.
#[wasm_bindgen(js_name = fromVariables)]
pub fn from_variables(variables: &str) -> Result<String, JsValue> {
    let variables = object(variables)?;
    let get = |name: &str| variables.get(name).and_then(json::text);
    let settings = vars::settings_json(get).map_err(config_error)?;
    let bucket = vars::bucket(get).map_err(config_error)?;
    let secrets = vars::secrets(get).map_err(config_error)?;
    let credentials = Writer::new()
        .text("accessKeyId", &secrets.access_key_id)
        .text("secretAccessKey", &secrets.secret_access_key)
        .maybe_text("sessionToken", secrets.session_token.as_deref())
        .end();
    Ok(Writer::new()
        .raw("settings", &settings.to_json())
        .raw("bucket", &bucket.to_json())
        .raw("credentials", &credentials)
        .end())
}

fn read_config(settings: &str) -> Result<Config, JsValue> {
    let mut settings = Settings::from_json(&object(settings)?).map_err(config_error)?;
    settings.clock = Web::detect_clock();
    Config::new(&settings).map_err(config_error)
}

fn object(text: &str) -> Result<Fields, JsValue> {
    Fields::read(text.as_bytes())
        .ok_or_else(|| plain_error("EDGELECT_CONFIG", "the options must be an object"))
}

fn config_error(error: ConfigError) -> JsValue {
    let described = plain_error("EDGELECT_CONFIG", &error.message());
    let _ = Reflect::set(&described, &"field".into(), &error.field.into());
    described
}

fn plain_error(code: &str, message: &str) -> JsValue {
    let error = js_sys::Error::new(message);
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    error.into()
}

fn event_json(event: &Event) -> String {
    let mut json = Writer::new();
    match event {
        Event::Acquired { term } => json.text("type", "acquired").number("term", *term),
        Event::Lost { term, reason } => {
            json.text("type", "lost").number("term", *term).text("reason", reason_name(*reason))
        }
        Event::NewLeader { leader_id } => {
            json.text("type", "newLeader").maybe_text("leaderId", leader_id.as_deref())
        }
        Event::GivenUp => json.text("type", "givenUp"),
        Event::Failed(fault) => json
            .text("type", "failed")
            .text("message", &fault.message)
            .maybe_number("status", fault.status.map(u64::from))
            .maybe_text("storeCode", fault.code.as_deref()),
    }
    .end()
}

fn reason_name(reason: LostReason) -> &'static str {
    match reason {
        LostReason::Expired => "expired",
        LostReason::Overtaken => "overtaken",
        LostReason::Deleted => "deleted",
        LostReason::Clock => "clock",
        LostReason::Resigned => "resigned",
        LostReason::Stopped => "stopped",
    }
}

/// A store that the application brings: `get(key)` and `putIfMatch(key, body, etag)`.
struct CustomStore {
    storage: JsValue,
    get: Function,
    put_if_match: Function,
    key: String,
}

impl CustomStore {
    fn new(storage: &JsValue, key: &str) -> Result<Self, JsValue> {
        let method = |name: &str| {
            Reflect::get(storage, &name.into())
                .ok()
                .and_then(|found| found.dyn_into::<Function>().ok())
                .ok_or_else(|| {
                    let rule = "a storage needs the methods get and putIfMatch; it has no ";
                    config_error(ConfigError::new("storage", "(an object)", &[rule, name]))
                })
        };
        Ok(Self {
            storage: storage.clone(),
            get: method("get")?,
            put_if_match: method("putIfMatch")?,
            key: key.to_owned(),
        })
    }

    async fn call(&self, method: &Function, arguments: &js_sys::Array) -> Result<JsValue, JsValue> {
        let returned = method.apply(&self.storage, arguments)?;
        JsFuture::from(Promise::resolve(&returned)).await
    }

    fn unknown(&self, error: &JsValue) -> Answer {
        let message = [&self.describe(), ": ", &describe(error)].concat();
        let cause = Fault::new(FaultKind::Network, message);
        Answer {
            outcome: Outcome::Unknown { retry_after_ms: None, cause },
            facts: Facts::default(),
        }
    }

    fn nonsense(&self, what: &str) -> Outcome {
        let message = [&self.describe(), ": ", what].concat();
        Outcome::Rejected(Fault::new(FaultKind::Nonsense, message))
    }

    fn found(&self, found: &JsValue, unless: Option<&Version>) -> Answer {
        let field = |name: &str| Reflect::get(found, &name.into()).unwrap_or_default();
        let date = |name: &str| field(name).as_f64().filter(|ms| *ms > 0.0).map(|ms| ms as u64);
        let facts =
            Facts { date_ms: date("date"), last_modified_ms: date("lastModified"), relayed: false };
        let Some(etag) = read_etag(&field("etag")) else {
            let outcome = self.nonsense("get gave no etag, a text of at most 1024 characters");
            return Answer { outcome, facts };
        };
        let version = Version(etag);
        if unless == Some(&version) {
            return Answer { outcome: Outcome::Unchanged, facts };
        }
        let body = field("body");
        let body = match (body.dyn_ref::<JsString>(), body.dyn_ref::<Uint8Array>()) {
            // Looked at before it crosses: what is too large for a record must not fill our memory.
            (Some(text), _) => {
                String::from(text.slice(0, lease::MAX_RECORD_BYTES as u32 + 1)).into_bytes()
            }
            (None, Some(bytes)) if bytes.length() as usize > lease::MAX_RECORD_BYTES => {
                bytes.subarray(0, lease::MAX_RECORD_BYTES as u32 + 1).to_vec()
            }
            (None, Some(bytes)) => bytes.to_vec(),
            (None, None) => {
                let outcome = self.nonsense("get gave no body, a text or a Uint8Array");
                return Answer { outcome, facts };
            }
        };
        let reading = lease::read(&body);
        Answer { outcome: Outcome::Found { version, reading }, facts }
    }
}

impl Store for CustomStore {
    async fn perform(&self, operation: Operation) -> Answer {
        let key = JsValue::from_str(&self.key);
        match operation {
            Operation::Read { unless } => {
                match self.call(&self.get, &js_sys::Array::of1(&key)).await {
                    Ok(found) if found.is_null() || found.is_undefined() => {
                        Answer { outcome: Outcome::Missing, facts: Facts::default() }
                    }
                    Ok(found) => self.found(&found, unless.as_ref()),
                    Err(error) => self.unknown(&error),
                }
            }
            Operation::Write { body, condition } => {
                let etag = match condition {
                    Condition::Absent => JsValue::NULL,
                    Condition::Match(version) => version.0.into(),
                };
                let arguments = js_sys::Array::of3(&key, &Uint8Array::from(body.as_slice()), &etag);
                match self.call(&self.put_if_match, &arguments).await {
                    Ok(written) => {
                        Answer { outcome: self.written(&written), facts: Facts::default() }
                    }
                    Err(error) => self.unknown(&error),
                }
            }
        }
    }

    fn describe(&self) -> String {
        ["custom storage, key ", &quoted(&self.key)].concat()
    }
}

impl CustomStore {
    fn written(&self, written: &JsValue) -> Outcome {
        if written.is_falsy() {
            return Outcome::Refused;
        }
        let etag = written.dyn_ref::<Object>().and_then(|object| {
            read_etag(&Reflect::get(object, &"etag".into()).unwrap_or_default())
        });
        Outcome::Written { version: etag.map(Version) }
    }
}

fn read_etag(value: &JsValue) -> Option<String> {
    let text = value.dyn_ref::<JsString>()?;
    (1..=1024).contains(&text.length()).then(|| String::from(text))
}
