//! The settings and the store of a command, as flags, variables and profiles name them.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use edgelect::choice::AnyStore;
use edgelect::look::{Due, look};
use edgelect::store::memory::Memory;
use edgelect::store::{Fault, FaultKind};
use edgelect::{Config, ConfigError, Credentials, Native, native, vars};
use serde_json::Value;

use super::command::{Flags, code, settings};
use super::{profile, tell};

/// The keys to a store, which have no flags.
const SECRETS: [&str; 3] =
    ["EDGELECT_ACCESS_KEY_ID", "EDGELECT_SECRET_ACCESS_KEY", "EDGELECT_SESSION_TOKEN"];
const PATH: &str = "EDGELECT_LOCKFILE_PATH";
const KEYS: [&str; 4] = [
    "EDGELECT_ACCESS_KEY_ID",
    "EDGELECT_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
];

/// Where a group is.
pub type Place = AnyStore<Native, Credentials, Memory>;

/// Why a command has failed.
pub enum Failure {
    /// What it was told is wrong.
    Settings(String),
    /// The store failed, or refused.
    Store(Fault),
    /// The machine failed.
    Machine(String),
}

/// Whether a store has refused, and will go on refusing: what is wrong is here.
pub fn is_refusal(fault: &Fault) -> bool {
    let passing = [408, 409, 412, 429];
    let refuses = |status| (400..500).contains(&status) && !passing.contains(&status);
    fault.kind != FaultKind::Unavailable && fault.status.is_some_and(refuses)
}

impl Failure {
    /// What it says.
    pub fn text(&self) -> &str {
        match self {
            Self::Settings(text) | Self::Machine(text) => text,
            Self::Store(fault) => &fault.message,
        }
    }

    /// Its exit code.
    pub fn code(&self) -> i32 {
        match self {
            Self::Settings(_) => code("settings"),
            Self::Store(fault) if is_refusal(fault) => code("settings"),
            Self::Store(_) | Self::Machine(_) => code("failed"),
        }
    }

    /// Tells it on standard error; gives the exit code.
    pub fn tell(self, command: &str) -> i32 {
        tell::error(self.text());
        if matches!(self, Self::Settings(_)) {
            tell::line(&format!(
                "Set it by a flag or a variable, credentials by a variable: edgelect {command} --help."
            ));
        }
        self.code()
    }
}

/// The variables that a command counts, those included that its flags stand for.
pub struct Variables {
    texts: BTreeMap<String, String>,
    /// The flags that were given, by their variables.
    flags: BTreeMap<&'static str, &'static str>,
}

impl Variables {
    /// Reads flags, variables and a profile; `more` counts where none of them says anything.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(flags: &Flags, more: &[(&str, String)]) -> Result<Self, Failure> {
        let mut found = Self { texts: set(), flags: BTreeMap::new() };
        let before = found.get("EDGELECT_STORE").unwrap_or_else(|| "s3".to_owned());
        let store = flags.get("store").unwrap_or(&before);
        if kind_of(store) != kind_of(&before) {
            let of_places = settings().filter(|flag| flag.of.is_some());
            let of_places = of_places.filter_map(|flag| flag.variable.as_deref());
            for name in of_places.filter(|name| name.starts_with("EDGELECT_")).chain(SECRETS) {
                found.texts.remove(name);
            }
        }
        for flag in settings() {
            let (Some(text), Some(variable)) = (flags.get(&flag.long), &flag.variable) else {
                continue;
            };
            let means = |of: &Vec<String>| of.iter().any(|one| one == store);
            if !flag.of.as_ref().is_none_or(means) {
                let known = settings().filter(|flag| flag.of.as_ref().is_none_or(means));
                let known: Vec<String> = known.map(|flag| format!("--{}", flag.long)).collect();
                let (long, known) = (&flag.long, known.join(", "));
                let text =
                    format!("--{long}: means nothing with --store {store}, which has {known}");
                return Err(Failure::Settings(text));
            }
            found.flags.insert(variable, &flag.long);
            found.texts.insert(variable.clone(), text.to_owned());
        }
        found.add_profile()?;
        let prefix = (store == "route53").then(|| ("EDGELECT_RECORD_PREFIX", "lock".to_owned()));
        let path = (PATH, "leader.json".to_owned());
        for (name, text) in more.iter().cloned().chain([path]).chain(prefix) {
            found.texts.entry(name.to_owned()).or_insert(text);
        }
        Ok(found)
    }

    /// The same for another group in the store.
    pub fn with_group(&self, group: &str) -> Self {
        let mut texts = self.texts.clone();
        texts.insert(PATH.to_owned(), group.to_owned());
        Self { texts, flags: self.flags.clone() }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.texts.get(name).cloned()
    }

    fn add_profile(&mut self) -> Result<(), Failure> {
        if self.flags.contains_key("AWS_PROFILE") {
            // A flag wins over variables: an operator who names a profile means its account.
            for name in SECRETS.iter().chain(&KEYS).chain(&["AWS_SESSION_TOKEN"]) {
                self.texts.remove(*name);
            }
        } else if KEYS.iter().any(|name| self.texts.contains_key(*name)) {
            return Ok(());
        }
        let named = self.get("AWS_PROFILE");
        match profile::read(named.as_deref().unwrap_or("default"), |name| self.get(name)) {
            Ok(found) => {
                for (name, text) in found {
                    self.texts.entry(name.to_owned()).or_insert(text);
                }
                Ok(())
            }
            // Without a profile the missing variable is what to tell.
            Err(why) => match named {
                Some(name) => Err(Failure::Settings(format!("profile {name:?}: {why}"))),
                None => Ok(()),
            },
        }
    }

    /// The settings of the elector.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn config(&self) -> Result<Config, Failure> {
        vars::check_names(self.texts.keys().map(String::as_str))
            .and_then(|()| vars::settings(|name| self.get(name)))
            .and_then(|settings| vars::config(&settings))
            .map_err(|error| self.refused(error))
    }

    /// The store of a group.
    ///
    /// # Errors
    /// What is missing or wrong.
    pub fn store(&self, config: &Config, host: Native) -> Result<Place, Failure> {
        let get = |name: &str| self.get(name);
        let unbound = || Err(ConfigError::new("EDGELECT_STORE", "r2", "is for Workers"));
        vars::program_store(get)
            .and_then(|name| AnyStore::named(name, get, config, host, unbound))
            .map_err(|error| self.refused(error))
    }

    /// An error by the name that its reader has written: the flag's, or the variable's.
    fn refused(&self, error: ConfigError) -> Failure {
        let flag = self.flags.get(error.field.as_str()).map(|flag| format!("--{flag}"));
        let field = flag.unwrap_or(error.field);
        Failure::Settings(ConfigError { field, ..error }.message())
    }
}

/// The variables of this process that may count. An empty one counts as not set.
fn set() -> BTreeMap<String, String> {
    let ours = |name: &str| name.starts_with("EDGELECT_") || name.starts_with("AWS_");
    std::env::vars_os()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)))
        .filter(|(name, text)| ours(name) && !text.is_empty())
        .collect()
}

/// Stores of one kind are named by the same variables.
fn kind_of(store: &str) -> &str {
    if store == "epochs" { "s3" } else { store }
}

/// The settings and the store of each group that a command shows, with the host that it asks.
///
/// # Errors
/// What is missing or wrong.
pub fn groups(flags: &Flags) -> Result<Vec<(Config, Place)>, Failure> {
    let variables = Variables::new(flags, &[])?;
    let host = host()?;
    let open = |variables: &Variables| {
        let config = variables.config()?;
        let store = variables.store(&config, host.clone())?;
        Ok((config, store))
    };
    match flags.operands.as_slice() {
        [] => Ok(vec![open(&variables)?]),
        groups => groups.iter().map(|group| open(&variables.with_group(text_of(group)?))).collect(),
    }
}

fn text_of(group: &OsStr) -> Result<&str, Failure> {
    let rule = || format!("{}: the name of a group is UTF-8", group.to_string_lossy());
    group.to_str().ok_or_else(|| Failure::Settings(rule()))
}

/// The same for the one group of a command that writes: somebody has to name it.
///
/// # Errors
/// What is missing or wrong.
pub fn named_group(flags: &Flags) -> Result<(Config, Place, Native), Failure> {
    require_name(flags)?;
    let variables = Variables::new(flags, &[])?;
    let (config, host) = (variables.config()?, host()?);
    let store = variables.store(&config, host.clone())?;
    Ok((config, store, host))
}

/// Two jobs that share a default would be one group, and one of them would never run.
///
/// # Errors
/// Nobody has named the group.
pub fn require_name(flags: &Flags) -> Result<(), Failure> {
    if flags.has("lockfile-path") || native::variable(PATH).is_some_and(|path| !path.is_empty()) {
        return Ok(());
    }
    let text = "--lockfile-path = (not set): name the group: a key of its own for each job";
    Err(Failure::Settings(text.to_owned()))
}

/// The host of a command that competes for nothing.
///
/// # Errors
/// The system's certificates cannot be loaded.
pub fn host() -> Result<Native, Failure> {
    Native::new().map(Native::quiet).map_err(Failure::Machine)
}

/// What one read of the stored record shows.
///
/// # Errors
/// The store did not answer, or refused.
pub async fn shown(
    config: &Config,
    store: &Place,
    host: &Native,
    due: Option<Due>,
) -> Result<Value, Fault> {
    let told = look(store, host, config, due).await?;
    Ok(serde_json::from_str(&told).expect("a look is JSON"))
}
