//! The parsers that are switched on, by file extension.

use std::fmt;
use std::sync::Arc;

use crate::domain::chunk::TextHash;
use crate::domain::document::DocumentPath;
use crate::domain::format::{Class, EnabledFormats};
use crate::ports::parser::Parser;

/// The parsers that are switched on.
#[derive(Clone)]
pub struct Registry {
    parsers: Vec<Arc<dyn Parser>>,
    formats: EnabledFormats,
}

impl Registry {
    /// Keeps those of the parsers whose format is enabled.
    pub fn new(
        parsers: impl IntoIterator<Item = Arc<dyn Parser>>,
        formats: &EnabledFormats,
    ) -> Self {
        let enabled =
            |parser: &Arc<dyn Parser>| formats.iter().any(|format| format == parser.format());
        let parsers = parsers.into_iter().filter(enabled).collect();
        Self { parsers, formats: formats.clone() }
    }

    /// The formats that are switched on.
    pub fn formats(&self) -> &EnabledFormats {
        &self.formats
    }

    /// The parser for a document, by the extension of its key.
    pub fn parser_of(&self, path: &DocumentPath) -> Option<&Arc<dyn Parser>> {
        let extension = path.extension()?;
        self.parsers.iter().find(|parser| parser.format().extension.eq_ignore_ascii_case(extension))
    }

    /// What makes chunks of a document: the parser, its version, and the
    /// settings that it heeds. Two documents of the same bytes and recipe have
    /// the same chunks. None if no parser reads the document.
    ///
    /// - `exclude_headings`: as [`ParseInput`] has it.
    /// - `max_chunk_chars`: the most characters of a chunk of source code.
    ///
    /// [`ParseInput`]: crate::ports::parser::ParseInput
    pub fn recipe_of(
        &self,
        path: &DocumentPath,
        exclude_headings: &[String],
        max_chunk_chars: usize,
    ) -> Option<String> {
        let parser = self.parser_of(path)?;
        let mut recipe = format!("{}/{}", parser.format().extension, parser.version());
        if !exclude_headings.is_empty() {
            let hash = TextHash::of(&exclude_headings.join("\0"));
            recipe.extend([" headings=", &hash.to_string()]);
        }
        if parser.format().class == Class::Code {
            recipe.extend([" chars=", &max_chunk_chars.to_string()]);
        }
        Some(recipe)
    }

    /// The extensions that are read, each with a leading dot.
    pub fn extensions(&self) -> Vec<String> {
        self.parsers.iter().map(|parser| format!(".{}", parser.format().extension)).collect()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Registry").field(&self.extensions()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::format::{Format, MARKDOWN};
    use crate::ports::parser::{ParseError, ParseInput, ParsedDocument};

    struct Reads(Format, u32);

    impl Parser for Reads {
        fn format(&self) -> Format {
            self.0
        }

        fn version(&self) -> u32 {
            self.1
        }

        fn parse(&self, _: &ParseInput<'_>) -> Result<ParsedDocument, ParseError> {
            Ok(ParsedDocument::default())
        }
    }

    fn recipe(class: Class, version: u32, headings: &[&str], chars: usize) -> Option<String> {
        let parser: Arc<dyn Parser> = Arc::new(Reads(Format { class, ..MARKDOWN }, version));
        let registry = Registry { parsers: vec![parser], formats: EnabledFormats::default() };
        let headings: Vec<String> = headings.iter().map(|&heading| heading.to_owned()).collect();
        registry.recipe_of(&DocumentPath::new("a.md").unwrap(), &headings, chars)
    }

    // IDX-143 IDX-144 IDX-145 IDX-B14 IDX-B19
    #[test]
    fn a_recipe_changes_with_whatever_may_change_the_chunks_and_with_nothing_else() {
        let plain = recipe(Class::Text, 1, &[], 3500);
        assert_eq!(plain.as_deref(), Some("md/1"));
        assert_eq!(recipe(Class::Text, 1, &[], 100), plain, "prose has no budget");
        assert_ne!(recipe(Class::Text, 2, &[], 3500), plain);
        let headings = recipe(Class::Text, 1, &["a", "b"], 3500);
        assert_ne!(headings, plain);
        assert_ne!(recipe(Class::Text, 1, &["a"], 3500), headings);
        let code = recipe(Class::Code, 1, &[], 3500);
        assert_ne!(code, plain);
        assert_ne!(recipe(Class::Code, 1, &[], 100), code);
        let registry = Registry { parsers: Vec::new(), formats: EnabledFormats::default() };
        assert_eq!(registry.recipe_of(&DocumentPath::new("a.md").unwrap(), &[], 100), None);
    }
}
