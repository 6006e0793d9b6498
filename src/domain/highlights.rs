//! Highlights: where the terms of a query occur in a text of any script, and on
//! which line.

use crate::domain::chunk::Span;
use crate::domain::fold::{FoldedText, fold};
use crate::domain::query::{CompiledQuery, MIN_PHRASE_CHARACTERS, Phrase, is_spaced};
use crate::domain::spans::{MAX_CONTENT_BYTES, MAX_SPANS, unite};

/// A place where a text fits its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Highlight {
    /// Bytes of the text, not empty.
    pub span: Span,
    /// The line on which it begins, counted from 1.
    pub line: u32,
}

/// A place in a text whose line is known: what follows it, up to the next one,
/// is counted from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A byte of the text.
    pub at: usize,
    /// Its line, counted from 1.
    pub line: u32,
}

/// Finds where the terms of a query occur, without regard to case and
/// diacritics, in any script.
///
/// Terms are the phrases of the query and the words of its plain text; one of
/// two letters is found as a word of its own only. As with
/// [`match_spans`](crate::domain::spans::match_spans), every term gets an equal
/// share of the 100 places, at least one, from left to right; what overlaps is
/// united; excluded terms and the order of terms play no part. Other forms of a
/// word are found only as far as they contain it.
///
/// - `content`: the text as it is returned.
/// - `anchors`: ascending; a text without any begins on line 1.
/// - Returns up to 100 places, ascending and disjoint; none if they were not
///   computed, because the query is blank or `content` exceeds 256 KiB.
///
/// ```
/// use grooveseek::domain::highlights::highlights;
/// use grooveseek::domain::query::CompiledQuery;
///
/// let query = CompiledQuery::compile("CAFÉ 検索").unwrap();
/// let content = "全文検索\nat the cafe";
/// let found = highlights(&query, content, &[]).unwrap();
/// let texts: Vec<&str> = found.iter().map(|it| &content[it.span.start..it.span.end]).collect();
/// assert_eq!(texts, ["検索", "cafe"]);
/// assert_eq!(found[1].line, 2);
/// ```
pub fn highlights(
    query: &CompiledQuery,
    content: &str,
    anchors: &[Anchor],
) -> Option<Vec<Highlight>> {
    if content.len() > MAX_CONTENT_BYTES {
        return None;
    }
    let terms = terms(query);
    if terms.is_empty() {
        return None;
    }
    let share = (MAX_SPANS / terms.len()).max(1);
    let text = FoldedText::new(content);
    let folded = text.as_str();
    let spans = terms
        .iter()
        .flat_map(|term| {
            let is_short =
                term.chars().count() < MIN_PHRASE_CHARACTERS && term.chars().all(is_spaced);
            let stands_alone = move |start, end| !is_short || is_word(folded, start, end);
            folded
                .match_indices(term.as_str())
                .map(|(start, found)| (start, start + found.len()))
                .filter(move |&(start, end)| stands_alone(start, end))
                .take(share)
        })
        .map(|(start, end)| {
            let (start, end) = text.original(start, end);
            Span { start, end }
        })
        .collect();
    Some(with_lines(unite(spans), content, anchors))
}

/// What is looked for, folded, ascending and distinct.
fn terms(query: &CompiledQuery) -> Vec<String> {
    let mut terms: Vec<String> = query.plain_words().map(fold).collect();
    if !query.used_fallback() {
        terms.extend(query.include().iter().map(Phrase::as_str).map(fold));
    }
    if terms.is_empty() {
        terms.extend(query.positive_text().split_whitespace().map(fold));
    }
    terms.retain(|term| !term.is_empty());
    terms.sort_unstable();
    terms.dedup();
    terms.truncate(MAX_SPANS);
    terms
}

/// Whether no letter or digit stands right before or after a part of a text.
fn is_word(text: &str, start: usize, end: usize) -> bool {
    let joins = |neighbour: char| neighbour.is_alphanumeric() && is_spaced(neighbour);
    let borders = |neighbour: Option<char>| !neighbour.is_some_and(joins);
    borders(text[..start].chars().next_back()) && borders(text[end..].chars().next())
}

/// Counts lines once from left to right.
fn with_lines(spans: Vec<Span>, content: &str, anchors: &[Anchor]) -> Vec<Highlight> {
    let mut from = Anchor { at: 0, line: 1 };
    let mut anchors = anchors.iter().peekable();
    spans
        .into_iter()
        .map(|span| {
            while let Some(anchor) = anchors.next_if(|anchor| anchor.at <= span.start) {
                from = *anchor;
            }
            let between = content.get(from.at..span.start).unwrap_or_default();
            let breaks = between.matches('\n').count();
            let line = from.line.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX));
            from = Anchor { at: span.start, line };
            Highlight { span, line }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(query: &str, content: &'a str) -> Option<Vec<&'a str>> {
        let query = CompiledQuery::compile(query).unwrap();
        let found = highlights(&query, content, &[])?;
        Some(found.iter().map(|it| &content[it.span.start..it.span.end]).collect())
    }

    fn lines(content: &str, anchors: &[Anchor]) -> Vec<u32> {
        let query = CompiledQuery::compile("here").unwrap();
        highlights(&query, content, anchors).unwrap().iter().map(|it| it.line).collect()
    }

    // SRCH-B17
    #[test]
    fn terms_of_any_script_are_found_without_case_and_accents() {
        assert_eq!(
            found("CAFÉ", "Cafe, café, CAFE\u{301}!").unwrap(),
            ["Cafe", "café", "CAFE\u{301}"]
        );
        assert_eq!(found("поиск", "Полнотекстовый ПОИСК").unwrap(), ["ПОИСК"]);
        assert_eq!(
            found("再ランキングの評価", "評価と再ランキング").unwrap(),
            ["評価", "再ランキング"]
        );
        assert_eq!(found("\"Ärger\"", "ein arger Ärger").unwrap(), ["arger", "Ärger"]);
    }

    // SRCH-B17
    #[test]
    fn a_word_of_two_letters_is_found_as_a_word_only() {
        assert_eq!(
            found("AI について", "AI said: 「AIについて」").unwrap(),
            ["AI", "AI", "について"]
        );
        assert_eq!(found("AI", "said"), Some(vec![]));
        assert_eq!(found("検索", "全文検索").unwrap(), ["検索"]);
        assert_eq!(found("の", "猫の手"), Some(vec!["の"]), "there is nothing else to show");
        assert_eq!(found("猫 v1.2.3", "v1.2.3"), Some(vec!["v1"]));
    }

    // SRCH-B17
    #[test]
    fn not_computed_and_nothing_found_are_told_apart() {
        assert_eq!(found("détour", "nothing"), Some(vec![]));
        assert_eq!(found(" \u{3000}", "text"), None);
        let limit = "é".repeat(131_072);
        assert_eq!(found("abc", &limit), Some(vec![]));
        assert_eq!(found("abc", &(limit + "x")), None);
    }

    // SRCH-B17
    #[test]
    fn terms_share_the_places_and_excluded_ones_are_not_shown() {
        assert_eq!(found("été", &"ete ".repeat(150)).unwrap().len(), 100);
        assert_eq!(found("été -hiver", "été hiver").unwrap(), ["été"]);
        assert_eq!(found("abcd cdef", "abcdef").unwrap(), ["abcdef"]);
    }

    // SRCH-B18
    #[test]
    fn lines_are_counted_from_the_first_or_from_the_anchors() {
        let content = "here\n\nhere and here\r\nhere";
        assert_eq!(lines(content, &[]), [1, 3, 3, 4]);
        assert_eq!(lines(content, &[Anchor { at: 0, line: 10 }]), [10, 12, 12, 13]);
        let anchors = [Anchor { at: 0, line: 10 }, Anchor { at: 6, line: 40 }];
        assert_eq!(lines(content, &anchors), [10, 40, 40, 41]);
    }

    proptest! {
        // SRCH-B17 SRCH-B18
        #[test]
        fn places_are_sorted_disjoint_and_on_characters(
            raw in "[a-cà-çА-В検索の \"-]{0,12}",
            content in "[a-cA-Cà-ç\u{300}А-В検索の \n]{0,60}",
        ) {
            let Ok(query) = CompiledQuery::compile(&raw) else { return Ok(()) };
            let Some(found) = highlights(&query, &content, &[]) else { return Ok(()) };
            prop_assert!(found.len() <= 100);
            prop_assert!(found.iter().all(|it| it.span.start < it.span.end));
            prop_assert!(found.is_sorted_by(|a, b| a.span.end <= b.span.start));
            for it in &found {
                prop_assert!(content.get(it.span.start..it.span.end).is_some());
                let line = content[..it.span.start].matches('\n').count() + 1;
                prop_assert_eq!(it.line as usize, line);
            }
        }

        // SRCH-B17
        #[test]
        fn what_is_ascii_is_covered_wherever_the_spans_are(
            words in proptest::collection::vec("[a-cA-C]{3,4}", 1..4),
            content in "[a-cA-C ]{0,60}",
        ) {
            let query = CompiledQuery::compile(&words.join(" ")).unwrap();
            let spans = crate::domain::spans::match_spans(&query, &content).unwrap();
            let found = highlights(&query, &content, &[]).unwrap();
            let found: Vec<Span> = found.iter().map(|it| it.span).collect();
            prop_assert_eq!(spans, found);
        }
    }
}
