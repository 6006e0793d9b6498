//! One thing to look for, word for word.

use std::fmt;

/// The fewest characters of text that the lexical leg can find: it knows texts
/// by their runs of three.
pub const MIN_PHRASE_CHARACTERS: usize = 3;

/// Text that the lexical leg looks for as it stands: at least three characters,
/// none of them U+0000.
///
/// ```
/// use grooveseek::domain::query::Phrase;
///
/// assert_eq!(Phrase::new("評価は").unwrap().as_str(), "評価は");
/// assert_eq!(Phrase::new("評価"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phrase(String);

impl Phrase {
    /// Takes text over if it can be looked for.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (is_long_enough(&text) && !text.contains('\0')).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Whether text has the least number of characters that can be found.
pub(super) fn is_long_enough(text: &str) -> bool {
    text.chars().nth(MIN_PHRASE_CHARACTERS - 1).is_some()
}
