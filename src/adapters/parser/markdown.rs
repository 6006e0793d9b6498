//! Markdown: frontmatter, and sections below headings.

use crate::adapters::parser::decode::decode;
use crate::domain::chunking::headings;
use crate::domain::format::{Format, MARKDOWN};
use crate::domain::frontmatter::{self, Frontmatter};
use crate::ports::parser::{ParseError, ParseInput, ParsedDocument, Parser};

/// Reads Markdown in UTF-8, and in the other encodings that are recognised.
///
/// The served text is the file as it is, decoded. Every chunk has a context, led by the
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
        let decoded = decode(input.bytes)?;
        let Frontmatter { mut metadata, error, body } = frontmatter::read(&decoded.text);
        metadata.tags.extend(decoded.tag().filter(|tag| !metadata.tags.contains(tag)));
        let own_title = metadata.title.as_deref().filter(|title| !title.trim().is_empty());
        let title = own_title.map(str::to_owned).or_else(|| input.path.title());
        let chunks = headings::chunks(body, title.as_deref(), input.exclude_headings);
        Ok(ParsedDocument {
            metadata,
            chunks,
            served_text: decoded.text.into_owned(),
            frontmatter_error: error,
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

    // IDX-B16
    #[test]
    fn another_encoding_is_decoded_and_becomes_a_tag() {
        let text = "---\ntitle: 潮\ntags: [sea]\n---\n\n## 満潮\n\n|a|b|\n|-|-|\n|潮|汐|\n";
        let marked: Vec<u16> = "\u{FEFF}".encode_utf16().chain(text.encode_utf16()).collect();
        let bytes: Vec<u8> = marked.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        let document = parse("a.md", &bytes).unwrap();
        assert_eq!(document.metadata.tags, ["sea", "encoding:utf-16be"]);
        assert_eq!(document.served_text, text);
        let plain = parse("a.md", text.as_bytes()).unwrap();
        assert_eq!(document.chunks, plain.chunks, "places are those of the decoded text");
        assert_eq!(plain.metadata.tags, ["sea"]);
        let tagged = text.replace("sea", "encoding:utf-16le");
        let bytes: Vec<u8> =
            format!("\u{FEFF}{tagged}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(parse("a.md", &bytes).unwrap().metadata.tags, ["encoding:utf-16le"]);
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
