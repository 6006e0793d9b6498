//! Evaluation: how good a ranking is, by judgements of what it should hold.

use std::collections::{BTreeMap, BTreeSet};

/// How relevant items are to one query. An item that is missing, or whose grade
/// is 0, is not relevant.
pub type Judgements<Id> = BTreeMap<Id, u32>;

/// Normalised discounted cumulative gain of the first k items.
///
/// The gain is the grade itself, as `trec_eval` and BEIR compute it, not
/// `2^grade − 1`; the discount is `log2(rank + 1)`, where the best rank is 1.
///
/// - `ranking`: best first; of an item that is repeated, the first counts.
/// - Returns a number from 0 to 1, 1 for a perfect order; 0 if nothing is
///   relevant.
///
/// # Source
///
/// Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
/// techniques", ACM TOIS 2002; the discount is the one of Burges et al.,
/// "Learning to Rank using Gradient Descent", ICML 2005.
///
/// ```
/// use grooveseek::domain::evaluation::{Judgements, ndcg_at};
///
/// let judgements = Judgements::from([("a", 2), ("b", 1)]);
/// assert_eq!(ndcg_at(10, &["a", "b", "c"], &judgements), 1.0);
///
/// // (1 + 2 / log2(3)) / (2 + 1 / log2(3))
/// let swapped = ndcg_at(10, &["b", "a"], &judgements);
/// assert!((swapped - 0.859_7).abs() < 1e-4);
/// ```
pub fn ndcg_at<Id: Ord>(k: usize, ranking: &[Id], judgements: &Judgements<Id>) -> f64 {
    let mut ideal: Vec<u32> = judgements.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.cmp(a));
    let best = discounted_gain(ideal.into_iter().take(k));
    if best > 0.0 {
        discounted_gain(distinct(ranking).take(k).map(|id| grade(judgements, id))) / best
    } else {
        0.0
    }
}

/// The share of relevant items among the first k.
///
/// - `ranking`: best first; of an item that is repeated, the first counts.
/// - Returns a number from 0 to 1; 0 if nothing is relevant.
///
/// ```
/// use grooveseek::domain::evaluation::{Judgements, recall_at};
///
/// let judgements = Judgements::from([("a", 1), ("b", 1)]);
/// assert_eq!(recall_at(2, &["x", "a", "b"], &judgements), 0.5);
/// assert_eq!(recall_at(3, &["x", "a", "b"], &judgements), 1.0);
/// ```
#[expect(clippy::cast_precision_loss, reason = "there are far fewer judgements than 2^53")]
pub fn recall_at<Id: Ord>(k: usize, ranking: &[Id], judgements: &Judgements<Id>) -> f64 {
    let relevant = judgements.values().filter(|&&grade| grade > 0).count();
    let found = distinct(ranking).take(k).filter(|id| grade(judgements, id) > 0).count();
    if relevant == 0 { 0.0 } else { found as f64 / relevant as f64 }
}

/// One divided by the rank of the first relevant item.
///
/// - `ranking`: best first; of an item that is repeated, the first counts.
/// - Returns a number from 0 to 1; 0 if no relevant item is in it.
///
/// ```
/// use grooveseek::domain::evaluation::{Judgements, reciprocal_rank};
///
/// let judgements = Judgements::from([("b", 1), ("c", 3)]);
/// assert_eq!(reciprocal_rank(&["a", "b", "c"], &judgements), 0.5);
/// assert_eq!(reciprocal_rank(&["a"], &judgements), 0.0);
/// ```
#[expect(clippy::cast_precision_loss, reason = "a ranking has far fewer items than 2^53")]
pub fn reciprocal_rank<Id: Ord>(ranking: &[Id], judgements: &Judgements<Id>) -> f64 {
    distinct(ranking)
        .position(|id| grade(judgements, id) > 0)
        .map_or(0.0, |place| 1.0 / (place + 1) as f64)
}

/// The mean over queries, in which what is not finite takes no part.
///
/// ```
/// use grooveseek::domain::evaluation::mean;
///
/// assert_eq!(mean(&[1.0, 0.5, f64::NAN]), Some(0.75));
/// assert_eq!(mean(&[]), None);
/// ```
#[expect(clippy::cast_precision_loss, reason = "there are far fewer queries than 2^53")]
pub fn mean(values: &[f64]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values.iter().filter(|value| value.is_finite()) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
}

fn grade<Id: Ord>(judgements: &Judgements<Id>, id: &Id) -> u32 {
    judgements.get(id).copied().unwrap_or_default()
}

/// The items of a ranking, each at its first place.
fn distinct<Id: Ord>(ranking: &[Id]) -> impl Iterator<Item = &Id> {
    let mut seen = BTreeSet::new();
    ranking.iter().filter(move |id| seen.insert(*id))
}

fn discounted_gain(grades: impl Iterator<Item = u32>) -> f64 {
    (1_u32..)
        .zip(grades)
        .map(|(rank, grade)| f64::from(grade) / (f64::from(rank) + 1.0).log2())
        .sum()
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the rules give exact values")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn gain_is_linear_in_the_grade() {
        let judgements = Judgements::from([('a', 3), ('b', 1)]);
        let expected = (1.0 + 3.0 / 3_f64.log2()) / (3.0 + 1.0 / 3_f64.log2());
        assert!(close(ndcg_at(10, &['b', 'a'], &judgements), expected));
    }

    // OPS-96
    #[test]
    fn the_ideal_holds_no_more_than_k_items() {
        let judgements = Judgements::from([('a', 1), ('b', 1), ('c', 1)]);
        assert!(close(ndcg_at(2, &['a', 'b'], &judgements), 1.0));
        assert!(close(ndcg_at(1, &['x', 'a'], &judgements), 0.0));
        let half = (1.0 / 3_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!(close(ndcg_at(2, &['x', 'a'], &judgements), half));
    }

    #[test]
    fn without_a_relevant_item_everything_is_zero() {
        let judgements = Judgements::from([('a', 0)]);
        assert_eq!(ndcg_at(5, &['a'], &judgements), 0.0);
        assert_eq!(recall_at(5, &['a'], &judgements), 0.0);
        assert_eq!(reciprocal_rank(&['a'], &judgements), 0.0);
    }

    #[test]
    fn a_repeated_item_counts_once_and_takes_one_place() {
        let judgements = Judgements::from([('a', 1), ('b', 1)]);
        assert!(close(ndcg_at(2, &['a', 'a', 'b'], &judgements), 1.0));
        assert!(close(recall_at(2, &['a', 'a', 'b'], &judgements), 1.0));
        assert!(close(reciprocal_rank(&['x', 'x', 'b'], &judgements), 0.5));
    }

    // OPS-97
    #[test]
    fn what_is_not_finite_takes_no_part_in_a_mean() {
        assert_eq!(mean(&[f64::INFINITY, f64::NAN]), None);
        assert_eq!(mean(&[0.0, f64::NEG_INFINITY, 1.0]), Some(0.5));
    }

    proptest! {
        #[test]
        fn every_measure_lies_between_zero_and_one(
            grades in proptest::collection::btree_map(0_u8..12, 0_u32..4, 0..10),
            ranking in proptest::collection::vec(0_u8..12, 0..20),
            k in 0_usize..15,
        ) {
            for value in [
                ndcg_at(k, &ranking, &grades),
                recall_at(k, &ranking, &grades),
                reciprocal_rank(&ranking, &grades),
            ] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value), "{value}");
            }
        }

        #[test]
        fn the_best_order_scores_one_and_recall_grows_with_k(
            grades in proptest::collection::btree_map(0_u8..12, 1_u32..4, 1..10),
        ) {
            let mut ranking: Vec<u8> = grades.keys().copied().collect();
            ranking.sort_by_key(|id| std::cmp::Reverse(grades[id]));
            for k in 1..12 {
                prop_assert!(close(ndcg_at(k, &ranking, &grades), 1.0));
                let (less, more) =
                    (recall_at(k - 1, &ranking, &grades), recall_at(k, &ranking, &grades));
                prop_assert!(less <= more);
            }
        }
    }
}
