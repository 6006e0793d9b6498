//! Parent expansion: widening a hit to its document or its neighbours.

use std::ops::RangeInclusive;

use crate::domain::chunk::{Chunk, LineRange};
use crate::domain::highlights::Anchor;
use crate::domain::search::Expansion;

/// How far a hit may be widened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentBudget {
    /// A hit under this many tokens is widened to its whole document.
    pub whole_doc_threshold_tokens: u32,
    /// The most tokens of a widened hit.
    pub max_expanded_tokens: u32,
}

/// A chunk of the hit's document.
#[derive(Clone, Copy, Debug)]
pub struct Sibling<'a> {
    /// The chunk.
    pub chunk: &'a Chunk,
    /// The stored estimate of its tokens; 0 if there is none.
    pub token_count: u32,
    /// Its place in the document, counted from 0.
    pub index: u32,
}

impl Sibling<'_> {
    fn tokens(&self) -> u64 {
        match self.token_count {
            0 => self.chunk.content.len() as u64 / 4,
            stored => u64::from(stored),
        }
    }
}

/// A widened hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expanded {
    /// The text.
    pub content: String,
    /// What it was made of.
    pub from: Expansion,
    /// Where the text lies, if every part has a place.
    pub lines: Option<LineRange>,
    /// The line on which each part begins; none if not every part has a place.
    pub anchors: Vec<Anchor>,
    /// The grammar's word for the definition, if the text is one chunk.
    pub symbol_kind: Option<String>,
}

/// Which chunks of its document [`expand`] looks at for one hit.
///
/// - `index`: the hit's place in its document.
/// - `token_count`: the stored estimate of its tokens; 0 if there is none.
/// - `total`: how many chunks the document has.
/// - Returns the whole document if the hit is short and the document has no
///   more than twice `max_expanded_tokens` and 64 chunks; else the hit with the
///   chunks before and after it.
pub fn needed(
    index: u32,
    token_count: u32,
    total: u32,
    budget: ParentBudget,
) -> RangeInclusive<u32> {
    let last = total.saturating_sub(1).max(index);
    if is_short(token_count, budget) && is_countable(total, budget) {
        return 0..=last;
    }
    index.saturating_sub(1)..=index.saturating_add(1).min(last)
}

fn is_short(token_count: u32, budget: ParentBudget) -> bool {
    token_count > 0 && token_count < budget.whole_doc_threshold_tokens
}

fn is_countable(total: u32, budget: ParentBudget) -> bool {
    u64::from(total) <= 2 * u64::from(budget.max_expanded_tokens) + 64
}

/// Widens one hit.
///
/// - `siblings`: chunks of the hit's document in order, those of [`needed`] at
///   least.
/// - `hit`: the hit's place among them.
/// - `total`: how many chunks the document has.
/// - Returns nothing if `hit` is no place among them.
///
/// A short hit becomes its whole document if that fits the budget; any other
/// hit, and a short one whose document is too large, is joined with the chunks
/// before and after it if they fit, and stays as it is if they do not.
pub fn expand(
    siblings: &[Sibling<'_>],
    hit: usize,
    total: u32,
    budget: ParentBudget,
) -> Option<Expanded> {
    let own = siblings.get(hit)?;
    let max = u64::from(budget.max_expanded_tokens);
    let fits = |part: &[Sibling<'_>]| part.iter().map(Sibling::tokens).sum::<u64>() <= max;

    let is_whole = siblings.len() > 1 && siblings.len() == total as usize;
    let short = is_short(own.token_count, budget) && is_countable(total, budget);
    if short && is_whole && fits(siblings) {
        return Some(join(siblings, Expansion::WholeDocument { total_chunks: total }));
    }
    let (first, last) = (hit.saturating_sub(1), (hit + 1).min(siblings.len() - 1));
    let (first, last) = if fits(&siblings[first..=last]) { (first, last) } else { (hit, hit) };
    let (from_index, to_index) = (siblings[first].index, siblings[last].index);
    Some(join(&siblings[first..=last], Expansion::Adjacent { from_index, to_index }))
}

/// What stands between the texts of two chunks.
const BETWEEN: &str = "\n\n";

fn join(parts: &[Sibling<'_>], from: Expansion) -> Expanded {
    let mut content = String::new();
    let mut anchors = Vec::with_capacity(parts.len());
    for part in parts {
        if !anchors.is_empty() {
            content.push_str(BETWEEN);
        }
        let line = part.chunk.lines.map(|lines| lines.start);
        anchors.push(line.map(|line| Anchor { at: content.len(), line }));
        content.push_str(&part.chunk.content);
    }
    let lines = parts
        .iter()
        .map(|part| part.chunk.lines)
        .reduce(|left, right| {
            let (left, right) = (left?, right?);
            Some(LineRange { start: left.start.min(right.start), end: left.end.max(right.end) })
        })
        .flatten();
    let symbol_kind = match parts {
        [only] => only.chunk.symbol_kind.clone(),
        _ => None,
    };
    let anchors = anchors.into_iter().collect::<Option<_>>().unwrap_or_default();
    Expanded { content, from, lines, anchors, symbol_kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(sizes: &[usize]) -> Vec<Chunk> {
        let content = |(index, &size): (usize, &usize)| Chunk {
            content: char::from(b'a' + u8::try_from(index).unwrap()).to_string().repeat(size),
            lines: Some(LineRange {
                start: u32::try_from(index).unwrap() * 10 + 1,
                end: u32::try_from(index).unwrap() * 10 + 9,
            }),
            symbol_kind: Some("function".into()),
            ..Chunk::default()
        };
        sizes.iter().enumerate().map(content).collect()
    }

    fn expanded(sizes: &[usize], hit: usize, threshold: u32, max: u32) -> Expanded {
        let chunks = chunks(sizes);
        let siblings = siblings(&chunks, Chunk::token_count);
        let budget =
            ParentBudget { whole_doc_threshold_tokens: threshold, max_expanded_tokens: max };
        expand(&siblings, hit, number(sizes.len()), budget).unwrap()
    }

    fn number(count: usize) -> u32 {
        u32::try_from(count).unwrap()
    }

    fn siblings(chunks: &[Chunk], tokens: impl Fn(&Chunk) -> u32) -> Vec<Sibling<'_>> {
        let sibling = |(index, chunk)| Sibling { chunk, token_count: tokens(chunk), index };
        (0..).zip(chunks).map(sibling).collect()
    }

    // SRCH-130 SRCH-132
    #[test]
    fn a_short_hit_becomes_its_document() {
        let whole = expanded(&[40, 400, 40, 40], 0, 100, 2000);
        assert_eq!(whole.from, Expansion::WholeDocument { total_chunks: 4 });
        assert_eq!(whole.content.matches("\n\n").count(), 3);
    }

    // SRCH-130 SRCH-133
    #[test]
    fn a_longer_hit_is_joined_with_its_neighbours() {
        let adjacent = expanded(&[40, 40, 400, 40, 40], 2, 100, 2000);
        assert_eq!(adjacent.from, Expansion::Adjacent { from_index: 1, to_index: 3 });
        assert!(adjacent.content.starts_with("bbbb") && adjacent.content.ends_with("dddd"));
    }

    // SRCH-132 SRCH-134
    #[test]
    fn what_does_not_fit_is_left_as_it_is_and_says_so() {
        let own = Expansion::Adjacent { from_index: 0, to_index: 0 };
        assert_eq!(expanded(&[40, 8000], 0, 100, 2000).from, own);
        assert_eq!(expanded(&[40], 0, 100, 2000).from, own);
    }

    // SRCH-136
    #[test]
    fn a_merged_text_spans_the_lines_of_its_parts_and_is_no_definition() {
        let merged = expanded(&[400, 400], 0, 100, 2000);
        assert_eq!(merged.lines, Some(LineRange { start: 1, end: 19 }));
        assert_eq!(merged.symbol_kind, None);
        let single = expanded(&[400], 0, 100, 2000);
        assert_eq!(single.symbol_kind.as_deref(), Some("function"));
    }

    // SRCH-136
    #[test]
    fn one_part_without_lines_leaves_the_whole_without() {
        let mut chunks = chunks(&[400, 400]);
        chunks[1].lines = None;
        let siblings = siblings(&chunks, |_| 0);
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2000 };
        assert_eq!(expand(&siblings, 0, 2, budget).unwrap().lines, None);
    }

    // SRCH-131
    #[test]
    fn a_missing_estimate_is_made_from_the_bytes() {
        let chunks = chunks(&[4000, 4000, 4000]);
        let siblings = siblings(&chunks, |_| 0);
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2999 };
        let own = Expansion::Adjacent { from_index: 1, to_index: 1 };
        assert_eq!(expand(&siblings, 1, 3, budget).unwrap().from, own);
        let budget = ParentBudget { max_expanded_tokens: 3000, ..budget };
        let all = Expansion::Adjacent { from_index: 0, to_index: 2 };
        assert_eq!(expand(&siblings, 1, 3, budget).unwrap().from, all);
    }

    // SRCH-B18 SRCH-136
    #[test]
    fn each_part_says_on_which_line_it_begins() {
        let mut chunks = chunks(&[400, 400]);
        let anchors = |chunks: &[Chunk]| {
            let budget =
                ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2000 };
            expand(&siblings(chunks, |_| 0), 0, 2, budget).unwrap().anchors
        };
        let second = Anchor { at: 402, line: 11 };
        assert_eq!(anchors(&chunks), [Anchor { at: 0, line: 1 }, second]);
        chunks[1].lines = None;
        assert!(anchors(&chunks).is_empty());
    }

    // SRCH-132 SRCH-133
    #[test]
    fn no_more_is_needed_than_a_hit_can_be_widened_to() {
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 200 };
        assert_eq!(needed(7, 99, 464, budget), 0..=463);
        assert_eq!(needed(7, 99, 465, budget), 6..=8, "too many chunks to fit");
        assert_eq!(needed(7, 100, 20, budget), 6..=8, "not short");
        assert_eq!(needed(7, 0, 20, budget), 6..=8, "no estimate");
        assert_eq!(needed(0, 100, 20, budget), 0..=1);
        assert_eq!(needed(19, 100, 20, budget), 18..=19);
        assert_eq!(needed(0, 100, 1, budget), 0..=0);
    }

    // SRCH-132 SRCH-134
    #[test]
    fn a_part_of_a_document_is_never_taken_for_the_whole() {
        let chunks = chunks(&[40, 40, 40]);
        let siblings = siblings(&chunks, Chunk::token_count);
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2000 };
        let part = expand(&siblings[1..], 1, 3, budget).unwrap();
        assert_eq!(part.from, Expansion::Adjacent { from_index: 1, to_index: 2 });
    }
}
