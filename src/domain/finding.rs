//! What an examination of an index asks, and what it finds.

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// A part of the index is missing or stands for nothing.
    Error,
    /// The index is sound, and something is not as it could be.
    Warning,
}

impl Severity {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A question about an index. In the order of [`ALL`](Self::ALL), findings are
/// reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Is there a place for vectors?
    VectorTableMissing,
    /// Has every chunk a vector?
    MissingEmbedding,
    /// Has every vector a chunk?
    OrphanEmbedding,
    /// Can the text of every chunk be matched?
    MissingFtsRow,
    /// Does all that can be matched belong to a chunk?
    OrphanFtsRow,
    /// Has every chunk a document?
    ChunkWithoutDocument,
    /// Has every document a chunk?
    DocumentWithoutChunks,
    /// Is there a parser for every document?
    ExtensionNotRegistered,
    /// Is every document small enough to be handed out?
    LargerThanARead,
    /// Are binary documents handed out?
    BinaryUrisWithheld,
    /// Is the size of every document known?
    SizeNotRecorded,
    /// Is it known which frontmatter keys are kept?
    DeclaredFieldsPending,
    /// Are they the ones that the schema declares?
    DeclaredFieldsStale,
    /// Is it known how source code was cut?
    ChunkPolicyNotRecorded,
    /// Was all source code cut by its definitions?
    ChunkedWithoutDefinitions,
    /// Does every chunk of source code hold something?
    BlankCodeChunks,
    /// Can every document be opened under its name?
    NameNotSpellable,
    /// Is every document there once? Asked on request only.
    DuplicateContent,
    /// Do all names differ however they are composed? Asked on request only.
    MixedNormalisation,
}

impl Check {
    /// Every check.
    pub const ALL: [Self; 19] = [
        Self::VectorTableMissing,
        Self::MissingEmbedding,
        Self::OrphanEmbedding,
        Self::MissingFtsRow,
        Self::OrphanFtsRow,
        Self::ChunkWithoutDocument,
        Self::DocumentWithoutChunks,
        Self::ExtensionNotRegistered,
        Self::LargerThanARead,
        Self::BinaryUrisWithheld,
        Self::SizeNotRecorded,
        Self::DeclaredFieldsPending,
        Self::DeclaredFieldsStale,
        Self::ChunkPolicyNotRecorded,
        Self::ChunkedWithoutDefinitions,
        Self::BlankCodeChunks,
        Self::NameNotSpellable,
        Self::DuplicateContent,
        Self::MixedNormalisation,
    ];

    /// The id of the check.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VectorTableMissing => "vector-table-missing",
            Self::MissingEmbedding => "missing-embedding",
            Self::OrphanEmbedding => "orphan-embedding",
            Self::MissingFtsRow => "missing-fts-row",
            Self::OrphanFtsRow => "orphan-fts-row",
            Self::ChunkWithoutDocument => "chunk-without-document",
            Self::DocumentWithoutChunks => "document-without-chunks",
            Self::ExtensionNotRegistered => "extension-not-registered",
            Self::LargerThanARead => "larger-than-a-read-returns",
            Self::BinaryUrisWithheld => "binary-uris-withheld",
            Self::SizeNotRecorded => "size-not-recorded",
            Self::DeclaredFieldsPending => "declared-fields-pending",
            Self::DeclaredFieldsStale => "declared-fields-stale",
            Self::ChunkPolicyNotRecorded => "chunk-policy-not-recorded",
            Self::ChunkedWithoutDefinitions => "chunked-without-definitions",
            Self::BlankCodeChunks => "blank-code-chunks",
            Self::NameNotSpellable => "name-not-spellable-on-windows",
            Self::DuplicateContent => "duplicate-content",
            Self::MixedNormalisation => "mixed-normalisation",
        }
    }

    /// How much a finding of it matters.
    pub fn severity(self) -> Severity {
        if self <= Self::DocumentWithoutChunks { Severity::Error } else { Severity::Warning }
    }
}

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check.
    pub check: Check,
    /// What is wrong, in one sentence.
    pub summary: String,
    /// How often; 0 for a check that could not be made.
    pub count: u64,
    /// At most five places where.
    pub samples: Vec<String>,
    /// The command to run, or what to change.
    pub remedy: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    // CLI-157 OPS-76
    #[test]
    fn the_integrity_group_comes_first_and_is_of_errors() {
        assert!(Check::ALL.is_sorted());
        let errors = Check::ALL.iter().filter(|check| check.severity() == Severity::Error).count();
        assert_eq!(errors, 7);
        assert!(Check::ALL[..7].iter().all(|check| check.severity() == Severity::Error));
        let ids: std::collections::BTreeSet<_> = Check::ALL.iter().map(|it| it.as_str()).collect();
        assert_eq!(ids.len(), Check::ALL.len());
    }
}
