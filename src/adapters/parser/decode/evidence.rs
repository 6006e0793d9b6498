//! Whether a text that was decoded by a guess looks like one.

use encoding_rs::EUC_JP;

/// What a text is written in besides ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Japanese,
    Chinese,
    Latin,
    Cyrillic,
    Greek,
    Hebrew,
    Arabic,
}

/// The fewest characters outside ASCII that show Chinese or Japanese.
const LEAST_CHARS: usize = 8;
/// The most ideographs that are looked at one by one.
const IDEOGRAPHS: usize = 1000;
/// The fewest letters that show another alphabet.
const LEAST_LETTERS: usize = 16;
/// The fewest Latin letters or quotation marks outside ASCII, and the fewest
/// letters in ASCII, that show Latin.
const LEAST_LATIN: (usize, usize) = (8, 20);

impl Script {
    fn has(self, letter: char) -> bool {
        match self {
            Self::Japanese => is_kana(letter) || is_ideograph(letter),
            Self::Chinese => is_ideograph(letter),
            Self::Latin => {
                matches!(letter, '\u{C0}'..='\u{24F}' | '\u{300}'..='\u{323}')
                    && letter != '×'
                    && letter != '÷'
            }
            Self::Cyrillic => matches!(letter, '\u{400}'..='\u{52F}'),
            Self::Greek => matches!(letter, '\u{370}'..='\u{3FF}'),
            Self::Hebrew => matches!(letter, '\u{591}'..='\u{5F4}'),
            Self::Arabic => matches!(letter, '\u{600}'..='\u{6FF}'),
        }
    }
}

/// Tells whether every character may stand in a text.
pub(super) fn is_text(text: &str) -> bool {
    !text.chars().any(|character| {
        let control = character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\u{C}');
        let code = u32::from(character);
        let private = matches!(code, 0xE000..=0xF8FF | 0xF_0000..);
        let no_character =
            matches!(code, 0xFDD0..=0xFDEF | 0xFFF9..=0xFFFD) || code & 0xFFFE == 0xFFFE;
        control || private || no_character
    })
}

/// Tells whether bytes are UTF-8 that was damaged, or holds a part in another
/// encoding, instead of text in a legacy encoding of a script.
///
/// By chance up to 45 % of the bytes outside ASCII of Chinese or Japanese are
/// whole characters of UTF-8, and of an alphabet hardly any are even the
/// beginning of one.
pub(super) fn is_damaged_utf8(script: Script, bytes: &[u8]) -> bool {
    let (mut whole, mut begun, mut other) = (0_usize, 0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().bytes().filter(|byte| !byte.is_ascii()).count();
        match chunk.invalid().len() {
            length @ 2.. => begun += length,
            length => other += length,
        }
    }
    let all = whole + begun + other;
    match script {
        Script::Japanese | Script::Chinese => whole * 10 >= all * 6,
        _ => (whole + begun) * 20 >= all,
    }
}

/// Tells whether a text that was decoded from `bytes` looks like one in a
/// script.
pub(super) fn speaks_for(script: Script, text: &str, bytes: &[u8]) -> bool {
    match script {
        Script::Japanese => is_japanese(text),
        Script::Chinese => is_chinese(text, bytes),
        Script::Latin => is_latin(text),
        _ => is_alphabetic(script, text),
    }
}

/// Japanese is a mixture of ideographs, common ones, and kana, the latter in
/// full width.
fn is_japanese(text: &str) -> bool {
    let foreign = foreign(text).count();
    let kana = foreign_where(text, is_kana);
    let half_width = foreign_where(text, |character| matches!(character, '\u{FF61}'..='\u{FF9F}'));
    let ideographs: String =
        text.chars().filter(|character| is_ideograph(*character)).take(IDEOGRAPHS).collect();
    // Those of the first level of JIS X 0208 have lower lead bytes than others.
    let (encoded, ..) = EUC_JP.encode(&ideographs);
    let rare = encoded.chunks_exact(2).filter(|bytes| bytes[0] >= 0xD0).count();
    foreign >= LEAST_CHARS
        && kana * 5 >= foreign
        && half_width * 10 <= foreign
        && rare * 10 <= encoded.len()
}

/// Chinese is mostly the common ideographs, which lie in one part of the
/// encoding, and has no spaces between words.
fn is_chinese(text: &str, bytes: &[u8]) -> bool {
    let (mut characters, mut common, mut marks) = (0_usize, 0_usize, 0_usize);
    let mut rest = bytes;
    while let [lead, behind @ ..] = rest {
        if lead.is_ascii() {
            rest = behind;
            continue;
        }
        characters += 1;
        let trail = behind.first().copied().unwrap_or_default();
        common += usize::from(matches!(lead, 0xB0..=0xD7) && trail >= 0xA1);
        marks += usize::from(matches!(lead, 0xA1..=0xA3) && trail >= 0xA1);
        let length = if trail.is_ascii_digit() { 4 } else { 2 };
        rest = rest.get(length..).unwrap_or_default();
    }
    let windows = text.chars().zip(text.chars().skip(1)).zip(text.chars().skip(2));
    let spaces = windows.filter(|((before, space), after)| {
        *space == ' ' && is_ideograph(*before) && is_ideograph(*after)
    });
    characters >= LEAST_CHARS
        && common * 10 >= characters * 6
        && (common + marks) * 10 >= characters * 9
        && spaces.count() * 10 <= characters
}

/// Latin has letters outside ASCII among those of it, and more of the latter,
/// and quotation marks at the ends of words.
fn is_latin(text: &str) -> bool {
    let letters = foreign_where(text, |character| Script::Latin.has(character));
    let ascii = text.chars().filter(char::is_ascii_alphabetic).count();
    let words = Words::of(Script::Latin, text);
    let evidence = letters + words.quotes;
    evidence >= LEAST_LATIN.0
        && ascii >= LEAST_LATIN.1
        && letters * 2 <= ascii
        && (strange(Script::Latin, text) + words.misquotes) * 10 <= evidence
        && words.alone * 2 <= letters
        && words.raised * 10 <= letters
}

/// Other alphabets fill words of their own.
fn is_alphabetic(script: Script, text: &str) -> bool {
    let letters = foreign_where(text, |character| script.has(character));
    let words = Words::of(script, text);
    letters >= LEAST_LETTERS
        && letters * 4 >= foreign(text).count() * 3
        && strange(script, text) * 10 <= letters
        && words.mixed * 10 <= letters
        && words.alone * 4 <= letters
        && words.raised * 10 <= letters
}

fn strange(script: Script, text: &str) -> usize {
    foreign_where(text, |character| !script.has(character) && !is_usual_mark(character))
}

/// How the letters of a script stand in the words of a text.
#[derive(Default)]
struct Words {
    /// Letters between two that are none.
    alone: usize,
    /// Letters in upper case behind one in lower case, of which one is of the
    /// script.
    raised: usize,
    /// Letters of ASCII beside one of the script.
    mixed: usize,
    /// Quotation marks at an end of a word, and apostrophes inside one.
    quotes: usize,
    /// Quotation marks inside a word.
    misquotes: usize,
}

impl Words {
    fn of(script: Script, text: &str) -> Self {
        let mut words = Self::default();
        let mut before = [' ', ' '];
        let is_letter = |character: char| character.is_alphabetic() || script.has(character);
        for next in text.chars().chain([' ']) {
            let [first, middle] = before;
            let own = script.has(middle);
            if own && !is_letter(first) && !is_letter(next) {
                words.alone += 1;
            }
            match (middle, is_letter(first), is_letter(next)) {
                ('’', true, true) => words.quotes += 1,
                ('“' | '”' | '„', true, true) => words.misquotes += 1,
                ('“' | '”' | '„' | '‘' | '’', before, after) if before != after => {
                    words.quotes += 1;
                }
                _ => {}
            }
            let touches = own || script.has(next);
            if touches && middle.is_lowercase() && next.is_uppercase() {
                words.raised += 1;
            }
            if own && next.is_ascii_alphabetic() || middle.is_ascii_alphabetic() && script.has(next)
            {
                words.mixed += 1;
            }
            before = [middle, next];
        }
        words
    }
}

fn foreign(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|character| !character.is_ascii())
}

fn foreign_where(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    foreign(text).filter(|character| wanted(*character)).count()
}

fn is_kana(character: char) -> bool {
    matches!(character, '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | 'ー')
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '々' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}')
}

/// Marks that a text of any script may have.
fn is_usual_mark(character: char) -> bool {
    matches!(
        character,
        '\u{A0}'
            | '§'
            | '©'
            | '«'
            | '»'
            | '®'
            | '°'
            | '·'
            | '№'
            | '€'
            | '™'
            | '¡'
            | '¿'
            | 'º'
            | 'ª'
    ) || matches!(character, '\u{200C}'..='\u{200F}' | '\u{2010}'..='\u{2019}' | '“' | '”' | '„' | '•' | '…' | '\u{2039}' | '\u{203A}')
}
