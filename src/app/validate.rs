//! Holding the frontmatter of a knowledge base against its schema.

use std::fmt;
use std::sync::Arc;

use crate::app::error::{AppError, chain};
use crate::domain::document::DocumentPath;
use crate::domain::schema::{Checked, Schema, Validation};
use crate::ports::document_source::{DocumentSource, Listing, Severity, SizeCap, Unreadable};
use crate::ports::parser::{ParseInput, Parser};

/// The use case of validating.
#[derive(Clone)]
pub struct Validator {
    /// Where the documents come from; it lists Markdown alone.
    pub source: Arc<dyn DocumentSource>,
    /// What reads Markdown.
    pub parser: Arc<dyn Parser>,
    /// The most bytes of a document.
    pub cap: SizeCap,
}

impl fmt::Debug for Validator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Validator").field("cap", &self.cap).finish_non_exhaustive()
    }
}

impl Validator {
    /// Holds every document against a schema, in ascending order of path. Blocks.
    ///
    /// A document that cannot be read counts as scanned and has no violation.
    ///
    /// - `fail_fast`: look no further than the first document with a violation.
    /// - `warn`: told of what cannot be read, and of remarks about the source.
    ///
    /// # Errors
    ///
    /// [`AppError::Source`] if the source cannot be listed.
    pub fn run(
        &self,
        schema: &Schema,
        fail_fast: bool,
        warn: &mut dyn FnMut(String),
    ) -> Result<Validation, AppError> {
        let listing = self.source.list()?;
        tell(&listing, warn);
        let mut validation = Validation::default();
        for found in listing.found {
            validation.scanned += 1;
            let violations = match self.text_of(&found.path) {
                Ok(text) => schema.violations(&text),
                Err(reason) => {
                    warn(format!("warning: {} was not checked: {reason}", found.path));
                    continue;
                }
            };
            if !violations.is_empty() {
                validation.files.push(Checked { path: found.path.to_string(), violations });
                if fail_fast {
                    break;
                }
            }
        }
        Ok(validation)
    }

    fn text_of(&self, path: &DocumentPath) -> Result<String, String> {
        let content = self.source.read(path, self.cap).map_err(|error| chain(&error))?;
        let input = ParseInput { path, bytes: &content.bytes, exclude_headings: &[] };
        let parsed = self.parser.parse(&input).map_err(|error| chain(&error))?;
        Ok(parsed.served_text)
    }
}

/// What a listing says besides the documents.
fn tell(listing: &Listing, warn: &mut dyn FnMut(String)) {
    for note in &listing.notes {
        warn(match note.severity {
            Severity::Note => note.text.clone(),
            Severity::Warning => format!("warning: {}", note.text),
        });
    }
    for left_out in &listing.left_out {
        warn(format!("warning: {}: not checked: {}", left_out.name, left_out.reason));
    }
    for Unreadable { key, reason } in &listing.unreadable {
        warn(format!("warning: the folder {key} was not checked: {reason}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::parser::markdown::MarkdownParser;
    use crate::adapters::source::memory::MemorySource;

    fn validated(
        documents: &[(&str, &[u8])],
        schema: &str,
        fail_fast: bool,
    ) -> (Validation, Vec<String>) {
        let source = MemorySource::default();
        for (path, bytes) in documents {
            source.put(*path, *bytes);
        }
        let parser = Arc::new(MarkdownParser::new());
        let validator = Validator { source: Arc::new(source), parser, cap: SizeCap(64) };
        let schema = Schema::parse(schema).unwrap();
        let mut told = Vec::new();
        let validation = validator.run(&schema, fail_fast, &mut |text| told.push(text)).unwrap();
        (validation, told)
    }

    fn paths(validation: &Validation) -> Vec<&str> {
        validation.files.iter().map(|file| file.path.as_str()).collect()
    }

    const REQUIRED: &str = "[fields.owner]\nrequired = true";

    // CLI-170 CLI-171
    #[test]
    fn documents_are_checked_in_the_order_of_their_paths() {
        let documents: [(&str, &[u8]); 4] = [
            ("b.md", b"text"),
            ("a/c.md", b"---\nowner: me\n---\n"),
            ("a-b.md", b"text"),
            ("a/b.md", b"text"),
        ];
        let (validation, told) = validated(&documents, REQUIRED, false);
        assert_eq!(validation.scanned, 4);
        assert_eq!(paths(&validation), ["a-b.md", "a/b.md", "b.md"]);
        assert!(told.is_empty(), "{told:?}");
    }

    // CLI-167
    #[test]
    fn after_the_first_document_with_a_violation_nothing_is_looked_at() {
        let documents: [(&str, &[u8]); 3] =
            [("a.md", b"---\nowner: me\n---\n"), ("b.md", b"text"), ("c.md", b"text")];
        let (validation, _) = validated(&documents, REQUIRED, true);
        assert_eq!((validation.scanned, paths(&validation)), (2, vec!["b.md"]));
    }

    // CLI-170
    #[test]
    fn a_document_that_cannot_be_read_is_named_and_counts_as_scanned() {
        let large = vec![b'x'; 65];
        let documents: [(&str, &[u8]); 3] =
            [("a.md", b"\xFF\xFE\x00"), ("b.md", &large), ("c.md", b"---\nowner: me\n---\n")];
        let (validation, told) = validated(&documents, REQUIRED, false);
        assert_eq!((validation.scanned, validation.files.len()), (3, 0));
        assert!(told[0].contains("a.md") && told[1].contains("b.md"), "{told:?}");
        assert!(told[1].contains("65 bytes"), "{told:?}");
    }

    // IDX-B16 CFG-88i
    #[test]
    fn a_document_in_another_encoding_is_read_as_the_index_reads_it() {
        let text: Vec<u8> =
            "\u{FEFF}---\nowner: 潮\n---\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (validation, told) =
            validated(&[("a.md", &text)], "[fields.owner]\nmax_length = 0", false);
        assert_eq!((validation.files[0].violations[0].line, told.len()), (2, 0));
    }
}
