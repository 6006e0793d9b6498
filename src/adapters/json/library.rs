//! The JSON of answers about the knowledge base as a library: what can be
//! filtered by, best practice, and quotes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::value_of;
use crate::domain::chunk::LineRange;
use crate::domain::facets::Count;
use crate::domain::facets::Facets;
use crate::ports::transport::BestPracticeAnswer;
use crate::ports::transport::QuoteAnswer;
use crate::ports::transport::QuotePlace;

/// The lines on which something stands, counted from 1.
#[derive(Serialize)]
pub(super) struct LocationShape {
    start_line: u32,
    end_line: u32,
}

impl From<LineRange> for LocationShape {
    fn from(lines: LineRange) -> Self {
        Self { start_line: lines.start, end_line: lines.end }
    }
}

/// The values that filters take, the most frequent ones of each.
///
/// - `most`: how many values of each kind are told.
pub fn facets(facets: &Facets, most: usize) -> Value {
    let lists = facets.fields.iter().flat_map(BTreeMap::values);
    let lists = lists.chain([&facets.categories, &facets.tags]);
    let truncated = lists.map(Vec::len).any(|length| length > most);
    let shapes = |counts: &'_ [Count]| -> Vec<CountShape> {
        let counts = counts.iter().take(most);
        counts.map(|(value, count)| CountShape { value: value.clone(), count: *count }).collect()
    };
    value_of(&FacetsShape {
        documents: facets.documents,
        categories: shapes(&facets.categories),
        tags: shapes(&facets.tags),
        fields: facets.fields.as_ref().map(|fields| {
            fields.iter().map(|(name, counts)| (name.as_str(), shapes(counts))).collect()
        }),
        date_from: facets.dates.as_ref().map(|(first, _)| first.as_str()),
        date_to: facets.dates.as_ref().map(|(_, last)| last.as_str()),
        truncated,
    })
}

/// Best practice.
pub fn best_practice(answer: &BestPracticeAnswer) -> Value {
    value_of(&BestPracticeShape {
        target: &answer.target,
        category: answer.category.as_deref(),
        content: &answer.content,
    })
}

/// Where a quote stands.
///
/// - `path`: the document in which it was looked for first.
pub fn quote(path: &str, answer: &QuoteAnswer) -> Value {
    let status = match (answer.places.is_empty(), answer.is_exact) {
        (true, _) => "not_found",
        (false, true) => "exact",
        (false, false) => "moved",
    };
    let places = answer.places.iter().map(PlaceShape::from).collect();
    value_of(&QuoteShape { path, status, places })
}

#[derive(Serialize)]
struct FacetsShape<'a> {
    documents: u64,
    categories: Vec<CountShape>,
    tags: Vec<CountShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<BTreeMap<&'a str, Vec<CountShape>>>,
    date_from: Option<&'a str>,
    date_to: Option<&'a str>,
    truncated: bool,
}

#[derive(Serialize)]
struct CountShape {
    value: String,
    count: u64,
}

#[derive(Serialize)]
struct BestPracticeShape<'a> {
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    content: &'a str,
}

#[derive(Serialize)]
struct QuoteShape<'a> {
    path: &'a str,
    status: &'static str,
    places: Vec<PlaceShape<'a>>,
}

#[derive(Serialize)]
struct PlaceShape<'a> {
    path: &'a str,
    location: LocationShape,
    start: usize,
    end: usize,
    cite: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
}

impl<'a> From<&'a QuotePlace> for PlaceShape<'a> {
    fn from(place: &'a QuotePlace) -> Self {
        Self {
            path: &place.path,
            location: place.lines.into(),
            start: place.start,
            end: place.end,
            cite: &place.cite,
            uri: place.uri.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // MCP-B04
    #[test]
    fn values_beyond_the_most_are_left_out_and_that_is_told() {
        let all = Facets {
            documents: 3,
            tags: vec![("a".into(), 2), ("b".into(), 1)],
            fields: Some(BTreeMap::from([("status".to_owned(), Vec::new())])),
            dates: Some(("2026-01-01".into(), "2026-02-01".into())),
            ..Facets::default()
        };
        assert_eq!(
            facets(&all, 1),
            json!({
                "documents": 3,
                "categories": [],
                "tags": [{ "value": "a", "count": 2 }],
                "fields": { "status": [] },
                "date_from": "2026-01-01",
                "date_to": "2026-02-01",
                "truncated": true,
            })
        );
        assert_eq!(facets(&all, 2)["truncated"], json!(false));
        assert_eq!(facets(&Facets::default(), 9).get("fields"), None);
    }

    // MCP-45
    #[test]
    fn best_practice_names_the_category_only_if_one_was_asked_for() {
        let mut answer = BestPracticeAnswer { target: "rust".into(), ..Default::default() };
        assert_eq!(best_practice(&answer), json!({ "target": "rust", "content": "" }));
        answer.category = Some("errors".into());
        assert_eq!(best_practice(&answer)["category"], "errors");
    }

    #[test]
    fn a_quote_is_exact_moved_or_not_found() {
        let place = QuotePlace {
            path: "b.md".into(),
            lines: LineRange { start: 2, end: 3 },
            start: 4,
            end: 9,
            cite: "b.md:2-3".into(),
            uri: None,
        };
        let mut answer = QuoteAnswer { places: vec![place], is_exact: true };
        assert_eq!(
            quote("b.md", &answer),
            json!({
                "path": "b.md",
                "status": "exact",
                "places": [{
                    "path": "b.md",
                    "location": { "start_line": 2, "end_line": 3 },
                    "start": 4,
                    "end": 9,
                    "cite": "b.md:2-3",
                }],
            })
        );
        answer.is_exact = false;
        assert_eq!(quote("a.md", &answer)["status"], "moved");
        assert_eq!(quote("a.md", &QuoteAnswer::default())["status"], "not_found");
    }
}
