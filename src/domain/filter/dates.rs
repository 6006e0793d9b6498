//! Telling bounds that compare well from those that do not.

/// Whether a text has the form `YYYY-MM-DD` or that of RFC 3339. Only the
/// form counts, and that each number is in its range; whether a month has a
/// 31st day is not asked.
pub(super) fn looks_like_a_date(text: &str) -> bool {
    let Some(after_date) = date(text.as_bytes()) else { return false };
    match after_date {
        [] => true,
        [b'T' | b't' | b' ', rest @ ..] => {
            time(rest).and_then(offset).is_some_and(<[u8]>::is_empty)
        }
        _ => false,
    }
}

fn date(text: &[u8]) -> Option<&[u8]> {
    let (_year, text) = number(text, 4, 0..=9999)?;
    let (_month, text) = number(text.strip_prefix(b"-")?, 2, 1..=12)?;
    let (_day, text) = number(text.strip_prefix(b"-")?, 2, 1..=31)?;
    Some(text)
}

fn time(text: &[u8]) -> Option<&[u8]> {
    let (_hour, text) = number(text, 2, 0..=23)?;
    let (_minute, text) = number(text.strip_prefix(b":")?, 2, 0..=59)?;
    let (_second, text) = number(text.strip_prefix(b":")?, 2, 0..=60)?;
    let Some(fraction) = text.strip_prefix(b".") else { return Some(text) };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &fraction[digits..])
}

fn offset(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'Z' | b'z', rest @ ..] => Some(rest),
        [b'+' | b'-', rest @ ..] => {
            let (_hours, rest) = number(rest, 2, 0..=23)?;
            let (_minutes, rest) = number(rest.strip_prefix(b":")?, 2, 0..=59)?;
            Some(rest)
        }
        _ => None,
    }
}

fn number(
    text: &[u8],
    digits: usize,
    range: std::ops::RangeInclusive<u32>,
) -> Option<(u32, &[u8])> {
    let (head, rest) = text.split_at_checked(digits)?;
    let value = head.iter().try_fold(0, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + u32::from(byte - b'0'))
    })?;
    range.contains(&value).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    // SRCH-B10
    #[test]
    fn dates_and_times_of_the_two_forms_are_recognised() {
        for text in [
            "2026-04-30",
            "2026-04-26T12:00:00Z",
            "2026-04-26t12:00:00.25+09:00",
            "2026-04-26 12:00:00-00:00",
        ] {
            assert!(looks_like_a_date(text), "{text}");
        }
    }

    // SRCH-B10
    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            "2026",
            "2026-4-1",
            "2026-13-01",
            "2026-00-01",
            "2026-04-32",
            "2026/04/30",
            " 2026-04-30",
            "2026-04-30T",
            "2026-04-26T12:00Z",
            "2026-04-26T24:00:00Z",
            "2026-04-26T12:00:00",
            "2026-04-26T12:00:00.Z",
            "2026-04-26 12:00:00 +0900",
            "2026-04-26T12:00:00Zx",
            "last week",
            "２０２６-04-30",
        ] {
            assert!(!looks_like_a_date(text), "{text}");
        }
    }
}
