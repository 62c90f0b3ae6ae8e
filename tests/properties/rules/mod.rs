//! What must hold of any input, however it came to be. The properties draw inputs for these rules,
//! the targets of `tests/fuzz` let libFuzzer look for them. Crates `time`, `httpdate`, `serde_json`
//! and `url` say what is right wherever they have an opinion.

use edgelect::sigv4::Credentials;

pub mod addresses;
pub mod answers;
pub mod peers;
pub mod records;
pub mod settings;

fn credentials() -> Credentials {
    Credentials {
        access_key_id: "AKIAEXAMPLE".to_owned(),
        secret_access_key: "the-secret-of-it".to_owned(),
        session_token: Some("the-token-of-it".to_owned()),
    }
}
