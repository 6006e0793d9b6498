//! Which language a document is written in, and whose rules stem its words.

use rust_stemmers::Algorithm;

/// The most bytes of a document that its language is read from.
const SAMPLE: usize = 4096;

/// A script in which languages with rules for stemming are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Tamil,
    /// Any other: its words stay as they are.
    Other,
}

impl Script {
    /// The script of a letter; none of what is no letter of a script.
    pub(super) fn of(letter: char) -> Option<Self> {
        if !letter.is_alphabetic() {
            return None;
        }
        Some(match letter {
            'A'..='Z' | 'a'..='z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' => Self::Greek,
            '\u{400}'..='\u{52f}' => Self::Cyrillic,
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => Self::Arabic,
            '\u{b80}'..='\u{bff}' => Self::Tamil,
            _ => Self::Other,
        })
    }

    /// Whose rules stem a word of this script in a document of another one.
    fn usual(self) -> Option<Algorithm> {
        match self {
            Self::Latin => Some(Algorithm::English),
            Self::Cyrillic => Some(Algorithm::Russian),
            Self::Greek => Some(Algorithm::Greek),
            Self::Arabic => Some(Algorithm::Arabic),
            Self::Tamil => Some(Algorithm::Tamil),
            Self::Other => None,
        }
    }
}

/// A language that decides how words are stemmed: its code (ISO 639-3), its
/// script, and its rules; none if there are none for it.
#[derive(Debug)]
struct Entry(&'static str, Script, Option<Algorithm>);

const LANGUAGES: &[Entry] = &[
    Entry("ara", Script::Arabic, Some(Algorithm::Arabic)),
    Entry("dan", Script::Latin, Some(Algorithm::Danish)),
    Entry("deu", Script::Latin, Some(Algorithm::German)),
    Entry("ell", Script::Greek, Some(Algorithm::Greek)),
    Entry("eng", Script::Latin, Some(Algorithm::English)),
    Entry("fin", Script::Latin, Some(Algorithm::Finnish)),
    Entry("fra", Script::Latin, Some(Algorithm::French)),
    Entry("hun", Script::Latin, Some(Algorithm::Hungarian)),
    Entry("ita", Script::Latin, Some(Algorithm::Italian)),
    Entry("nld", Script::Latin, Some(Algorithm::Dutch)),
    Entry("nob", Script::Latin, Some(Algorithm::Norwegian)),
    Entry("por", Script::Latin, Some(Algorithm::Portuguese)),
    Entry("ron", Script::Latin, Some(Algorithm::Romanian)),
    Entry("rus", Script::Cyrillic, Some(Algorithm::Russian)),
    Entry("spa", Script::Latin, Some(Algorithm::Spanish)),
    Entry("swe", Script::Latin, Some(Algorithm::Swedish)),
    Entry("tam", Script::Tamil, Some(Algorithm::Tamil)),
    Entry("tur", Script::Latin, Some(Algorithm::Turkish)),
    Entry("aze", Script::Latin, None),
    Entry("bel", Script::Cyrillic, None),
    Entry("bul", Script::Cyrillic, None),
    Entry("cat", Script::Latin, None),
    Entry("ces", Script::Latin, None),
    Entry("epo", Script::Latin, None),
    Entry("est", Script::Latin, None),
    Entry("hrv", Script::Latin, None),
    Entry("ind", Script::Latin, None),
    Entry("lav", Script::Latin, None),
    Entry("lit", Script::Latin, None),
    Entry("mkd", Script::Cyrillic, None),
    Entry("pes", Script::Arabic, None),
    Entry("pol", Script::Latin, None),
    Entry("slk", Script::Latin, None),
    Entry("slv", Script::Latin, None),
    Entry("srp", Script::Cyrillic, None),
    Entry("ukr", Script::Cyrillic, None),
    Entry("urd", Script::Arabic, None),
    Entry("vie", Script::Latin, None),
];

/// The language of a document, as far as it decides how words are stemmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::adapters::store) struct Language(Option<usize>);

impl Language {
    /// Recognises the language of a text by its beginning. One that is too short
    /// or too mixed to tell, or that no rules are known for, has none.
    pub(in crate::adapters::store) fn detect<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sample = String::new();
        for text in texts {
            let room = SAMPLE.saturating_sub(sample.len());
            sample.push_str(&text[..text.floor_char_boundary(room)]);
            sample.push('\n');
            if sample.len() >= SAMPLE {
                break;
            }
        }
        match whatlang::detect(&sample) {
            Some(found) if found.is_reliable() => Self::from_code(found.lang().code()),
            _ => Self::default(),
        }
    }

    /// The language of a code; none if it decides nothing.
    pub(in crate::adapters::store) fn from_code(code: &str) -> Self {
        Self(LANGUAGES.iter().position(|entry| entry.0 == code))
    }

    /// The code; empty if there is none.
    pub(in crate::adapters::store) fn code(self) -> &'static str {
        self.0.map_or("", |place| LANGUAGES[place].0)
    }

    /// Whose rules stem a word of a script.
    pub(super) fn rules_for(self, script: Script) -> Option<Algorithm> {
        match self.0.map(|place| &LANGUAGES[place]) {
            Some(&Entry(_, own, rules)) if own == script => rules,
            _ => script.usual(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_recognised_by_its_text() {
        let cases = [
            ("eng", "The quick brown fox jumps over the lazy dog while everybody is watching it."),
            ("deu", "Die Häuser in dieser Straße wurden alle im vergangenen Jahr neu gestrichen."),
            (
                "fra",
                "Les maisons de cette rue ont toutes été repeintes au cours de l'année dernière.",
            ),
            ("rus", "Все дома на этой улице были заново покрашены в прошлом году."),
            ("", "この通りの家はすべて昨年塗り直されました。"),
            ("", "x = 1"),
            ("", ""),
        ];
        for (code, text) in cases {
            assert_eq!(Language::detect([text]).code(), code, "{text}");
        }
    }

    #[test]
    fn codes_are_read_back_and_the_sample_never_cuts_a_character() {
        for Entry(code, ..) in LANGUAGES {
            assert_eq!(Language::from_code(code).code(), *code);
        }
        let long = "ä".repeat(SAMPLE);
        for lead in ["", "x"] {
            Language::detect([lead, &long, &long]);
        }
    }
}
