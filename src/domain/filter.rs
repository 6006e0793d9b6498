//! Filters: which chunks a search may return.

use std::collections::BTreeMap;

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub struct DocumentFacets<'a> {
    /// The document's key.
    pub path: &'a str,
    /// The first folder.
    pub category: Option<&'a str>,
    /// From the frontmatter, else the second folder.
    pub topic: Option<&'a str>,
    /// Words attached to the document.
    pub tags: &'a [String],
    /// As its author wrote it.
    pub date: Option<&'a str>,
    /// The values of declared frontmatter keys.
    pub fields: &'a BTreeMap<String, Vec<String>>,
}

/// Which chunks a search may return. The default lets everything pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    category: Option<String>,
    min_quality: f32,
}

impl Filter {
    /// Whether every document passes.
    pub fn admits_every_document(&self) -> bool {
        self.category.is_none()
    }

    /// Whether a document passes.
    pub fn admits(&self, document: &DocumentFacets<'_>) -> bool {
        self.category.as_deref().is_none_or(|category| document.category == Some(category))
    }

    /// Whether a chunk of an admitted document passes.
    ///
    /// - `quality`: from 0 to 1.
    pub fn admits_quality(&self, quality: f32) -> bool {
        self.min_quality <= 0.0 || quality >= self.min_quality
    }
}
