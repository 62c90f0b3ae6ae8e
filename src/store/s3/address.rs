//! Where a bucket is: the configuration, checked, and the address of a key; which redirects are followed.
//!
//! What is accepted here is what every runtime's own URL parser leaves as it is, because the signature covers it.

use percent_encoding::{AsciiSet, utf8_percent_encode};

use crate::config::ConfigError;
use crate::hostname::Hostname;
use crate::lease::Format;
use crate::request;
use crate::sigv4::RESERVED;
use crate::text::{first, quoted};

/// Where the lease object is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Config {
    /// The store's address, with a path prefix where it has one; without the bucket. Left out: AWS in `region`.
    pub endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The region that signatures name. Left out: `us-east-1`, which R2 takes for `auto`.
    pub region: Option<String>,
    /// Whether the bucket is the first part of the path (`https://host/bucket/key`) or of the host
    /// (`https://bucket.host/key`). Left out: of the host for AWS, of the path elsewhere.
    pub path_style: Option<bool>,
    /// The key of the lease object (`lockfilePath`).
    pub key: String,
    /// How the record is written down; one for all members of a group.
    pub format: Format,
}

/// Its XML API takes `x-goog-if-generation-match` as a condition of a PUT: <https://cloud.google.com/storage/docs/request-preconditions>.
const GOOGLE: &str = "is Google Cloud Storage, which takes a PUT whatever its If-Match or If-None-Match says, so that two \
                      would lead; use another store, or a storage of your own that sends x-goog-if-generation-match";

/// Below these a bucket may have a host of its own, which would name it twice.
const HOSTS_OF_BUCKETS: [&str; 11] = [
    ".amazonaws.com",
    ".amazonaws.com.cn",
    ".r2.cloudflarestorage.com",
    ".digitaloceanspaces.com",
    ".backblazeb2.com",
    ".wasabisys.com",
    ".your-objectstorage.com",
    ".linodeobjects.com",
    ".scw.cloud",
    ".aliyuncs.com",
    ".myqcloud.com",
];

/// A configuration that was found good.
#[derive(Clone, Debug)]
pub(in crate::store) struct Checked {
    pub address: Address,
    /// Whether the host follows from the region, because no endpoint was given.
    pub by_region: bool,
    pub region: String,
}

/// Scheme, host and path in front of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Address {
    secure: bool,
    /// In lower case; IPv6 in brackets.
    host: String,
    /// Not the scheme's own.
    port: Option<u16>,
    /// Empty, or with a leading slash and without one at the end.
    prefix: String,
    bucket_in_host: bool,
}

impl S3Config {
    pub(in crate::store) fn check(&self) -> Result<Checked, ConfigError> {
        check_bucket(&self.bucket)?;
        check_key(&self.key)?;
        let region = check_region(self.region.as_deref())?;
        let Some(endpoint) = &self.endpoint else {
            if region == "auto" {
                let rule = "needs an endpoint, because AWS has no such region";
                return Err(refuse("region", &region, rule));
            }
            let mut address = Address::aws(&region);
            address.bucket_in_host = !self.bucket.contains('.');
            let address = self.styled(address)?;
            return Ok(Checked { address, by_region: true, region });
        };
        let mut address = Address::endpoint(endpoint)?;
        if address.host.ends_with(".googleapis.com") {
            return Err(refuse("endpoint", &without_secrets(endpoint), GOOGLE));
        }
        let aws = aws_region(&address.host).is_some();
        let last = address.prefix.rsplit('/').next().unwrap_or_default();
        let r2 = address.host.ends_with(".r2.cloudflarestorage.com");
        let in_host = address.host.strip_prefix(&self.bucket).is_some_and(|rest| {
            rest.starts_with('.') && HOSTS_OF_BUCKETS.iter().any(|host| rest[1..].ends_with(host))
        });
        if in_host || !last.is_empty() && (aws || r2 || last == self.bucket) {
            // The object would lie below a second name of the bucket, and two groups would each have a leader.
            let rule = "names the store without the bucket, which is an option of its own; \
                        stop all members before you change it";
            return Err(refuse("endpoint", &without_secrets(endpoint), rule));
        }
        address.bucket_in_host = aws && !self.bucket.contains('.');
        Ok(Checked { address: self.styled(address)?, by_region: false, region })
    }

    fn styled(&self, mut address: Address) -> Result<Address, ConfigError> {
        if let Some(path_style) = self.path_style {
            address.bucket_in_host = !path_style;
        }
        if address.bucket_in_host {
            if address.secure && self.bucket.contains('.') {
                let rule =
                    "cannot be false for a bucket with a dot: no certificate covers such a host";
                return Err(refuse("pathStyle", "false", rule));
            }
            if address.is_ip() {
                let rule = "cannot be false where the endpoint is an IP address";
                return Err(refuse("pathStyle", "false", rule));
            }
        }
        Ok(address)
    }
}

impl Address {
    /// AWS's S3 in one region, the bucket in the host.
    pub fn aws(region: &str) -> Self {
        Self {
            secure: true,
            host: Kind::default().host(region),
            port: None,
            prefix: String::new(),
            bucket_in_host: true,
        }
    }

    /// The same bucket style at AWS in another region, by the same kind of endpoint.
    pub fn moved(&self, region: &str) -> Self {
        let host = Kind::of(&self.host).host(region);
        Self { host, bucket_in_host: self.bucket_in_host, ..Self::aws(region) }
    }

    /// The option `endpoint`: https, or loopback.
    pub fn endpoint(text: &str) -> Result<Self, ConfigError> {
        let refuse_endpoint = |rule| refuse("endpoint", &without_secrets(text), rule);
        let address = Address::parse(text).map_err(refuse_endpoint)?;
        if !address.secure && !address.is_loopback() {
            let rule = "must begin with https://; http:// is for loopback addresses only, because a lease \
                        that somebody on the way can change protects nothing; for a store on a private \
                        network see docs/options.md#a-store-on-a-private-network";
            return Err(refuse_endpoint(rule));
        }
        Ok(address)
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.contains(['?', '#']) {
            return Err("has no query and no fragment");
        }
        const RULE: &str = "is an address such as https://s3.example.com";
        let uri = request::origin(text).ok_or(RULE)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(RULE);
        };
        let (_, rest) = text.split_once("://").unwrap_or_default();
        let path = rest.find('/').map_or("", |start| &rest[start..]);
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err("must begin with https://");
        }
        if authority.as_str().contains('@') {
            return Err("has no user name and no password: credentials are an option of their own");
        }
        let host = check_host(authority.host())?;
        let (_, port) =
            Hostname::parse_with_port(authority.as_str()).ok_or("has a port from 1 to 65535")?;
        let default_port = if secure { 443 } else { 80 };
        let prefix = path.trim_end_matches('/');
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let segments_ok = prefix.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."));
        if !prefix.bytes().all(plain) || !segments_ok {
            return Err(
                "has a path of letters, digits, dashes, dots, underscores and tildes, without empty \
                        and dot segments",
            );
        }
        Ok(Self {
            secure,
            host,
            port: port.filter(|port| *port != default_port),
            prefix: prefix.to_owned(),
            bucket_in_host: false,
        })
    }

    /// The URL of a percent-encoded key.
    pub fn url(&self, bucket: &str, encoded_key: &str) -> String {
        let in_path = if self.bucket_in_host { ["", ""] } else { ["/", bucket] };
        format!("{}{}{}{}/{encoded_key}", self.origin(bucket), self.prefix, in_path[0], in_path[1])
    }

    /// The URL of a path with its leading slash, and query, below this address; no bucket is in it.
    pub fn below(&self, path: &str) -> String {
        [&self.origin(""), &self.prefix, path].concat()
    }

    /// One of AWS's services by its own host.
    pub fn service(host: String) -> Self {
        let (prefix, port) = (String::new(), None);
        Self { secure: true, host, port, prefix, bucket_in_host: false }
    }

    /// Where the buckets are, for people.
    pub fn shown(&self, bucket: &str) -> String {
        self.origin(bucket) + &self.prefix
    }

    /// Scheme, host and port, for people too.
    pub fn origin(&self, bucket: &str) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let in_host = if self.bucket_in_host { [bucket, "."] } else { ["", ""] };
        let mut origin = format!("{scheme}://{}{}{}", in_host[0], in_host[1], self.host);
        if let Some(port) = self.port {
            origin.push(':');
            origin.push_str(&port.to_string());
        }
        origin
    }

    /// The address that a redirect names, and the region that its host implies, if it may be followed: another
    /// host of AWS's S3 by https from there, nothing but the very same origin elsewhere. The path of the
    /// redirect is not used. `target` is a URL or, from an error body, a bare host.
    pub fn redirected(&self, target: &str, bucket: &str) -> Option<(Self, Option<String>)> {
        let scheme = if self.secure { "https" } else { "http" };
        let url = match target.contains("://") {
            true => target.to_owned(),
            false => format!("{scheme}://{target}"),
        };
        // Only the origin counts, so that a path that parse would refuse does no harm.
        let mut next = Self::parse(&request::origin(&url)?.to_string()).ok()?;
        let in_host = next.host.strip_prefix(bucket).and_then(|rest| rest.strip_prefix('.'));
        if let Some(host) = in_host {
            next.host = host.to_owned();
            // A host with a dotted bucket has no certificate, whatever the redirect says.
            next.bucket_in_host = !bucket.contains('.');
        }
        if aws_region(&self.host).is_some() {
            let region = aws_region(&next.host)?.to_owned();
            let (own, named) = (Kind::of(&self.host), Kind::of(&next.host));
            // Who has set a FIPS or dual-stack endpoint must not be led away from it; answers name the plain one.
            if (own.fips && !named.fips) || (own.dual_stack && !named.dual_stack) {
                next.host = own.and(named).host(&region);
            }
            return (next.secure && next.port.is_none()).then_some((next, Some(region)));
        }
        let same = (next.secure, next.host.as_str(), next.port)
            == (self.secure, self.host.as_str(), self.port);
        same.then(|| (self.clone(), None))
    }

    pub fn is_aws(&self) -> bool {
        aws_region(&self.host).is_some()
    }

    /// The shortest time between two writes of one object that this store takes, in milliseconds: Cloudflare's takes one a
    /// second (<https://developers.cloudflare.com/r2/platform/limits/>), and Amazon's has no such limit.
    pub fn writes_apart_ms(&self) -> u64 {
        if self.host.ends_with(".r2.cloudflarestorage.com") { 1_000 } else { 0 }
    }

    fn is_ip(&self) -> bool {
        Hostname::parse(&self.host).is_some_and(|host| host.ip().is_some())
    }

    fn is_loopback(&self) -> bool {
        Hostname::parse(&self.host).is_some_and(|host| host.is_loopback())
    }
}

/// Which of AWS's endpoints of a region a host is.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    fips: bool,
    dual_stack: bool,
}

impl Kind {
    fn of(host: &str) -> Self {
        let aws = aws_region(host).is_some();
        let rest = host.strip_prefix("s3-fips").or_else(|| host.strip_prefix("s3"));
        let dual_stack = rest.is_some_and(|rest| rest.starts_with(".dualstack"));
        Self { fips: aws && host.starts_with("s3-fips"), dual_stack: aws && dual_stack }
    }

    fn and(self, other: Self) -> Self {
        Self { fips: self.fips || other.fips, dual_stack: self.dual_stack || other.dual_stack }
    }

    fn host(self, region: &str) -> String {
        let fips = if self.fips { "-fips" } else { "" };
        let dual_stack = if self.dual_stack { ".dualstack" } else { "" };
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("s3{fips}{dual_stack}.{region}.amazonaws.com{suffix}")
    }
}

/// The region of a host of AWS's S3 (without bucket); `None` for every other host. Strict, because others can
/// have names below amazonaws.com, such as those of load balancers.
fn aws_region(host: &str) -> Option<&str> {
    let head =
        host.strip_suffix(".amazonaws.com").or_else(|| host.strip_suffix(".amazonaws.com.cn"))?;
    if head == "s3" {
        return Some("us-east-1");
    }
    let rest = head.strip_prefix("s3-fips").or_else(|| head.strip_prefix("s3"))?;
    let rest = rest.strip_prefix(".dualstack").unwrap_or(rest);
    let region = rest.strip_prefix(['.', '-'])?;
    if region == "external-1" {
        return Some("us-east-1");
    }
    // A region ends in a number: eu-central-1, us-gov-west-1.
    let numbered = region.bytes().last().is_some_and(|byte| byte.is_ascii_digit());
    (is_region(region) && numbered).then_some(region)
}

/// The option `region`; left out, it is `us-east-1`.
pub(in crate::store) fn check_region(region: Option<&str>) -> Result<String, ConfigError> {
    let region = region.unwrap_or("us-east-1");
    if !is_region(region) {
        let rule = "is 1 to 63 lower-case letters, digits and dashes, such as \"eu-central-1\" or \"auto\"";
        return Err(refuse("region", region, rule));
    }
    Ok(region.to_owned())
}

/// Whether a text can be the name of a region.
pub(in crate::store) fn is_region(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(plain)
}

/// A key as it stands in a URL: unreserved characters and slashes as they are, the rest percent-encoded.
pub(in crate::store) fn encode_key(key: &str) -> String {
    const IN_PATH: &AsciiSet = &RESERVED.remove(b'/');
    utf8_percent_encode(key, IN_PATH).to_string()
}

fn check_host(host: &str) -> Result<String, &'static str> {
    const RULE: &str = "names a host by letters, digits, dashes, dots and underscores (an international name \
                        in its xn-- form) or by an IP address";
    Hostname::parse(host).map(|host| host.as_str().to_owned()).ok_or(RULE)
}

fn check_bucket(bucket: &str) -> Result<(), ConfigError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| plain(byte) || byte == b'-' || byte == b'.';
    let bytes = bucket.as_bytes();
    let ends_ok = bytes.first().zip(bytes.last()).is_some_and(|(a, z)| plain(*a) && plain(*z));
    let length_ok = (3..=63).contains(&bytes.len());
    if length_ok && ends_ok && bytes.iter().copied().all(inner) && !bucket.contains("..") {
        return Ok(());
    }
    let rule = "is 3 to 63 lower-case letters, digits, dashes and single dots, with a letter or digit at both \
                ends";
    Err(refuse("bucket", bucket, rule))
}

pub(in crate::store) fn check_key(key: &str) -> Result<(), ConfigError> {
    let segments_ok = key.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if key.len() <= 1024 && segments_ok && !key.chars().any(char::is_control) {
        return Ok(());
    }
    // Every runtime's URL parser rewrites dot segments, and Bun's empty ones.
    let rule = "is the key of the lease object: 1 to 1024 bytes, without a leading slash, empty or dot \
                segments, or control characters, such as \"leader/my-group.json\"";
    Err(refuse("lockfilePath", key, rule))
}

/// An endpoint without what may be a password or a signature in it.
fn without_secrets(endpoint: &str) -> String {
    if endpoint.contains('@') {
        return "(not shown)".to_owned();
    }
    let end = endpoint.find(['?', '#']).unwrap_or(endpoint.len());
    endpoint[..end].to_owned()
}

fn refuse(field: &str, value: &str, rule: &str) -> ConfigError {
    ConfigError::new(field, quoted(first(value, 200)), rule)
}
