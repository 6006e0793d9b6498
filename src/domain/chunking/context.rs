//! The context of a chunk: a breadcrumb from the title down to the heading.

/// Characters after which a context is cut.
const CONTEXT_CHARS: usize = 200;

/// Joins the steps from a document's title down to a chunk's heading.
///
/// - `parts`: outermost first. White space around them does not count; blank
///   parts and a part equal to the one before it are left out.
/// - Returns at most 200 characters, or `None` if nothing is left.
///
/// ```
/// use grooveseek::domain::chunking::context::context;
///
/// let parts = ["Guide", "Install", " Install ", "", "On Linux"];
/// assert_eq!(context(parts).as_deref(), Some("Guide > Install > On Linux"));
/// assert_eq!(context([" "]), None);
/// ```
pub fn context<'a>(parts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for part in parts.into_iter().map(str::trim) {
        if !part.is_empty() && kept.last() != Some(&part) {
            kept.push(part);
        }
    }
    let mut context = kept.join(" > ");
    if let Some((end, _)) = context.char_indices().nth(CONTEXT_CHARS) {
        context.truncate(end);
    }
    (!context.is_empty()).then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    // FMT-GEN-15
    #[test]
    fn blank_and_repeated_parts_are_left_out() {
        assert_eq!(context(["", "\t"]), None);
        assert_eq!(context(["a", " a", " ", "a", "b", "a"]).as_deref(), Some("a > b > a"));
    }

    // FMT-GEN-15
    #[test]
    fn a_long_context_is_cut_between_characters() {
        let long = "語".repeat(250);
        assert_eq!(context([long.as_str()]), Some("語".repeat(200)));
        let exact = "語".repeat(200);
        assert_eq!(context([exact.as_str()]), Some(exact.clone()));
    }
}
