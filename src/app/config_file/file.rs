//! The text of a configuration file as keys and values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use crate::app::config_file::endpoint::shown_url;
use crate::app::config_file::error::{ConfigError, Position};
use crate::app::config_file::keys::{Kind, Meaning, is_below, meaning, nearest, shown};

/// The most characters of a value that a message repeats.
const SHOWN_CHARS: usize = 80;

/// A configuration file whose keys are all known and whose values all have the
/// right shape. Ranges are judged by
/// [`apply_trust`](crate::app::config_file::apply_trust), because a value that
/// is not believed need not be right.
#[derive(Clone, PartialEq)]
pub struct ConfigFile {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
    has_http_section: bool,
}

/// One value with where it stands.
#[derive(Clone, PartialEq)]
pub(super) struct Entry {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// The value as it is written, without what is secret.
    pub(super) shown: String,
    /// The value.
    pub(super) value: Value,
}

/// A value of one of the shapes of [`Kind`].
#[derive(Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Integer(i64),
    Number(f64),
    Texts(Vec<String>),
    Integers(Vec<i64>),
}

impl ConfigFile {
    /// Reads the text of a file.
    ///
    /// - `text`: the whole file.
    /// - `path`: where it lies, as messages name it; its folder is what a
    ///   relative `kb_path` is relative to.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Syntax`], [`ConfigError::UnknownKey`] at any depth, and
    /// [`ConfigError::WrongType`], whether the file is trusted or not; of
    /// several, the one that stands first.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use grooveseek::app::config_file::ConfigFile;
    ///
    /// assert!(ConfigFile::parse("model = \"bge-m3\"", Path::new("groove.toml")).is_ok());
    ///
    /// let error = ConfigFile::parse("modle = \"bge-m3\"", Path::new("groove.toml")).unwrap_err();
    /// assert_eq!(error.to_string(), "groove.toml:1: unknown key modle; did you mean model?");
    /// ```
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let table = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
            at: Position {
                file: path.to_owned(),
                line: line_at(text, error.span().map_or(0, |span| span.start)),
            },
            reason: error.message().lines().collect::<Vec<_>>().join("; "),
        })?;
        let mut collector = Collector { text, path, entries: BTreeMap::new(), has_http: false };
        collector.table("", table.get_ref())?;
        Ok(Self {
            path: path.to_owned(),
            entries: collector.entries,
            has_http_section: collector.has_http,
        })
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that the file lies in.
    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Whether there is a section `[transport.http]`, be it empty.
    pub(super) fn has_http_section(&self) -> bool {
        self.has_http_section
    }

    /// What is written for a key.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Writes another text for a key that is there.
    pub(super) fn replace(&mut self, key: &str, text: String) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = Value::Text(text);
        }
    }

    /// Takes out a key, or all keys of a section and those below it.
    pub(super) fn take(&mut self, name: &str) -> Vec<(String, Entry)> {
        self.entries.extract_if(.., |key, _| key == name || is_below(key, name)).collect()
    }

    /// Where a line is.
    pub(super) fn at(&self, line: usize) -> Position {
        Position { file: self.path.clone(), line }
    }
}

impl fmt::Debug for ConfigFile {
    /// Names the keys only: a value may be secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConfigFile")
            .field("path", &self.path)
            .field("keys", &self.entries.keys())
            .finish_non_exhaustive()
    }
}

struct Collector<'a> {
    text: &'a str,
    path: &'a Path,
    entries: BTreeMap<String, Entry>,
    has_http: bool,
}

impl Collector<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        let mut members: Vec<_> = table.iter().collect();
        members.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in members {
            let name = if section.is_empty() {
                key.get_ref().to_string()
            } else {
                format!("{section}.{}", key.get_ref())
            };
            let line = line_at(self.text, key.span().start);
            // A dot inside a quoted key is no way into a section.
            let meaning =
                if key.get_ref().contains('.') { Meaning::Unknown } else { meaning(&name) };
            match (meaning, value.get_ref()) {
                (Meaning::Unknown, _) => {
                    return Err(ConfigError::UnknownKey {
                        at: self.at(line),
                        key: shown(&name),
                        nearest: nearest(&name),
                    });
                }
                (Meaning::Section, DeValue::Table(table)) => {
                    self.has_http |= name == "transport.http";
                    self.table(&name, table)?;
                }
                (Meaning::Section, other) => {
                    return Err(ConfigError::WrongType {
                        at: self.at(line),
                        key: format!("[{name}]"),
                        value: described(other).to_owned(),
                        expected: "a section".to_owned(),
                    });
                }
                (Meaning::Key(kind), value_here) => {
                    let shown_value = self.shown_value(&name, value.span(), value_here);
                    let Some(value) = shaped(kind, value_here) else {
                        return Err(ConfigError::WrongType {
                            at: self.at(line),
                            key: shown(&name),
                            value: shown_value,
                            expected: kind.describe().to_owned(),
                        });
                    };
                    self.entries.insert(name, Entry { line, shown: shown_value, value });
                }
            }
        }
        Ok(())
    }

    fn shown_value(&self, name: &str, span: std::ops::Range<usize>, value: &DeValue<'_>) -> String {
        match (name, value) {
            ("embedding.endpoint", DeValue::String(url)) => shown_url(url),
            ("embedding.endpoint" | "embedding.api_key" | "embedding.api_key_command", other) => {
                format!("{} that is not shown", described(other))
            }
            (_, DeValue::Table(_)) => "a section".to_owned(),
            _ => {
                let written = self.text.get(span).unwrap_or_default();
                let mut shown: String = written.chars().take(SHOWN_CHARS).collect();
                if shown.len() < written.len() {
                    shown.push_str("...");
                }
                shown.replace(['\n', '\r'], " ")
            }
        }
    }

    fn at(&self, line: usize) -> Position {
        Position { file: self.path.to_owned(), line }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn shaped(kind: Kind, value: &DeValue<'_>) -> Option<Value> {
    match kind {
        Kind::Text => value.as_str().map(|text| Value::Text(text.to_owned())),
        Kind::Flag => value.as_bool().map(Value::Flag),
        Kind::Integer => integer(value).map(Value::Integer),
        Kind::Number => match value {
            DeValue::Float(number) => number.as_str().parse().ok().map(Value::Number),
            #[expect(clippy::cast_precision_loss, reason = "every range ends far below 2^53")]
            other => integer(other).map(|number| Value::Number(number as f64)),
        },
        Kind::Texts => value
            .as_array()?
            .iter()
            .map(|item| item.get_ref().as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .map(Value::Texts),
        Kind::Integers => value
            .as_array()?
            .iter()
            .map(|item| integer(item.get_ref()))
            .collect::<Option<_>>()
            .map(Value::Integers),
        Kind::Size => shaped(Kind::Integer, value).or_else(|| shaped(Kind::Text, value)),
    }
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let number = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::config_file::keys::KEYS;

    fn refusal(text: &str) -> String {
        ConfigFile::parse(text, Path::new("/etc/kb/groove.toml")).unwrap_err().to_string()
    }

    // CFG-02 CLI-225
    #[test]
    fn an_unknown_key_is_refused_at_every_level_with_key_file_line_and_a_guess() {
        let cases = [
            ("modle = \"bge-m3\"", 1, "unknown key modle", "model"),
            ("\n[serach]\nx = 1", 2, "unknown key serach", "[search]"),
            ("[search]\n[search.mmr]\nlamda = 0.5", 3, "[search.mmr].lamda", "[search.mmr].lambda"),
            ("[search]\nfusoin = {}", 2, "[search].fusoin", "[search.fusion]"),
            ("search.fusion.rfr_k = 3.0", 1, "[search.fusion].rfr_k", "[search.fusion].rrf_k"),
            ("parsers.code = { max_chars = 1 }", 1, "[parsers.code].max_chars", "max_chunk_chars"),
        ];
        for (text, line, key, near) in cases {
            let message = refusal(text);
            assert!(message.starts_with(&format!("/etc/kb/groove.toml:{line}: ")), "{message}");
            assert!(message.contains(key) && message.contains(near), "{message}");
        }
        assert!(refusal("\"search.mmr\" = 1").contains("unknown key"));
    }

    // CFG-03
    #[test]
    fn a_value_of_the_wrong_shape_is_refused_with_key_value_and_what_is_accepted() {
        let cases = [
            ("rerank_by_default = \"yes\"", "rerank_by_default is \"yes\"", "true or false"),
            ("[search.fusion]\nrrf_k = \"60\"", "[search.fusion].rrf_k is \"60\"", "a number"),
            ("[watch]\ndebounce_ms = 500.0", "[watch].debounce_ms is 500.0", "a whole number"),
            ("exclude_dirs = \".git\"", "exclude_dirs is \".git\"", "a list of strings"),
            ("exclude_dirs = [1]", "exclude_dirs is [1]", "a list of strings"),
            ("[eval]\nk_values = [1, 2.5]", "[eval].k_values is [1, 2.5]", "list of whole numbers"),
            ("kb_path = 1979-05-27", "kb_path is 1979-05-27", "a string"),
            ("search = 5", "[search] is a whole number", "a section"),
            ("[[search]]\n", "[search] is a list", "a section"),
            ("[model]\n", "model is a section", "a string"),
            ("[watch]\ndebounce_ms = 99999999999999999999", "debounce_ms is 9999", "whole number"),
        ];
        for (text, key_and_value, accepted) in cases {
            let message = refusal(text);
            assert!(message.contains(key_and_value), "{message}");
            assert!(message.contains(accepted), "{message}");
        }
    }

    // CFG-03
    #[test]
    fn every_key_refuses_a_value_of_another_shape() {
        for (key, _) in KEYS {
            let message = refusal(&format!("{key} = 2001-01-01"));
            assert!(message.contains(&shown(key)), "{message}");
        }
    }

    // CFG-01
    #[test]
    fn text_that_is_not_toml_is_refused_with_its_line() {
        let message = refusal("model = \"bge-m3\"\nreranker = \n");
        assert!(message.starts_with("/etc/kb/groove.toml:2: not valid TOML: "), "{message}");
        assert!(refusal("model = 'a'\nmodel = 'b'").contains(":2: "));
    }

    // CFG-01
    #[test]
    fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
        let file = ConfigFile::parse("\u{feff}model = 'bge-m3'\r\n\r\n[watch]\r\n", Path::new("x"));
        assert_eq!(file.unwrap().get("model").unwrap().line, 1);
    }

    // IDX-172
    #[test]
    fn no_message_repeats_a_secret() {
        for text in [
            "[embedding]\napi_key = [\"s3cret\"]",
            "[embedding]\napi_key = \"s3cret",
            "embedding = \"s3cret\"",
            "[embedding]\napi_kye = \"s3cret\"",
        ] {
            let message = refusal(text);
            assert!(!message.contains("s3cret"), "{message}");
        }
        let text = "[embedding]\napi_key = 's3cret'\nendpoint = 'https://u:s3cret@h/v1?k=s3cret'";
        let file = ConfigFile::parse(text, Path::new("groove.toml")).unwrap();
        assert!(!format!("{file:?}").contains("s3cret"));
        assert_eq!(file.get("embedding.endpoint").unwrap().shown, "\"https://h/v1\"");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]a-z._= \"'\n0-9{}]{0,80}") {
            let _outcome = ConfigFile::parse(&text, Path::new("groove.toml"));
        }
    }
}
