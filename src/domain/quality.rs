//! Quality: how much a chunk is worth finding, from 0 to 1.

mod boilerplate;
mod signals;

pub use boilerplate::normalised;
pub use signals::{Signals, UnknownSignal};

use crate::domain::format::{Class, SUPPORTED};

/// Raised whenever a built-in rule changes a score.
const VERSION: u32 = 2;

/// Characters below which a text is short.
const SHORT_CHARS: usize = 30;
/// Characters below which a single line is poor.
const POOR_LINE_CHARS: usize = 80;

/// Extensions of binary formats, be their parsers part of this build or not.
const BINARY_EXTENSIONS: [&str; 4] = ["pdf", "docx", "xlsx", "pptx"];

/// Which penalties apply to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Prose, and source code outside definitions: every penalty.
    Text,
    /// A page, sheet, slide or section of a binary format, whose shortness is
    /// the shape of the format: none for length.
    Binary,
    /// A definition in source code, which is complete however short: none for
    /// length.
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

    /// The profile of a stored chunk, by the extension of its document alone:
    /// which parsers are switched on plays no part.
    ///
    /// - `extension`: without the dot, in any case.
    /// - `symbol_kind`: as in [`of`](Self::of). A definition is one whatever
    ///   the language is, because its grammar may have been a plugin.
    ///
    /// ```
    /// use grooveseek::domain::quality::Profile;
    ///
    /// assert_eq!(Profile::of_extension("PDF", None), Profile::Binary);
    /// assert_eq!(Profile::of_extension("md", None), Profile::Text);
    /// assert_eq!(Profile::of_extension("zig", Some("function")), Profile::Definition);
    /// ```
    pub fn of_extension(extension: &str, symbol_kind: Option<&str>) -> Self {
        let known =
            SUPPORTED.iter().find(|format| format.extension.eq_ignore_ascii_case(extension));
        let binary = match known {
            Some(format) => format.class == Class::Binary,
            None => BINARY_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension)),
        };
        match (binary, symbol_kind) {
            (true, _) => Self::Binary,
            (false, Some(_)) => Self::Definition,
            (false, None) => Self::Text,
        }
    }

    fn penalises_length(self) -> bool {
        self == Self::Text
    }
}

/// A reason for which a chunk scores less than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Penalty {
    /// Boilerplate and nothing else.
    Boilerplate,
    /// Shorter than 30 characters.
    Length,
    /// A single line of fewer than 80 characters.
    Structure,
    /// 5 % or more of the text could not be decoded.
    Mojibake,
}

impl Penalty {
    /// Every penalty, in the order in which they are subtracted.
    pub const ALL: [Self; 4] = [Self::Boilerplate, Self::Length, Self::Structure, Self::Mojibake];

    /// How much of the score it costs, from 0 to 1.
    pub fn amount(self) -> f32 {
        match self {
            Self::Boilerplate => 0.5,
            Self::Length => 0.6,
            Self::Structure => 0.3,
            Self::Mojibake => 0.8,
        }
    }

    /// Its name, one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Boilerplate => "boilerplate",
            Self::Length => "length",
            Self::Structure => "structure",
            Self::Mojibake => "mojibake",
        }
    }
}

/// What a score goes by. The default is the standard rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Signals besides the standard ones.
    pub signals: Signals,
    /// Phrases that are boilerplate besides the built-in ones, compared as
    /// [`normalised`] has them.
    pub extra_boilerplate: Vec<String>,
}

impl Rules {
    /// Scores a chunk.
    ///
    /// The score starts at 1 and loses 0.6 if the content is shorter than 30
    /// characters, 0.5 if it is boilerplate and nothing else, and 0.3 if it is
    /// a single line of fewer than 80 characters; how far [`Signals`] change
    /// that, they say themselves. Context and tags play no part.
    ///
    /// - `content`: any text; white space around it does not count. Lengths
    ///   are in characters, not in bytes.
    /// - `heading`: of the chunk; it counts with [`Signals::heading`] alone.
    /// - Returns 0 to 1, both included; equal to 1 if nothing was found
    ///   wanting.
    ///
    /// ```
    /// use grooveseek::domain::quality::{Profile, Rules};
    ///
    /// let rules = Rules::default();
    /// assert_eq!(rules.score("TBD", None, Profile::Text), 0.0);
    /// assert_eq!(rules.score("TBD", None, Profile::Definition), 0.5);
    ///
    /// let lines = "A first line.\nAnd a second one with more.";
    /// assert_eq!(rules.score(lines, None, Profile::Text), 1.0);
    /// ```
    pub fn score(&self, content: &str, heading: Option<&str>, profile: Profile) -> f32 {
        let penalties = self.explain(content, heading, profile);
        penalties.iter().fold(1.0, |score: f32, penalty| score - penalty.amount()).max(0.0)
    }

    /// Tells what lowers the score of a chunk, each penalty once and in the
    /// order of [`Penalty::ALL`]; nothing if it is 1. The arguments are those
    /// of [`score`](Self::score).
    ///
    /// ```
    /// use grooveseek::domain::quality::{Penalty, Profile, Rules};
    ///
    /// let penalties = Rules::default().explain("port: 3100", Some("Port"), Profile::Text);
    /// assert_eq!(penalties, [Penalty::Length, Penalty::Structure]);
    /// ```
    pub fn explain(&self, content: &str, heading: Option<&str>, profile: Profile) -> Vec<Penalty> {
        let content = content.trim();
        let mut penalties = Vec::new();
        let boilerplate = boilerplate::is_boilerplate(content, &self.extra_boilerplate);
        if boilerplate {
            penalties.push(Penalty::Boilerplate);
        }
        if profile.penalises_length() {
            let counts = self.signals.heading && !boilerplate && !content.is_empty();
            let heading = heading.map(str::trim).filter(|_| counts).unwrap_or_default();
            if self.is_shorter(content, heading, SHORT_CHARS) {
                penalties.push(Penalty::Length);
            }
            let single_line = heading.is_empty() && !content.contains('\n');
            if single_line && self.is_shorter(content, heading, POOR_LINE_CHARS) {
                penalties.push(Penalty::Structure);
            }
        }
        if self.signals.mojibake && signals::is_mojibake(content) {
            penalties.push(Penalty::Mojibake);
        }
        penalties
    }

    /// A short text that differs from that of other rules whenever any score
    /// could, in one version of the program or in two. It is letters, digits
    /// and hyphens.
    ///
    /// ```
    /// use grooveseek::domain::quality::{Rules, Signals};
    ///
    /// let heading = Signals { heading: true, ..Signals::default() };
    /// let rules = Rules { signals: heading, ..Rules::default() };
    /// assert_ne!(rules.generation(), Rules::default().generation());
    /// ```
    ///
    /// # Source
    ///
    /// The digest is 64-bit FNV-1a: Fowler, Noll, Vo, Eastlake and Hansen, "The
    /// FNV Non-Cryptographic Hash Algorithm", IETF draft, 2012.
    pub fn generation(&self) -> String {
        let mut phrases: Vec<String> =
            self.extra_boilerplate.iter().map(|phrase| normalised(phrase)).collect();
        phrases.retain(|phrase| !phrase.is_empty());
        phrases.sort_unstable();
        phrases.dedup();
        // No text in UTF-8 holds these two bytes.
        let names = self.signals.names().flat_map(|name| name.bytes().chain([0xFE]));
        let phrases = phrases.iter().flat_map(|phrase| phrase.bytes().chain([0xFF]));
        let digest = names.chain(phrases).fold(0xCBF2_9CE4_8422_2325_u64, |digest, byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        format!("{VERSION}-{digest:016x}")
    }

    /// Tells whether a content and its heading come to less than `limit`.
    fn is_shorter(&self, content: &str, heading: &str, limit: usize) -> bool {
        let width = |character| if self.signals.cjk_width { signals::width(character) } else { 1 };
        let mut length = 0;
        !heading.chars().chain(content.chars()).any(|character| {
            length += width(character);
            length >= limit
        })
    }
}

#[cfg(test)]
mod tests;
