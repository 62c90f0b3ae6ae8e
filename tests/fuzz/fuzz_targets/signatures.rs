//! Any request, signed twice. The lines of the input are access key id, secret, session token,
//! region, service and time in milliseconds; then method and address with a space between, headers,
//! an empty line, the body.
#![no_main]

use edgelect::request;
use edgelect::sigv4::Credentials;
use libfuzzer_sys::fuzz_target;
use rules::signatures::{self, Signer};

fuzz_target!(|text: &str| {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let credentials = Credentials {
        access_key_id: line().to_owned(),
        secret_access_key: line().to_owned(),
        session_token: Some(line().to_owned()).filter(|token| !token.is_empty()),
    };
    let (region, service) = (line().to_owned(), line().to_owned());
    let wall_ms = line().parse().unwrap_or(0);
    let (method, url) = line().split_once(' ').unwrap_or_default();
    let headers: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let Ok(method) = method.parse() else { return };
    let Ok(request) = request::new(method, url, &headers, body.into()) else { return };
    let signer = Signer { credentials, region, service, wall_ms };
    let next_day = Signer { wall_ms: wall_ms.saturating_add(86_400_000), ..signer.clone() };
    signatures::request(&request, &[signer.clone(), next_day, signer]);
});
