//! Frontmatter: the YAML block at the head of a Markdown document.

mod fences;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::document::{FieldValue, Metadata, OpaqueShape};
use crate::domain::frontmatter::yaml::{Fault, Node};

/// The only tag of a document whose frontmatter cannot be read.
pub const UNPARSED_TAG: &str = "frontmatter:unparsed";

/// A Markdown text taken apart at its frontmatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontmatter<'a> {
    /// What the frontmatter says; if it cannot be read, nothing but
    /// [`UNPARSED_TAG`].
    pub metadata: Metadata,
    /// Why the frontmatter cannot be read.
    pub error: Option<String>,
    /// The text after the frontmatter, without leading line breaks.
    pub body: &'a str,
}

/// Takes a text apart and reads its frontmatter.
///
/// The block stands between two fences, lines of `---` alone, the first of them
/// at the start of the text or right after a byte-order mark. Without both
/// fences the whole text is body. A block that is blank or holds only comments
/// says nothing.
///
/// The keys `title`, `topic`, `date` and `depth` take a scalar or null, and
/// `tags` takes a list of scalars or null. Every other key is kept by the shape
/// of its value. One key of the wrong shape, a repeated key, or whatever is no
/// YAML mapping makes the block unreadable, which `error` tells.
///
/// Memory and time are bounded however the block is built: it may have up to
/// 250,000 nodes and 64 MiB of text, nested 2,000 deep, and what its aliases
/// stand for counts as well.
///
/// ```
/// use grooveseek::domain::document::FieldValue;
/// use grooveseek::domain::frontmatter;
///
/// let note = frontmatter::read("---\ntitle: Ports\ntags: [net]\nowner: ops\n---\n# Ports\n");
/// assert_eq!(note.metadata.title.as_deref(), Some("Ports"));
/// assert_eq!(note.metadata.tags, ["net"]);
/// assert_eq!(note.metadata.fields["owner"], FieldValue::Scalar("ops".into()));
/// assert_eq!(note.body, "# Ports\n");
///
/// let broken = frontmatter::read("---\ntitle: [Ports]\n---\n# Ports\n");
/// assert_eq!(broken.metadata.tags, [frontmatter::UNPARSED_TAG]);
/// assert!(broken.error.is_some());
/// ```
pub fn read(text: &str) -> Frontmatter<'_> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let split = fences::split(text);
    let body = split.body;
    let entries = split.block.map_or_else(|| Ok(BTreeMap::new()), yaml::entries);
    match entries.and_then(metadata) {
        Ok(metadata) => Frontmatter { metadata, error: None, body },
        Err(Fault { reason, .. }) => {
            let tags = vec![UNPARSED_TAG.to_owned()];
            let metadata = Metadata { tags, ..Metadata::default() };
            Frontmatter { metadata, error: Some(reason), body }
        }
    }
}

/// The values of the keys that a schema declares.
///
/// - `declared`: the names of the keys that are kept.
/// - Returns each of them that the document has, with the text of its scalar or
///   of each element of its list. A value without a text is left out.
///
/// ```
/// use std::collections::BTreeSet;
///
/// use grooveseek::domain::frontmatter::{declared_fields, read};
///
/// let note = read("---\nowner: ops\nteams: [a, b]\nlinks: {x: y}\n---\n");
/// let declared = BTreeSet::from(["teams".to_owned(), "links".to_owned()]);
/// let fields = declared_fields(&note.metadata, &declared);
/// assert_eq!(fields.len(), 1);
/// assert_eq!(fields["teams"], ["a", "b"]);
/// ```
pub fn declared_fields(
    metadata: &Metadata,
    declared: &BTreeSet<String>,
) -> BTreeMap<String, Vec<String>> {
    let values = |key: &String| match metadata.fields.get(key)? {
        FieldValue::Scalar(text) => Some(vec![text.clone()]),
        FieldValue::List(texts) if !texts.is_empty() => Some(texts.clone()),
        FieldValue::List(_) | FieldValue::Opaque(_) => None,
    };
    declared.iter().filter_map(|key| Some((key.clone(), values(key)?))).collect()
}

/// A top-level key of a document's frontmatter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its value by shape, with the text that it prints as.
    pub value: FieldValue,
    /// The line of the file in which the key stands, counted from 1.
    pub line: usize,
}

/// Frontmatter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unreadable {
    /// Why, as [`Frontmatter::error`] has it.
    pub reason: String,
    /// The line of the file, counted from 1; where none can be told, the first.
    pub line: usize,
}

/// Every top-level key of a text's frontmatter, those with a place of their own
/// in the metadata among them. The key `<<` is none.
///
/// # Errors
///
/// [`Unreadable`] if and only if [`read`] has an error.
///
/// ```
/// use grooveseek::domain::document::FieldValue;
/// use grooveseek::domain::frontmatter::fields;
///
/// let fields = fields("---\ntitle: Ports\nopen: True\n---\n").unwrap();
/// assert_eq!(fields["open"].value, FieldValue::Scalar("true".into()));
/// assert_eq!(fields["open"].line, 3);
/// ```
pub fn fields(text: &str) -> Result<BTreeMap<String, Field>, Unreadable> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let Some(block) = fences::split(text).block else { return Ok(BTreeMap::new()) };
    let unreadable = |Fault { reason, line }: Fault| Unreadable { reason, line: line.unwrap_or(1) };
    let entries = yaml::entries(block).map_err(unreadable)?;
    metadata(entries.clone()).map_err(unreadable)?;
    let of_entry = |entry: yaml::Entry| Field { value: field(entry.node), line: entry.line };
    Ok(entries.into_iter().map(|(key, entry)| (key, of_entry(entry))).collect())
}

fn metadata(entries: BTreeMap<String, yaml::Entry>) -> Result<Metadata, Fault> {
    let mut metadata = Metadata::default();
    for (key, yaml::Entry { node, line }) in entries {
        let fault = |reason| Fault { reason, line: Some(line) };
        match key.as_str() {
            "title" => metadata.title = written(&key, node).map_err(fault)?,
            "topic" => metadata.topic = written(&key, node).map_err(fault)?,
            "date" => metadata.date = printed(&key, node).map_err(fault)?,
            "depth" => metadata.depth = printed(&key, node).map_err(fault)?,
            "tags" => metadata.tags = tags(node).map_err(fault)?,
            _ => {
                metadata.fields.insert(key, field(node));
            }
        }
    }
    Ok(metadata)
}

fn written(key: &str, node: Node) -> Result<Option<String>, String> {
    match node {
        Node::Text(text) => Ok(Some(text.written)),
        Node::Null => Ok(None),
        _ => Err(format!("`{key}` is not a single value")),
    }
}

fn printed(key: &str, node: Node) -> Result<Option<String>, String> {
    match node {
        Node::Text(text) => Ok(Some(text.into_printed())),
        Node::Null => Ok(None),
        _ => Err(format!("`{key}` is not a single value")),
    }
}

fn tags(node: Node) -> Result<Vec<String>, String> {
    match node {
        Node::List(texts) => Ok(texts.into_iter().map(|text| text.written).collect()),
        Node::Null => Ok(Vec::new()),
        _ => Err("`tags` is not a list of single values".to_owned()),
    }
}

fn field(node: Node) -> FieldValue {
    match node {
        Node::Text(text) => FieldValue::Scalar(text.into_printed()),
        Node::List(texts) => {
            FieldValue::List(texts.into_iter().map(yaml::Text::into_printed).collect())
        }
        Node::NestedSequence => FieldValue::Opaque(OpaqueShape::NestedSequence),
        Node::Mapping => FieldValue::Opaque(OpaqueShape::Mapping),
        Node::Binary => FieldValue::Opaque(OpaqueShape::Binary),
        Node::Null => FieldValue::Opaque(OpaqueShape::Null),
    }
}

#[cfg(test)]
mod tests;
