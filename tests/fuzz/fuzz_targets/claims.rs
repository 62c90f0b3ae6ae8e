//! Any bodies that lie in the bucket one after the other while a member watches, with a line of
//! four equal signs between them, each for five leases of the member.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::claims;

const LEASE_MS: u64 = 15_000;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let bodies = text.split("\n====\n").take(4);
    let bodies: Vec<_> = bodies.map(|body| (5 * LEASE_MS, body.as_bytes().to_vec())).collect();
    claims::bodies(&bodies, LEASE_MS);
});
