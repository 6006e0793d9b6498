//! Quotes: whether a text stands in another, word for word.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

use crate::domain::chunk::{LineRange, Span};

/// A text in which quotes are looked for.
///
/// Compared are the characters after compatibility decomposition (NFKD), so that
/// composed and decomposed, half-width and full-width, ligatures and their
/// letters are the same. White space counts as one space however it is written,
/// and not at all beside a character of a script that sets no spaces between
/// words. Case, punctuation and accents count.
///
/// # Source
///
/// Unicode Standard Annex #15, Unicode Normalization Forms: two strings are
/// compatibility equivalent if their full compatibility decompositions are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotable<'a> {
    original: &'a str,
    folded: String,
    /// For each character of the folded text, where it begins there, and the
    /// character of the original that it comes from.
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    at: usize,
    origin: Span,
}

impl<'a> Quotable<'a> {
    /// Takes about 40 bytes for each character of the text.
    pub fn new(original: &'a str) -> Self {
        let mut pieces = Folder::default();
        for (at, character) in original.char_indices() {
            let origin = Span { start: at, end: at + character.len_utf8() };
            pieces.add(character, origin);
        }
        let characters = pieces.ordered();
        let mut folded = String::with_capacity(original.len());
        let mut places = Vec::with_capacity(characters.len());
        for (character, origin) in characters {
            places.push(Place { at: folded.len(), origin });
            folded.push(character);
        }
        Self { original, folded, places }
    }

    /// Finds where a quote begins and ends in the original.
    ///
    /// - Returns up to `most` places, ascending and disjoint; none for a quote
    ///   that is blank.
    ///
    /// ```
    /// use grooveseek::domain::quote::Quotable;
    ///
    /// let text = Quotable::new("The  ﬁrst\nline. 全文\n検索。");
    /// let found = |quote| text.find(quote, 9).len();
    /// assert_eq!((found("The first line."), found("全文検索"), found("the first")), (1, 1, 0));
    /// ```
    pub fn find(&self, quote: &str, most: usize) -> Vec<Span> {
        let quote = Quotable::new(quote).folded;
        let mut found = Vec::new();
        let mut from = 0;
        while !quote.is_empty() && found.len() < most {
            let Some(at) = self.folded[from..].find(&quote) else { break };
            let start = from + at;
            match self.original_of(start, start + quote.len()) {
                Some(span) => {
                    found.push(span);
                    from = start + quote.len();
                }
                None => from = self.folded.ceil_char_boundary(start + 1),
            }
        }
        found
    }

    /// Where a part of the folded text stood, if it is made of whole characters.
    fn original_of(&self, start: usize, end: usize) -> Option<Span> {
        let first = self.places.partition_point(|place| place.at < start);
        let after = self.places.partition_point(|place| place.at < end);
        let (begin, last) = (self.places.get(first)?, self.places.get(after.checked_sub(1)?)?);
        let splits = |index: usize| {
            let next = self.places.get(index)?;
            let before = self.places.get(index.checked_sub(1)?)?;
            let character = self.folded[next.at..].chars().next()?;
            let is_mark = canonical_combining_class(character) > 0;
            (next.origin == before.origin || is_mark).then_some(())
        };
        if splits(first).is_some() || splits(after).is_some() {
            return None;
        }
        Some(Span { start: begin.origin.start, end: last.origin.end })
    }

    /// The lines that a part of the original lies on.
    pub fn lines(&self, span: Span) -> LineRange {
        lines(self.original, span)
    }
}

/// The lines of a text that a part of it lies on, counted from 1.
pub fn lines(text: &str, span: Span) -> LineRange {
    let breaks = |text: &str| u32::try_from(text.matches('\n').count()).unwrap_or(u32::MAX);
    let start = breaks(text.get(..span.start).unwrap_or_default()).saturating_add(1);
    let within = text.get(span.start..span.end).unwrap_or_default();
    LineRange { start, end: start.saturating_add(breaks(within.trim_end())) }
}

#[derive(Default)]
struct Folder {
    characters: Vec<(char, Span)>,
    /// White space that was seen since the last character.
    space: Option<Span>,
}

impl Folder {
    fn add(&mut self, character: char, origin: Span) {
        // Characters without width or meaning of their own.
        if matches!(character, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}') {
            return;
        }
        for part in std::iter::once(character).nfkd() {
            if part.is_whitespace() {
                self.space = self.space.or(Some(origin));
                continue;
            }
            if let Some(space) = self.space.take()
                && let Some((before, _)) = self.characters.last()
                && !sets_no_spaces(*before)
                && !sets_no_spaces(part)
            {
                self.characters.push((' ', space));
            }
            self.characters.push((part, origin));
        }
    }

    /// Puts the marks of each character in canonical order.
    fn ordered(mut self) -> Vec<(char, Span)> {
        let class = |character: &(char, Span)| canonical_combining_class(character.0);
        let is_mark = |character: &(char, Span)| class(character) > 0;
        for run in self.characters.chunk_by_mut(|left, right| is_mark(left) && is_mark(right)) {
            run.sort_by_key(class);
        }
        self.characters
    }
}

/// Whether a character is of a script that sets no spaces between words: Thai,
/// Lao, Burmese, Khmer, Kana, Kanji, and the punctuation of the last two.
fn sets_no_spaces(character: char) -> bool {
    matches!(
        u32::from(character),
        0x0E00..=0x0EFF
            | 0x1000..=0x109F
            | 0x1780..=0x17FF
            | 0x3001..=0x312F
            | 0x31F0..=0x31FF
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x2_0000..=0x3_FFFF
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(text: &'a str, quote: &str) -> Vec<&'a str> {
        let quotable = Quotable::new(text);
        quotable.find(quote, 100).iter().map(|span| &text[span.start..span.end]).collect()
    }

    #[test]
    fn spelling_in_unicode_and_white_space_play_no_part() {
        for (text, quote) in [
            ("caf\u{e9} au lait", "cafe\u{301} au\n\n  lait"),
            ("ＡＢＣ　１２３", "ABC 123"),
            ("ﬁle oﬃce", "file office"),
            ("ｶﾞｲﾄﾞ", "ガイド"),
            ("全文\n検索を 行う", "全文検索を行う"),
            ("한국어 문서", "\u{1112}\u{1161}\u{11ab}국어 문서"),
            ("العربية نص", "العربية\nنص"),
            ("a\u{327}\u{301}b", "a\u{301}\u{327}b"),
            ("hy\u{ad}phen", "hyphen"),
            ("ภาษา\u{200b}ไทย", "ภาษาไทย"),
        ] {
            assert_eq!(found(text, quote), [text], "{quote:?}");
        }
    }

    #[test]
    fn words_letters_and_marks_do() {
        for (text, quote) in [
            ("The cat.", "the cat."),
            ("The cat.", "The cat!"),
            ("resume\u{301}", "resume"),
            ("\u{ac00}", "\u{1100}"),
            ("ﬁle", "f"),
            ("a b", "ab"),
            ("ab", "a b"),
            ("text", " \n "),
        ] {
            assert_eq!(found(text, quote), Vec::<&str>::new(), "{text:?} {quote:?}");
        }
    }

    #[test]
    fn every_place_is_found_up_to_the_most_that_are_wanted() {
        assert_eq!(found("aaaa", "aa").len(), 2);
        assert_eq!(Quotable::new("a a a").find("a", 2).len(), 2);
    }

    #[test]
    fn a_place_is_told_by_its_lines() {
        let text = Quotable::new("one\ntwo\nthree\n");
        let of = |quote| text.lines(text.find(quote, 1)[0]);
        assert_eq!(of("one"), LineRange { start: 1, end: 1 });
        assert_eq!(of("two three"), LineRange { start: 2, end: 3 });
    }

    proptest! {
        #[test]
        fn a_part_of_a_text_in_any_normal_form_is_found_in_it(
            before in "\\PC{0,20}",
            part in "[a-zA-Z0-9é-öа-яぁ-ん一-龥가-힣]{1,20}",
            after in "\\PC{0,20}",
        ) {
            let text = format!("{before}\n{part}\n{after}");
            let quotable = Quotable::new(&text);
            for quote in [part.clone(), part.nfc().collect(), part.nfd().collect(),
                          part.nfkc().collect(), part.nfkd().collect::<String>()] {
                let spans = quotable.find(&quote, 1000);
                // A mark may follow and belong to the last letter.
                let followed = after.chars().next().is_some_and(|c| canonical_combining_class(c) > 0);
                prop_assert!(followed || !spans.is_empty(), "{:?} in {:?}", quote, text);
                for span in spans {
                    prop_assert!(text.get(span.start..span.end).is_some());
                }
            }
        }
    }
}
