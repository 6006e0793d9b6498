//! Halves of surrogate pairs in JSON.

use std::borrow::Cow;

/// What stands in for half of a pair: the replacement character.
const REPLACEMENT: &[u8] = br"\ufffd";

/// Replaces every half of a surrogate pair that is escaped without its other
/// half, as programs write it that cut a text in the middle of a character. No
/// text can hold it, and nothing else in the message is the worse for it.
///
/// - `json`: a JSON text, or something else, which is then none afterwards
///   either.
pub(in crate::adapters::transport) fn mended(json: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Vec::new();
    let (mut kept, mut place) = (0, 0);
    while let Some(offset) = json[place..].iter().position(|&byte| byte == b'\\') {
        place += offset;
        let half = escaped(&json[place..]);
        match half {
            // A backslash that is escaped itself, or anything else of one character.
            None => place += 2,
            Some(0xd800..0xdc00) if matches!(escaped(&json[place + 6..]), Some(0xdc00..0xe000)) => {
                place += 12;
            }
            Some(0xd800..0xe000) => {
                mended.extend_from_slice(&json[kept..place]);
                mended.extend_from_slice(REPLACEMENT);
                place += 6;
                kept = place;
            }
            Some(_) => place += 6,
        }
        place = place.min(json.len());
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    mended.extend_from_slice(&json[kept..]);
    Cow::Owned(mended)
}

/// The number of an escape `\uXXXX` at the beginning.
fn escaped(json: &[u8]) -> Option<u32> {
    let digits = json.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, &digit| Some(number * 16 + char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::*;

    fn text(json: &str) -> Option<String> {
        serde_json::from_slice(&mended(json.as_bytes())).ok()
    }

    #[test]
    fn a_half_becomes_the_replacement_character_and_a_pair_stays() {
        for (json, expected) in [
            (r#""a \ud800""#, "a \u{fffd}"),
            (r#""\uDFFF b""#, "\u{fffd} b"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00\ude00""#, "\u{fffd}\u{1f600}\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\\ud800 \\\ud800""#, "\\ud800 \\\u{fffd}"),
            (r#""plain \n \" text""#, "plain \n \" text"),
        ] {
            assert_eq!(text(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for json in [r#""\ud8""#, r#""\ud800"#, "\\", r"\u", r#""\x\ud800""#, r#""\ud800\"#] {
            assert_eq!(text(json), None, "{json}");
        }
    }

    proptest! {
        #[test]
        fn what_was_fine_is_left_alone(value in ".*", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let json = serde_json::to_string(&value).unwrap();
            prop_assert_eq!(text(&json), Some(value));
            drop(mended(&bytes));
        }
    }
}
