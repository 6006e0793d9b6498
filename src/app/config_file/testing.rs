//! What the tests of this folder share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::app::config::{ApiKey, Config};
use crate::app::config_file::discovery::{FileFacts, PathKind, Resolution, Trust};
use crate::app::config_file::error::ConfigError;
use crate::app::config_file::file::ConfigFile;
use crate::app::config_file::trust::{Context, Warning, apply_trust};

/// The models that the tests know.
pub(super) const MODELS: [&str; 2] = ["bge-small-en-v1.5", "bge-m3"];

/// The rerankers that the tests know.
pub(super) const RERANKERS: [&str; 4] = ["none", "bge-v2-m3", "jina-v2-ml", "bge-base"];

/// A file system in memory.
#[derive(Default)]
pub(in crate::app) struct Facts {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    links: BTreeMap<PathBuf, PathBuf>,
}

impl Facts {
    /// Files, and folders where a path ends with `/`.
    pub(in crate::app) fn new(paths: &[&str]) -> Self {
        let mut facts = Self::default();
        for path in paths {
            facts = match path.strip_suffix('/') {
                Some(folder) => facts.directory(folder),
                None => facts.file(path),
            };
        }
        facts
    }

    pub(super) fn file(mut self, path: &str) -> Self {
        self.files.insert(path.into());
        self.above(path)
    }

    pub(in crate::app) fn link(mut self, path: &str, target: &str) -> Self {
        self.links.insert(path.into(), target.into());
        self.above(path)
    }

    fn directory(mut self, path: &str) -> Self {
        self.directories.insert(path.into());
        self.above(path)
    }

    fn above(mut self, path: &str) -> Self {
        self.directories.extend(Path::new(path).ancestors().skip(1).map(Path::to_owned));
        self
    }
}

impl FileFacts for Facts {
    fn kind(&self, path: &Path) -> Option<PathKind> {
        if self.files.contains(path) {
            Some(PathKind::File)
        } else if self.directories.contains(path) {
            Some(PathKind::Directory)
        } else {
            self.links.contains_key(path).then_some(PathKind::Other)
        }
    }

    fn resolve(&self, path: &Path) -> Resolution {
        let mut real = PathBuf::new();
        for part in path.components() {
            match part {
                std::path::Component::ParentDir => {
                    real.pop();
                }
                std::path::Component::CurDir => {}
                part => real.push(part),
            }
            if let Some(target) = self.links.get(&real) {
                if !self.files.contains(target) && !self.directories.contains(target) {
                    return Resolution::Unresolvable;
                }
                real.clone_from(target);
            } else if !self.files.contains(&real) && !self.directories.contains(&real) {
                return Resolution::Missing;
            }
        }
        Resolution::Path(real)
    }
}

/// Reads `/etc/kb/groove.toml` with this text, as far as it is believed.
pub(super) fn load(
    text: &str,
    trust: Trust,
    api_key: Option<ApiKey>,
    files: &Facts,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let file = ConfigFile::parse(text, Path::new("/etc/kb/groove.toml"))?;
    let context = Context {
        models: &MODELS,
        rerankers: &RERANKERS,
        api_key,
        home: Some(Path::new("/home/ann")),
        files,
    };
    apply_trust(file, trust, &context)
}

/// The settings of a trusted file.
pub(super) fn read(text: &str) -> Config {
    read_with_key(text, None)
}

/// The settings of a trusted file beside a key from the environment.
pub(super) fn read_with_key(text: &str, api_key: Option<ApiKey>) -> Config {
    load(text, Trust::Trusted, api_key, &Facts::default()).unwrap().0
}

/// Why a trusted file is refused.
pub(super) fn refusal(text: &str) -> String {
    load(text, Trust::Trusted, None, &Facts::default()).unwrap_err().to_string()
}
