//! Texts of others as errors and logs show them: cut short, with nothing that could hide in a terminal or turn the reading
//! order around. And the name that a misspelt one means.

use strsim::osa_distance;

/// The longest code of an error that is believed and shown, in bytes. A signature has 64.
pub const MAX_CODE_BYTES: usize = 63;

/// How many letters of a misspelt name may be wrong.
const MOST_WRONG: usize = 3;

/// A text between quotation marks.
pub fn quoted(text: &str) -> String {
    format!("{text:?}")
}

/// A text without quotation marks around it.
pub fn visible(text: &str) -> String {
    text.escape_debug().to_string()
}

/// The first characters of a text.
pub fn first(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// The nearest of these names to a misspelt one, whatever its case and separators. None where even that is far off.
pub fn nearest<'a>(misspelt: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_of(misspelt, &mut names.into_iter())
}

/// Once for all kinds of lists.
fn nearest_of<'a>(misspelt: &str, names: &mut dyn Iterator<Item = &'a str>) -> Option<&'a str> {
    // `to_lowercase` would bring tables that are larger than all the rest of this.
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let misspelt = plain(first(misspelt, 60));
    let (mut found, mut least) = (None, MOST_WRONG + 1);
    for name in names {
        let wrong = osa_distance(&misspelt, &plain(name));
        if wrong < least && wrong <= name.len() / 3 {
            (found, least) = (Some(name), wrong);
        }
    }
    found
}

/// The rule that an option or variable of a name that nobody knows breaks; `rest` says where the names are.
pub fn unknown(what: &str, meant: Option<&str>, rest: &str) -> String {
    match meant {
        Some(meant) => ["no such ", what, ": did you mean ", meant, "? ", rest].concat(),
        None => ["no such ", what, "; ", rest].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant_or_none() {
        let names = ["leaderTimeout", "peerTimeout", "lockfilePath", "follow", "margin"];
        for (misspelt, meant) in [
            ("leaderTimeOut", Some("leaderTimeout")),
            ("leader_timeout", Some("leaderTimeout")),
            ("leaderTimeuot", Some("leaderTimeout")),
            ("LOCKFILE_PATH", Some("lockfilePath")),
            ("folow", Some("follow")),
            ("secretAccessKey", None),
            ("ma", None),
            ("", None),
        ] {
            assert_eq!(nearest(misspelt, names), meant, "{misspelt}");
        }
    }
}
