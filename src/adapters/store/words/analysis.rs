//! From a text to its words.

use std::collections::HashMap;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use super::language::{Language, Script};

/// The longest word that is counted; more is no word that anybody types.
const LONGEST: usize = 64;

/// How often a word occurs in the columns of a chunk: heading, context, content.
pub(in crate::adapters::store) type Counts = [u32; 3];

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::adapters::store) struct Group {
    /// What may stand for it in a text, since texts of different languages have
    /// different stems.
    pub(in crate::adapters::store) stems: Vec<String>,
    /// How much it counts.
    pub(in crate::adapters::store) weight: f64,
}

/// How much a part of an identifier counts in a query beside the whole.
const PART: f64 = 0.5;

/// What a word is in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::adapters::store) enum Role {
    /// A word, or an identifier as a whole.
    Whole,
    /// A part of an identifier.
    Part,
}

/// Cuts texts into words by the rules of one language.
pub(in crate::adapters::store) struct Analyser {
    language: Language,
    /// Stems of words that were met before.
    known: HashMap<String, String>,
    scratch: Vec<char>,
}

/// What a run of characters is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    /// A letter without case.
    Letter,
    Digit,
    Underscore,
    /// A character of a script that puts no space between words.
    Unspaced,
}

impl Kind {
    fn of(character: char) -> Option<Self> {
        match character {
            'a'..='z' => Some(Self::Lower),
            'A'..='Z' => Some(Self::Upper),
            '0'..='9' => Some(Self::Digit),
            '_' => Some(Self::Underscore),
            '\0'..='\u{7f}' => None,
            _ if is_unspaced(character) => Some(Self::Unspaced),
            _ if character.is_lowercase() => Some(Self::Lower),
            _ if character.is_uppercase() => Some(Self::Upper),
            _ if character.is_numeric() => Some(Self::Digit),
            _ if character.is_alphabetic() || is_combining_mark(character) => Some(Self::Letter),
            _ => None,
        }
    }
}

/// Han, kana, Hangul, Thai, Lao, Burmese and Khmer.
fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{1100}'..='\u{11ff}' | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}'
        | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{3130}'..='\u{318f}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

impl Analyser {
    /// Makes one for a language.
    pub(in crate::adapters::store) fn new(language: Language) -> Self {
        Self { language, known: HashMap::new(), scratch: Vec::new() }
    }

    /// Hands every word of a text over, in order.
    pub(in crate::adapters::store) fn words(
        &mut self,
        text: &str,
        mut each: impl FnMut(&str, Role),
    ) {
        let mut characters = std::mem::take(&mut self.scratch);
        characters.clear();
        if text.is_ascii() {
            characters.extend(text.chars());
        } else {
            characters.extend(text.nfkc());
        }
        let mut at = 0;
        while at < characters.len() {
            let Some(kind) = Kind::of(characters[at]) else {
                at += 1;
                continue;
            };
            let unspaced = kind == Kind::Unspaced;
            let length = characters[at..]
                .iter()
                .take_while(|&&character| {
                    Kind::of(character).is_some_and(|kind| (kind == Kind::Unspaced) == unspaced)
                })
                .count();
            let run = &characters[at..at + length];
            at += length;
            if unspaced {
                pairs(run, &mut each);
                continue;
            }
            // The names of some languages end in a sign: C++, C#, F#.
            let signs =
                characters[at..].iter().take_while(|sign| matches!(sign, '+' | '#')).count();
            let signed = (1..=2).contains(&signs)
                && run.iter().all(char::is_ascii_alphabetic)
                && !characters.get(at + signs).copied().is_some_and(char::is_alphanumeric);
            if signed {
                let name: String = run.iter().chain(&characters[at..at + signs]).collect();
                each(&name.to_ascii_lowercase(), Role::Whole);
                at += signs;
            }
            self.identifier(run, &mut each);
        }
        self.scratch = characters;
    }

    /// A run without a gap: a word, or an identifier of several.
    fn identifier(&mut self, run: &[char], each: &mut impl FnMut(&str, Role)) {
        let parts = parts(run);
        if let [part] = parts.as_slice() {
            if part.len() <= LONGEST {
                self.word(part, Role::Whole, each);
            }
            return;
        }
        if run.len() <= LONGEST {
            let whole: String = run.iter().flat_map(|letter| letter.to_lowercase()).collect();
            let whole = whole.trim_matches('_');
            if !whole.is_empty() {
                each(whole, Role::Whole);
            }
        }
        for part in parts.iter().filter(|part| (2..=LONGEST).contains(&part.len())) {
            self.word(part, Role::Part, each);
        }
    }

    fn word(&mut self, letters: &[char], role: Role, each: &mut impl FnMut(&str, Role)) {
        let lower: String = letters.iter().flat_map(|letter| letter.to_lowercase()).collect();
        if let Some(stem) = self.known.get(&lower) {
            return each(stem, role);
        }
        let rules = letters
            .iter()
            .find_map(|&letter| Script::of(letter))
            .and_then(|script| self.language.rules_for(script));
        let stem = stem(&lower, rules);
        each(&stem, role);
        self.known.insert(lower, stem);
    }
}

/// Neighbours in pairs; a character that stands alone, alone.
fn pairs(run: &[char], each: &mut impl FnMut(&str, Role)) {
    let mut pair = String::new();
    for neighbours in run.windows(run.len().min(2)) {
        pair.clear();
        pair.extend(neighbours);
        each(&pair, Role::Whole);
    }
}

/// Cuts an identifier where its case, its kind or an underscore says so:
/// `parseHTTPReply2` into `parse`, `HTTP`, `Reply`, `2`.
fn parts(run: &[char]) -> Vec<&[char]> {
    let kinds: Vec<Kind> =
        run.iter().map(|&letter| Kind::of(letter).unwrap_or(Kind::Underscore)).collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for at in 1..=run.len() {
        let cut = at == run.len()
            || match (kinds[at - 1], kinds[at]) {
                (Kind::Upper, Kind::Upper) => kinds.get(at + 1) == Some(&Kind::Lower),
                // One capital leads a word: `Reply`.
                (Kind::Upper, Kind::Lower | Kind::Letter)
                | (Kind::Letter, Kind::Lower | Kind::Upper)
                | (Kind::Lower, Kind::Letter) => false,
                (before, after) => before != after,
            };
        if cut {
            if kinds[start] != Kind::Underscore {
                parts.push(&run[start..at]);
            }
            start = at;
        }
    }
    parts
}

/// Stems a word in lower case and takes accents from it.
fn stem(word: &str, rules: Option<Algorithm>) -> String {
    let stemmed = rules.map_or(word.into(), |rules| Stemmer::create(rules).stem(word));
    if stemmed.is_ascii() {
        return stemmed.into_owned();
    }
    let mut plain = String::new();
    let mut accented = false;
    for letter in stemmed.nfd() {
        // Marks of other scripts are letters of their own.
        let latin_or_greek = matches!(letter, '\u{300}'..='\u{36f}');
        if latin_or_greek && canonical_combining_class(letter) > 0 && accented {
            continue;
        }
        if !latin_or_greek {
            accented = matches!(Script::of(letter), Some(Script::Latin | Script::Greek));
        }
        plain.push(letter);
    }
    plain.nfc().collect()
}

/// How often each word occurs in the columns of a chunk, and how many words it
/// has.
pub(in crate::adapters::store) fn count(
    analyser: &mut Analyser,
    columns: [&str; 3],
) -> (HashMap<String, Counts>, u32) {
    let mut counts: HashMap<String, Counts> = HashMap::new();
    let mut length = 0;
    for (column, text) in columns.into_iter().enumerate() {
        analyser.words(text, |word, _| {
            length += 1;
            if let Some(known) = counts.get_mut(word) {
                known[column] += 1;
            } else {
                let mut first = Counts::default();
                first[column] = 1;
                counts.insert(word.to_owned(), first);
            }
        });
    }
    (counts, length)
}

/// The words of a query, each once, with the stems that texts of these languages
/// have for it.
///
/// - `most`: the most words that are wanted.
pub(in crate::adapters::store) fn groups(
    text: &str,
    languages: &[Language],
    most: usize,
) -> Vec<Group> {
    let mut analysers: Vec<Analyser> = languages.iter().map(|&one| Analyser::new(one)).collect();
    if !languages.contains(&Language::default()) {
        analysers.push(Analyser::new(Language::default()));
    }
    let mut groups: Vec<Group> = Vec::new();
    for analyser in &mut analysers {
        let mut place = 0;
        // Only stems differ between languages, so the words are in step.
        analyser.words(text, |word, role| {
            let weight = if role == Role::Part { PART } else { 1.0 };
            match groups.get_mut(place) {
                Some(group) if !group.stems.iter().any(|known| known == word) => {
                    group.stems.push(word.to_owned());
                }
                Some(_) => {}
                None => groups.push(Group { stems: vec![word.to_owned()], weight }),
            }
            place += 1;
        });
    }
    let mut places: HashMap<Vec<String>, usize> = HashMap::new();
    let mut distinct: Vec<Group> = Vec::new();
    for mut group in groups {
        group.stems.sort_unstable();
        if let Some(&place) = places.get(&group.stems) {
            distinct[place].weight = distinct[place].weight.max(group.weight);
        } else {
            places.insert(group.stems.clone(), distinct.len());
            distinct.push(group);
        }
    }
    distinct.truncate(most);
    distinct
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn words(code: &str, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        Analyser::new(Language::from_code(code)).words(text, |word, _| words.push(word.to_owned()));
        words
    }

    #[test]
    fn inflected_forms_of_a_word_are_one() {
        assert_eq!(words("eng", "Searching, searched: SEARCHES"), ["search", "search", "search"]);
        assert_eq!(words("deu", "Haus Häuser"), ["haus", "haus"]);
        assert_eq!(words("rus", "книга книги"), ["книг", "книг"]);
        // Latin words in a Russian text follow English.
        assert_eq!(words("rus", "searches"), ["search"]);
        // No rules are known for Polish.
        assert_eq!(words("pol", "domy"), ["domy"]);
    }

    #[test]
    fn identifiers_are_kept_whole_and_in_parts() {
        assert_eq!(words("", "parse_config"), ["parse_config", "pars", "config"]);
        assert_eq!(words("", "parseHTTPReply"), ["parsehttpreply", "pars", "http", "repli"]);
        assert_eq!(words("", "C2664"), ["c2664", "2664"]);
        assert_eq!(words("", "__init__"), ["init"]);
        assert_eq!(words("", "std::vector<T>"), ["std", "vector", "t"]);
        assert_eq!(
            words("", "C++ and C#, not A+B"),
            ["c++", "c", "and", "c#", "c", "not", "a", "b"]
        );
        assert_eq!(words("", "___ --- ..."), Vec::<String>::new());
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        assert_eq!(words("", "東京都に行く"), ["東京", "京都", "都に", "に行", "行く"]);
        assert_eq!(words("", "検索"), ["検索"]);
        assert_eq!(words("", "茶"), ["茶"]);
        assert_eq!(words("", "AIによるデータ"), ["ai", "によ", "よる", "るデ", "デー", "ータ"]);
        assert_eq!(words("", "검색 엔진"), ["검색", "엔진"]);
    }

    #[test]
    fn width_case_and_accents_do_not_matter() {
        assert_eq!(words("", "ＡＢＣ"), ["abc"]);
        assert_eq!(words("", "ｶﾀｶﾅ"), words("", "カタカナ"));
        assert_eq!(words("pol", "Łódź"), words("pol", "łódz"));
        // й is a letter, not an accented и.
        assert_eq!(words("ukr", "й"), ["й"]);
    }

    #[test]
    fn a_query_word_stands_for_the_stems_of_all_languages() {
        let languages = ["deu", "eng", "pol"].map(Language::from_code);
        let stems = |text: &str, most| -> Vec<Vec<String>> {
            groups(text, &languages, most).into_iter().map(|group| group.stems).collect()
        };
        assert_eq!(stems("houses houses", 9), [["hous", "houses"]]);
        assert_eq!(stems("a b c", 2).len(), 2);
        assert_eq!(stems("", 9), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_part_of_an_identifier_counts_less_than_a_word() {
        let weights = |text: &str| -> Vec<(String, f64)> {
            let groups = groups(text, &[], 9);
            groups.into_iter().map(|group| (group.stems.concat(), group.weight)).collect()
        };
        let expected = [("log_file", 1.0), ("log", 0.5), ("file", 0.5)];
        assert_eq!(weights("log_file"), expected.map(|(word, weight)| (word.to_owned(), weight)));
        assert_eq!(weights("log_file log")[1], ("log".to_owned(), 1.0));
    }

    proptest! {
        #[test]
        fn any_text_has_words_of_bounded_length_in_any_language(
            text in any::<String>(),
            mixed in "[a-zA-Zäöüßéñçğıøåæёйаяαωάابت0-9_+# ]{0,80}",
            language in 0_usize..38,
        ) {
            let language = Language::from_code(
                ["eng", "deu", "fra", "tur", "fin", "hun", "ron", "ara", "ell", "rus", "tam", "swe",
                 "nob", "dan", "nld", "por", "spa", "ita", "pol"][language % 19],
            );
            for text in [&text, &mixed] {
                let mut analyser = Analyser::new(language);
                let mut total = 0;
                let mut longest = 0;
                analyser.words(text, |word, _| {
                    total += 1;
                    longest = longest.max(word.chars().count());
                });
                prop_assert!(longest <= 4 * LONGEST);
                let (counts, length) = count(&mut analyser, [text, "", text]);
                prop_assert_eq!(length, 2 * total);
                let counted: u32 = counts.values().flatten().sum();
                prop_assert_eq!(counted, length);
            }
        }
    }
}
