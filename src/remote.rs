//! An S3 bucket on any host: the store's requests and answers joined to [`Host::fetch`].

use crate::config::ConfigError;
use crate::driver::Host;
use crate::lease::MAX_RECORD_BYTES;
use crate::prelude::*;
use crate::sigv4::Credentials;
use crate::store::s3::{Next, S3, S3Config};
use crate::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use crate::vars::{self, SecretVars};

/// Where the credentials of a store come from. [`Credentials`] themselves are a source that never changes.
#[allow(async_fn_in_trait)] // Hosts here have one thread; no future has to be Send.
pub trait Provide {
    /// The credentials for the next request. It is asked before every request, so it keeps what is good for
    /// longer. The future counts into the request's time and is dropped when that is over.
    ///
    /// `fresh` is true after the store has called the last ones expired: what is kept will not do.
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

/// One lease object in an S3 bucket, reached through a host's own HTTP client.
pub struct S3Store<H, P = Credentials> {
    s3: S3,
    host: H,
    provider: P,
}

impl<H: Host, P: Provide> S3Store<H, P> {
    /// The object that `config` names. Its `key` is the group's `lockfilePath`.
    ///
    /// # Errors
    /// The option that cannot be used, and why.
    pub fn new(config: S3Config, provider: P, host: H) -> Result<Self, ConfigError> {
        Ok(Self { s3: S3::new(config)?, host, provider })
    }
}

impl<H: Clone, P: Clone> S3Store<H, P> {
    /// Another object of the same bucket: with the same credentials and host, and what was learned of the store.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn at(&self, key: &str) -> Result<Self, ConfigError> {
        let (host, provider) = (self.host.clone(), self.provider.clone());
        Ok(Self { s3: self.s3.at(key)?, host, provider })
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
        let vars::BucketVars { endpoint, bucket, region, path_style } = vars::bucket(&get)?;
        let config = S3Config { endpoint, bucket, region, path_style, key: key.to_owned() };
        let SecretVars { access_key_id, secret_access_key, session_token } = vars::secrets(&get)?;
        let credentials = Credentials { access_key_id, secret_access_key, session_token };
        Self::new(config, credentials, host).map_err(vars::by_variable)
    }
}

impl<H: Host, P: Provide> Store for S3Store<H, P> {
    async fn perform(&self, operation: Operation) -> Answer {
        perform(&self.s3, &self.host, &self.provider, operation).await
    }

    fn describe(&self) -> String {
        self.s3.describe()
    }
}

/// Performs one operation: signs, sends and judges until it has ended.
pub async fn perform<H: Host, P: Provide>(
    s3: &S3,
    host: &H,
    provider: &P,
    operation: Operation,
) -> Answer {
    // What fails before the request leaves has surely not taken effect.
    exchange(s3, host, provider, operation).await.unwrap_or_else(|fault| Answer {
        outcome: Outcome::Rejected(fault),
        facts: Facts::default(),
    })
}

async fn exchange<H: Host, P: Provide>(
    s3: &S3,
    host: &H,
    provider: &P,
    operation: Operation,
) -> Result<Answer, Fault> {
    let fault = |kind, pieces: [&str; 3]| {
        Fault::new(kind, [&s3.describe(), ": ", &pieces.concat()].concat())
    };
    let mut exchange = s3.begin(operation);
    let mut fresh = false;
    loop {
        let credentials = provider.credentials(fresh).await.map_err(|message| {
            fault(FaultKind::Denied, ["the credentials provider failed: ", &message, ""])
        })?;
        let request = exchange.request(s3, &credentials, host.now().wall_ms)?;
        let response = match host.fetch(request, MAX_RECORD_BYTES + 1).await {
            Ok(response) => response,
            Err(message) => {
                let pieces = ["no answer: ", &message, "; check the endpoint and the network"];
                let cause = fault(FaultKind::Network, pieces);
                let outcome = Outcome::Unknown { retry_after_ms: None, cause };
                return Ok(Answer { outcome, facts: Facts::default() });
            }
        };
        match exchange.answer(s3, response, host.now().wall_ms) {
            Next::Again => fresh = false,
            Next::Refresh => fresh = true,
            Next::Done(answer) => return Ok(answer),
        }
    }
}
