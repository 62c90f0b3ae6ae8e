//! For Rust Workers, those that are made with crate `worker`: all that the deployed Worker does, as two functions, and the parts
//! that it is made of. Feature `workerd`; `examples/rust-worker` in the repository is a whole Worker.
//!
//! ```ignore
//! #[wasm_bindgen]
//! pub async fn scheduled(event: worker_sys::ScheduledEvent, env: Env) -> Result<()> {
//!     workerd::scheduled_with(&event.into(), &env, async |term| report(term.slot_ms, term.token).await).await
//! }
//!
//! #[event(fetch)]
//! async fn fetch(request: Request, env: Env, context: Context) -> Result<Response> {
//!     workerd::fetch_with(&request, &env, &context).await
//! }
//! ```
//!
//! Their settings are variables, which docs/options.md lists; so are groups, stores and jobs. Whoever wants something else makes
//! it of [`config`], [`AnyStore::from_env`] and [`Workerd`], which is a [`Host`](crate::driver::Host) of what every Worker has.
//!
//! Each event makes its own [`Workerd`] and its own elector: workerd does not let one event wait for what another
//! has begun. So another event may look at an elector ([`Handle::with`](crate::driver::Handle::with)), but must not tell it
//! anything: that would move it within the wrong event.

mod env;
mod events;
mod group;
mod host;
mod problem;
mod r2;
mod send;
mod slot;

use worker::Env;

pub use events::{fetch, fetch_with, rehearse, scheduled, scheduled_with};
pub use host::Workerd;
pub use r2::R2Store;

use crate::choice;
use crate::config::{Config, ConfigError, HostClock, Settings};
use crate::sigv4::Credentials;
use crate::store::Store;
use crate::vars::{self, Given, R2};

/// Reads a Worker's variables and secrets by their names, for [`config`] and
/// [`S3Store::from_vars`](crate::remote::S3Store::from_vars).
///
/// A number or a flag of `wrangler.toml` becomes its text. What has none (a bucket, a list) becomes a text that
/// no option accepts, so that it is refused by its name.
pub fn variables(env: &Env) -> impl Fn(&str) -> Option<String> + Clone + 'static {
    let env = env.clone();
    move |name| Some(env::entry(&env, name)?.text().unwrap_or("(no text)\0").to_owned())
}

/// The settings of the `EDGELECT_*` variables for an elector on [`Workerd`], which has a single clock (S11).
///
/// # Errors
/// The variable whose value can't be used, and why.
pub fn config(get: impl Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    vars::config(&settings(get)?)
}

fn settings(get: impl Fn(&str) -> Option<String>) -> Result<Settings, ConfigError> {
    let mut settings = vars::settings(get)?;
    settings.clock = HostClock::One;
    Ok(settings)
}

/// The store of a Worker whose variables say which it is.
pub type AnyStore = choice::AnyStore<Workerd, Credentials, R2Store>;

impl AnyStore {
    /// The store that `EDGELECT_STORE` names for the group of `config`. Where that is not set: the R2 bucket that is bound as
    /// `EDGELECT_R2`, unless `EDGELECT_ENDPOINT` names another place or there is no such binding; then an S3 bucket.
    ///
    /// # Errors
    /// The variable or the binding that is missing or cannot be used, and why; one whose name begins with `EDGELECT_` and that
    /// nobody reads.
    pub fn from_env(env: &Env, config: &Config, host: &Workerd) -> Result<Self, ConfigError> {
        vars::check_names(env::entries(env).iter().map(|(name, _)| name.as_str()))?;
        open(env, variables(env), R2, config, host)
    }

    /// Another object of the same bucket, such as that of a checkpoint, as a native record whatever the format of this one is.
    ///
    /// # Errors
    /// The key cannot be used, or the store has no room for another object.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        match self {
            Self::S3(store) => Ok(Self::S3(Box::new(store.at(key)?))),
            Self::Local(store) => Ok(Self::Local(store.at(key)?)),
            Self::Epochs(_) | Self::DynamoDb(_) | Self::Route53(_) => {
                let rule = "keeps leases only, no other objects beside them";
                Err(ConfigError::new("EDGELECT_STORE", self.describe(), rule))
            }
        }
    }
}

/// The store for the group of `config`; `binding` is the name of its R2 bucket, if that is bound.
fn open(
    env: &Env,
    get: impl Fn(&str) -> Option<String>,
    binding: &str,
    config: &Config,
    host: &Workerd,
) -> Result<AnyStore, ConfigError> {
    let given = env::entry(env, binding);
    vars::check_given(given.iter().map(|given| (R2, given)))?;
    let name = vars::store_name(&get, given == Some(Given::Bucket))?;
    let local = || {
        let bucket = env.bucket(binding).map_err(|error| {
            let rule = "must be the binding of an R2 bucket: [[r2_buckets]] in wrangler.toml";
            ConfigError::new(R2, problem::told(&error.into()), rule)
        })?;
        Ok(R2Store::new(bucket, &config.lockfile_path).in_format(vars::format(&get)?))
    };
    AnyStore::named(name, &get, config, host.clone(), local)
}
