//! The parsers that are switched on, by file extension.

use std::fmt;
use std::sync::Arc;

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
