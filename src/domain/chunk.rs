//! Chunks: the parts of a document that are embedded and ranked.

use std::borrow::Cow;
use std::fmt;

use sha2::{Digest as _, Sha256};

/// The store's number for a chunk; ascending numbers break ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub i64);

/// A half-open range of bytes in a text, on character boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte inside.
    pub start: usize,
    /// First byte after.
    pub end: usize,
}

/// Lines of a source file, counted from 1, both ends inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineRange {
    /// First line.
    pub start: u32,
    /// Last line.
    pub end: u32,
}

/// One part of a document as a parser cuts it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The title of the section.
    pub heading: Option<String>,
    /// How deep the heading is.
    pub level: Option<u8>,
    /// The text that is ranked and returned.
    pub content: String,
    /// A breadcrumb of title, ancestors and heading; used for retrieval and
    /// never returned.
    pub context: Option<String>,
    /// Where the chunk lies in a source file.
    pub lines: Option<LineRange>,
    /// The grammar's word for the definition that the chunk is.
    pub symbol_kind: Option<String>,
    /// Byte ranges of table rows within `content`.
    pub table_rows: Vec<Span>,
}

impl Chunk {
    /// The stored estimate of a chunk's tokens: a quarter of its bytes.
    ///
    /// ```
    /// use grooveseek::domain::chunk::Chunk;
    ///
    /// let chunk = Chunk { content: "twelve bytes".into(), ..Chunk::default() };
    /// assert_eq!(chunk.token_count(), 3);
    /// ```
    pub fn token_count(&self) -> u32 {
        u32::try_from((self.content.len() / 4).min(i32::MAX as usize)).unwrap_or(i32::MAX as u32)
    }

    /// What is embedded for this chunk: its content, led by its context if that
    /// says something. A chunk has a context only where [`ContextMode::Static`]
    /// holds.
    pub fn embedding_text(&self) -> Cow<'_, str> {
        match self.context.as_deref() {
            Some(context) if !context.trim().is_empty() => {
                Cow::Owned(format!("{context}\n\n{}", self.content))
            }
            _ => Cow::Borrowed(&self.content),
        }
    }
}

/// Stands for a text that is embedded: equal texts have equal hashes, and no two
/// others do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextHash([u8; Self::BYTES]);

impl TextHash {
    /// How many bytes a hash has.
    pub const BYTES: usize = 16;

    /// Hashes a text: the first half of its SHA-256.
    ///
    /// ```
    /// use grooveseek::domain::chunk::TextHash;
    ///
    /// assert_eq!(TextHash::of("tides"), TextHash::of("tides"));
    /// assert_ne!(TextHash::of("tides"), TextHash::of("tide"));
    /// ```
    pub fn of(text: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(text).into();
        Self(std::array::from_fn(|byte| digest[byte]))
    }

    /// The hash as bytes.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// Takes bytes back that were a hash.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for TextHash {
    /// The hash in 32 hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TextHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "TextHash({self})")
    }
}

/// Whether contexts were part of what was embedded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextMode {
    /// Content alone.
    #[default]
    Off,
    /// Context, a blank line, content.
    Static,
}

impl ContextMode {
    /// The word that the index records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Static => "static",
        }
    }

    /// Reads the recorded word back.
    pub fn from_text(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "static" => Some(Self::Static),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-67
    #[test]
    fn the_context_is_embedded_only_if_it_says_something() {
        let mut chunk = Chunk {
            heading: Some("Port".into()),
            content: "3100".into(),
            context: Some("Guide > Port".into()),
            ..Chunk::default()
        };
        assert_eq!(chunk.embedding_text(), "Guide > Port\n\n3100");
        for context in [None, Some("  ".into())] {
            chunk.context = context;
            assert_eq!(chunk.embedding_text(), "3100");
        }
    }
}
