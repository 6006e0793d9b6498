//! Phrases as an expression of SQLite's full-text index.

use super::phrase::Phrase;

/// Writes phrases as an FTS5 expression that matches where any of `include`
/// occurs and none of `exclude` does.
///
/// Every phrase stands in a quoted string, so no text can break the syntax.
/// What `exclude` alone would match is the expression with `exclude` given as
/// `include`.
///
/// - Returns none if `include` is empty, because FTS5 cannot express "all but".
///
/// ```
/// use grooveseek::domain::query::{Phrase, full_text_expression};
///
/// let phrases = |texts: &[&str]| -> Vec<Phrase> {
///     texts.iter().filter_map(|&text| Phrase::new(text)).collect()
/// };
/// let include = phrases(&["rust", "say \"hi\""]);
/// assert_eq!(
///     full_text_expression(&include, &phrases(&["async"])).unwrap(),
///     r#"("rust" OR "say ""hi""") NOT ("async")"#,
/// );
/// assert_eq!(full_text_expression(&[], &include), None);
/// ```
pub fn full_text_expression(include: &[Phrase], exclude: &[Phrase]) -> Option<String> {
    match (include, exclude) {
        ([], _) => None,
        (_, []) => Some(any_of(include)),
        // FTS5 binds NOT tighter than OR, hence the parentheses.
        _ => Some(format!("({}) NOT ({})", any_of(include), any_of(exclude))),
    }
}

fn any_of(phrases: &[Phrase]) -> String {
    let quoted: Vec<String> = phrases
        .iter()
        .map(|phrase| format!("\"{}\"", phrase.as_str().replace('"', "\"\"")))
        .collect();
    quoted.join(" OR ")
}
