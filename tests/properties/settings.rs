//! Settings: any options, any variables.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use edgelect::config::{HostClock, PeerSettings};
use edgelect::lease::MAX_TERM;
use edgelect::{Config, Follow, Settings, vars};

use super::draw;
use super::hold::{drew, hold, saw};
use super::rules::settings;

const REGRESSIONS: &str = "tests/properties/regressions/settings.txt";

/// Settings of which a good part keeps the rules.
fn good() -> impl Strategy<Value = Settings> {
    let ms = |longest: u64| prop::option::of(0..longest);
    let times = (prop::option::of(900..60_000_u64), ms(4_000), ms(60_000), ms(4_000), ms(6_000));
    let more = (ms(10_000), ms(90_000), ms(3_000), ms(900_000));
    let names = ("[a-z]{1,3}(/[a-zä ]{1,4}){0,2}", prop::option::of("[a-z\u{202e}\"]{0,6}"));
    let addr = prop::option::of("(host|10\\.0\\.0\\.1|\\[::1\\])(:[0-9]{2})?");
    let delays = prop::option::weighted(0.2, [1..500_u64, 1..2_000_u64]);
    let follow = prop::option::of(select(vec![Follow::Tight, Follow::Balanced, Follow::Frugal]));
    let others =
        (any::<[Option<bool>; 2]>(), prop::option::weighted(0.2, 0..=2 * MAX_TERM), delays, follow);
    (times, more, names, addr, others).prop_map(|(times, more, names, server_addr, others)| {
        Settings {
            lockfile_path: Some(names.0),
            server_id: names.1,
            server_addr,
            leader_timeout_ms: times.0,
            frequent_interval_ms: times.1,
            infrequent_interval_ms: times.2,
            peer_timeout_ms: times.3,
            margin_ms: times.4,
            store_skew_ms: more.0,
            max_lease_ms: more.1,
            request_timeout_ms: more.2,
            sustain_ms: more.3,
            peer_mode: others.0[0],
            peers: PeerSettings::default(),
            fail_fast: others.0[1],
            term_floor: others.1,
            retry_delays_ms: others.2,
            follow: others.3,
            clock: HostClock::Two,
        }
    })
}

#[test]
fn settings_that_are_accepted_keep_the_rules_and_show_themselves() {
    hold(REGRESSIONS, 10_000, good(), |settings| {
        let config = Config::new(&settings);
        saw("accepted", config.is_ok());
        config.iter().for_each(settings::checked);
    });
    drew(["accepted"], 200);
}

fn option() -> impl Strategy<Value = (String, String)> {
    let names: Vec<_> = vars::options().map(|(_, option)| option.to_owned()).collect();
    prop_oneof![
        9 => (select(names), draw::value()),
        1 => (draw::text(12), draw::value()),
    ]
}

#[test]
fn any_options_are_accepted_or_refused_by_name() {
    hold(REGRESSIONS, 4_000, vec(option(), 0..6), |mut options| {
        options.insert(0, ("lockfilePath".to_owned(), "\"a/b\"".to_owned()));
        settings::options(draw::object(options).as_bytes());
    });
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
