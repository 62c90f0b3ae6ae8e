//! The host that a native program is: the machine's clocks and randomness, tokio's timers, reqwest's HTTP.
//! This file is all that a program has to bring; it is here to be copied, and stands on these:
//!
//! ```toml
//! edgelect = "0.1"
//! getrandom = "0.4"
//! reqwest = { version = "0.13", default-features = false, features = ["rustls-no-provider"] }
//! rustls = { version = "0.23", default-features = false, features = ["ring", "std", "tls12"] }
//! tokio = { version = "1", default-features = false, features = ["macros", "rt", "time"] }
//! ```

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use edgelect::Host;
use edgelect::clock::Now;
use edgelect::request::{Body, Request, Response};

/// The machine. Cheap to clone; clones share the connections and the origin of the clock.
#[derive(Clone)]
pub struct Native {
    client: reqwest::Client,
    started: Instant,
}

impl Native {
    /// Sets up the HTTP client.
    ///
    /// # Errors
    /// The system's certificates cannot be loaded.
    #[allow(clippy::disallowed_methods)] // This is a host: here time comes from.
    pub fn new() -> Result<Self, String> {
        // Fails only where the program has chosen another provider before, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder()
            // Neither follows a redirect nor repeats a request on its own: a write that was sent twice may
            // land twice (S8).
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            // Peers and the store are reached directly, whatever `HTTP_PROXY` says.
            .no_proxy()
            .build()
            .map_err(|error| format!("no HTTP client: {}", innermost(error)))?;
        Ok(Self { client, started: Instant::now() })
    }

    async fn send(&self, request: Request, limit: usize) -> Result<Response, reqwest::Error> {
        let mut answer = self.client.execute(request.try_into()?).await?;
        let mut body = Body::default();
        while let Some(chunk) = answer.chunk().await? {
            let room = limit - body.bytes.len();
            body.bytes.extend_from_slice(&chunk[..room.min(chunk.len())]);
            if chunk.len() > room {
                body.truncated = true;
                break;
            }
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl Host for Native {
    #[allow(clippy::disallowed_methods)] // This is a host: here time comes from.
    fn now(&self) -> Now {
        // A wall clock before 1970 counts as 1970: what is held is then judged by the monotonic one.
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Now::new(self.started.elapsed().as_millis() as u64, wall.as_millis() as u64)
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    async fn fetch(&self, request: Request, limit: usize) -> Result<Response, String> {
        self.send(request, limit).await.map_err(innermost)
    }
}

/// The innermost cause says it best ("Connection refused"); the address is the store's to tell.
fn innermost(error: reqwest::Error) -> String {
    let mut cause: &dyn Error = &error.without_url();
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
