//! Any answers of an S3 store to any operations. The input is one line and then the answers, with a
//! line of four equal signs between them, each as HTTP/1 shows it: in the line, `aws` or `own`, and
//! which of the four operations follow one another, such as `aws 013`.
#![no_main]

use edgelect::request::{self, Body, Response};
use http::HeaderName;
use libfuzzer_sys::fuzz_target;
use rules::answers;

const WALL_MS: u64 = 1_763_719_200_000;

fuzz_target!(|input: &[u8]| {
    let line = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (head, rest) = input.split_at(line);
    let head = String::from_utf8_lossy(head);
    let Some((store, places)) = head.split_once(' ') else { return };
    let operations = answers::operations();
    let operations: Vec<_> = places
        .bytes()
        .take(4)
        .filter_map(|place| operations.get(usize::from(place.wrapping_sub(b'0'))).cloned())
        .collect();
    let responses: Vec<_> = split(&rest[rest.len().min(1)..], b"\n====\n").map(response).collect();
    answers::answers(store == "aws", &operations, &responses, WALL_MS);
});

fn response(text: &[u8]) -> Response {
    let mut parts = text.splitn(2, |byte| *byte == 0);
    let whole = parts.next().unwrap_or_default();
    let end = whole.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = match end {
        Some(end) => (&whole[..end], &whole[end + 2..]),
        None => (whole, &[][..]),
    };
    let head = String::from_utf8_lossy(head).into_owned();
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let headers = lines.filter_map(|line| line.split_once(':'));
    // A zero byte cuts the body off, as a connection that breaks.
    let truncated = parts.next().is_some();
    let headers = headers
        .map(|(name, value)| (name, value.trim_ascii()))
        .filter(|(name, _)| HeaderName::try_from(*name).is_ok());
    let body = Body { bytes: body.to_vec(), truncated };
    request::answer(status.unwrap_or(200), headers, body).unwrap_or_default()
}

fn split<'a>(mut text: &'a [u8], between: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let end = text.windows(between.len()).position(|part| part == between);
        let (part, rest) = match end {
            Some(end) => (&text[..end], &text[end + between.len()..]),
            None => (text, &[][..]),
        };
        (ended, text) = (end.is_none(), rest);
        Some(part)
    })
}
