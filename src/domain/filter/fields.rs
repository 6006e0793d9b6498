//! Checking the two maps over frontmatter keys.

use std::collections::{BTreeMap, BTreeSet};

use super::request::{InvalidFilter, MAX_ENTRIES, MAX_ENTRY_BYTES, check_list, check_size};

/// The most bytes of all keys and values of one map.
const MAX_MAP_BYTES: usize = 64 * 1024;

/// Holds a map against its limits, as it was given.
pub(super) fn check_fields(
    parameter: &str,
    fields: &BTreeMap<String, Vec<String>>,
) -> Result<(), InvalidFilter> {
    if fields.len() > MAX_ENTRIES {
        return Err(InvalidFilter::TooMany {
            parameter: parameter.to_owned(),
            count: fields.len(),
            limit: MAX_ENTRIES,
        });
    }
    let mut size_bytes = 0;
    for (key, values) in fields {
        if key.is_empty() {
            return Err(InvalidFilter::EmptyKey { parameter: parameter.to_owned() });
        }
        check_size(parameter, key, MAX_ENTRY_BYTES)?;
        let parameter = format!("{parameter}.{key}");
        check_list(&parameter, values)?;
        if values.iter().any(String::is_empty) {
            return Err(InvalidFilter::EmptyValue { parameter });
        }
        size_bytes += key.len() + values.iter().map(String::len).sum::<usize>();
    }
    if size_bytes > MAX_MAP_BYTES {
        return Err(InvalidFilter::TooLarge {
            parameter: parameter.to_owned(),
            size_bytes,
            limit_bytes: MAX_MAP_BYTES,
        });
    }
    Ok(())
}

/// Drops repeated values, and keys without values.
pub(super) fn normalised(fields: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let distinct = |values: &Vec<String>| {
        let mut seen = BTreeSet::new();
        values.iter().filter(|value| seen.insert(*value)).cloned().collect::<Vec<_>>()
    };
    fields
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(key, values)| (key.clone(), distinct(values)))
        .collect()
}
