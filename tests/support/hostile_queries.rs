//! Queries that nobody in his right mind asks: generated, and the same for the
//! same seed.

#![allow(dead_code, reason = "each user takes a part of it")]

/// A linear congruential generator.
///
/// # Source
///
/// Knuth, "The Art of Computer Programming", volume 2, 3.3.4, with the
/// multiplier of MMIX.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// What queries are made of: operators of the full text, quotes, marks that
/// change direction, control characters, and words among them.
const PIECES: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "NEAR(",
    "NEAR(a b, 5)",
    "near",
    "(",
    ")",
    "*",
    "^",
    ":",
    "content:",
    "{heading content}:",
    "- {context} :",
    "+",
    "\"",
    "\"\"",
    "\"\"\"",
    "-",
    "--",
    "-\"",
    "'",
    "''",
    ";",
    "--;DROP TABLE chunks",
    "%",
    "_",
    "?",
    "\\",
    "\\u0000",
    "/",
    "$1",
    "@x",
    "#",
    "~",
    "`",
    "\u{0}",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{b}",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\n",
    "\r\n",
    "\t",
    " ",
    "   ",
    "\u{3000}",
    "\u{a0}",
    "\u{200b}",
    "\u{200d}",
    "\u{200e}",
    "\u{200f}",
    "\u{202a}",
    "\u{202e}",
    "\u{2066}",
    "\u{2069}",
    "\u{feff}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{10ffff}",
    "\u{e000}",
    "e\u{301}",
    "\u{301}\u{301}\u{301}",
    "ﬃ",
    "İ",
    "ı",
    "ß",
    "ẞ",
    "Ω",
    "👩‍👩‍👧",
    "🏳️‍🌈",
    "𝒜",
    "日本語",
    "再ランキング",
    "の",
    "ｱｲｳ",
    "한국어",
    "עברית",
    "العربية",
    "ไทย",
    "words",
    "password",
    "the",
    "a",
    "ab",
    "abc",
    "x-y_z",
    "v1.2.3",
    "C++",
    "C#",
    "0",
    "-1",
    "1e999",
    "NaN",
    "null",
    "<b>",
    "&amp;",
    "rust -async",
    "-\"exact phrase\"",
    "\"say \"\"hi\"\"\"",
    "-words",
    "𠮷野家",
    "𠮷",
];

/// The most bytes of a query that is taken.
pub(crate) const MOST_BYTES: usize = 1024;

/// The next query; about one in forty is too long.
pub(crate) fn query(draw: &mut Draw) -> String {
    let most = match draw.below(40) {
        0 => MOST_BYTES + 1 + draw.below(2000),
        1..8 => MOST_BYTES,
        _ => 1 + draw.below(120),
    };
    let text = match draw.below(8) {
        0 => repeated(draw.one_of(PIECES), most),
        1 => {
            repeated(draw.one_of(&["a", "-", "\"", "\"\"", " ", "語", "(", "*", "x ", "- "]), most)
        }
        2 => characters(draw, most, 0x00, 0x80),
        3 => characters(draw, most, 0x20, 0x40),
        4 => characters(draw, most, 0x80, 0x3000),
        5 => characters(draw, most, 0x2000, 0x2100),
        _ => pieces(draw, most),
    };
    cut(text, most)
}

fn repeated(piece: &str, most: usize) -> String {
    piece.repeat(most.div_ceil(piece.len()))
}

fn characters(draw: &mut Draw, most: usize, first: u32, end: u32) -> String {
    let mut text = String::new();
    while text.len() < most {
        let number = first + u32::try_from(draw.below((end - first) as usize)).unwrap_or(0);
        text.extend(char::from_u32(number));
    }
    text
}

fn pieces(draw: &mut Draw, most: usize) -> String {
    let mut text = String::new();
    while text.len() < most {
        text.push_str(draw.one_of(PIECES));
        if draw.below(2) == 0 {
            text.push(' ');
        }
    }
    text
}

/// At most so many bytes, of whole characters.
fn cut(mut text: String, most: usize) -> String {
    text.truncate(text.floor_char_boundary(most));
    text
}
