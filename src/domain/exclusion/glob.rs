//! One segment of a pattern: `*`, `?`, `[a-z]`, compared without case.

use std::str::Chars;

/// Characters between slashes, as a pattern writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// This character, folded.
    Literal(char),
    /// Any one character.
    Any,
    /// Any number of characters, none included.
    Run,
    /// One character out of these ranges, or one outside of all of them.
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// Why a line of an ignore file is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// A `[` without its `]` in the same segment.
    #[error("a `[` is not closed")]
    UnclosedClass,
    /// A range whose end comes before its start.
    #[error("the range `{start}-{end}` runs backwards")]
    ReversedRange {
        /// The character before the dash.
        start: char,
        /// The character after it.
        end: char,
    },
    /// A `[:name:]` that is not one of the POSIX classes.
    #[error("`[:…:]` names no known class of characters")]
    UnknownClass,
    /// A backslash with nothing behind it.
    #[error("the backslash at its end escapes nothing")]
    DanglingEscape,
}

/// The POSIX classes that gitignore knows, over ASCII.
const POSIX_CLASSES: &[(&str, &[(char, char)])] = &[
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\u{1F}'), ('\u{7F}', '\u{7F}')]),
    ("digit", &[('0', '9')]),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// Characters that are equal but for their case become the same.
///
/// The Unicode lowercase mapping, with the final sigma made an ordinary one.
/// It is not full case folding (`ß` stays apart from `ss`), and it normalises
/// nothing (a combining mark stays apart from a precomposed letter).
pub(super) fn folded(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().flat_map(fold)
}

fn fold(character: char) -> impl Iterator<Item = char> {
    character.to_lowercase().map(|lower| if lower == 'ς' { 'σ' } else { lower })
}

impl Glob {
    /// Reads one segment, in which a backslash takes the next character as it is.
    pub(super) fn parse(segment: &str) -> Result<Self, InvalidPattern> {
        let mut tokens = Vec::new();
        let mut rest = segment.chars();
        while let Some(character) = rest.next() {
            match character {
                '*' if tokens.last() == Some(&Token::Run) => {}
                '*' => tokens.push(Token::Run),
                '?' => tokens.push(Token::Any),
                '[' => tokens.push(parse_class(&mut rest)?),
                '\\' => {
                    let escaped = rest.next().ok_or(InvalidPattern::DanglingEscape)?;
                    tokens.extend(fold(escaped).map(Token::Literal));
                }
                literal => tokens.extend(fold(literal).map(Token::Literal)),
            }
        }
        Ok(Self(tokens))
    }

    /// Matches whatever a segment holds.
    pub(super) fn anything() -> Self {
        Self(vec![Token::Run])
    }

    /// Tells whether a whole segment, already folded, fits.
    pub(super) fn matches(&self, segment: &[char]) -> bool {
        let is_run = |token: &Token| *token == Token::Run;
        wildcard(&self.0, segment, is_run, |token, character| token.matches(*character))
    }
}

impl Token {
    fn matches(&self, character: char) -> bool {
        match self {
            Self::Literal(literal) => *literal == character,
            Self::Any | Self::Run => true,
            Self::Class { negated, ranges } => {
                let inside =
                    |wanted: char| ranges.iter().any(|&(low, high)| (low..=high).contains(&wanted));
                let mut uppercase = character.to_uppercase();
                let upper = match (uppercase.next(), uppercase.next()) {
                    (Some(upper), None) => upper,
                    _ => character,
                };
                let is_final_sigma = character == 'σ' && inside('ς');
                (inside(character) || inside(upper) || is_final_sigma) != *negated
            }
        }
    }
}

/// Reads what follows a `[`, its `]` included.
fn parse_class(rest: &mut Chars<'_>) -> Result<Token, InvalidPattern> {
    let negated = skip(rest, "!") || skip(rest, "^");
    let mut ranges = Vec::new();
    loop {
        if let Some(class) = parse_posix_class(rest)? {
            ranges.extend_from_slice(class);
        } else {
            let low = parse_class_character(rest)?;
            let is_range = rest.as_str().starts_with('-') && !rest.as_str().starts_with("-]");
            let high = if is_range && skip(rest, "-") { parse_class_character(rest)? } else { low };
            if high < low {
                return Err(InvalidPattern::ReversedRange { start: low, end: high });
            }
            ranges.push((low, high));
        }
        // Only now, because a bracket at the start of a class is one of its characters.
        if skip(rest, "]") {
            return Ok(Token::Class { negated, ranges });
        }
    }
}

fn parse_class_character(rest: &mut Chars<'_>) -> Result<char, InvalidPattern> {
    match rest.next() {
        Some('\\') => rest.next(),
        other => other,
    }
    .ok_or(InvalidPattern::UnclosedClass)
}

/// Reads `[:name:]`; without the `:]` the bracket is an ordinary character.
fn parse_posix_class(
    rest: &mut Chars<'_>,
) -> Result<Option<&'static [(char, char)]>, InvalidPattern> {
    let Some((body, after)) =
        rest.as_str().strip_prefix("[:").and_then(|text| text.split_once(']'))
    else {
        return Ok(None);
    };
    let Some(name) = body.strip_suffix(':') else { return Ok(None) };
    *rest = after.chars();
    match POSIX_CLASSES.iter().find(|(known, _)| *known == name) {
        Some((_, ranges)) => Ok(Some(ranges)),
        None => Err(InvalidPattern::UnknownClass),
    }
}

fn skip(rest: &mut Chars<'_>, prefix: &str) -> bool {
    let after = rest.as_str().strip_prefix(prefix);
    if let Some(after) = after {
        *rest = after.chars();
    }
    after.is_some()
}

/// Matches a pattern in which some items stand for any run of text.
///
/// What follows the last run has to be at the end of the text, so it is compared
/// first. After that, whatever the latest run took over is all that ever has to
/// be tried again, so the time is at most the product of both lengths.
pub(super) fn wildcard<Item, Part>(
    mut pattern: &[Item],
    mut text: &[Part],
    is_run: impl Fn(&Item) -> bool,
    matches: impl Fn(&Item, &Part) -> bool,
) -> bool {
    while let Some((item, items_before)) = pattern.split_last().filter(|(last, _)| !is_run(last)) {
        match text.split_last() {
            Some((part, parts_before)) if matches(item, part) => text = parts_before,
            _ => return false,
        }
        pattern = items_before;
    }
    let (mut item, mut part) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while part < text.len() {
        match pattern.get(item) {
            Some(run) if is_run(run) => {
                retry = Some((item + 1, part));
                item += 1;
            }
            Some(one) if matches(one, &text[part]) => {
                item += 1;
                part += 1;
            }
            _ => {
                let Some((after_run, taken)) = retry else { return false };
                retry = Some((after_run, taken + 1));
                (item, part) = (after_run, taken + 1);
            }
        }
    }
    pattern[item..].iter().all(is_run)
}
