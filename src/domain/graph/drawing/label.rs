//! Text that goes into a picture, whatever it holds.

use std::borrow::Cow;

/// The text as one line that neither ends it, nor speaks to a terminal, nor
/// turns the direction of what follows: such characters become spaces.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|character| if is_hidden(character) { ' ' } else { character }).collect()
}

/// The text without what [`one_line`] takes out, but for the ends of lines and
/// tabs.
pub(super) fn lines(text: &str) -> String {
    let kept = |character: char| matches!(character, '\n' | '\t') || !is_hidden(character);
    text.chars().map(|character| if kept(character) { character } else { ' ' }).collect()
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Marks of direction, separators of lines, and no characters at all.
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}'
        )
}

/// How wide a text is likely to be, in tenths of a pixel for each pixel of the
/// font's size: all but ASCII counts as full width.
pub(super) fn tenths(text: &str) -> usize {
    text.chars().map(|character| if character.is_ascii() { 6 } else { 10 }).sum()
}

/// A text that fits into a width, cut with `…` if it did not.
///
/// - `width`, `font`: in pixels.
pub(super) fn fitting(text: &str, width: usize, font: usize) -> Cow<'_, str> {
    let room = width * 10 / font.max(1);
    if tenths(text) <= room {
        return Cow::Borrowed(text);
    }
    let mut left = room.saturating_sub(tenths("…"));
    let fits = |character: &char| {
        let needed = tenths(character.encode_utf8(&mut [0; 4]));
        let does_fit = needed <= left;
        left = left.saturating_sub(needed);
        does_fit
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    Cow::Owned(cut)
}

/// A text as XML holds it, in an element or an attribute. What XML 1.0 cannot
/// hold at all becomes a space.
pub(super) fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push(' '),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::*;

    // GRAPH-71 GRAPH-72
    #[test]
    fn what_would_break_a_line_or_turn_it_around_becomes_a_space() {
        assert_eq!(one_line("a\nb\u{1b}c\u{202e}d\u{2028}e\u{0}f"), "a b c d e f");
        assert_eq!(one_line("日本語 é 🦀"), "日本語 é 🦀");
        assert_eq!(lines("a\n\tb\r\u{1b}[2J"), "a\n\tb  [2J");
    }

    // GRAPH-72
    #[test]
    fn a_cut_falls_between_characters_and_is_marked() {
        assert_eq!(fitting("abcdef", 36, 10), "abcdef");
        assert_eq!(fitting("abcdef", 35, 10), "abcd…");
        assert_eq!(fitting("日本語", 30, 10), "日本語");
        assert_eq!(fitting("日本語", 29, 10), "日…");
        assert_eq!(fitting("日本語", 0, 10), "…");
    }

    // GRAPH-72
    #[test]
    fn xml_holds_any_text() {
        assert_eq!(
            xml("a<b> & \"c\" 'd' ]]>"),
            "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; ]]&gt;"
        );
        assert_eq!(xml("\u{0}\u{8}\u{7f}\u{85}\u{fffe}"), "     ");
    }

    proptest! {
        // GRAPH-72
        #[test]
        fn a_cut_text_is_no_wider_than_it_may_be(
            text in any::<String>(),
            width in 12_usize..300,
            font in 1_usize..13,
        ) {
            let cut = fitting(&text, width, font);
            prop_assert!(tenths(&cut) * font <= width * 10, "{}", cut);
            let is_whole = cut == text;
            prop_assert!(is_whole || text.starts_with(cut.trim_end_matches('…')));
        }
    }
}
