//! From what was typed to what both legs look for.

mod phrase;
mod scan;
mod terms;

mod compiled;
mod full_text;

pub use compiled::{CompiledQuery, MAX_QUERY_BYTES, PHRASE_BUDGET, QueryError};
pub use full_text::full_text_expression;
pub use phrase::{MIN_PHRASE_CHARACTERS, Phrase};

/// Whether a character belongs to words that stand between spaces: true of
/// letters and digits but for Kanji and kana, of the hyphen and the underscore.
pub fn is_spaced(character: char) -> bool {
    terms::is_spaced(character)
}

#[cfg(test)]
mod tests;
