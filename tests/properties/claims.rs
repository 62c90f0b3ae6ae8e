//! Elections that watch a bucket in which anything may lie.

use proptest::collection::vec;
use proptest::prelude::*;

use super::draw::{self, Bytes};
use super::hold::hold;
use super::rules::claims;

const REGRESSIONS: &str = "tests/properties/regressions/claims.txt";

#[test]
fn s7_nothing_in_the_bucket_makes_an_earlier_claim() {
    let lying = (0..40_000_u64, draw::body());
    let parked = (0..40_000_u64, "(me|you)", any::<bool>()).prop_map(|(for_ms, id, parked)| {
        let body = format!(r#"{{"leaderID":"{id}","leaseMs":20000,"parked":{parked}}}"#);
        (for_ms, Bytes(body.into_bytes()))
    });
    let body = prop_oneof![9 => lying, 1 => parked];
    hold(REGRESSIONS, 2_000, (vec(body, 1..4), 2_000..60_000_u64), |(bodies, lease_ms)| {
        let bodies: Vec<_> = bodies.into_iter().map(|(for_ms, body)| (for_ms, body.0)).collect();
        claims::bodies(&bodies, lease_ms);
    });
}
