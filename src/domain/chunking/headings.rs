//! Cutting Markdown at its headings.

use std::borrow::Cow;

use crate::domain::chunk::Chunk;
use crate::domain::chunking::blocks::Blocks;
use crate::domain::chunking::context::context;

/// Bytes below which a section is no chunk of its own.
const MERGE_BYTES: usize = 50;

/// Cuts the body of a Markdown document into chunks.
///
/// A chunk is a section: what follows a heading of level 2 or 3 up to the next
/// one, without the heading itself. Text before the first heading is a section
/// without a heading. No line inside fenced code, an HTML block or a `$$` block
/// is a heading, and none that is indented by four columns or more.
///
/// A section of fewer than 50 bytes joins the chunk before it, its heading then
/// written out with two number signs. Every line that is not blank ends up in
/// some chunk, as content or as a heading, unless it is excluded.
///
/// - `body`: the text after the frontmatter; `\r\n` and `\r` count as `\n`.
/// - `title`: what every context starts with.
/// - `exclude_headings`: a section whose heading holds one of these is left
///   out, though not what stands under headings of its own below it.
/// - Returns the chunks in the order of the text; none if it is blank.
///
/// Runs in O(n) for n bytes.
///
/// ```
/// use grooveseek::domain::chunking::headings::chunks;
///
/// let body = "Words before.\n\n## Use\n\n```sh\n## not a heading\n```\n\nMore words to be read.";
/// let chunks = chunks(body, Some("Guide"), &[]);
/// assert_eq!(chunks.len(), 2);
/// assert_eq!(chunks[1].heading.as_deref(), Some("Use"));
/// assert_eq!(chunks[1].context.as_deref(), Some("Guide > Use"));
/// assert!(chunks[1].content.starts_with("```sh\n## not a heading\n```"));
/// ```
pub fn chunks(body: &str, title: Option<&str>, exclude_headings: &[String]) -> Vec<Chunk> {
    let body = with_line_feeds(body);
    let mut cutter = Cutter {
        title: title.unwrap_or_default(),
        exclude_headings,
        ancestors: Vec::new(),
        chunks: Vec::new(),
    };
    let mut blocks = Blocks::default();
    let mut heading = None;
    let mut section_start = 0;
    let mut line_start = 0;
    for line in body.split_inclusive('\n') {
        let line_end = line_start + line.len();
        let text = line.strip_suffix('\n').unwrap_or(line);
        if blocks.may_be_heading(text, &body[line_end..])
            && let Some(next) = Heading::read(text)
        {
            cutter.add(heading.replace(next), body[section_start..line_start].trim());
            section_start = line_end;
        }
        line_start = line_end;
    }
    cutter.add(heading, body[section_start..].trim());
    cutter.chunks
}

fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A heading that opens a section.
#[derive(Clone, Copy)]
struct Heading<'a> {
    level: u8,
    text: &'a str,
}

impl<'a> Heading<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (level, text) = match line.strip_prefix("### ") {
            Some(text) => (3, text),
            None => (2, line.strip_prefix("## ")?),
        };
        Some(Self { level, text: text.trim() })
    }
}

/// Takes sections in order and makes chunks of them.
struct Cutter<'a> {
    title: &'a str,
    exclude_headings: &'a [String],
    ancestors: Vec<Heading<'a>>,
    chunks: Vec<Chunk>,
}

impl<'a> Cutter<'a> {
    fn add(&mut self, heading: Option<Heading<'a>>, content: &str) {
        if let Some(heading) = heading {
            self.ancestors.retain(|ancestor| ancestor.level < heading.level);
            // Below an excluded heading, others still name it as an ancestor.
            self.ancestors.push(heading);
            if self.exclude_headings.iter().any(|part| heading.text.contains(part.as_str())) {
                return;
            }
        } else if content.is_empty() {
            return;
        }
        match self.chunks.last_mut() {
            Some(before) if content.len() < MERGE_BYTES => append(before, heading, content),
            _ => self.push(heading, content),
        }
    }

    fn push(&mut self, heading: Option<Heading<'a>>, content: &str) {
        // The heading itself is the last of the ancestors.
        let steps = self.ancestors.iter().map(|ancestor| ancestor.text);
        self.chunks.push(Chunk {
            heading: heading.map(|heading| heading.text.to_owned()),
            level: heading.map(|heading| heading.level),
            content: content.to_owned(),
            context: context(std::iter::once(self.title).chain(steps)),
            ..Chunk::default()
        });
    }
}

/// Adds a short section to the chunk before it.
fn append(chunk: &mut Chunk, heading: Option<Heading<'_>>, content: &str) {
    let mut add = |text: &[&str]| {
        if !chunk.content.is_empty() {
            chunk.content.push_str("\n\n");
        }
        chunk.content.extend(text.iter().copied());
    };
    if let Some(heading) = heading {
        add(&["## ", heading.text]);
    }
    if !content.is_empty() {
        add(&[content]);
    }
}

#[cfg(test)]
mod tests;
