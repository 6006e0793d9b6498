//! What a search is asked, and what it answers.

use std::collections::BTreeMap;

use crate::domain::chunk::{LineRange, Span};
use crate::domain::highlights::Highlight;

/// A search as a caller words it; nothing in it is checked yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchRequest {
    /// What is looked for.
    pub query: String,
    /// The most hits that are wanted; 5 if not given.
    pub limit: Option<u32>,
    /// Only documents of this category.
    pub category: Option<String>,
    /// Only documents of this topic.
    pub topic: Option<String>,
    /// Globs over the path; one that starts with `!` excludes.
    pub path_globs: Option<Vec<String>>,
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
    /// Return chunks of any quality.
    pub include_low_quality: bool,
    /// Whether a reranker scores the candidates again.
    pub rerank: Option<bool>,
    /// How far the best score must stand out for the answer to count as sure.
    pub min_confidence_ratio: Option<f64>,
    /// Whether hits are spread over different passages.
    pub mmr: Option<bool>,
    /// Relevance against diversity, from 0 to 1.
    pub mmr_lambda: Option<f64>,
    /// What a second chunk of one document loses, from 0 to 1.
    pub mmr_same_doc_penalty: Option<f64>,
    /// Whether hits are widened to their surroundings.
    pub parent_retriever: Option<bool>,
}

/// What the scores of an answer are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreKind {
    /// Sums of reciprocal ranks.
    #[default]
    Fused,
    /// What a reranker gave, as it is: higher is better, and it may be negative.
    Reranked,
}

impl ScoreKind {
    /// The word for it in an answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fused => "rrf",
            Self::Reranked => "rerank",
        }
    }
}

/// What a search answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// The hits, best first.
    pub hits: Vec<Hit>,
    /// What their scores are.
    pub score_kind: ScoreKind,
    /// Advisory: the scores are flat.
    pub low_confidence: bool,
    /// How sure the best hit is, from 0 to 1; none where that cannot be told.
    /// See [`confidence`](crate::domain::confidence).
    pub confidence: Option<f32>,
    /// The least quality that a chunk had to have, from 0 to 1.
    pub min_quality: f32,
    /// The conditions that had an effect.
    pub filter: FilterEcho,
    /// The legs that could not take part, `vector` or `fulltext`; empty when
    /// all could.
    pub degraded: Vec<&'static str>,
    /// Chunks that only their words can find yet, since their vectors are still
    /// to come.
    pub pending_chunks: u64,
    /// Remarks that a caller should see, such as parts of the query that were
    /// too short to be found.
    pub warnings: Vec<String>,
    /// What a budget cost; none if none was given.
    pub budget: Option<Budget>,
}

/// A chunk in an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hit {
    /// The fused score, or the reranker's own; higher is better.
    pub score: f32,
    /// The document's key.
    pub path: String,
    /// The document's title.
    pub title: Option<String>,
    /// The section's title.
    pub heading: Option<String>,
    /// The document's topic.
    pub topic: Option<String>,
    /// The document's date.
    pub date: Option<String>,
    /// The document's tags.
    pub tags: Vec<String>,
    /// The text.
    pub content: String,
    /// Where terms of the query occur in `content`; none if that was not
    /// computed.
    pub match_spans: Option<Vec<Span>>,
    /// Where terms of any script occur in `content`, and on which line: of the
    /// document where [`lines`](Self::lines) is set, of `content` elsewhere;
    /// none if that was not computed.
    pub highlights: Option<Vec<Highlight>>,
    /// Set if the parent retriever considered this hit.
    pub expanded_from: Option<Expansion>,
    /// Where the text lies in a source file.
    pub lines: Option<LineRange>,
    /// The grammar's word for the definition that the text is.
    pub symbol_kind: Option<String>,
    /// The address under which a client can open the document.
    pub uri: Option<String>,
    /// The chunk's place in its document, counted from 0.
    pub chunk_index: u32,
    /// How many chunks the document has.
    pub document_chunks: u32,
    /// Which legs proposed the chunk: `vector`, `fulltext`.
    pub matched_by: Vec<&'static str>,
    /// The lines of the document's file that the passage stands on now, if that
    /// is known.
    pub location: Option<LineRange>,
    /// How to name the passage to a reader.
    pub cite: Option<String>,
    /// Whether `content` is only a part of the passage, because less was asked
    /// for.
    pub is_shortened: bool,
}

/// What had to be done to keep an answer within a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// The most tokens of the answer, as asked for.
    pub max_tokens: usize,
    /// Hits that were left out.
    pub left_out: usize,
    /// Hits whose passage was shortened.
    pub shortened: usize,
}

/// How a hit was widened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expansion {
    /// To the whole document.
    WholeDocument {
        /// How many chunks it has.
        total_chunks: u32,
    },
    /// To its neighbours; to nothing if both ends are the hit itself.
    Adjacent {
        /// The first chunk.
        from_index: u32,
        /// The last chunk.
        to_index: u32,
    },
}

/// The conditions of a search that had an effect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterEcho {
    /// As given.
    pub category: Option<String>,
    /// As given.
    pub topic: Option<String>,
    /// As given.
    pub path_globs: Vec<String>,
    /// As given.
    pub tags_any: Vec<String>,
    /// As given.
    pub tags_all: Vec<String>,
    /// As given.
    pub date_from: Option<String>,
    /// As given.
    pub date_to: Option<String>,
    /// Normalised.
    pub fields: BTreeMap<String, Vec<String>>,
    /// Normalised.
    pub fields_not: BTreeMap<String, Vec<String>>,
    /// As given.
    pub min_confidence_ratio: Option<f64>,
    /// The phrases that were excluded.
    pub excluded_terms: Vec<String>,
}
