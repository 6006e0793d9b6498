//! Keeps the best candidates, in an order that does not depend on how they came.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::domain::chunk::ChunkId;
use crate::ports::chunk_store::Candidate;

/// The most candidates that the dense leg returns.
pub(super) const NEAREST_LIMIT: usize = 4096;

/// The most candidates that the lexical leg returns.
pub(super) const MATCHING_LIMIT: usize = 10_000;

/// Ascending from the best candidate to the worst: by score, then by id.
pub(super) fn best_first(left: &Candidate, right: &Candidate) -> Ordering {
    right.score.total_cmp(&left.score).then(left.chunk.cmp(&right.chunk))
}

/// The best of all candidates that it is shown.
pub(super) struct Best {
    depth: usize,
    kept: BinaryHeap<Worst>,
}

impl Best {
    /// Keeps at most `depth` candidates; the room for them grows as they come.
    pub(super) fn new(depth: usize) -> Self {
        Self { depth, kept: BinaryHeap::new() }
    }

    /// Keeps a candidate if it is among the best so far.
    pub(super) fn show(&mut self, chunk: ChunkId, score: f32) {
        let candidate = Candidate { chunk, score };
        if self.kept.len() < self.depth {
            self.kept.push(Worst(candidate));
        } else if let Some(mut worst) = self.kept.peek_mut()
            && best_first(&candidate, &worst.0).is_lt()
        {
            *worst = Worst(candidate);
        }
    }

    /// The score of the least candidate that is kept, once there are as many as
    /// are wanted.
    pub(super) fn least(&self) -> Option<f32> {
        let least = self.kept.peek().filter(|_| self.kept.len() >= self.depth);
        least.map(|least| least.0.score)
    }

    /// What was kept, best first.
    pub(super) fn into_ranking(self) -> Vec<Candidate> {
        self.kept.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

/// Orders the worst candidate to the top of a heap.
struct Worst(Candidate);

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        best_first(&self.0, &other.0)
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Worst {}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ranking: &[Candidate]) -> Vec<i64> {
        ranking.iter().map(|candidate| candidate.chunk.0).collect()
    }

    // SRCH-89
    #[test]
    fn equal_scores_rank_in_ascending_order_of_id_however_they_came() {
        for order in [[3, 1, 2, 4], [4, 3, 2, 1], [1, 2, 3, 4]] {
            let mut best = Best::new(3);
            for id in order {
                best.show(ChunkId(id), if id == 4 { 0.9 } else { 0.5 });
            }
            assert_eq!(ids(&best.into_ranking()), [4, 1, 2]);
        }
    }

    #[test]
    fn no_more_is_kept_than_was_asked_for() {
        let mut none = Best::new(0);
        none.show(ChunkId(1), 1.0);
        assert!(none.into_ranking().is_empty());

        let mut huge = Best::new(usize::MAX);
        huge.show(ChunkId(1), 1.0);
        assert_eq!(ids(&huge.into_ranking()), [1]);
    }
}
