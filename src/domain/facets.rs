//! Facets: which values the filters of a search can take, and how often.

use std::collections::{BTreeMap, BTreeSet};

/// A value and the number of documents that have it.
pub type Count = (String, u64);

/// What can be filtered by, most frequent values first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    /// How many documents there are.
    pub documents: u64,
    /// The categories.
    pub categories: Vec<Count>,
    /// The tags.
    pub tags: Vec<Count>,
    /// The declared frontmatter fields, each with its values; a field that no
    /// document has is there with none. None if the index does not know which
    /// are declared.
    pub fields: Option<BTreeMap<String, Vec<Count>>>,
    /// The earliest and the latest date, compared as text.
    pub dates: Option<(String, String)>,
}

/// A document, by what it can be filtered by.
#[derive(Clone, Copy, Debug)]
pub struct FacetEntry<'a> {
    /// The first folder.
    pub category: Option<&'a str>,
    /// The tags.
    pub tags: &'a [String],
    /// The date that the author wrote.
    pub date: Option<&'a str>,
    /// The declared fields that it has.
    pub fields: &'a BTreeMap<String, Vec<String>>,
}

impl Facets {
    /// Counts the values of documents.
    ///
    /// - `declared`: the fields that can be filtered by.
    pub fn count<'a>(
        entries: impl Iterator<Item = FacetEntry<'a>>,
        declared: Option<&BTreeSet<String>>,
    ) -> Self {
        let mut documents = 0;
        let mut categories = Counter::default();
        let mut tags = Counter::default();
        let mut fields: BTreeMap<&str, Counter<'_>> = declared
            .into_iter()
            .flatten()
            .map(|name| (name.as_str(), Counter::default()))
            .collect();
        let mut dates: Option<(&str, &str)> = None;
        for entry in entries {
            documents += 1;
            categories.add(entry.category);
            tags.add(entry.tags.iter().map(String::as_str));
            for (name, values) in entry.fields {
                if let Some(counter) = fields.get_mut(name.as_str()) {
                    counter.add(values.iter().map(String::as_str));
                }
            }
            if let Some(date) = entry.date {
                let (first, last) = dates.unwrap_or((date, date));
                dates = Some((first.min(date), last.max(date)));
            }
        }
        let fields: BTreeMap<String, Vec<Count>> =
            fields.into_iter().map(|(name, counter)| (name.to_owned(), counter.ranked())).collect();
        Self {
            documents,
            categories: categories.ranked(),
            tags: tags.ranked(),
            fields: declared.map(|_| fields),
            dates: dates.map(|(first, last)| (first.to_owned(), last.to_owned())),
        }
    }
}

#[derive(Default)]
struct Counter<'a>(BTreeMap<&'a str, u64>);

impl<'a> Counter<'a> {
    /// Counts the values of one document, each once.
    fn add(&mut self, values: impl IntoIterator<Item = &'a str>) {
        let distinct: BTreeSet<&str> = values.into_iter().collect();
        for value in distinct {
            *self.0.entry(value).or_default() += 1;
        }
    }

    fn ranked(self) -> Vec<Count> {
        let mut counts: Vec<Count> =
            self.0.into_iter().map(|(value, count)| (value.to_owned(), count)).collect();
        // Equal ones stay in the order of their values.
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // MCP-B04
    #[test]
    fn values_are_counted_once_a_document_and_the_most_frequent_comes_first() {
        let owned = |values: &[&str]| values.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        let tags = [owned(&["b", "b"]), owned(&["a", "b"]), owned(&["c"])];
        let open = BTreeMap::from([("status".to_owned(), owned(&["open"]))]);
        let odd = BTreeMap::from([("secret".to_owned(), owned(&["x"]))]);
        let none = BTreeMap::new();
        let entries = [
            (Some("it"), None, &open),
            (Some("hr"), Some("2026-02-01"), &odd),
            (None, Some("2026-01-01"), &none),
        ];
        let entries = entries
            .into_iter()
            .zip(&tags)
            .map(|((category, date, fields), tags)| FacetEntry { category, tags, date, fields });
        let declared = owned(&["owner", "status"]).into_iter().collect();
        let facets = Facets::count(entries, Some(&declared));
        let count = |value: &str, count| (value.to_owned(), count);
        assert_eq!(facets.documents, 3);
        assert_eq!(facets.categories, [count("hr", 1), count("it", 1)]);
        assert_eq!(facets.tags, [count("b", 2), count("a", 1), count("c", 1)]);
        let fields = facets.fields.unwrap();
        assert_eq!(fields["owner"], []);
        assert_eq!(fields["status"], [count("open", 1)]);
        assert_eq!(fields.len(), 2);
        assert_eq!(facets.dates, Some(("2026-01-01".into(), "2026-02-01".into())));
        assert_eq!(Facets::count(std::iter::empty(), None), Facets::default());
    }
}
