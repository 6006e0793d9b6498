//! Grammar plugins: where they lie, and what keeps one from being used.
//!
//! A plugin runs as part of the program, so it is opened from one folder only,
//! by a name from a fixed table, and never from inside a knowledge base.

use std::path::{Path, PathBuf};

use crate::app::config_file::{Directory, DirectoryError, FileFacts, Origin, PathKind, Resolution};
use crate::domain::format::PluginLanguage;

/// Why a language that needs a plugin cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// No folder can be told.
    #[error("[parsers].enabled needs a grammar plugin for {id:?}: {reason}")]
    NoFolder {
        /// The language's id.
        id: &'static str,
        /// Why.
        reason: DirectoryError,
    },
    /// The folder belongs to the knowledge base, whose files are not to run.
    #[error(
        "grammar plugins are not taken from inside the knowledge base, but {origin} names {}; \
         {remedy}", folder.display()
    )]
    InsideKnowledgeBase {
        /// The folder.
        folder: PathBuf,
        /// What named it.
        origin: &'static str,
        /// What to change.
        remedy: &'static str,
    },
    /// There is no such file.
    #[error(
        "[parsers].enabled names {id:?}, which needs the grammar plugin {file_name} in {}; it is \
         not there: unpack it from the archive {archive} of this version, or take {id:?} out of \
         [parsers].enabled", folder.display()
    )]
    Missing {
        /// The language's id.
        id: &'static str,
        /// The file that is wanted.
        file_name: String,
        /// Where it was looked for.
        folder: PathBuf,
        /// What holds it.
        archive: String,
    },
    /// The file is there and is not used.
    #[error("the grammar plugin {} for {id:?} is refused because {reason}", file.display())]
    Refused {
        /// The language's id.
        id: &'static str,
        /// The file.
        file: PathBuf,
        /// Why, fit to follow "because".
        reason: String,
    },
}

/// Finds the plugins of the languages that a configuration switches on. Asks
/// for the folder only if there is such a language.
///
/// - `folder`: where plugins are kept.
/// - `kb_path`: the root of the knowledge base.
///
/// # Errors
///
/// [`GrammarError`] for the first language that cannot be read, whatever the
/// configuration's trust. A language is never read as plain text instead.
pub fn check_plugins(
    languages: &[PluginLanguage],
    folder: impl FnOnce() -> Result<Directory, DirectoryError>,
    kb_path: &Path,
    files: &dyn FileFacts,
) -> Result<(), GrammarError> {
    let Some(language) = languages.first() else { return Ok(()) };
    let id = language.id;
    let folder = folder().map_err(|reason| GrammarError::NoFolder { id, reason })?;
    if is_inside(&folder.path, kb_path, files) {
        let (origin, remedy) = match folder.origin {
            Origin::Variable => ("GROOVE_GRAMMAR_DIR", "set the variable to another folder"),
            Origin::Key => ("the key grammar_dir", "let the key name another folder"),
            Origin::Standard => {
                ("the standard location", "name another folder with GROOVE_GRAMMAR_DIR")
            }
        };
        return Err(GrammarError::InsideKnowledgeBase { folder: folder.path, origin, remedy });
    }
    let file_name = file_name(language);
    let file = folder.path.join(&file_name);
    Err(match files.kind(&file) {
        None => GrammarError::Missing {
            id,
            file_name,
            folder: folder.path,
            archive: format!("groove-grammar-{}-{}", language.name, target()),
        },
        Some(PathKind::File) => GrammarError::Refused {
            id,
            file,
            reason: "this version reads no source code and cannot load it".to_owned(),
        },
        Some(_) => {
            GrammarError::Refused { id, file, reason: "it is not a regular file".to_owned() }
        }
    })
}

/// Tells whether a folder is the knowledge base or below it, links judged by
/// their targets. One that does not exist is not.
fn is_inside(folder: &Path, kb_path: &Path, files: &dyn FileFacts) -> bool {
    match (files.resolve(folder), files.resolve(kb_path)) {
        (Resolution::Path(folder), Resolution::Path(root)) => folder.starts_with(root),
        _ => false,
    }
}

/// The file of a language's plugin on this system.
fn file_name(language: &PluginLanguage) -> String {
    let stem = format!("groove_grammar_{}", language.name);
    if cfg!(windows) {
        format!("{stem}.dll")
    } else if cfg!(target_os = "macos") {
        format!("lib{stem}.dylib")
    } else {
        format!("lib{stem}.so")
    }
}

/// The system that this build is for, as archives spell it.
fn target() -> String {
    let arch = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x86_64" };
    if cfg!(windows) {
        format!("{arch}-pc-windows-msvc")
    } else if cfg!(target_os = "macos") {
        format!("{arch}-apple-darwin")
    } else if cfg!(target_env = "musl") {
        format!("{arch}-unknown-linux-musl")
    } else {
        format!("{arch}-unknown-linux-gnu")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config_file::testing::Facts;

    fn check(folder: Directory, files: &Facts) -> GrammarError {
        check_that(Ok(folder), files)
    }

    fn check_that(folder: Result<Directory, DirectoryError>, files: &Facts) -> GrammarError {
        let php = PluginLanguage::of_id("PHP").unwrap();
        check_plugins(&[php], || folder, Path::new("/kb"), files).unwrap_err()
    }

    fn at(path: &str, origin: Origin) -> Directory {
        Directory { path: path.into(), origin }
    }

    // CFG-90
    #[test]
    fn without_a_plugin_language_no_folder_is_asked_for() {
        let never = || panic!("nobody needs it");
        assert_eq!(check_plugins(&[], never, Path::new("/kb"), &Facts::default()), Ok(()));
    }

    // CFG-90
    #[test]
    fn without_any_folder_the_variable_is_named() {
        let what = "grammar plugins";
        let none = DirectoryError::Undeterminable { what, variable: "GROOVE_GRAMMAR_DIR" };
        let message = check_that(Err(none), &Facts::default()).to_string();
        assert!(message.contains("\"php\"") && message.contains("GROOVE_GRAMMAR_DIR"), "{message}");
    }

    // CFG-91
    #[test]
    fn a_folder_of_the_knowledge_base_is_refused_by_what_named_it() {
        let files = Facts::new(&["/kb/g/", "/else/"]).link("/else/g", "/kb/g");
        for (origin, named) in [
            (Origin::Variable, "GROOVE_GRAMMAR_DIR"),
            (Origin::Key, "grammar_dir"),
            (Origin::Standard, "standard location"),
        ] {
            for folder in ["/kb/g", "/kb", "/else/g", "/else/../kb/g"] {
                let error = check(at(folder, origin), &files);
                assert!(matches!(error, GrammarError::InsideKnowledgeBase { .. }), "{error}");
                assert!(error.to_string().contains(named), "{error}");
            }
        }
        let gone = check(at("/kb/gone", Origin::Key), &files);
        assert!(matches!(gone, GrammarError::Missing { .. }), "{gone}");
    }

    // CLI-223 CFG-31 FMT-PLG-07
    #[test]
    #[cfg(target_os = "linux")]
    fn a_missing_plugin_is_named_with_its_file_folder_and_archive() {
        let message = check(at("/opt/g", Origin::Key), &Facts::new(&["/kb/"])).to_string();
        for part in ["\"php\"", "libgroove_grammar_php.so in /opt/g", "groove-grammar-php-"] {
            assert!(message.contains(part), "{message}");
        }
    }

    // CLI-223
    #[test]
    #[cfg(target_os = "linux")]
    fn a_plugin_that_is_there_is_refused_with_a_reason() {
        for file in ["/opt/g/libgroove_grammar_php.so", "/opt/g/libgroove_grammar_php.so/"] {
            let message = check(at("/opt/g", Origin::Key), &Facts::new(&[file])).to_string();
            assert!(message.contains("/opt/g/libgroove_grammar_php.so"), "{message}");
            assert!(message.contains("is refused because "), "{message}");
        }
    }
}
