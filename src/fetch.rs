//! One HTTP request and its answer, as a host's own client carries them.

/// A request to send: absolute address, all headers but `Host` and `Content-Length`, the whole body.
pub type Request = http::Request<Vec<u8>>;

/// An answer, its body read as far as its bound.
pub type Response = http::Response<Body>;

/// The body of an answer, as far as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// At most as many bytes as were asked for.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub truncated: bool,
}
