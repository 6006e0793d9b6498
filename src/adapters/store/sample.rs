//! Some chunks that stand for all: the same ones wherever and in whatever order
//! they are kept.

use crate::adapters::store::cosine::Query;
use crate::domain::evidence::Spread;

/// About how many are taken.
const SAMPLE: usize = 1024;

/// Which of so many chunks are taken.
pub(super) struct Sample {
    mask: u64,
}

impl Sample {
    /// Of `count` chunks: all if there are few, else from half of [`SAMPLE`] on.
    pub(super) fn of(count: usize) -> Self {
        let step = count.div_ceil(SAMPLE).max(1).next_power_of_two();
        Self { mask: step as u64 - 1 }
    }

    /// Whether a chunk is one of them.
    pub(super) fn takes(&self, id: i64) -> bool {
        mixed(id) & self.mask == 0
    }
}

/// Spreads ids, which often follow one another, evenly.
///
/// # Source
///
/// The finaliser of `SplitMix64`: Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014.
fn mixed(id: i64) -> u64 {
    let mut bits = id.cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// How the cosines of a query with a sample of vectors are spread.
///
/// - `sampled`: ids and vectors, in any order.
pub(super) fn spread<'a>(
    query: &[f32],
    sampled: impl IntoIterator<Item = (i64, &'a [f32])>,
) -> Option<Spread> {
    let query = Query::new(query);
    spread_of(sampled.into_iter().map(|(id, vector)| (id, query.cosine(vector))).collect())
}

/// How cosines are spread.
///
/// - `cosines`: each with the id of its vector, in any order.
pub(super) fn spread_of(mut cosines: Vec<(i64, f32)>) -> Option<Spread> {
    // The order decides how sums are rounded.
    cosines.sort_unstable_by_key(|&(id, _)| id);
    let cosines: Vec<f32> = cosines.into_iter().map(|(_, cosine)| cosine).collect();
    Spread::of(&cosines)
}

/// How the cosines of a sample of vectors with one another are spread: each with
/// one that is not its neighbour.
///
/// - `sampled`: ids and vectors, in any order.
pub(super) fn spread_between<'a>(
    sampled: impl IntoIterator<Item = (i64, &'a [f32])>,
) -> Option<Spread> {
    let mut sampled: Vec<(u64, &[f32])> =
        sampled.into_iter().map(|(id, vector)| (mixed(id), vector)).collect();
    sampled.sort_unstable_by_key(|&(place, _)| place);
    let pairs = sampled.chunks_exact(2);
    let cosines: Vec<f32> = pairs.map(|pair| Query::new(pair[0].1).cosine(pair[1].1)).collect();
    Spread::of(&cosines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_about_a_thousand_of_many_and_all_of_few() {
        for count in [1, 900, 1024] {
            let sample = Sample::of(count);
            assert!((0..i64::try_from(count).unwrap()).all(|id| sample.takes(id)));
        }
        for count in [3000, 100_000, 1_000_000] {
            let sample = Sample::of(count);
            let taken = (5..5 + i64::try_from(count).unwrap()).filter(|&id| sample.takes(id));
            let taken = taken.count();
            assert!((400..1200).contains(&taken), "{taken} of {count}");
        }
    }

    #[test]
    fn the_spread_does_not_depend_on_the_order() {
        let vectors: Vec<[f32; 3]> =
            (0..50_u8).map(|n| [f32::from(n), 1.0, f32::from(n % 7)]).collect();
        let there = (0..).zip(vectors.iter().map(|vector| &vector[..]));
        let back: Vec<(i64, &[f32])> =
            there.clone().collect::<Vec<_>>().into_iter().rev().collect();
        assert_eq!(spread_between(there.clone()), spread_between(back.clone()));
        assert_eq!(spread(&[1.0, 2.0, 3.0], there), spread(&[1.0, 2.0, 3.0], back));
    }

    #[test]
    fn vectors_are_not_compared_with_their_neighbours() {
        // Neighbours are alike, others are not.
        let vectors: Vec<[f32; 2]> =
            (0..400_u16).map(|n| if n / 2 % 2 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        let spread = spread_between((0..).zip(vectors.iter().map(|vector| &vector[..]))).unwrap();
        assert!((0.35..0.65).contains(&spread.mean), "{spread:?}");
        assert_eq!(spread_between([(1, &[1.0, 0.0][..])]), None);
    }
}
