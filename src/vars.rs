//! Configuration from variables: `EDGELECT_*` first, AWS's own names where they mean the same.

use crate::config::{Config, ConfigError, Settings};
use crate::json::{self, Object, Writer, quoted};
use crate::prelude::*;

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
    Numbers,
}

/// Each variable, the option that it sets, and how its text is read.
const VARS: [(&str, &str, Kind); 16] = [
    ("EDGELECT_LOCKFILE_PATH", "lockfilePath", Kind::Text),
    ("EDGELECT_SERVER_ID", "serverId", Kind::Text),
    ("EDGELECT_SERVER_ADDR", "serverAddr", Kind::Text),
    ("EDGELECT_FREQUENT_INTERVAL", "frequentInterval", Kind::Number),
    ("EDGELECT_INFREQUENT_INTERVAL", "infrequentInterval", Kind::Number),
    ("EDGELECT_LEADER_TIMEOUT", "leaderTimeout", Kind::Number),
    ("EDGELECT_PEER_MODE", "peerMode", Kind::Flag),
    ("EDGELECT_PEER_TIMEOUT", "peerTimeout", Kind::Number),
    ("EDGELECT_FOLLOW", "follow", Kind::Text),
    ("EDGELECT_MARGIN", "margin", Kind::Number),
    ("EDGELECT_STORE_SKEW", "storeSkew", Kind::Number),
    ("EDGELECT_MAX_LEASE", "maxLease", Kind::Number),
    ("EDGELECT_REQUEST_TIMEOUT", "requestTimeout", Kind::Number),
    ("EDGELECT_RETRY_DELAYS", "retryDelays", Kind::Numbers),
    ("EDGELECT_TERM_FLOOR", "termFloor", Kind::Number),
    ("EDGELECT_SUSTAIN", "sustain", Kind::Number),
];

/// The bucket that the variables name. Secrets are not in here, so that it may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketVars {
    /// `EDGELECT_ENDPOINT`, or `AWS_ENDPOINT_URL_S3`, or `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// `EDGELECT_BUCKET`.
    pub bucket: String,
    /// `EDGELECT_REGION`, or `AWS_REGION`, or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// `EDGELECT_PATH_STYLE`.
    pub path_style: Option<bool>,
}

/// The credentials that the variables name.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretVars {
    /// `EDGELECT_ACCESS_KEY_ID`, or `AWS_ACCESS_KEY_ID`.
    pub access_key_id: String,
    /// `EDGELECT_SECRET_ACCESS_KEY`, or `AWS_SECRET_ACCESS_KEY`.
    pub secret_access_key: String,
    /// `EDGELECT_SESSION_TOKEN`, or `AWS_SESSION_TOKEN`.
    pub session_token: Option<String>,
}

/// Each variable of the election's settings and the option that it sets, for help texts.
pub fn options() -> impl Iterator<Item = (&'static str, &'static str)> {
    VARS.iter().map(|(var, option, _)| (*var, *option))
}

/// Reads the election's settings.
///
/// # Errors
/// The variable whose text is no value of its option, by the variable's name.
pub fn settings(get: impl Fn(&str) -> Option<String>) -> Result<Settings, ConfigError> {
    Settings::from_json(&settings_json(get)?).map_err(by_variable)
}

/// Reads the election's settings as the options of `new Elector`. `get` gives a variable's text; an empty text
/// counts as not set.
///
/// # Errors
/// As for [`settings`].
pub fn settings_json(get: impl Fn(&str) -> Option<String>) -> Result<Object, ConfigError> {
    let mut options = Object::new();
    for (var, option, kind) in VARS {
        if let Some(text) = get(var).filter(|text| !text.is_empty()) {
            options.set(option, value(var, &text, kind)?);
        }
    }
    Ok(options)
}

impl BucketVars {
    /// The options of `new S3Storage`.
    pub fn to_json(&self) -> String {
        Writer::new()
            .maybe_text("endpoint", self.endpoint.as_deref())
            .text("bucket", &self.bucket)
            .maybe_text("region", self.region.as_deref())
            .maybe_flag("pathStyle", self.path_style)
            .end()
    }
}

/// Checks settings that came from variables.
///
/// # Errors
/// The rule that is broken, by the variable's name.
pub fn config(settings: &Settings) -> Result<Config, ConfigError> {
    Config::new(settings).map_err(by_variable)
}

/// Reads where the bucket is.
///
/// # Errors
/// `EDGELECT_BUCKET` is missing, or `EDGELECT_PATH_STYLE` is no flag.
pub fn bucket(get: impl Fn(&str) -> Option<String>) -> Result<BucketVars, ConfigError> {
    let first = |names: &[&str]| first_set(&get, names);
    let path_style = match get("EDGELECT_PATH_STYLE").filter(|text| !text.is_empty()) {
        Some(text) => json::flag(&value("EDGELECT_PATH_STYLE", &text, Kind::Flag)?),
        None => None,
    };
    Ok(BucketVars {
        endpoint: first(&["EDGELECT_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
        bucket: first(&["EDGELECT_BUCKET"])
            .ok_or_else(|| missing("EDGELECT_BUCKET", "name the bucket that keeps the lease"))?,
        region: first(&["EDGELECT_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"]),
        path_style,
    })
}

/// Reads the credentials; a session token belongs to the pair that it came with.
///
/// # Errors
/// The variable that is missing.
pub fn secrets(get: impl Fn(&str) -> Option<String>) -> Result<SecretVars, ConfigError> {
    let prefix = ["EDGELECT", "AWS"].into_iter().find(|prefix| {
        ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"]
            .iter()
            .any(|name| first_set(&get, &[&[prefix, "_", name].concat()]).is_some())
    });
    let prefix = prefix.unwrap_or("EDGELECT");
    let one = |name: &str| first_set(&get, &[&[prefix, "_", name].concat()]);
    let needed = |name: &str| {
        one(name).ok_or_else(|| {
            let var = [prefix, "_", name].concat();
            missing(&var, "set it; on Workers: wrangler secret put NAME")
        })
    };
    let secrets = SecretVars {
        access_key_id: needed("ACCESS_KEY_ID")?,
        secret_access_key: needed("SECRET_ACCESS_KEY")?,
        session_token: one("SESSION_TOKEN"),
    };
    let token = secrets.session_token.as_deref().unwrap_or_default();
    for (name, text) in [
        ("ACCESS_KEY_ID", secrets.access_key_id.as_str()),
        ("SECRET_ACCESS_KEY", &secrets.secret_access_key),
        ("SESSION_TOKEN", token),
    ] {
        // Among others what js/worker.js makes of a binding that is no text.
        if text.chars().any(char::is_control) {
            let var = [prefix, "_", name].concat();
            return Err(ConfigError::new(&var, "(not shown)", &["must be a text of one line"]));
        }
    }
    Ok(secrets)
}

fn first_set(get: &dyn Fn(&str) -> Option<String>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| get(name).filter(|text| !text.is_empty()))
}

fn missing(var: &str, rule: &str) -> ConfigError {
    ConfigError::new(var, "(not set)", &[&rule.replace("NAME", var)])
}

/// The JSON of a variable's text that must be a whole number.
pub(crate) fn whole(var: &str, text: &str) -> Result<String, ConfigError> {
    value(var, text, Kind::Number)
}

/// The JSON of a variable's text.
fn value(var: &str, text: &str, kind: Kind) -> Result<String, ConfigError> {
    let (json, rule) = match kind {
        Kind::Text => (Some(quoted(text)), ""),
        Kind::Number => (
            text.parse::<u64>().ok().map(|number| number.to_string()),
            "must be a whole number, durations in milliseconds",
        ),
        Kind::Flag => {
            let flag = match text {
                "true" | "1" => Some("true"),
                "false" | "0" => Some("false"),
                _ => None,
            };
            (flag.map(str::to_owned), "must be true or false")
        }
        Kind::Numbers => {
            let mut numbers = text.split(',').map(|part| part.trim().parse::<u64>());
            let list = numbers.try_fold(String::new(), |list, number| {
                let comma = if list.is_empty() { "" } else { "," };
                number.map(|number| [&list, comma, &number.to_string()].concat())
            });
            let list = list.ok().map(|list| ["[", &list, "]"].concat());
            (list, "must be two whole numbers of milliseconds, such as 100,1000")
        }
    };
    json.ok_or_else(|| ConfigError::new(var, quoted(text), &[rule]))
}

/// Says a setting's error by the name of its variable, which is what the reader has before them.
pub fn by_variable(error: ConfigError) -> ConfigError {
    let found = VARS.iter().find(|(_, option, _)| *option == error.field);
    let field = match (found, error.field.as_str()) {
        (Some((var, _, _)), _) => (*var).to_owned(),
        (None, "endpoint") => "EDGELECT_ENDPOINT".to_owned(),
        (None, "bucket") => "EDGELECT_BUCKET".to_owned(),
        (None, "region") => "EDGELECT_REGION".to_owned(),
        (None, "pathStyle") => "EDGELECT_PATH_STYLE".to_owned(),
        (None, _) => error.field,
    };
    ConfigError { field, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + Copy + 'a {
        move |name| vars.iter().find(|(var, _)| *var == name).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn every_option_has_a_variable_and_an_empty_one_counts_as_not_set() {
        let read = settings(of(&[
            ("EDGELECT_LOCKFILE_PATH", "a/b"),
            ("EDGELECT_LEADER_TIMEOUT", "20000"),
            ("EDGELECT_RETRY_DELAYS", "100, 900"),
            ("EDGELECT_PEER_MODE", "true"),
            ("EDGELECT_FOLLOW", "tight"),
            ("EDGELECT_MARGIN", ""),
        ]))
        .unwrap();
        assert_eq!(read.leader_timeout_ms, Some(20_000));
        assert_eq!(read.retry_delays_ms, Some([100, 900]));
        assert_eq!((read.peer_mode, read.margin_ms), (Some(true), None));
        assert!(config(&read).is_ok());
    }

    #[test]
    fn a_secret_that_is_no_line_of_text_is_refused_and_not_shown() {
        for name in ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"] {
            let var = format!("EDGELECT_{name}");
            let get = |asked: &str| {
                let text = if asked == var { "hidden\0" } else { "fine" };
                asked.starts_with("EDGELECT_").then(|| text.to_owned())
            };
            let error = secrets(get).err().expect("it is refused");
            assert_eq!(error.field, var);
            assert!(!error.message().contains("hidden"), "{}", error.message());
        }
    }

    #[test]
    fn a_wrong_variable_is_named_by_its_own_name() {
        for (var, text) in [
            ("EDGELECT_LEADER_TIMEOUT", "15s"),
            ("EDGELECT_PEER_MODE", "yes"),
            ("EDGELECT_RETRY_DELAYS", "100;900"),
            ("EDGELECT_FOLLOW", "loosely"),
        ] {
            assert_eq!(settings(of(&[(var, text)])).unwrap_err().field, var);
        }
        let read = settings(of(&[("EDGELECT_LOCKFILE_PATH", "a"), ("EDGELECT_MARGIN", "1")]));
        assert_eq!(config(&read.unwrap()).unwrap_err().field, "EDGELECT_MARGIN");
        assert_eq!(bucket(of(&[])).unwrap_err().field, "EDGELECT_BUCKET");
    }

    #[test]
    fn credentials_come_from_one_family_of_variables_and_errors_show_none() {
        let mixed = [("AWS_ACCESS_KEY_ID", "aws"), ("EDGELECT_SECRET_ACCESS_KEY", "hidden")];
        let error = secrets(of(&mixed)).err().map(|error| (error.field.clone(), error.to_string()));
        let (field, text) = error.unwrap();
        assert_eq!(field, "EDGELECT_ACCESS_KEY_ID");
        assert!(!text.contains("hidden") && !text.contains("aws"));
        let aws = [
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
            ("AWS_SESSION_TOKEN", "c"),
        ];
        let read = secrets(of(&aws)).ok().unwrap();
        assert_eq!(read.session_token.as_deref(), Some("c"));
    }
}
