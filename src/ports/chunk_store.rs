//! Where documents, chunks and their vectors are kept.

mod damage;

pub use damage::{Damage, Fault};

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::chunk::{Chunk, ChunkId, ContextMode, TextHash};
use crate::domain::document::{ContentHash, DocumentPath};
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::evidence::Spread;
use crate::domain::filter::{DocumentFacets, Filter};
use crate::domain::query::Phrase;
use crate::ports::Cause;

/// A store of documents.
///
/// # Contract
///
/// - [`apply`](Self::apply) makes all of its changes visible at once, or none
///   of them; what it made visible survives a crash of the process.
/// - [`snapshot`](Self::snapshot) gives a view that no later change alters,
///   and waits for no writer.
/// - Chunk ids are never used again, not even after a document was replaced or
///   the store was built anew.
///
/// `tests/contract/chunk_store.rs` holds every adapter to this.
#[async_trait]
pub trait ChunkStore: Send + Sync {
    /// Looks at the store as the last [`apply`](Self::apply) left it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the store cannot be read.
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError>;

    /// Makes changes, in order, all or none.
    ///
    /// # Errors
    ///
    /// [`StoreError::WrongDimension`] if a vector does not fit,
    /// [`StoreError::NotFound`] if a change names a document that is not
    /// there, [`StoreError::Exists`] if a rename's target is taken, and
    /// [`StoreError::Unavailable`] if the store cannot be written. Nothing was
    /// changed then.
    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError>;

    /// Begins to build this store anew, beside what it holds: nothing of that
    /// changes until the new one is complete.
    ///
    /// - `identity`: what the vectors of the new one will be made with.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if there is no room for a second store.
    async fn replacement(
        &self,
        identity: ModelIdentity,
    ) -> Result<Box<dyn Replacement>, StoreError>;

    /// Makes what is kept of each chunk complete again, where another program
    /// or damage has left a part of it out: its text can be matched, and a
    /// vector that is not there counts as still to come. Changes nothing where
    /// nothing is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the store cannot be read or written.
    async fn repair(&self) -> Result<Repairs, StoreError>;

    /// The runs that are announced now, by this process or another, the oldest
    /// first. One whose process has died is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if it cannot be told.
    async fn runs(&self) -> Result<Vec<RunUnderWay>, StoreError>;

    /// Tells everyone who uses this store, in other processes too, that a run
    /// is on, for as long as what is returned lives. It keeps nobody from
    /// anything.
    ///
    /// - `since`: when the run began: RFC 3339, UTC.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if there is no place to tell it.
    async fn announce(&self, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError>;
}

/// What was found missing in a store, and made good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Chunks whose text could not be matched, and now can.
    pub texts: u64,
    /// Chunks without a vector that now count as having one to come.
    pub vectors: u64,
    /// Texts and vectors of chunks that are not there, which have gone.
    pub orphans: u64,
}

/// A run that somebody has announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunUnderWay {
    /// The process.
    pub process: u32,
    /// When it began: RFC 3339, UTC.
    pub since: String,
    /// Documents that it has settled.
    pub done: usize,
    /// Documents that it has found; 0 until it has.
    pub total: usize,
}

/// A run of one's own that others are told of until this is dropped.
pub trait AnnouncedRun: Send + Sync {
    /// Tells how far it has come. Cheap; what others see may be a little late.
    fn advanced(&self, done: usize, total: usize);
}

/// A store that is being built to take another one's place.
///
/// # Contract
///
/// - [`store`](Self::store) starts with the identity it was asked for and
///   without a document. Nothing of it is seen in the original before
///   [`commit`](Self::commit), and nothing of the original in it.
/// - A replacement that is dropped leaves no trace.
///
/// `tests/contract/chunk_store.rs` holds every adapter to this.
#[async_trait]
pub trait Replacement: Send + Sync {
    /// The store to fill. Once the replacement is committed or dropped, it is
    /// of no further use.
    fn store(&self) -> Arc<dyn ChunkStore>;

    /// Makes the original hold what the new store holds, all at once. What was
    /// written to the original meanwhile is gone with the rest; a snapshot that
    /// was taken earlier sees what it saw.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the original cannot be written; it is
    /// then as it was.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// One change to a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Stores a document with its chunks, in place of what it had before.
    /// Vectors that it comes without count as still to come.
    Put {
        /// The document.
        document: Document,
        /// Its chunks, in order.
        chunks: Vec<NewChunk>,
    },
    /// Rewrites what is known of a document and keeps its chunks; one that is
    /// not there is no error.
    Describe(Document),
    /// Moves a document to another key; everything else stays.
    Rename {
        /// The old key.
        from: DocumentPath,
        /// The new key, which must be free.
        to: DocumentPath,
    },
    /// Notes the size that was measured last; a document that is not there is
    /// no error.
    Resize {
        /// Whose size.
        path: DocumentPath,
        /// Bytes.
        size_bytes: u64,
    },
    /// Removes a document with everything that belongs to it; one that is not
    /// there is no error.
    Remove(DocumentPath),
    /// Adds the vector of a chunk that was stored without one; a chunk that
    /// has gone meanwhile is no error.
    Embed {
        /// Which chunk.
        chunk: ChunkId,
        /// Its vector.
        embedding: Embedding,
    },
    /// Takes the vector of a chunk away, which then counts as still to come; a
    /// chunk that has none, or has gone meanwhile, is no error.
    Unembed(ChunkId),
    /// Scores a chunk again; one that has gone meanwhile is no error.
    Score {
        /// Which chunk.
        chunk: ChunkId,
        /// How much it is worth finding, from 0 to 1.
        quality: f32,
    },
    /// Removes every document and takes on an identity. What was recorded of
    /// the context mode, the declared fields, the rules of quality and the way of
    /// long texts is forgotten.
    Empty(ModelIdentity),
    /// Records the identity without touching a document.
    Identify(ModelIdentity),
    /// Records the name of the place that the documents come from.
    BelongTo(String),
    /// Records the rules by which every chunk was scored.
    Judge(String),
    /// Records in which way every text was embedded that is longer than the
    /// model's window.
    EmbedLongTexts(String),
    /// Records whether contexts are part of what is embedded.
    UseContext(ContextMode),
    /// Records the frontmatter keys whose values the last complete run kept,
    /// or that no run has completed.
    Declare(Option<BTreeSet<String>>),
}

/// What a store keeps of a document besides its chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its key.
    pub path: DocumentPath,
    /// The title that an answer shows.
    pub title: Option<String>,
    /// From the frontmatter, else from the path.
    pub topic: Option<String>,
    /// From the path.
    pub category: Option<String>,
    /// From the frontmatter.
    pub depth: Option<String>,
    /// Words attached to it.
    pub tags: Vec<String>,
    /// As its author wrote it.
    pub date: Option<String>,
    /// The values of declared frontmatter keys, each key with at least one.
    pub fields: BTreeMap<String, Vec<String>>,
    /// The hash of the bytes that were indexed.
    pub hash: ContentHash,
    /// What made chunks of them: the parser, its version and the settings that
    /// it heeds. None where an earlier program did not record it.
    pub recipe: Option<String>,
    /// How large the file was when it was last measured; none if it never was.
    pub size_bytes: Option<u64>,
    /// When it was last indexed: RFC 3339, UTC.
    pub indexed_at: String,
}

impl Document {
    /// What a filter looks at.
    pub fn facets(&self) -> DocumentFacets<'_> {
        DocumentFacets {
            path: self.path.as_str(),
            category: self.category.as_deref(),
            topic: self.topic.as_deref(),
            tags: &self.tags,
            date: self.date.as_deref(),
            fields: &self.fields,
        }
    }
}

/// A chunk that is to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewChunk {
    /// The chunk. Its context is stored and searched as it is here.
    pub chunk: Chunk,
    /// How much it is worth finding, from 0 to 1.
    pub quality: f32,
    /// Its vector, unless that is still to come.
    pub embedding: Option<Embedding>,
}

/// A chunk as the store gives it back.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredChunk {
    /// Its id.
    pub id: ChunkId,
    /// The document that it belongs to.
    pub document: Arc<Document>,
    /// Its place in the document, counted from 0.
    pub index: u32,
    /// How many chunks the document has.
    pub siblings: u32,
    /// The chunk.
    pub chunk: Chunk,
    /// Estimated tokens of its content; 0 if it was never estimated.
    pub token_count: u32,
    /// How much it is worth finding, from 0 to 1.
    pub quality: f32,
}

/// A consistent, unchanging view of a store.
///
/// # Contract
///
/// - A leg returns at most as many candidates as were asked for, best first,
///   equal scores in ascending order of chunk id.
/// - A filter never starves a leg: what it drops is not counted.
/// - A chunk without a vector is no candidate of [`nearest`](Self::nearest)
///   and a candidate of [`matching`](Self::matching) all the same.
///
/// `tests/contract/chunk_store.rs` holds every adapter to this.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// What is recorded of the index as a whole. Costs next to nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], as with every method here.
    async fn summary(&self) -> Result<Summary, StoreError>;

    /// What has to be counted; that may take longer than a search.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn statistics(&self) -> Result<Statistics, StoreError>;

    /// Looks for one kind of damage. Costs about as much as reading every number
    /// of a chunk once.
    ///
    /// - Returns nothing found where the store cannot be damaged so.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], also if the damage is such that it cannot be
    /// told how far it goes.
    async fn damage(&self, fault: Fault) -> Result<Damage, StoreError>;

    /// Every document, in ascending order of path.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn documents(&self) -> Result<Vec<Arc<Document>>, StoreError>;

    /// The documents with these paths, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn documents_at(
        &self,
        paths: &[DocumentPath],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError>;

    /// The documents of which vectors are still to come, in ascending order of
    /// path.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn pending(&self) -> Result<Vec<DocumentPath>, StoreError>;

    /// The chunks of one document that have no vector, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn pending_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError>;

    /// Vectors of chunks, of whichever document, from which the same text was
    /// embedded; in the order of the texts, none where there is no such chunk.
    /// A store that was filled by an earlier program may not know all.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn embeddings_of_texts(
        &self,
        texts: &[TextHash],
    ) -> Result<Vec<Option<Embedding>>, StoreError>;

    /// The chunks with these ids, in the order of the ids; one that is not
    /// there is left out.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, StoreError>;

    /// The chunks of one document in order, none if it is not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn chunks_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError>;

    /// Some chunks of one document in order, none if it is not there.
    ///
    /// - `indexes`: their places in the document, counted from 0; those that
    ///   there are no chunks for are passed over.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn chunks_between(
        &self,
        path: &DocumentPath,
        indexes: RangeInclusive<u32>,
    ) -> Result<Vec<StoredChunk>, StoreError>;

    /// The first chunks of one document in order, none if it is not there. No
    /// more are read than come back.
    ///
    /// - `most`: how many at most.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn first_chunks_of(
        &self,
        path: &DocumentPath,
        most: usize,
    ) -> Result<Vec<StoredChunk>, StoreError>;

    /// The vectors of these chunks, in their order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn embeddings(&self, ids: &[ChunkId]) -> Result<Vec<Option<Embedding>>, StoreError>;

    /// The dense leg: the chunks nearest to a query.
    ///
    /// - `depth`: the most candidates that are wanted.
    /// - Returns candidates whose score is the cosine similarity.
    ///
    /// # Errors
    ///
    /// [`StoreError::WrongDimension`] if the query does not fit, and
    /// [`StoreError::Unavailable`].
    async fn nearest(
        &self,
        query: &Embedding,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Candidate>, StoreError>;

    /// The chunks nearest to each of several queries, all under one restriction,
    /// as if [`nearest`](Self::nearest) were asked for one after the other.
    ///
    /// - Returns one ranking for each query, in their order.
    ///
    /// # Errors
    ///
    /// As with [`nearest`](Self::nearest).
    async fn nearest_to_each(
        &self,
        queries: &[Embedding],
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Vec<Candidate>>, StoreError> {
        let mut rankings = Vec::with_capacity(queries.len());
        for query in queries {
            rankings.push(self.nearest(query, depth, restriction).await?);
        }
        Ok(rankings)
    }

    /// How the cosine similarities of all chunks with a query are spread, as a
    /// sample tells it.
    ///
    /// - Returns none where there are too few vectors to tell.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn cosine_spread(&self, query: &Embedding) -> Result<Option<Spread>, StoreError>;

    /// How the cosine similarities of chunks with one another are spread, as pairs
    /// of a sample tell it.
    ///
    /// - Returns none where there are too few vectors to tell.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn cosines_between(&self) -> Result<Option<Spread>, StoreError>;

    /// The lexical leg: the chunks in which a word or a phrase of a query occurs.
    ///
    /// - `depth`: the most candidates that are wanted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    async fn matching(
        &self,
        query: &LexicalQuery,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Matches, StoreError>;
}

/// What the lexical leg found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matches {
    /// Candidates whose score is BM25; higher is better.
    pub candidates: Vec<Candidate>,
    /// How the scores of all chunks are spread, those without a match having 0,
    /// whether they pass the restriction or not. None where nothing matched, or
    /// where it is not known.
    pub spread: Option<Spread>,
    /// How much of the query's weight stands in what names the best candidate:
    /// its heading, its context, and the title and file name of its document. A
    /// share from 0 to 1.
    pub named: f32,
}

/// What is recorded of an index as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// What its vectors were made with, once that is known.
    pub identity: Option<ModelIdentity>,
    /// Whether contexts were part of what was embedded, once that is known.
    pub context_mode: Option<ContextMode>,
    /// The frontmatter keys whose values are kept; none while no run has
    /// completed.
    pub declared_fields: Option<BTreeSet<String>>,
    /// What the place is called that the documents come from.
    pub root: Option<String>,
    /// The rules by which every chunk was scored.
    pub quality_rules: Option<String>,
    /// In which way every text was embedded that is longer than the model's
    /// window.
    pub long_texts: Option<String>,
    /// Documents.
    pub documents: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks whose vector is still to come.
    pub pending_chunks: u64,
    /// Whether any chunk has a vector.
    pub has_vectors: bool,
    /// A number that every change raises, by this process or another.
    pub generation: u64,
}

/// What is counted of an index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// How many values of declared keys are stored.
    pub field_values: u64,
    /// Chunks without a vector: those whose vector is still to come, and those
    /// that have lost it.
    pub chunks_without_vector: u64,
    /// How many chunks there are of each quality, in ascending order.
    pub qualities: Vec<(f32, u64)>,
    /// Documents whose stored tags cannot be read back.
    pub unreadable_tags: u64,
}

/// What both legs leave out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restriction {
    /// The filter over documents and quality.
    pub filter: Filter,
    /// A chunk in which one of these occurs, by the lexical leg's own
    /// matching, is left out.
    pub excluded: Vec<Phrase>,
}

/// What the lexical leg looks for. Any of it counts as a match, and the rarer it
/// is, the more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LexicalQuery {
    /// Text of which every word is looked for, in all its forms.
    pub text: String,
    /// What is looked for as it stands, inside of words too.
    pub verbatim: Vec<Phrase>,
    /// Parts of the text that are looked for inside of words where words do not
    /// find them.
    pub phrases: Vec<Phrase>,
    /// How much a match weighs, by where it is.
    pub weights: ColumnWeights,
}

/// How much a match weighs, by where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnWeights {
    /// In the heading.
    pub heading: f64,
    /// In the context.
    pub context: f64,
    /// In the content.
    pub content: f64,
}

impl Default for ColumnWeights {
    fn default() -> Self {
        Self { heading: 2.0, context: 1.0, content: 1.0 }
    }
}

/// A chunk that a leg proposes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The chunk.
    pub chunk: ChunkId,
    /// How well it fits; higher is better. The range is the leg's own.
    pub score: f32,
}

/// Why a store could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No document has this path.
    #[error("no document at {path} in the index")]
    NotFound {
        /// The path that was asked for.
        path: DocumentPath,
    },
    /// A rename's target is taken.
    #[error("there is a document at {path} in the index already")]
    Exists {
        /// The path that is taken.
        path: DocumentPath,
    },
    /// A vector does not fit the index.
    #[error(
        "the index holds vectors of dimension {expected}, this one has {actual}; rebuild with `groove index --force`"
    )]
    WrongDimension {
        /// The index's dimension.
        expected: usize,
        /// The vector's.
        actual: usize,
    },
    /// The file is not usable as a database.
    #[error(
        "{path} is not a usable SQLite database ({reason}); delete it and run `groove index`, or run `groove index --force`, which replaces it"
    )]
    Damaged {
        /// The file's full path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The file is a database that another program made.
    #[error(
        "{path} is a database that this program did not build ({reason}); it was left as it is; `groove index --force` replaces it"
    )]
    Foreign {
        /// The file's full path.
        path: String,
        /// What does not fit.
        reason: String,
    },
    /// The technology behind the store failed. Asking again may help.
    #[error("cannot {what}")]
    Unavailable {
        /// What was being done, for a person to recognise.
        what: String,
        /// The failure as the technology reported it.
        source: Cause,
    },
}
