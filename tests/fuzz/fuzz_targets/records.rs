//! Any body, read as a record. The input is the body.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // Each target holds some of the rules.
#[path = "../../properties/rules/mod.rs"]
mod rules;

fuzz_target!(|body: &[u8]| rules::records::body(body));
