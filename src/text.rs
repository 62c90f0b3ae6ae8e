//! Texts of others as errors and logs show them: cut short, with nothing that could hide in a terminal or turn the reading
//! order around. And the name that a misspelt one means.

use strsim::osa_distance;

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
    // Not by `to_lowercase`, whose tables are larger than all the rest of this.
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|one| !matches!(one, '_' | '-'));
        letters.map(|one| one.to_ascii_lowercase()).collect()
    };
    let misspelt = plain(first(misspelt, 60));
    let wrong = names.into_iter().map(|name| (osa_distance(&misspelt, &plain(name)), name));
    let near = wrong.filter(|(wrong, name)| *wrong <= MOST_WRONG.min(name.len() / 3));
    near.min_by_key(|(wrong, _)| *wrong).map(|(_, name)| name)
}

/// The rule that an option or variable of a name that nobody knows breaks; `rest` says where the names are.
pub fn unknown(what: &str, meant: Option<&str>, rest: &str) -> String {
    match meant {
        Some(meant) => format!("no such {what}: did you mean {meant}? {rest}"),
        None => format!("no such {what}; {rest}"),
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
            ("lockFile-Path", Some("lockfilePath")),
            ("folow", Some("follow")),
            ("secretAccessKey", None),
            ("ma", None),
            ("", None),
        ] {
            assert_eq!(nearest(misspelt, names), meant, "{misspelt}");
        }
    }
}
