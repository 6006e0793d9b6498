//! Finding the frontmatter of a text.

/// A text taken apart at its frontmatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split<'a> {
    /// What stands between the fences, if there are any.
    pub(super) block: Option<&'a str>,
    /// What follows them without leading line breaks, or else the whole text.
    pub(super) body: &'a str,
}

/// Takes a text without a byte-order mark apart.
///
/// A fence is a line of exactly `---` and perhaps blanks after it. The first
/// has to be the first line; without a second one there is no frontmatter.
pub(super) fn split(text: &str) -> Split<'_> {
    let whole = Split { block: None, body: text };
    let (first, after_first) = split_line(text);
    if !is_fence(first) {
        return whole;
    }
    let mut rest = after_first;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        if is_fence(line) {
            let block = &after_first[..after_first.len() - rest.len()];
            return Split { block: Some(block), body: after.trim_start_matches(['\r', '\n']) };
        }
        rest = after;
    }
    whole
}

/// Splits the first line off, at `\n`, `\r\n` or `\r`.
fn split_line(text: &str) -> (&str, &str) {
    match text.find(['\n', '\r']) {
        Some(end) => {
            let break_length = if text[end..].starts_with("\r\n") { 2 } else { 1 };
            (&text[..end], &text[end + break_length..])
        }
        None => (text, ""),
    }
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---")
        .is_some_and(|rest| rest.bytes().all(|byte| matches!(byte, b' ' | b'\t')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, &str) {
        let split = split(text);
        (split.block, split.body)
    }

    // IDX-80
    #[test]
    fn a_block_stands_between_the_first_line_and_the_next_fence() {
        assert_eq!(parts("---\na: b\n---\n\n\nbody\n---\n"), (Some("a: b\n"), "body\n---\n"));
        assert_eq!(parts("---\r\na: b\r\n---\r\n\r\n body"), (Some("a: b\r\n"), " body"));
        assert_eq!(parts("---\ra: b\r---\r\rbody"), (Some("a: b\r"), "body"));
        assert_eq!(parts("---\na: b\n---"), (Some("a: b\n"), ""));
    }

    // IDX-81
    #[test]
    fn without_a_closing_fence_all_is_body() {
        for text in ["", "---", "---\n", "---\na: b\n", "text\n---\na\n---\n", "\n---\na\n---\n"] {
            assert_eq!(parts(text), (None, text), "{text:?}");
        }
    }

    // IDX-B15
    #[test]
    fn a_fence_is_three_hyphens_and_blanks_and_nothing_else() {
        assert_eq!(parts("--- \t\na: b\n---  \nbody"), (Some("a: b\n"), "body"));
        assert_eq!(parts("---\n---\nbody"), (Some(""), "body"));
        for text in ["----\na: b\n---\n", "--- x\na: b\n---\n", " ---\na: b\n---\n"] {
            assert_eq!(parts(text), (None, text), "{text:?}");
        }
        let block = "a: |\n ---\n----\n--- x\n";
        assert_eq!(parts(&format!("---\n{block}---\nbody")), (Some(block), "body"));
    }
}
