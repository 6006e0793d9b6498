//! The parsers that are switched on, by file extension.

use std::fmt;
use std::sync::Arc;

use crate::domain::chunk::TextHash;
use crate::domain::document::DocumentPath;
use crate::domain::format::EnabledFormats;
use crate::ports::parser::Parser;

/// The parsers that are switched on.
#[derive(Clone)]
pub struct Registry {
    parsers: Vec<Arc<dyn Parser>>,
}

impl Registry {
    /// Keeps those of the parsers whose format is enabled.
    pub fn new(
        parsers: impl IntoIterator<Item = Arc<dyn Parser>>,
        formats: &EnabledFormats,
    ) -> Self {
        let enabled =
            |parser: &Arc<dyn Parser>| formats.iter().any(|format| format == parser.format());
        Self { parsers: parsers.into_iter().filter(enabled).collect() }
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
    ///
    /// [`ParseInput`]: crate::ports::parser::ParseInput
    pub fn recipe_of(&self, path: &DocumentPath, exclude_headings: &[String]) -> Option<String> {
        let parser = self.parser_of(path)?;
        let mut recipe = format!("{}/{}", parser.format().extension, parser.version());
        if !exclude_headings.is_empty() {
            let hash = TextHash::of(&exclude_headings.join("\0"));
            recipe.extend([" headings=", &hash.to_string()]);
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
