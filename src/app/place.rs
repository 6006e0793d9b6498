//! Where a knowledge base and its index lie.

use std::path::{Component, Path, PathBuf};

use crate::app::error::AppError;

/// The file beside a knowledge base that holds its index.
pub const INDEX_FILE: &str = ".groove.db";

/// A knowledge base and its index, as absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The root of the knowledge base.
    pub root: PathBuf,
    /// The index file, beside the root.
    pub index: PathBuf,
}

impl Place {
    /// Finds the index of a knowledge base: `.groove.db` in the folder that
    /// holds the root by name. A root that is reached through a link keeps its
    /// index beside the link.
    ///
    /// - `kb_path`: the root as it was given.
    /// - `working_dir`: absolute; what a relative path starts from.
    /// - `canonical`: resolves a path whose last part is no name.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if the root is the root of a file system, or has
    /// no name and cannot be resolved.
    pub fn of(
        kb_path: &Path,
        working_dir: &Path,
        canonical: impl FnOnce(&Path) -> std::io::Result<PathBuf>,
    ) -> Result<Self, AppError> {
        let absolute = working_dir.join(kb_path);
        let named = matches!(last_as_written(kb_path), Some(Component::Normal(_)));
        let root: PathBuf = if named {
            absolute.components().filter(|part| !matches!(part, Component::CurDir)).collect()
        } else {
            canonical(&absolute).map_err(|error| {
                AppError::Invalid(format!(
                    "cannot find the knowledge base {}: {error}; name an existing folder with \
                     --kb-path",
                    absolute.display()
                ))
            })?
        };
        match root.parent() {
            Some(parent) => Ok(Self { index: parent.join(INDEX_FILE), root }),
            None => Err(AppError::Invalid(format!(
                "{} is the root of a file system and cannot be a knowledge base, since the index \
                 lies beside it; name a folder with --kb-path",
                root.display()
            ))),
        }
    }
}

/// The last part of a path, a trailing `.` included, which
/// [`Path::components`] drops.
fn last_as_written(path: &Path) -> Option<Component<'_>> {
    let text = path.as_os_str().as_encoded_bytes();
    let end = text.iter().rposition(|&byte| byte != b'/').map_or(0, |index| index + 1);
    let text = &text[..end];
    if text == b"." || text.ends_with(b"/.") {
        return Some(Component::CurDir);
    }
    path.components().next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn index_of(kb_path: &str) -> String {
        let canonical = |_: &Path| Ok(PathBuf::from("/real/kb"));
        let place = Place::of(Path::new(kb_path), Path::new("/home/u/base"), canonical).unwrap();
        place.index.display().to_string()
    }

    // IDX-01 IDX-10
    #[test]
    fn the_index_lies_in_the_folder_that_holds_the_root_by_name() {
        assert_eq!(index_of("kb"), "/home/u/base/.groove.db");
        assert_eq!(index_of("./kb/"), "/home/u/base/.groove.db");
        assert_eq!(index_of("/srv/notes/kb"), "/srv/notes/.groove.db");
        assert_eq!(index_of("../kb"), "/home/u/base/../.groove.db");
    }

    // IDX-10
    #[test]
    fn a_root_without_a_name_of_its_own_is_resolved_first() {
        for kb_path in [".", "./", "..", "kb/..", "kb/.", ""] {
            assert_eq!(index_of(kb_path), "/real/.groove.db", "{kb_path:?}");
        }
    }

    // IDX-10
    #[test]
    fn the_root_of_a_file_system_is_refused() {
        let canonical = |path: &Path| Ok(path.to_owned());
        assert!(Place::of(Path::new("/"), Path::new("/"), canonical).is_err());
        let missing = |_: &Path| Err(io::ErrorKind::NotFound.into());
        let error = Place::of(Path::new(".."), Path::new("/a"), missing).unwrap_err().to_string();
        assert!(error.contains("--kb-path"), "{error}");
    }
}
