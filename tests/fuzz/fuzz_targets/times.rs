//! Any text, read as a time. The input is the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // Each target holds some of the rules.
#[path = "../../properties/rules/mod.rs"]
mod rules;

fuzz_target!(|text: &str| rules::times::text(text));
