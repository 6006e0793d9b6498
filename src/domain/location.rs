//! Locations: on which lines of a file a passage stands, and how to cite it.

use std::fmt::Write as _;

use crate::domain::chunk::LineRange;

/// Finds the lines of a passage in the text of its file as it is now.
///
/// Compared are the lines that are not blank, without the white space around
/// them and the level of headings, which a passage may not have kept. A passage
/// that stands in several places is found where its heading stands right before
/// it.
///
/// - `heading`: of the passage's section, if it has one.
/// - Returns none if the passage is nowhere, or could be in several places.
///
/// ```
/// use grooveseek::domain::location::lines_of;
///
/// let file = "# T\n\n## Ebb\n\nThe water\n  falls.\n\n## Flow\n\nIt rises.\n";
/// let lines = lines_of("The water\nfalls.", Some("Ebb"), file).unwrap();
/// assert_eq!((lines.start, lines.end), (5, 6));
/// ```
pub fn lines_of(passage: &str, heading: Option<&str>, file: &str) -> Option<LineRange> {
    let wanted: Vec<&str> = said(passage).map(|(_, line)| line).collect();
    let lines: Vec<(u32, &str)> = said(file).collect();
    let first = wanted.first()?;
    let fits = |start: &usize| {
        let here = &lines[*start..];
        here.len() >= wanted.len() && here.iter().zip(&wanted).all(|((_, line), want)| line == want)
    };
    let starts = (0..lines.len()).filter(|&start| lines[start].1 == *first).filter(fits);
    let starts: Vec<usize> = starts.take(MOST_PLACES).collect();
    let under_heading = |start: &&usize| {
        let before = start.checked_sub(1).and_then(|before| lines.get(before));
        heading.is_some_and(|heading| before.is_some_and(|(_, line)| *line == heading.trim()))
    };
    let start = match starts.as_slice() {
        [start] => *start,
        starts => {
            let mut headed = starts.iter().filter(under_heading);
            let start = *headed.next()?;
            headed.next().is_none().then_some(start)?
        }
    };
    let last = start + wanted.len() - 1;
    Some(LineRange { start: lines.get(start)?.0, end: lines.get(last)?.0 })
}

/// A passage that stands in more places is not told apart from its copies.
const MOST_PLACES: usize = 64;

/// The lines that say something, with their numbers, counted from 1.
fn said(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, spoken(line)))
        .filter(|it| !it.1.is_empty())
}

fn spoken(line: &str) -> &str {
    let line = line.trim();
    line.strip_prefix("### ").or(line.strip_prefix("## ")).map_or(line, str::trim)
}

/// Names a passage to a reader: title, heading, and the path with its lines.
///
/// ```
/// use grooveseek::domain::chunk::LineRange;
/// use grooveseek::domain::location::cite;
///
/// let lines = Some(LineRange { start: 3, end: 9 });
/// assert_eq!(cite(Some("Tides"), Some("Ebb"), "sea/tides.md", lines), "Tides, Ebb (sea/tides.md:3-9)");
/// assert_eq!(cite(None, None, "a.md", None), "a.md");
/// ```
pub fn cite(
    title: Option<&str>,
    heading: Option<&str>,
    path: &str,
    lines: Option<LineRange>,
) -> String {
    let place = match lines {
        Some(LineRange { start, end }) if start == end => format!("{path}:{start}"),
        Some(LineRange { start, end }) => format!("{path}:{start}-{end}"),
        None => path.to_owned(),
    };
    let names: Vec<&str> = [title, heading.filter(|heading| Some(*heading) != title)]
        .into_iter()
        .flatten()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return place;
    }
    let mut cite = names.join(", ");
    // Writing to a string cannot fail.
    let _written = write!(cite, " ({place})");
    cite.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::chunking::headings::chunks;

    const FILE: &str = "---\ntitle: T\n---\n\nIntro that is longer than fifty bytes, so that it \
                        stands alone.\r\n\n## Ebb\n\nThe water falls for six hours, more or less, \
                        each day.\n\n### Short\n\nSo.\n\n## Flow\n\nSame words, same words, same \
                        words, same words, same.\n\n## Back\n\nSame words, same words, same words, \
                        same words, same.\n";

    #[test]
    fn every_chunk_of_a_document_is_found_on_its_lines() {
        let body = &FILE[FILE.find("Intro").unwrap()..];
        let lines: Vec<_> = chunks(body, Some("T"), &[])
            .iter()
            .map(|chunk| lines_of(&chunk.content, chunk.heading.as_deref(), FILE))
            .map(|lines| lines.map(|lines| (lines.start, lines.end)))
            .collect();
        assert_eq!(lines, [Some((5, 5)), Some((9, 13)), Some((17, 17)), Some((21, 21))]);
    }

    #[test]
    fn a_passage_that_is_not_there_or_twice_is_not_located() {
        assert_eq!(lines_of("Nowhere", None, FILE), None);
        assert_eq!(lines_of("", Some("Ebb"), FILE), None);
        assert_eq!(lines_of("x\n", Some("h"), "x\ny\nx\n"), None);
        assert_eq!(lines_of("## h\nx", Some("h"), "### h\nx\n## h\nx"), None);
    }

    #[test]
    fn a_citation_is_one_line_and_says_nothing_twice() {
        assert_eq!(cite(Some("T"), Some("T"), "a\nb.md", None), "T (a b.md)");
        let line = Some(LineRange { start: 3, end: 3 });
        assert_eq!(cite(None, Some("H"), "a.md", line), "H (a.md:3)");
    }
}
