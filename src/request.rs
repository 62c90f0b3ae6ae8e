//! One HTTP request and its answer, as a store and a host hand them to each other.
//!
//! Plain lists, because crate `http` makes the wasm 14.6 KB larger after gzip -9, and no request here has more than
//! seven headers. With feature `std` the two types convert to and from those of `http`, which native clients speak.


/// A request.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, `PUT`, `POST`, or `DELETE` of what is no lease, or none any more.
    pub method: String,
    /// Scheme, host, path and query; nothing in it needs encoding.
    pub url: String,
    /// Names in lower case, and values. `host` and `content-length` are left to whoever sends it.
    pub headers: Vec<(String, String)>,
    /// The bytes.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, as far as it was read.
    pub body: Body,
}

/// The body of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub truncated: bool,
}

impl std::fmt::Debug for Request {
    /// Without the values of the headers, two of which are as good as a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.headers.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: &str, url: String) -> Self {
        Self { method: method.to_owned(), url, headers: Vec::new(), body: Vec::new() }
    }

    /// Adds a header, or replaces all of its name.
    pub fn set(&mut self, name: &str, value: String) {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value));
    }
}

impl Response {
    /// How many headers of a name there are.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(other, _)| other == name).count()
    }

    /// The first value of a header, if it is plain ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(other, _)| other == name)?;
        value.bytes().all(|byte| byte == b'\t' || (0x20..0x7f).contains(&byte)).then_some(value)
    }
}

/// A URL, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// `http`, `https` or something else, as it stands.
    pub scheme: &'a str,
    /// User, host and port.
    pub authority: &'a str,
    /// From the slash on; empty without one.
    pub path: &'a str,
    /// What follows the question mark; empty without one.
    pub query: &'a str,
}

impl<'a> Parts<'a> {
    /// Takes a URL with scheme and authority apart; what follows a `#` is dropped.
    pub fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        Some(Self { scheme, authority, path, query })
    }

    /// The host, in brackets if it is IPv6, and the text of the port, if there is one.
    pub fn host_and_port(&self) -> (&'a str, Option<&'a str>) {
        let authority = self.authority.rsplit_once('@').map_or(self.authority, |(_, host)| host);
        let after_brackets = authority.rfind(']').map_or(0, |end| end + 1);
        match authority[after_brackets..].split_once(':') {
            Some((rest, port)) => (&authority[..after_brackets + rest.len()], Some(port)),
            None => (authority, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_as_crate_http_does_it() {
        for url in [
            "https://s3.example.com",
            "https://s3.example.com/",
            "http://127.0.0.1:8333/a/b?c=d&e",
            "https://[fd00::1]:443/a/b",
            "https://[::1]/?x=http://y/",
            "https://u:p@host:1/a@b:c",
            "https://host?query",
        ] {
            let (ours, theirs) = (Parts::of(url).unwrap(), url.parse::<http::Uri>().unwrap());
            assert_eq!(Some(ours.scheme), theirs.scheme_str(), "{url}");
            assert_eq!(ours.authority, theirs.authority().unwrap().as_str(), "{url}");
            assert_eq!(if ours.path.is_empty() { "/" } else { ours.path }, theirs.path(), "{url}");
            assert_eq!(ours.query, theirs.query().unwrap_or_default(), "{url}");
            let (host, port) = ours.host_and_port();
            assert_eq!(
                (Some(host), port),
                (theirs.host(), theirs.port().as_ref().map(|port| port.as_str())),
                "{url}"
            );
        }
        assert_eq!(Parts::of("https://host/a#b?c").unwrap().path, "/a");
        assert_eq!((Parts::of("/a"), Parts::of("host:1/a")), (None, None));
    }
}

mod conversions {
    use super::{Body, Request, Response};

    impl TryFrom<Request> for http::Request<Vec<u8>> {
        type Error = http::Error;

        fn try_from(request: Request) -> Result<Self, http::Error> {
            let mut builder =
                http::Request::builder().method(request.method.as_str()).uri(request.url);
            for (name, value) in request.headers {
                let mut value = http::HeaderValue::try_from(value)?;
                value.set_sensitive(matches!(&*name, "authorization" | "x-amz-security-token"));
                builder = builder.header(name, value);
            }
            builder.body(request.body)
        }
    }

    impl From<http::Response<Body>> for Response {
        /// A header that is no text is kept as one that means nothing to anybody.
        fn from(response: http::Response<Body>) -> Self {
            let (parts, body) = response.into_parts();
            let headers = parts.headers.iter().map(|(name, value)| {
                let value = value.to_str().unwrap_or("\u{fffd}");
                (name.as_str().to_owned(), value.to_string())
            });
            Self { status: parts.status.as_u16(), headers: headers.collect(), body }
        }
    }
}
