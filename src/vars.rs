//! Configuration from variables: `EDGELECT_*` first, AWS's own names where they mean the same.

use crate::config::{Config, ConfigError, Settings};
use serde::Serialize;

use crate::json::{self, Object};
use crate::lease::Format;
use crate::text::{first, quoted, visible};

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

/// The variables that name an S3 bucket and its secrets.
const BUCKET_VARS: [&str; 8] = [
    "EDGELECT_ENDPOINT",
    "EDGELECT_BUCKET",
    "EDGELECT_REGION",
    "EDGELECT_PATH_STYLE",
    FORMAT,
    "EDGELECT_ACCESS_KEY_ID",
    "EDGELECT_SECRET_ACCESS_KEY",
    "EDGELECT_SESSION_TOKEN",
];

/// What AWS's own tools read and we read as well.
const AWS_VARS: [&str; 7] = [
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];

/// How the record is written down, whichever store keeps it.
const FORMAT: &str = "EDGELECT_FORMAT";

/// The rule of that variable and of the option.
pub(crate) const FORMATS: &str =
    "must be native or kubernetes, the same for every member of the group";

/// The binding to an R2 bucket, told by `true` where there is one.
const R2: &str = "EDGELECT_R2";

/// What the deployed Worker knows besides: its store, its groups and its job.
const WORKER_VARS: [&str; 12] = [
    R2,
    "EDGELECT_GROUPS",
    "EDGELECT_CRON",
    "EDGELECT_JOB_URL",
    "EDGELECT_JOB_SECRET",
    "EDGELECT_JOB_TIMEOUT",
    "EDGELECT_POLICY",
    "EDGELECT_MISSED",
    "EDGELECT_PERIOD",
    "EDGELECT_ATTEMPTS",
    "EDGELECT_BUDGET",
    "EDGELECT_SUBREQUESTS",
];

/// The bucket that the variables name. Secrets are not in here, so that it may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BucketVars {
    /// `EDGELECT_ENDPOINT`, or `AWS_ENDPOINT_URL_S3`, or `AWS_ENDPOINT_URL`.
    pub endpoint: Option<String>,
    /// `EDGELECT_BUCKET`.
    pub bucket: String,
    /// `EDGELECT_REGION`, or `AWS_REGION`, or `AWS_DEFAULT_REGION`.
    pub region: Option<String>,
    /// `EDGELECT_PATH_STYLE`.
    pub path_style: Option<bool>,
    /// `EDGELECT_FORMAT`.
    pub format: Format,
}

/// The credentials that the variables name.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
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

/// Refuses what the deployed Worker could not mean anything by: a name that nobody reads, and a value that is no
/// text where one is needed, which `js/worker.js` gives as `null`.
///
/// # Errors
/// The variable, by its name.
pub fn check_names(variables: &Object) -> Result<(), ConfigError> {
    let settings = || VARS.iter().map(|(var, ..)| var);
    for (name, value) in variables.iter() {
        let known = settings().chain(&BUCKET_VARS).chain(&WORKER_VARS).any(|var| *var == name);
        if !known && name.starts_with("EDGELECT_") {
            let rule = "no such variable; docs/options.md lists them";
            return Err(ConfigError::new(&visible(first(name, 60)), "(not shown)", rule));
        }
        if name == "JOB" && json::is_null(value) {
            let rule = "must be a service binding, or not set";
            return Err(ConfigError::new(name, "(no binding)", rule));
        }
        if (known || AWS_VARS.contains(&name)) && name != R2 && json::is_null(value) {
            let rule = "must be a text, a number or a flag";
            return Err(ConfigError::new(name, "(no text)", rule));
        }
    }
    Ok(())
}

/// Whether the store is the R2 bucket that the Worker is bound to: where there is one and no endpoint of another.
///
/// # Errors
/// The variable that names a second store, or no store at all.
pub fn binds_r2(variables: &Object) -> Result<bool, ConfigError> {
    let get = |name: &str| variables.get(name).and_then(json::text);
    let bound = match variables.get(R2) {
        None => false,
        Some(given) if json::flag(given) == Some(true) => true,
        Some(given) if json::text(given).is_some_and(|text| text.is_empty()) => false,
        Some(_) => {
            let rule = "must be the binding of an R2 bucket: [[r2_buckets]] in wrangler.toml";
            return Err(ConfigError::new(R2, "(no bucket)", rule));
        }
    };
    if first_set(&get, &["EDGELECT_ENDPOINT"]).is_some() {
        return Ok(false);
    }
    let others = ["EDGELECT_BUCKET", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];
    match others.iter().find(|var| first_set(&get, &[var]).is_some()) {
        Some(var) if bound => {
            let rule = "this is one store and the R2 binding EDGELECT_R2 another, and two stores make two leaders: \
                        remove this variable to use the binding, or the binding from wrangler.toml to use this";
            // An address may have a password or a signature in it.
            Err(ConfigError::new(var, "(not shown)", rule))
        }
        None if !bound => {
            let rule = "name the bucket that keeps the lease, or bind an R2 bucket as EDGELECT_R2: [[r2_buckets]] in \
                        wrangler.toml";
            Err(missing("EDGELECT_BUCKET", rule))
        }
        _ => Ok(bound),
    }
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
        json::of(self)
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
/// `EDGELECT_BUCKET` is missing, `EDGELECT_PATH_STYLE` is no flag, or `EDGELECT_FORMAT` no format.
pub fn bucket(get: impl Fn(&str) -> Option<String>) -> Result<BucketVars, ConfigError> {
    let first = |names: &[&str]| first_set(&get, names);
    let format = format(&get)?;
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
        format,
    })
}

/// Reads the record's format.
///
/// # Errors
/// `EDGELECT_FORMAT` names none.
pub fn format(get: impl Fn(&str) -> Option<String>) -> Result<Format, ConfigError> {
    match first_set(&get, &[FORMAT]) {
        None => Ok(Format::default()),
        Some(name) => Format::named(&name)
            .ok_or_else(|| ConfigError::new(FORMAT, quoted(first(&name, 60)), FORMATS)),
    }
}

/// Reads the credentials; a session token belongs to the pair that it came with.
///
/// # Errors
/// The variable that is missing.
pub fn secrets(get: impl Fn(&str) -> Option<String>) -> Result<SecretVars, ConfigError> {
    let prefix = ["EDGELECT", "AWS"].into_iter().find(|prefix| {
        ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"]
            .iter()
            .any(|name| first_set(&get, &[&format!("{prefix}_{name}")]).is_some())
    });
    let prefix = prefix.unwrap_or("EDGELECT");
    let one = |name: &str| first_set(&get, &[&format!("{prefix}_{name}")]);
    let needed = |name: &str| {
        one(name).ok_or_else(|| {
            let var = format!("{prefix}_{name}");
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
        if text.chars().any(char::is_control) {
            let var = format!("{prefix}_{name}");
            return Err(ConfigError::new(&var, "(not shown)", "must be a text of one line"));
        }
    }
    Ok(secrets)
}

fn first_set(get: &dyn Fn(&str) -> Option<String>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| get(name).filter(|text| !text.is_empty()))
}

fn missing(var: &str, rule: &str) -> ConfigError {
    ConfigError::new(var, "(not set)", rule.replace("NAME", var))
}

/// A whole number of digits alone; `parse` takes a plus sign too.
pub(crate) fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// The JSON of a variable's text that must be a whole number.
pub(crate) fn whole(var: &str, text: &str) -> Result<String, ConfigError> {
    value(var, text, Kind::Number)
}

/// The JSON of a variable's text.
fn value(var: &str, text: &str, kind: Kind) -> Result<String, ConfigError> {
    let (json, rule) = match kind {
        Kind::Text => (Some(json::of(text)), ""),
        Kind::Number => (
            digits(text).map(|number| number.to_string()),
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
            let mut numbers = text.split(',').map(|part| digits(part.trim()));
            let list = numbers.try_fold(String::new(), |list, number| {
                let comma = if list.is_empty() { "" } else { "," };
                number.map(|number| [&list, comma, &number.to_string()].concat())
            });
            let list = list.map(|list| format!("[{list}]"));
            (list, "must be two whole numbers of milliseconds, such as 100,1000")
        }
    };
    json.ok_or_else(|| ConfigError::new(var, quoted(first(text, 60)), rule))
}

/// Says a setting's error by the name of its variable, which is what the reader has before them, and no more of its value
/// than helps.
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
    let shown = first(&error.value, 60);
    let value = if shown == error.value { error.value } else { format!("{shown}…") };
    ConfigError { field, value, ..error }
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

    #[test]
    fn a_name_that_nobody_reads_and_a_value_that_is_no_text_are_refused_unseen() {
        let check = |json: &str| check_names(&Object::read(json.as_bytes()).unwrap());
        let every = r#"{"EDGELECT_SUSTAIN":"1","EDGELECT_BUCKET":"b","EDGELECT_JOB_SECRET":"s","EDGELECT_R2":null}"#;
        assert_eq!(check(every), Ok(()), "what R2 is bound to is told by `binds_r2`");
        assert_eq!(check(r#"{"AWS_PROFILE":null,"JOB":"(bound)"}"#), Ok(()));
        for (name, value) in [
            ("EDGELECT_SUSTIAN", "\"hidden\""),
            ("EDGELECT_SUSTAIN", "null"),
            ("EDGELECT_JOB_SECRET", "null"),
            ("JOB", "null"),
            ("AWS_SESSION_TOKEN", "null"),
        ] {
            let error = check(&format!("{{\"{name}\":{value}}}")).unwrap_err();
            assert_eq!(error.field, name);
            assert!(!error.message().contains("hidden"));
        }
    }

    #[test]
    fn two_stores_are_refused_and_an_endpoint_decides() {
        let binds = |json: &str| binds_r2(&Object::read(json.as_bytes()).unwrap());
        let refused = |json: &str| binds(json).unwrap_err().field;
        assert_eq!(binds(r#"{"EDGELECT_R2":true}"#), Ok(true));
        assert_eq!(binds(r#"{"EDGELECT_R2":true,"EDGELECT_BUCKET":""}"#), Ok(true));
        let endpoint =
            r#"{"EDGELECT_R2":true,"EDGELECT_ENDPOINT":"https://a","EDGELECT_BUCKET":"b"}"#;
        assert_eq!(binds(endpoint), Ok(false));
        assert_eq!(binds(r#"{"EDGELECT_BUCKET":"b"}"#), Ok(false));
        for var in ["EDGELECT_BUCKET", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"] {
            assert_eq!(refused(&format!("{{\"EDGELECT_R2\":true,\"{var}\":\"b\"}}")), var);
        }
        for value in ["null", "false", "\"edgelect\"", "1"] {
            assert_eq!(refused(&format!("{{\"EDGELECT_R2\":{value}}}")), "EDGELECT_R2");
        }
        assert_eq!(refused("{}"), "EDGELECT_BUCKET");
    }
}
