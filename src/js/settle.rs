//! How the operations that `js/host.js` began have ended, each kind by a call of its own. Each only takes note of it: the
//! election goes on at the next [`RawElector::poll`].

use wasm_bindgen::prelude::*;

use super::RawElector;
use crate::request::Body;
use crate::sigv4::Credentials;
use crate::web::{Fetched, Found, Settled};

#[wasm_bindgen]
impl RawElector {
    /// An operation failed, and why. Nobody knows whether it took effect.
    pub fn failed(&self, id: u32, why: String) {
        self.link.settle(id, Settled::Failed(why));
    }

    /// The time of a `sleep` is over.
    pub fn slept(&self, id: u32) {
        self.link.settle(id, Settled::Slept);
    }

    /// A request that waited for its turn may leave.
    pub fn turned(&self, id: u32) {
        self.link.settle(id, Settled::Turned);
    }

    /// A `fetch` was answered. `headers` has each name and its value after it, `body` as much as was asked for, and
    /// `truncated` says whether there was more.
    pub fn fetched(
        &self,
        id: u32,
        status: u16,
        headers: Vec<String>,
        body: Vec<u8>,
        truncated: bool,
    ) {
        let body = Body { bytes: body, truncated };
        self.link.settle(id, Settled::Fetched(Fetched { status, headers, body }));
    }

    /// The provider gave credentials.
    #[wasm_bindgen(js_name = credentialsGiven)]
    pub fn credentials_given(
        &self,
        id: u32,
        access_key_id: String,
        secret_access_key: String,
        session_token: Option<String>,
    ) {
        // One that is empty is none.
        let session_token = session_token.filter(|token| !token.is_empty());
        let credentials = Credentials { access_key_id, secret_access_key, session_token };
        self.link.settle(id, Settled::Given(credentials));
    }

    /// A storage's `get` found an object. Both times are milliseconds since the Unix epoch.
    pub fn found(
        &self,
        id: u32,
        etag: String,
        body: Vec<u8>,
        date_ms: Option<f64>,
        last_modified_ms: Option<f64>,
    ) {
        let [date_ms, last_modified_ms] =
            [date_ms, last_modified_ms].map(|ms| ms.map(|ms| ms as u64).filter(|ms| *ms > 0));
        self.link.settle(id, Settled::Found(Found { etag, body, date_ms, last_modified_ms }));
    }

    /// A storage's `get` found nothing.
    pub fn missing(&self, id: u32) {
        self.link.settle(id, Settled::Missing);
    }

    /// A storage's `get` gave what is no object, and why.
    pub fn nonsense(&self, id: u32, why: String) {
        self.link.settle(id, Settled::Nonsense(why));
    }

    /// A storage's `putIfMatch` took effect.
    pub fn written(&self, id: u32, etag: Option<String>) {
        self.link.settle(id, Settled::Written(etag));
    }

    /// A storage's `putIfMatch` met another version.
    pub fn refused(&self, id: u32) {
        self.link.settle(id, Settled::Refused);
    }

    /// What a call of a locker gave.
    pub fn locked(&self, id: u32, answer: bool) {
        self.link.settle(id, Settled::Locked(answer));
    }
}
