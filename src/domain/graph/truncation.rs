//! Why a graph is not the whole neighbourhood, and what to do about it.

use crate::domain::graph::request::{MAX_NODES, MAX_SEED_CHUNKS, SeedStrategy};

/// A bound that cut a walk short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// Which bound.
    pub reason: Reason,
    /// Its value, in its own unit: chunks, nodes or milliseconds.
    pub limit: u64,
    /// What was lost, and what to do about it.
    pub detail: String,
}

/// The bounds that can cut a walk short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The start document has more chunks than were read.
    SeedChunks,
    /// There was no room for another node.
    NodeBudget,
    /// The time was up.
    TimeBudget,
}

impl Reason {
    /// The word that stands for it in an answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SeedChunks => "seed_chunks",
            Self::NodeBudget => "node_budget",
            Self::TimeBudget => "time_budget",
        }
    }
}

impl Truncation {
    /// More chunks in the start document than were read.
    ///
    /// - `limit`: how many were read.
    pub fn seed_chunks(limit: usize, seeds: SeedStrategy) -> Self {
        let lost = match seeds {
            SeedStrategy::AllChunks => {
                "the start document has more chunks than were read, and the walk began at the \
                 first of them only; `seed_strategy` centroid does not help, since it averages \
                 the same chunks"
            }
            SeedStrategy::Centroid => {
                "the start document has more chunks than were read, and the mean covers only the \
                 first of them"
            }
        };
        let remedy = if limit < MAX_SEED_CHUNKS {
            format!("raise `max_seed_chunks` (at most {MAX_SEED_CHUNKS})")
        } else {
            format!("{MAX_SEED_CHUNKS} is the most that `max_seed_chunks` allows")
        };
        Self::new(Reason::SeedChunks, limit, format!("{lost}; {remedy}"))
    }

    /// No room for a node, or for what lies beyond one.
    ///
    /// - `limit`: how many nodes there may be.
    pub fn node_budget(limit: usize) -> Self {
        let remedy = if limit < MAX_NODES {
            format!("raise `max_nodes` (at most {MAX_NODES})")
        } else {
            format!("no graph of more than {MAX_NODES} nodes exists")
        };
        let detail = format!(
            "no node was added after the first {limit}, and what lies beyond was left out; \
             {remedy}; to get deeper, set `seed_strategy` to centroid or lower `max_seed_chunks` \
             or `fan_out`; for fewer and better nodes, raise `min_similarity`, set \
             `dedup_by_path`, or filter"
        );
        Self::new(Reason::NodeBudget, limit, detail)
    }

    /// Nodes whose neighbours were not looked for any more.
    ///
    /// - `limit`: milliseconds.
    pub fn time_budget(limit: u64) -> Self {
        let detail = "the time was up before the walk had ended, so that another call may answer \
                      otherwise; raise `time_budget_ms` or leave it out, or lower `depth`, \
                      `fan_out` or `max_nodes`";
        Self { reason: Reason::TimeBudget, limit, detail: detail.to_owned() }
    }

    fn new(reason: Reason, limit: usize, detail: String) -> Self {
        Self { reason, limit: u64::try_from(limit).unwrap_or(u64::MAX), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(truncation: &Truncation, words: &[&str]) {
        for word in words {
            assert!(truncation.detail.contains(word), "{word}: {}", truncation.detail);
        }
    }

    // GRAPH-41 GRAPH-42
    #[test]
    fn chunks_that_were_not_read_come_with_their_own_remedy() {
        let all = Truncation::seed_chunks(32, SeedStrategy::AllChunks);
        assert_eq!((all.reason.as_str(), all.limit), ("seed_chunks", 32));
        holds(&all, &["raise `max_seed_chunks`", "centroid does not help"]);
        let centroid = Truncation::seed_chunks(1, SeedStrategy::Centroid);
        holds(&centroid, &["raise `max_seed_chunks`", "mean covers only the first"]);
        assert!(!centroid.detail.contains("does not help"));
        let most = Truncation::seed_chunks(MAX_SEED_CHUNKS, SeedStrategy::Centroid);
        assert!(!most.detail.contains("raise"), "{}", most.detail);
    }

    // GRAPH-41 GRAPH-43
    #[test]
    fn a_full_graph_names_every_way_out() {
        let full = Truncation::node_budget(100);
        assert_eq!((full.reason.as_str(), full.limit), ("node_budget", 100));
        holds(
            &full,
            &[
                "raise `max_nodes`",
                "centroid",
                "`max_seed_chunks`",
                "`fan_out`",
                "raise `min_similarity`",
                "`dedup_by_path`",
                "filter",
            ],
        );
        let most = Truncation::node_budget(MAX_NODES);
        assert!(!most.detail.contains("raise `max_nodes`"));
        holds(&most, &["no graph of more than 2000 nodes exists"]);
    }

    // GRAPH-B04
    #[test]
    fn a_walk_that_ran_out_of_time_says_how_much_it_had() {
        let late = Truncation::time_budget(50);
        assert_eq!((late.reason.as_str(), late.limit), ("time_budget", 50));
        holds(&late, &["raise `time_budget_ms`"]);
    }
}
