//! Match spans: where the terms of a query occur in a text.

use crate::domain::chunk::Span;
use crate::domain::query::{CompiledQuery, Phrase};

/// The most bytes of a text whose spans are computed.
pub const MAX_CONTENT_BYTES: usize = 256 * 1024;

/// The most spans of a text, and the most terms that are looked for.
pub const MAX_SPANS: usize = 100;

/// Finds where the terms of a query occur, without regard to the case of ASCII
/// letters.
///
/// Terms are the phrases of the query, or the words of its positive text if it
/// has no phrase of its own. Every term gets an equal share of the 100 spans,
/// at least one, from left to right; what overlaps is united, what only
/// touches is not. Excluded terms play no part, and neither does the order of
/// the terms.
///
/// - `content`: the text as it is returned.
/// - Returns up to 100 spans in bytes of `content`, ascending, not empty and
///   disjoint; none if they were not computed, because the query is blank, one
///   of its terms is not ASCII, or `content` exceeds 256 KiB.
///
/// ```
/// use grooveseek::domain::chunk::Span;
/// use grooveseek::domain::query::CompiledQuery;
/// use grooveseek::domain::spans::match_spans;
///
/// let query = CompiledQuery::compile("tokio spawn").unwrap();
/// let spans = match_spans(&query, "Use tokio::spawn for async tasks.").unwrap();
/// assert_eq!(spans, [Span { start: 4, end: 9 }, Span { start: 11, end: 16 }]);
/// assert_eq!(match_spans(&query, "Nothing here."), Some(Vec::new()));
/// ```
pub fn match_spans(query: &CompiledQuery, content: &str) -> Option<Vec<Span>> {
    if content.len() > MAX_CONTENT_BYTES {
        return None;
    }
    let terms = terms(query)?;
    let share = (MAX_SPANS / terms.len().max(1)).max(1);
    let content = content.to_ascii_lowercase();
    let spans = terms
        .iter()
        .flat_map(|term| content.match_indices(term.as_str()).take(share))
        .map(|(start, found)| Span { start, end: start + found.len() })
        .collect();
    Some(unite(spans))
}

/// What is looked for, in lower case, ascending and distinct; none if there is
/// nothing or if it cannot be looked for.
fn terms(query: &CompiledQuery) -> Option<Vec<String>> {
    let words: Vec<&str> = if query.used_fallback() || query.include().is_empty() {
        query.positive_text().split_whitespace().collect()
    } else {
        query.include().iter().map(Phrase::as_str).collect()
    };
    if words.is_empty() || !words.iter().all(|word| word.is_ascii()) {
        return None;
    }
    let mut terms: Vec<String> = words.into_iter().map(str::to_ascii_lowercase).collect();
    terms.sort_unstable();
    terms.dedup();
    terms.truncate(MAX_SPANS);
    Some(terms)
}

/// Sorts spans and unites those that overlap.
pub(super) fn unite(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut united: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match united.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => united.push(span),
        }
    }
    united
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spans(query: &str, content: &str) -> Option<Vec<(usize, usize)>> {
        let query = CompiledQuery::compile(query).unwrap();
        let spans = match_spans(&query, content)?;
        Some(spans.into_iter().map(|span| (span.start, span.end)).collect())
    }

    // SRCH-157 SRCH-152
    #[test]
    fn the_vectors_hold() {
        let tokio = "Use tokio::spawn for async tasks.";
        assert_eq!(spans("tokio spawn", tokio).unwrap(), [(4, 9), (11, 16)]);
        assert_eq!(spans("\"Foundry Local\" Foundry", "Foundry Local").unwrap(), [(0, 13)]);
        assert_eq!(spans("a b", "aab").unwrap(), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(spans("rust、tokio", tokio).unwrap(), [(4, 9)]);
        assert_eq!(spans("再 tokio", tokio).unwrap(), [(4, 9)]);
        assert_eq!(spans("評価手法 tokio", tokio), None);
    }

    // SRCH-150
    #[test]
    fn not_computed_and_nothing_found_are_told_apart() {
        assert_eq!(spans("tokio", "nothing"), Some(Vec::new()));
        assert_eq!(spans("", "text"), None);
        assert_eq!(spans(" \u{3000}", "text"), None);
        assert_eq!(spans("café", "café"), None);
        assert_eq!(spans("再 a", "a"), None);
        let limit = "x".repeat(262_144);
        assert_eq!(spans("abc", &limit), Some(Vec::new()));
        assert_eq!(spans("abc", &(limit + "x")), None);
    }

    // SRCH-151 SRCH-153
    #[test]
    fn spans_count_bytes_and_ignore_the_case_of_ascii_letters() {
        assert_eq!(spans("TOKIO", "再Tokioé toKIO").unwrap(), [(3, 8), (11, 16)]);
    }

    // SRCH-153
    #[test]
    fn terms_share_the_spans_equally() {
        let content = "foo ".repeat(150) + &"bar ".repeat(10);
        assert_eq!(spans("foo", &content).unwrap().len(), 100);
        // What `bar` leaves over is not given to `foo`.
        assert_eq!(spans("foo bar", &content).unwrap().len(), 60);
        assert_eq!(spans("foo Foo FOO bar", &content).unwrap().len(), 60);
        // Occurrences of one term do not overlap.
        assert_eq!(spans("aaa", "aaaaaaa").unwrap(), [(0, 3), (3, 6)]);
    }

    // SRCH-153 SRCH-154
    #[test]
    fn of_more_than_a_hundred_terms_the_first_hundred_are_looked_for() {
        let words: Vec<String> = (0..120)
            .map(|n| format!("{}{}", char::from(b'a' + n / 26), char::from(b'a' + n % 26)))
            .collect();
        let found = spans(&words.join(" "), &words.join(" ")).unwrap();
        assert_eq!(found.len(), 100);
        assert_eq!(found.last(), Some(&(297, 299)));
    }

    // SRCH-154
    #[test]
    fn what_overlaps_is_united_and_what_touches_is_not() {
        assert_eq!(spans("abcd cdef", "abcdef").unwrap(), [(0, 6)]);
        assert_eq!(spans("abc def", "abcdef").unwrap(), [(0, 3), (3, 6)]);
        assert_eq!(spans("abcdef bcd", "abcdef").unwrap(), [(0, 6)]);
    }

    // SRCH-156
    #[test]
    fn excluded_terms_are_not_highlighted() {
        assert_eq!(spans("tokio -spawn", "tokio spawn").unwrap(), [(0, 5)]);
        assert_eq!(spans("-spawn c d", "c spawn").unwrap(), [(0, 1)]);
    }

    fn words() -> impl Strategy<Value = Vec<String>> {
        proptest::collection::vec("[a-cA-C]{1,4}", 1..12)
    }

    proptest! {
        // SRCH-151 SRCH-154
        #[test]
        fn spans_are_sorted_disjoint_and_on_character_boundaries(
            words in words(),
            content in "[a-cA-C 語é]{0,80}",
        ) {
            let query = CompiledQuery::compile(&words.join(" ")).unwrap();
            let found = match_spans(&query, &content).unwrap();
            prop_assert!(found.len() <= 100);
            prop_assert!(found.iter().all(|span| span.start < span.end));
            prop_assert!(found.is_sorted_by(|a, b| a.end <= b.start));
            prop_assert!(found.iter().all(|span| content.get(span.start..span.end).is_some()));
            prop_assert_eq!(unite(found.clone()), found);
        }

        // SRCH-155
        #[test]
        fn the_order_of_words_does_not_matter(
            (words, shuffled) in words().prop_flat_map(|words| {
                (Just(words.clone()), Just(words).prop_shuffle())
            }),
            content in "[a-c ]{0,80}",
        ) {
            prop_assert_eq!(
                spans(&words.join(" "), &content),
                spans(&shuffled.join(" "), &content)
            );
        }

        // SRCH-155
        #[test]
        fn every_term_that_occurs_is_covered(words in words(), content in "[a-c ]{0,80}") {
            let query = CompiledQuery::compile(&words.join(" ")).unwrap();
            let found = match_spans(&query, &content).unwrap();
            for term in terms(&query).unwrap() {
                if let Some(start) = content.find(&term) {
                    let end = start + term.len();
                    let is_covered = found.iter().any(|s| s.start <= start && end <= s.end);
                    prop_assert!(is_covered, "{term} in {content}");
                }
            }
        }

        // SRCH-154
        #[test]
        fn uniting_loses_and_adds_no_byte(
            pairs in proptest::collection::vec((0_usize..40, 1_usize..6), 0..20),
        ) {
            let spans: Vec<Span> = pairs
                .iter()
                .map(|&(start, length)| Span { start, end: start + length })
                .collect();
            let covers = |spans: &[Span], at| spans.iter().any(|s| (s.start..s.end).contains(&at));
            let united = unite(spans.clone());
            for at in 0..48 {
                prop_assert_eq!(covers(&spans, at), covers(&united, at));
            }
        }

        // SRCH-150
        #[test]
        fn no_text_makes_it_panic(raw in any::<String>(), content in any::<String>()) {
            if let Ok(query) = CompiledQuery::compile(&raw) {
                let found = match_spans(&query, &content).unwrap_or_default();
                prop_assert!(found.iter().all(|span| content.get(span.start..span.end).is_some()));
            }
        }
    }
}
