//! From what was typed to what both legs look for.

mod phrase;
mod scan;
mod terms;

mod compiled;
mod full_text;

pub use compiled::{CompiledQuery, MAX_QUERY_BYTES, PHRASE_BUDGET, QueryError};
pub use full_text::full_text_expression;
pub use phrase::{MIN_PHRASE_CHARACTERS, Phrase};

#[cfg(test)]
mod tests;
