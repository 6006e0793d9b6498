use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::search::SearchRequest;

fn check(request: &SearchRequest) -> CheckedFilter {
    Filter::check(request, 0.3).unwrap()
}

fn refuse(request: &SearchRequest) -> InvalidFilter {
    Filter::check(request, 0.3).unwrap_err()
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn map(entries: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    entries.iter().map(|&(key, values)| (key.to_owned(), strings(values))).collect()
}

/// A document, by what a filter looks at.
#[derive(Default)]
struct Subject {
    path: &'static str,
    category: Option<&'static str>,
    topic: Option<&'static str>,
    tags: Vec<String>,
    date: Option<&'static str>,
    fields: BTreeMap<String, Vec<String>>,
}

impl Subject {
    fn passes(&self, request: &SearchRequest) -> bool {
        check(request).filter.admits(&DocumentFacets {
            path: self.path,
            category: self.category,
            topic: self.topic,
            tags: &self.tags,
            date: self.date,
            fields: &self.fields,
        })
    }
}

fn globs_admit(globs: &[&str], path: &'static str) -> bool {
    let request = SearchRequest { path_globs: Some(strings(globs)), ..SearchRequest::default() };
    Subject { path, ..Subject::default() }.passes(&request)
}

#[test]
fn a_request_without_filters_lets_every_document_pass() {
    let checked = check(&SearchRequest::default());
    assert!(checked.filter.admits_every_document());
    assert!(Subject::default().passes(&SearchRequest::default()));
    assert!(Filter::default().admits_every_document());
    assert!(Filter::default().admits_quality(0.0));
}

// SRCH-90 SRCH-91 SRCH-92 SRCH-13 SRCH-14
#[test]
fn category_and_topic_are_compared_exactly() {
    let by_category = SearchRequest { category: Some("Docs".into()), ..SearchRequest::default() };
    let by_topic = SearchRequest { topic: Some("Docs".into()), ..SearchRequest::default() };
    for (value, passes) in [(Some("Docs"), true), (Some("docs"), false), (None, false)] {
        let tags = strings(&["Docs"]);
        let subject = Subject { category: value, tags: tags.clone(), ..Subject::default() };
        assert_eq!(subject.passes(&by_category), passes);
        let subject = Subject { topic: value, tags, ..Subject::default() };
        assert_eq!(subject.passes(&by_topic), passes);
    }
}

// SRCH-92 SRCH-96
#[test]
fn a_path_segment_is_no_tag() {
    let request = SearchRequest { tags_any: strings(&["docs"]), ..SearchRequest::default() };
    let subject = Subject { category: Some("docs"), topic: Some("docs"), ..Subject::default() };
    assert!(!subject.passes(&request));
}

// SRCH-93
#[test]
fn includes_and_excludes_of_paths_both_count() {
    let globs = ["docs/**", "!docs/draft/**"];
    assert!(globs_admit(&globs, "docs/a.md"));
    assert!(!globs_admit(&globs, "docs/draft/b.md"));
    assert!(!globs_admit(&globs, "notes/c.md"));
    assert!(globs_admit(&["!**/*.rs"], "a.md"));
    assert!(!globs_admit(&["!**/*.rs"], "src/a.rs"));
    assert!(globs_admit(&["a*", "b*"], "b.md"));
    // Only the first `!` is removed.
    assert!(!globs_admit(&["!!a"], "!a"));
    assert!(globs_admit(&["!!a"], "a"));
}

// SRCH-94
#[test]
fn paths_are_matched_whole_and_with_their_case() {
    assert!(globs_admit(&["docs/*"], "docs/a/b.md"));
    assert!(!globs_admit(&["a.md"], "docs/a.md"));
    assert!(!globs_admit(&["DOCS/*"], "docs/a.md"));
}

// SRCH-95
#[test]
fn an_empty_list_of_globs_is_refused_with_advice() {
    let request = SearchRequest { path_globs: Some(Vec::new()), ..SearchRequest::default() };
    let error = refuse(&request);
    assert_eq!(error, InvalidFilter::NoGlobs);
    assert!(error.to_string().contains("path_globs") && error.to_string().contains("leave it out"));
    assert!(check(&SearchRequest::default()).echo.path_globs.is_empty());
}

// SRCH-95 SRCH-181
#[test]
fn a_malformed_glob_is_named() {
    let globs = Some(strings(&["docs/**", "![z-a]"]));
    let error = refuse(&SearchRequest { path_globs: globs, ..SearchRequest::default() });
    assert!(matches!(&error, InvalidFilter::MalformedGlob { pattern, .. } if pattern == "![z-a]"));
    assert!(error.to_string().contains("![z-a]") && error.to_string().contains("path_globs"));
}

// SRCH-96
#[test]
fn any_and_all_tags_both_have_to_hold() {
    let request = |any: &[&str], all: &[&str]| SearchRequest {
        tags_any: strings(any),
        tags_all: strings(all),
        ..SearchRequest::default()
    };
    let subject = Subject { tags: strings(&["rust", "async"]), ..Subject::default() };
    assert!(subject.passes(&request(&["wasm", "async"], &[])));
    assert!(!subject.passes(&request(&["wasm"], &[])));
    assert!(subject.passes(&request(&[], &["async", "rust"])));
    assert!(!subject.passes(&request(&[], &["async", "wasm"])));
    assert!(!subject.passes(&request(&["wasm"], &["rust"])));
    assert!(!subject.passes(&request(&["async"], &["wasm"])));
    assert!(!subject.passes(&request(&["Rust"], &[])));
}

fn dated(from: Option<&str>, to: Option<&str>) -> SearchRequest {
    SearchRequest {
        date_from: from.map(str::to_owned),
        date_to: to.map(str::to_owned),
        ..SearchRequest::default()
    }
}

// SRCH-99 SRCH-100 SRCH-101 SRCH-17
#[test]
fn dates_are_compared_as_text_with_both_ends_inside() {
    let passes = |date, from, to| Subject { date, ..Subject::default() }.passes(&dated(from, to));
    let day = Some("2026-04-30");
    assert!(passes(day, day, day));
    assert!(!passes(day, Some("2026-05-01"), None));
    assert!(!passes(day, None, Some("2026-04-29")));
    assert!(!passes(Some("2026-12-31T10:00"), None, Some("2026-12-31")));
    assert!(passes(Some("Zebra"), Some("Apple"), None));
    assert!(!passes(None, Some(""), None));
    assert!(!passes(None, None, Some("9999")));
    assert!(passes(None, None, None));
}

// SRCH-B10
#[test]
fn a_bound_that_is_no_date_is_remarked_on_and_still_applies() {
    let checked = check(&dated(Some("last week"), Some("2026-12-31")));
    assert_eq!(checked.warnings.len(), 1);
    assert!(checked.warnings[0].contains("date_from") && checked.warnings[0].contains("last week"));
    assert!(!checked.filter.admits_every_document());
    assert!(check(&dated(Some("2026-01-01"), None)).warnings.is_empty());
}

// SRCH-102 SRCH-103
#[test]
fn every_key_needs_one_of_its_values_and_no_forbidden_one() {
    let subject = Subject {
        fields: map(&[("status", &["open", "old"]), ("owner", &["ann"])]),
        ..Subject::default()
    };
    let with = |entries: &[(&str, &[&str])]| {
        subject.passes(&SearchRequest { fields: map(entries), ..SearchRequest::default() })
    };
    let without = |entries: &[(&str, &[&str])]| {
        subject.passes(&SearchRequest { fields_not: map(entries), ..SearchRequest::default() })
    };
    assert!(with(&[("status", &["closed", "old"]), ("owner", &["ann", "bob"])]));
    assert!(!with(&[("status", &["open"]), ("owner", &["bob"])]));
    assert!(!with(&[("status", &["Open"])]));
    assert!(!with(&[("unknown", &["open"])]));
    assert!(without(&[("status", &["closed"]), ("owner", &["bob"])]));
    assert!(!without(&[("status", &["closed"]), ("owner", &["ann"])]));
    assert!(without(&[("unknown", &["open"])]));
}

// SRCH-105 SRCH-194
#[test]
fn maps_are_normalised_before_they_are_applied_and_echoed() {
    let fields = map(&[("z", &["b", "a", "b"]), ("a", &[]), ("m", &["x"])]);
    let request = SearchRequest { fields: fields.clone(), ..SearchRequest::default() };
    let checked = check(&request);
    let expected = map(&[("m", &["x"]), ("z", &["b", "a"])]);
    assert_eq!(checked.echo.fields, expected);
    assert!(checked.filter.names_fields());
    let request = SearchRequest { fields_not: fields, ..SearchRequest::default() };
    assert_eq!(check(&request).echo.fields_not, expected);
    let empty = SearchRequest { fields: map(&[("a", &[])]), ..SearchRequest::default() };
    let checked = check(&empty);
    assert!(checked.filter.admits_every_document() && !checked.filter.names_fields());
    assert!(checked.echo.fields.is_empty());
}

fn many(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

// SRCH-15 SRCH-16 SRCH-181
#[test]
fn lists_are_held_against_their_limits() {
    type Set = fn(&mut SearchRequest, Vec<String>);
    let lists: [(&str, Set); 3] = [
        ("path_globs", |request, list| request.path_globs = Some(list)),
        ("tags_any", |request, list| request.tags_any = list),
        ("tags_all", |request, list| request.tags_all = list),
    ];
    for (parameter, set) in lists {
        let with = |list| {
            let mut request = SearchRequest::default();
            set(&mut request, list);
            request
        };
        check(&with(many(64)));
        check(&with(vec!["x".repeat(1024)]));
        let count = refuse(&with(many(65)));
        assert_eq!(
            count,
            InvalidFilter::TooMany { parameter: parameter.into(), count: 65, limit: 64 }
        );
        let size = refuse(&with(vec!["ok".into(), "語".repeat(342)]));
        assert_eq!(
            size,
            InvalidFilter::TooLarge {
                parameter: parameter.into(),
                size_bytes: 1026,
                limit_bytes: 1024
            }
        );
        for (error, given, limit) in [(count, "65", "64"), (size, "1026", "1024")] {
            let text = error.to_string();
            assert!(
                text.contains(parameter) && text.contains(given) && text.contains(limit),
                "{text}"
            );
        }
    }
}

// SRCH-106 SRCH-18
#[test]
fn maps_are_held_against_their_limits_as_given() {
    type Set = fn(&mut SearchRequest, BTreeMap<String, Vec<String>>);
    let maps: [(&str, Set); 2] = [
        ("fields", |request, fields| request.fields = fields),
        ("fields_not", |request, fields| request.fields_not = fields),
    ];
    for (name, set) in maps {
        let with = |fields| {
            let mut request = SearchRequest::default();
            set(&mut request, fields);
            Filter::check(&request, 0.0).err()
        };
        let one = |key: &str, values: Vec<String>| BTreeMap::from([(key.to_owned(), values)]);
        let parameter = name.to_owned();
        let of_key = format!("{name}.k");
        assert_eq!(
            with(map(&[("", &[])])),
            Some(InvalidFilter::EmptyKey { parameter: parameter.clone() })
        );
        assert_eq!(
            with(map(&[("k", &["v", ""])])),
            Some(InvalidFilter::EmptyValue { parameter: of_key.clone() })
        );
        let keys = |count| many(count).into_iter().map(|key| (key, Vec::new())).collect();
        assert_eq!(with(keys(64)), None);
        assert_eq!(
            with(keys(65)),
            Some(InvalidFilter::TooMany { parameter: parameter.clone(), count: 65, limit: 64 })
        );
        assert_eq!(with(one(&"k".repeat(1024), Vec::new())), None);
        assert_eq!(
            with(one(&"k".repeat(1025), Vec::new())),
            Some(InvalidFilter::TooLarge {
                parameter: parameter.clone(),
                size_bytes: 1025,
                limit_bytes: 1024
            })
        );
        // Repetitions count, because the request is checked as it came.
        assert_eq!(
            with(one("k", vec!["v".into(); 65])),
            Some(InvalidFilter::TooMany { parameter: of_key.clone(), count: 65, limit: 64 })
        );
        assert_eq!(
            with(one("k", vec!["v".repeat(1025)])),
            Some(InvalidFilter::TooLarge {
                parameter: of_key,
                size_bytes: 1025,
                limit_bytes: 1024
            })
        );
        // 64 values of 1023 bytes and 64 bytes of keys are 64 KiB.
        let full = |extra: usize| one(&"k".repeat(64 + extra), vec!["v".repeat(1023); 64]);
        assert_eq!(with(full(0)), None);
        assert_eq!(
            with(full(1)),
            Some(InvalidFilter::TooLarge { parameter, size_bytes: 65537, limit_bytes: 65536 })
        );
    }
}

// SRCH-28
#[test]
fn the_first_of_several_faults_is_reported() {
    let mut request = SearchRequest {
        path_globs: Some(many(65)),
        tags_any: many(65),
        tags_all: many(65),
        fields: map(&[("", &[])]),
        fields_not: map(&[("", &[])]),
        ..SearchRequest::default()
    };
    let parameter = |error| match error {
        InvalidFilter::TooMany { parameter, .. } | InvalidFilter::EmptyKey { parameter } => {
            parameter
        }
        other => other.to_string(),
    };
    assert_eq!(parameter(refuse(&request)), "path_globs");
    request.path_globs = Some(strings(&["[malformed"]));
    assert_eq!(parameter(refuse(&request)), "tags_any");
    request.tags_any.clear();
    assert_eq!(parameter(refuse(&request)), "tags_all");
    request.tags_all.clear();
    assert_eq!(parameter(refuse(&request)), "fields");
    request.fields.clear();
    assert_eq!(parameter(refuse(&request)), "fields_not");
    request.fields_not.clear();
    assert!(matches!(refuse(&request), InvalidFilter::MalformedGlob { .. }));
}

// SRCH-185 SRCH-187
#[test]
fn what_was_given_is_echoed_as_given() {
    let request = SearchRequest {
        category: Some("docs".into()),
        topic: Some("mcp".into()),
        path_globs: Some(strings(&["b", "!a", "b"])),
        tags_any: strings(&["x", "x"]),
        tags_all: strings(&["y"]),
        date_from: Some("2026-01-01".into()),
        date_to: Some("soon".into()),
        min_confidence_ratio: Some(-2.0),
        ..SearchRequest::default()
    };
    let echo = check(&request).echo;
    assert_eq!(echo.category, request.category);
    assert_eq!(echo.topic, request.topic);
    assert_eq!(Some(echo.path_globs), request.path_globs);
    assert_eq!(echo.tags_any, request.tags_any);
    assert_eq!(echo.tags_all, request.tags_all);
    assert_eq!(echo.date_from, request.date_from);
    assert_eq!(echo.date_to, request.date_to);
    assert_eq!(echo.min_confidence_ratio, Some(-2.0));
}

// SRCH-26
#[test]
fn a_confidence_ratio_that_is_not_finite_is_remarked_on_and_not_echoed() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let request = SearchRequest { min_confidence_ratio: Some(odd), ..SearchRequest::default() };
        let checked = check(&request);
        assert_eq!(checked.echo.min_confidence_ratio, None);
        assert_eq!(checked.warnings.len(), 1);
        assert!(checked.warnings[0].contains("min_confidence_ratio"));
    }
}

// SRCH-188 SRCH-16
#[test]
fn what_is_never_echoed_leaves_the_echo_empty() {
    let request = SearchRequest {
        min_quality: Some(0.9),
        include_low_quality: true,
        rerank: Some(true),
        mmr: Some(true),
        mmr_lambda: Some(0.5),
        mmr_same_doc_penalty: Some(0.5),
        parent_retriever: Some(true),
        limit: Some(3),
        tags_any: Vec::new(),
        tags_all: Vec::new(),
        ..SearchRequest::default()
    };
    let checked = check(&request);
    assert_eq!(checked.echo, crate::domain::search::FilterEcho::default());
    assert!(checked.filter.admits_every_document());
}

fn quality(min_quality: Option<f64>, include_low_quality: bool) -> CheckedFilter {
    check(&SearchRequest { min_quality, include_low_quality, ..SearchRequest::default() })
}

// QUA-14 SRCH-19 SRCH-20
#[test]
fn the_least_quality_is_the_first_that_was_given() {
    let least = |min_quality, include| quality(min_quality, include).filter.min_quality();
    assert_eq!(least(None, false), 0.3);
    assert_eq!(least(Some(0.5), false), 0.5);
    assert_eq!(least(Some(0.5), true), 0.0);
    assert_eq!(least(None, true), 0.0);
    assert_eq!(least(Some(7.0), false), 1.0);
    assert_eq!(least(Some(-7.0), false), 0.0);
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let checked = quality(Some(odd), false);
        assert_eq!(checked.filter.min_quality(), 0.3);
        assert_eq!(checked.warnings.len(), 1);
        assert!(checked.warnings[0].contains("min_quality"));
        assert!(quality(Some(odd), true).warnings.is_empty());
    }
}

// QUA-12 CFG-71
#[test]
fn the_configured_threshold_is_clamped_or_off() {
    assert_eq!(default_min_quality(true, 0.3), 0.3);
    assert_eq!(default_min_quality(true, -1.0), 0.0);
    assert_eq!(default_min_quality(true, 2.0), 1.0);
    assert_eq!(default_min_quality(false, 0.9), 0.0);
    assert_eq!(default_min_quality(true, f64::NAN), 0.0);
}

// QUA-13
#[test]
fn a_chunk_passes_at_its_threshold_and_above() {
    let at = |threshold| quality(Some(threshold), false).filter;
    assert!(at(0.0).admits_quality(0.0));
    assert!(at(0.3).admits_quality(0.4));
    assert!(!at(0.3).admits_quality(0.1));
    assert!(at(1.0).admits_quality(1.0));
    assert!(!at(1.0).admits_quality(0.7));
}

// QUA-01 QUA-13
#[test]
fn a_score_that_rounding_left_just_below_its_value_passes_there() {
    let score = 1.0_f32 - 0.6;
    assert!(score < 0.4);
    assert!(quality(Some(0.4), false).filter.admits_quality(score));
}

#[test]
fn quality_alone_leaves_every_document_in() {
    assert!(quality(Some(1.0), false).filter.admits_every_document());
}

proptest! {
    // SRCH-93
    #[test]
    fn a_glob_and_its_exclusion_disagree(
        glob in "[a-c*?/]{0,6}",
        path in "[a-c/]{1,6}",
    ) {
        let with = |globs: Vec<String>| {
            let request = SearchRequest { path_globs: Some(globs), ..SearchRequest::default() };
            check(&request).filter.admits(&DocumentFacets {
                path: &path,
                category: None,
                topic: None,
                tags: &[],
                date: None,
                fields: &BTreeMap::new(),
            })
        };
        let (included, excluded) = (with(vec![glob.clone()]), with(vec![format!("!{glob}")]));
        prop_assert_ne!(included, excluded);
        let both = with(vec![glob.clone(), format!("!{glob}")]);
        prop_assert!(!both);
    }

    // SRCH-102
    #[test]
    fn asking_for_a_field_and_against_it_is_complementary(
        held in proptest::collection::vec("[ab]", 0..3),
        wanted in proptest::collection::vec("[abc]", 1..3),
    ) {
        let subject = Subject {
            fields: BTreeMap::from([("k".to_owned(), held)]),
            ..Subject::default()
        };
        let fields = BTreeMap::from([("k".to_owned(), wanted)]);
        let with = SearchRequest { fields: fields.clone(), ..SearchRequest::default() };
        let without = SearchRequest { fields_not: fields, ..SearchRequest::default() };
        prop_assert_ne!(subject.passes(&with), subject.passes(&without));
    }
}
