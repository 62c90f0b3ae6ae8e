//! Any text, read as a JSON object. The input is the text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| rules::objects::bytes(text));
