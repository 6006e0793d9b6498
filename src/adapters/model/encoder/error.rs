//! Why a model's folder could not be read.

use std::path::{Path, PathBuf};

use crate::ports::Cause;

/// What is wrong with a model's folder. Each names the file that it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A file that every model needs is not there.
    #[error(
        "{} has no {file}; put the model's {file} there, or have the model fetched again",
        folder.display()
    )]
    Missing {
        /// Where it was looked for.
        folder: PathBuf,
        /// Its name.
        file: String,
    },
    /// A file is there but cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The failure as the system or the parser reported it.
        source: Cause,
    },
    /// A file contradicts itself or another.
    #[error("{} is not usable: {reason}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder holds a model that this engine does not run.
    #[error("{} describes a model that the native engine does not run: {reason}", path.display())]
    Unsupported {
        /// Which file says so.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
}

impl LoadError {
    /// A file that cannot be read, or is not there.
    pub(crate) fn from_io(folder: &Path, file: &str, error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::NotFound {
            Self::Missing { folder: folder.to_path_buf(), file: file.to_owned() }
        } else {
            Self::Unreadable { path: folder.join(file), source: error.into() }
        }
    }

    /// A file that contradicts itself or another.
    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_path_buf(), reason: reason.into() }
    }

    /// A file that describes another kind of model.
    pub(crate) fn unsupported(path: &Path, reason: impl Into<String>) -> Self {
        Self::Unsupported { path: path.to_path_buf(), reason: reason.into() }
    }
}
