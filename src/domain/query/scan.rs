//! Cutting what was typed into quoted and plain parts, wanted or excluded.

use std::borrow::Cow;
use std::ops::Range;

use super::terms::is_separator;

/// A part of what was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    /// Where it lies in the raw query, with its hyphen and its quotes.
    pub(super) range: Range<usize>,
    /// Whether a hyphen leads it.
    pub(super) excluded: bool,
    /// What it says.
    pub(super) text: SegmentText<'a>,
}

/// What a segment says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentText<'a> {
    /// To be taken word for word; doubled quotes are single ones again.
    Quoted(Cow<'a, str>),
    /// To be split at separators.
    Plain(&'a str),
}

/// Cuts a query in one pass from left to right.
///
/// A quote that never closes is an ordinary character: what follows the last
/// segment before it becomes one plain segment, in which a hyphen excludes
/// nothing any more.
///
/// - Returns segments in order, without overlap, that cover the query.
pub(super) fn scan(raw: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut plain_start = 0;
    let mut at = 0;
    let mut previous = None;
    while let Some(character) = raw[at..].chars().next() {
        let found = match character {
            '"' => {
                let Some(segment) = quoted(raw, at) else { break };
                Some(segment)
            }
            '-' if starts_exclusion(previous, &raw[at + 1..]) => {
                let Some(segment) = exclusion(raw, at) else { break };
                Some(segment)
            }
            _ => None,
        };
        if let Some(segment) = found {
            push_plain(&mut segments, raw, plain_start..at);
            at = segment.range.end;
            plain_start = at;
            segments.push(segment);
            previous = raw[..at].chars().next_back();
        } else {
            at += character.len_utf8();
            previous = Some(character);
        }
    }
    push_plain(&mut segments, raw, plain_start..raw.len());
    segments
}

/// Whether a hyphen between `previous` and `rest` leads an exclusion: it stands
/// at the head of a group, and something that can be excluded follows.
fn starts_exclusion(previous: Option<char>, rest: &str) -> bool {
    previous.is_none_or(char::is_whitespace)
        && rest
            .chars()
            .next()
            .is_some_and(|next| next == '"' || (next != '-' && !is_separator(next)))
}

/// Reads the exclusion that the hyphen at `start` leads; none if it opens a
/// quote that never closes.
fn exclusion(raw: &str, start: usize) -> Option<Segment<'_>> {
    let content = start + 1;
    if raw[content..].starts_with('"') {
        let region = quoted(raw, content)?;
        return Some(Segment { range: start..region.range.end, excluded: true, ..region });
    }
    let end = raw[content..].find(char::is_whitespace).map_or(raw.len(), |n| content + n);
    let text = SegmentText::Plain(&raw[content..end]);
    Some(Segment { range: start..end, excluded: true, text })
}

/// Reads the region that the quote at `start` opens; none if it never closes.
fn quoted(raw: &str, start: usize) -> Option<Segment<'_>> {
    let inside = start + 1;
    let mut at = inside;
    let mut doubled = false;
    loop {
        let quote = at + raw[at..].find('"')?;
        if raw[quote + 1..].starts_with('"') {
            doubled = true;
            at = quote + 2;
            continue;
        }
        let text = &raw[inside..quote];
        let text =
            if doubled { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) };
        let text = SegmentText::Quoted(text);
        return Some(Segment { range: start..quote + 1, excluded: false, text });
    }
}

fn push_plain<'a>(segments: &mut Vec<Segment<'a>>, raw: &'a str, range: Range<usize>) {
    if !range.is_empty() {
        let text = SegmentText::Plain(&raw[range.clone()]);
        segments.push(Segment { range, excluded: false, text });
    }
}
