//! Reading the top level of a YAML mapping, each value by its shape.
//!
//! What lies deeper is passed over and never built: the parser hands out events
//! one by one, so that neither its own stack nor memory grows with the depth or
//! with the aliases of what is passed over.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use serde_saphyr::budget::{self, EnforcingPolicy};
use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, ScanError, Span, Tag};

/// Bytes that all scalars may have together, and all that aliases add to them.
const MAX_SCALAR_BYTES: usize = 64 * 1024 * 1024;
/// Mappings and sequences within each other.
const MAX_DEPTH: usize = 2_000;
/// What aliases may stand for, as a multiple of the events of the block.
const MAX_EXPANSIONS_PER_EVENT: usize = 100;

/// A value by its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Text(Text),
    Null,
    Binary,
    /// The scalars of a list; nulls among them have no text.
    List(Vec<Text>),
    NestedSequence,
    Mapping,
}

/// A scalar that has a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// What stands in the block, after quotes and escapes.
    pub(super) written: String,
    /// What it prints as, where that differs.
    printed: Option<String>,
}

impl Text {
    /// What the value prints as: a Boolean in lower case, an integer in
    /// decimal, and everything else as it is written.
    pub(super) fn into_printed(self) -> String {
        self.printed.unwrap_or(self.written)
    }
}

/// A key of a block with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) node: Node,
    /// Where the key stands, as a line of the file.
    pub(super) line: usize,
}

/// What is wrong with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Names the line as well, if it is known.
    pub(super) reason: String,
    /// The line of the file.
    pub(super) line: Option<usize>,
}

/// Reads the top-level keys of a block, which is a mapping or says nothing.
///
/// The key `<<` is left out and not expanded. Lines are those of a file in which
/// the block starts in line 2.
pub(super) fn entries(block: &str) -> Result<BTreeMap<String, Entry>, Fault> {
    let block = block.replace("\r\n", "\n").replace('\r', "\n");
    if block.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    let events = count_within_budget(&block)?;
    let mut reader = Reader::new(events.saturating_mul(MAX_EXPANSIONS_PER_EVENT));
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    for event in Parser::new_from_str_with_options(&block, options) {
        let (event, span) = event.map_err(|error| describe(&error))?;
        reader.line = line_of(span);
        reader.take(event).map_err(|reason| at_line(&reason, span))?;
    }
    Ok(reader.entries)
}

/// Scans the block, which bounds what a second scan can cost.
fn count_within_budget(block: &str) -> Result<usize, Fault> {
    let mut limits = serde_saphyr::Budget::default();
    limits.max_events = 1_000_000;
    limits.max_nodes = 250_000;
    limits.max_anchors = 50_000;
    limits.max_aliases = 50_000;
    limits.enforce_alias_anchor_ratio = true;
    limits.alias_anchor_min_aliases = 100;
    limits.alias_anchor_ratio_multiplier = 10;
    limits.max_depth = MAX_DEPTH;
    limits.flow_nesting_limit = MAX_DEPTH;
    limits.max_total_scalar_bytes = MAX_SCALAR_BYTES;
    limits.max_documents = 1_024;
    // Comments and merge keys are passed over, whatever their number.
    limits.max_total_comment_bytes = usize::MAX;
    limits.max_buffered_comment_events = usize::MAX;
    limits.max_merge_keys = usize::MAX;
    let report = budget::check_yaml_budget(block, limits, EnforcingPolicy::AllContent)
        .map_err(|error| describe(&error))?;
    match report.breached {
        Some(breach) => {
            Err(Fault { reason: format!("the block exceeds a limit: {breach:?}"), line: None })
        }
        None => Ok(report.events),
    }
}

fn describe(error: &ScanError) -> Fault {
    let (line, column) = (error.marker().line() + 1, error.marker().col() + 1);
    let reason = format!("{} at line {line} column {column}", error.info());
    Fault { reason, line: Some(line) }
}

fn at_line(reason: &str, span: Span) -> Fault {
    let line = line_of(span);
    Fault { reason: format!("{reason} at line {line}"), line: Some(line) }
}

/// The line of the file in which something starts.
fn line_of(span: Span) -> usize {
    span.start.line() + 1
}

/// Takes events in order and keeps the values of the outermost mapping.
struct Reader {
    entries: BTreeMap<String, Entry>,
    state: State,
    /// Where the event stands that is being taken.
    line: usize,
    /// The collections that are open inside the outermost mapping.
    frames: Vec<Frame>,
    anchors: BTreeMap<usize, Node>,
    expansions_left: usize,
    bytes_left: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Before the outermost mapping.
    Start,
    /// Before a key of it.
    Key,
    /// Before the value of this key, which stands in this line; none if the
    /// value is not kept.
    Value(Option<(String, usize)>),
    /// After it.
    End,
}

/// A collection that is still open.
struct Frame {
    anchor: usize,
    node: Node,
}

impl Reader {
    fn new(expansions_left: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            state: State::Start,
            line: 0,
            frames: Vec::new(),
            anchors: BTreeMap::new(),
            expansions_left,
            bytes_left: MAX_SCALAR_BYTES,
        }
    }

    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) if self.state == State::End => {
                Err("the block holds a second YAML document".to_owned())
            }
            Event::Scalar(value, style, anchor, tag) => {
                if self.expects_key() && tag.is_none() && is_merge_key(&value, style) {
                    self.state = State::Value(None);
                    return Ok(());
                }
                let plain = style == ScalarStyle::Plain;
                self.finish(scalar(value.into_owned(), plain, tag.as_deref()), anchor)
            }
            Event::Alias(anchor) => self.take_alias(anchor),
            Event::MappingStart(_, anchor, _) => self.open(Node::Mapping, anchor),
            Event::SequenceStart(_, anchor, _) => {
                // A list is kept if it is a value, or may become one by an alias.
                let kept = self.frames.is_empty() || anchor != 0;
                let list = if kept { Node::List(Vec::new()) } else { Node::NestedSequence };
                self.open(list, anchor)
            }
            Event::MappingEnd | Event::SequenceEnd => {
                if let Some(frame) = self.frames.pop() {
                    return self.finish(frame.node, frame.anchor);
                }
                self.state = State::End;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        self.frames.is_empty() && self.state == State::Key
    }

    fn open(&mut self, node: Node, anchor: usize) -> Result<(), String> {
        match self.state {
            State::Start if node == Node::Mapping => {
                self.state = State::Key;
                self.anchors.insert(anchor, Node::Mapping);
                Ok(())
            }
            State::Start => Err("the block is not a mapping of keys to values".to_owned()),
            _ if self.expects_key() => Err("a key is not a scalar".to_owned()),
            _ => {
                self.frames.push(Frame { anchor, node });
                Ok(())
            }
        }
    }

    fn take_alias(&mut self, anchor: usize) -> Result<(), String> {
        let Some(node) = self.anchors.get(&anchor) else {
            // A collection that contains itself.
            return self.finish(Node::NestedSequence, 0);
        };
        let kept = match self.frames.last() {
            None => true,
            Some(frame) => matches!(frame.node, Node::List(_)),
        };
        if !kept {
            return Ok(());
        }
        let texts = match node {
            Node::Text(text) => std::slice::from_ref(text),
            Node::List(texts) => texts.as_slice(),
            _ => &[],
        };
        let bytes = texts.iter().map(|text| text.written.len() + size_of::<Text>()).sum();
        let left =
            (self.expansions_left.checked_sub(texts.len() + 1), self.bytes_left.checked_sub(bytes));
        let (Some(expansions_left), Some(bytes_left)) = left else {
            return Err("the block exceeds a limit: its aliases stand for too much".to_owned());
        };
        let node = node.clone();
        (self.expansions_left, self.bytes_left) = (expansions_left, bytes_left);
        self.finish(node, 0)
    }

    /// Hands a whole node to what it stands in.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), String> {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        if let Some(frame) = self.frames.last_mut() {
            if let Node::List(texts) = &mut frame.node {
                match node {
                    Node::Text(text) => texts.push(text),
                    Node::Null => {}
                    _ => frame.node = Node::NestedSequence,
                }
            }
            return Ok(());
        }
        match std::mem::replace(&mut self.state, State::Key) {
            State::Key => {
                self.state = State::Value(Some((key(node)?, self.line)));
                Ok(())
            }
            State::Value(Some((key, line))) => match self.entries.entry(key) {
                Slot::Vacant(slot) => {
                    slot.insert(Entry { node, line });
                    Ok(())
                }
                Slot::Occupied(entry) => Err(format!("the key {:?} stands twice", entry.key())),
            },
            State::Value(None) => Ok(()),
            State::Start | State::End => {
                Err("the block is not a mapping of keys to values".to_owned())
            }
        }
    }
}

fn key(node: Node) -> Result<String, String> {
    match node {
        Node::Text(text) => Ok(text.written),
        Node::Null => Ok("null".to_owned()),
        _ => Err("a key is not a scalar".to_owned()),
    }
}

fn is_merge_key(value: &str, style: ScalarStyle) -> bool {
    value == "<<" && style == ScalarStyle::Plain
}

/// A scalar by its tag, or by its look if it has none that YAML knows.
fn scalar(written: String, plain: bool, tag: Option<&Tag>) -> Node {
    let name = tag.and_then(|tag| tag.suffix_in_namespace("tag:yaml.org,2002:"));
    let is_string = tag.is_some_and(|tag| tag.original() == "!");
    let printed = match name.as_deref() {
        Some("binary") => return Node::Binary,
        Some("null") => return Node::Null,
        Some("str") => None,
        Some("bool") => boolean(&written),
        Some("int") => integer(&written),
        _ if is_string || !plain => None,
        _ if is_null(&written) => return Node::Null,
        _ => boolean(&written).or_else(|| integer(&written)),
    };
    Node::Text(Text { written, printed })
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn boolean(text: &str) -> Option<String> {
    match text {
        "True" | "TRUE" => Some("true".to_owned()),
        "False" | "FALSE" => Some("false".to_owned()),
        _ => None,
    }
}

/// The decimal digits of a hexadecimal or octal number of at most 128 bits.
fn integer(text: &str) -> Option<String> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text.strip_prefix("0o")?, 8),
    };
    // A sign is none of the digits.
    let number = u128::from_str_radix(digits, radix).ok()?;
    (!digits.starts_with('+')).then(|| number.to_string())
}
