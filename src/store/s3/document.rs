//! S3's error document, read as far as an elector needs it.
//!
//! ```xml
//! <?xml version="1.0" encoding="UTF-8"?>
//! <Error><Code>NoSuchKey</Code><Message>…</Message>…</Error>
//! ```
//!
//! The end of a document may be cut off: what stands before that is read all the same.
//!
//! Source of the format: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use crate::text::MAX_CODE_BYTES;

/// How much of a body is read, in bytes; AWS's longest, to a wrong signature, has about 3 KB.
const MAX_DOCUMENT_BYTES: usize = 16 * 1024;

/// How deep a document may be nested.
const MAX_DEPTH: usize = 16;

/// The longest value that is taken out of a document, in bytes.
const MAX_VALUE_BYTES: usize = 256;

/// What a store says about an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorDocument {
    /// `Code`: at most 63 letters, digits, dots and dashes.
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
    let mut found = ErrorDocument::default();
    let mut reader = Reader::from_str(text);
    // What something in between has put together badly may still say its code.
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    reader.config_mut().allow_dangling_amp = true;
    let mut path: Vec<String> = Vec::new();
    let mut leaf = String::new();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(_) if path.len() == MAX_DEPTH => return None,
            Event::Start(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                leaf.clear();
            }
            Event::End(tag) => {
                let ended = |name: &String| tag.local_name().as_ref() == name;
                if path.last().is_some_and(ended) {
                    found.take(&path, leaf.trim());
                }
                if let Some(at) = path.iter().rposition(ended) {
                    path.truncate(at);
                }
                leaf.clear();
            }
            Event::Text(text) => leaf.push_str(&text.xml10_content()),
            Event::CData(text) => leaf.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => leaf.push(character),
                _ => leaf.push_str(resolve_predefined_entity(&reference).unwrap_or_default()),
            },
            Event::DocType(_) => return None,
            Event::Eof => break,
            _ => {}
        }
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let usable = (1..=MAX_CODE_BYTES).contains(&found.code.len()) && found.code.bytes().all(plain);
    usable.then_some(found)
}

impl ErrorDocument {
    /// Takes the first value of each field.
    fn take(&mut self, path: &[String], value: &str) {
        let Some((name, above)) = path.split_last() else { return };
        if !above.iter().any(|name| name == "Error") || value.len() > MAX_VALUE_BYTES {
            return;
        }
        let field = match name.as_str() {
            "Code" if self.code.is_empty() => return value.clone_into(&mut self.code),
            "Region" => &mut self.region,
            "Endpoint" => &mut self.endpoint,
            "ServerTime" => &mut self.server_time,
            _ => return,
        };
        field.get_or_insert_with(|| value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_code_counts_after_however_many_other_elements() {
        let others = "<Other>1</Other>".repeat(2 * MAX_DEPTH);
        let text =
            format!("<Error>{others}<Code>NoSuchKey</Code><Code>AccessDenied</Code></Error>");
        assert_eq!(read(text.as_bytes()).map(|found| found.code).as_deref(), Some("NoSuchKey"));
    }
}
