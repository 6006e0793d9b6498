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

#[cfg(test)]
mod tests {
    use ignore::gitignore::{Gitignore, GitignoreBuilder};
    use proptest::prelude::*;

    use super::*;
    use crate::domain::exclusion::EntryKind;

    /// What another implementation of gitignore says, asked from the root
    /// downwards.
    fn another_opinion(patterns: &Gitignore, path: &str, kind: EntryKind) -> bool {
        path.match_indices('/').any(|(end, _)| patterns.matched(&path[..end], true).is_ignore())
            || patterns.matched(path, kind == EntryKind::Directory).is_ignore()
    }

    fn patterns(lines: &[String]) -> Gitignore {
        let mut builder = GitignoreBuilder::new("");
        builder.case_insensitive(true).unwrap();
        for line in lines {
            builder.add_line(None, line).unwrap();
        }
        builder.build().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        // IDX-31 IDX-32
        #[test]
        fn patterns_mean_what_they_mean_elsewhere(
            lines in prop::collection::vec(
                "!?/?(\\*\\*/)?([abC*?.]|\\[a-b\\]|\\[!a\\]|\\\\[*?!#]){1,3}(/[ab*]{1,2}|/\\*\\*){0,2}/? {0,2}|#a|",
                1..5,
            ),
            path in "[abc][abc.]?(/[abAC][abAC.]?){0,3}",
            is_directory in any::<bool>(),
        ) {
            let kind = if is_directory { EntryKind::Directory } else { EntryKind::File };
            let (rules, remarks) =
                ExclusionRules::default().with_ignore_file(lines.join("\n").as_bytes());
            prop_assert_eq!(remarks, []);
            prop_assert_eq!(
                rules.excludes(&path, kind),
                another_opinion(&patterns(&lines), &path, kind),
                "{:?} {:?}", lines, path
            );
        }
    }
}
