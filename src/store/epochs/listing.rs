//! The names of epochs, and one page of a bucket's listing, read as far as an elector needs it.
//!
//! ```xml
//! <ListBucketResult><IsTruncated>false</IsTruncated>
//!   <Contents><Key>leader/my-group/lock_0000000001.json</Key><LastModified>…</LastModified>…</Contents>
//! </ListBucketResult>
//! ```
//!
//! Source of the format: <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use crate::calendar;
use crate::planted::planted;

/// The highest number of ten digits; no epoch follows it.
pub(super) const LAST: u64 = 9_999_999_999;

/// What all names begin with; a listing asks for no others.
pub(super) const BEGINNING: &str = "lock";

/// The longest text of an element that is kept, in bytes; keys have at most 1,024, tokens somewhat more.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// One epoch's object, by its name. The greater of two is the newer; of two with the same number, made by members
/// that write different names, it is the one with a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Epoch {
    pub number: u64,
    /// `lock-0000000001.json` and not `lock_0000000001.json`.
    pub dashed: bool,
}

impl Epoch {
    /// The first epoch of a group.
    pub const FIRST: Self = Self { number: 1, dashed: false };

    /// The name without its folder: ten digits, padded with zeros.
    pub fn name(self) -> String {
        let digits = self.number.to_string();
        let zeros = "0000000000".get(digits.len()..).unwrap_or_default();
        let separator = if self.dashed { "-" } else { "_" };
        format!("{}{separator}{zeros}{digits}.json", BEGINNING)
    }

    /// The epoch that a name names; nothing for every other name.
    pub fn of(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(BEGINNING)?;
        let dashed = match rest.as_bytes().first()? {
            b'_' => false,
            b'-' => true,
            _ => return None,
        };
        let digits = rest[1..].strip_suffix(".json")?;
        let plain = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| plain)?;
        Some(Self { number, dashed })
    }

    /// The one that succeeds it, named as it is, so that members who use this name compete for the same object.
    pub fn next(self) -> Option<Self> {
        (self.number < LAST).then(|| Self { number: self.number + 1, ..self })
    }
}

/// What the pages of one listing have shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// The newest two, the newest first, with its `LastModified` in whole seconds since the Unix epoch.
    pub newest: Option<(Epoch, Option<u64>)>,
    /// The newest one's ETag.
    pub etag: Option<String>,
    pub second: Option<Epoch>,
    /// The second's `LastModified`, the same.
    pub second_s: Option<u64>,
    /// The oldest, the same.
    pub oldest: Option<(Epoch, Option<u64>)>,
    /// How many epochs there are.
    pub count: u32,
}

impl Listing {
    fn add(&mut self, epoch: Epoch, modified_s: Option<u64>, etag: Option<String>) {
        match self.newest {
            Some((newest, _)) if epoch == newest => return,
            Some((newest, _)) if epoch < newest => {
                if self.second < Some(epoch) {
                    (self.second, self.second_s) = (Some(epoch), modified_s);
                }
            }
            before => {
                self.second = before.map(|(epoch, _)| epoch);
                self.second_s = before.and_then(|(_, modified_s)| modified_s);
                self.newest = Some((epoch, modified_s));
                self.etag = etag;
            }
        }
        self.count = self.count.saturating_add(1);
        if self.oldest.is_none_or(|(oldest, _)| epoch < oldest) {
            self.oldest = Some((epoch, modified_s));
        }
    }

    /// Whether the newest number is there under both names, made by two members that did not see each other.
    pub fn twin(&self) -> bool {
        let newest = self.newest.map(|(newest, _)| newest.number);
        newest.is_some() && newest == self.second.map(|second| second.number)
    }

    /// Whether the newest one is listed with this ETag. Some stores leave the quotes out.
    pub fn shows(&self, etag: &str) -> bool {
        self.etag.as_ref().is_some_and(|listed| listed.trim_matches('"') == etag.trim_matches('"'))
    }

    /// An epoch that may be deleted, the oldest first: never one of the newest two, and none that was written less than so long
    /// before the newest. Somebody's creation of it may still be on its way, and would find its number free.
    pub fn spare(&self, rest_ms: u64) -> Option<Epoch> {
        let ((newest, newest_s), second) = self.newest.zip(self.second)?;
        if planted!(EpochNewestCleaned) {
            return Some(newest);
        }
        let (oldest, oldest_s) = self.oldest.filter(|(oldest, _)| oldest.number < second.number)?;
        let rested_s = newest_s.zip(oldest_s).map(|(now_s, then_s)| now_s.saturating_sub(then_s));
        let rested = rested_s.is_some_and(|s| s.saturating_mul(1_000) > rest_ms);
        rested.then_some(oldest)
    }
}

/// Adds one page to a listing, and gives the token of the next page, if there is one. Keys that are no epochs of this
/// folder, which ends with a slash, are passed over.
///
/// # Errors
/// What the page lacks; nothing may be concluded from such a listing.
pub(super) fn read_page(
    page: &[u8],
    folder: &str,
    listing: &mut Listing,
) -> Result<Option<String>, &'static str> {
    const BROKEN: &str = "the listing is no whole XML document";
    let text = String::from_utf8_lossy(page);
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
    let mut path: Vec<String> = Vec::new();
    let mut value = String::new();
    let (mut key, mut modified_s, mut etag) = (None, None, None);
    let (mut more, mut token, mut whole) = (None, None, false);
    loop {
        match reader.read_event().map_err(|_| BROKEN)? {
            Event::Start(tag) => {
                let name = tag.local_name().as_ref().to_owned();
                if path.is_empty() && (whole || name != "ListBucketResult") {
                    return Err("the answer is no listing");
                }
                if path.len() > 8 {
                    return Err(BROKEN);
                }
                path.push(name);
                value.clear();
            }
            Event::Text(text) => push(&mut value, &text.xml10_content()),
            Event::CData(text) => push(&mut value, &text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(character)) => push(&mut value, character.encode_utf8(&mut [0; 4])),
                Ok(None) => {
                    push(&mut value, resolve_predefined_entity(&reference).unwrap_or("\u{fffd}"));
                }
                Err(_) => push(&mut value, "\u{fffd}"),
            },
            Event::End(_) => {
                let open: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
                let text = value.trim();
                match open[..] {
                    ["IsTruncated"] => more = truth(text),
                    ["NextContinuationToken"] => token = Some(text.to_owned()),
                    // A key may begin or end with a space; only the exact one counts.
                    ["Contents", "Key"] => key = Some(std::mem::take(&mut value)),
                    ["Contents", "LastModified"] => modified_s = seconds(text),
                    // Some stores list none, or an empty one.
                    ["Contents", "ETag"] => {
                        etag =
                            Some(text.to_owned()).filter(|etag| !etag.trim_matches('"').is_empty());
                    }
                    ["Contents"] => {
                        let key = key.take().unwrap_or_default();
                        let (modified_s, etag) = (modified_s.take(), etag.take());
                        if let Some(epoch) = key.strip_prefix(folder).and_then(Epoch::of) {
                            listing.add(epoch, modified_s, etag);
                        }
                    }
                    _ => {}
                }
                path.pop();
                whole |= path.is_empty();
                value.clear();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (whole, more, token) {
        (false, ..) => Err(BROKEN),
        (_, None, _) => Err("the listing does not say whether it is whole"),
        (_, Some(false), _) => Ok(None),
        (_, Some(true), Some(token)) if !token.is_empty() && token.len() < MAX_TEXT_BYTES => {
            Ok(Some(token))
        }
        (_, Some(true), _) => Err("the listing goes on and does not say where"),
    }
}

fn push(value: &mut String, text: &str) {
    if value.len() + text.len() <= MAX_TEXT_BYTES {
        value.push_str(text);
    } else {
        // Longer than any key: no epoch's name, and no token that is sent back.
        value.push('\u{fffd}');
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn seconds(text: &str) -> Option<u64> {
    u64::try_from(calendar::read_rfc3339(text)?.unix_ms).ok().map(|ms| ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(keys: &[&str], rest: &str) -> String {
        let entries: String = keys
            .iter()
            .map(|key| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>2026-11-21T06:58:12.345Z\
                     </LastModified><ETag>&quot;e&quot;</ETag></Contents>"
                )
            })
            .collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>{rest}{entries}\
             </ListBucketResult>"
        )
    }

    const WHOLE: &str = "<IsTruncated>false</IsTruncated>";

    fn read(text: &str) -> Result<(Listing, Option<String>), &'static str> {
        let mut listing = Listing::default();
        let token = read_page(text.as_bytes(), "leader/g/", &mut listing)?;
        Ok((listing, token))
    }

    #[test]
    fn names_are_padded_to_ten_digits_and_both_forms_are_read() {
        assert_eq!(Epoch::FIRST.name(), "lock_0000000001.json");
        for (name, number, dashed) in [
            ("lock_0000000001.json", 1, false),
            ("lock-0000000017.json", 17, true),
            ("lock_9999999999.json", LAST, false),
            ("lock_0000000000.json", 0, false),
        ] {
            assert_eq!(Epoch::of(name), Some(Epoch { number, dashed }), "{name}");
            assert_eq!(Epoch { number, dashed }.name(), name);
        }
        for name in [
            "lock_1.json",
            "lock_00000000001.json",
            "lock_0000000001.json.bak",
            "lock+0000000001.json",
            "lock_+000000001.json",
            "lock_000000000x.json",
            "Lock_0000000001.json",
            "lock_0000000001",
            "lock",
            "lock_",
            "",
            "lock_\u{663}000000001.json",
        ] {
            assert_eq!(Epoch::of(name), None, "{name}");
        }
        assert_eq!(Epoch { number: LAST, dashed: false }.next(), None);
        assert_eq!(
            Epoch { number: 1, dashed: true }.next().unwrap().name(),
            "lock-0000000002.json"
        );
    }

    #[test]
    fn the_newest_epoch_counts_and_foreign_keys_do_not() {
        let keys = [
            "leader/g/lock-0000000003.json",
            "leader/g/lock_0000000004.json",
            "leader/g/lock_0000000002.json",
            "leader/g/lock_0000000009.json.tmp",
            "leader/g/lock_0000000008/lock_0000000099.json",
            "leader/gg/lock_0000000077.json",
            " leader/g/lock_0000000055.json",
            "leader/g/lock_&amp;&#1;&nope;0000000001.json",
        ];
        let (listing, token) = read(&page(&keys, WHOLE)).unwrap();
        let newest = Epoch { number: 4, dashed: false };
        assert_eq!(listing.newest, Some((newest, Some(1_795_244_292))));
        assert_eq!(listing.second, Some(Epoch { number: 3, dashed: true }));
        assert_eq!(
            listing.oldest.map(|(oldest, _)| oldest),
            Some(Epoch { number: 2, dashed: false })
        );
        assert_eq!(token, None);
        assert_eq!(read(&page(&[], WHOLE)).unwrap().0, Listing::default());
    }

    #[test]
    fn an_etag_that_says_nothing_is_none() {
        for (listed, etag) in [("&quot;e&quot;", Some("\"e\"")), ("&quot;&quot;", None), ("", None)]
        {
            let mut listing = Listing::default();
            let text = page(&["leader/g/lock_0000000004.json"], WHOLE);
            let text = text.replace("&quot;e&quot;", listed);
            read_page(text.as_bytes(), "leader/g/", &mut listing).unwrap();
            assert_eq!(listing.etag.as_deref(), etag, "{listed}");
        }
    }

    #[test]
    fn an_entity_in_a_key_is_read_as_what_it_stands_for() {
        let mut listing = Listing::default();
        let text = page(&["a&amp;b&#39;/lock_0000000004.json"], WHOLE);
        read_page(text.as_bytes(), "a&b'/", &mut listing).unwrap();
        assert_eq!(listing.newest.map(|(epoch, _)| epoch.number), Some(4));
    }

    #[test]
    fn the_newest_two_are_never_spare_whatever_lies_between() {
        for (keys, spare) in [
            (vec![5], None),
            (vec![5, 4], None),
            (vec![9, 2], None),
            (vec![9, 2, 1], Some(1)),
            (vec![3, 1, 2], Some(1)),
            (vec![3, 3, 3], None),
        ] {
            let mut listing = Listing::default();
            for number in &keys {
                listing.add(Epoch { number: *number, dashed: false }, Some(100 * number), None);
            }
            assert_eq!(listing.spare(30_000).map(|epoch| epoch.number), spare, "{keys:?}");
        }
        let mut listing = Listing::default();
        for dashed in [true, false] {
            listing.add(Epoch { number: 7, dashed }, Some(0), None);
        }
        listing.add(Epoch { number: 8, dashed: true }, Some(900), None);
        assert_eq!(listing.spare(30_000), None, "of one number both stay");
    }

    #[test]
    fn an_epoch_stays_while_a_creation_of_its_number_may_be_on_its_way() {
        let spare = |newest_s, oldest_s| {
            let mut listing = Listing::default();
            for (number, modified_s) in [(1, oldest_s), (3, newest_s), (2, Some(50))] {
                listing.add(Epoch { number, dashed: false }, modified_s, None);
            }
            listing.spare(30_000).map(|epoch| epoch.number)
        };
        assert_eq!(spare(Some(131), Some(100)), Some(1));
        for (newest_s, oldest_s) in
            [(Some(130), Some(100)), (Some(90), Some(100)), (None, Some(0)), (Some(900), None)]
        {
            assert_eq!(spare(newest_s, oldest_s), None, "{newest_s:?} {oldest_s:?}");
        }
    }

    #[test]
    fn a_page_that_goes_on_names_its_next() {
        let rest = "<IsTruncated>true</IsTruncated><NextContinuationToken>a/b+c=&amp;\
                    </NextContinuationToken>";
        assert_eq!(read(&page(&[], rest)).unwrap().1.as_deref(), Some("a/b+c=&"));
        for rest in [
            "<IsTruncated>true</IsTruncated>",
            "<IsTruncated>true</IsTruncated><NextContinuationToken/>",
            "<IsTruncated>yes</IsTruncated>",
            "",
        ] {
            assert!(read(&page(&[], rest)).is_err(), "{rest}");
        }
    }

    #[test]
    fn half_a_listing_and_what_is_none_prove_nothing() {
        let full = page(&["leader/g/lock_0000000004.json"], WHOLE);
        for end in 0..full.len() {
            assert!(read(&full[..end]).is_err(), "{}", &full[..end]);
        }
        for text in [
            "<html><body>hello</body></html>",
            "<Error><Code>InternalError</Code></Error>",
            "{\"IsTruncated\":false}",
            &format!("<a>{WHOLE}</a>"),
            &format!("{full}{full}"),
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let deep = "<ListBucketResult>".to_owned() + &"<a>".repeat(100_000);
        assert!(read(&deep).is_err());
    }
}
