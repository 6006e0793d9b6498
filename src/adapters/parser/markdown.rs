//! Markdown: frontmatter, and sections below headings.

use crate::domain::chunking::headings;
use crate::domain::format::{Format, MARKDOWN};
use crate::domain::frontmatter;
use crate::ports::parser::{ParseError, ParseInput, ParsedDocument, Parser};

/// Reads Markdown in UTF-8.
///
/// The served text is the file as it is. Every chunk has a context, led by the
/// frontmatter's title or else by the one of the file's name; the metadata has
/// the frontmatter's title alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkdownParser;

impl MarkdownParser {
    /// Makes a parser; it has no settings.
    pub fn new() -> Self {
        Self
    }
}

impl Parser for MarkdownParser {
    fn format(&self) -> Format {
        MARKDOWN
    }

    fn version(&self) -> u32 {
        1
    }

    fn parse(&self, input: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
        let text = std::str::from_utf8(input.bytes)
            .map_err(|error| ParseError::NotUtf8 { offset: error.valid_up_to() })?;
        let frontmatter = frontmatter::read(text);
        let own_title = frontmatter.metadata.title.clone();
        let title =
            own_title.filter(|title| !title.trim().is_empty()).or_else(|| input.path.title());
        let chunks = headings::chunks(frontmatter.body, title.as_deref(), input.exclude_headings);
        Ok(ParsedDocument {
            metadata: frontmatter.metadata,
            chunks,
            served_text: text.to_owned(),
            frontmatter_error: frontmatter.error,
            warnings: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::document::DocumentPath;
    use crate::domain::frontmatter::UNPARSED_TAG;

    fn parse(path: &str, bytes: &[u8]) -> Result<ParsedDocument, ParseError> {
        let path = DocumentPath::new(path).unwrap();
        MarkdownParser::new().parse(&ParseInput { path: &path, bytes, exclude_headings: &[] })
    }

    fn context(path: &str, text: &str) -> Option<String> {
        parse(path, text.as_bytes()).unwrap().chunks.remove(0).context
    }

    // IDX-99
    #[test]
    fn what_is_not_utf8_is_refused_with_the_place() {
        assert_eq!(parse("a.md", b"abc\xFFd"), Err(ParseError::NotUtf8 { offset: 3 }));
        let cut_off = "語".as_bytes().split_last().unwrap().1;
        assert_eq!(parse("a.md", cut_off), Err(ParseError::NotUtf8 { offset: 0 }));
    }

    // IDX-99 FMT-GEN-12
    #[test]
    fn a_byte_order_mark_is_served_and_not_indexed() {
        let text = "\u{FEFF}---\r\ntitle: A\r\n---\r\n\r\nbody\r\n";
        let document = parse("a.md", text.as_bytes()).unwrap();
        assert_eq!(document.served_text, text);
        assert_eq!(document.metadata.title.as_deref(), Some("A"));
        assert_eq!(document.chunks[0].content, "body");
        let document = parse("a.md", "\u{FEFF}body".as_bytes()).unwrap();
        assert_eq!(document.chunks[0].content, "body");
    }

    // FMT-MD-09 IDX-76
    #[test]
    fn the_name_of_the_file_is_a_title_for_contexts_only() {
        assert_eq!(context("n/my-note.md", "text").as_deref(), Some("my note"));
        assert_eq!(
            context("n/my-note.md", "---\ntitle: ' '\n---\ntext").as_deref(),
            Some("my note")
        );
        assert_eq!(context("n/my-note.md", "---\ntitle: T\n---\ntext").as_deref(), Some("T"));
        assert_eq!(context("--.md", "text"), None);
        assert_eq!(parse("my-note.md", b"text").unwrap().metadata.title, None);
    }

    // IDX-88
    #[test]
    fn a_broken_block_leaves_the_body_and_one_tag() {
        let text = "---\ntitle: [a\ntags: [b]\n---\n\n## H\n\nbody";
        let document = parse("a.md", text.as_bytes()).unwrap();
        assert_eq!(document.metadata.tags, [UNPARSED_TAG]);
        assert_eq!(document.metadata.title, None);
        assert_eq!(document.chunks[0].content, "body");
        assert_eq!(document.served_text, text);
        assert!(document.frontmatter_error.is_some_and(|reason| !reason.is_empty()));
    }

    // IDX-90
    #[test]
    fn a_stub_has_an_error_and_no_chunks() {
        let document = parse("a.md", b"---\n- a\n---\n").unwrap();
        assert!(document.frontmatter_error.is_some());
        assert!(document.chunks.is_empty());
    }
}
