//! No settings make a config that breaks the rules of section 2 of the design, and what a config
//! shows makes the same config again.

use edgelect::config::{ConfigError, Peers};
use edgelect::json::{self, Object};
use edgelect::lease::{MAX_LEASE_MS, MAX_TERM};
use edgelect::proof::Secrets;
use edgelect::{Config, Settings, vars};

/// Any options of `new Elector`, as JSON.
pub fn options(text: &[u8]) {
    let Some(object) = Object::read(text) else { return };
    match Settings::from_json(&object).and_then(|settings| Config::new(&settings)) {
        Ok(config) => checked(&config),
        Err(error) => is_told(&error, text.len()),
    }
}

/// A config that was accepted.
pub fn checked(config: &Config) {
    let lease_ms = config.leader_timeout_ms;
    assert!((1_000..=MAX_LEASE_MS).contains(&lease_ms));
    assert!((10..=lease_ms / 2).contains(&config.margin_ms));
    assert!((lease_ms..=MAX_LEASE_MS).contains(&config.max_lease_ms), "S7: the grace");
    assert!(config.grace_ms(0) >= lease_ms.max(config.max_lease_ms));
    let worst_ms = config.frequent_interval_ms + config.attempts_ms();
    assert!(worst_ms <= lease_ms - config.margin_ms, "S8: three attempts and a read-back fit");
    assert!(config.request_timeout_ms >= 50 && config.frequent_interval_ms >= 50);
    assert!(config.term_floor <= MAX_TERM / 2, "S2: terms need room to grow");
    assert!(config.sustain_ms.is_none_or(|ms| ms > lease_ms && ms <= 900_000));
    shows_itself(config);
}

fn shows_itself(config: &Config) {
    let shown = config.to_json();
    let mut object = Object::read(shown.as_bytes()).expect("a config shows a JSON object");
    // No `serverId` is shown as the empty text that none may be set to.
    if config.server_id.is_empty() {
        assert_eq!(object.remove("serverId").as_deref(), Some("\"\""));
    }
    // A secret is never shown.
    let peers = Peers { secrets: Secrets::default(), ..config.peers.clone() };
    let config = &Config { peers, ..config.clone() };
    let again = Settings::from_json(&object).and_then(|settings| Config::new(&settings));
    assert_eq!(again.as_ref(), Ok(config), "{shown}");
    let by_variable = |name: &str| {
        let (_, option) = vars::options().find(|(variable, _)| *variable == name)?;
        object.get(option).filter(|json| !json::is_null(json)).map(|json| match json::text(json) {
            Some(text) => text,
            None => match json::texts(json) {
                Some(texts) => texts.join(","),
                None => json.trim_matches(['[', ']']).to_owned(),
            },
        })
    };
    let settings = vars::settings(by_variable);
    assert_eq!(settings.and_then(|settings| vars::config(&settings)).as_ref(), Ok(config));
}

/// Any variables, as their names and texts.
pub fn variables(variables: &[(String, String)]) {
    let get = |name: &str| {
        let mut found = variables.iter().filter(|(other, _)| other == name);
        found.next().map(|(_, text)| text.clone())
    };
    let bytes = variables.iter().map(|(_, text)| text.len()).sum();
    match vars::settings(get).and_then(|settings| vars::config(&settings)) {
        Ok(config) => checked(&config),
        Err(error) => {
            is_told(&error, bytes);
            assert!(error.field.starts_with("EDGELECT_"), "{error}: by the variable's name");
        }
    }
    if let Err(error) = vars::bucket(get) {
        is_told(&error, bytes);
        assert!(error.field.starts_with("EDGELECT_"), "{error}: by the variable's name");
    }
    if let Err(error) = vars::secrets(get) {
        is_told(&error, bytes);
        assert!(matches!(&*error.value, "(not set)" | "(not shown)"), "a secret is shown: {error}");
    }
}

/// An error names a rule, has its bounds, and does no harm to a terminal.
fn is_told(error: &ConfigError, input_bytes: usize) {
    assert!(!error.rule.is_empty(), "{error}");
    let message = error.message();
    assert!(message.len() <= 6 * input_bytes + 2_000, "{} bytes", message.len());
    assert!(!message.chars().any(char::is_control), "{message:?}");
}
