//! Configuration from variables: `EDGELECT_*` first, AWS's own names where they mean the same.

mod store;

use crate::config::{Config, ConfigError, Settings};
use crate::json::{self, Object};
use crate::text::{first, nearest, quoted, unknown, visible};

pub use store::{
    BucketVars, SecretVars, StoreName, bucket, endpoint, format, only_s3, place, program_store,
    region, secrets, store_name, table, zone,
};
#[cfg(all(target_arch = "wasm32", feature = "js"))]
pub(crate) use store::{FORMATS, check_one_line};
use store::{REGION, S3_ENDPOINT};

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Flag,
    Numbers,
    Texts,
}

/// Each variable, the option that it sets, and how its text is read.
const VARS: [(&str, &str, Kind); 25] = [
    ("EDGELECT_LOCKFILE_PATH", "lockfilePath", Kind::Text),
    ("EDGELECT_SERVER_ID", "serverId", Kind::Text),
    ("EDGELECT_SERVER_ADDR", "serverAddr", Kind::Text),
    ("EDGELECT_FREQUENT_INTERVAL", "frequentInterval", Kind::Number),
    ("EDGELECT_INFREQUENT_INTERVAL", "infrequentInterval", Kind::Number),
    ("EDGELECT_LEADER_TIMEOUT", "leaderTimeout", Kind::Number),
    ("EDGELECT_PEER_MODE", "peerMode", Kind::Flag),
    ("EDGELECT_PEER_TIMEOUT", "peerTimeout", Kind::Number),
    ("EDGELECT_PEER_SECRET", "peerSecret", Kind::Texts),
    ("EDGELECT_INSECURE_PEERS", "insecurePeers", Kind::Flag),
    ("EDGELECT_PEER_HOSTS", "peerHosts", Kind::Texts),
    ("EDGELECT_PEER_TRUST", "peerTrust", Kind::Text),
    ("EDGELECT_PEER_WAIT", "peerWait", Kind::Number),
    ("EDGELECT_MAX_PEERS", "maxPeers", Kind::Number),
    ("EDGELECT_HEARTBEAT", "heartbeat", Kind::Number),
    ("EDGELECT_SUSPECT_AFTER", "suspectAfter", Kind::Number),
    ("EDGELECT_FOLLOW", "follow", Kind::Text),
    ("EDGELECT_MARGIN", "margin", Kind::Number),
    ("EDGELECT_STORE_SKEW", "storeSkew", Kind::Number),
    ("EDGELECT_MAX_LEASE", "maxLease", Kind::Number),
    ("EDGELECT_REQUEST_TIMEOUT", "requestTimeout", Kind::Number),
    ("EDGELECT_RETRY_DELAYS", "retryDelays", Kind::Numbers),
    ("EDGELECT_TERM_FLOOR", "termFloor", Kind::Number),
    ("EDGELECT_FAIL_FAST", "failFast", Kind::Flag),
    ("EDGELECT_SUSTAIN", "sustain", Kind::Number),
];

/// The variables that name a store and its secrets.
const STORE_VARS: [&str; 13] = [
    STORE,
    "EDGELECT_TABLE",
    "EDGELECT_HOSTED_ZONE_ID",
    "EDGELECT_RECORD_PREFIX",
    "EDGELECT_DOMAIN_NAME",
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
const AWS_VARS: [&str; 9] = [
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_ROUTE_53",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
];

/// How the record is written down, whichever store keeps it.
const FORMAT: &str = "EDGELECT_FORMAT";

/// Which store it is.
const STORE: &str = "EDGELECT_STORE";

/// What the names of this crate's own variables begin with.
const BEGIN: &str = "EDGELECT_";

/// The binding to an R2 bucket.
pub(crate) const R2: &str = "EDGELECT_R2";

/// The binding to the Worker of the job.
pub(crate) const JOB: &str = "JOB";

/// What a request for the Worker's status has to show.
const STATUS_TOKEN: &str = "EDGELECT_STATUS_TOKEN";

/// Who may see the Worker's page.
const PAGE: &str = "EDGELECT_PAGE";

/// How the lines of a Worker's log are written.
const LOG: &str = "EDGELECT_LOG";

/// The shortest of these, in bytes: nobody guesses one.
const MIN_TOKEN_BYTES: usize = 16;

/// What the deployed Worker knows besides: its store, its groups and its job.
const WORKER_VARS: [&str; 15] = [
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
    STATUS_TOKEN,
    PAGE,
    LOG,
];

/// What a request for the Worker's status has to show as `Authorization: Bearer TOKEN`; none where nobody may ask.
///
/// # Errors
/// It is too short.
pub fn status_token(get: impl Fn(&str) -> Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(token) = get(STATUS_TOKEN).filter(|token| !token.is_empty()) else { return Ok(None) };
    if token.len() < MIN_TOKEN_BYTES {
        let rule = "must have at least 16 characters, such as `openssl rand -hex 16` prints";
        return Err(ConfigError::new(STATUS_TOKEN, "(not shown)", rule));
    }
    Ok(Some(token))
}

/// Who may see the status and the metrics of a group of a Worker, and whether it has a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether a page for people is at `/`.
    pub page: bool,
    /// What a request has to show; `None` where anybody may see it, or nobody.
    pub token: Option<String>,
    /// Whether anybody may see it.
    pub public: bool,
}

/// Who may see what, by `EDGELECT_PAGE` and `EDGELECT_STATUS_TOKEN`.
///
/// # Errors
/// One of them can't be used, or the page needs a token and there is none.
pub fn access(get: impl Fn(&str) -> Option<String>) -> Result<Access, ConfigError> {
    let token = status_token(&get)?;
    let page = get(PAGE).filter(|page| !page.is_empty()).unwrap_or_else(|| "off".to_owned());
    match page.as_str() {
        "off" => Ok(Access { page: false, token, public: false }),
        "public" => Ok(Access { page: true, token: None, public: true }),
        "token" if token.is_some() => Ok(Access { page: true, token, public: false }),
        "token" => {
            let rule = "EDGELECT_PAGE = \"token\" needs it";
            Err(ConfigError::new(STATUS_TOKEN, "(not set)", rule))
        }
        _ => Err(ConfigError::new(PAGE, quoted(first(&page, 60)), "must be off, token or public")),
    }
}

/// Whether the lines of a Worker's log are JSON, by `EDGELECT_LOG`.
///
/// # Errors
/// It is neither `text` nor `json`.
pub fn log_is_json(get: impl Fn(&str) -> Option<String>) -> Result<bool, ConfigError> {
    let given = get(LOG).unwrap_or_default();
    match given.as_str() {
        "" | "text" => Ok(false),
        "json" => Ok(true),
        _ => Err(ConfigError::new(LOG, quoted(first(&given, 60)), "must be text or json")),
    }
}

/// Each variable of the election's settings and the option that it sets, for help texts.
pub fn options() -> impl Iterator<Item = (&'static str, &'static str)> {
    VARS.iter().map(|(var, option, _)| (*var, *option))
}

/// What a Worker's `env` has by one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A text.
    Text(String),
    /// A number of wrangler.toml, as its text.
    Number(String),
    /// A flag of wrangler.toml, as its text.
    Flag(String),
    /// The binding of an R2 bucket.
    Bucket,
    /// The binding of another Worker.
    Service,
    /// Whatever else.
    Other,
}

impl Given {
    /// Its text, if it has one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Number(text) | Self::Flag(text) => Some(text),
            Self::Bucket | Self::Service | Self::Other => None,
        }
    }

    /// Whether it counts as set: an empty text does not.
    pub fn is_set(&self) -> bool {
        self.text() != Some("")
    }

    /// What an error shows of it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => quoted(first(text, 60)),
            Self::Number(_) => "(number)".to_owned(),
            Self::Flag(_) => "(boolean)".to_owned(),
            Self::Bucket | Self::Service | Self::Other => "(object)".to_owned(),
        }
    }
}

/// Refuses what the deployed Worker could not mean anything by: a name that nobody reads, and a value of the wrong kind.
///
/// # Errors
/// The variable, by its name.
pub fn check_given<'a>(
    variables: impl Iterator<Item = (&'a str, &'a Given)>,
) -> Result<(), ConfigError> {
    for (name, given) in variables {
        let known = names().any(|var| var == name);
        check_name(name)?;
        if name == JOB && given.is_set() && *given != Given::Service {
            let rule = "must be a service binding, or not set";
            return Err(ConfigError::new(name, "(no binding)", rule));
        }
        if name == R2 && given.is_set() && *given != Given::Bucket {
            let rule = "must be the binding of an R2 bucket: [[r2_buckets]] in wrangler.toml";
            return Err(ConfigError::new(name, "(no bucket)", rule));
        }
        let is_text = known && name != R2 || AWS_VARS.contains(&name);
        if is_text && given.text().is_none() {
            let rule = "must be a text, a number or a flag";
            return Err(ConfigError::new(name, "(no text)", rule));
        }
    }
    Ok(())
}

/// All variables of this crate's own.
fn names() -> impl Iterator<Item = &'static str> {
    VARS.iter().map(|(var, ..)| *var).chain(STORE_VARS).chain(WORKER_VARS)
}

/// What the command line tells the command that it runs, which may be a program that reads variables itself.
const TOLD_VARS: [&str; 2] = ["EDGELECT_TOKEN", "EDGELECT_SLOT"];

fn check_name(name: &str) -> Result<(), ConfigError> {
    let Some(own) = name.strip_prefix(BEGIN) else { return Ok(()) };
    if names().chain(TOLD_VARS).any(|var| var == name) {
        return Ok(());
    }
    // Without what all names begin with: it would make any two of them alike.
    let meant = nearest(own, names().filter_map(|var| var.strip_prefix(BEGIN)));
    let meant = meant.map(|own| [BEGIN, own].concat());
    let rule = unknown("variable", meant.as_deref(), "docs/options.md lists them");
    Err(ConfigError::new(&visible(first(name, 60)), "(not shown)", rule))
}

/// Refuses a variable of a program, or of somebody's own Worker, whose name begins with `EDGELECT_` and that nobody reads: it is
/// a misspelt one. What Kubernetes sets for a Service of that name is left alone.
///
/// # Errors
/// The variable, by its name.
pub fn check_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), ConfigError> {
    names.into_iter().filter(|name| !is_service_link(name)).try_for_each(check_name)
}

/// Whether Kubernetes gives every container of a namespace such a variable for a Service: `EDGELECT_SERVICE_HOST`,
/// `EDGELECT_PORT_80_TCP_ADDR` (<https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>).
fn is_service_link(name: &str) -> bool {
    let ends = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT"].iter().any(|end| name.ends_with(end));
    let names_port =
        ["_SERVICE_PORT_", "_TCP", "_UDP", "_SCTP"].iter().any(|part| name.contains(part));
    ends || names_port
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

/// Checks settings that came from variables.
///
/// # Errors
/// The rule that is broken, by the variable's name.
pub fn config(settings: &Settings) -> Result<Config, ConfigError> {
    Config::new(settings).map_err(by_variable)
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
        Kind::Texts => {
            let texts: Vec<&str> = text.split(',').map(str::trim).collect();
            (Some(json::of(&texts)), "")
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
    by_set_variable(|_| None, error)
}

/// As [`by_variable`]; of several variables for one setting, by the one that is set.
pub fn by_set_variable(get: impl Fn(&str) -> Option<String>, error: ConfigError) -> ConfigError {
    let variable = variable_of(get, &error.field).map(str::to_owned);
    let field = variable.unwrap_or(error.field);
    let shown = first(&error.value, 60);
    let value = if shown == error.value { error.value } else { format!("{shown}…") };
    ConfigError { field, value, rule: with_variables(&error.rule) }
}

/// The variable of an option of an elector or a storage: of several the one that is set.
pub fn variable_of(get: impl Fn(&str) -> Option<String>, option: &str) -> Option<&'static str> {
    let names: &[&'static str] = match option {
        "endpoint" => &S3_ENDPOINT,
        "bucket" => &["EDGELECT_BUCKET"],
        "region" => &REGION,
        "pathStyle" => &["EDGELECT_PATH_STYLE"],
        "table" => &["EDGELECT_TABLE"],
        "hostedZoneId" => &["EDGELECT_HOSTED_ZONE_ID"],
        "recordPrefix" => &["EDGELECT_RECORD_PREFIX"],
        "domainName" => &["EDGELECT_DOMAIN_NAME"],
        _ => return VARS.iter().find(|(_, known, _)| *known == option).map(|(var, ..)| *var),
    };
    let set = names.iter().find(|name| first_set(&get, &[name]).is_some());
    set.or(names.first()).copied()
}

/// A rule in which each option is named by its variable.
fn with_variables(rule: &str) -> String {
    let is_letter = |one: char| one.is_ascii_alphanumeric();
    let mut told = String::new();
    let mut rest = rule;
    while let Some(begin) = rest.find(is_letter) {
        let (between, word) = rest.split_at(begin);
        let (word, after) = word.split_at(word.find(|one| !is_letter(one)).unwrap_or(word.len()));
        let variable = VARS.iter().find(|(_, option, _)| *option == word).map(|(var, ..)| *var);
        told.push_str(between);
        told.push_str(variable.unwrap_or(word));
        rest = after;
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn of<'a>(
        vars: &'a [(&'a str, &'a str)],
    ) -> impl Fn(&str) -> Option<String> + Copy + 'a {
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
        assert_eq!(only_s3(of(&[("EDGELECT_STORE", "s3")])), Ok(()));
        assert_eq!(only_s3(of(&[("EDGELECT_STORE", "r2")])).unwrap_err().field, "EDGELECT_STORE");
    }

    #[test]
    fn a_name_that_nobody_reads_and_a_value_of_the_wrong_kind_are_refused_unseen() {
        let check = |name: &str, given: Given| check_given([(name, &given)].into_iter());
        let text = |text: &str| Given::Text(text.to_owned());
        for (name, given) in [
            ("EDGELECT_SUSTAIN", Given::Number("1".to_owned())),
            ("EDGELECT_PEER_MODE", Given::Flag("true".to_owned())),
            ("EDGELECT_STORE", text("s3")),
            ("EDGELECT_R2", Given::Bucket),
            ("EDGELECT_R2", text("")),
            ("JOB", Given::Service),
            ("AWS_PROFILE", Given::Other),
        ] {
            assert_eq!(check(name, given), Ok(()), "{name}");
        }
        for (name, given) in [
            ("EDGELECT_SUSTIAN", text("hidden")),
            ("EDGELECT_SUSTAIN", Given::Other),
            ("EDGELECT_JOB_SECRET", Given::Service),
            ("EDGELECT_R2", text("hidden")),
            ("EDGELECT_R2", Given::Service),
            ("JOB", Given::Bucket),
            ("AWS_SESSION_TOKEN", Given::Other),
        ] {
            let error = check(name, given).unwrap_err();
            assert_eq!(error.field, name);
            assert!(!error.message().contains("hidden"));
        }
    }

    #[test]
    fn a_misspelt_variable_of_a_program_is_told_by_what_was_meant() {
        for (name, rule) in [
            ("EDGELECT_LEADER_TIMOUT", "did you mean EDGELECT_LEADER_TIMEOUT? docs/options.md"),
            ("EDGELECT_LEADERTIMEOUT", "did you mean EDGELECT_LEADER_TIMEOUT?"),
            ("EDGELECT_SUSTAIN__MAIL", "no such variable; docs/options.md lists them"),
            ("EDGELECT_FOO", "no such variable; docs/options.md lists them"),
        ] {
            let error = check_names(["PATH", name]).unwrap_err();
            assert_eq!((error.field.as_str(), error.value.as_str()), (name, "(not shown)"));
            assert!(error.rule.contains(rule), "{error}");
        }
        // The last are what Kubernetes sets for a Service of this name.
        let fine = ["EDGELECT_LEADER_TIMEOUT", "EDGELECT_STORE", "EDGELECT_TOKEN", "MY_EDGELECT_X"];
        let links = ["EDGELECT_PORT", "EDGELECT_SERVICE_HOST", "EDGELECT_UI_PORT_80_TCP_ADDR"];
        assert_eq!(check_names(fine.into_iter().chain(links)), Ok(()));
    }

    #[test]
    fn an_error_names_the_variable_that_was_set() {
        let vars =
            [("EDGELECT_REGION", ""), ("AWS_DEFAULT_REGION", "x"), ("AWS_ENDPOINT_URL", "y")];
        for (option, variable) in [
            ("endpoint", Some("AWS_ENDPOINT_URL")),
            ("region", Some("AWS_DEFAULT_REGION")),
            ("bucket", Some("EDGELECT_BUCKET")),
            ("leaderTimeout", Some("EDGELECT_LEADER_TIMEOUT")),
            ("key", None),
        ] {
            assert_eq!(variable_of(of(&vars), option), variable, "{option}");
        }
        assert_eq!(variable_of(of(&[]), "region"), Some("EDGELECT_REGION"));
    }

    #[test]
    fn a_rule_between_settings_names_their_variables() {
        let vars = [("EDGELECT_LOCKFILE_PATH", "a"), ("EDGELECT_FREQUENT_INTERVAL", "13000")];
        let error = config(&settings(of(&vars)).unwrap()).unwrap_err();
        let rule = "EDGELECT_FREQUENT_INTERVAL = 13000: S8: EDGELECT_FREQUENT_INTERVAL (13000) + 4 * \
                    EDGELECT_REQUEST_TIMEOUT + EDGELECT_RETRY_DELAYS (1100) must not exceed \
                    EDGELECT_LEADER_TIMEOUT - EDGELECT_MARGIN (13500), so that three attempts and a \
                    read-back fit before the fence; lower EDGELECT_FREQUENT_INTERVAL or raise \
                    EDGELECT_LEADER_TIMEOUT";
        assert_eq!(error.message(), rule);
    }
}
