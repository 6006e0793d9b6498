//! What turns the bytes of one format into chunks.

use crate::domain::chunk::Chunk;
use crate::domain::document::{DocumentPath, Metadata};
use crate::domain::format::Format;

/// A parser for one format.
///
/// # Contract
///
/// - The answer depends on the input alone: no file, clock or network is
///   touched.
/// - Any bytes give an answer or a [`ParseError`]; an adapter is used through
///   the `guarded` wrapper, which turns a panic into an error as well.
/// - Chunks come in the order of the document.
///
/// `tests/contract/parser.rs` holds every adapter to this.
pub trait Parser: Send + Sync {
    /// The format that this parser reads.
    fn format(&self) -> Format;

    /// Raised whenever the same bytes may give other chunks or metadata than
    /// before, so that what an earlier version made of them is made again.
    fn version(&self) -> u32;

    /// Reads one document.
    ///
    /// # Errors
    ///
    /// [`ParseError`] if the bytes are not a document of this format.
    fn parse(&self, input: &ParseInput<'_>) -> Result<ParsedDocument, ParseError>;
}

/// What a parser is given.
#[derive(Clone, Copy, Debug)]
pub struct ParseInput<'a> {
    /// The document's key.
    pub path: &'a DocumentPath,
    /// The document's bytes.
    pub bytes: &'a [u8],
    /// Substrings of headings whose sections are dropped.
    pub exclude_headings: &'a [String],
}

/// What a parser makes of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedDocument {
    /// What the document says about itself.
    pub metadata: Metadata,
    /// Its parts, in order; none if there is nothing to index.
    pub chunks: Vec<Chunk>,
    /// The text that a reader of the whole document gets.
    pub served_text: String,
    /// Why the frontmatter could not be read; the body is indexed all the same.
    pub frontmatter_error: Option<String>,
    /// Remarks for whoever runs the index.
    pub warnings: Vec<String>,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A text format must be UTF-8, or in an encoding that is beyond doubt.
    #[error("it is not valid UTF-8 (first bad byte at offset {offset}); save it as UTF-8")]
    NotUtf8 {
        /// Where the first bad byte is, counted from 0.
        offset: usize,
    },
    /// The bytes are not a document of the format, or one that is not read.
    #[error("{reason}")]
    Unreadable {
        /// What is wrong, for a person.
        reason: String,
    },
    /// The parser gave up in a way that it should not.
    #[error("the {parser} parser failed: {message}")]
    Panicked {
        /// The parser's id.
        parser: &'static str,
        /// What the panic said.
        message: String,
    },
}
