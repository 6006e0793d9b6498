//! The ignore file of a source, read afresh for every listing.

use crate::domain::exclusion::{ExclusionRules, IGNORE_FILE_CAP_BYTES, IGNORE_FILE_NAME};
use crate::ports::document_source::{DocumentSource, Note, Severity, SizeCap, SourceError};

/// Puts the patterns of a source's ignore file on top of other rules.
///
/// A file that is missing says nothing. One that is refused or cannot be read is
/// a warning, and the rules stay as they were.
///
/// - `place`: what people call the root of the source.
pub(super) fn with_ignore_file(
    source: &dyn DocumentSource,
    rules: ExclusionRules,
    place: &str,
) -> (ExclusionRules, Vec<Note>) {
    let content = match source.read_aside(IGNORE_FILE_NAME, SizeCap(IGNORE_FILE_CAP_BYTES)) {
        Ok(content) => content,
        Err(SourceError::NotFound { .. }) => return (rules, Vec::new()),
        Err(SourceError::Refused { reason, .. }) => {
            return (rules, vec![passed_over(place, &reason.to_string())]);
        }
        Err(SourceError::Unavailable { source, .. }) => {
            return (rules, vec![passed_over(place, &source.to_string())]);
        }
    };
    let (rules, remarks) = rules.with_ignore_file(&content.bytes);
    let in_force = Note {
        severity: Severity::Note,
        text: format!("{IGNORE_FILE_NAME} of {place} is in force: {}", count(&rules)),
    };
    let warnings = remarks.iter().map(|remark| Note {
        severity: Severity::Warning,
        text: format!("{IGNORE_FILE_NAME} of {place}: {remark}"),
    });
    (rules, std::iter::once(in_force).chain(warnings).collect())
}

fn count(rules: &ExclusionRules) -> String {
    match rules.pattern_count() {
        1 => "1 pattern".to_owned(),
        count => format!("{count} patterns"),
    }
}

fn passed_over(place: &str, why: &str) -> Note {
    Note {
        severity: Severity::Warning,
        text: format!(
            "{IGNORE_FILE_NAME} of {place} is passed over, nothing is excluded by it: {why}"
        ),
    }
}
