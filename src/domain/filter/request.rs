//! From the filters of a request to a filter, its echo and remarks.

use std::collections::BTreeSet;

use super::admission::{DocumentFilter, Filter, clamped};
use super::dates::looks_like_a_date;
use super::fields::{check_fields, normalised};
use super::glob::Glob;
use crate::domain::search::{FilterEcho, SearchRequest};

/// The most entries of a list, and the most keys of a map.
pub(super) const MAX_ENTRIES: usize = 64;

/// The most bytes of an entry or a key.
pub(super) const MAX_ENTRY_BYTES: usize = 1024;

/// What the filters of a request come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckedFilter {
    /// The filter.
    pub filter: Filter,
    /// What an answer says about it. The excluded terms are the query's and
    /// not among it.
    pub echo: FilterEcho,
    /// Remarks that the caller and the log should see.
    pub warnings: Vec<String>,
}

/// Why filters cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFilter {
    /// A list or a map has too many entries.
    #[error("`{parameter}` has {count} entries, the limit is {limit}")]
    TooMany {
        /// Which one.
        parameter: String,
        /// How many it has.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An entry or a key is too long, or a map is in all.
    #[error("`{parameter}` holds {size_bytes} bytes where the limit is {limit_bytes} bytes")]
    TooLarge {
        /// Which list or map.
        parameter: String,
        /// How many bytes there are.
        size_bytes: usize,
        /// How many there may be.
        limit_bytes: usize,
    },
    /// A list of globs that holds none.
    #[error(
        "`path_globs` is [] and would match nothing; leave it out to search everywhere, or exclude only, as in [\"**\", \"!drafts/**\"]"
    )]
    NoGlobs,
    /// A glob that cannot be read.
    #[error("`{parameter}` holds the malformed pattern {pattern:?}: {reason}")]
    MalformedGlob {
        /// Which list.
        parameter: String,
        /// The entry as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A map with an empty key.
    #[error("`{parameter}` holds an empty key")]
    EmptyKey {
        /// Which map.
        parameter: String,
    },
    /// A key with an empty value.
    #[error("`{parameter}` holds an empty value")]
    EmptyValue {
        /// Which map and key.
        parameter: String,
    },
}

impl Filter {
    /// Checks the filters of a request.
    ///
    /// The lists come first, in the order `path_globs`, `tags_any`,
    /// `tags_all`, then `fields` and `fields_not`, then the syntax of globs; the
    /// first fault is reported.
    ///
    /// - `request`: up to 64 entries a list or map, up to 1024 bytes an entry
    ///   or key, up to 64 KiB a map.
    /// - `default_min_quality`: from 0 to 1; applies unless the request says
    ///   otherwise.
    ///
    /// # Errors
    ///
    /// [`InvalidFilter`] names the parameter, what was given and the limit.
    ///
    /// ```
    /// use grooveseek::domain::filter::Filter;
    /// use grooveseek::domain::search::SearchRequest;
    ///
    /// let mut request = SearchRequest {
    ///     path_globs: Some(vec!["docs/**".into(), "!docs/draft/**".into()]),
    ///     ..SearchRequest::default()
    /// };
    /// let checked = Filter::check(&request, 0.3).unwrap();
    /// assert!(!checked.filter.admits_every_document());
    /// assert_eq!(checked.echo.path_globs, ["docs/**", "!docs/draft/**"]);
    ///
    /// request.path_globs = Some(Vec::new());
    /// assert!(Filter::check(&request, 0.3).is_err());
    /// ```
    pub fn check(
        request: &SearchRequest,
        default_min_quality: f32,
    ) -> Result<CheckedFilter, InvalidFilter> {
        let path_globs = request.path_globs.as_deref();
        if path_globs.is_some_and(<[String]>::is_empty) {
            return Err(InvalidFilter::NoGlobs);
        }
        let path_globs = path_globs.unwrap_or_default();
        check_list("path_globs", path_globs)?;
        check_list("tags_any", &request.tags_any)?;
        check_list("tags_all", &request.tags_all)?;
        check_fields("fields", &request.fields)?;
        check_fields("fields_not", &request.fields_not)?;
        let (excluded_paths, included_paths) = compile_globs(path_globs)?;

        let mut warnings = date_warnings(request);
        warnings.extend(ratio_warning(request));
        let min_quality = min_quality(request, default_min_quality, &mut warnings);
        let fields = normalised(&request.fields);
        let fields_not = normalised(&request.fields_not);
        let echo = FilterEcho {
            category: request.category.clone(),
            topic: request.topic.clone(),
            path_globs: path_globs.to_vec(),
            tags_any: request.tags_any.clone(),
            tags_all: request.tags_all.clone(),
            date_from: request.date_from.clone(),
            date_to: request.date_to.clone(),
            fields: fields.clone(),
            fields_not: fields_not.clone(),
            min_confidence_ratio: request.min_confidence_ratio.filter(|ratio| ratio.is_finite()),
            excluded_terms: Vec::new(),
        };
        let documents = DocumentFilter {
            category: request.category.clone(),
            topic: request.topic.clone(),
            included_paths,
            excluded_paths,
            without: BTreeSet::new(),
            tags_any: request.tags_any.clone(),
            tags_all: request.tags_all.clone(),
            date_from: request.date_from.clone(),
            date_to: request.date_to.clone(),
            fields,
            fields_not,
        };
        Ok(CheckedFilter { filter: Self { documents, min_quality }, echo, warnings })
    }
}

/// Holds a list against its limits.
pub(super) fn check_list(parameter: &str, entries: &[String]) -> Result<(), InvalidFilter> {
    if entries.len() > MAX_ENTRIES {
        return Err(InvalidFilter::TooMany {
            parameter: parameter.to_owned(),
            count: entries.len(),
            limit: MAX_ENTRIES,
        });
    }
    entries.iter().try_for_each(|entry| check_size(parameter, entry, MAX_ENTRY_BYTES))
}

/// Holds one text against a limit.
pub(super) fn check_size(
    parameter: &str,
    text: &str,
    limit_bytes: usize,
) -> Result<(), InvalidFilter> {
    if text.len() > limit_bytes {
        let parameter = parameter.to_owned();
        return Err(InvalidFilter::TooLarge { parameter, size_bytes: text.len(), limit_bytes });
    }
    Ok(())
}

/// Reads globs; those that a `!` leads come first in the result.
fn compile_globs(patterns: &[String]) -> Result<(Vec<Glob>, Vec<Glob>), InvalidFilter> {
    let (mut excluded, mut included) = (Vec::new(), Vec::new());
    for pattern in patterns {
        let (globs, glob) = match pattern.strip_prefix('!') {
            Some(glob) => (&mut excluded, glob),
            None => (&mut included, pattern.as_str()),
        };
        let glob = Glob::new(glob, cfg!(not(windows)))
            .map_err(|error| malformed("path_globs", pattern, &error.to_string()))?;
        globs.push(glob);
    }
    Ok((excluded, included))
}

/// Refuses a glob.
pub(super) fn malformed(parameter: &str, pattern: &str, reason: &str) -> InvalidFilter {
    InvalidFilter::MalformedGlob {
        parameter: parameter.to_owned(),
        pattern: pattern.to_owned(),
        reason: reason.to_owned(),
    }
}

fn min_quality(request: &SearchRequest, default: f32, warnings: &mut Vec<String>) -> f32 {
    match request.min_quality {
        _ if request.include_low_quality => 0.0,
        Some(quality) if quality.is_finite() => clamped(quality),
        Some(quality) => {
            warnings.push(format!(
                "`min_quality` is {quality}, which is no number from 0 to 1; {default} applies"
            ));
            default
        }
        None => default,
    }
}

fn ratio_warning(request: &SearchRequest) -> Option<String> {
    let ratio = request.min_confidence_ratio.filter(|ratio| !ratio.is_finite())?;
    Some(format!(
        "`min_confidence_ratio` is {ratio}, which is no finite number; the configured one applies"
    ))
}

fn date_warnings(request: &SearchRequest) -> Vec<String> {
    [("date_from", &request.date_from), ("date_to", &request.date_to)]
        .into_iter()
        .filter_map(|(parameter, bound)| Some((parameter, bound.as_deref()?)))
        .filter(|(_, bound)| !looks_like_a_date(bound))
        .map(|(parameter, bound)| {
            format!(
                "`{parameter}` is {bound:?}, which has neither the form YYYY-MM-DD nor that of RFC 3339; dates are compared as text, so it may let the wrong documents pass"
            )
        })
        .collect()
}
