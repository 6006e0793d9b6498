//! Which configuration file counts, and whether it is trusted.

use std::fmt;
use std::path::{Path, PathBuf};

/// The name that is looked for.
const FILE_NAME: &str = "groove.toml";

/// How many folders the walk to a git root looks at, the first one included.
const GIT_ROOT_FOLDERS: usize = 20;

/// What discovery and trust ask about files.
pub trait FileFacts {
    /// What is at a path, a symbolic link judged by its target; a link that
    /// leads nowhere is [`PathKind::Other`]. None if there is nothing.
    fn kind(&self, path: &Path) -> Option<PathKind>;

    /// The path with every symbolic link followed.
    fn resolve(&self, path: &Path) -> Resolution;
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// Anything else.
    Other,
}

/// What following the links of a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// An absolute path without links.
    Path(PathBuf),
    /// Nothing is there, and no link is on the way.
    Missing,
    /// A link cannot be followed, or the way cannot be examined.
    Unresolvable,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    /// What `--config` names: an existing file.
    pub named: Option<&'a Path>,
    /// The working directory, absolute.
    pub working_dir: &'a Path,
    /// The folder of the running binary.
    pub binary_dir: Option<&'a Path>,
    /// The bases of service config homes: the system's configuration folder
    /// and what `GROOVE_CONFIG_HOME` names. A relative one is passed over.
    pub config_bases: &'a [PathBuf],
}

/// Where a configuration came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Named with `--config`.
    Explicit,
    /// Found in the working directory.
    Cwd,
    /// Found in the git root above it.
    GitRoot,
    /// Found beside the running binary.
    AlongsideBinary,
    /// There is none: the defaults hold.
    NotFound,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// How far a configuration is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// In everything.
    Trusted,
    /// Not where it would reach beyond its own folder.
    Untrusted,
}

impl fmt::Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// The configuration file that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Where it came from.
    pub source: Source,
    /// The file; none with [`Source::NotFound`].
    pub path: Option<PathBuf>,
    /// How far it is believed: by its place, never by what it says.
    pub trust: Trust,
}

/// Finds the configuration file that counts: the first of a named one, the one
/// in the working directory, in the git root, beside the binary.
pub fn discover(places: &Places<'_>, files: &dyn FileFacts) -> Discovered {
    let found = |source, path: PathBuf| {
        let trust = match source {
            Source::Cwd | Source::GitRoot if !in_config_home(&path, places, files) => {
                Trust::Untrusted
            }
            _ => Trust::Trusted,
        };
        Discovered { source, path: Some(path), trust }
    };
    if let Some(named) = places.named {
        return found(Source::Explicit, places.working_dir.join(named));
    }
    let candidates = [
        (Source::Cwd, Some(places.working_dir)),
        (Source::GitRoot, git_root(places.working_dir, files)),
        (Source::AlongsideBinary, places.binary_dir),
    ];
    candidates
        .into_iter()
        .filter_map(|(source, folder)| Some((source, folder?.join(FILE_NAME))))
        .find(|(_, path)| files.kind(path) == Some(PathKind::File))
        .map_or(
            Discovered { source: Source::NotFound, path: None, trust: Trust::Trusted },
            |(source, path)| found(source, path),
        )
}

/// The nearest folder with an entry `.git` of any kind, from `start` upwards.
fn git_root<'a>(start: &'a Path, files: &dyn FileFacts) -> Option<&'a Path> {
    start
        .ancestors()
        .take(GIT_ROOT_FOLDERS)
        .find(|folder| files.kind(&folder.join(".git")).is_some())
}

/// Whether a file lies below the `groove` folder of a configuration base. The
/// base itself proves nothing: it may be the home folder.
fn in_config_home(path: &Path, places: &Places<'_>, files: &dyn FileFacts) -> bool {
    let Some(Resolution::Path(folder)) = path.parent().map(|folder| files.resolve(folder)) else {
        return false;
    };
    places
        .config_bases
        .iter()
        .filter(|base| base.is_absolute())
        .map(|base| files.resolve(&base.join("groove")))
        .any(|root| matches!(&root, Resolution::Path(root) if folder.starts_with(root)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config_file::testing::Facts;

    fn places<'a>(working_dir: &'a str, bases: &'a [PathBuf]) -> Places<'a> {
        Places {
            named: None,
            working_dir: Path::new(working_dir),
            binary_dir: Some(Path::new("/opt/groove")),
            config_bases: bases,
        }
    }

    fn found(source: Source, path: &str, trust: Trust) -> Discovered {
        Discovered { source, path: Some(path.into()), trust }
    }

    const EVERYWHERE: [&str; 6] = [
        "/named.toml",
        "/repo/.git/",
        "/repo/groove.toml",
        "/repo/sub/",
        "/repo/sub/groove.toml",
        "/opt/groove/groove.toml",
    ];

    // CFG-10 CFG-11 CFG-12 CFG-13 CFG-14 CFG-18
    #[test]
    fn the_first_place_that_has_a_file_counts() {
        let mut left = EVERYWHERE.to_vec();
        let mut named = places("/repo/sub", &[]);
        named.named = Some(Path::new("/named.toml"));
        assert_eq!(
            discover(&named, &Facts::new(&left)),
            found(Source::Explicit, "/named.toml", Trust::Trusted)
        );
        let places = places("/repo/sub", &[]);
        for (path, source, trust) in [
            ("/repo/sub/groove.toml", Source::Cwd, Trust::Untrusted),
            ("/repo/groove.toml", Source::GitRoot, Trust::Untrusted),
            ("/opt/groove/groove.toml", Source::AlongsideBinary, Trust::Trusted),
        ] {
            assert_eq!(discover(&places, &Facts::new(&left)), found(source, path, trust));
            left.retain(|other| *other != path);
        }
        let nothing = discover(&places, &Facts::new(&left));
        assert_eq!((nothing.source, nothing.path), (Source::NotFound, None));
        assert_eq!(nothing.trust, Trust::Trusted);
        let words: Vec<String> = [
            Source::Explicit,
            Source::Cwd,
            Source::GitRoot,
            Source::AlongsideBinary,
            Source::NotFound,
        ]
        .map(|source| source.to_string())
        .to_vec();
        assert_eq!(words, ["Explicit", "Cwd", "GitRoot", "AlongsideBinary", "NotFound"]);
        assert_eq!(Trust::Trusted.to_string() + &Trust::Untrusted.to_string(), "TrustedUntrusted");
    }

    // CFG-11
    #[test]
    fn a_folder_of_that_name_is_no_configuration() {
        let files = Facts::new(&["/repo/groove.toml/", "/opt/groove/groove.toml"]);
        assert_eq!(discover(&places("/repo", &[]), &files).source, Source::AlongsideBinary);
    }

    // CFG-17
    #[test]
    fn the_nearest_git_root_of_any_kind_ends_the_walk() {
        let files = Facts::new(&["/a/.git/", "/a/groove.toml", "/a/b/.git", "/a/b/c/"]);
        assert_eq!(discover(&places("/a/b/c", &[]), &files).source, Source::NotFound);
        let worktree = Facts::new(&["/a/b/.git", "/a/b/groove.toml", "/a/b/c/"]);
        assert_eq!(discover(&places("/a/b/c", &[]), &worktree).source, Source::GitRoot);
    }

    // CFG-17
    #[test]
    fn the_walk_looks_at_twenty_folders() {
        let files = Facts::new(&["/top/.git/", "/top/groove.toml"]);
        let below = |depth: usize| format!("/top{}", "/x".repeat(depth));
        assert_eq!(discover(&places(&below(19), &[]), &files).source, Source::GitRoot);
        assert_eq!(discover(&places(&below(20), &[]), &files).source, Source::NotFound);
    }

    // CFG-16
    #[test]
    fn a_found_file_is_trusted_below_the_groove_folder_of_a_base_only() {
        let trust = |file: &str, base: &str| {
            let files = Facts::new(&[file, "/home/ann/groove/", "/home/ann/groovy/"]);
            let folder = Path::new(file).parent().unwrap().to_str().unwrap();
            discover(&places(folder, &[base.into()]), &files).trust
        };
        assert_eq!(trust("/home/ann/groove/team/groove.toml", "/home/ann"), Trust::Trusted);
        assert_eq!(trust("/home/ann/groove/groove.toml", "/home/ann"), Trust::Trusted);
        assert_eq!(trust("/home/ann/groove.toml", "/home/ann"), Trust::Untrusted);
        assert_eq!(trust("/home/ann/repo/groove.toml", "/home/ann"), Trust::Untrusted);
        assert_eq!(trust("/home/ann/groovy/groove.toml", "/home/ann"), Trust::Untrusted);
        assert_eq!(trust("/home/ann/groove/team/groove.toml", "."), Trust::Untrusted);
    }

    // CFG-16
    #[test]
    fn a_link_out_of_a_config_home_is_not_trusted() {
        let files = Facts::new(&["/repo/groove.toml", "/home/ann/.config/groove/"])
            .link("/home/ann/.config/groove/team", "/repo")
            .file("/home/ann/.config/groove/team/groove.toml");
        let bases = ["/home/ann/.config".into()];
        let place = places("/home/ann/.config/groove/team", &bases);
        assert_eq!(discover(&place, &files).trust, Trust::Untrusted);
    }
}
