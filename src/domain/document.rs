//! Documents: their keys, their metadata and the hash of their bytes.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::domain::windows_name::is_nameable_on_windows;

/// A document's key: its path below the root of the knowledge base, separated
/// by `/`, in the case that it has on disk.
///
/// A key can always be opened again: it is not empty, not absolute, and has no
/// `.`, `..` or empty segment and no U+0000. A backslash is an ordinary
/// character of a Unix file name, but counts as a separator when `..` is
/// looked for.
///
/// ```
/// use grooveseek::domain::document::DocumentPath;
///
/// let path = DocumentPath::new("deep-dive/mcp/intro.md").unwrap();
/// assert_eq!(path.category(), Some("deep-dive"));
/// assert_eq!(path.topic(), Some("mcp"));
/// assert_eq!(path.title().as_deref(), Some("intro"));
/// assert!(DocumentPath::new("../secret.md").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentPath(Arc<str>);

/// A string that cannot be a document's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDocumentPath {
    /// Nothing is left of the name.
    #[error("a document's path must not be empty")]
    Empty,
    /// The path starts at a root instead of at the knowledge base.
    #[error("a document's path must be relative")]
    Absolute,
    /// A segment is empty, `.` or `..`.
    #[error("a document's path must not have an empty, `.` or `..` segment")]
    Segment,
    /// The path holds U+0000.
    #[error("a document's path must not hold U+0000")]
    Nul,
    /// Windows would open something else, or nothing, under the name.
    #[error("a document's path must not hold a name that Windows keeps for itself")]
    Windows,
}

impl DocumentPath {
    /// Tells whether [`is_at_or_below`](Self::is_at_or_below) holds for one of
    /// some keys. Costs what the path is deep, however many keys there are.
    ///
    /// ```
    /// use grooveseek::domain::document::DocumentPath;
    ///
    /// let path = DocumentPath::new("notes/2026/a.md").unwrap();
    /// assert!(path.is_below_any(&["x".to_owned(), "notes".to_owned()].into()));
    /// assert!(!path.is_below_any(&["note".to_owned(), "notes/20".to_owned()].into()));
    /// ```
    pub fn is_below_any(&self, keys: &BTreeSet<String>) -> bool {
        let path = self.as_str();
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        keys.contains("") || keys.contains(path) || above.any(|key| keys.contains(key))
    }

    /// Tells whether the document has this key, or lies in the folder of this
    /// key; everything lies in the root, the empty key.
    ///
    /// ```
    /// use grooveseek::domain::document::DocumentPath;
    ///
    /// let path = DocumentPath::new("notes/a.md").unwrap();
    /// assert!(path.is_at_or_below("notes") && path.is_at_or_below("notes/a.md"));
    /// assert!(path.is_at_or_below("") && !path.is_at_or_below("note"));
    /// ```
    pub fn is_at_or_below(&self, key: &str) -> bool {
        key.is_empty()
            || self
                .as_str()
                .strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Checks a key.
    ///
    /// # Errors
    ///
    /// [`InvalidDocumentPath`] names the rule that the text breaks.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, InvalidDocumentPath> {
        let text: Arc<str> = text.into();
        if text.is_empty() {
            return Err(InvalidDocumentPath::Empty);
        }
        if text.contains('\0') {
            return Err(InvalidDocumentPath::Nul);
        }
        if text.starts_with('/') {
            return Err(InvalidDocumentPath::Absolute);
        }
        if text.split('/').any(|segment| matches!(segment, "" | "." | ".."))
            || text.split(['/', '\\']).any(|segment| segment == "..")
        {
            return Err(InvalidDocumentPath::Segment);
        }
        if cfg!(windows) && !is_nameable_on_windows(&text) {
            return Err(InvalidDocumentPath::Windows);
        }
        Ok(Self(text))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last segment.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// What follows the last dot of the file name; a leading dot starts a
    /// hidden file's name and no extension.
    pub fn extension(&self) -> Option<&str> {
        match self.file_name().rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() && !extension.is_empty() => Some(extension),
            _ => None,
        }
    }

    /// The first segment, if the document does not lie in the root.
    pub fn category(&self) -> Option<&str> {
        self.0.split_once('/').map(|(first, _)| first)
    }

    /// The second segment, if the document lies at least two folders deep.
    pub fn topic(&self) -> Option<&str> {
        let mut segments = self.0.split('/');
        let _category = segments.next()?;
        let topic = segments.next()?;
        segments.next().map(|_| topic)
    }

    /// The title that a file's name gives: the last segment without its
    /// extension, `-` and `_` read as spaces, runs of white space as one.
    pub fn title(&self) -> Option<String> {
        let name = self.file_name();
        let stem = match self.extension() {
            Some(extension) => &name[..name.len() - extension.len() - 1],
            None => name,
        };
        let spaced = stem.replace(['-', '_'], " ");
        let title = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
        (!title.is_empty()).then_some(title)
    }
}

impl fmt::Display for DocumentPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for DocumentPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.as_str())
    }
}

/// The lowercase hexadecimal SHA-256 of a document's bytes, or a placeholder
/// that equals the hash of no file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentHash(String);

impl ContentHash {
    /// Takes over a hash that was computed or stored elsewhere.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Writes 32 bytes of SHA-256 as hexadecimal text.
    pub fn from_sha256(digest: [u8; 32]) -> Self {
        use fmt::Write as _;
        digest
            .iter()
            .fold(String::with_capacity(64), |mut text, byte| {
                // Writing to a string cannot fail.
                let _written = write!(text, "{byte:02x}");
                text
            })
            .into()
    }

    /// The hash as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for ContentHash {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// What a document says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The title, where the author or the file's own properties give one.
    pub title: Option<String>,
    /// The date as its author wrote it; compared as text, never parsed.
    pub date: Option<String>,
    /// The topic that overrides the one of the path.
    pub topic: Option<String>,
    /// Free text for how deep the document goes.
    pub depth: Option<String>,
    /// Words attached to the document.
    pub tags: Vec<String>,
    /// Every other top-level key of the frontmatter, by the shape of its value.
    pub fields: BTreeMap<String, FieldValue>,
}

/// The value of a frontmatter key, kept by shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// One scalar, as the text that it prints as.
    Scalar(String),
    /// A list of scalars.
    List(Vec<String>),
    /// Anything else; its content is not kept.
    Opaque(OpaqueShape),
}

/// Why a frontmatter value has no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpaqueShape {
    /// A mapping.
    Mapping,
    /// A list that holds anything but scalars.
    NestedSequence,
    /// A `!!binary` scalar.
    Binary,
    /// Null, or a key without a value.
    Null,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> DocumentPath {
        DocumentPath::new(text).unwrap()
    }

    // IDX-22 IDX-23
    #[test]
    fn a_key_that_could_not_be_opened_again_is_refused() {
        for text in
            ["", "/a.md", "a//b.md", "a/", "./a.md", "a/../b.md", "a\\..\\b.md", "..", "a\0.md"]
        {
            assert!(DocumentPath::new(text).is_err(), "{text:?}");
        }
        for text in ["a.md", "a\\b.md", "..a/b..md", ".hidden.md", "日本/語.md", "a b.md"] {
            assert!(DocumentPath::new(text).is_ok(), "{text:?}");
        }
    }

    // IDX-74
    #[test]
    fn category_and_topic_are_the_first_two_folders() {
        let facts = |text| {
            let path = path(text);
            (path.category().map(str::to_owned), path.topic().map(str::to_owned))
        };
        assert_eq!(facts("index.md"), (None, None));
        assert_eq!(facts("ai-news/2026-04-16.md"), (Some("ai-news".into()), None));
        let deep = (Some("deep-dive".into()), Some("mcp".into()));
        assert_eq!(facts("deep-dive/mcp/x.md"), deep);
        assert_eq!(facts("deep-dive/mcp/further/x.md"), deep);
    }

    // FMT-GEN-14
    #[test]
    fn a_file_name_reads_as_a_title() {
        let title = |text| path(text).title();
        assert_eq!(title("notes/deep-dive-2026.txt").as_deref(), Some("deep dive 2026"));
        assert_eq!(title("a/__x__-- y.md").as_deref(), Some("x y"));
        assert_eq!(title(".hidden").as_deref(), Some(".hidden"));
        assert_eq!(title("日本語_メモ.md").as_deref(), Some("日本語 メモ"));
        assert_eq!(title("--.md"), None);
    }

    #[test]
    fn a_hash_is_written_as_lowercase_hexadecimal() {
        let mut digest = [0; 32];
        digest[0] = 0xAB;
        let text = format!("ab{}", "0".repeat(62));
        assert_eq!(ContentHash::from_sha256(digest).as_str(), text);
    }
}
