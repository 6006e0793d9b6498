//! From what was typed to what both legs look for.

/// Text that the lexical leg looks for as it stands: at least three characters,
/// none of them U+0000.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Phrase(String);

impl Phrase {
    /// Takes text over if it can be looked for.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.chars().nth(2).is_some() && !text.contains('\0')).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
