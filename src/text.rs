//! Texts of others as errors and logs show them: cut short, with nothing that could hide in a terminal or turn the reading
//! order around.

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
