//! From plain text to terms: groups between separators, runs of one script.

use std::ops::Range;

use super::phrase::MIN_PHRASE_CHARACTERS;

/// What a character counts as when plain text is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Kanji,
    Hiragana,
    Katakana,
    Word,
    Separator,
}

/// The first class that fits; the order decides, since all scripts are
/// alphabetic, too.
fn class_of(character: char) -> Class {
    match character {
        '\u{4E00}'..='\u{9FFF}'
        | '\u{3400}'..='\u{4DBF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{2F800}'..='\u{2FA1F}'
        | '\u{3005}'
        | '\u{3006}' => Class::Kanji,
        '\u{3041}'..='\u{309F}' => Class::Hiragana,
        '\u{30A1}'..='\u{30FF}' | '\u{FF66}'..='\u{FF9F}' => Class::Katakana,
        '_' | '-' => Class::Word,
        _ if character.is_alphanumeric() => Class::Word,
        _ => Class::Separator,
    }
}

/// Whether a character only separates what can be looked for.
pub(super) fn is_separator(character: char) -> bool {
    class_of(character) == Class::Separator
}

/// What plain text is split into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms<'a> {
    /// What is long enough to be looked for, in order; may repeat itself.
    pub(super) phrases: Vec<&'a str>,
    /// What is too short, in order.
    pub(super) short: Vec<&'a str>,
}

/// Splits plain text.
///
/// A group is what stands between separators, a run what is of one class in
/// it. A run that is long enough is a phrase; shorter ones are joined with what
/// follows in their group until they are, and the rest of a group is joined to
/// the phrase before it, so that a script without spaces is still cut where
/// its words tend to end. A phrase never crosses a separator.
pub(super) fn split(text: &str) -> Terms<'_> {
    let mut terms = Terms::default();
    for group in text.split(is_separator).filter(|group| !group.is_empty()) {
        split_group(group, &mut terms);
    }
    terms
}

/// The words of plain text that are worth showing: runs of at least two
/// characters; of Hiragana, which mostly is grammar, at least three.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_separator).flat_map(|group| {
        runs_of(group).into_iter().filter_map(move |run| {
            let word = &group[run.bytes];
            let least = match word.chars().next().map(class_of) {
                Some(Class::Hiragana) => MIN_PHRASE_CHARACTERS,
                _ => MIN_PHRASE_CHARACTERS - 1,
            };
            let is_word = run.characters >= least && word.chars().any(char::is_alphanumeric);
            is_word.then_some(word)
        })
    })
}

/// Whether a character belongs to words that stand between spaces.
pub(super) fn is_spaced(character: char) -> bool {
    class_of(character) == Class::Word
}

fn split_group<'a>(group: &'a str, terms: &mut Terms<'a>) {
    let runs = runs_of(group);
    // Where the phrase that was started last stands in `phrases`, and its first byte.
    let mut last_unit: Option<(usize, usize)> = None;
    let mut first = 0;
    while first < runs.len() {
        let start = runs[first].bytes.start;
        let mut last = first;
        let mut characters = runs[first].characters;
        while characters < MIN_PHRASE_CHARACTERS && last + 1 < runs.len() {
            last += 1;
            characters += runs[last].characters;
        }
        if characters >= MIN_PHRASE_CHARACTERS {
            last_unit = Some((terms.phrases.len(), start));
            terms.phrases.push(&group[start..runs[last].bytes.end]);
            if last > first && runs[last].characters >= MIN_PHRASE_CHARACTERS {
                terms.phrases.push(&group[runs[last].bytes.clone()]);
            }
        } else if let Some((place, unit_start)) = last_unit {
            terms.phrases.insert(place, &group[unit_start..]);
        } else {
            terms.short.push(&group[start..]);
        }
        first = last + 1;
    }
}

/// A maximal stretch of one class.
struct Run {
    bytes: Range<usize>,
    characters: usize,
}

fn runs_of(group: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut class = Class::Separator;
    for (at, character) in group.char_indices() {
        let end = at + character.len_utf8();
        let next = class_of(character);
        match runs.last_mut() {
            Some(run) if next == class => {
                run.bytes.end = end;
                run.characters += 1;
            }
            _ => runs.push(Run { bytes: at..end, characters: 1 }),
        }
        class = next;
    }
    runs
}
