//! No address, wherever it comes from, sends anybody elsewhere than it says: what is put into a URL
//! is what a URL parser (crate `url`, the standard that every runtime follows) reads out of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use edgelect::config::{Config, PeerSettings, Settings, is_peer_addr};
use edgelect::hostname::Hostname;
use edgelect::peer;
use edgelect::store::Operation;
use edgelect::store::s3::{S3, S3Config};
use reqwest::Url;

use super::credentials;

/// Any two texts as the address of a peer, out of a bucket, and the own one.
pub fn peers(addr: &str, own_addr: &str) {
    for insecure in [None, Some(false), Some(true)] {
        peer(addr, own_addr, insecure);
    }
}

/// The URL by which a member asks at this address that is published at its own; one that can't be published has none.
pub fn url_of(addr: &str, own_addr: &str, insecure: Option<bool>) -> Option<String> {
    let settings = |own: &str| Settings {
        lockfile_path: Some("jobs".to_owned()),
        server_addr: Some(own.to_owned()),
        peers: PeerSettings { insecure, ..PeerSettings::default() },
        ..Settings::default()
    };
    let config = Config::new(&settings(own_addr)).or_else(|_| Config::new(&settings("")));
    peer::url(addr, &config.expect("without an address it is one"))
}

fn peer(addr: &str, own_addr: &str, insecure: Option<bool>) {
    let url = url_of(addr, own_addr, insecure);
    assert!(url.is_none() || is_peer_addr(addr), "{addr:?} is asked and is no address");
    if let Some((host, _)) = Hostname::parse_with_port(addr) {
        assert_eq!(Hostname::parse(host.as_str()).as_ref(), Some(&host), "there is one spelling");
        assert!(host.as_str().len() <= addr.len().max(41), "{host:?}");
    }
    let Some(url) = url else { return };
    let Some(parsed) = parsed(&url) else { return };
    let (host, port) = Hostname::parse_with_port(addr).expect("it is asked");
    assert_eq!(parsed.host_str(), Some(host.as_str()), "{addr:?}");
    assert_eq!(parsed.port_or_known_default(), port.or(Some(own_port(&parsed))), "{addr:?}");
    assert_eq!((parsed.path(), parsed.query(), parsed.fragment()), (peer::PATH, None, None));
    assert_eq!((parsed.username(), parsed.password()), ("", None), "{addr:?}");
    let here = is_loopback(&parsed);
    let scheme = if insecure.unwrap_or(here) { "http" } else { "https" };
    assert_eq!(parsed.scheme(), scheme, "{addr:?}");
    let own = Hostname::parse_with_port(own_addr).map(|(own, _)| own);
    let published_here = own.is_some_and(|own| own.is_loopback());
    assert!(!here || published_here, "{addr:?} leads to a service of this machine");
    assert!(!is_metadata(&parsed), "{addr:?} leads to a cloud's metadata");
}

/// Any options of a bucket.
pub fn bucket(config: &S3Config) {
    let s3 = match S3::new(config.clone()) {
        Ok(s3) => s3,
        Err(error) => {
            let message = error.message();
            assert!(message.len() <= 2_000 && !message.chars().any(char::is_control), "{message}");
            let endpoint = config.endpoint.as_deref().unwrap_or_default();
            if error.field == "endpoint" && endpoint.contains('@') {
                assert_eq!(error.value, "\"(not shown)\"", "a password may be in it");
            }
            return;
        }
    };
    let mut exchange = s3.begin(Operation::Read { unless: None });
    let request = exchange.request(&s3, &credentials(), 0).expect("what was accepted can be sent");
    let url = request.uri().to_string();
    let Some(parsed) = parsed(&url) else { return };
    assert_eq!(parsed.as_str(), url, "a URL parser rewrites what the signature covers");
    assert!(parsed.scheme() == "https" || is_loopback(&parsed), "{parsed}");
    assert_eq!((parsed.username(), parsed.password()), ("", None), "{parsed}");
    let path = percent_encoding::percent_decode_str(parsed.path()).decode_utf8();
    let path = path.expect("keys are texts");
    assert!(path.ends_with(&format!("/{}", config.key)), "{path} ends in {:?}", config.key);
    let bucket_at_host = parsed.host_str().is_some_and(|host| host.starts_with(&config.bucket));
    assert!(bucket_at_host || path.contains(&format!("/{}/", config.bucket)), "{parsed}");
}

/// Any IP address is a host, in the one spelling of URLs.
pub fn ip(ip: IpAddr) {
    let text = match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    let host = Hostname::parse(&text).expect("it is an address");
    assert_eq!(host.ip(), Some(ip.to_canonical()), "{text}");
    let parsed = Url::parse(&format!("https://{text}/")).expect("it is an address");
    assert_eq!(parsed.host_str(), Some(host.as_str()), "{text}");
}

/// What the standard reads out of a URL of ours. It refuses some labels that claim to be
/// international names; then nothing is sent at all.
fn parsed(url: &str) -> Option<Url> {
    let parsed = Url::parse(url);
    assert!(parsed.is_ok() || url.contains("xn--"), "{url}: {parsed:?}");
    parsed.ok()
}

fn own_port(url: &Url) -> u16 {
    if url.scheme() == "http" { 80 } else { 443 }
}

fn address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?.trim_matches(['[', ']']);
    Some(host.parse::<IpAddr>().ok()?.to_canonical())
}

fn is_loopback(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default();
    name == "localhost"
        || name.ends_with(".localhost")
        || address(url).is_some_and(|ip| ip.is_loopback())
}

fn is_metadata(url: &Url) -> bool {
    match address(url) {
        Some(IpAddr::V4(ip)) => ip.is_link_local() || ip == Ipv4Addr::UNSPECIFIED,
        Some(IpAddr::V6(ip)) => ip.is_unicast_link_local() || ip == Ipv6Addr::UNSPECIFIED,
        None => false,
    }
}
