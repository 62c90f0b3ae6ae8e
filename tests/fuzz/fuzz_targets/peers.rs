//! Any answer of a peer to a member of the group `jobs`. The input is the status as text, a space
//! and the body.
#![no_main]

use edgelect::lease::{self, Reading};
use libfuzzer_sys::fuzz_target;
use rules::peers;

const GROUP: &str = "jobs";

fuzz_target!(|input: &[u8]| {
    let space = input.iter().position(|byte| *byte == b' ').unwrap_or(0);
    let (status, body) = input.split_at(space);
    let status = std::str::from_utf8(status).ok().and_then(|text| text.parse().ok());
    let body = &body[body.len().min(1)..];
    peers::judged(status.unwrap_or(200), body, GROUP);
    if let Reading::Lease(lease) = lease::read(body) {
        peers::answered(&lease, GROUP);
    }
});
