//! What a file that was only found may not set.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use crate::app::config::{ApiKey, Config, DEFAULT_MODEL, DEFAULT_SIZE_CAP};
use crate::app::config_file::discovery::{FileFacts, Resolution, Trust};
use crate::app::config_file::endpoint::FOLDER;
use crate::app::config_file::error::ConfigError;
use crate::app::config_file::file::{ConfigFile, Value};
use crate::app::config_file::keys::shown;
use crate::app::config_file::read;
use crate::domain::loopback::is_loopback;

/// What a configuration is judged by besides its file.
#[derive(Clone)]
pub struct Context<'a> {
    /// The names of the local embedding models.
    pub models: &'a [&'a str],
    /// The names of the rerankers, `none` among them.
    pub rerankers: &'a [&'a str],
    /// What `GROOVE_EMBEDDING_API_KEY` holds.
    pub api_key: Option<ApiKey>,
    /// The home folder.
    pub home: Option<&'a Path>,
    /// What is where.
    pub files: &'a dyn FileFacts,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Context")
            .field("models", &self.models)
            .field("rerankers", &self.rerankers)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

/// Something about a configuration that its owner should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A setting that was not believed.
    Restricted {
        /// The file.
        file: PathBuf,
        /// The key or section.
        key: String,
        /// What was asked.
        asked: String,
        /// What holds instead.
        used: String,
        /// Why, where it is not plain.
        reason: &'static str,
    },
    /// Size caps that are higher than the built-in ones.
    RaisedCaps {
        /// The keys with what they say.
        keys: Vec<(String, String)>,
        /// Whether one of them lifts its limit.
        unlimited: bool,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restricted { file, key, asked, used, reason } => write!(
                formatter,
                "{key}: {asked} in {file} is not accepted from a file that was only found{reason}; \
                 using {used} instead; name the file with --config to accept it",
                file = file.display(),
            ),
            Self::RaisedCaps { keys, unlimited } => {
                for (place, (key, value)) in keys.iter().enumerate() {
                    let comma = if place == 0 { "" } else { ", " };
                    write!(formatter, "{comma}{key} is {value}")?;
                }
                formatter.write_str(
                    ", above the built-in 50 MiB: a file is in memory whole while it is indexed, \
                     a failed allocation ends the process instead of skipping the file, and PDF \
                     extraction still stops after 120 s",
                )?;
                if *unlimited {
                    formatter.write_str(
                        "; with \"unlimited\" only the files of the knowledge base bound memory",
                    )?;
                }
                Ok(())
            }
        }
    }
}

/// Keys that are dropped, each with what holds instead.
const DROPPED: [(&str, &str); 20] = [
    ("grammar_dir", "the standard location"),
    ("fastembed_cache_dir", "the standard cache directory"),
    ("eval.golden", "<kb_path>/.groove-eval.yml"),
    ("transport.http.allowed_hosts", "the default hosts"),
    ("transport.http.allowed_origins", "the default origins"),
    ("transport.http.healthz_public", "true"),
    ("transport.http.max_sessions", "256"),
    ("transport.http.systemd_socket", "false"),
    ("transport.http.metrics", "false"),
    ("transport.http.max_in_flight", "256"),
    ("transport.http.max_connections", "768"),
    ("transport.http.header_timeout_secs", "60"),
    ("transport.http.body_timeout_secs", "60"),
    ("transport.http.idle_timeout_secs", "60"),
    ("transport.http.call_timeout_secs", "600"),
    ("transport.http.drain_timeout_secs", "30"),
    ("index.require_owner", "false"),
    ("index.max_binary_file_size", "the built-in 50 MiB"),
    ("index.max_text_file_size", "the built-in 50 MiB"),
    ("index.max_decompressed_size", "the built-in 50 MiB"),
];

/// Makes settings of a file as far as it is believed.
///
/// - `trust`: by the file's place, as discovery decided it.
/// - Returns the settings with what the owner should know, one warning for each
///   setting that was not believed. Relative paths are resolved against the
///   folder of the file.
///
/// # Errors
///
/// [`ConfigError`] if a value that counts is out of its range, or if keys that
/// count do not go together. What an untrusted file may not set never fails.
pub fn apply_trust(
    file: ConfigFile,
    trust: Trust,
    context: &Context<'_>,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut file = file;
    let mut warnings = match trust {
        Trust::Trusted => Vec::new(),
        Trust::Untrusted => restrict(&mut file, context),
    };
    let config = read::read(&file, context)?;
    warnings.extend(raised_caps(&file, &config));
    Ok((config, warnings))
}

pub(super) fn restrict(file: &mut ConfigFile, context: &Context<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    warnings.extend(restrict_kb_path(file, context));
    warnings.extend(drop_section(file, "parsers", "the default, Markdown only", ""));
    warnings.extend(restrict_embedding(file));
    warnings.extend(restrict_model(file, "model", DEFAULT_MODEL));
    warnings.extend(restrict_model(file, "reranker", "none"));
    warnings.extend(restrict_bind(file));
    for (key, used) in DROPPED {
        for (_, entry) in file.take(key) {
            warnings.push(Warning::Restricted {
                file: file.path().to_owned(),
                key: shown(key),
                asked: entry.shown,
                used: used.to_owned(),
                reason: "",
            });
        }
    }
    warnings
}

fn drop_section(
    file: &mut ConfigFile,
    section: &str,
    used: &str,
    reason: &'static str,
) -> Option<Warning> {
    let taken = file.take(section);
    let asked: Vec<String> =
        taken.iter().map(|(key, entry)| format!("{} = {}", shown(key), entry.shown)).collect();
    (!asked.is_empty()).then(|| Warning::Restricted {
        file: file.path().to_owned(),
        key: format!("[{section}]"),
        asked: asked.join(", "),
        used: used.to_owned(),
        reason,
    })
}

fn restrict_embedding(file: &mut ConfigFile) -> Option<Warning> {
    let is_local = file
        .get("embedding.provider")
        .is_none_or(|provider| matches!(&provider.value, Value::Text(text) if text == "fastembed"));
    let reason = if is_local {
        ", because this section can send document text and queries out"
    } else {
        ", because it would have sent document text and queries out"
    };
    drop_section(file, "embedding", "the built-in local provider", reason)
}

/// A folder of weights is read as it is, so only its owner may name one.
fn restrict_model(file: &mut ConfigFile, key: &str, used: &str) -> Option<Warning> {
    let entry = file.get(key)?;
    let Value::Text(text) = &entry.value else { return None };
    text.starts_with(FOLDER).then_some(())?;
    let warning = Warning::Restricted {
        file: file.path().to_owned(),
        key: key.to_owned(),
        asked: entry.shown.clone(),
        used: format!("\"{used}\""),
        reason: ", because it would have read a model from a folder of the file's choice",
    };
    file.take(key);
    Some(warning)
}

fn restrict_bind(file: &mut ConfigFile) -> Option<Warning> {
    let key = "transport.http.bind";
    let entry = file.get(key)?;
    let Value::Text(text) = &entry.value else { return None };
    let address = parse_bind(text).filter(|address| !is_loopback(address.ip()))?;
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()));
    let warning = Warning::Restricted {
        file: file.path().to_owned(),
        key: shown(key),
        asked: entry.shown.clone(),
        used: format!("\"{local}\""),
        reason: ", because other machines could reach it",
    };
    file.replace(key, local.to_string());
    Some(warning)
}

/// Reads a listening address; the name `localhost` counts as `127.0.0.1`.
pub(super) fn parse_bind(text: &str) -> Option<SocketAddr> {
    match text.rsplit_once(':') {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => {
            Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?)))
        }
        _ => text.parse().ok(),
    }
}

fn restrict_kb_path(file: &mut ConfigFile, context: &Context<'_>) -> Option<Warning> {
    let entry = file.get("kb_path")?;
    let Value::Text(text) = &entry.value else { return None };
    let reason = why_too_wide(Path::new(text), file.directory(), context)?;
    let warning = Warning::Restricted {
        file: file.path().to_owned(),
        key: "kb_path".to_owned(),
        asked: entry.shown.clone(),
        used: "what --kb-path says".to_owned(),
        reason,
    };
    file.take("kb_path");
    Some(warning)
}

/// Tells why a root is too wide for a file in `folder` to name, if it is.
fn why_too_wide(root: &Path, folder: &Path, context: &Context<'_>) -> Option<&'static str> {
    let asked = folder.join(root);
    let root = match context.files.resolve(&asked) {
        Resolution::Path(path) => path,
        Resolution::Missing => lexically(&asked),
        Resolution::Unresolvable => {
            return Some(", because a symbolic link in it cannot be followed");
        }
    };
    let real = |path: &Path| match context.files.resolve(path) {
        Resolution::Path(path) => path,
        _ => lexically(path),
    };
    if root.parent().is_none() {
        return Some(", because it is a filesystem root");
    }
    if context.home.is_some_and(|home| real(home).starts_with(&root) || home.starts_with(&root)) {
        return Some(", because it is the home directory or above it");
    }
    let folder = real(folder);
    if folder != root && folder.starts_with(&root) {
        return Some(", because it is above the folder of the file");
    }
    None
}

/// The path without `.` and `..`, taken as written.
fn lexically(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn raised_caps(file: &ConfigFile, config: &Config) -> Option<Warning> {
    let caps = [
        ("index.max_binary_file_size", config.index.max_binary_file_size),
        ("index.max_text_file_size", config.index.max_text_file_size),
        ("index.max_decompressed_size", config.index.max_decompressed_size),
    ];
    let raised = caps.into_iter().filter(|(_, cap)| cap.is_none_or(|cap| cap > DEFAULT_SIZE_CAP));
    let keys: Vec<(String, String)> =
        raised.filter_map(|(key, _)| Some((shown(key), file.get(key)?.shown.clone()))).collect();
    let unlimited = caps.iter().any(|(_, cap)| cap.is_none());
    (!keys.is_empty()).then_some(Warning::RaisedCaps { keys, unlimited })
}

#[cfg(test)]
mod tests;
