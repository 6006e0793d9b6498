//! Resources: the documents of an index under addresses that a client can open.

use std::collections::BTreeMap;

use crate::domain::document::DocumentPath;

const TOPIC: &str = "kb://topic/";
const DOCUMENT: &str = "kb://doc/";

/// What stands for the group of the documents at the root, which has no name.
const ROOT: &str = "(root)";

/// The address of any document, as a URI template of RFC 6570.
pub const DOCUMENT_TEMPLATE: &str = "kb://doc/{path}";

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceName {
    /// The group of documents with this prefix; the empty one holds those at
    /// the root.
    Group(String),
    /// One document.
    Document(DocumentPath),
}

impl ResourceName {
    /// Reads an address. None if it is not one of ours, or names a document
    /// that no index could hold: safety is judged on the decoded name.
    ///
    /// ```
    /// use grooveseek::domain::resource::ResourceName;
    ///
    /// let name = ResourceName::from_uri("kb://topic/deep-dive/mcp/");
    /// assert_eq!(name, Some(ResourceName::Group("deep-dive/mcp".into())));
    /// assert_eq!(ResourceName::from_uri("kb://doc/%2e%2e/x.md"), None);
    /// ```
    pub fn from_uri(uri: &str) -> Option<Self> {
        if let Some(encoded) = uri.strip_prefix(TOPIC) {
            let prefix = decoded(encoded)?;
            return Some(Self::Group(prefix.trim_end_matches('/').to_owned()));
        }
        let path = decoded(uri.strip_prefix(DOCUMENT)?)?;
        DocumentPath::new(path).ok().map(Self::Document)
    }

    /// The address; [`from_uri`](Self::from_uri) reads it back.
    pub fn uri(&self) -> String {
        match self {
            Self::Group(prefix) => format!("{TOPIC}{}", encoded(prefix)),
            Self::Document(path) => document_uri(path),
        }
    }
}

/// The address of a document.
///
/// ```
/// use grooveseek::domain::document::DocumentPath;
/// use grooveseek::domain::resource::document_uri;
///
/// let path = DocumentPath::new("a b/潮.md").unwrap();
/// assert_eq!(document_uri(&path), "kb://doc/a%20b/%E6%BD%AE.md");
/// ```
pub fn document_uri(path: &DocumentPath) -> String {
    format!("{DOCUMENT}{}", encoded(path.as_str()))
}

fn encoded(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut uri = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            uri.push('%');
            uri.extend(digits.map(char::from));
        }
    }
    uri
}

/// Nothing if an escape is malformed or the bytes are not UTF-8.
fn decoded(uri: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit =
            || char::from(rest.next()?).to_digit(16).and_then(|it| u8::try_from(it).ok());
        bytes.push((digit()? << 4) | digit()?);
    }
    String::from_utf8(bytes).ok()
}

/// The prefix of the group that a document belongs to: none of its folders, the
/// first, or the first two. Frontmatter plays no part.
///
/// ```
/// use grooveseek::domain::document::DocumentPath;
/// use grooveseek::domain::resource::group_of;
///
/// let path = |text: &str| DocumentPath::new(text).unwrap();
/// assert_eq!(group_of(&path("a.md")), "");
/// assert_eq!(group_of(&path("a/b.md")), "a");
/// assert_eq!(group_of(&path("a/b/c/d.md")), "a/b");
/// ```
pub fn group_of(path: &DocumentPath) -> &str {
    let path = path.as_str();
    let mut slashes = path.match_indices('/').map(|(at, _)| at);
    let first = slashes.next();
    let end = slashes.next().or(first);
    &path[..end.unwrap_or(0)]
}

/// A document that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceEntry {
    /// Its key.
    pub path: DocumentPath,
    /// Bytes of its file when that was measured last.
    pub size_bytes: Option<u64>,
    /// When it was last indexed, as RFC 3339 has it.
    pub indexed_at: String,
}

/// Documents with the same prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroup {
    /// Up to two folders; empty for the root.
    pub prefix: String,
    /// At least one, in ascending order of path.
    pub documents: Vec<ResourceEntry>,
}

impl ResourceGroup {
    /// The address of the group.
    pub fn uri(&self) -> String {
        format!("{TOPIC}{}", encoded(&self.prefix))
    }

    /// What the group is called.
    pub fn name(&self) -> &str {
        if self.prefix.is_empty() { ROOT } else { &self.prefix }
    }

    /// How many documents there are, in words.
    pub fn description(&self) -> String {
        match self.documents.len() {
            1 => "1 document".to_owned(),
            count => format!("{count} documents"),
        }
    }

    /// When one of the documents was last indexed.
    pub fn last_indexed_at(&self) -> Option<&str> {
        self.documents.iter().map(|document| document.indexed_at.as_str()).max()
    }

    /// The group as Markdown: its name, how many documents there are, and each
    /// with its address.
    pub fn body(&self) -> String {
        let mut body = format!("# {}\n\n{}\n\n", on_a_line(self.name()), self.description());
        for ResourceEntry { path, .. } in &self.documents {
            body.extend(["- ", &on_a_line(path.as_str()), " <", &document_uri(path), ">\n"]);
        }
        body
    }
}

/// A name as part of one line, whatever it holds.
fn on_a_line(name: &str) -> String {
    name.replace(char::is_control, "\u{fffd}")
}

/// Groups documents, in ascending order of prefix.
pub fn groups(entries: impl IntoIterator<Item = ResourceEntry>) -> Vec<ResourceGroup> {
    let mut groups: BTreeMap<String, Vec<ResourceEntry>> = BTreeMap::new();
    for entry in entries {
        groups.entry(group_of(&entry.path).to_owned()).or_default().push(entry);
    }
    groups
        .into_iter()
        .map(|(prefix, mut documents)| {
            documents.sort_by(|left, right| left.path.cmp(&right.path));
            ResourceGroup { prefix, documents }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(path: &str) -> ResourceEntry {
        let indexed_at = format!("2026-01-01T00:00:0{}Z", path.len() % 10);
        ResourceEntry { path: DocumentPath::new(path).unwrap(), size_bytes: None, indexed_at }
    }

    // MCP-72 MCP-76
    #[test]
    fn an_address_that_is_not_ours_names_nothing() {
        for uri in [
            "",
            "kb://",
            "kb://doc",
            "kb://doc/",
            "kb://topic",
            "KB://doc/a.md",
            "file:///a.md",
            "kb://doc/%",
            "kb://doc/%4",
            "kb://doc/%zz",
            "kb://doc/%FF.md",
            "kb://doc//a.md",
            "kb://doc/../a.md",
            "kb://doc/%2E%2E/a.md",
            "kb://doc/a%2F..%2Fb.md",
            "kb://doc/a.md/",
            "kb://doc/a%00.md",
            "kb://doc/%2Fetc/passwd",
            "kb://docs/a.md",
        ] {
            assert_eq!(ResourceName::from_uri(uri), None, "{uri}");
        }
    }

    // MCP-76
    #[test]
    fn either_case_of_hex_is_read_and_the_upper_one_written() {
        let document = ResourceName::from_uri("kb://doc/a%e3%81%82%20(1).md").unwrap();
        assert_eq!(document.uri(), "kb://doc/a%E3%81%82%20%281%29.md");
        for (uri, prefix) in
            [("kb://topic/", ""), ("kb://topic/a/b", "a/b"), ("kb://topic/a%2fb//", "a/b")]
        {
            assert_eq!(ResourceName::from_uri(uri), Some(ResourceName::Group(prefix.into())));
        }
    }

    // MCP-73 MCP-77
    #[test]
    fn documents_are_grouped_by_their_first_two_folders() {
        let paths = ["b/x/y/z.md", "a.md", "b/x/c.md", "b/z.md", "b/x/a b.md"];
        let groups = groups(paths.map(entry));
        let facts: Vec<_> =
            groups.iter().map(|group| (group.name(), group.description(), group.uri())).collect();
        let fact = |name, count: &str, uri: &str| (name, count.to_owned(), uri.to_owned());
        assert_eq!(
            facts,
            [
                fact("(root)", "1 document", "kb://topic/"),
                fact("b", "1 document", "kb://topic/b"),
                fact("b/x", "3 documents", "kb://topic/b/x"),
            ]
        );
        assert_eq!(
            groups[2].body(),
            "# b/x\n\n3 documents\n\n- b/x/a b.md <kb://doc/b/x/a%20b.md>\n\
             - b/x/c.md <kb://doc/b/x/c.md>\n- b/x/y/z.md <kb://doc/b/x/y/z.md>\n"
        );
        assert_eq!(groups[2].last_indexed_at(), Some("2026-01-01T00:00:08Z"));
    }

    // MCP-77
    #[test]
    fn a_name_cannot_add_lines_to_the_body_of_a_group() {
        let group = groups([entry("a\n# b.md")]);
        assert_eq!(group[0].body().lines().count(), 5, "{}", group[0].body());
    }

    proptest! {
        // MCP-76
        #[test]
        fn an_address_leads_back_to_its_document(text in "[^/\0\\\\]{1,8}(/[^/\0\\\\]{1,8}){0,3}") {
            if let Ok(path) = DocumentPath::new(text) {
                let uri = document_uri(&path);
                prop_assert!(uri.is_ascii() && !uri.contains(' '));
                prop_assert_eq!(ResourceName::from_uri(&uri), Some(ResourceName::Document(path)));
            }
        }
    }
}
