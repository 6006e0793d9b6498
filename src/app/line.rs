//! Text for people who read it line by line.

use std::borrow::Cow;

/// A line that holds the name of a file: whatever the name is, it neither ends
/// the line nor speaks to the terminal. Control characters are escaped as in a
/// Rust literal.
///
/// ```
/// use grooveseek::app::line::on_one_line;
///
/// assert_eq!(on_one_line("notes/日本 é.md"), "notes/日本 é.md");
/// assert_eq!(on_one_line("a\nDone\x1b[2J.md"), "a\\nDone\\u{1b}[2J.md");
/// ```
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escaped = |character: char| -> Vec<char> {
        if character.is_control() { character.escape_default().collect() } else { vec![character] }
    };
    Cow::Owned(text.chars().flat_map(escaped).collect())
}
