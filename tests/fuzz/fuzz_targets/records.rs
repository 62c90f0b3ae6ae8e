//! Any body, read as a record. The input is the body.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| rules::records::body(body));
