//! Text as the full-text index of SQLite sees it: the tokenizer `trigram
//! remove_diacritics 1 case_sensitive 0`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Which character stands for which after folding; U+0000 for one that is
/// dropped. Each line of the table reads `first last step mode target`, in
/// hexadecimal but for the step: with the mode `=` every character of the range
/// becomes the target, with `+` the target moves along.
static FOLDED: LazyLock<HashMap<char, char>> =
    LazyLock::new(|| include_str!("trigram_fold.txt").lines().filter_map(rule).flatten().collect());

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

/// Folds case and drops diacritics.
pub(super) fn fold(text: &str) -> String {
    text.chars()
        .map(|character| FOLDED.get(&character).copied().unwrap_or(character))
        .filter(|&character| character != '\0')
        .collect()
}

/// How many tokens a folded text has: one for every three characters in a row.
pub(super) fn tokens(folded: &str) -> usize {
    folded.chars().count().saturating_sub(2)
}

/// How often a folded phrase occurs in a folded text; occurrences may overlap.
/// A phrase of fewer than three characters has no token and occurs nowhere.
pub(super) fn occurrences(folded: &str, phrase: &str) -> usize {
    if tokens(phrase) == 0 {
        return 0;
    }
    let step = phrase.chars().next().map_or(1, char::len_utf8);
    let (mut count, mut from) = (0, 0);
    while let Some(at) = folded.get(from..).and_then(|rest| rest.find(phrase)) {
        count += 1;
        from += at + step;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines = include_str!("trigram_fold.txt").lines();
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
    fn occurrences_may_overlap() {
        assert_eq!(occurrences("aaaaa", "aaa"), 3);
        assert_eq!(occurrences("検検検検", "検検検"), 2);
        assert_eq!(occurrences("abcabc", "abc"), 2);
        assert_eq!(occurrences("abc", "ab"), 0);
        assert_eq!(occurrences("", "abc"), 0);
    }
}
