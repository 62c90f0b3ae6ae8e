//! An S3 bucket reached through the runtime's own `fetch`: the store's requests and answers joined to a host.

use serde_json::{Map, Value};

use crate::config::ConfigError;
use crate::driver::Host;
use crate::lease::MAX_RECORD_BYTES;
use crate::sigv4::Credentials;
use crate::store::s3::{Body, Next, S3, S3Config};
use crate::store::{Answer, Facts, Fault, FaultKind, Operation, Outcome, Store};
use crate::vars::{BucketVars, SecretVars};
use crate::web::{self, Web};

/// Where credentials come from.
pub enum CredentialSource {
    /// They never change.
    Fixed(Credentials),
    /// The host is asked for each request; `js/credentials.js` keeps what a provider gave as long as it is good.
    Provider,
}

/// One lease object in one bucket.
pub struct Bucket {
    s3: S3,
    web: Web,
    source: CredentialSource,
}

impl CredentialSource {
    /// Takes credentials that came from variables.
    pub fn from_vars(secrets: SecretVars) -> Self {
        let SecretVars { access_key_id, secret_access_key, session_token } = secrets;
        Self::Fixed(Credentials { access_key_id, secret_access_key, session_token })
    }
}

/// Reads credentials: `accessKeyId`, `secretAccessKey`, `sessionToken`.
///
/// # Errors
/// One of both keys is no text, or empty.
pub fn read_credentials(given: &Map<String, Value>) -> Result<Credentials, ConfigError> {
    let text = |name: &str| {
        let found = given.get(name).and_then(Value::as_str);
        found.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    // The value is never shown: somebody may have put a secret into the wrong field.
    let needed = |name: &str| {
        text(name).ok_or_else(|| ConfigError {
            field: format!("credentials.{name}"),
            value: "(not a text)".to_owned(),
            rule: "credentials are { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them"
                .to_owned(),
        })
    };
    Ok(Credentials {
        access_key_id: needed("accessKeyId")?,
        secret_access_key: needed("secretAccessKey")?,
        session_token: text("sessionToken"),
    })
}

impl Bucket {
    /// A bucket from the options of `new S3Storage`: `endpoint`, `bucket`, `region`, `pathStyle`.
    ///
    /// # Errors
    /// The option that can't be used, and why.
    pub fn from_options(
        options: &Map<String, Value>,
        key: &str,
        source: CredentialSource,
        web: Web,
    ) -> Result<Self, ConfigError> {
        let mut vars = BucketVars::default();
        for (name, value) in options {
            let text = value.as_str().map(str::to_owned);
            match (name.as_str(), value) {
                (_, Value::Null) => {}
                ("endpoint", Value::String(_)) => vars.endpoint = text,
                ("bucket", Value::String(bucket)) => vars.bucket.clone_from(bucket),
                ("region", Value::String(_)) => vars.region = text,
                ("pathStyle", Value::Bool(flag)) => vars.path_style = Some(*flag),
                ("endpoint" | "bucket" | "region", _) => {
                    return Err(wrong(name, "(not a text)", "must be a text"));
                }
                ("pathStyle", _) => {
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
        Ok(Self { s3, web, source })
    }

    async fn credentials(&self, fresh: bool) -> Result<Credentials, Fault> {
        if let CredentialSource::Fixed(credentials) = &self.source {
            return Ok(credentials.clone());
        }
        let denied = |message: &str| {
            let text = format!("{}: the credentials provider failed: {message}", self.describe());
            Fault::new(FaultKind::Denied, text)
        };
        let given = self.web.credentials(fresh).await;
        if !given.ok {
            return Err(denied(&given.head));
        }
        read_credentials(&given.fields()).map_err(|error| denied(&error.to_string()))
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
            let response =
                response.map(|body| Body { bytes: body.bytes, truncated: body.truncated });
            match exchange.answer(&self.s3, response, self.web.now().wall_ms) {
                Next::Again => fresh = false,
                Next::Refresh => fresh = true,
                Next::Done(answer) => return Ok(answer),
            }
        }
    }
}

fn wrong(field: &str, value: &str, rule: &str) -> ConfigError {
    ConfigError { field: field.to_owned(), value: value.to_owned(), rule: rule.to_owned() }
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
