//! For `npm run figures -- signature` only: what an elector does before each `fetch`, callable from JavaScript.
//! No build that ships has it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use wasm_bindgen::prelude::*;

use crate::request;
use crate::sigv4::Credentials;
use crate::store::s3::{S3, S3Config};
use crate::store::{Condition, Operation, Record, Version};

/// One lease object and the credentials that its requests are signed with.
#[wasm_bindgen]
pub struct FiguresSigner {
    s3: S3,
    credentials: Credentials,
}

#[wasm_bindgen]
impl FiguresSigner {
    /// The object `key` in `bucket` at `endpoint`, addressed by path, in `us-east-1`.
    #[wasm_bindgen(constructor)]
    pub fn new(
        endpoint: String,
        bucket: String,
        key: String,
        access_key_id: String,
        secret_access_key: String,
    ) -> Result<FiguresSigner, String> {
        let config = S3Config {
            endpoint: Some(endpoint),
            bucket,
            region: Some("us-east-1".to_owned()),
            path_style: Some(true),
            key,
            ..S3Config::default()
        };
        let s3 = S3::new(config).map_err(|error| error.message())?;
        let credentials = Credentials { access_key_id, secret_access_key, session_token: None };
        Ok(Self { s3, credentials })
    }

    /// Signs one request and gives its `authorization`: a conditional write of `body`, or a read where it is
    /// empty. `wall_ms` is milliseconds since the Unix epoch; another day than the last one's makes a new key.
    pub fn sign(&self, body: &[u8], version: &str, wall_ms: f64) -> Result<String, String> {
        let version = Version(version.to_owned());
        let operation = match body {
            [] => Operation::Read { unless: Some(version) },
            body => Operation::Write {
                record: Record::Raw(body.to_vec()),
                condition: Condition::Match(version),
            },
        };
        let request = self
            .s3
            .begin(operation)
            .request(&self.s3, &self.credentials, wall_ms as u64)
            .map_err(|fault| fault.message)?;
        let found = request::text(request.headers(), "authorization");
        Ok(found.unwrap_or_default().to_owned())
    }
}

/// The hashes that a signature with a new key can't do without, and nothing else: the SHA-256 of the body and
/// of the canonical request, and five HMACs.
#[wasm_bindgen(js_name = figuresHashes)]
pub fn hashes(body: &[u8], canonical: &[u8], secret: &[u8], scope: &[u8]) -> Vec<u8> {
    let body_hash = Sha256::digest(body);
    let canonical_hash = Sha256::digest(canonical);
    let key =
        scope.split(|byte| *byte == b'/').fold(secret.to_vec(), |key, part| hmac(&key, &[part]));
    // The text to be signed names algorithm, time and scope, which is about as much as this.
    hmac(&key, &[scope, scope, &body_hash, &canonical_hash])
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("an HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}
