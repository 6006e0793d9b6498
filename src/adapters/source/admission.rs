//! Which file names a listing looks at.

use crate::domain::format::EnabledFormats;

/// Tells whether a file of this name is collected, if nothing else is against
/// it: its extension is enabled, and it is not the lock file of an editor.
pub(super) fn admits(formats: &EnabledFormats, name: &str) -> bool {
    let extension = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => extension,
        _ => return false,
    };
    formats.of_extension(extension).is_some() && !is_editor_lock(name)
}

fn is_editor_lock(name: &str) -> bool {
    name.starts_with("~$") || (name.starts_with(".~lock.") && name.ends_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-19
    #[test]
    fn the_last_extension_decides_without_ascii_case() {
        let formats = EnabledFormats::default();
        for name in ["a.md", "A.MD", "a.tar.Md", ".hidden.md", "日本.md"] {
            assert!(admits(&formats, name), "{name}");
        }
        for name in ["a.txt", "md", ".md", "a.md.bak", "a.md~", "a.", "a", ""] {
            assert!(!admits(&formats, name), "{name}");
        }
    }

    // IDX-20
    #[test]
    fn lock_files_of_editors_are_passed_over() {
        for name in ["~$a.md", "~$.md", ".~lock.a.md#"] {
            assert!(!admits(&EnabledFormats::default(), name), "{name}");
        }
        // What an editor's lock file only resembles is a document.
        for name in ["~a.md", "$~a.md", ".~lock.a.md", "a~$.md"] {
            assert!(admits(&EnabledFormats::default(), name), "{name}");
        }
        assert!(is_editor_lock(".~lock.a.md#") && is_editor_lock("~$a.md"));
    }
}
