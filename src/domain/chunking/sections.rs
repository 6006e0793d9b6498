//! Sections of a Markdown text under its `##` headings, and handing them out.

use crate::domain::chunking::blocks::Blocks;

/// A section: its heading, and its text from the line of the heading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// What the heading says.
    pub heading: &'a str,
    /// The section with its heading, up to the next one, without the white space
    /// around it.
    pub text: &'a str,
}

/// Cuts a Markdown text at its `##` headings; what stands before the first is
/// in no section. What looks like a heading in a code block is none.
///
/// ```
/// use grooveseek::domain::chunking::sections::sections;
///
/// let found = sections("Intro\n## A\none\n### B\ntwo\n## C\n");
/// let headings: Vec<&str> = found.iter().map(|section| section.heading).collect();
/// assert_eq!(headings, ["A", "C"]);
/// assert_eq!(found[0].text, "## A\none\n### B\ntwo");
/// ```
pub fn sections(text: &str) -> Vec<Section<'_>> {
    let mut blocks = Blocks::default();
    let mut starts: Vec<(usize, &str)> = Vec::new();
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        let line_end = line_start + line.len();
        let bare = line.trim_end_matches(['\n', '\r']);
        if blocks.may_be_heading(bare, &text[line_end..])
            && let Some(heading) = bare.trim().strip_prefix("## ")
        {
            starts.push((line_start, heading.trim()));
        }
        line_start = line_end;
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    let sections = starts.iter().zip(ends);
    sections
        .map(|(&(start, heading), end)| Section { heading, text: text[start..end].trim() })
        .collect()
}

/// The text with a list of its sections in front.
pub fn with_contents(text: &str) -> String {
    let mut contents = String::from("## Sections\n\n");
    for section in sections(text) {
        contents.extend(["- ", section.heading, "\n"]);
    }
    contents.extend(["\n---\n\n", text]);
    contents
}

/// The first section whose heading contains a text, without regard to case.
pub fn section_about<'a>(text: &'a str, part: &str) -> Option<Section<'a>> {
    let part = part.to_lowercase();
    sections(text).into_iter().find(|section| section.heading.to_lowercase().contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Rust\n\nIntro.\n\n## Error handling\n\nUse `?`.\n\n```sh\n## not a \
                        heading\n```\n\n### Deeper\n\nText.\n\n## Naming\n\nNouns.\n";

    // MCP-49 MCP-B08
    #[test]
    fn a_section_goes_up_to_the_next_and_code_is_not_cut() {
        let section = section_about(TEXT, "ERROR").unwrap();
        assert!(section.text.starts_with("## Error handling\n\nUse"));
        assert!(section.text.ends_with("### Deeper\n\nText."));
        assert_eq!(section_about(TEXT, "not a heading"), None);
        assert_eq!(section_about(TEXT, "naming").unwrap().text, "## Naming\n\nNouns.");
    }

    // MCP-49
    #[test]
    fn the_whole_text_follows_the_list_of_its_sections() {
        let listed = with_contents(TEXT);
        let head = "## Sections\n\n- Error handling\n- Naming\n\n---\n\n";
        assert_eq!(listed.strip_prefix(head), Some(TEXT));
    }
}
