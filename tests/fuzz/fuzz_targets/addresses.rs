//! Any addresses: in the lines of the input stand a peer's address, the own one, and of a bucket
//! the endpoint, the name, the region, the key and whether the bucket is in the path.
#![no_main]

use edgelect::store::s3::S3Config;
use libfuzzer_sys::fuzz_target;
use rules::addresses;

fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    addresses::peers(line(), line());
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    addresses::bucket(&S3Config {
        endpoint: given(line()),
        bucket: line().to_owned(),
        region: given(line()),
        key: line().to_owned(),
        path_style: line().parse().ok(),
        ..S3Config::default()
    });
});
