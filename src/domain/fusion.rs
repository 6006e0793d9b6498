//! Reciprocal rank fusion: one ranking from several.

use std::collections::{BTreeMap, BTreeSet};

/// The damping of reciprocal rank fusion: the larger it is, the less the first
/// places of a ranking stand out. A finite number from 1 to 1,000,000.
///
/// Ranks count from 1 here. A constant from a system that counts them from 0
/// and adds 1 to the sum means the same.
///
/// ```
/// use grooveseek::domain::fusion::RankConstant;
///
/// assert_eq!(RankConstant::default(), RankConstant::new(60.0).unwrap());
/// assert!(RankConstant::new(0.5).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankConstant(f32);

/// A number that cannot damp a fusion.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the rank constant is {value}, it must be a number from 1 to 1000000")]
pub struct InvalidRankConstant {
    /// What was given.
    pub value: f64,
}

impl RankConstant {
    /// Checks a constant. It is kept in single precision, as scores are.
    ///
    /// # Errors
    ///
    /// [`InvalidRankConstant`] if it is not finite or out of range.
    pub fn new(value: f64) -> Result<Self, InvalidRankConstant> {
        if (1.0..=1e6).contains(&value) {
            #[expect(clippy::cast_possible_truncation, reason = "scores are in single precision")]
            Ok(Self(value as f32))
        } else {
            Err(InvalidRankConstant { value })
        }
    }

    /// The number.
    pub fn value(self) -> f32 {
        self.0
    }

    /// What a ranking adds to the score of the item at `rank`.
    #[expect(clippy::cast_precision_loss, reason = "beyond 16 million, ranks may share a score")]
    fn contribution(self, rank: usize) -> f32 {
        1.0 / (self.0 + rank as f32)
    }
}

/// The constant of the paper, 60.
impl Default for RankConstant {
    fn default() -> Self {
        Self(60.0)
    }
}

/// An item of a fused ranking.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fused<Id, const N: usize> {
    /// Which one.
    pub id: Id,
    /// The sum of its reciprocal ranks; higher is better.
    pub score: f32,
    /// Its rank in each of the rankings, the best being 1, where it is in it.
    pub ranks: [Option<usize>; N],
}

/// Fuses rankings by the sum of reciprocal ranks.
///
/// Each ranking adds `1 / (rank_constant + rank)` to every item that it holds,
/// where the best item has rank 1. The scores of the rankings play no part, so
/// cosine similarities and BM25 scores may be mixed freely. Terms are added in
/// single precision, in the order of the rankings. An empty ranking changes
/// nothing.
///
/// - `rankings`: lists, best first; of an item that one repeats, its best rank
///   counts.
/// - Returns every distinct item once, highest score first, equal scores in
///   ascending order of id.
///
/// Runs in O(n log n) for n items over all rankings.
///
/// # Source
///
/// Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet
/// and individual Rank Learning Methods", SIGIR 2009.
///
/// ```
/// use grooveseek::domain::fusion::{RankConstant, reciprocal_rank_fusion};
///
/// let dense = ['a', 'b'];
/// let lexical = ['b', 'c'];
/// let fused = reciprocal_rank_fusion([&dense, &lexical], RankConstant::default());
///
/// let order: Vec<char> = fused.iter().map(|item| item.id).collect();
/// assert_eq!(order, ['b', 'a', 'c']);
/// assert_eq!(fused[0].score, 1.0 / 62.0 + 1.0 / 61.0);
/// assert_eq!(fused[1].ranks, [Some(1), None]);
/// ```
pub fn reciprocal_rank_fusion<Id: Copy + Ord, const N: usize>(
    rankings: [&[Id]; N],
    rank_constant: RankConstant,
) -> Vec<Fused<Id, N>> {
    let mut items: BTreeMap<Id, (f32, [Option<usize>; N])> = BTreeMap::new();
    for (which, ranking) in rankings.into_iter().enumerate() {
        for (rank, &id) in (1..).zip(ranking) {
            let (score, ranks) = items.entry(id).or_insert((0.0, [None; N]));
            if ranks[which].is_none() {
                ranks[which] = Some(rank);
                *score += rank_constant.contribution(rank);
            }
        }
    }
    let mut fused: Vec<Fused<Id, N>> =
        items.into_iter().map(|(id, (score, ranks))| Fused { id, score, ranks }).collect();
    // The sort is stable, so items of equal score keep the ascending order of the map.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused
}

/// Puts what another ranking holds behind all that was fused, as if its first item
/// came right after the last: it fills the ranking up, and changes no place.
///
/// - `which`: which of the rankings it is.
pub fn fill_up<Id: Copy + Ord, const N: usize>(
    fused: &mut Vec<Fused<Id, N>>,
    which: usize,
    ranking: &[Id],
    rank_constant: RankConstant,
) {
    let mut held: BTreeSet<Id> = fused.iter().map(|item| item.id).collect();
    for &id in ranking {
        if held.insert(id) {
            let rank = fused.len() + 1;
            let mut ranks = [None; N];
            ranks[which] = Some(rank);
            fused.push(Fused { id, score: rank_constant.contribution(rank), ranks });
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the rules give exact values")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn fuse(dense: &[u8], lexical: &[u8]) -> Vec<Fused<u8, 2>> {
        reciprocal_rank_fusion([dense, lexical], RankConstant::default())
    }

    fn order(fused: &[Fused<u8, 2>]) -> Vec<u8> {
        fused.iter().map(|item| item.id).collect()
    }

    // CFG-74
    #[test]
    fn a_rank_constant_is_finite_and_in_range() {
        for value in [1.0, 60.0, 1e6] {
            assert!(RankConstant::new(value).is_ok(), "{value}");
        }
        for value in [0.0, 0.999, 1_000_001.0, -60.0, f64::NAN, f64::INFINITY] {
            let error = RankConstant::new(value).unwrap_err();
            assert!(error.to_string().contains("1000000"), "{error}");
        }
        assert_eq!(RankConstant::default().value(), 60.0);
    }

    // SRCH-85
    #[test]
    fn scores_are_sums_of_reciprocal_ranks_in_single_precision() {
        let fused = fuse(&[7, 8, 9], &[7, 9]);
        assert_eq!(fused[0].score, 2.0_f32 / 61.0);
        assert_eq!(fused[1].score, 1.0_f32 / 63.0 + 1.0 / 62.0);
        assert_eq!(fused[2].score, 1.0_f32 / 62.0);
        let other = reciprocal_rank_fusion([&[7_u8][..]], RankConstant::new(9.0).unwrap());
        assert_eq!(other[0].score, 0.1);
    }

    // SRCH-85
    #[test]
    fn the_first_of_one_leg_alone_scores_half_of_the_best() {
        let fused = fuse(&[1], &[2]);
        assert_eq!((fused[0].score, fused[1].score), (1.0_f32 / 61.0, 1.0_f32 / 61.0));
    }

    // SRCH-86
    #[test]
    fn equal_scores_are_ordered_by_id() {
        assert_eq!(order(&fuse(&[9, 3], &[4, 2])), [4, 9, 2, 3]);
        assert_eq!(order(&fuse(&[9, 3], &[3, 9])), [3, 9]);
    }

    // SRCH-88
    #[test]
    fn a_leg_without_matches_leaves_the_other_as_it_is() {
        let fused = fuse(&[5, 1, 3], &[]);
        assert_eq!(order(&fused), [5, 1, 3]);
        assert_eq!(fused[2].score, 1.0_f32 / 63.0);
        assert_eq!(fuse(&[], &[]), []);
    }

    // SRCH-86
    #[test]
    fn what_fills_a_ranking_up_stands_behind_it_with_lower_scores() {
        let mut fused = fuse(&[5, 1, 3], &[1]);
        fill_up(&mut fused, 1, &[9, 5, 8], RankConstant::default());
        assert_eq!(order(&fused), [1, 5, 3, 9, 8]);
        assert!(fused.is_sorted_by(|a, b| a.score > b.score), "{fused:?}");
        assert_eq!(fused[3].ranks, [None, Some(4)]);
    }

    // SRCH-B19
    #[test]
    fn an_item_tells_which_rankings_held_it() {
        let fused = fuse(&[1, 2], &[2]);
        assert_eq!((fused[0].id, fused[0].ranks), (2, [Some(2), Some(1)]));
        assert_eq!((fused[1].id, fused[1].ranks), (1, [Some(1), None]));
    }

    #[test]
    fn of_a_repeated_item_the_best_rank_counts() {
        assert_eq!(fuse(&[1, 1, 2], &[])[0].score, 1.0_f32 / 61.0);
    }

    fn ranking() -> impl Strategy<Value = Vec<u8>> {
        Just((0..24).collect::<Vec<u8>>())
            .prop_shuffle()
            .prop_flat_map(|ids| (0..ids.len()).prop_map(move |length| ids[..length].to_vec()))
    }

    proptest! {
        // SRCH-85
        #[test]
        fn every_item_comes_out_once(dense in ranking(), lexical in ranking()) {
            let expected: BTreeSet<u8> = dense.iter().chain(&lexical).copied().collect();
            let fused = fuse(&dense, &lexical);
            prop_assert_eq!(fused.len(), expected.len());
            prop_assert_eq!(order(&fused).into_iter().collect::<BTreeSet<u8>>(), expected);
        }

        // SRCH-85
        #[test]
        fn each_score_is_the_sum_of_its_terms(dense in ranking(), lexical in ranking()) {
            for item in fuse(&dense, &lexical) {
                let mut expected = 0.0_f32;
                for (ranking, rank) in [&dense, &lexical].into_iter().zip(item.ranks) {
                    let place = ranking.iter().position(|id| *id == item.id);
                    prop_assert_eq!(rank, place.map(|place| place + 1));
                    if let Some(place) = place {
                        expected += 1.0 / (60.0 + f32::from(u8::try_from(place).unwrap()) + 1.0);
                    }
                }
                prop_assert_eq!(item.score.to_bits(), expected.to_bits());
                prop_assert!(item.score <= 2.0 / 61.0);
            }
        }

        // SRCH-86
        #[test]
        fn the_order_is_by_score_and_then_by_id(dense in ranking(), lexical in ranking()) {
            let fused = fuse(&dense, &lexical);
            let sorted = fused
                .is_sorted_by(|a, b| a.score > b.score || (a.score == b.score && a.id < b.id));
            prop_assert!(sorted);
        }

        // SRCH-88
        #[test]
        fn one_ranking_keeps_its_order(dense in ranking()) {
            prop_assert_eq!(order(&fuse(&dense, &[])), dense);
        }
    }
}
