//! Documents that are there twice, by their bytes or by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use crate::domain::finding::{Check, Finding};
use crate::ports::chunk_store::{Damage, Document};

/// The most documents that one sample names.
const NAMED: usize = 3;

/// Characters of a hash of a document's bytes; what is shorter stands for one
/// that is not known.
const HASH_CHARS: usize = 64;

/// Documents that have the same bytes.
pub(super) fn duplicates(documents: &[Arc<Document>]) -> Option<Finding> {
    let known = documents.iter().filter(|row| row.hash.as_str().len() == HASH_CHARS);
    let groups = groups(known, |row| row.hash.as_str().to_owned());
    let summary = |count| format!("{count} document(s) have the same bytes as another one");
    let remedy = "keep one of each group, or exclude the others in .grooveignore";
    finding(Check::DuplicateContent, &groups, summary, remedy)
}

/// Documents whose names differ only in how their characters are composed.
pub(super) fn look_alikes(documents: &[Arc<Document>]) -> Option<Finding> {
    let groups = groups(documents, |row| row.path.as_str().nfc().collect());
    let summary = |count| {
        format!(
            "{count} document(s) have names that look like another one's and differ in how \
             accents are composed"
        )
    };
    finding(Check::MixedNormalisation, &groups, summary, "rename or remove one of each group")
}

/// The groups of at least two, in the order of their first names.
fn groups<'a>(
    documents: impl IntoIterator<Item = &'a Arc<Document>>,
    by: impl Fn(&Document) -> String,
) -> Vec<Vec<&'a str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for row in documents {
        groups.entry(by(row)).or_default().push(row.path.as_str());
    }
    let mut groups: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    groups
}

fn finding(
    check: Check,
    groups: &[Vec<&str>],
    summary: impl Fn(usize) -> String,
    remedy: &str,
) -> Option<Finding> {
    let count: usize = groups.iter().map(Vec::len).sum();
    let sample = |group: &Vec<&str>| match group.len() {
        ..=NAMED => group.join(" = "),
        more => format!("{} = {} more", group[..NAMED].join(" = "), more - NAMED),
    };
    (count > 0).then(|| Finding {
        check,
        summary: summary(count),
        count: count as u64,
        samples: groups.iter().take(Damage::MAX_SAMPLES).map(sample).collect(),
        remedy: remedy.to_owned(),
    })
}
