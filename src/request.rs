//! One HTTP request and its answer, as a store and a host hand them to each other: the types of crate `http`.

use http::{HeaderMap, HeaderValue, Method, Uri};

/// A request, with an absolute URL in which nothing needs encoding. `host` and `content-length` are left to whoever sends
/// it. A header's value that is as good as a secret is marked as sensitive, so that no `Debug` shows it.
pub type Request = http::Request<Vec<u8>>;

/// An answer. Of its body as much was read as was asked for.
pub type Response = http::Response<Body>;

/// The body of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub truncated: bool,
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), truncated: false }
    }
}

/// A request of these parts.
///
/// # Errors
/// The URL is none, or a header's value cannot be sent.
pub fn new(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Request, http::Error> {
    let mut request = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body)
}

/// An answer of these parts. A header's value that no header can have is kept as one that is no text: that there was one may
/// count.
///
/// # Errors
/// The status is none, or a header's name.
pub fn answer<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: Body,
) -> Result<Response, http::Error> {
    let unusable = || HeaderValue::from_bytes(&[0xff]).expect("a byte above ASCII is allowed");
    let mut answer = http::Response::builder().status(status);
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).unwrap_or_else(|_| unusable());
        answer = answer.header(name, value);
    }
    answer.body(body)
}

/// Scheme and authority of a URL; what follows is for others to read, who take more than crate `http` does. A port that is
/// empty is none.
pub fn origin(url: &str) -> Option<Uri> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    format!("{scheme}://{}", authority.strip_suffix(':').unwrap_or(authority)).parse().ok()
}

/// The first value of a header, if it is plain ASCII.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// How many headers of a name there are.
pub fn count(headers: &HeaderMap, name: &str) -> usize {
    headers.get_all(name).iter().count()
}

#[cfg(test)]
mod tests {

    #[test]
    fn an_origin_is_found_whatever_follows_it_and_an_empty_port_is_none() {
        for (url, origin) in [
            ("https://s3.example.com", Some("https://s3.example.com/")),
            ("https://s3.example.com:/k", Some("https://s3.example.com/")),
            ("https://s3.example.com:8443/a b<c>`", Some("https://s3.example.com:8443/")),
            ("https://[::1]:9000?x=http://y", Some("https://[::1]:9000/")),
            ("https://s3.example.com#@evil", Some("https://s3.example.com/")),
            ("https://evil\\@s3.example.com", None),
            ("https://", None),
            ("s3.example.com/k", None),
        ] {
            let found = super::origin(url).map(|found| found.to_string());
            assert_eq!(found.as_deref(), origin, "{url}");
        }
    }
}
