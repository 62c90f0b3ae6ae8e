//! A store on any host: its requests and answers joined to [`Host::fetch`].

use crate::config::ConfigError;
use crate::driver::Host;
use crate::protocol::{Next, Protocol};
use crate::sigv4::Credentials;
use crate::store::dynamodb::{DynamoDb, DynamoDbConfig};
use crate::store::epochs::Epochs;
use crate::store::route53::{Route53, Route53Config};
use crate::store::s3::{S3, S3Config};
use crate::store::{Answer, Fault, FaultKind, Operation, Store, Version};
use crate::vars::{self, SecretVars};

/// Where the credentials of a store come from. [`Credentials`] themselves are a source that never changes.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Provide {
    /// The credentials for the next request. It is asked before every request, so it keeps what is good for
    /// longer. The future counts into the request's time and is dropped when that is over.
    ///
    /// `fresh` is true after the store has called the last ones expired, or, once in 10 s, has not known the key or its secret,
    /// which may have been rotated: what is kept will not do.
    ///
    /// # Errors
    /// Why there are none; no secret in it. The operation then has surely not taken effect.
    async fn credentials(&self, fresh: bool) -> Result<Credentials, String>;
}

impl Provide for Credentials {
    async fn credentials(&self, _fresh: bool) -> Result<Credentials, String> {
        Ok(self.clone())
    }
}

impl<P: Provide> Provide for &P {
    async fn credentials(&self, fresh: bool) -> Result<Credentials, String> {
        P::credentials(self, fresh).await
    }
}

/// One record in a store that is asked over HTTP, through a host's own client.
pub struct Remote<W, H, P = Credentials> {
    protocol: W,
    host: H,
    provider: P,
    /// Whether it is to be judged before it is trusted.
    judged: bool,
}

/// One object for each term in a bucket of an S3 store that has no `If-Match`.
pub type EpochStore<H, P = Credentials> = Remote<Epochs, H, P>;

/// One lease object in an S3 bucket.
pub type S3Store<H, P = Credentials> = Remote<S3, H, P>;

/// One lease item in a DynamoDB table.
pub type DynamoDbStore<H, P = Credentials> = Remote<DynamoDb, H, P>;

impl<W: Protocol, H: Host, P: Provide> Remote<W, H, P> {
    /// What `protocol` names, asked with the credentials of `provider`.
    pub fn of(protocol: W, provider: P, host: H) -> Self {
        Self { protocol, host, provider, judged: true }
    }

    /// The same place, which nobody judges at a start: somebody has, or the credentials are not for a second object.
    pub fn unjudged(self) -> Self {
        Self { judged: false, ..self }
    }
}

/// One lease in a TXT record set of Route 53.
pub type Route53Store<H, P = Credentials> = Remote<Route53, H, P>;

impl<H: Host, P: Provide> Route53Store<H, P> {
    /// The record that `config` names. Its `shard_id` is the group's `lockfilePath`; the group's `serverId` is to
    /// be checked by [`check_owner`](crate::store::route53::check_owner).
    ///
    /// # Errors
    /// The option that cannot be used, and why.
    pub fn new(config: Route53Config, provider: P, host: H) -> Result<Self, ConfigError> {
        Ok(Self::of(Route53::new(config)?, provider, host))
    }
}

impl<H: Host, P: Provide> S3Store<H, P> {
    /// The object that `config` names. Its `key` is the group's `lockfilePath`.
    ///
    /// # Errors
    /// The option that cannot be used, and why.
    pub fn new(config: S3Config, provider: P, host: H) -> Result<Self, ConfigError> {
        Ok(Self::of(S3::new(config)?, provider, host))
    }
}

impl<H: Host, P: Provide> DynamoDbStore<H, P> {
    /// The item that `config` names. Its `shard_id` is the group's `lockfilePath`.
    ///
    /// # Errors
    /// The option that cannot be used, and why.
    pub fn new(config: DynamoDbConfig, provider: P, host: H) -> Result<Self, ConfigError> {
        Ok(Self::of(DynamoDb::new(config)?, provider, host))
    }
}

impl<H: Host, P: Provide> EpochStore<H, P> {
    /// The epochs below the key that `config` names, the group's `lockfilePath`.
    ///
    /// # Errors
    /// The option that cannot be used, and why.
    pub fn new(config: S3Config, provider: P, host: H) -> Result<Self, ConfigError> {
        Ok(Self::of(Epochs::new(config)?, provider, host))
    }
}

impl<H: Clone, P: Clone> S3Store<H, P> {
    /// Another object of the same bucket, as a native record whatever the format of this one is: with the same credentials and
    /// host, and what was learned of the store.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        let (host, provider) = (self.host.clone(), self.provider.clone());
        Ok(Self { protocol: self.protocol.at(key)?, host, provider, judged: self.judged })
    }
}

impl<H: Host> S3Store<H> {
    /// The object `key` in the bucket that the variables name, with the credentials that they name; see
    /// [`vars::bucket`] and [`vars::secrets`]. `get` gives a variable's text.
    ///
    /// # Errors
    /// The variable that is missing or cannot be used, and why.
    pub fn from_vars(
        get: impl Fn(&str) -> Option<String>,
        key: &str,
        host: H,
    ) -> Result<Self, ConfigError> {
        vars::only_s3(&get)?;
        let vars::BucketVars { endpoint, bucket, region, path_style, format } = vars::bucket(&get)?;
        let key = key.to_owned();
        let config = S3Config { endpoint, bucket, region, path_style, key, format };
        let SecretVars { access_key_id, secret_access_key, session_token } = vars::secrets(&get)?;
        let credentials = Credentials { access_key_id, secret_access_key, session_token };
        Self::new(config, credentials, host).map_err(|error| vars::by_set_variable(&get, error))
    }
}

impl<W: Protocol, H: Host, P: Provide> Store for Remote<W, H, P> {
    async fn perform(&self, operation: Operation) -> Answer {
        perform(&self.protocol, &self.host, &self.provider, operation).await
    }

    fn beside(&self, key: &str) -> Option<impl Store> {
        let protocol = self.judged.then(|| self.protocol.beside(key)).flatten()?;
        Some(Remote::of(protocol, &self.provider, &self.host))
    }

    fn condition_covers_version(&self) -> bool {
        self.protocol.condition_covers_version()
    }

    fn near_misses(&self, version: &Version) -> Vec<Version> {
        self.protocol.near_misses(version)
    }

    fn keeps_any_body(&self) -> bool {
        self.protocol.keeps_any_body()
    }

    fn writes_apart_ms(&self) -> u64 {
        self.protocol.writes_apart_ms()
    }

    fn complaint(&self) -> Option<Fault> {
        self.protocol.complaint()
    }

    fn describe(&self) -> String {
        self.protocol.describe()
    }
}

/// Performs one operation: signs, sends and judges until it has ended.
pub async fn perform<W: Protocol, H: Host, P: Provide>(
    protocol: &W,
    host: &H,
    provider: &P,
    operation: Operation,
) -> Answer {
    let fault = |kind, pieces: [&str; 3]| {
        Fault::new(kind, format!("{}: {}", protocol.describe(), pieces.concat()))
    };
    let mut exchange = protocol.begin(operation);
    let mut fresh = false;
    loop {
        let credentials = provider.credentials(fresh).await.map_err(|message| {
            let what = "the credentials provider failed";
            let public = [&protocol.describe(), ": ", what, "; the log says why"].concat();
            fault(FaultKind::Denied, [what, ": ", &message]).shown_as(public)
        });
        let request = credentials.and_then(|credentials| {
            protocol.request(&mut exchange, &credentials, host.now().wall_ms)
        });
        let request = match request {
            Ok(request) => request,
            Err(fault) => return protocol.unsent(&mut exchange, fault),
        };
        let response = match host.fetch(request, W::ANSWER_LIMIT).await {
            Ok(response) => response,
            Err(message) => {
                let pieces = ["no answer: ", &message, "; check the endpoint and the network"];
                return protocol.silence(&mut exchange, fault(FaultKind::Network, pieces));
            }
        };
        match protocol.answer(&mut exchange, response, host.now().wall_ms) {
            Next::Again => fresh = false,
            Next::Refresh => fresh = true,
            Next::Done(answer) => return answer,
        }
    }
}
