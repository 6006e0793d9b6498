//! What may be wrong with a store, and how much of it is.

/// A kind of damage to a store, which another program, an older one or the
/// medium may have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There are chunks whose vectors are not still to come, and no place that
    /// vectors are kept in. Counts every chunk; no vector counts as lost then.
    NoVectors,
    /// A chunk has lost its vector; one whose vector is still to come has not.
    LostVector,
    /// A vector belongs to no chunk.
    OrphanVector,
    /// The text of a chunk cannot be matched.
    LostText,
    /// What can be matched belongs to no chunk.
    OrphanText,
    /// A chunk belongs to no document.
    OrphanChunk,
    /// A document has no chunk.
    EmptyDocument,
    /// A chunk of source code holds nothing but white space.
    BlankCode,
    /// A document is kept under a name that is no key.
    NoKey,
    /// What is recorded of declared frontmatter keys cannot be read.
    UnreadableFields,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::NoVectors,
        Self::LostVector,
        Self::OrphanVector,
        Self::LostText,
        Self::OrphanText,
        Self::OrphanChunk,
        Self::EmptyDocument,
        Self::BlankCode,
        Self::NoKey,
        Self::UnreadableFields,
    ];
}

/// How often a kind of damage was found, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// How often.
    pub count: u64,
    /// The first five names of documents that it was found in, in ascending
    /// order; none where it belongs to no document.
    pub samples: Vec<String>,
}

impl Damage {
    /// The most samples.
    pub const MAX_SAMPLES: usize = 5;
}
