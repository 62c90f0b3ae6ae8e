//! Any settings. The input is a JSON object of options, or lines of `NAME=TEXT`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::settings;

fuzz_target!(|text: &str| {
    if text.starts_with('{') {
        settings::options(text.as_bytes());
        return;
    }
    let variables = text.split('\n').filter_map(|line| line.split_once('='));
    let variables: Vec<_> =
        variables.map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
    settings::variables(&variables);
});
