//! The choice of a store: every store of the crate as one type, and which of them the variables name.

use futures::future::FutureExt;

use crate::config::{Config, ConfigError};
use crate::driver::Host;
use crate::remote::{DynamoDbStore, EpochStore, Provide, Route53Store, S3Store};
use crate::sigv4::Credentials;
use crate::store::dynamodb::DynamoDbConfig;
use crate::store::route53::{self, Route53Config};
use crate::store::s3::S3Config;
use crate::store::{Answer, Fault, Operation, Store, Version};
use crate::vars::{self, BucketVars, SecretVars, StoreName};

/// The store of an elector, whichever it is. `L` is the one that needs no HTTP, where the platform has such.
pub enum AnyStore<H, P, L> {
    /// An object in an S3 bucket.
    S3(Box<S3Store<H, P>>),
    /// An object for each epoch in an S3 bucket.
    Epochs(Box<EpochStore<H, P>>),
    /// An item in a DynamoDB table.
    DynamoDb(Box<DynamoDbStore<H, P>>),
    /// A TXT record in a Route 53 zone.
    Route53(Box<Route53Store<H, P>>),
    /// The platform's own.
    Local(L),
}

/// The same expression for whichever store it is.
macro_rules! each {
    ($any:expr, $store:ident => $what:expr) => {
        match $any {
            AnyStore::S3($store) => $what,
            AnyStore::Epochs($store) => $what,
            AnyStore::DynamoDb($store) => $what,
            AnyStore::Route53($store) => $what,
            AnyStore::Local($store) => $what,
        }
    };
}

impl<H: Host, P: Provide, L: Store> Store for AnyStore<H, P, L> {
    async fn perform(&self, operation: Operation) -> Answer {
        // Behind a pointer: as one function they would all be compiled by V8 for the one that is used.
        each!(self, store => store.perform(operation).boxed_local()).await
    }

    fn condition_covers_version(&self) -> bool {
        each!(self, store => store.condition_covers_version())
    }

    fn stale_writes_fail(&self) -> bool {
        each!(self, store => store.stale_writes_fail())
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        each!(self, store => store.near_misses(version))
    }

    fn keeps_any_body(&self) -> bool {
        each!(self, store => store.keeps_any_body())
    }

    fn writes_apart_ms(&self) -> u64 {
        each!(self, store => store.writes_apart_ms())
    }

    fn complaint(&self) -> Option<Fault> {
        each!(self, store => store.complaint())
    }

    fn describe(&self) -> String {
        each!(self, store => store.describe())
    }
}

impl<H: Host, L> AnyStore<H, Credentials, L> {
    /// The store of this name for the group of `config`, where and with which credentials the variables say. `local` makes
    /// the one that needs no HTTP.
    ///
    /// # Errors
    /// The variable that is missing or cannot be used, and why.
    pub fn named(
        name: StoreName,
        get: impl Fn(&str) -> Option<String>,
        config: &Config,
        host: H,
        local: impl FnOnce() -> Result<L, ConfigError>,
    ) -> Result<Self, ConfigError> {
        if name == StoreName::R2 {
            return local().map(Self::Local);
        }
        let SecretVars { access_key_id, secret_access_key, session_token } = vars::secrets(&get)?;
        let credentials = Credentials { access_key_id, secret_access_key, session_token };
        let opened = match name {
            StoreName::DynamoDb => dynamodb(&get, config)
                .and_then(|table| DynamoDbStore::new(table, credentials, host))
                .map(|store| Self::DynamoDb(Box::new(store))),
            StoreName::Route53 => route53(&get, config)
                .and_then(|zone| Route53Store::new(zone, credentials, host))
                .map(|store| Self::Route53(Box::new(store))),
            StoreName::Epochs => bucket(&get, config)
                .and_then(|bucket| EpochStore::new(bucket, credentials, host))
                .map(|store| Self::Epochs(Box::new(store))),
            StoreName::S3 | StoreName::R2 => bucket(&get, config)
                .and_then(|bucket| S3Store::new(bucket, credentials, host))
                .map(|store| Self::S3(Box::new(store))),
        };
        opened.map_err(vars::by_variable)
    }
}

fn bucket(get: &dyn Fn(&str) -> Option<String>, config: &Config) -> Result<S3Config, ConfigError> {
    let BucketVars { endpoint, bucket, region, path_style, format } = vars::bucket(get)?;
    let key = config.lockfile_path.clone();
    Ok(S3Config { endpoint, bucket, region, path_style, key, format })
}

fn dynamodb(
    get: &dyn Fn(&str) -> Option<String>,
    config: &Config,
) -> Result<DynamoDbConfig, ConfigError> {
    Ok(DynamoDbConfig {
        endpoint: vars::endpoint(get, StoreName::DynamoDb),
        region: vars::region(get),
        table: vars::table(get)?,
        shard_id: config.lockfile_path.clone(),
        lease_ms: config.leader_timeout_ms,
    })
}

fn route53(
    get: &dyn Fn(&str) -> Option<String>,
    config: &Config,
) -> Result<Route53Config, ConfigError> {
    let [hosted_zone_id, record_prefix, domain_name] = vars::zone(get)?;
    // Where there is none, a session's own id is the owner, and that always fits.
    if !config.server_id.is_empty() {
        route53::check_owner(&config.server_id)?;
    }
    Ok(Route53Config {
        endpoint: vars::endpoint(get, StoreName::Route53),
        hosted_zone_id,
        record_prefix,
        domain_name,
        shard_id: config.lockfile_path.clone(),
        lease_ms: config.leader_timeout_ms,
    })
}
