//! Excerpts: answers made shorter without losing what was found.

use crate::domain::chunk::Span;
use crate::domain::search::{Budget, Hit, SearchAnswer};

/// How much of a passage an answer shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Nothing: only where it is.
    Ids,
    /// What is around the match.
    Snippets,
    /// All of it.
    #[default]
    Passages,
}

impl Detail {
    /// Every value, as [`from_name`](Self::from_name) reads it.
    pub const NAMES: [&str; 3] = ["ids", "snippets", "passages"];

    /// Reads a name; none for any other.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ids" => Some(Self::Ids),
            "snippets" => Some(Self::Snippets),
            "passages" => Some(Self::Passages),
            _ => None,
        }
    }
}

/// Bytes of a snippet.
const SNIPPET_BYTES: usize = 320;

/// To how many bytes passages are shortened, one after another, before hits are
/// left out; and the last resort after that.
const STEPS_BYTES: [usize; 3] = [1600, 800, SNIPPET_BYTES];
const LEAST_BYTES: usize = 80;

/// About how many tokens a language model takes a text for: one for three bytes
/// of ASCII, and one for every other character. Models differ; most take
/// fewer.
///
/// ```
/// use grooveseek::domain::excerpt::tokens;
///
/// assert_eq!((tokens("six 6."), tokens("全文検索")), (2, 4));
/// ```
pub fn tokens(text: &str) -> usize {
    let (mut ascii, mut others) = (0_usize, 0_usize);
    for character in text.chars() {
        if character.is_ascii() { ascii += 1 } else { others += 1 }
    }
    ascii.div_ceil(3) + others
}

/// Shows as much of each passage as is asked for.
pub fn show(answer: &mut SearchAnswer, detail: Detail) {
    for hit in &mut answer.hits {
        match detail {
            Detail::Ids => {
                hit.content.clear();
                (hit.match_spans, hit.highlights) = (None, None);
            }
            Detail::Snippets => shorten(hit, SNIPPET_BYTES),
            Detail::Passages => {}
        }
    }
}

/// Shortens a hit's passage to about so many bytes, around its first matches. A
/// match is kept whole, whatever its length; without one, the passage's
/// beginning is kept.
pub fn shorten(hit: &mut Hit, most_bytes: usize) {
    if hit.content.len() <= most_bytes {
        return;
    }
    let kept = window(&hit.content, &matches(hit), most_bytes);
    if kept == (Span { start: 0, end: hit.content.len() }) {
        return;
    }
    hit.content = hit.content[kept.start..kept.end].to_owned();
    hit.is_shortened = true;
    let inside = |span: &Span| kept.start <= span.start && span.end <= kept.end;
    let moved = |span: Span| Span { start: span.start - kept.start, end: span.end - kept.start };
    if let Some(spans) = &mut hit.match_spans {
        spans.retain(inside);
        for span in spans {
            *span = moved(*span);
        }
    }
    if let Some(highlights) = &mut hit.highlights {
        highlights.retain(|highlight| inside(&highlight.span));
        for highlight in highlights {
            highlight.span = moved(highlight.span);
        }
    }
}

/// Where a hit fits its query, ascending.
fn matches(hit: &Hit) -> Vec<Span> {
    let spans = hit.match_spans.iter().flatten().copied();
    let highlights = hit.highlights.iter().flatten().map(|highlight| highlight.span);
    let mut all: Vec<Span> = spans.chain(highlights).collect();
    all.sort_unstable();
    all
}

/// The part of a text that is kept: from the first match as far as the others
/// fit, and an equal share of what is before and behind them.
fn window(text: &str, matches: &[Span], most_bytes: usize) -> Span {
    let mut core = matches.first().copied().unwrap_or(Span { start: 0, end: 0 });
    for span in matches {
        let end = core.end.max(span.end);
        if end - core.start <= most_bytes || span.start < core.end {
            core.end = end;
        } else {
            break;
        }
    }
    let spare = most_bytes.saturating_sub(core.end - core.start);
    let before = (spare / 3).min(core.start);
    let behind = (spare - before).min(text.len() - core.end);
    let before = (spare - behind).min(core.start);
    let start = text.ceil_char_boundary(core.start - before);
    let end = text.floor_char_boundary(core.end + behind);
    let start = if start == 0 { 0 } else { start + to_a_word(&text[start..core.start]) };
    let end = if end == text.len() { end } else { end - from_a_word(&text[core.end..end]) };
    Span { start, end }
}

/// Bytes up to the first word that begins within a text; none if that leaves
/// little of it.
fn to_a_word(text: &str) -> usize {
    match text.find(char::is_whitespace) {
        Some(at) if at * 2 < text.len() => {
            let rest = &text[at..];
            at + (rest.len() - rest.trim_start().len())
        }
        _ => 0,
    }
}

/// Bytes from the end of the last word that ends within a text.
fn from_a_word(text: &str) -> usize {
    match text.rfind(char::is_whitespace) {
        Some(at) if at * 2 > text.len() => text.len() - text[..at].trim_end().len(),
        _ => 0,
    }
}

/// Makes an answer fit a budget: passages are shortened around their matches,
/// then the last hits are left out.
///
/// - `cost`: the tokens of an answer as it will be sent.
/// - Returns whether the answer fits; it has no hits left if it does not.
pub fn fit(
    answer: &mut SearchAnswer,
    max_tokens: usize,
    cost: impl Fn(&SearchAnswer) -> usize,
) -> bool {
    answer.budget = Some(Budget { max_tokens, ..Budget::default() });
    let fits = |answer: &SearchAnswer| cost(answer) <= max_tokens;
    for step in STEPS_BYTES {
        if fits(answer) {
            return true;
        }
        for hit in &mut answer.hits {
            shorten(hit, step);
        }
        count_shortened(answer);
    }
    while !fits(answer) {
        if answer.hits.len() == 1 && answer.hits[0].content.len() > LEAST_BYTES {
            let before = answer.hits[0].content.len();
            shorten(&mut answer.hits[0], LEAST_BYTES);
            if answer.hits[0].content.len() < before {
                count_shortened(answer);
                continue;
            }
        }
        if answer.hits.pop().is_none() {
            return false;
        }
        if let Some(budget) = &mut answer.budget {
            budget.left_out += 1;
        }
        count_shortened(answer);
    }
    true
}

fn count_shortened(answer: &mut SearchAnswer) {
    let shortened = answer.hits.iter().filter(|hit| hit.is_shortened).count();
    if let Some(budget) = &mut answer.budget {
        budget.shortened = shortened;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::highlights::Highlight;

    fn hit(content: &str, matches: &[&str]) -> Hit {
        let spans: Vec<Span> = matches
            .iter()
            .map(|part| {
                let start = content.find(part).unwrap();
                Span { start, end: start + part.len() }
            })
            .collect();
        let highlights = spans.iter().map(|&span| Highlight { span, line: 1 }).collect();
        Hit {
            path: "a.md".into(),
            content: content.to_owned(),
            match_spans: Some(spans),
            highlights: Some(highlights),
            ..Hit::default()
        }
    }

    fn texts(hit: &Hit) -> Vec<&str> {
        let spans = hit.match_spans.as_ref().unwrap();
        spans.iter().map(|span| &hit.content[span.start..span.end]).collect()
    }

    #[test]
    fn ids_have_no_text_and_passages_all_of_it() {
        let whole = hit(&"word ".repeat(200), &["word"]);
        let mut answer = SearchAnswer { hits: vec![whole.clone()], ..SearchAnswer::default() };
        show(&mut answer, Detail::Passages);
        assert_eq!(answer.hits, [whole]);
        show(&mut answer, Detail::Ids);
        let shown = &answer.hits[0];
        assert_eq!((shown.content.as_str(), &shown.match_spans), ("", &None));
        assert_eq!(shown.path, "a.md");
    }

    #[test]
    fn a_snippet_is_what_is_around_the_match() {
        let text = format!("{}needle in it{}", "hay ".repeat(300), " hay".repeat(300));
        let mut hit = hit(&text, &["needle", "it"]);
        shorten(&mut hit, 100);
        assert!(hit.content.len() <= 100 && hit.content.starts_with("hay "), "{}", hit.content);
        assert!(hit.content.ends_with("hay"));
        assert_eq!(texts(&hit), ["needle", "it"]);
        assert_eq!(hit.highlights.as_ref().unwrap()[0].span, hit.match_spans.as_ref().unwrap()[0]);
        assert!(hit.is_shortened);
    }

    #[test]
    fn a_match_is_kept_whole_even_if_it_is_longer_than_the_snippet() {
        let long = "x".repeat(500);
        let mut hit = hit(&format!("before {long} behind"), &[&long]);
        shorten(&mut hit, 100);
        assert_eq!((hit.content.as_str(), texts(&hit)), (long.as_str(), vec![long.as_str()]));
    }

    #[test]
    fn an_answer_is_shortened_before_hits_are_left_out() {
        let text = format!("{}needle{}", "hay ".repeat(600), " hay".repeat(600));
        let cost = |answer: &SearchAnswer| {
            answer.hits.iter().map(|hit| tokens(&hit.content) + 50).sum::<usize>()
        };
        let whole = SearchAnswer { hits: vec![hit(&text, &["needle"]); 5], ..Default::default() };
        let fitted = |max_tokens| {
            let mut answer = whole.clone();
            let fits = fit(&mut answer, max_tokens, cost);
            assert_eq!(fits, cost(&answer) <= max_tokens && !answer.hits.is_empty());
            assert!(answer.hits.iter().all(|hit| texts(hit) == ["needle"]));
            let budget = answer.budget.unwrap();
            (answer.hits.len(), budget.left_out, budget.shortened)
        };
        assert_eq!(fitted(100_000), (5, 0, 0));
        assert_eq!(fitted(3000), (5, 0, 5));
        assert_eq!(fitted(400), (2, 3, 2));
        assert_eq!(fitted(90), (1, 4, 1));
    }

    proptest! {
        #[test]
        fn what_is_kept_is_a_part_of_the_passage_and_holds_the_first_match(
            before in "\\PC{0,300}", found in "\\PC{1,40}", behind in "\\PC{0,300}",
            most in 1_usize..400,
        ) {
            let text = format!("{before}{found}{behind}");
            let span = Span { start: before.len(), end: before.len() + found.len() };
            let mut hit = Hit { content: text.clone(), match_spans: Some(vec![span]), ..Hit::default() };
            shorten(&mut hit, most);
            prop_assert!(text.contains(&hit.content));
            prop_assert_eq!(texts(&hit), [found.as_str()]);
            prop_assert!(hit.content.len() <= most.max(found.len()));
        }
    }
}
