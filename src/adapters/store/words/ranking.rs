//! BM25 over words.

use std::borrow::Cow;

use crate::adapters::store::words::Counts;
use crate::domain::evidence::Spread;
use crate::ports::chunk_store::ColumnWeights;

/// A chunk in which a word occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adapters::store) struct Posting {
    /// The chunk.
    pub(in crate::adapters::store) id: i64,
    /// How often, in each column.
    pub(in crate::adapters::store) counts: Counts,
    /// How many words the chunk has.
    pub(in crate::adapters::store) length: u32,
}

/// What BM25 has to know of all chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::adapters::store) struct Collection {
    /// How many there are.
    pub(in crate::adapters::store) chunks: u64,
    /// How many words they have.
    pub(in crate::adapters::store) words: u64,
}

/// A chunk and its score.
pub(in crate::adapters::store) type Scored = (i64, f64);

/// How soon more occurrences of a word stop to count, and how much a long chunk
/// is held against it.
const SATURATION: f64 = 1.2;
const LENGTH_INFLUENCE: f64 = 0.75;

/// A word of a query, and where it occurs.
pub(in crate::adapters::store) struct Occurrences {
    /// How much the word counts.
    pub(in crate::adapters::store) weight: f64,
    /// For each of its stems, the chunks in ascending order.
    pub(in crate::adapters::store) stems: Vec<Vec<Posting>>,
}

/// Scores every chunk in which a word of a query occurs.
///
/// - Returns the chunks in ascending order.
///
/// # Source
///
/// Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
/// Beyond", 2009, with an inverse document frequency that is never negative, and
/// occurrences weighed by their column before they are saturated.
pub(in crate::adapters::store) fn score_all(
    collection: Collection,
    weights: ColumnWeights,
    words: &[Occurrences],
) -> Vec<Scored> {
    let mean = (real(collection.words) / real(collection.chunks.max(1))).max(1.0);
    let mut lists: Vec<Vec<Scored>> = words
        .iter()
        .map(|Occurrences { weight, stems }| {
            let postings: Cow<'_, [Posting]> = match stems.as_slice() {
                [] => Cow::Borrowed(&[]),
                [only] => Cow::Borrowed(only),
                [first, rest @ ..] => {
                    Cow::Owned(rest.iter().fold(first.clone(), |all, stem| union(&all, stem)))
                }
            };
            let rarity = collection.rarity(postings.len());
            let score = |posting: &Posting| {
                let [heading, context, text] = posting.counts.map(f64::from);
                let frequency =
                    weights.heading * heading + weights.context * context + weights.content * text;
                let damping = SATURATION
                    * (1.0 - LENGTH_INFLUENCE
                        + LENGTH_INFLUENCE * f64::from(posting.length) / mean);
                weight * rarity * frequency * (SATURATION + 1.0) / (frequency + damping)
            };
            postings.iter().map(|posting| (posting.id, score(posting))).collect()
        })
        .collect();
    // Short lists first, so that a long one is walked once; the order also
    // decides how sums are rounded, and must not depend on anything else.
    lists.sort_by_key(Vec::len);
    lists.into_iter().reduce(|sums, list| sum(&sums, &list)).unwrap_or_default()
}

impl Collection {
    /// What a word counts that stands in so many chunks.
    fn rarity(self, frequency: usize) -> f64 {
        let frequency = real(frequency as u64);
        let missing = (real(self.chunks) - frequency).max(0.0);
        (1.0 + (missing + 0.5) / (frequency + 0.5)).ln()
    }
}

/// How much of a query's weight stands in what names a chunk: its heading, its
/// context, and the title and name of its document.
///
/// - Returns a share from 0 to 1.
pub(in crate::adapters::store) fn named_share(
    collection: Collection,
    words: &[Occurrences],
    chunk: i64,
) -> f32 {
    let (mut named, mut all) = (0.0, 0.0);
    for word in words {
        let frequency = word.stems.iter().map(Vec::len).max().unwrap_or(0);
        let weight = word.weight * collection.rarity(frequency);
        let is_named = word.stems.iter().any(|postings| {
            let place = postings.binary_search_by_key(&chunk, |posting| posting.id);
            place.is_ok_and(|place| {
                let [heading, context, _] = postings[place].counts;
                heading + context > 0
            })
        });
        all += weight;
        named += if is_named { weight } else { 0.0 };
    }
    #[expect(clippy::cast_possible_truncation, reason = "a share lies between 0 and 1")]
    let share = if all > 0.0 { (named / all) as f32 } else { 0.0 };
    share
}

/// How the scores of all chunks are spread; those that are not scored have 0.
pub(in crate::adapters::store) fn spread(scored: &[Scored], chunks: u64) -> Option<Spread> {
    if scored.is_empty() {
        return None;
    }
    let count = real(chunks.max(scored.len() as u64));
    let mean = scored.iter().map(|(_, score)| score).sum::<f64>() / count;
    let square = scored.iter().map(|(_, score)| score * score).sum::<f64>() / count;
    #[expect(clippy::cast_possible_truncation, reason = "a judgement needs no more digits")]
    let spread =
        Spread { mean: mean as f32, deviation: (square - mean * mean).max(0.0).sqrt() as f32 };
    Some(spread)
}

/// Adds scores up, chunk by chunk.
pub(in crate::adapters::store) fn sum(left: &[Scored], right: &[Scored]) -> Vec<Scored> {
    merge(left, right, |scored| scored.0, |left, right| (left.0, left.1 + right.1))
}

/// Where one of two stems occurs.
fn union(left: &[Posting], right: &[Posting]) -> Vec<Posting> {
    merge(
        left,
        right,
        |posting| posting.id,
        |left, right| {
            let counts = std::array::from_fn(|column| left.counts[column] + right.counts[column]);
            Posting { counts, ..left }
        },
    )
}

/// Merges two lists in ascending order of `key`.
fn merge<T: Copy>(
    left: &[T],
    right: &[T],
    key: impl Fn(&T) -> i64,
    both: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (Some(&&a), Some(&&b)) => {
                let (from_left, from_right) = (key(&a) <= key(&b), key(&b) <= key(&a));
                merged.push(match (from_left, from_right) {
                    (true, true) => both(a, b),
                    (true, false) => a,
                    _ => b,
                });
                if from_left {
                    left.next();
                }
                if from_right {
                    right.next();
                }
            }
            (None, None) => return merged,
            _ => {
                merged.extend(left.by_ref().chain(right.by_ref()));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of what a disk holds")]
fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(id: i64, content: u32, length: u32) -> Posting {
        Posting { id, counts: [0, 0, content], length }
    }

    const COLLECTION: Collection = Collection { chunks: 10, words: 100 };

    fn scored(words: Vec<Vec<Vec<Posting>>>) -> Vec<Scored> {
        let words: Vec<Occurrences> =
            words.into_iter().map(|stems| Occurrences { weight: 1.0, stems }).collect();
        score_all(COLLECTION, ColumnWeights::default(), &words)
    }

    fn ranked(words: Vec<Vec<Vec<Posting>>>) -> Vec<i64> {
        let mut scored = scored(words);
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        scored.into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn a_score_is_what_the_formula_says() {
        let one = vec![vec![vec![posting(1, 2, 10)]]];
        let expected = (1.0 + 9.5_f64 / 1.5).ln() * 2.0 * 2.2 / (2.0 + 1.2);
        let scored = scored(one);
        assert!((scored[0].1 - expected).abs() < 1e-12, "{scored:?}");
    }

    #[test]
    fn rare_words_frequent_ones_and_short_chunks_count_more() {
        let common: Vec<Posting> = (1..=8).map(|id| posting(id, 1, 10)).collect();
        let rare = vec![posting(8, 1, 10), posting(9, 1, 10)];
        assert_eq!(ranked(vec![vec![common], vec![rare]])[..2], [8, 9]);
        assert_eq!(ranked(vec![vec![vec![posting(1, 1, 10), posting(2, 3, 10)]]]), [2, 1]);
        assert_eq!(ranked(vec![vec![vec![posting(1, 1, 30), posting(2, 1, 10)]]]), [2, 1]);
        let in_heading = Posting { counts: [1, 0, 0], ..posting(2, 0, 10) };
        assert_eq!(ranked(vec![vec![vec![posting(1, 1, 10), in_heading]]]), [2, 1]);
    }

    #[test]
    fn stems_of_one_word_are_counted_as_one_word() {
        let stems = vec![vec![posting(1, 1, 10), posting(3, 1, 10)], vec![posting(3, 1, 10)]];
        let apart = vec![vec![posting(1, 1, 10), posting(3, 2, 10)]];
        assert_eq!(scored(vec![stems]), scored(vec![apart]));
        assert_eq!(scored(Vec::new()), []);
    }

    #[test]
    fn the_spread_is_that_of_all_chunks() {
        let spread = spread(&[(1, 3.0), (5, 1.0)], 4).unwrap();
        assert!((spread.mean - 1.0).abs() < 1e-6, "{spread:?}");
        assert!((spread.deviation - 1.5_f32.sqrt()).abs() < 1e-6, "{spread:?}");
        assert_eq!(super::spread(&[], 4), None);
    }

    #[test]
    fn a_chunk_is_named_by_the_words_in_its_headings_and_titles() {
        let word = |counts| Occurrences {
            weight: 1.0,
            stems: vec![vec![Posting { id: 7, counts, length: 9 }]],
        };
        let nowhere = Occurrences { weight: 1.0, stems: Vec::new() };
        let share = |words: &[Occurrences]| named_share(COLLECTION, words, 7);
        assert_eq!(share(&[word([1, 0, 0]), word([0, 2, 5])]).to_bits(), 1.0_f32.to_bits());
        assert!((share(&[word([0, 1, 0]), word([0, 0, 4])]) - 0.5).abs() < 1e-6);
        // A word that stands nowhere is the rarest of all.
        assert!((0.3..0.5).contains(&share(&[word([1, 0, 0]), nowhere])));
        assert_eq!(named_share(COLLECTION, &[word([1, 0, 0])], 8).to_bits(), 0.0_f32.to_bits());
        assert_eq!(share(&[]).to_bits(), 0.0_f32.to_bits());
    }
}
