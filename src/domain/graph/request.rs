//! What is asked for a graph, and the bounds that this comes to.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use crate::domain::filter::{Filter, InvalidFilter};
use crate::domain::search::SearchRequest;

/// The most nodes of a graph.
pub(super) const MAX_NODES: usize = 2000;
/// The most chunks of the start document that are read.
pub(super) const MAX_SEED_CHUNKS: usize = 1000;
const MAX_DEPTH: u32 = 3;
const MAX_FAN_OUT: u32 = 20;

const DEFAULT_DEPTH: u32 = 2;
const DEFAULT_FAN_OUT: u32 = 5;
const DEFAULT_MIN_SIMILARITY: f64 = 0.3;
const DEFAULT_MAX_NODES: u32 = 100;
const DEFAULT_MAX_SEED_CHUNKS: u32 = 32;

/// The most characters of a wrong value that a refusal repeats.
const QUOTED_CHARS: usize = 100;

/// A graph as a caller words it; nothing in it is checked yet. What is not
/// given has the default of [`Bounds`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphRequest {
    /// The key of the document to start from.
    pub start: String,
    /// The most hops.
    pub depth: Option<u32>,
    /// The most nodes that are found from one node.
    pub fan_out: Option<u32>,
    /// The least similarity to the parent, from 0 to 1.
    pub min_similarity: Option<f64>,
    /// How the start document is turned into seeds.
    pub seed_strategy: Option<String>,
    /// Whether a document other than the start is found once at most.
    pub dedup_by_path: bool,
    /// Only documents of this category.
    pub category: Option<String>,
    /// Only documents of this topic.
    pub topic: Option<String>,
    /// Keys of documents that are left out.
    pub exclude_paths: Vec<String>,
    /// The most nodes.
    pub max_nodes: Option<u32>,
    /// The most chunks of the start document that are read.
    pub max_seed_chunks: Option<u32>,
    /// Globs over the path; one that starts with `!` excludes.
    pub path_globs: Option<Vec<String>>,
    /// Globs over the paths of documents that are left out.
    pub exclude_globs: Vec<String>,
    /// Only documents with one of these tags.
    pub tags_any: Vec<String>,
    /// Only documents with all of these tags.
    pub tags_all: Vec<String>,
    /// Only documents with this date or a later one, compared as text.
    pub date_from: Option<String>,
    /// Only documents with this date or an earlier one, compared as text.
    pub date_to: Option<String>,
    /// For every key, one of its values must be among the document's.
    pub fields: BTreeMap<String, Vec<String>>,
    /// No value of any key may be among the document's.
    pub fields_not: BTreeMap<String, Vec<String>>,
    /// The least quality of a chunk, from 0 to 1.
    pub min_quality: Option<f64>,
    /// Find chunks of any quality.
    pub include_low_quality: bool,
    /// Which node is expanded next.
    pub order: Option<String>,
    /// Milliseconds after which no more neighbours are looked for.
    pub time_budget_ms: Option<u32>,
}

/// The bounds of a walk.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The most hops, from 0 to 3.
    pub depth: u32,
    /// The most nodes that are found from one node, from 0 to 20.
    pub fan_out: usize,
    /// The least similarity to the parent, from 0 to 1.
    pub min_similarity: f32,
    /// How the start document is turned into seeds.
    pub seeds: SeedStrategy,
    /// Whether a document other than the start is found once at most.
    pub dedup_by_path: bool,
    /// The most nodes, from 0 to 2000.
    pub max_nodes: usize,
    /// The most chunks of the start document that are read, from 1 to 1000.
    pub max_seed_chunks: usize,
    /// Which node is expanded next.
    pub order: Order,
    /// After which time no more neighbours are looked for; none if that does
    /// not matter.
    pub time_budget: Option<Duration>,
}

/// How the start document is turned into seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeedStrategy {
    /// Each of its chunks is one.
    #[default]
    AllChunks,
    /// The mean of its chunks is the only one.
    Centroid,
}

/// Which node is expanded next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that was found first.
    #[default]
    BreadthFirst,
    /// The one that is most similar to its parent, among equals the one that
    /// was found first.
    BestFirst,
}

/// A checked request.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedGraph {
    /// The bounds of the walk.
    pub bounds: Bounds,
    /// What may be found. The start document is still to be left out.
    pub filter: Filter,
    /// Remarks that the caller should see.
    pub warnings: Vec<String>,
}

/// Why a request cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGraph {
    /// No such way to make seeds.
    #[error("`seed_strategy` is {0}; it must be all-chunks (or all_chunks) or centroid")]
    SeedStrategy(String),
    /// No such order.
    #[error(
        "`order` is {0}; it must be breadth-first (or breadth_first) or best-first (or best_first)"
    )]
    Order(String),
    /// A filter cannot be applied.
    #[error(transparent)]
    Filter(#[from] InvalidFilter),
}

impl FromStr for SeedStrategy {
    type Err = InvalidGraph;

    fn from_str(text: &str) -> Result<Self, InvalidGraph> {
        match text {
            "all-chunks" | "all_chunks" => Ok(Self::AllChunks),
            "centroid" => Ok(Self::Centroid),
            _ => Err(InvalidGraph::SeedStrategy(quoted(text))),
        }
    }
}

impl FromStr for Order {
    type Err = InvalidGraph;

    fn from_str(text: &str) -> Result<Self, InvalidGraph> {
        match text {
            "breadth-first" | "breadth_first" => Ok(Self::BreadthFirst),
            "best-first" | "best_first" => Ok(Self::BestFirst),
            _ => Err(InvalidGraph::Order(quoted(text))),
        }
    }
}

/// A value as a refusal repeats it, cut off where it is long.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

impl GraphRequest {
    /// Checks a request.
    ///
    /// Numbers out of range become the nearest bound. The lists are held against
    /// the limits of a search's: up to 64 entries, up to 1024 bytes each.
    ///
    /// - `default_min_quality`: from 0 to 1; applies unless the request says
    ///   otherwise.
    ///
    /// # Errors
    ///
    /// [`InvalidGraph`] names the parameter and what it may be.
    ///
    /// ```
    /// use grooveseek::domain::graph::GraphRequest;
    ///
    /// let request = GraphRequest { depth: Some(99), ..GraphRequest::default() };
    /// let bounds = request.check(0.3).unwrap().bounds;
    /// assert_eq!((bounds.depth, bounds.fan_out, bounds.max_nodes), (3, 5, 100));
    /// ```
    pub fn check(&self, default_min_quality: f32) -> Result<CheckedGraph, InvalidGraph> {
        let seeds =
            self.seed_strategy.as_deref().map_or(Ok(SeedStrategy::default()), str::parse)?;
        let order = self.order.as_deref().map_or(Ok(Order::default()), str::parse)?;
        let checked = Filter::check(&self.filters(), default_min_quality)?;
        let filter = checked
            .filter
            .without_listed("exclude_paths", &self.exclude_paths)?
            .without_matching("exclude_globs", &self.exclude_globs)?;
        let mut warnings = checked.warnings;
        let min_similarity = match self.min_similarity {
            Some(given) if given.is_nan() => {
                warnings.push(format!(
                    "`min_similarity` is no number; {DEFAULT_MIN_SIMILARITY} applies"
                ));
                DEFAULT_MIN_SIMILARITY
            }
            given => given.unwrap_or(DEFAULT_MIN_SIMILARITY),
        };
        #[expect(clippy::cast_possible_truncation, reason = "scores have single precision")]
        let min_similarity = min_similarity.clamp(0.0, 1.0) as f32;
        let bounds = Bounds {
            depth: self.depth.unwrap_or(DEFAULT_DEPTH).min(MAX_DEPTH),
            fan_out: size(self.fan_out.unwrap_or(DEFAULT_FAN_OUT).min(MAX_FAN_OUT)),
            min_similarity,
            seeds,
            dedup_by_path: self.dedup_by_path,
            max_nodes: size(self.max_nodes.unwrap_or(DEFAULT_MAX_NODES)).min(MAX_NODES),
            max_seed_chunks: size(self.max_seed_chunks.unwrap_or(DEFAULT_MAX_SEED_CHUNKS))
                .clamp(1, MAX_SEED_CHUNKS),
            order,
            time_budget: self.time_budget_ms.map(|ms| Duration::from_millis(ms.into())),
        };
        Ok(CheckedGraph { bounds, filter, warnings })
    }

    /// The filters that a search has as well.
    fn filters(&self) -> SearchRequest {
        SearchRequest {
            category: self.category.clone(),
            topic: self.topic.clone(),
            path_globs: self.path_globs.clone(),
            tags_any: self.tags_any.clone(),
            tags_all: self.tags_all.clone(),
            date_from: self.date_from.clone(),
            date_to: self.date_to.clone(),
            fields: self.fields.clone(),
            fields_not: self.fields_not.clone(),
            min_quality: self.min_quality,
            include_low_quality: self.include_low_quality,
            ..SearchRequest::default()
        }
    }
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// How similar a chunk is to what its neighbours are looked for with:
/// `1 − d² / 2` for the Euclidean distance `d`, from 0 to 1. Between vectors of
/// length 1 that is the cosine, where it is not negative.
///
/// - `cosine`: of the angle between the two; 0 if one has no direction.
/// - `length`: of the vector that is looked with; the chunk's is 1.
///
/// ```
/// use grooveseek::domain::graph::similarity;
///
/// assert_eq!(similarity(0.75, 1.0), 0.75);
/// assert_eq!(similarity(-0.75, 1.0), 0.0);
/// // The mean of vectors that cancel out lies at the distance 1 from each.
/// assert_eq!(similarity(0.0, 0.0), 0.5);
/// ```
pub fn similarity(cosine: f32, length: f32) -> f32 {
    ((1.0 - length * length) / 2.0 + length * cosine).clamp(0.0, 1.0)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the rules give exact values")]
mod tests {
    use super::*;
    use crate::domain::filter::DocumentFacets;

    fn bounds(request: &GraphRequest) -> Bounds {
        request.check(0.3).unwrap().bounds
    }

    // GRAPH-02 GRAPH-03 GRAPH-04 GRAPH-05 GRAPH-06 GRAPH-09 GRAPH-10 GRAPH-B04 GRAPH-B05
    #[test]
    fn what_is_not_given_has_its_default() {
        assert_eq!(
            bounds(&GraphRequest::default()),
            Bounds {
                depth: 2,
                fan_out: 5,
                min_similarity: 0.3,
                seeds: SeedStrategy::AllChunks,
                dedup_by_path: false,
                max_nodes: 100,
                max_seed_chunks: 32,
                order: Order::BreadthFirst,
                time_budget: None,
            }
        );
    }

    // GRAPH-02 GRAPH-03 GRAPH-04 GRAPH-09 GRAPH-10 GRAPH-12
    #[test]
    fn numbers_out_of_range_become_the_nearest_bound() {
        let most = Some(u32::MAX);
        let high = bounds(&GraphRequest {
            depth: most,
            fan_out: most,
            min_similarity: Some(f64::INFINITY),
            max_nodes: most,
            max_seed_chunks: most,
            ..GraphRequest::default()
        });
        assert_eq!((high.depth, high.fan_out, high.min_similarity), (3, 20, 1.0));
        assert_eq!((high.max_nodes, high.max_seed_chunks), (2000, 1000));
        let least = Some(0);
        let low = bounds(&GraphRequest {
            depth: least,
            fan_out: least,
            min_similarity: Some(-7.0),
            max_nodes: least,
            max_seed_chunks: least,
            ..GraphRequest::default()
        });
        assert_eq!((low.depth, low.fan_out, low.min_similarity), (0, 0, 0.0));
        assert_eq!((low.max_nodes, low.max_seed_chunks), (0, 1));
    }

    // GRAPH-04 GRAPH-12
    #[test]
    fn what_is_no_number_is_told_and_the_default_applies() {
        let request = GraphRequest { min_similarity: Some(f64::NAN), ..GraphRequest::default() };
        let checked = request.check(0.3).unwrap();
        assert_eq!(checked.bounds.min_similarity, 0.3);
        assert!(checked.warnings[0].contains("min_similarity"), "{:?}", checked.warnings);
    }

    // GRAPH-05 CLI-211
    #[test]
    fn a_strategy_has_two_spellings_and_every_other_is_answered_with_all() {
        for (text, seeds) in [
            ("all-chunks", SeedStrategy::AllChunks),
            ("all_chunks", SeedStrategy::AllChunks),
            ("centroid", SeedStrategy::Centroid),
        ] {
            let request =
                GraphRequest { seed_strategy: Some(text.into()), ..GraphRequest::default() };
            assert_eq!(bounds(&request).seeds, seeds);
        }
        for text in ["", "Centroid", "all chunks", &"x".repeat(100_000)] {
            let error = text.parse::<SeedStrategy>().unwrap_err().to_string();
            for spelling in ["all-chunks", "all_chunks", "centroid"] {
                assert!(error.contains(spelling), "{error}");
            }
            assert!(error.len() < 250);
        }
    }

    // GRAPH-B05 CLI-211
    #[test]
    fn an_order_has_two_spellings_too() {
        assert_eq!("best_first".parse(), Ok(Order::BestFirst));
        assert_eq!("best-first".parse(), Ok(Order::BestFirst));
        assert_eq!("breadth_first".parse(), Ok(Order::BreadthFirst));
        assert_eq!("breadth-first".parse(), Ok(Order::BreadthFirst));
        let error = "deepest".parse::<Order>().unwrap_err().to_string();
        assert!(error.contains("best_first") && error.contains("breadth-first"), "{error}");
    }

    fn admits(request: &GraphRequest, path: &str) -> bool {
        let fields = BTreeMap::from([("status".to_owned(), vec!["open".to_owned()])]);
        request.check(0.3).unwrap().filter.admits(&DocumentFacets {
            path,
            category: Some("docs"),
            topic: Some("mcp"),
            tags: &["a".to_owned(), "b".to_owned()],
            date: Some("2026-04-16"),
            fields: &fields,
        })
    }

    // GRAPH-08 GRAPH-B01
    #[test]
    fn excluded_paths_are_exact_and_excluded_globs_are_not() {
        let paths = ["docs/*.md", "docs/b.md"].map(str::to_owned).to_vec();
        let exact = GraphRequest { exclude_paths: paths, ..GraphRequest::default() };
        assert!(admits(&exact, "docs/a.md") && !admits(&exact, "docs/b.md"));
        let globs = vec!["docs/a*".to_owned()];
        let wild = GraphRequest { exclude_globs: globs, ..GraphRequest::default() };
        assert!(!admits(&wild, "docs/a.md") && admits(&wild, "docs/b.md"));
    }

    // GRAPH-08
    #[test]
    fn a_list_that_is_too_long_or_has_too_long_an_entry_is_named() {
        let of =
            |paths: Vec<String>| GraphRequest { exclude_paths: paths, ..GraphRequest::default() };
        assert!(of(vec!["x".into(); 64]).check(0.3).is_ok());
        let error = of(vec!["x".into(); 65]).check(0.3).unwrap_err().to_string();
        assert!(error.contains("`exclude_paths`") && error.contains("64"), "{error}");
        assert!(of(vec!["x".repeat(1024)]).check(0.3).is_ok());
        let error = of(vec!["x".repeat(1025)]).check(0.3).unwrap_err().to_string();
        assert!(error.contains("`exclude_paths`") && error.contains("1024"), "{error}");
    }

    // GRAPH-B01
    #[test]
    fn a_glob_that_cannot_be_read_is_named_with_its_parameter() {
        for (glob, word) in [("[", "\"[\""), ("!docs/**", "leave the `!` out")] {
            let request =
                GraphRequest { exclude_globs: vec![glob.into()], ..GraphRequest::default() };
            let error = request.check(0.3).unwrap_err().to_string();
            assert!(error.contains("`exclude_globs`") && error.contains(word), "{error}");
        }
    }

    // GRAPH-07 GRAPH-B01 SRCH-B11
    #[test]
    fn the_filters_of_a_search_apply() {
        let text = |text: &str| Some(text.to_owned());
        let list = |text: &str| vec![text.to_owned()];
        let map = |value: &str| BTreeMap::from([("status".to_owned(), list(value))]);
        let none = GraphRequest::default;
        for (passing, failing) in [
            (
                GraphRequest { category: text("docs"), ..none() },
                GraphRequest { category: text("doc"), ..none() },
            ),
            (
                GraphRequest { topic: text("mcp"), ..none() },
                GraphRequest { topic: text("MCP"), ..none() },
            ),
            (
                GraphRequest { path_globs: Some(list("docs/**")), ..none() },
                GraphRequest { path_globs: Some(list("!docs/**")), ..none() },
            ),
            (
                GraphRequest { tags_any: vec!["b".into(), "c".into()], ..none() },
                GraphRequest { tags_any: list("c"), ..none() },
            ),
            (
                GraphRequest { tags_all: vec!["a".into(), "b".into()], ..none() },
                GraphRequest { tags_all: vec!["a".into(), "c".into()], ..none() },
            ),
            (
                GraphRequest { date_from: text("2026-04-16"), ..none() },
                GraphRequest { date_from: text("2026-04-17"), ..none() },
            ),
            (
                GraphRequest { date_to: text("2026-04-16"), ..none() },
                GraphRequest { date_to: text("2026-04-15"), ..none() },
            ),
            (
                GraphRequest { fields: map("open"), ..none() },
                GraphRequest { fields: map("done"), ..none() },
            ),
            (
                GraphRequest { fields_not: map("done"), ..none() },
                GraphRequest { fields_not: map("open"), ..none() },
            ),
        ] {
            assert!(admits(&passing, "docs/mcp/a.md"), "{passing:?}");
            assert!(!admits(&failing, "docs/mcp/a.md"), "{failing:?}");
        }
    }

    // GRAPH-13 GRAPH-B01
    #[test]
    fn the_configured_quality_applies_unless_the_call_says_otherwise() {
        let least = |request: GraphRequest| request.check(0.25).unwrap().filter.min_quality();
        assert_eq!(least(GraphRequest::default()), 0.25);
        assert_eq!(least(GraphRequest { min_quality: Some(0.5), ..GraphRequest::default() }), 0.5);
        let any = GraphRequest { include_low_quality: true, ..GraphRequest::default() };
        assert_eq!(least(any), 0.0);
    }
}
