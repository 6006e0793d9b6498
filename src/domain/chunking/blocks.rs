//! Blocks of Markdown in which no line is a heading.

use crate::domain::chunking::html;

/// Columns from which a line is code or continues a paragraph.
const CODE_COLUMNS: usize = 4;
/// List items within each other that are followed; deeper ones are text.
const MAX_ITEMS: usize = 64;

/// Follows a document line by line and knows what each line lies in.
///
/// Fenced code, HTML blocks and `$$` blocks run to their own end, to the end of
/// the list item that they stand in, or to the end of the document. Where a
/// block starts and ends is as `CommonMark` says, with these differences:
///
/// - a `$$` block, which `CommonMark` does not know, needs its closing line;
/// - what stands in a block quote is not looked at, since none of its lines
///   starts with a number sign;
/// - a list item ends with the first line that is indented less, also where
///   that line continues a paragraph.
///
/// # Source
///
/// `CommonMark` 0.31.2, sections 4.4 to 4.6, 5.1 and 5.2.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The columns at which the contents of the open list items start.
    items: Vec<usize>,
    open: Option<Block>,
    /// Whether the last line was one of a paragraph.
    in_paragraph: bool,
    /// Whether the last line was the marker of a list item and nothing else.
    in_empty_item: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Fence { mark: u8, length: usize },
    Html(html::End),
    Math,
}

impl Blocks {
    /// Takes the next line and tells whether it may be a heading, that is,
    /// whether it is indented less than four columns and in no block.
    ///
    /// - `line`: without its line break.
    /// - `rest`: the lines after it.
    pub(super) fn may_be_heading(&mut self, line: &str, rest: &str) -> bool {
        let (indent, text) = split_indent(line, 0);
        let in_empty_item = std::mem::take(&mut self.in_empty_item);
        if text.is_empty() {
            if self.open == Some(Block::Html(html::End::BlankLine)) {
                self.open = None;
            }
            if in_empty_item {
                self.items.pop();
            }
            self.in_paragraph = false;
            return false;
        }
        let item_ended = self.leave_items(indent);
        if let Some(block) = self.open {
            if !item_ended {
                if block.ends_with(text, indent - self.item_column()) {
                    self.open = None;
                }
                return false;
            }
            self.open = None;
        }
        self.read_line(indent, text, rest, item_ended);
        indent < CODE_COLUMNS && self.open.is_none()
    }

    fn item_column(&self) -> usize {
        self.items.last().copied().unwrap_or(0)
    }

    /// Leaves the list items whose contents start after a column.
    fn leave_items(&mut self, indent: usize) -> bool {
        let before = self.items.len();
        while self.items.last().is_some_and(|&column| column > indent) {
            self.items.pop();
        }
        self.items.len() < before
    }

    /// Reads a line that is in no block: enters list items, opens blocks.
    fn read_line(&mut self, mut indent: usize, mut text: &str, rest: &str, item_ended: bool) {
        let continues = std::mem::take(&mut self.in_paragraph);
        let mut may_interrupt = !continues || item_ended;
        if !may_interrupt && is_underline(text) {
            return;
        }
        let outer_items = self.items.len();
        loop {
            if indent - self.item_column() >= CODE_COLUMNS {
                self.in_paragraph = continues && self.items.len() == outer_items;
                return;
            }
            if is_thematic_break(text) {
                return;
            }
            let Some(item) = Item::start(text, indent, may_interrupt) else { break };
            if self.items.len() == MAX_ITEMS {
                break;
            }
            self.items.push(item.column);
            (indent, text) = (item.indent, item.text);
            if text.is_empty() {
                self.in_empty_item = true;
                return;
            }
            may_interrupt = true;
        }
        let in_paragraph = continues && self.items.len() == outer_items;
        if let Some(end) = html::block_start(text, in_paragraph) {
            self.open = (!end.is_met_by(text)).then_some(Block::Html(end));
            return;
        }
        self.open = fence_start(text);
        if self.open.is_none() && starts_math(text) && self.math_ends_in(rest) {
            self.open = Some(Block::Math);
        }
        // Whether a quote ends in a paragraph is not known, so it may.
        let is_text = !is_atx_heading(text) && !text.strip_prefix('>').is_some_and(is_blank);
        self.in_paragraph = self.open.is_none() && is_text;
    }

    /// Whether a `$$` block is closed before its list item ends. One that would
    /// run over a fence is no block but a stray pair of dollar signs.
    fn math_ends_in(&self, rest: &str) -> bool {
        for line in rest.split('\n') {
            let (indent, text) = split_indent(line, 0);
            if text.is_empty() {
                continue;
            }
            if indent < self.item_column() || fence_start(text).is_some() {
                return false;
            }
            if ends_math(text) {
                return true;
            }
        }
        false
    }
}

impl Block {
    /// Whether the block ends with this line.
    fn ends_with(self, text: &str, indent: usize) -> bool {
        match self {
            Self::Fence { mark, length } => {
                let run = run_length(text, mark);
                indent < CODE_COLUMNS && run >= length && is_blank(&text[run..])
            }
            Self::Html(end) => end.is_met_by(text),
            Self::Math => ends_math(text),
        }
    }
}

/// The start of a list item.
struct Item<'a> {
    /// The column at which its contents start.
    column: usize,
    /// The column and the text of what stands on the line of its marker.
    indent: usize,
    text: &'a str,
}

impl<'a> Item<'a> {
    /// - `may_interrupt`: false inside a paragraph, which only an item with
    ///   content can end, and only one numbered 1 if it is numbered.
    fn start(text: &'a str, indent: usize, may_interrupt: bool) -> Option<Self> {
        let marker = marker_length(text, may_interrupt)?;
        let marker_end = indent + marker;
        let (content, text) = split_indent(&text[marker..], marker_end);
        if text.is_empty() {
            return may_interrupt.then_some(Self { column: marker_end + 1, indent: content, text });
        }
        match content - marker_end {
            0 => None,
            1..=CODE_COLUMNS => Some(Self { column: content, indent: content, text }),
            // Code, one column into the item.
            _ => Some(Self { column: marker_end + 1, indent: content, text }),
        }
    }
}

/// The bytes of a list marker at the start of a text.
fn marker_length(text: &str, any_number: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    match bytes.first()? {
        b'-' | b'+' | b'*' => Some(1),
        b'0'..=b'9' => {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let numbered = digits <= 9 && (any_number || &text[..digits] == "1");
            let ended = matches!(bytes.get(digits), Some(b'.' | b')'));
            (numbered && ended).then_some(digits + 1)
        }
        _ => None,
    }
}

/// Splits the blanks off that a text starts with; gives the column of what
/// follows, with tab stops every four columns.
fn split_indent(text: &str, start_column: usize) -> (usize, &str) {
    let mut column = start_column;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b' ' => column += 1,
            b'\t' => column += CODE_COLUMNS - column % CODE_COLUMNS,
            _ => return (column, &text[at..]),
        }
    }
    (column, "")
}

fn run_length(text: &str, mark: u8) -> usize {
    text.bytes().take_while(|&byte| byte == mark).count()
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn fence_start(text: &str) -> Option<Block> {
    let mark = *text.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = run_length(text, mark);
    let info = &text[length..];
    (length >= 3 && (mark == b'~' || !info.contains('`'))).then_some(Block::Fence { mark, length })
}

fn is_thematic_break(text: &str) -> bool {
    let Some(mark) = text.bytes().next().filter(|mark| matches!(mark, b'-' | b'_' | b'*')) else {
        return false;
    };
    let mut marks = 0;
    for byte in text.bytes() {
        if byte == mark {
            marks += 1;
        } else if !matches!(byte, b' ' | b'\t') {
            return false;
        }
    }
    marks >= 3
}

/// Whether the line makes a heading of the paragraph before it.
fn is_underline(text: &str) -> bool {
    let text = text.trim_end_matches([' ', '\t']);
    ["=", "-"].iter().any(|mark| text.trim_start_matches(mark).is_empty())
}

fn is_atx_heading(text: &str) -> bool {
    let level = run_length(text, b'#');
    (1..=6).contains(&level) && (text.len() == level || text[level..].starts_with([' ', '\t']))
}

fn starts_math(text: &str) -> bool {
    text.strip_prefix("$$").is_some_and(|rest| !rest.starts_with('$') && !rest.contains("$$"))
}

fn ends_math(text: &str) -> bool {
    text.starts_with("$$") || text.trim_end().ends_with("$$")
}
