//! From the bytes of a text file to its text.

mod evidence;

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    EUC_JP, Encoding, GB18030, GBK, SHIFT_JIS, UTF_16BE, UTF_16LE, WINDOWS_1250, WINDOWS_1251,
    WINDOWS_1252, WINDOWS_1253, WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257,
    WINDOWS_1258,
};

use crate::adapters::parser::decode::evidence::{Script, is_damaged_utf8, is_text, speaks_for};
use crate::ports::parser::ParseError;

/// A text, and what it was encoded in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decoded<'a> {
    /// The text. Of UTF-8 it is the bytes themselves, a byte order mark
    /// included; of UTF-16 the mark is left out.
    pub(super) text: Cow<'a, str>,
    /// What it was encoded in, unless that is UTF-8.
    encoding: Option<&'static Encoding>,
}

impl Decoded<'_> {
    /// The tag of a document that is not in UTF-8: `encoding:` and the WHATWG
    /// name in lower case.
    pub(super) fn tag(&self) -> Option<String> {
        self.encoding.map(|encoding| format!("encoding:{}", encoding.name().to_ascii_lowercase()))
    }
}

/// Decodes the bytes of a text file.
///
/// What is valid UTF-8 is UTF-8. What begins with a byte order mark of UTF-16 is
/// UTF-16. Anything else is taken for `Shift_JIS`, EUC-JP, GB18030 or one of
/// windows-1250 to 1258 if all of it can be decoded so and the text speaks for
/// it; a text that is short or mixed does not, and neither does damaged UTF-8.
///
/// # Errors
///
/// [`ParseError::NotUtf8`], and [`ParseError::Unreadable`] for bytes that have
/// the mark of UTF-16 and are none.
pub(super) fn decode(bytes: &[u8]) -> Result<Decoded<'_>, ParseError> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(Decoded { text: Cow::Borrowed(text), encoding: None }),
        Err(error) => error,
    };
    if let Some((encoding, rest)) = after_utf16_mark(bytes) {
        let text = strictly(encoding, rest).filter(|text| is_text(text));
        return text.map(|text| decoded(text, encoding)).ok_or_else(|| ParseError::Unreadable {
            reason: "it begins like UTF-16 and cannot be read as that; save it as UTF-8".to_owned(),
        });
    }
    match legacy(bytes) {
        Some((text, encoding)) => Ok(decoded(text, encoding)),
        None => Err(ParseError::NotUtf8 { offset: error.valid_up_to() }),
    }
}

fn decoded(text: String, encoding: &'static Encoding) -> Decoded<'static> {
    Decoded { text: Cow::Owned(text), encoding: Some(encoding) }
}

fn after_utf16_mark(bytes: &[u8]) -> Option<(&'static Encoding, &[u8])> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => Some((UTF_16LE, rest)),
        [0xFE, 0xFF, rest @ ..] => Some((UTF_16BE, rest)),
        _ => None,
    }
}

fn strictly(encoding: &'static Encoding, bytes: &[u8]) -> Option<String> {
    encoding.decode_without_bom_handling_and_without_replacement(bytes).map(Cow::into_owned)
}

fn legacy(bytes: &[u8]) -> Option<(String, &'static Encoding)> {
    // In all of these encodings a control is a byte of its own.
    if bytes
        .iter()
        .any(|byte| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0xC))
    {
        return None;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    // GB18030 reads all that GBK does.
    let encoding = if guess == GBK { GB18030 } else { guess };
    let script = script_of(encoding)?;
    if is_damaged_utf8(script, bytes) {
        return None;
    }
    let text = strictly(encoding, bytes)?;
    (is_text(&text) && speaks_for(script, &text, bytes)).then_some((text, encoding))
}

/// What a text in an encoding is written in; nothing if it is not detected.
fn script_of(encoding: &'static Encoding) -> Option<Script> {
    let latin = [WINDOWS_1250, WINDOWS_1252, WINDOWS_1254, WINDOWS_1257, WINDOWS_1258];
    let scripts = [
        (SHIFT_JIS, Script::Japanese),
        (EUC_JP, Script::Japanese),
        (GB18030, Script::Chinese),
        (WINDOWS_1251, Script::Cyrillic),
        (WINDOWS_1253, Script::Greek),
        (WINDOWS_1255, Script::Hebrew),
        (WINDOWS_1256, Script::Arabic),
    ];
    if latin.contains(&encoding) {
        return Some(Script::Latin);
    }
    scripts.into_iter().find(|(known, _)| *known == encoding).map(|(_, script)| script)
}

#[cfg(test)]
mod tests;
