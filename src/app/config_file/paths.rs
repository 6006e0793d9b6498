//! Paths that come from a flag, a variable, a key or the system.

use std::path::{Path, PathBuf};

use crate::app::config::Config;
use crate::app::config_file::discovery::{FileFacts, PathKind};

/// What a message adds about a path that starts with `~`, which stands for the
/// home folder on the command line alone.
///
/// - Returns an empty text where there is nothing to add.
pub fn tilde_hint(path: &Path) -> &'static str {
    if path.components().any(|part| part.as_os_str() == "~") {
        "; `~` is not expanded in the file"
    } else {
        ""
    }
}

/// Puts the home folder in place of a leading `~`, on every system.
///
/// - Returns none if the path needs a home folder and there is none.
pub fn expand_home(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~") {
        Ok(rest) if rest.as_os_str().is_empty() => home.map(Path::to_owned),
        Ok(rest) => home.map(|home| home.join(rest)),
        Err(_) => Some(path.to_owned()),
    }
}

/// Why there is no knowledge base to work on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KbPathError {
    /// Neither the flag nor the key names one.
    #[error("--kb-path is required: no configuration file in force sets kb_path")]
    Required,
    /// There is nothing at the path.
    #[error("the folder {} that {from} names does not exist{hint}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
        /// `--kb-path` or `kb_path`.
        from: &'static str,
        /// What to add about a `~`.
        hint: &'static str,
    },
    /// There is something else than a folder.
    #[error("{}, which {from} names, is not a folder", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
        /// `--kb-path` or `kb_path`.
        from: &'static str,
    },
}

/// Decides the root of the knowledge base.
///
/// - `flag`: what `--kb-path` says; relative to `working_dir`.
/// - Returns the path of a folder that exists.
///
/// # Errors
///
/// [`KbPathError`], for the caller to print.
pub fn knowledge_base(
    flag: Option<&Path>,
    config: &Config,
    working_dir: &Path,
    files: &dyn FileFacts,
) -> Result<PathBuf, KbPathError> {
    let (path, from, hint) = match (flag, &config.kb_path) {
        (Some(flag), _) => (working_dir.join(flag), "--kb-path", ""),
        (None, Some(key)) => (key.clone(), "kb_path", tilde_hint(key)),
        (None, None) => return Err(KbPathError::Required),
    };
    match files.kind(&path) {
        Some(PathKind::Directory) => Ok(path),
        Some(_) => Err(KbPathError::NotADirectory { path, from }),
        None => Err(KbPathError::Missing { path, from, hint }),
    }
}

/// A folder of the program's own with what named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// An absolute path.
    pub path: PathBuf,
    /// What named it.
    pub origin: Origin,
}

/// What named a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable.
    Variable,
    /// A key of the configuration file.
    Key,
    /// Nothing: it is the system's usual place.
    Standard,
}

/// Why there is no folder to use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DirectoryError {
    /// The variable holds a relative path.
    #[error("{variable} is {}, but has to be an absolute path", path.display())]
    Relative {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        path: PathBuf,
    },
    /// Nothing names one, and the system has no usual place.
    #[error("no folder for {what}: this system names no usual place; set {variable}")]
    Undeterminable {
        /// What would be in it.
        what: &'static str,
        /// The variable that can name it.
        variable: &'static str,
    },
}

/// Decides on a folder of the program's own: the variable, else the key, else
/// the usual place. Never one that is relative to the working directory.
///
/// - `variable`: its name and what it holds, if that is not empty.
/// - `key`: what the file says, absolute as [`Config`] keeps it.
/// - `standard`: the usual place, if the system has one.
///
/// # Errors
///
/// [`DirectoryError`], where a command needs the folder.
pub fn own_directory(
    what: &'static str,
    variable: (&'static str, Option<&Path>),
    key: Option<&Path>,
    standard: Option<&Path>,
) -> Result<Directory, DirectoryError> {
    let (name, value) = variable;
    match value {
        Some(path) if path.is_absolute() => {
            return Ok(Directory { path: path.to_owned(), origin: Origin::Variable });
        }
        Some(path) if !path.as_os_str().is_empty() => {
            return Err(DirectoryError::Relative { variable: name, path: path.to_owned() });
        }
        _ => {}
    }
    let usable = |path: Option<&Path>, origin| {
        path.filter(|path| path.is_absolute())
            .map(|path| Directory { path: path.to_owned(), origin })
    };
    usable(key, Origin::Key)
        .or_else(|| usable(standard, Origin::Standard))
        .ok_or(DirectoryError::Undeterminable { what, variable: name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config_file::testing::Facts;

    // CLI-12 CLI-14 CLI-05
    #[test]
    fn the_flag_comes_before_the_key_and_without_either_the_flag_is_required() {
        let files = Facts::new(&["/base/notes/", "/kb/", "/base/file"]);
        let key = Config { kb_path: Some("/kb".into()), ..Config::default() };
        let base = |flag: Option<&str>, config: &Config| {
            knowledge_base(flag.map(Path::new), config, Path::new("/base"), &files)
        };
        assert_eq!(base(Some("notes"), &key), Ok("/base/notes".into()));
        assert_eq!(base(None, &key), Ok("/kb".into()));
        let required = base(None, &Config::default()).unwrap_err();
        assert!(required.to_string().starts_with("--kb-path is required"));
        let file = base(Some("file"), &key).unwrap_err().to_string();
        assert!(file.contains("/base/file") && file.contains("not a folder"), "{file}");
    }

    // CFG-36 CFG-40
    #[test]
    fn a_tilde_in_the_file_that_leads_nowhere_is_explained() {
        let files = Facts::new(&[]);
        let config = Config { kb_path: Some("/etc/~/notes".into()), ..Config::default() };
        let message = knowledge_base(None, &config, Path::new("/"), &files).unwrap_err();
        assert!(message.to_string().contains("`~` is not expanded in the file"), "{message}");
        let plain = Config { kb_path: Some("/etc/notes".into()), ..Config::default() };
        let message = knowledge_base(None, &plain, Path::new("/"), &files).unwrap_err();
        assert!(message.to_string().contains("/etc/notes") && !message.to_string().contains('~'));
    }

    // CLI-04
    #[test]
    fn a_leading_tilde_of_the_flag_is_the_home_folder() {
        let home = Some(Path::new("/home/ann"));
        let expand = |path: &str| expand_home(Path::new(path), home).unwrap();
        assert_eq!(expand("~/a.toml"), Path::new("/home/ann/a.toml"));
        assert_eq!(expand("~"), Path::new("/home/ann"));
        assert_eq!(expand("~bob/a.toml"), Path::new("~bob/a.toml"));
        assert_eq!(expand("a/~/b"), Path::new("a/~/b"));
        assert_eq!(expand_home(Path::new("~/a.toml"), None), None);
    }

    // CFG-95 CFG-70d CFG-37
    #[test]
    fn a_folder_of_our_own_is_never_relative_to_the_working_directory() {
        let choose = |variable: Option<&str>, key: Option<&str>, standard: Option<&str>| {
            own_directory(
                "models",
                ("FASTEMBED_CACHE_DIR", variable.map(Path::new)),
                key.map(Path::new),
                standard.map(Path::new),
            )
        };
        let from = |path: &str, origin| Ok(Directory { path: path.into(), origin });
        assert_eq!(choose(Some("/v"), Some("/k"), Some("/s")), from("/v", Origin::Variable));
        assert_eq!(choose(Some(""), Some("/k"), Some("/s")), from("/k", Origin::Key));
        assert_eq!(choose(None, None, Some("/s")), from("/s", Origin::Standard));
        let relative = choose(Some("cache"), Some("/k"), Some("/s")).unwrap_err().to_string();
        assert!(relative.contains("FASTEMBED_CACHE_DIR") && relative.contains("cache"));
        let none = choose(None, None, Some("relative")).unwrap_err().to_string();
        assert!(none.contains("set FASTEMBED_CACHE_DIR"), "{none}");
    }
}
