//! What a run tells while it goes on, and at its end.

use std::time::Duration;

use crate::domain::document::DocumentPath;

/// Hears of everything in a run that a person may want to see.
pub trait Observer: Send + Sync {
    /// Takes one event; called from several threads.
    fn event(&self, event: IndexEvent<'_>);
}

/// Something that happened in a run.
#[derive(Clone, Copy, Debug)]
pub enum IndexEvent<'a> {
    /// The run begins.
    Started {
        /// Whether it indexes every file anew.
        force: bool,
    },
    /// The source was listed.
    Found {
        /// How many documents there are.
        files: usize,
        /// The extensions that were looked for, each with its dot.
        extensions: &'a [String],
    },
    /// So many documents have been hashed.
    Scanning {
        /// Documents hashed.
        done: usize,
        /// Documents to hash.
        total: usize,
    },
    /// So many new documents can be found by their text; their vectors follow.
    Texts {
        /// Documents whose text is in the index.
        done: usize,
        /// New documents.
        total: usize,
    },
    /// Unchanged documents are about to be read again, since their chunks were
    /// made by an earlier version or under other settings.
    Recutting {
        /// How many.
        documents: usize,
    },
    /// So many documents are settled, whether they had changed or not.
    Advanced {
        /// Documents settled.
        done: usize,
        /// Documents found.
        total: usize,
    },
    /// A document was written.
    Indexed {
        /// Which.
        path: &'a DocumentPath,
        /// How many chunks it has.
        chunks: usize,
    },
    /// A document's metadata was written over the same text.
    Described {
        /// Which.
        path: &'a DocumentPath,
    },
    /// A document has another key.
    Renamed {
        /// The old key.
        from: &'a DocumentPath,
        /// The new key.
        to: &'a DocumentPath,
    },
    /// A document has gone.
    Deleted {
        /// Which.
        path: &'a DocumentPath,
    },
    /// A document is left as it was.
    Skipped {
        /// Which.
        path: &'a DocumentPath,
        /// Why, and what would help.
        reason: &'a str,
    },
    /// The embedding endpoint does not take a document's text.
    Rejected {
        /// Which.
        path: &'a DocumentPath,
        /// What it answered.
        reason: &'a str,
        /// Whether the run builds anew, so that the document is not in the
        /// index after it.
        forced: bool,
    },
    /// A document's frontmatter is not understood; its body is indexed.
    FrontmatterUnparsed {
        /// Which.
        path: &'a DocumentPath,
        /// Why.
        reason: &'a str,
    },
    /// Something worth knowing.
    Note(&'a str),
    /// Something that is not as asked.
    Warning(&'a str),
    /// The run is complete.
    Finished(&'a Report),
}

impl IndexEvent<'_> {
    /// What a rejection means for the index.
    pub fn fate_of_rejected(forced: bool) -> &'static str {
        if forced { "the file is not in the index" } else { "the index keeps what it had" }
    }
}

/// What a run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Documents in the index after the run.
    pub documents: u64,
    /// Chunks in the index after the run.
    pub chunks: u64,
    /// Documents written.
    pub updated: u64,
    /// Keys moved.
    pub renamed: u64,
    /// Documents removed.
    pub deleted: u64,
    /// Documents found and not indexed.
    pub skipped: u64,
    /// Documents whose frontmatter was not understood.
    pub frontmatter_unparsed: u64,
    /// Files left out because their name cannot be a key.
    pub not_nameable: u64,
    /// How long the run took.
    pub duration: Duration,
    /// The run is complete, but must not count as a success.
    pub failure: Option<String>,
}
