//! Quality: how much a chunk is worth finding, from 0 to 1.

use crate::domain::format::Class;

/// Characters below which a text is short.
const SHORT_CHARS: usize = 30;
/// Characters below which a single line is poor.
const POOR_LINE_CHARS: usize = 80;

const SHORT_PENALTY: f32 = 0.6;
const BOILERPLATE_PENALTY: f32 = 0.5;
const POOR_STRUCTURE_PENALTY: f32 = 0.3;

/// Phrases that stand where somebody still meant to write something.
const BOILERPLATE: &[&str] = &[
    "TBD",
    "TODO",
    "WIP",
    "N/A",
    "Coming soon",
    "未定",
    "準備中",
    "(準備中)",
    "詳細は後述",
    "詳細は後述する",
    "ここに書く",
    "後で書く",
    "後述",
];

/// Which penalties apply to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Prose, and source code outside definitions: every penalty.
    Text,
    /// A page, sheet, slide or section of a binary format, whose shortness is
    /// the shape of the format: boilerplate alone.
    Binary,
    /// A definition in source code, which is complete however short:
    /// boilerplate alone.
    Definition,
}

impl Profile {
    /// The profile of a chunk of a document.
    ///
    /// - `class`: the family of the document's format.
    /// - `symbol_kind`: the grammar's word for the definition that the chunk
    ///   is, if it is one.
    ///
    /// ```
    /// use grooveseek::domain::format::Class;
    /// use grooveseek::domain::quality::Profile;
    ///
    /// assert_eq!(Profile::of(Class::Code, Some("function")), Profile::Definition);
    /// assert_eq!(Profile::of(Class::Code, None), Profile::Text);
    /// ```
    pub fn of(class: Class, symbol_kind: Option<&str>) -> Self {
        match (class, symbol_kind) {
            (Class::Binary, _) => Self::Binary,
            (Class::Code, Some(_)) => Self::Definition,
            (Class::Text | Class::Code, _) => Self::Text,
        }
    }

    fn penalises_length(self) -> bool {
        self == Self::Text
    }
}

/// Scores the content of a chunk.
///
/// The score starts at 1 and loses 0.6 if the content is shorter than 30
/// characters, 0.5 if it is boilerplate and nothing else, and 0.3 if it is a
/// single line of fewer than 80 characters. Heading, context and tags play no
/// part.
///
/// - `content`: any text; white space around it does not count. Lengths are in
///   characters, not in bytes.
/// - Returns 0 to 1, both included; equal to 1 if nothing was found wanting.
///
/// ```
/// use grooveseek::domain::quality::{Profile, score};
///
/// assert_eq!(score("TBD", Profile::Text), 0.0);
/// assert_eq!(score("TBD", Profile::Definition), 0.5);
/// assert_eq!(score("A first line.\nAnd a second one with more.", Profile::Text), 1.0);
/// ```
pub fn score(content: &str, profile: Profile) -> f32 {
    let content = content.trim();
    let mut score = 1.0;
    if is_boilerplate(content) {
        score -= BOILERPLATE_PENALTY;
    }
    if profile.penalises_length() {
        if has_fewer_chars(content, SHORT_CHARS) {
            score -= SHORT_PENALTY;
        }
        if !content.contains('\n') && has_fewer_chars(content, POOR_LINE_CHARS) {
            score -= POOR_STRUCTURE_PENALTY;
        }
    }
    score.max(0.0)
}

fn has_fewer_chars(text: &str, limit: usize) -> bool {
    text.chars().nth(limit - 1).is_none()
}

fn is_boilerplate(content: &str) -> bool {
    let phrase = content.trim().trim_end_matches(['.', '。', '、', ',', ' ', '\t']).trim_start();
    BOILERPLATE.iter().any(|listed| listed.eq_ignore_ascii_case(phrase))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_score(content: &str, profile: Profile, expected: f32) {
        let score = score(content, profile);
        assert!((score - expected).abs() < 1e-5, "{content:?} as {profile:?}: {score}");
    }

    // QUA-01 QUA-03 QUA-04 QUA-05 QUA-08
    #[test]
    fn the_penalties_add_up_as_the_table_says() {
        let short = "x".repeat(29);
        assert_score(&"x".repeat(80), Profile::Text, 1.0);
        assert_score(&format!("{}\n{}", "x".repeat(14), "x".repeat(15)), Profile::Text, 1.0);
        assert_score(&"x".repeat(30), Profile::Text, 0.7);
        assert_score(&"x".repeat(79), Profile::Text, 0.7);
        assert_score("two\nlines", Profile::Text, 0.4);
        assert_score(&short, Profile::Text, 0.1);
        assert_score("", Profile::Text, 0.1);
        assert_score("TODO", Profile::Text, 0.0);
        for profile in [Profile::Binary, Profile::Definition] {
            assert_score("TODO", profile, 0.5);
            for content in ["", "MAXYEAR = 9999", short.as_str()] {
                assert_score(content, profile, 1.0);
            }
        }
    }

    // QUA-02
    #[test]
    fn length_counts_characters_between_the_white_space_around_them() {
        assert_score(&"字".repeat(29), Profile::Text, 0.1);
        assert_score(&"字".repeat(30), Profile::Text, 0.7);
        assert_score(&format!("\n\n {} \n", "x".repeat(29)), Profile::Text, 0.1);
    }

    // QUA-06 QUA-07
    #[test]
    fn the_profile_follows_from_the_format_and_the_definition() {
        assert_eq!(Profile::of(Class::Text, None), Profile::Text);
        assert_eq!(Profile::of(Class::Code, None), Profile::Text);
        assert_eq!(Profile::of(Class::Code, Some("constant")), Profile::Definition);
        assert_eq!(Profile::of(Class::Binary, None), Profile::Binary);
    }

    // QUA-09
    #[test]
    fn boilerplate_is_the_whole_text_without_what_ends_it() {
        for content in ["tbd", " Todo... ", "n/a", "COMING SOON.", "未定。", "WIP 、,\t."] {
            assert_score(content, Profile::Binary, 0.5);
        }
        for content in ["TBD was discussed", "。", "", "- TODO", "TODO!", "(未定)"] {
            assert_score(content, Profile::Binary, 1.0);
        }
    }

    // QUA-10 QUA-11
    #[test]
    fn every_listed_phrase_is_boilerplate() {
        for phrase in "TBD,TODO,WIP,N/A,Coming soon,未定,準備中,(準備中),詳細は後述,\
                       詳細は後述する,ここに書く,後で書く,後述"
            .split(',')
        {
            assert_score(phrase, Profile::Definition, 0.5);
        }
    }

    proptest! {
        // QUA-01 QUA-02
        #[test]
        fn a_score_stays_in_its_range_and_ignores_white_space_around(content in ".{0,100}") {
            for profile in [Profile::Text, Profile::Binary, Profile::Definition] {
                let plain = score(&content, profile);
                prop_assert!((0.0..=1.0).contains(&plain));
                prop_assert_eq!(plain.to_bits(), score(&format!("\n {content}\t\n"), profile).to_bits());
            }
        }
    }
}
