//! Folding: text without regard to case and diacritics, as phrases are matched.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Which character stands for which after folding; U+0000 for one that is
/// dropped. Each line of the table reads `first last step mode target`, in
/// hexadecimal but for the step: with the mode `=` every character of the range
/// becomes the target, with `+` the target moves along.
static FOLDED: LazyLock<HashMap<char, char>> =
    LazyLock::new(|| include_str!("fold.txt").lines().filter_map(rule).flatten().collect());

fn rule(line: &str) -> Option<Vec<(char, char)>> {
    let mut words = line.split(' ');
    let mut number = |radix| words.next().and_then(|word| u32::from_str_radix(word, radix).ok());
    let (first, last, step) = (number(16)?, number(16)?, number(10)?);
    let moves = words.next()? == "+";
    let target = u32::from_str_radix(words.next()?, 16).ok()?;
    (first..=last)
        .step_by(step as usize)
        .map(|code| {
            let to = if moves { target + (code - first) } else { target };
            Some((char::from_u32(code)?, char::from_u32(to)?))
        })
        .collect()
}

/// What stands for a character; none if it is dropped.
fn folded(character: char) -> Option<char> {
    let folded = match character {
        '\u{1}'..='\u{7f}' => character.to_ascii_lowercase(),
        _ => FOLDED.get(&character).copied().unwrap_or(character),
    };
    (folded != '\0').then_some(folded)
}

/// Folds case and drops diacritics: the way of the tokenizer `trigram
/// remove_diacritics 1 case_sensitive 0` of SQLite.
///
/// ```
/// use grooveseek::domain::fold::fold;
///
/// assert_eq!(fold("Ångström ÉLAN"), "angstrom elan");
/// ```
pub fn fold(text: &str) -> String {
    text.chars().filter_map(folded).collect()
}

/// A folded text that knows where its parts stood in the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedText {
    folded: String,
    /// For each character that was kept, where it begins in the folded text and
    /// in the original; then the ends of both.
    places: Vec<(usize, usize)>,
}

impl FoldedText {
    /// Folds a text. Takes about 20 bytes for each byte of it.
    pub fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut places = Vec::with_capacity(original.len() + 1);
        for (at, character) in original.char_indices() {
            if let Some(character) = folded(character) {
                places.push((text.len(), at));
                text.push(character);
            }
        }
        places.push((text.len(), original.len()));
        Self { folded: text, places }
    }

    /// The folded text.
    pub fn as_str(&self) -> &str {
        &self.folded
    }

    /// Where a part of the folded text stood in the original, with the marks
    /// that were dropped after its last character.
    ///
    /// - `start`, `end`: bytes of the folded text on character boundaries.
    pub fn original(&self, start: usize, end: usize) -> (usize, usize) {
        (self.place(start), self.place(end))
    }

    fn place(&self, folded: usize) -> usize {
        let index = self.places.partition_point(|(at, _)| *at < folded);
        self.places.get(index).or(self.places.last()).map_or(0, |(_, original)| *original)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines = include_str!("fold.txt").lines();
        assert!(lines.clone().count() > 200);
        assert!(lines.clone().all(|line| rule(line).is_some()));
    }

    // SRCH-63
    #[test]
    fn case_and_diacritics_do_not_count() {
        assert_eq!(fold("Ångström ÉLAN"), "angstrom elan");
        assert_eq!(fold("e\u{301}te\u{301}"), "ete");
        assert_eq!(fold("ＡＢＣ検索 ΣΑΣ"), "ａｂｃ検索 σασ");
        assert_eq!(fold("a\0b"), "ab");
    }

    #[test]
    fn letters_of_ascii_are_folded_by_the_table_too() {
        for code in 1..0x80_u8 {
            let character = char::from(code);
            let by_table = FOLDED.get(&character).copied().unwrap_or(character);
            assert_eq!(folded(character), Some(by_table), "{character:?}");
        }
    }

    // SRCH-B17
    #[test]
    fn a_part_is_found_again_in_the_original_with_its_marks() {
        let original = "Un cafe\u{301} noir";
        let text = FoldedText::new(original);
        let start = text.as_str().find("cafe").unwrap();
        let (start, end) = text.original(start, start + 4);
        assert_eq!(&original[start..end], "cafe\u{301}");
        assert_eq!(FoldedText::new("").original(0, 0), (0, 0));
    }

    proptest! {
        #[test]
        fn every_part_stands_on_characters_of_the_original(original in any::<String>()) {
            let text = FoldedText::new(&original);
            prop_assert_eq!(text.as_str(), fold(&original));
            for (at, character) in text.as_str().char_indices() {
                let (start, end) = text.original(at, at + character.len_utf8());
                prop_assert!(start < end);
                prop_assert_eq!(fold(&original[start..end]), character.to_string());
            }
        }
    }
}
