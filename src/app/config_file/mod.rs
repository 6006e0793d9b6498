//! `groove.toml`: where it is found, how far it is believed, what it says.
//!
//! [`discover`] decides which file counts and whether it is trusted,
//! [`ConfigFile::parse`] reads its text, and [`apply_trust`] makes a
//! [`Config`](crate::app::config::Config) of it. None of them touches a file or
//! the environment: the binary hands both in.

mod discovery;
mod effective;
mod error;
mod file;
mod keys;

mod endpoint;
mod read;
mod size;
mod trust;

mod paths;

#[cfg(test)]
#[path = "example/tests.rs"]
mod example_tests;
#[cfg(test)]
#[path = "keys/tests.rs"]
mod keys_tests;
#[cfg(test)]
pub(in crate::app) mod testing;

pub use discovery::{Discovered, FileFacts, PathKind, Places, Resolution, Source, Trust, discover};
pub use effective::{Setting, SettingOrigin, SettingValue, effective};
pub use error::{ConfigError, Position};
pub use file::ConfigFile;
pub use paths::{
    Directory, DirectoryError, KbPathError, Origin, expand_home, knowledge_base, own_directory,
    tilde_hint,
};
pub use trust::{Context, Warning, apply_trust};
