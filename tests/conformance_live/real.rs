//! What every test on real stores needs: the host, the variables that `npm test` sets, names that nobody else has, and the
//! buckets.

use edgelect::clock::Now;
use edgelect::lease::Format;
use edgelect::request::{self, Request, Response};
use edgelect::sigv4::{self, Coverage, KeyCache};
use edgelect::{Config, Credentials, Host, S3Config, S3Store, Settings};

pub use edgelect::Native;

thread_local! {
    static HOST: Native = Native::new().expect("the client can be set up");
}

/// One for each test, which has a thread of its own: a client takes longer to set up than a request takes.
pub fn native() -> Native {
    HOST.with(Native::clone)
}

pub fn variable(name: &str) -> String {
    let name = format!("EDGELECT_TEST_{name}");
    std::env::var(&name).unwrap_or_else(|_| {
        panic!("{name} is not set: run this by `npm test -- --only stores` or `--only rust`")
    })
}

/// The keys of the store whose variables begin with this.
pub fn credentials(prefix: &str) -> Credentials {
    Credentials {
        access_key_id: variable(&format!("{prefix}ACCESS_KEY_ID")),
        secret_access_key: variable(&format!("{prefix}SECRET_ACCESS_KEY")),
        session_token: None,
    }
}

pub fn random() -> String {
    let random = native().random().expect("the system has randomness");
    format!("{:032x}", u128::from_le_bytes(random))
}

/// A host that does this to each request before it goes on.
#[derive(Clone)]
pub struct Between<F>(pub Native, pub F);

impl<F: Fn(&mut Request)> Host for Between<F> {
    fn now(&self) -> Now {
        self.0.now()
    }

    async fn sleep(&self, ms: u64) {
        self.0.sleep(ms).await;
    }

    fn random(&self) -> Result<[u8; 16], String> {
        self.0.random()
    }

    async fn fetch(&self, mut request: Request, limit: usize) -> Result<Response, String> {
        self.1(&mut request);
        self.0.fetch(request, limit).await
    }
}

pub fn config(path: &str) -> Config {
    let lockfile_path = Some(path.to_owned());
    Config::new(&Settings { lockfile_path, ..Settings::default() }).expect("the defaults are fine")
}

pub fn sign(request: &mut Request, credentials: &Credentials, region: &str, now_ms: u64) {
    let (keys, coverage) = (&mut KeyCache::default(), &Coverage::CONDITIONAL);
    sigv4::sign(request, credentials, [region, "s3"], now_ms, keys, coverage)
        .expect("the credentials can be sent");
}

#[derive(Clone)]
pub struct Bucket {
    pub endpoint: String,
    pub bucket: String,
    pub region: &'static str,
    pub credentials: Credentials,
    pub format: Format,
}

impl Bucket {
    pub fn seaweed() -> Self {
        Self::named("", variable("BUCKET"), "us-east-1")
    }

    pub fn named(prefix: &str, bucket: String, region: &'static str) -> Self {
        Self {
            endpoint: variable(&format!("{prefix}ENDPOINT")),
            bucket,
            region,
            credentials: credentials(prefix),
            format: Format::Native,
        }
    }

    pub fn at(&self, key: &str) -> S3Store<Native> {
        S3Store::new(self.config(key), self.credentials.clone(), native())
            .expect("a usable configuration")
    }

    pub fn config(&self, key: &str) -> S3Config {
        S3Config {
            endpoint: Some(self.endpoint.clone()),
            bucket: self.bucket.clone(),
            region: Some(self.region.to_owned()),
            path_style: Some(true),
            key: key.to_owned(),
            format: self.format,
        }
    }

    /// What no store does: a request without any condition.
    pub async fn send(&self, method: &str, path: &str) -> Response {
        self.send_as(method, path, "", "").await
    }

    pub async fn send_as(&self, method: &str, path: &str, kind: &str, body: &str) -> Response {
        let host = native();
        let url = format!("{}/{}{path}", self.endpoint, self.bucket);
        let header = [("content-type", kind)];
        let headers = if kind.is_empty() { &[] } else { &header[..] };
        let method = method.parse().expect("a method");
        let mut request = request::new(method, &url, headers, body.into()).expect("the URL is one");
        sign(&mut request, &self.credentials, self.region, host.now().wall_ms);
        host.fetch(request, 100_000).await.expect("an answer")
    }
}
