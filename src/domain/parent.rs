//! Parent expansion: widening a hit to its document or its neighbours.

use crate::domain::chunk::{Chunk, LineRange};
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
    /// The grammar's word for the definition, if the text is one chunk.
    pub symbol_kind: Option<String>,
}

/// Widens one hit.
///
/// - `siblings`: all chunks of the hit's document, in order.
/// - `hit`: the hit's place among them.
/// - Returns nothing if `hit` is no place among them.
///
/// A short hit becomes its whole document if that fits the budget; any other
/// hit, and a short one whose document is too large, is joined with the chunks
/// before and after it if they fit, and stays as it is if they do not.
pub fn expand(siblings: &[Sibling<'_>], hit: usize, budget: ParentBudget) -> Option<Expanded> {
    let own = siblings.get(hit)?;
    let max = u64::from(budget.max_expanded_tokens);
    let fits = |part: &[Sibling<'_>]| part.iter().map(Sibling::tokens).sum::<u64>() <= max;

    let short = own.token_count > 0 && own.token_count < budget.whole_doc_threshold_tokens;
    let countable = siblings.len() as u64 <= 2 * max + 64;
    if short && siblings.len() > 1 && countable && fits(siblings) {
        return Some(join(
            siblings,
            Expansion::WholeDocument { total_chunks: number(siblings.len()) },
        ));
    }
    let (first, last) = (hit.saturating_sub(1), (hit + 1).min(siblings.len() - 1));
    let (first, last) = if fits(&siblings[first..=last]) { (first, last) } else { (hit, hit) };
    let from = Expansion::Adjacent { from_index: number(first), to_index: number(last) };
    Some(join(&siblings[first..=last], from))
}

fn join(parts: &[Sibling<'_>], from: Expansion) -> Expanded {
    let content =
        parts.iter().map(|part| part.chunk.content.as_str()).collect::<Vec<_>>().join("\n\n");
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
    Expanded { content, from, lines, symbol_kind }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
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
        let siblings: Vec<Sibling<'_>> = chunks
            .iter()
            .map(|chunk| Sibling { chunk, token_count: chunk.token_count() })
            .collect();
        let budget =
            ParentBudget { whole_doc_threshold_tokens: threshold, max_expanded_tokens: max };
        expand(&siblings, hit, budget).unwrap()
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
        let siblings: Vec<Sibling<'_>> =
            chunks.iter().map(|chunk| Sibling { chunk, token_count: 0 }).collect();
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2000 };
        assert_eq!(expand(&siblings, 0, budget).unwrap().lines, None);
    }

    // SRCH-131
    #[test]
    fn a_missing_estimate_is_made_from_the_bytes() {
        let chunks = chunks(&[4000, 4000, 4000]);
        let siblings: Vec<Sibling<'_>> =
            chunks.iter().map(|chunk| Sibling { chunk, token_count: 0 }).collect();
        let budget = ParentBudget { whole_doc_threshold_tokens: 100, max_expanded_tokens: 2999 };
        let own = Expansion::Adjacent { from_index: 1, to_index: 1 };
        assert_eq!(expand(&siblings, 1, budget).unwrap().from, own);
        let budget = ParentBudget { max_expanded_tokens: 3000, ..budget };
        let all = Expansion::Adjacent { from_index: 0, to_index: 2 };
        assert_eq!(expand(&siblings, 1, budget).unwrap().from, all);
    }
}
