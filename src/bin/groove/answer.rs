//! The answer of a search as text.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};
use std::ops::Range;

use grooveseek::app::line::on_one_line;
use grooveseek::domain::chunk::Span;
use grooveseek::domain::search::{Hit, SearchAnswer};

/// Excerpts that a hit shows.
const EXCERPTS: usize = 3;
/// Characters of text around a match in an excerpt.
const EXCERPT_MARGIN: usize = 40;

/// How text is set off from other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emphasis {
    /// Not at all.
    None,
    /// With the escapes of terminals for bold.
    Bold,
}

impl Emphasis {
    /// Bold on a terminal, unless colours are not wanted there.
    ///
    /// - `no_color`: the variable `NO_COLOR`; anything but nothing says no.
    pub(crate) fn of_output(no_color: Option<&OsStr>) -> Self {
        let refused = no_color.is_some_and(|value| !value.is_empty());
        if !refused && io::stdout().is_terminal() { Self::Bold } else { Self::None }
    }

    /// What stands before and after text that is set off.
    pub(crate) fn marks(self) -> (&'static str, &'static str) {
        match self {
            Self::None => ("", ""),
            Self::Bold => ("\x1b[1m", "\x1b[0m"),
        }
    }
}

/// An answer as text, made for pasting into a prompt.
pub(crate) fn as_text(answer: &SearchAnswer, emphasis: Emphasis) -> String {
    let blocks: Vec<String> = answer.hits.iter().map(|hit| hit_as_text(hit, emphasis)).collect();
    let mut text = String::new();
    if answer.low_confidence {
        text.push_str("low confidence: the scores are close together\n");
    }
    if !answer.degraded.is_empty() {
        text.extend(["note: answered without ", &answer.degraded.join(", "), "\n"]);
    }
    if answer.pending_chunks > 0 {
        let count = answer.pending_chunks.to_string();
        text.extend(["note: ", &count, " chunk(s) can be found by their words only as yet\n"]);
    }
    for warning in &answer.warnings {
        text.extend(["note: ", &on_one_line(warning), "\n"]);
    }
    text.push_str(&blocks.join("---\n"));
    if answer.hits.is_empty() {
        text.push_str("no hits\n");
    }
    text
}

fn hit_as_text(hit: &Hit, emphasis: Emphasis) -> String {
    let mut lines = Vec::new();
    if let Some(title) = &hit.title {
        lines.push(on_one_line(title).into_owned());
    }
    lines.push(match &hit.heading {
        Some(heading) => on_one_line(&format!("{}#{heading}", hit.path)).into_owned(),
        None => on_one_line(&hit.path).into_owned(),
    });
    lines.push(format!("score: {}", hit.score));
    if !hit.tags.is_empty() {
        lines.push(on_one_line(&format!("tags: {}", hit.tags.join(", "))).into_owned());
    }
    lines.extend(excerpts(hit, emphasis));
    lines.push(String::new());
    lines.push(without_control(hit.content.trim_end()));
    lines.push(String::new());
    lines.join("\n")
}

/// The first places where a hit fits its query, each on its line with what
/// stands around it; places close together share one.
fn excerpts(hit: &Hit, emphasis: Emphasis) -> Vec<String> {
    let mut excerpts = Vec::new();
    let mut places = hit.highlights.iter().flatten().peekable();
    while let Some(first) = places.next().filter(|_| excerpts.len() < EXCERPTS) {
        let start = before(&hit.content, first.span.start);
        let mut shown = vec![first.span];
        let mut end = after(&hit.content, first.span.end);
        while let Some(next) = places.next_if(|next| next.span.end <= end) {
            shown.push(next.span);
            end = after(&hit.content, next.span.end).min(end + 2 * EXCERPT_MARGIN);
            end = hit.content.floor_char_boundary(end);
        }
        let text = marked(&hit.content, start..end, &shown, emphasis);
        excerpts.push(format!("match (line {}): ...{text}...", first.line));
    }
    excerpts
}

/// Where the text before a place begins that is shown with it.
fn before(text: &str, place: usize) -> usize {
    let first = text[..place].char_indices().rev().nth(EXCERPT_MARGIN - 1);
    first.map_or(0, |(index, _)| index)
}

/// Where the text after a place ends that is shown with it.
fn after(text: &str, place: usize) -> usize {
    let last = text[place..].char_indices().nth(EXCERPT_MARGIN);
    last.map_or(text.len(), |(index, _)| place + index)
}

/// A part of a text on one line, with some of it set off.
fn marked(text: &str, part: Range<usize>, shown: &[Span], emphasis: Emphasis) -> String {
    let (on, off) = emphasis.marks();
    let mut line = String::new();
    let mut at = part.start;
    for span in shown {
        line.push_str(&without_control(&text[at..span.start]));
        line.extend([on, &without_control(&text[span.start..span.end]), off]);
        at = span.end;
    }
    line.push_str(&without_control(&text[at..part.end.max(at)]));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text that cannot speak to a terminal: of control characters only line
/// breaks and tabs stay.
fn without_control(text: &str) -> String {
    text.chars().filter(|it| !it.is_control() || matches!(it, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use grooveseek::domain::highlights::Highlight;

    use super::*;

    fn hit(content: &str, words: &[&str]) -> Hit {
        let place = |word: &&str| {
            let start = content.find(word).unwrap();
            let line = u32::try_from(content[..start].matches('\n').count()).unwrap() + 1;
            Highlight { span: Span { start, end: start + word.len() }, line }
        };
        Hit {
            score: 0.032_786_883,
            path: "a/b.md".into(),
            title: Some("Tides".into()),
            heading: Some("Ebb".into()),
            topic: None,
            date: None,
            tags: vec!["sea".into(), "moon".into()],
            content: content.to_owned(),
            match_spans: None,
            highlights: Some(words.iter().map(place).collect()),
            expanded_from: None,
            lines: None,
            symbol_kind: None,
            uri: None,
            chunk_index: 0,
            document_chunks: 1,
            matched_by: vec!["vector"],
            ..Hit::default()
        }
    }

    fn shown(hits: Vec<Hit>, emphasis: Emphasis) -> String {
        as_text(&SearchAnswer { hits, ..SearchAnswer::default() }, emphasis)
    }

    // CLI-125
    #[test]
    fn a_block_holds_title_place_score_tags_excerpts_and_content() {
        let text =
            shown(vec![hit("Das Wasser\nfällt über Stunden.\n", &["fällt"])], Emphasis::None);
        let expected = "Tides\na/b.md#Ebb\nscore: 0.032786883\ntags: sea, moon\n\
                        match (line 2): ...Das Wasser fällt über Stunden....\n\n\
                        Das Wasser\nfällt über Stunden.\n";
        assert_eq!(text, expected);
    }

    // CLI-125
    #[test]
    fn blocks_are_separated_and_what_is_remarkable_comes_first() {
        let bare = |path: &str| Hit {
            path: path.into(),
            title: None,
            heading: None,
            tags: Vec::new(),
            ..hit("text", &[])
        };
        let answer = SearchAnswer {
            hits: vec![bare("a.md"), bare("b.md")],
            low_confidence: true,
            degraded: vec!["vector"],
            pending_chunks: 7,
            warnings: vec!["odd\nthing".into()],
            ..SearchAnswer::default()
        };
        let expected = "low confidence: the scores are close together\n\
                        note: answered without vector\n\
                        note: 7 chunk(s) can be found by their words only as yet\n\
                        note: odd\\nthing\n\
                        a.md\nscore: 0.032786883\n\ntext\n---\nb.md\nscore: 0.032786883\n\ntext\n";
        assert_eq!(as_text(&answer, Emphasis::None), expected);
        assert_eq!(shown(Vec::new(), Emphasis::None), "no hits\n");
    }

    // CLI-125
    #[test]
    fn at_most_three_excerpts_are_shown_and_places_close_together_share_one() {
        let far = "x".repeat(100);
        let content = format!("one two {far} three {far} four {far} five");
        let text =
            shown(vec![hit(&content, &["one", "two", "three", "four", "five"])], Emphasis::Bold);
        let excerpts: Vec<&str> = text.lines().filter(|line| line.starts_with("match")).collect();
        assert_eq!(excerpts.len(), 3);
        assert!(excerpts[0].contains("\x1b[1mone\x1b[0m \x1b[1mtwo\x1b[0m "), "{}", excerpts[0]);
        assert!(excerpts[2].contains("\x1b[1mfour\x1b[0m"), "{}", excerpts[2]);
    }

    #[test]
    fn nothing_of_a_document_speaks_to_the_terminal() {
        let mut evil = hit("a \x1b]0;evil\x07 word\r\n\u{9b}2J", &["word"]);
        evil.title = Some("T\x1b[2J\nscore: 9".into());
        evil.tags = vec!["\x1b[31m".into()];
        let text = shown(vec![evil], Emphasis::None);
        assert!(text.chars().all(|it| !it.is_control() || it == '\n'), "{text:?}");
        assert!(text.starts_with("T\\u{1b}[2J\\nscore: 9\n"), "{text}");
    }
}
