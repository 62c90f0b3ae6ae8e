//! Settings: any options, any variables.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::json::{self, Object};
use edgelect::lease::MAX_TERM;
use edgelect::{Config, Settings, vars};

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::settings;

const REGRESSIONS: &str = "tests/properties/regressions/settings.txt";

/// An option, many of them such that a good part of the settings keeps the rules.
fn option() -> impl Strategy<Value = (String, String)> {
    let names: Vec<_> = vars::options().map(|(_, option)| option.to_owned()).collect();
    let times = "leaderTimeout|(inf|f)requentInterval|(peer|request)Timeout|margin|storeSkew|maxLease|sustain";
    let text = prop_oneof![
        ("lockfilePath", "[a-z]{1,3}(/[a-zä ]{1,4}){0,2}"),
        ("serverId", "[a-z\u{202e}\"]{0,6}"),
        ("serverAddr", "(host|10\\.0\\.0\\.1|\\[::1\\])(:[0-9]{2})?"),
        ("follow", "tight|balanced|frugal"),
    ];
    prop_oneof![
        4 => (times, "[1-9][0-9]{1,4}"),
        1 => ("peerMode|failFast", "true|false"),
        1 => ("termFloor", (0..=2 * MAX_TERM).prop_map(|term| term.to_string())),
        1 => ("retryDelays", "\\[[1-9][0-9]{0,2},[1-9][0-9]{0,3}\\]"),
        2 => text.prop_map(|(name, text)| (name, json::of(&text))),
        2 => (select(names), draw::value()),
        1 => (draw::text(12), draw::value()),
    ]
}

#[test]
fn any_options_keep_the_rules_and_show_themselves_or_are_refused_by_name() {
    hold(REGRESSIONS, 14_000, vec(option(), 0..6), |mut options| {
        options.insert(0, ("lockfilePath".to_owned(), "\"a/b\"".to_owned()));
        let options = draw::object(options);
        let read = Object::read(options.as_bytes()).map(|options| Settings::from_json(&options));
        let config = read.and_then(Result::ok).map(|settings| Config::new(&settings));
        saw("accepted", config.is_some_and(|config| config.is_ok()));
        settings::options(options.as_bytes());
    });
    drew(["accepted"], 1_000);
}

#[test]
fn any_variables_are_accepted_or_refused_by_name_and_no_secret_is_shown() {
    let mut names: Vec<_> = vars::options().map(|(variable, _)| variable.to_owned()).collect();
    let others = "EDGELECT_ENDPOINT EDGELECT_BUCKET EDGELECT_REGION EDGELECT_PATH_STYLE \
                  EDGELECT_ACCESS_KEY_ID EDGELECT_SECRET_ACCESS_KEY EDGELECT_SESSION_TOKEN \
                  AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY";
    names.extend(others.split(' ').map(str::to_owned));
    let text = prop_oneof![
        4 => "[0-9]{1,6}",
        1 => "[0-9]{1,4}[,; ]{1,2}[0-9]{1,4}",
        2 => draw::one_of(["true", "false", "1", "tight", "a/b", "host:80", ""]),
        2 => draw::text(24),
    ];
    hold(REGRESSIONS, 4_000, vec((select(names), text), 0..8), |mut variables| {
        variables.push(("EDGELECT_LOCKFILE_PATH".to_owned(), "a/b".to_owned()));
        settings::variables(&variables);
    });
}
