//! Chunks: the parts of a document that are embedded and ranked.

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

    /// What is embedded for this chunk: its content, led by its context where
    /// `mode` says so and there is one.
    pub fn embedding_text(&self, mode: ContextMode) -> String {
        match (mode, self.context.as_deref()) {
            (ContextMode::Static, Some(context)) if !context.trim().is_empty() => {
                format!("{context}\n\n{}", self.content)
            }
            _ => self.content.clone(),
        }
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
    fn the_context_is_embedded_only_in_static_mode_and_only_if_it_says_something() {
        let mut chunk = Chunk {
            heading: Some("Port".into()),
            content: "3100".into(),
            context: Some("Guide > Port".into()),
            ..Chunk::default()
        };
        assert_eq!(chunk.embedding_text(ContextMode::Off), "3100");
        assert_eq!(chunk.embedding_text(ContextMode::Static), "Guide > Port\n\n3100");
        chunk.context = Some("  ".into());
        assert_eq!(chunk.embedding_text(ContextMode::Static), "3100");
    }
}
