//! Text as the full-text index of SQLite sees it: the tokenizer `trigram
//! remove_diacritics 1 case_sensitive 0`.

pub(super) use crate::domain::fold::fold;

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
    fn occurrences_may_overlap() {
        assert_eq!(occurrences("aaaaa", "aaa"), 3);
        assert_eq!(occurrences("検検検検", "検検検"), 2);
        assert_eq!(occurrences("abcabc", "abc"), 2);
        assert_eq!(occurrences("abc", "ab"), 0);
        assert_eq!(occurrences("", "abc"), 0);
    }
}
