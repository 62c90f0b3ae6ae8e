//! The S3 store as JavaScript sets it up: its options, its credentials and their provider.

use crate::config::ConfigError;
use crate::json::{self, Object};
use crate::lease::Format;
use crate::prelude::*;
use crate::remote::{Provide, S3Store};
use crate::sigv4::Credentials;
use crate::store::s3::S3Config;
use crate::vars;
use crate::web::Web;

/// One lease object in one bucket.
pub type Bucket = S3Store<Web, CredentialSource>;

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
        let given = web.credentials(fresh).await;
        if !given.ok {
            return Err(given.head);
        }
        read_credentials(&given.fields().unwrap_or_default()).map_err(|error| error.message())
    }
}

/// Reads credentials: `accessKeyId`, `secretAccessKey`, `sessionToken`.
///
/// # Errors
/// One of both keys is no text, or empty.
pub fn read_credentials(given: &Object) -> Result<Credentials, ConfigError> {
    let text = |name: &str| given.get(name).and_then(json::text).filter(|text| !text.is_empty());
    // The value is never shown: somebody may have put a secret into the wrong field.
    let needed = |name: &str| {
        let rule = "credentials are { accessKeyId, secretAccessKey, sessionToken? } or a function that gives them";
        text(name).ok_or_else(|| wrong(&["credentials.", name].concat(), "(not a text)", rule))
    };
    Ok(Credentials {
        access_key_id: needed("accessKeyId")?,
        secret_access_key: needed("secretAccessKey")?,
        session_token: text("sessionToken"),
    })
}

/// A bucket from the options of `new S3Storage`: `endpoint`, `bucket`, `region`, `pathStyle`, `format`.
///
/// # Errors
/// The option that can't be used, and why.
pub fn open(
    options: &Object,
    key: &str,
    source: CredentialSource,
    web: Web,
) -> Result<Bucket, ConfigError> {
    let (endpoint, bucket, region, path_style) = (None, String::new(), None, None);
    let (key, format) = (key.to_owned(), Format::default());
    let mut config = S3Config { endpoint, bucket, region, path_style, key, format };
    for (name, value) in options.iter().filter(|(_, value)| !json::is_null(value)) {
        match (name, json::text(value), json::flag(value)) {
            ("endpoint", Some(text), _) => config.endpoint = Some(text),
            ("bucket", Some(text), _) => config.bucket = text,
            ("region", Some(text), _) => config.region = Some(text),
            ("pathStyle", _, Some(flag)) => config.path_style = Some(flag),
            ("format", given, _) => config.format = read_format(name, given)?,
            ("endpoint" | "bucket" | "region", ..) => {
                return Err(wrong(name, "(not a text)", "must be a text"));
            }
            ("pathStyle", ..) => return Err(wrong(name, "(not a flag)", "must be true or false")),
            _ => {
                let rule = "no such option; an S3Storage has endpoint, bucket, region, credentials, \
                            pathStyle and format";
                return Err(wrong(name, "(not shown)", rule));
            }
        }
    }
    S3Store::new(config, source, web)
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
    ConfigError::new(field, value, &[rule])
}
