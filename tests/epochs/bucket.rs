//! A bucket without `If-Match`, as HTTP requests and answers: what a store does that knows `If-None-Match: *` only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, UNIX_EPOCH};

use edgelect::request::{self, Request, Response};

pub use crate::sim::port::{add, error};
use crate::sim::port::{answer, http_date};

/// When true time began, in milliseconds since the Unix epoch.
pub const BEGAN_MS: u64 = 1_795_000_000_000;

#[derive(Clone)]
pub struct Object {
    pub bytes: Vec<u8>,
    /// By the clock of the front end that took it, since the Unix epoch.
    pub modified_ms: u64,
}

/// One bucket named `jobs`, in the path.
#[derive(Clone)]
pub struct Bucket {
    pub objects: BTreeMap<String, Object>,
    /// By how much the clock of each front end is ahead, in milliseconds.
    pub front_end_ms: Vec<u64>,
    pub undated: bool,
    /// How many keys a page has at most, whatever is asked for.
    pub page: usize,
    /// Requests by what they are.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Default for Bucket {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            front_end_ms: vec![0],
            undated: false,
            page: 1_000,
            counts: BTreeMap::new(),
        }
    }
}

fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().expect("UTF-8").into_owned()
}

impl Bucket {
    fn clock_ms(&self, now_ms: u64, front_end: usize) -> u64 {
        BEGAN_MS + now_ms + self.front_end_ms[front_end % self.front_end_ms.len()]
    }

    pub fn put(&mut self, now_ms: u64, key: &str, bytes: &[u8]) {
        let modified_ms = self.clock_ms(now_ms, 0);
        self.objects.insert(key.to_owned(), Object { bytes: bytes.to_vec(), modified_ms });
    }

    /// Carries a request out at this instant and says what is answered.
    pub fn perform(&mut self, now_ms: u64, front_end: usize, request: &Request) -> Response {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let key = decode(path.strip_prefix("/jobs/").expect("the bucket"));
        let header = |name| request::text(request.headers(), name);
        assert!(header("authorization").is_some(), "everything is signed");
        assert!(header("if-match").is_none(), "this store has no If-Match");
        let kind = match (request.method().as_str(), query, header("if-none-match")) {
            ("GET", "", None) => "get",
            ("GET", _, None) => "list",
            ("PUT", "", Some("*")) => "create",
            ("PUT", "", None) => "overwrite",
            ("DELETE", "", None) => "delete",
            other => panic!("nobody sends {other:?}"),
        };
        *self.counts.entry(kind).or_default() += 1;
        let modified_ms = self.clock_ms(now_ms, front_end);
        let bytes = request.body().clone();
        let mut response = match kind {
            "list" => self.list(query),
            "get" => match self.objects.get(&key) {
                None => error(404, "NoSuchKey"),
                Some(object) => {
                    let mut response = answer(200, object.bytes.clone());
                    add(&mut response, "etag", &etag(&object.bytes));
                    add(&mut response, "last-modified", &http_date(object.modified_ms));
                    response
                }
            },
            "create" if self.objects.contains_key(&key) => error(412, "PreconditionFailed"),
            "delete" => {
                self.objects.remove(&key);
                answer(204, Vec::new())
            }
            _ => {
                let mut response = answer(200, Vec::new());
                add(&mut response, "etag", &etag(&bytes));
                self.objects.insert(key, Object { bytes, modified_ms });
                response
            }
        };
        if !self.undated {
            add(&mut response, "date", &http_date(modified_ms));
        }
        response
    }

    /// Moves the `Date` of an answer that took so long after the request was carried out.
    pub fn dated_later(&self, response: &mut Response, slow_ms: u64) {
        if let Some(date) = request::text(response.headers(), "date") {
            let date = httpdate::parse_http_date(date).expect("a date of ours");
            let date = httpdate::fmt_http_date(date + Duration::from_millis(slow_ms));
            response.headers_mut().remove("date");
            add(response, "date", &date);
        }
    }

    fn list(&self, query: &str) -> Response {
        let parameter = |name: &str| {
            let mut parameters = query.split('&').filter_map(|pair| pair.split_once('='));
            parameters.find(|(found, _)| *found == name).map(|(_, value)| decode(value))
        };
        assert_eq!(parameter("list-type").as_deref(), Some("2"));
        let prefix = parameter("prefix").expect("a prefix");
        let asked: usize = parameter("max-keys").expect("a page size").parse().expect("a number");
        let after = parameter("continuation-token").unwrap_or_default();
        let all = self.objects.iter().filter(|(key, _)| key.starts_with(&prefix) && **key > after);
        let mut keys: Vec<_> = all.take(asked.min(self.page) + 1).collect();
        let more = keys.len() > asked.min(self.page);
        keys.truncate(asked.min(self.page));
        let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult>".to_owned();
        let escape = |key: &str| key.replace('&', "&amp;").replace('<', "&lt;");
        for (key, object) in &keys {
            let at = UNIX_EPOCH + Duration::from_millis(object.modified_ms);
            let at = time::OffsetDateTime::from(at);
            let at = at.format(&time::format_description::well_known::Rfc3339).expect("a time");
            write!(
                text,
                "<Contents><Key>{}</Key><LastModified>{at}</LastModified><ETag>{}</ETag></Contents>",
                escape(key),
                etag(&object.bytes).replace('"', "&quot;")
            )
            .expect("text");
        }
        write!(text, "<IsTruncated>{more}</IsTruncated>").expect("text");
        if let Some((last, _)) = keys.last().filter(|_| more) {
            write!(text, "<NextContinuationToken>{}</NextContinuationToken>", escape(last))
                .expect("text");
        }
        answer(200, (text + "</ListBucketResult>").into_bytes())
    }
}

/// Whether it asks for a listing.
pub fn lists(request: &Request) -> bool {
    request.uri().to_string().contains("list-type")
}
