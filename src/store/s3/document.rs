//! S3's error document, read as far as an elector needs it.
//!
//! ```xml
//! <?xml version="1.0" encoding="UTF-8"?>
//! <Error><Code>NoSuchKey</Code><Message>…</Message>…</Error>
//! ```
//!
//! A bounded search for four tags, not an XML parser: what follows them may be cut off or no XML.
//! Nothing that is found is trusted further than one word of plain characters.
//!
//! Source of the format: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.

/// How much of a body is looked at, in bytes; AWS's longest, to a wrong signature, has about 3 KB.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024;

/// The longest value that is taken out of a document, in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// What a store says about an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorDocument {
    /// `Code`: at most 64 letters, digits, dots and dashes.
    pub code: String,
    /// `Region`: the right one, in answer to a signature for a wrong one.
    pub region: Option<String>,
    /// `Endpoint`: the right host, in a redirect.
    pub endpoint: Option<String>,
    /// `ServerTime`: RFC 3339, in answer to a wrong clock.
    pub server_time: Option<String>,
}

/// Reads an error document; `None` for every other body, and for one without a usable code.
pub(super) fn read(body: &[u8]) -> Option<ErrorDocument> {
    let bounded = &body[..body.len().min(MAX_DOCUMENT_BYTES)];
    let text = match std::str::from_utf8(bounded) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bounded[..error.valid_up_to()]).unwrap_or_default(),
    };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('<') {
        return None;
    }
    // Some stores give the root a namespace.
    let root = text.find("<Error>").or_else(|| text.find("<Error "))?;
    let inside = &text[root..];
    let code = value(inside, "Code")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    if code.is_empty() || code.len() > 64 || !code.bytes().all(plain) {
        return None;
    }
    let owned = |tag: &str| value(inside, tag).map(str::to_owned);
    Some(ErrorDocument {
        code: code.to_owned(),
        region: owned("Region"),
        endpoint: owned("Endpoint"),
        server_time: owned("ServerTime"),
    })
}

/// The text between the first `<tag>` and what ends it.
fn value<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let open = format!("<{tag}>");
    let begin = text.find(&open)? + open.len();
    let rest = &text[begin..];
    let end = rest.find('<')?;
    let closed = rest[end..].strip_prefix("</")?.starts_with(tag);
    (closed && end <= MAX_VALUE_BYTES).then(|| rest[..end].trim())
}
