//! Why a configuration file cannot be used.

use std::fmt;
use std::path::PathBuf;

/// A place in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file.display(), self.line)
    }
}

/// Why a configuration file cannot be used. No variant holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("{at}: not valid TOML: {reason}")]
    Syntax {
        /// Where reading ended.
        at: Position,
        /// What the reader says.
        reason: String,
    },
    /// A key or section that means nothing.
    #[error("{at}: unknown key {key}{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// Where it stands.
        at: Position,
        /// The key as the documentation would write it.
        key: String,
        /// What it was probably meant to be.
        nearest: Option<String>,
    },
    /// A value of another shape than the key's.
    #[error("{at}: {key} is {value}, but has to be {expected}")]
    WrongType {
        /// Where it stands.
        at: Position,
        /// The key.
        key: String,
        /// The value as it is written.
        value: String,
        /// The shape that it has to have.
        expected: String,
    },
    /// A value that the key does not accept.
    #[error("{at}: {key} is {value}, but has to be {accepted}")]
    OutOfRange {
        /// Where it stands.
        at: Position,
        /// The key.
        key: String,
        /// The value as it is written.
        value: String,
        /// What would be accepted.
        accepted: String,
    },
    /// A key that another one calls for.
    #[error("{file}: {key} is missing: {reason}", file = file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The key.
        key: String,
        /// What calls for it.
        reason: String,
    },
    /// Keys that do not go together.
    #[error("{at}: {reason}")]
    Conflict {
        /// Where one of them stands.
        at: Position,
        /// The keys, and why they exclude each other.
        reason: String,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}
