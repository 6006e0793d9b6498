//! What passes a filter.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::Glob;

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

/// Which chunks a search may return. Everything that it names has to hold; the
/// default names nothing and lets everything pass.
///
/// [`Filter::check`] makes one from a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub(super) documents: DocumentFilter,
    pub(super) min_quality: f32,
}

/// The part of a filter that asks for documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentFilter {
    pub(super) category: Option<String>,
    pub(super) topic: Option<String>,
    pub(super) included_paths: Vec<Glob>,
    pub(super) excluded_paths: Vec<Glob>,
    /// Keys, to the last byte.
    pub(super) without: BTreeSet<String>,
    pub(super) tags_any: Vec<String>,
    pub(super) tags_all: Vec<String>,
    pub(super) date_from: Option<String>,
    pub(super) date_to: Option<String>,
    pub(super) fields: BTreeMap<String, Vec<String>>,
    pub(super) fields_not: BTreeMap<String, Vec<String>>,
}

/// How far a stored score may fall short of the least one and still count as
/// equal: scores are sums of single precision.
const QUALITY_TOLERANCE: f32 = 1e-5;

impl Filter {
    /// Whether every document passes, because the filter names nothing that a
    /// document could lack.
    pub fn admits_every_document(&self) -> bool {
        self.documents == DocumentFilter::default()
    }

    /// Whether a document passes.
    pub fn admits(&self, document: &DocumentFacets<'_>) -> bool {
        let filter = &self.documents;
        is_wanted(filter.category.as_deref(), document.category)
            && is_wanted(filter.topic.as_deref(), document.topic)
            && filter.admits_tags(document.tags)
            && filter.admits_date(document.date)
            && filter.admits_fields(document.fields)
            && filter.admits_path(document.path)
    }

    /// Whether a chunk of an admitted document passes.
    ///
    /// - `quality`: from 0 to 1.
    pub fn admits_quality(&self, quality: f32) -> bool {
        passes_quality(quality, self.min_quality)
    }

    /// The least quality of a chunk that passes, from 0 to 1; 0 if every chunk
    /// does.
    pub fn min_quality(&self) -> f32 {
        self.min_quality
    }

    /// Whether the filter asks for values of frontmatter keys, which only an
    /// index with recorded keys can answer.
    pub fn names_fields(&self) -> bool {
        !self.documents.fields.is_empty() || !self.documents.fields_not.is_empty()
    }
}

/// Whether a chunk of some quality is at a least quality or above it, however
/// the two were rounded.
///
/// - `quality`, `min_quality`: from 0 to 1; every chunk passes at 0.
///
/// ```
/// use grooveseek::domain::filter::passes_quality;
///
/// assert!(passes_quality(1.0 - 0.6, 0.4));
/// assert!(!passes_quality(0.1, 0.3));
/// ```
pub fn passes_quality(quality: f32, min_quality: f32) -> bool {
    min_quality <= 0.0 || quality + QUALITY_TOLERANCE >= min_quality
}

/// The least quality that applies unless a request says otherwise.
///
/// - `threshold`: clamped to the range from 0 to 1; what is not a number
///   counts as 0.
/// - Returns 0 if the filter is not enabled.
///
/// ```
/// use grooveseek::domain::filter::default_min_quality;
///
/// assert_eq!(default_min_quality(true, 0.3), 0.3);
/// assert_eq!(default_min_quality(true, 7.0), 1.0);
/// assert_eq!(default_min_quality(false, 0.3), 0.0);
/// ```
pub fn default_min_quality(enabled: bool, threshold: f64) -> f32 {
    if enabled && !threshold.is_nan() { clamped(threshold) } else { 0.0 }
}

/// A quality in single precision, between 0 and 1.
#[expect(clippy::cast_possible_truncation, reason = "quality is kept in single precision")]
pub(super) fn clamped(quality: f64) -> f32 {
    quality.clamp(0.0, 1.0) as f32
}

impl DocumentFilter {
    fn admits_path(&self, path: &str) -> bool {
        let describes = |glob: &Glob| glob.matches(path);
        (self.included_paths.is_empty() || self.included_paths.iter().any(describes))
            && !self.excluded_paths.iter().any(describes)
            && !self.without.contains(path)
    }

    fn admits_tags(&self, tags: &[String]) -> bool {
        (self.tags_any.is_empty() || self.tags_any.iter().any(|tag| tags.contains(tag)))
            && self.tags_all.iter().all(|tag| tags.contains(tag))
    }

    fn admits_date(&self, date: Option<&str>) -> bool {
        let from = self.date_from.as_deref();
        let to = self.date_to.as_deref();
        match date {
            Some(date) => from.is_none_or(|from| date >= from) && to.is_none_or(|to| date <= to),
            None => from.is_none() && to.is_none(),
        }
    }

    fn admits_fields(&self, fields: &BTreeMap<String, Vec<String>>) -> bool {
        let holds = |(key, values): (&String, &Vec<String>)| {
            fields.get(key).is_some_and(|held| values.iter().any(|value| held.contains(value)))
        };
        self.fields.iter().all(holds) && !self.fields_not.iter().any(holds)
    }
}

/// Whether a document's value is the one that is asked for, if one is.
fn is_wanted(wanted: Option<&str>, value: Option<&str>) -> bool {
    wanted.is_none() || wanted == value
}
