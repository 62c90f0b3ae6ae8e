//! The stores as JavaScript sets them up: their options, their credentials and a provider of those.

use crate::config::ConfigError;
use crate::custom::AnyStore;
use crate::json::{self, Object};
use crate::lease::Format;
use crate::remote::{DynamoDbStore, EpochStore, Route53Store};
use crate::remote::{Provide, S3Store};
use crate::sigv4::Credentials;
use crate::store::dynamodb::DynamoDbConfig;
use crate::store::route53::{self, Route53Config};
use crate::store::s3::S3Config;
use crate::text::{first, nearest, unknown, visible};
use crate::vars;
use crate::web::{Settled, Web};

/// Where credentials come from.
pub enum CredentialSource {
    /// They never change.
    Fixed(Credentials),
    /// The host is asked for each request; `js/credentials.js` keeps what a provider gave as long as it is good.
    Asked(Web),
}

impl Provide for CredentialSource {
    async fn credentials(&self, fresh: bool) -> Result<Credentials, String> {
        let web = match self {
            Self::Fixed(credentials) => return Ok(credentials.clone()),
            Self::Asked(web) => web,
        };
        match web.credentials(fresh).await {
            Settled::Given(credentials) => Ok(credentials),
            other => Err(other.failure()),
        }
    }
}

/// Reads credentials: `accessKeyId`, `secretAccessKey`, `sessionToken`.
///
/// # Errors
/// One of both keys is no text, or empty; or one of the three has more than one line.
pub fn read_credentials(given: &Object) -> Result<Credentials, ConfigError> {
    let text = |name: &str| given.get(name).and_then(json::text).filter(|text| !text.is_empty());
    // The value is never shown: somebody may have put a secret into the wrong field.
    let needed = |name: &str| {
        let rule = "credentials are { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them";
        text(name).ok_or_else(|| wrong(&format!("credentials.{name}"), "(not a text)", rule))
    };
    let credentials = Credentials {
        access_key_id: needed("accessKeyId")?,
        secret_access_key: needed("secretAccessKey")?,
        session_token: text("sessionToken"),
    };
    let Credentials { access_key_id, secret_access_key, session_token } = &credentials;
    vars::check_one_line([
        ("credentials.accessKeyId", access_key_id),
        ("credentials.secretAccessKey", secret_access_key),
        ("credentials.sessionToken", session_token.as_deref().unwrap_or_default()),
    ])?;
    Ok(credentials)
}

/// The store that the options of a storage of the npm package name. Where there is more than one, `kind` says which:
/// nothing for an object in an S3 bucket, `epochs` for one of each epoch, `dynamodb` for a table, `route53` for a zone.
///
/// # Errors
/// The option that can't be used, and why.
pub fn open(
    options: &Object,
    group: &Group<'_>,
    source: CredentialSource,
    web: Web,
) -> Result<AnyStore<CredentialSource>, ConfigError> {
    let mut given = Given(options.clone());
    match given.text("kind")?.as_deref() {
        Some("epochs") => return open_epochs(given, group, source, web),
        Some("dynamodb") => return open_table(given, group, source, web),
        Some("route53") => return open_zone(given, group, source, web),
        _ => {}
    }
    let config = take_bucket(&mut given, group)?;
    given.nothing_else(
        "an S3Storage has endpoint, bucket, region, credentials, pathStyle and format",
    )?;
    Ok(AnyStore::S3(Box::new(S3Store::new(config, source, web)?)))
}

fn take_bucket(given: &mut Given, group: &Group<'_>) -> Result<S3Config, ConfigError> {
    // One by one: with each `?` inside a literal there would be code that drops what came before it.
    let mut config = S3Config { key: group.key.to_owned(), ..S3Config::default() };
    config.endpoint = given.text("endpoint")?;
    config.bucket = given.text("bucket")?.unwrap_or_default();
    config.region = given.text("region")?;
    config.path_style = given.flag("pathStyle")?;
    config.format = match given.text("format") {
        Ok(None) => Format::default(),
        name => read_format("format", name.unwrap_or_default())?,
    };
    Ok(config)
}

fn open_epochs(
    mut given: Given,
    group: &Group<'_>,
    source: CredentialSource,
    web: Web,
) -> Result<AnyStore<CredentialSource>, ConfigError> {
    let config = take_bucket(&mut given, group)?;
    given.nothing_else(
        "an EpochStorage has endpoint, bucket, region, credentials, pathStyle and format",
    )?;
    Ok(AnyStore::Epochs(Box::new(EpochStore::new(config, source, web)?)))
}

fn open_table(
    mut given: Given,
    group: &Group<'_>,
    source: CredentialSource,
    web: Web,
) -> Result<AnyStore<CredentialSource>, ConfigError> {
    let config = DynamoDbConfig {
        endpoint: given.text("endpoint")?,
        region: given.text("region")?,
        table: given.text("table")?.unwrap_or_default(),
        shard_id: group.key.to_owned(),
        lease_ms: group.lease_ms,
    };
    given.nothing_else("a DynamoDBStorage has endpoint, region, table and credentials")?;
    Ok(AnyStore::DynamoDb(Box::new(DynamoDbStore::new(config, source, web)?)))
}

fn open_zone(
    mut given: Given,
    group: &Group<'_>,
    source: CredentialSource,
    web: Web,
) -> Result<AnyStore<CredentialSource>, ConfigError> {
    let config = Route53Config {
        endpoint: given.text("endpoint")?,
        hosted_zone_id: given.text("hostedZoneId")?.unwrap_or_default(),
        record_prefix: given.text("recordPrefix")?.unwrap_or_default(),
        domain_name: given.text("domainName")?.unwrap_or_default(),
        shard_id: group.key.to_owned(),
        lease_ms: group.lease_ms,
    };
    given.nothing_else(
        "a Route53Storage has endpoint, hostedZoneId, recordPrefix, domainName and credentials",
    )?;
    if !group.server_id.is_empty() {
        route53::check_owner(group.server_id)?;
    }
    Ok(AnyStore::Route53(Box::new(Route53Store::new(config, source, web)?)))
}

/// What a store has to know of its group.
pub struct Group<'a> {
    /// The `lockfilePath`.
    pub key: &'a str,
    /// The `serverId`; empty where none was set.
    pub server_id: &'a str,
    /// The `leaderTimeout` in milliseconds, for stores whose records of other makes say nothing of theirs.
    pub lease_ms: u64,
}

/// Options, each taken by its name; one that is `null` counts as not given.
struct Given(Object);

impl Given {
    fn take<T>(
        &mut self,
        name: &str,
        read: fn(&str) -> Option<T>,
        rule: [&str; 2],
    ) -> Result<Option<T>, ConfigError> {
        match self.0.remove(name).filter(|value| !json::is_null(value)) {
            None => Ok(None),
            Some(value) => read(&value).map(Some).ok_or_else(|| wrong(name, rule[0], rule[1])),
        }
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, ConfigError> {
        self.take(name, json::text, ["(not a text)", "must be a text"])
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, ConfigError> {
        self.take(name, json::flag, ["(not a flag)", "must be true or false"])
    }

    fn nothing_else(self, known: &str) -> Result<(), ConfigError> {
        match self.0.iter().find(|(_, value)| !json::is_null(value)) {
            None => Ok(()),
            Some((name, _)) => {
                let rule = unknown("option", nearest(name, known.split([' ', ','])), known);
                Err(ConfigError::new(&visible(first(name, 60)), "(not shown)", rule))
            }
        }
    }
}

/// A record's format, by its name.
///
/// # Errors
/// There is none of that name.
pub fn read_format(field: &str, name: Option<String>) -> Result<Format, ConfigError> {
    let format = name.and_then(|name| Format::named(&name));
    format.ok_or_else(|| wrong(field, "(not shown)", vars::FORMATS))
}

fn wrong(field: &str, value: &str, rule: &str) -> ConfigError {
    ConfigError::new(field, value, rule)
}
