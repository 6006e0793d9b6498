//! Signals: what a score takes into account only when it is asked to.

/// Which further signals a score takes into account; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// `cjk_width`: an ideograph, a kana or a Hangul syllable counts as two
    /// characters, because it says as much.
    pub cjk_width: bool,
    /// `heading`: a heading is a line of its own above the content, unless the
    /// content is empty or boilerplate.
    pub heading: bool,
    /// `mojibake`: text of which 5 % or more could not be decoded loses 0.8.
    pub mojibake: bool,
}

/// A name that is no signal's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no signal; there are {}", Signals::NAMES.join(", "))]
pub struct UnknownSignal {
    /// The name.
    pub name: String,
}

impl Signals {
    /// The name of every signal.
    pub const NAMES: [&'static str; 3] = ["cjk_width", "heading", "mojibake"];

    /// The signals of these names, in any order; a name may stand twice.
    ///
    /// # Errors
    ///
    /// [`UnknownSignal`] with the first name that is none of
    /// [`NAMES`](Self::NAMES).
    ///
    /// ```
    /// use grooveseek::domain::quality::Signals;
    ///
    /// let signals = Signals::from_names(&["heading"]).unwrap();
    /// assert!(signals.heading && !signals.mojibake);
    /// assert!(Signals::from_names(&["headings"]).is_err());
    /// ```
    pub fn from_names<Name: AsRef<str>>(names: &[Name]) -> Result<Self, UnknownSignal> {
        let mut signals = Self::default();
        for name in names.iter().map(AsRef::as_ref) {
            match name {
                "cjk_width" => signals.cjk_width = true,
                "heading" => signals.heading = true,
                "mojibake" => signals.mojibake = true,
                _ => return Err(UnknownSignal { name: name.to_owned() }),
            }
        }
        Ok(signals)
    }

    /// The names of the signals that are on, in alphabetical order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let on = [self.cjk_width, self.heading, self.mojibake];
        Self::NAMES.into_iter().zip(on).filter_map(|(name, on)| on.then_some(name))
    }
}

/// How many characters a character counts as.
pub(super) fn width(character: char) -> usize {
    let wide = matches!(
        u32::from(character),
        0x1100..=0x11FF
            | 0x2E80..=0x2FDF
            | 0x3005..=0x3007
            | 0x3040..=0x30FF
            | 0x3105..=0x312F
            | 0x3130..=0x318F
            | 0x31A0..=0x31BF
            | 0x31F0..=0x31FF
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xA960..=0xA97F
            | 0xAC00..=0xD7FF
            | 0xF900..=0xFAFF
            | 0xFF66..=0xFF9F
            | 0x1B000..=0x1B16F
            | 0x20000..=0x3FFFF
    );
    if wide { 2 } else { 1 }
}

/// Tells whether 5 % or more of a text are replacement characters or C1
/// controls, which is what a wrong encoding leaves behind.
pub(super) fn is_mojibake(text: &str) -> bool {
    let suspect =
        text.chars().filter(|character| matches!(character, '\u{FFFD}' | '\u{80}'..='\u{9F}'));
    let suspect = suspect.count();
    suspect > 0 && suspect * 20 >= text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_that_are_read() {
        assert_eq!(Signals::from_names::<&str>(&[]), Ok(Signals::default()));
        let all = Signals::from_names(&Signals::NAMES).unwrap();
        assert_eq!(all, Signals { cjk_width: true, heading: true, mojibake: true });
        assert!(all.names().eq(Signals::NAMES));
        let one = Signals::from_names(&["mojibake", "mojibake"]).unwrap();
        assert!(one.names().eq(["mojibake"]));
        let message = Signals::from_names(&["mojibak"]).unwrap_err().to_string();
        assert!(
            message.contains("\"mojibak\"") && message.contains("cjk_width, heading, mojibake")
        );
    }

    // QUA-B04
    #[test]
    fn ideographs_kana_and_hangul_are_wide_and_punctuation_is_not() {
        for wide in "語あアｱ한ㄅ々𠮷".chars() {
            assert_eq!(width(wide), 2, "{wide}");
        }
        for narrow in "aéя。「Ａ…😀".chars() {
            assert_eq!(width(narrow), 1, "{narrow}");
        }
    }

    // QUA-B08
    #[test]
    fn a_twentieth_that_was_not_decoded_is_mojibake() {
        assert!(is_mojibake(&format!("{}\u{FFFD}", "x".repeat(19))));
        assert!(is_mojibake(&format!("{}\u{9D}", "x".repeat(19))));
        assert!(!is_mojibake(&format!("{}\u{FFFD}", "x".repeat(20))));
        assert!(!is_mojibake("\u{A0}é"));
        assert!(!is_mojibake(""));
    }
}
