//! An S3 bucket reached through the runtime's own `fetch`: the store's requests and answers joined to a host.

use alloc::rc::Rc;
use core::cell::RefCell;

use js_sys::{Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use crate::config::ConfigError;
use crate::driver::Host;
use crate::json::{self, Object};
use crate::lease::MAX_RECORD_BYTES;
use crate::prelude::*;
use crate::sigv4::Credentials;
use crate::store::s3::{Next, S3, S3Config};
use crate::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use crate::vars::{BucketVars, SecretVars};
use crate::web::{self, Web, describe};

/// How long before their expiry credentials are asked for again, in milliseconds.
const EARLY_MS: u64 = 60_000;

/// How long a provider may take before it is asked again, in milliseconds: one that hangs once must not starve
/// the elector.
const PATIENCE_MS: u64 = 10_000;

/// Where credentials come from.
pub enum CredentialSource {
    /// They never change.
    Fixed(Credentials),
    /// A function that gives an object of the shape that the AWS SDK's providers return, or a promise of one.
    Provider(Function),
}

/// One lease object in one bucket.
pub struct Bucket {
    s3: S3,
    web: Web,
    source: CredentialSource,
    newest: Rc<RefCell<Option<Credentials>>>,
    /// The provider's promise while it is asked, and since when: a slow provider is asked once, however many requests are cut
    /// off meanwhile.
    asking: Rc<RefCell<Option<(u64, Promise)>>>,
}

impl CredentialSource {
    /// Takes what somebody gave as `credentials`.
    ///
    /// # Errors
    /// It is neither a function nor an object with both keys.
    pub fn from_js(given: JsValue) -> Result<Self, ConfigError> {
        if let Some(provider) = given.dyn_ref::<Function>() {
            return Ok(Self::Provider(provider.clone()));
        }
        read_credentials(&given).map(Self::Fixed)
    }

    /// Takes credentials that came from variables.
    pub fn from_vars(secrets: SecretVars) -> Self {
        let SecretVars { access_key_id, secret_access_key, session_token } = secrets;
        Self::Fixed(Credentials {
            access_key_id,
            secret_access_key,
            session_token,
            expires_at_ms: None,
        })
    }
}

fn read_credentials(given: &JsValue) -> Result<Credentials, ConfigError> {
    let text = |name: &str| {
        let found = Reflect::get(given, &name.into()).unwrap_or_default();
        found.as_string().filter(|text| !text.is_empty())
    };
    // The value is never shown: somebody may have put a secret into the wrong field.
    let refuse = |field: &str, rule: &str| {
        ConfigError::new(&["credentials.", field].concat(), "(not a text)", &[rule])
    };
    let rule = "credentials are { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them";
    let expiration = Reflect::get(given, &"expiration".into()).unwrap_or_default();
    let expires_at_ms = match expiration.is_null() || expiration.is_undefined() {
        true => None,
        // A Date of another realm, a number and an ISO text all make a date.
        false => Some(js_sys::Date::new(&expiration).get_time()),
    };
    if expires_at_ms.is_some_and(f64::is_nan) {
        return Err(refuse("expiration", "must be a Date, or what makes one"));
    }
    Ok(Credentials {
        access_key_id: text("accessKeyId").ok_or_else(|| refuse("accessKeyId", rule))?,
        secret_access_key: text("secretAccessKey")
            .ok_or_else(|| refuse("secretAccessKey", rule))?,
        session_token: text("sessionToken"),
        expires_at_ms: expires_at_ms.filter(|ms| *ms > 0.0).map(|ms| ms as u64),
    })
}

impl Bucket {
    /// A bucket from the options of `new S3Storage`: `endpoint`, `bucket`, `region`, `pathStyle`.
    ///
    /// # Errors
    /// The option that can't be used, and why.
    pub fn from_options(
        options: &Object,
        key: &str,
        source: CredentialSource,
        web: Web,
    ) -> Result<Self, ConfigError> {
        let mut vars = BucketVars::default();
        for (name, value) in options.iter().filter(|(_, value)| !json::is_null(value)) {
            match (name, json::text(value), json::flag(value)) {
                ("endpoint", Some(text), _) => vars.endpoint = Some(text),
                ("bucket", Some(text), _) => vars.bucket = text,
                ("region", Some(text), _) => vars.region = Some(text),
                ("pathStyle", _, Some(flag)) => vars.path_style = Some(flag),
                ("endpoint" | "bucket" | "region", ..) => {
                    return Err(wrong(name, "(not a text)", "must be a text"));
                }
                ("pathStyle", ..) => {
                    return Err(wrong(name, "(not a flag)", "must be true or false"));
                }
                _ => {
                    let rule = "no such option; an S3Storage has endpoint, bucket, region, credentials and \
                                pathStyle";
                    return Err(wrong(name, "(not shown)", rule));
                }
            }
        }
        Self::from_vars(vars, key, source, web)
    }

    /// A bucket from what variables named.
    ///
    /// # Errors
    /// As for [`Bucket::from_options`].
    pub fn from_vars(
        vars: BucketVars,
        key: &str,
        source: CredentialSource,
        web: Web,
    ) -> Result<Self, ConfigError> {
        let BucketVars { endpoint, bucket, region, path_style } = vars;
        let config = S3Config { endpoint, bucket, region, path_style, key: key.to_owned() };
        let s3 = S3::new(config)?;
        Ok(Self { s3, web, source, newest: Rc::default(), asking: Rc::default() })
    }

    async fn credentials(&self, fresh: bool) -> Result<Credentials, Fault> {
        let provider = match &self.source {
            CredentialSource::Fixed(credentials) => return Ok(credentials.clone()),
            CredentialSource::Provider(provider) => provider,
        };
        let now_ms = self.web.now().wall_ms;
        let left_ms = |credentials: &Credentials| {
            credentials.expires_at_ms.map_or(u64::MAX, |ms| ms.saturating_sub(now_ms))
        };
        let newest = self.newest.borrow().clone().filter(|newest| left_ms(newest) > 0);
        if let (Some(credentials), false) = (newest, fresh) {
            if left_ms(&credentials) < EARLY_MS {
                // They are good for this request; the next ones come meanwhile.
                let _ = self.ask(provider);
            }
            return Ok(credentials);
        }
        let denied = |message: String| {
            let pieces = [&self.describe(), ": the credentials provider failed: ", &message];
            let text = pieces.concat();
            Fault::new(FaultKind::Denied, text)
        };
        let promise = self.ask(provider).map_err(|error| denied(describe(&error)))?;
        let given = JsFuture::from(promise).await.map_err(|error| denied(describe(&error)))?;
        read_credentials(&given).map_err(|error| denied(error.message()))
    }

    /// Asks the provider, unless it is being asked; what it gives is kept even if nobody waits any more.
    fn ask(&self, provider: &Function) -> Result<Promise, JsValue> {
        let now_ms = self.web.now().mono_ms;
        if let Some((since_ms, promise)) = &*self.asking.borrow()
            && now_ms.saturating_sub(*since_ms) < PATIENCE_MS
        {
            return Ok(promise.clone());
        }
        let promise = Promise::resolve(&provider.call0(&JsValue::NULL)?);
        *self.asking.borrow_mut() = Some((now_ms, promise.clone()));
        let (newest, asking) = (Rc::clone(&self.newest), Rc::clone(&self.asking));
        let waiting = JsFuture::from(promise.clone());
        spawn_local(async move {
            let given = waiting.await;
            *asking.borrow_mut() = None;
            if let Ok(Ok(credentials)) = given.map(|given| read_credentials(&given)) {
                *newest.borrow_mut() = Some(credentials);
            }
        });
        Ok(promise)
    }

    async fn exchange(&self, operation: Operation) -> Result<Answer, Fault> {
        let mut exchange = self.s3.begin(operation);
        let mut fresh = false;
        loop {
            let credentials = self.credentials(fresh).await?;
            let wall_ms = self.web.now().wall_ms;
            let request = exchange.request(&self.s3, &credentials, wall_ms)?;
            let response = match self.web.fetch(request, MAX_RECORD_BYTES + 1).await {
                Ok(response) => response,
                Err(message) => {
                    let cause = web::network_fault(&self.describe(), &message);
                    let outcome = Outcome::Unknown { retry_after_ms: None, cause };
                    return Ok(Answer { outcome, facts: Facts::default() });
                }
            };
            match exchange.answer(&self.s3, response, self.web.now().wall_ms) {
                Next::Again => fresh = false,
                Next::Refresh => fresh = true,
                Next::Done(answer) => return Ok(answer),
            }
        }
    }
}

fn wrong(field: &str, value: &str, rule: &str) -> ConfigError {
    ConfigError::new(field, value, &[rule])
}

impl Store for Bucket {
    async fn perform(&self, operation: Operation) -> Answer {
        // What fails before the request leaves has surely not taken effect.
        self.exchange(operation).await.unwrap_or_else(|fault| Answer {
            outcome: Outcome::Rejected(fault),
            facts: Facts::default(),
        })
    }

    fn describe(&self) -> String {
        self.s3.describe()
    }
}
