//! Boilerplate: text that stands where somebody still meant to write something.

use std::iter::{Peekable, from_fn};
use std::str::Chars;

/// Phrases that are boilerplate when a text is nothing else.
const PHRASES: &[&str] = &[
    "TBD",
    "TODO",
    "To do",
    "WIP",
    "FIXME",
    "N/A",
    "Coming soon",
    "To be written",
    "Under construction",
    "Placeholder",
    "未定",
    "準備中",
    "(準備中)",
    "作成中",
    "工事中",
    "追記予定",
    "詳細は後述",
    "詳細は後述する",
    "ここに書く",
    "後で書く",
    "後述",
    "À compléter",
    "Por hacer",
    "In Arbeit",
];

/// How a text begins that fills a space, in lower case.
const FILLER: &str = "lorem ipsum";

/// The characters from U+FF61 to U+FF9F at their usual width.
const KATAKANA: &str = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノ\
                        ハヒフヘホマミムメモヤユヨラリルレロワン゛゜";

/// Tells whether a text is boilerplate and nothing else.
///
/// - `extra`: phrases that count besides the built-in ones.
pub(super) fn is_boilerplate(content: &str, extra: &[String]) -> bool {
    let core = core(content);
    if core.is_empty() {
        return false;
    }
    PHRASES.iter().any(|phrase| folded(core).eq(folded(phrase)))
        || is_filler(core)
        || extra.iter().any(|phrase| folded(core).eq(folded(self::core(phrase))))
}

/// A phrase as it is compared: without the marks around it, in one width and
/// one case. Two phrases that hide the same texts are equal then; one that
/// hides none is empty.
///
/// ```
/// use grooveseek::domain::quality::normalised;
///
/// assert_eq!(normalised("- **ＴＢＤ**！"), "tbd");
/// assert_eq!(normalised("…"), "");
/// ```
pub fn normalised(phrase: &str) -> String {
    folded(core(phrase)).collect()
}

fn is_filler(core: &str) -> bool {
    let mut rest = folded(core);
    FILLER.chars().all(|expected| rest.next() == Some(expected))
        && !rest.next().is_some_and(char::is_alphanumeric)
}

/// A text without list marks before it, emphasis around it and what ends it.
fn core(content: &str) -> &str {
    let mut text = without_list_marks(content.trim());
    loop {
        let ended = text.trim_end_matches(|last| ends_a_phrase(width_folded(last))).trim_start();
        let plain = without_emphasis(ended);
        if plain.len() == text.len() {
            return text;
        }
        text = plain;
    }
}

fn ends_a_phrase(character: char) -> bool {
    matches!(character, '.' | '。' | '、' | ',' | '!' | '…' | ' ' | '\t')
}

fn without_list_marks(text: &str) -> &str {
    let mut text = text;
    while let Some(item) = after_list_mark(text) {
        text = ["[ ]", "[x]", "[X]"]
            .iter()
            .find_map(|task| item.strip_prefix(task))
            .filter(|rest| rest.starts_with(char::is_whitespace))
            .unwrap_or(item)
            .trim_start();
    }
    text
}

fn after_list_mark(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['-', '*', '+']).or_else(|| {
        let number = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
        if number.len() < text.len() { number.strip_prefix(['.', ')']) } else { None }
    })?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim_start())
}

fn without_emphasis(text: &str) -> &str {
    ["*", "_", "~~"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark)?.strip_suffix(mark))
        .map_or(text, str::trim)
}

/// The characters of a text in one width and in lower case.
fn folded(text: &str) -> impl Iterator<Item = char> {
    let mut characters = text.chars().peekable();
    from_fn(move || Some(usual_width(characters.next()?, &mut characters)))
        .flat_map(char::to_lowercase)
}

/// A character at its usual width, together with the voicing mark that a
/// half-width katakana may have behind it.
fn usual_width(character: char, rest: &mut Peekable<Chars<'_>>) -> char {
    let folded = width_folded(character);
    if folded == character || !matches!(folded, 'ウ' | 'カ'..='ト' | 'ハ'..='ホ') {
        return folded;
    }
    let joined = match rest.peek() {
        Some('\u{FF9E}') if folded == 'ウ' => Some('ヴ'),
        Some('\u{FF9E}') => char::from_u32(u32::from(folded) + 1),
        Some('\u{FF9F}') if folded >= 'ハ' => char::from_u32(u32::from(folded) + 2),
        _ => None,
    };
    if joined.is_some() {
        rest.next();
    }
    joined.unwrap_or(folded)
}

fn width_folded(character: char) -> char {
    let code = u32::from(character);
    let usual = match code {
        0x3000 => Some(' '),
        0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0),
        0xFF61..=0xFF9F => KATAKANA.chars().nth((code - 0xFF61) as usize),
        _ => None,
    };
    usual.unwrap_or(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boilerplate(content: &str) -> bool {
        is_boilerplate(content, &[])
    }

    // QUA-10 QUA-11 QUA-B01
    #[test]
    fn every_listed_phrase_is_boilerplate() {
        for phrase in "TBD,TODO,WIP,N/A,Coming soon,未定,準備中,(準備中),詳細は後述,\
                       詳細は後述する,ここに書く,後で書く,後述,FIXME,To be written,To do,\
                       Under construction,Placeholder,（準備中）,作成中,工事中,追記予定,\
                       À compléter,Por hacer,In Arbeit"
            .split(',')
        {
            assert!(boilerplate(phrase), "{phrase}");
            assert!(!boilerplate(&format!("{phrase} x")), "{phrase}");
        }
    }

    // QUA-09
    #[test]
    fn it_is_the_whole_text_without_what_ends_it() {
        for content in ["tbd", " Todo... ", "n/a", "COMING SOON.", "未定。", "WIP 、,\t."] {
            assert!(boilerplate(content), "{content}");
        }
        for content in ["TBD was discussed", "。", "", "(未定)", "TODO?", "- TODO\n- TBD"] {
            assert!(!boilerplate(content), "{content}");
        }
    }

    // QUA-B01
    #[test]
    fn list_marks_emphasis_and_exclamations_are_no_content() {
        for content in [
            "- TODO",
            "* tbd",
            "+ WIP.",
            "1. TODO",
            "12) _FIXME_",
            "- [ ] TODO",
            "- [x] **To do**",
            "**TODO**",
            "***wip!***",
            "__TBD__…",
            "~~Placeholder~~",
            "TODO!",
            "Coming soon !!!",
            "作成中…。",
        ] {
            assert!(boilerplate(content), "{content}");
        }
        for content in
            ["-TODO", "1.TODO", "- [y] TODO", "**TODO", "-", "- ", "***", "!", "2024) x", "…"]
        {
            assert!(!boilerplate(content), "{content}");
        }
    }

    // QUA-B01
    #[test]
    fn a_text_that_begins_as_filler_does_is_boilerplate() {
        assert!(boilerplate("Lorem ipsum"));
        assert!(boilerplate("> Lorem ipsum".trim_start_matches("> ")));
        assert!(boilerplate("lorem ipsum dolor sit amet,\nconsectetur adipiscing elit."));
        assert!(!boilerplate("Lorem ipsums are texts that fill a space"));
        assert!(!boilerplate("The text Lorem ipsum fills a space"));
    }

    // QUA-B01
    #[test]
    fn width_and_case_are_no_difference() {
        for content in
            ["ＴＯＤＯ", "ｔｂｄ．", "Ｎ／Ａ", "未定！", "準備中｡", "Coming　soon", "À COMPLÉTER"]
        {
            assert!(boilerplate(content), "{content}");
        }
        let extra = ["ペンディング".to_owned(), "ヴァージョン待ち".to_owned()];
        assert!(is_boilerplate("ﾍﾟﾝﾃﾞｨﾝｸﾞ", &extra));
        assert!(is_boilerplate("ｳﾞｧｰｼﾞｮﾝ待ち", &extra));
        assert_eq!(KATAKANA.chars().count(), 0xFF9F - 0xFF61 + 1);
    }

    // QUA-B01
    #[test]
    fn a_phrase_of_the_configuration_is_compared_as_the_built_in_ones_are() {
        let extra = ["Noch offen!".to_owned(), "...".to_owned()];
        for content in ["noch offen", "- **Noch offen**", "NOCH OFFEN…"] {
            assert!(is_boilerplate(content, &extra), "{content}");
            assert!(!boilerplate(content), "{content}");
        }
        for content in ["noch offen ist dies", "", "...", "-"] {
            assert!(!is_boilerplate(content, &extra), "{content}");
        }
    }

    proptest! {
        // QUA-B01
        #[test]
        fn a_normalised_phrase_hides_what_the_phrase_hides(phrase in "[-*_~ A-Za-zＡ-ｚｱ-ﾟ!.。…1)]{0,12}") {
            let normal = normalised(&phrase);
            prop_assert_eq!(is_boilerplate(&phrase, std::slice::from_ref(&phrase)), !normal.is_empty());
        }
    }
}
