//! Route 53's answers and change batches as XML, read as far as a lease needs them.
//!
//! Source of the format: <https://docs.aws.amazon.com/Route53/latest/APIReference/API_ListResourceRecordSets.html> and
//! <https://docs.aws.amazon.com/Route53/latest/APIReference/API_ChangeResourceRecordSets.html>.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::Event;

use crate::text::{MAX_CODE_BYTES, first};

/// How deep an answer may be nested; Route 53's have seven levels.
const MAX_DEPTH: usize = 16;

/// How many record sets and values are read; one set is asked for, and Route 53 keeps at most 400 values in one.
const MAX_ITEMS: usize = 512;

/// How much of a message is kept, in characters.
const MAX_MESSAGE: usize = 600;

/// An answer of Route 53.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Document {
    /// `ListResourceRecordSetsResponse`.
    Listing(Vec<RecordSet>),
    /// `ChangeResourceRecordSetsResponse`: the batch was carried out.
    Changed,
    /// `ErrorResponse`, or `InvalidChangeBatch` by itself.
    Error {
        /// `Code`: at most 64 letters, digits, dots and dashes.
        code: String,
        /// All of its messages, for finding out what is meant.
        message: String,
    },
}

/// One record set of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordSet {
    /// As it came: with a dot at its end, and escaped.
    pub name: String,
    /// `TXT`.
    pub kind: String,
    /// In seconds; none for an alias.
    pub ttl: Option<u32>,
    /// Each value as it came.
    pub values: Vec<String>,
    /// Whether it has what only an alias or a routing policy has: it can't be deleted by name and values alone.
    pub special: bool,
}

/// Reads an answer whole; `None` if it is none of the three, or no XML.
pub(super) fn read(body: &[u8]) -> Option<Document> {
    let text = std::str::from_utf8(body).ok()?;
    let mut reader = Reader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut found = Found::default();
    let mut path: Vec<String> = Vec::new();
    let mut leaf = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => {
                if path.len() == MAX_DEPTH || (path.is_empty() && found.root.is_some()) {
                    return None;
                }
                path.push(tag.local_name().as_ref().to_owned());
                leaf.clear();
                found.open(&path)?;
            }
            Event::End(_) => {
                found.leaf(&path, std::mem::take(&mut leaf))?;
                path.pop();
            }
            Event::Text(text) => leaf.push_str(&text.xml10_content()),
            Event::CData(text) => leaf.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref().ok()? {
                Some(character) => leaf.push(character),
                None => leaf.push_str(resolve_predefined_entity(&reference)?),
            },
            // Route 53 declares no entities; what declares some is something else.
            Event::DocType(_) => return None,
            Event::Eof if path.is_empty() => return found.document(),
            Event::Eof => return None,
            _ => {}
        }
        if path.is_empty() && !leaf.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n']).is_empty() {
            return None;
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    root: Option<String>,
    sets: Vec<RecordSet>,
    values: usize,
    code: String,
    messages: String,
}

impl Found {
    fn open(&mut self, path: &[String]) -> Option<()> {
        match path {
            [root] => self.root = Some(root.clone()),
            [_, sets, set] if sets == "ResourceRecordSets" && set == "ResourceRecordSet" => {
                self.sets.push(RecordSet::default());
            }
            _ => {}
        }
        (self.sets.len() <= MAX_ITEMS).then_some(())
    }

    fn leaf(&mut self, path: &[String], text: String) -> Option<()> {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names[..] {
            [_, "Error", "Code"] if self.code.is_empty() => self.code = text.trim().to_owned(),
            [_, "Error", "Message"] | [_, "Message"] => self.message(&text),
            [.., "Messages", "Message"] => self.message(&text),
            [_, "ResourceRecordSets", "ResourceRecordSet", field, ref rest @ ..] => {
                let set = self.sets.last_mut()?;
                match (field, rest) {
                    ("Name", []) => set.name = text,
                    ("Type", []) => set.kind = text,
                    ("TTL", []) => set.ttl = Some(text.trim().parse().ok()?),
                    ("ResourceRecords", ["ResourceRecord", "Value"]) => {
                        self.values += 1;
                        set.values.push(text);
                    }
                    ("ResourceRecords", _) => {}
                    _ => set.special = true,
                }
            }
            _ => {}
        }
        (self.values <= MAX_ITEMS).then_some(())
    }

    fn message(&mut self, text: &str) {
        let left = MAX_MESSAGE.saturating_sub(self.messages.len());
        self.messages.push_str(first(text, left));
        self.messages.push(' ');
    }

    fn document(self) -> Option<Document> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
        match self.root?.as_str() {
            "ListResourceRecordSetsResponse" => Some(Document::Listing(self.sets)),
            "ChangeResourceRecordSetsResponse" => Some(Document::Changed),
            "InvalidChangeBatch" => {
                let code = "InvalidChangeBatch".to_owned();
                Some(Document::Error { code, message: self.messages })
            }
            "ErrorResponse" if (1..=MAX_CODE_BYTES).contains(&self.code.len()) => {
                let usable = self.code.bytes().all(plain);
                usable.then_some(Document::Error { code: self.code, message: self.messages })
            }
            _ => None,
        }
    }
}

/// The values of one TXT record set, and the TTL that it has in seconds.
pub(super) struct Values<'a> {
    pub ttl: u32,
    pub values: Vec<&'a str>,
}

/// One batch that deletes a record set, if there is one, and creates another of the same name.
pub(super) fn batch(name: &str, old: Option<&Values<'_>>, new: &Values<'_>) -> String {
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ChangeResourceRecordSetsRequest \
         xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes>",
    );
    let changes = old.map(|old| ("DELETE", old)).into_iter().chain([("CREATE", new)]);
    for (action, set) in changes {
        let head = [
            "<Change><Action>",
            action,
            "</Action><ResourceRecordSet><Name>",
            &escape(name),
            "</Name><Type>TXT</Type><TTL>",
            &set.ttl.to_string(),
            "</TTL><ResourceRecords>",
        ];
        text.push_str(&head.concat());
        for value in &set.values {
            let value =
                format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", escape(*value));
            text.push_str(&value);
        }
        text.push_str("</ResourceRecords></ResourceRecordSet></Change>");
    }
    text.push_str("</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(inside: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<ListResourceRecordSetsResponse \
             xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ResourceRecordSets>{inside}</ResourceRecordSets><IsTruncated>false</IsTruncated></ListResourceRecordSetsResponse>\n"
        )
    }

    fn sets(inside: &str) -> Vec<RecordSet> {
        match read(listing(inside).as_bytes()) {
            Some(Document::Listing(sets)) => sets,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_listing_gives_names_values_and_what_can_not_be_deleted_by_them() {
        let inside = "<ResourceRecordSet><Name>lock.a.example.com.</Name><Type>TXT</Type><TTL>60</TTL>\
        <ResourceRecords>\
                      <ResourceRecord><Value>&quot;a &amp; 1&#34; \"<![CDATA[<b>]]>\"</Value></ResourceRecord>\
                      <ResourceRecord><Value>&quot;c&#x22;</Value></ResourceRecord></ResourceRecords>\
                      </ResourceRecordSet>";
        let found = sets(inside);
        assert_eq!(found[0].values, ["\"a & 1\" \"<b>\"", "\"c\""]);
        assert_eq!(
            (found[0].ttl, found[0].kind.as_str(), found[0].special),
            (Some(60), "TXT", false)
        );
        let weighted =
            inside.replace("<TTL>", "<SetIdentifier>x</SetIdentifier><Weight>1</Weight><TTL>");
        assert!(sets(&weighted)[0].special);
        assert!(sets("").is_empty());
    }

    #[test]
    fn both_forms_of_an_error_are_read() {
        let error = |code: &str, message: &str| {
            Some(Document::Error { code: code.to_owned(), message: message.to_owned() })
        };
        let usual = "<ErrorResponse xmlns=\"x\"><Error><Type>Sender</Type><Code>NoSuchHostedZone</Code>\
        <Message>No zone &lt;Z&gt;\
                     </Message></Error><RequestId>1</RequestId></ErrorResponse>";
        assert_eq!(read(usual.as_bytes()), error("NoSuchHostedZone", "No zone <Z> "));
        let bare = "<InvalidChangeBatch xmlns=\"x\"><Messages><Message>Tried to a</Message>\
        <Message>b</Message></Messages>\
                    <RequestId>1</RequestId></InvalidChangeBatch>";
        assert_eq!(read(bare.as_bytes()), error("InvalidChangeBatch", "Tried to a b "));
        let long = usual.replace("No zone", &"é".repeat(10_000));
        assert!(
            matches!(read(long.as_bytes()), Some(Document::Error { message, .. }) if message.len() < 1_300)
        );
        assert_eq!(read(usual.replace("NoSuchHostedZone", "a b").as_bytes()), None);
    }

    #[test]
    fn what_is_not_whole_or_not_plain_xml_says_nothing() {
        let good =
            listing("<ResourceRecordSet><Name>a.</Name><Type>TXT</Type></ResourceRecordSet>");
        assert!(read(good.as_bytes()).is_some());
        let cut_off =
            (0..good.trim_end().len()).filter(|at| read(&good.as_bytes()[..*at]).is_some());
        assert_eq!(cut_off.count(), 0, "no beginning of an answer is an answer");
        let deep = format!("{}{}", "<a>".repeat(60_000), "</a>".repeat(60_000));
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>".to_owned();
        let bodies = [
            String::new(),
            "null".to_owned(),
            format!("{good}{good}"),
            format!("{good}x"),
            format!("x{good}"),
            format!("{bomb}{good}"),
            good.replace("a.", "&b;"),
            good.replace("a.", "&#0;"),
            good.replace("a.", "&#xD800;"),
            good.replace("a.", "&"),
            good.replace("<Name>", "<TTL>-1</TTL><Name>"),
            good.replace("</Name>", "</Naem>"),
            good.replace(
                "</ResourceRecordSet>",
                "</ResourceRecordSet><ResourceRecordSet/>".repeat(600).as_str(),
            ),
            deep,
        ];
        for body in bodies {
            assert_eq!(read(body.as_bytes()), None, "{}", first(&body, 200));
        }
        let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf16), None);
        assert_eq!(read(&[good.as_bytes(), &[0xff]].concat()), None);
    }

    #[test]
    fn a_batch_escapes_what_it_carries() {
        let old = Values { ttl: 300, values: vec!["\"a<&>'\""] };
        let text = batch("lock.a", Some(&old), &Values { ttl: 60, values: vec!["\"b\""] });
        let delete = text.find("<Action>DELETE").unwrap();
        assert!(delete < text.find("<Action>CREATE").unwrap());
        assert!(
            text.contains("<TTL>300</TTL>") && text.contains("&quot;a&lt;&amp;&gt;&apos;&quot;"),
            "{text}"
        );
        assert!(!batch("lock.a", None, &old).contains("DELETE"));
    }
}
