//! Any text, read as a time. The input is the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| rules::times::text(text));
