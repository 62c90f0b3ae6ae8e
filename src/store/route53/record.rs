//! A lease as the values of one TXT record set.
//!
//! ```text
//! "worker-1 1795244308"
//! "~edgelect {\"leaderID\":\"worker-1\",…" "…}"
//! ```
//!
//! The first value is shardcoordinator's whole record: who holds the lock, and until when in seconds since the Unix
//! epoch. The second is the native document. It is a value of its own and no further string of the first, because
//! shardcoordinator takes its record set's first value whole; and it begins with a tilde so that it comes last, also
//! where values are sorted.
//!
//! Sources: <https://github.com/gurre/shardcoordinator/blob/main/route53lock/route53lock.go> and
//! <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/ResourceRecordTypes.html#TXTFormat>.

use crate::calendar;
use crate::json::Object;
use crate::lease::{self, Flaw, History, Lease, Reading, Remains, Stamp};
use crate::store::Version;

/// The TTL that is written, in seconds; shardcoordinator deletes with this one and no other.
pub(super) const TTL: u32 = 60;

/// What the second value begins with.
const MARK: &str = "~edgelect ";

/// The longest string of a value between its quotes, escapes counted in full.
const MAX_STRING: usize = 255;

/// The longest value, quotes and all.
const MAX_VALUE: usize = 4_000;

/// The longest set of values that can still be deleted by a batch of 32,000 characters that creates ours.
const MAX_VALUES: usize = 20_000;

/// The longest owner, escapes counted in full: a blank and an epoch of 13 digits stand beside it.
pub(super) const MAX_OWNER: usize = MAX_STRING - 14;

/// What a record set says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A record of edgelect's.
    Native {
        /// The native record.
        reading: Reading,
        /// Until when the first value says that it holds, in seconds since the Unix epoch.
        epoch: u64,
    },
    /// A record of shardcoordinator's: `"owner epochSeconds"` and nothing else.
    Foreign {
        /// The owner.
        owner: String,
        /// Until when it holds the lock, in seconds since the Unix epoch, by its own clock.
        epoch: u64,
    },
}

/// Why an owner can't be written, if so.
pub(super) fn owner_flaw(owner: &str) -> Option<&'static str> {
    let blank = |character: char| character.is_whitespace() || character.is_control();
    if owner.is_empty() {
        return Some("is not empty");
    }
    if owner.chars().any(blank) {
        return Some(
            "has no space and no other blank: in a record of Route 53 the owner ends at the first one, and \
             shardcoordinator would read another name",
        );
    }
    if owner.contains(['"', '\\']) {
        return Some(
            "has no quotation mark and no backslash: shardcoordinator strips or misreads them",
        );
    }
    if owner.starts_with('~') {
        return Some("does not begin with a tilde: that marks what else is in the record");
    }
    if escaped(owner.as_bytes()).len() > MAX_OWNER {
        return Some(
            "has at most 241 bytes, a byte outside of ASCII counting four: it must fit into one string of a TXT record",
        );
    }
    None
}

/// The values of a lease that holds until `epoch` (seconds since the Unix epoch), sorted; without what is others'
/// where that does not fit. `None` if it does not fit without.
pub(super) fn write(lease: &Lease, epoch: u64) -> Option<[String; 2]> {
    let held = format!("{} {epoch}", escaped(lease.leader_id.as_bytes()));
    let first = format!("\"{held}\"");
    // A value has little room, and a history is only shown.
    let mut lease = Lease { history: History::default(), ..lease.clone() };
    let shortened: [fn(&mut Lease); 3] =
        [|_| {}, |lease| lease.extra = Object::new(), |lease| lease.slot_result = None];
    for shorten in shortened {
        shorten(&mut lease);
        let mut native = MARK.as_bytes().to_vec();
        native.extend(lease::write(&lease));
        let second = quoted_strings(&native);
        if second.len() <= MAX_VALUE {
            return Some([first, second]);
        }
    }
    None
}

/// Reads the values of a record set.
pub(super) fn read(values: &[String]) -> Option<Content> {
    let (held, native) = match values {
        [held] => (held, None),
        [one, other] if strings(one)?.first()?.starts_with(MARK.as_bytes()) => (other, Some(one)),
        [one, other] => (one, Some(other)),
        _ => return None,
    };
    let held = strings(held)?;
    let [held] = &held[..] else { return None };
    let (owner, epoch) = std::str::from_utf8(held).ok()?.split_once(' ')?;
    let plain = !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_digit());
    let epoch = epoch.parse::<u64>().ok().filter(|_| plain)?;
    let Some(native) = native else {
        // Also one that could not be ours: its epoch is to be waited out like any other.
        let named = !owner.is_empty() && !owner.chars().any(char::is_control);
        return named.then(|| Content::Foreign { owner: owner.to_owned(), epoch });
    };
    let native = strings(native)?.concat();
    let reading = lease::read(native.strip_prefix(MARK.as_bytes())?);
    match &reading {
        // Two answers to the question whose it is are none.
        Reading::Lease(lease) if lease.leader_id != owner => {
            let reading = Reading::Unreadable(Flaw::Foreign, Remains::of(lease));
            Some(Content::Native { reading, epoch })
        }
        _ => Some(Content::Native { reading, epoch }),
    }
}

/// A foreign record as a lease: watched for the own lease, and for as long as its epoch is ahead of storage time, if longer.
pub(super) fn foreign(owner: String, epoch: u64, ahead_ms: u64, own_lease_ms: u64) -> Lease {
    let lease_ms = ahead_ms.max(own_lease_ms);
    let renewed_ms = epoch.saturating_mul(1_000).saturating_sub(own_lease_ms).min(MAX_STAMP_MS);
    let last_updated = Stamp::At(i64::try_from(renewed_ms).unwrap_or(0));
    Lease { lease_ms: Some(lease_ms), ..Lease::bare(owner, last_updated) }
}

const MAX_STAMP_MS: u64 = calendar::YEAR_9999_MS.unsigned_abs();

/// The version of a record set: its values, sorted, a line each, under a line with the TTL if that is not ours. It is
/// all that a DELETE has to say. `None` if it is too long for a batch, or has what no line can carry.
pub(super) fn version(ttl: u32, values: &[String]) -> Option<Version> {
    let mut sorted: Vec<&str> = values.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    let usable = |value: &&str| value.starts_with('"') && !value.contains(|c: char| c.is_control());
    if sorted.is_empty() || !sorted.iter().all(usable) {
        return None;
    }
    let values = sorted.join("\n");
    let text = if ttl == TTL { values } else { format!("{ttl}\n{values}") };
    (text.len() <= MAX_VALUES).then_some(Version(text))
}

/// TTL and values of a version; `None` if it is none.
pub(super) fn of_version(version: &Version) -> Option<(u32, Vec<&str>)> {
    let text = version.0.as_str();
    let (ttl, values) = match text.split_once('\n') {
        Some((ttl, values)) if !ttl.starts_with('"') => (ttl.parse().ok()?, values),
        _ => (TTL, text),
    };
    let values: Vec<&str> = values.split('\n').collect();
    values.iter().all(|value| value.starts_with('"')).then_some((ttl, values))
}

/// Whether two versions are one record set: Route 53 may give a value back with other escapes than it got.
pub(super) fn same(one: &Version, other: &Version) -> bool {
    let meant = |version: &Version| {
        let (ttl, values) = of_version(version)?;
        let values: Option<Vec<_>> = values.into_iter().map(strings).collect();
        let mut values = values?;
        values.sort_unstable();
        Some((ttl, values))
    };
    one == other || meant(one).is_some_and(|one| Some(one) == meant(other))
}

/// A text as quoted strings, each of them short enough.
fn quoted_strings(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    let mut length = 0;
    for byte in bytes {
        let piece = escaped(&[*byte]);
        if length + piece.len() > MAX_STRING {
            text.push_str("\" \"");
            length = 0;
        }
        text.push_str(&piece);
        length += piece.len();
    }
    text.push('"');
    text
}

/// Printable ASCII as it is, quotation marks and backslashes behind a backslash, everything else in octal.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                text.push('\\');
                text.extend([6, 3, 0].map(|shift| char::from(b'0' + ((byte >> shift) & 7))));
            }
        }
    }
    text
}

/// The strings of a value, unescaped; `None` if it is not made of quoted strings.
fn strings(value: &str) -> Option<Vec<Vec<u8>>> {
    let mut rest = value.trim_matches([' ', '\t']);
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (string, after) = one_string(rest.strip_prefix('"')?)?;
        found.push(string);
        rest = after.trim_start_matches([' ', '\t']);
    }
    (!found.is_empty()).then_some(found)
}

/// One string up to its closing quotation mark, and what follows that.
fn one_string(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        match *text.as_bytes().get(at)? {
            b'"' => return Some((bytes, &text[at + 1..])),
            b'\\' => {
                let (byte, length) = octal(text.as_bytes().get(at + 1..)?)?;
                bytes.push(byte);
                at += 1 + length;
            }
            byte => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// What follows a backslash: three octal digits, or the character that is meant; and how many bytes that takes.
fn octal(after: &[u8]) -> Option<(u8, usize)> {
    let value = |byte: u8| (b'0'..=b'7').contains(&byte).then(|| u32::from(byte - b'0'));
    match *after {
        [a, b, c, ..] if a.is_ascii_digit() => {
            let number = value(a)? * 64 + value(b)? * 8 + value(c)?;
            Some((u8::try_from(number).ok()?, 3))
        }
        [digit, ..] if digit.is_ascii_digit() => None,
        [byte, ..] if byte.is_ascii() => Some((byte, 1)),
        _ => None,
    }
}

/// A domain name as Route 53 stores it: without the dot at its end, in lower case, its escapes undone.
pub(super) fn plain_name(name: &str) -> Option<Vec<u8>> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [byte, after @ ..] = rest {
        let (byte, length) = if *byte == b'\\' { octal(after)? } else { (*byte, 0) };
        bytes.push(byte.to_ascii_lowercase());
        rest = &after[length..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(id: &str) -> Lease {
        let id = crate::json::of(id);
        let text =
            format!(r#"{{"leaderID":{id},"session":"s","sequence":3,"term":7,"leaseMs":15000}}"#);
        match lease::read(text.as_bytes()) {
            Reading::Lease(lease) => *lease,
            other => panic!("{other:?}"),
        }
    }

    fn native(values: &[String]) -> Lease {
        match read(values) {
            Some(Content::Native { reading: Reading::Lease(lease), .. }) => *lease,
            other => panic!("{values:?} reads as {other:?}"),
        }
    }

    /// shardcoordinator's own parser, line for line.
    fn parsed_elsewhere(values: &[String]) -> Option<(&str, i64)> {
        let value = values.first()?.trim_matches('"');
        let (owner, epoch) = value.split_once(' ')?;
        Some((owner, epoch.parse().ok()?))
    }

    #[test]
    fn what_is_written_reads_back_and_shardcoordinator_reads_its_part() {
        let mut lease = lease("worker-1");
        lease.extra.set("theirs", r#"{"ü":"\" \\ \u0007 é"}"#);
        let values = write(&lease, 1_795_244_308).unwrap();
        assert_eq!(parsed_elsewhere(&values), Some(("worker-1", 1_795_244_308)));
        assert_eq!(native(&values), lease);
        let turned = [values[1].clone(), values[0].clone()];
        assert_eq!(native(&turned), lease, "in whatever order they come");
        assert!(values[0] < values[1], "and sorted, the foreign part is first");
    }

    #[test]
    fn a_history_is_left_out() {
        let lease = Lease { acquired: Some(1), ..lease("worker-1") };
        let told = Lease { history: History::after(&lease, None), ..lease.clone() };
        assert_eq!(told.history.entries().len(), 1);
        assert_eq!(write(&told, 1), write(&lease, 1));
    }

    #[test]
    fn strings_have_at_most_255_bytes_and_only_what_route_53_takes() {
        let mut lease = lease("worker-1");
        lease.leader_addr = "é\"\\\n".repeat(120);
        let values = write(&lease, 1).unwrap();
        let plain = |byte: u8| (b' '..=b'~').contains(&byte);
        assert!(values[1].bytes().all(plain), "{values:?}");
        let strings: Vec<&str> = values[1][1..values[1].len() - 1].split("\" \"").collect();
        assert!(strings.len() > 3 && strings.iter().all(|one| one.len() <= 255), "{strings:?}");
        assert!(values[1].len() <= 4_000);
        assert_eq!(native(&values).leader_addr, lease.leader_addr);
    }

    #[test]
    fn what_is_others_goes_first_where_a_value_is_full_and_what_is_ours_never() {
        let mut lease = lease("worker-1");
        lease.slot_result = Some("well".to_owned());
        lease.extra.set("theirs", format!("\"{}\"", "x".repeat(3_990)));
        let read_back = native(&write(&lease, 1).unwrap());
        assert_eq!(
            (read_back.extra.get("theirs"), &read_back.slot_result),
            (None, &lease.slot_result)
        );
        let written = (3_000..4_000).filter_map(|length| {
            lease.leader_addr = "x".repeat(length);
            Some(native(&write(&lease, 1)?))
        });
        let without = written.into_iter().find(|written| written.slot_result.is_none());
        assert_eq!(without.map(|written| written.term), Some(Some(7)));
        lease.leader_addr = "x".repeat(4_000);
        assert_eq!(write(&lease, 1), None);
    }

    #[test]
    fn a_foreign_record_is_an_owner_and_an_epoch_and_nothing_else() {
        let foreign =
            |owner: &str, epoch| Some(Content::Foreign { owner: owner.to_owned(), epoch });
        let one = |value: &str| read(&[value.to_owned()]);
        assert_eq!(one("\"worker-1 1704067200\""), foreign("worker-1", 1_704_067_200));
        assert_eq!(one("\"worker\\055\\303\\251 7\""), foreign("worker-é", 7));
        for other in [
            "",
            "worker-1 1704067200",
            "\"worker-1\"",
            "\"worker 1 1704067200\"",
            "\"worker-1 -5\"",
            "\"worker-1 +5\"",
            "\"worker-1 \"",
            "\" 1704067200\"",
            "\"worker-1 99999999999999999999\"",
            "\"worker-1 1704067200\" \"more\"",
            "\"worker-1 1704067200",
            "\"worker-1 1704067200\\\"",
            "\"worker-1\\400 1\"",
            "\"worker-1\\08 1\"",
            "\"worker-1\\377 1\"",
            "\"v=spf1 -all\"",
            "\"~edgelect {}\"",
        ] {
            assert_eq!(one(other), None, "{other}");
        }
        let values = write(&lease("worker-1"), 9).unwrap().to_vec();
        let several = [values.clone(), vec!["\"v=spf1 -all\"".to_owned()]].concat();
        assert_eq!(read(&several), None, "three values");
        let beside = [values[0].clone(), "\"v=spf1 -all\"".to_owned()];
        assert_eq!(read(&beside), None, "something else beside it");
        let stolen = ["\"worker-2 9\"".to_owned(), values[1].clone()];
        let told = Remains::of(&lease("worker-1"));
        let reading = Reading::Unreadable(Flaw::Foreign, told);
        let torn = Content::Native { reading, epoch: 9 };
        assert_eq!(read(&stolen), Some(torn), "two answers to whose it is");
    }

    #[test]
    fn a_foreign_lease_is_watched_for_the_own_lease_at_least() {
        let lease_ms = |ahead_ms| foreign("w".to_owned(), 100, ahead_ms, 15_000).lease_ms;
        assert_eq!((lease_ms(4_500), lease_ms(40_000)), (Some(15_000), Some(40_000)));
        let stamp = foreign("w".to_owned(), u64::MAX, 0, 15_000).last_updated;
        assert_eq!(stamp, Stamp::At(253_402_300_799_999));
    }

    #[test]
    fn a_version_is_all_that_a_delete_has_to_say() {
        let values = ["\"b\"".to_owned(), "\"a\" \"c\"".to_owned()];
        let usual = version(60, &values).unwrap();
        assert_eq!(of_version(&usual), Some((60, vec!["\"a\" \"c\"", "\"b\""])));
        let other = version(300, &values).unwrap();
        assert_eq!(of_version(&other), Some((300, vec!["\"a\" \"c\"", "\"b\""])));
        assert_ne!(usual, other);
        assert!(!same(&usual, &other));
        for unusable in ["", "a", "\"a\nb\"", "\"a\u{7f}\""] {
            assert_eq!(version(60, &[unusable.to_owned()]), None, "{unusable:?}");
        }
        assert_eq!(version(60, &[]), None);
        assert_eq!(version(60, &vec![format!("\"{}\"", "x".repeat(250)); 80]), None);
        for unusable in ["", "x", "60", "60\n", "60\nx", "-1\n\"a\"", "\"a\"\nb"] {
            assert_eq!(of_version(&Version(unusable.to_owned())), None, "{unusable:?}");
        }
        let escaped = version(60, &["\"\\141\"".to_owned(), "\"b\"".to_owned()]).unwrap();
        assert!(same(&escaped, &version(60, &["\"b\"".to_owned(), "\"a\"".to_owned()]).unwrap()));
    }

    #[test]
    fn an_owner_without_blanks_that_fits_is_an_owner() {
        for owner in
            ["a", "worker-1", "a.b:c/d@e#f&<>", "wörker", &"x".repeat(241), &"é".repeat(30)]
        {
            assert_eq!(owner_flaw(owner), None, "{owner}");
            let values = write(&lease(owner), u64::from(u32::MAX)).unwrap();
            assert_eq!(native(&values).leader_id, owner);
            assert!(values[0].len() <= 257);
        }
        for owner in ["", "worker 1", "a\tb", "a\u{a0}b", "a\u{7}", "\"a\"", "a\\b", "~a"] {
            assert!(owner_flaw(owner).is_some(), "{owner:?}");
        }
        assert!(owner_flaw(&"x".repeat(242)).is_some() && owner_flaw(&"é".repeat(31)).is_some());
    }

    #[test]
    fn names_are_compared_without_escapes_case_and_the_dot_at_the_end() {
        assert_eq!(plain_name("Lock.Jobs.example.com."), Some(b"lock.jobs.example.com".to_vec()));
        assert_eq!(plain_name("\\052.a\\137b."), Some(b"*.a_b".to_vec()));
        assert_eq!(plain_name("a\\"), None);
        assert_eq!(plain_name("a\\99"), None);
    }
}
