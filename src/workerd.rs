//! For Rust Workers, those that are made with crate `worker`: a [`Host`](crate::driver::Host) of what every Worker has, and
//! R2 bindings as a store. Feature `workerd`; `examples/rust-worker` in the repository is a whole Worker.
//!
//! ```ignore
//! #[event(scheduled)]
//! async fn scheduled(event: ScheduledEvent, env: Env, _: ScheduleContext) {
//!     match trigger(event.schedule() as u64, &env).await {
//!         Ok(outcome) => console_log!("{outcome}"),
//!         Err(error) => console_error!("{error}"),
//!     }
//! }
//!
//! async fn trigger(slot_ms: u64, env: &Env) -> Result<&'static str, Box<dyn Error>> {
//!     let host = Workerd::new();
//!     let config = workerd::config(workerd::variables(env))?;
//!     let store = AnyStore::from_env(env, &config.lockfile_path, &host)?;
//!     let settings = ScheduleSettings { slot_ms: Some(slot_ms), ..ScheduleSettings::default() };
//!     let schedule = Schedule::new(&settings, &config)?;
//!     let elector = Handle::new(new_schedule(&host, config, schedule)?);
//!     let job = async |term: Term<'_, Workerd>| write_report(term.slot_ms, term.token).await;
//!     Ok(run_scheduled(&elector, &store, &host, job).await?.outcome.name())
//! }
//! ```
//!
//! Each event makes its own [`Workerd`] and its own elector: workerd does not let one event wait for what another
//! has begun. So another event may look at an elector ([`Handle::with`](crate::driver::Handle::with)), but must not tell it
//! anything: that would move it within the wrong event.

mod host;
mod r2;

use wasm_bindgen::prelude::*;

pub use host::Workerd;
pub use r2::R2Store;

use crate::config::{Config, ConfigError, HostClock};
use crate::remote::S3Store;
use crate::store::{Answer, Operation, Store};
use crate::vars;

/// The name by which a bucket is bound, where none is given.
const BINDING: &str = "EDGELECT_R2";

/// What would name a second store beside a binding.
const OTHER_STORE: [&str; 3] = ["EDGELECT_BUCKET", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

/// Reads a Worker's variables and secrets by their names, for [`config`] and
/// [`S3Store::from_vars`]. `env` is the event's `worker::Env`.
///
/// A number or a flag of `wrangler.toml` becomes its text. What has none (a bucket, a list) becomes a text that
/// no option accepts, so that it is refused by its name.
pub fn variables(env: &impl AsRef<JsValue>) -> impl Fn(&str) -> Option<String> + Clone + 'static {
    let env = env.as_ref().clone();
    move |name| {
        let value = js_sys::Reflect::get(&env, &name.into()).ok()?;
        if value.is_null() || value.is_undefined() {
            return None;
        }
        let whole = || value.as_f64().filter(|_| js_sys::Number::is_safe_integer(&value));
        let text = value.as_string().or_else(|| value.as_bool().map(|flag| flag.to_string()));
        let text = text.or_else(|| whole().map(|number| (number as i64).to_string()));
        Some(text.unwrap_or_else(|| "(no text)\0".to_owned()))
    }
}

/// The settings of the `EDGELECT_*` variables for an elector on [`Workerd`], which has a single clock (S11).
///
/// # Errors
/// The variable whose value can't be used, and why.
pub fn config(get: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    let mut settings = vars::settings(get)?;
    settings.clock = HostClock::One;
    vars::config(&settings)
}

/// The store of a Worker whose variables say which it is.
pub enum AnyStore {
    /// An S3 bucket, of whichever provider.
    S3(Box<S3Store<Workerd>>),
    /// A bucket that is bound to the Worker.
    R2(R2Store),
}

impl AnyStore {
    /// The object `key` in the R2 bucket that is bound as `EDGELECT_R2`, unless `EDGELECT_ENDPOINT` names another
    /// place or there is no such binding: then in the bucket of
    /// [`S3Store::from_vars`].
    ///
    /// # Errors
    /// The variable or the binding that is missing or cannot be used, and why.
    pub fn from_env(
        env: &impl AsRef<JsValue>,
        key: &str,
        host: &Workerd,
    ) -> Result<Self, ConfigError> {
        let get = variables(env);
        let set = |name: &&str| get(name).is_some_and(|text| !text.is_empty());
        let bound = js_sys::Reflect::get(env.as_ref(), &BINDING.into()).unwrap_or_default();
        let is_bound = !bound.is_undefined() && !bound.is_null();
        if set(&"EDGELECT_ENDPOINT") || (!is_bound && set(&"EDGELECT_BUCKET")) {
            return Ok(Self::S3(Box::new(S3Store::from_vars(get, key, host.clone())?)));
        }
        if !is_bound {
            let rule = "bind an R2 bucket by this name ([[r2_buckets]] in wrangler.toml), or name a bucket of \
                        any provider by EDGELECT_BUCKET and EDGELECT_ENDPOINT";
            return Err(ConfigError::new(BINDING, "(not bound)", rule));
        }
        if let Some(other) = OTHER_STORE.iter().find(|name| set(name)) {
            let rule = "names one store and the binding EDGELECT_R2 another, and two stores make two leaders: \
                        remove one of them";
            return Err(ConfigError::new(other, "(not shown)", rule));
        }
        let named = |error| ConfigError { field: BINDING.to_owned(), ..error };
        let store = R2Store::new(bound, key).map_err(named)?;
        Ok(Self::R2(store.in_format(vars::format(get)?)))
    }

    /// Another object of the same bucket, such as that of a checkpoint, as a native record whatever the format of this one is.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::S3(store) => Self::S3(Box::new(store.at(key)?)),
            Self::R2(store) => Self::R2(store.at(key)?),
        })
    }
}

impl Store for AnyStore {
    async fn perform(&self, operation: Operation) -> Answer {
        match self {
            Self::S3(store) => store.perform(operation).await,
            Self::R2(store) => store.perform(operation).await,
        }
    }

    fn condition_covers_version(&self) -> bool {
        match self {
            Self::S3(store) => store.condition_covers_version(),
            Self::R2(store) => store.condition_covers_version(),
        }
    }

    fn keeps_any_body(&self) -> bool {
        match self {
            Self::S3(store) => store.keeps_any_body(),
            Self::R2(store) => store.keeps_any_body(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::S3(store) => store.describe(),
            Self::R2(store) => store.describe(),
        }
    }
}

/// What was thrown, for people: short, and no text that may quote an address or a signed request.
fn problem(thrown: &JsValue) -> String {
    const QUOTED: [&str; 5] = ["://", "signature", "aws4-hmac", "x-amz-", "authorization"];
    let message = thrown.dyn_ref::<js_sys::Error>().map(|error| String::from(error.message()));
    let text = message.or_else(|| thrown.as_string()).unwrap_or_default();
    let text: String = text.chars().take(200).collect();
    let lower = text.to_ascii_lowercase();
    if QUOTED.iter().any(|quoted| lower.contains(quoted)) {
        return "an error whose text is not shown, because it quotes the request".to_owned();
    }
    if text.is_empty() { "an error without a text".to_owned() } else { text }
}
