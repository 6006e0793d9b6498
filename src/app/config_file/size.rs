//! Sizes as people write them: `"80 MiB"`, `"unlimited"`.

/// The units, each with the bytes that it stands for.
const UNITS: [(&str, u64); 9] = [
    ("b", 1),
    ("kb", 1000),
    ("mb", 1000_u64.pow(2)),
    ("gb", 1000_u64.pow(3)),
    ("tb", 1000_u64.pow(4)),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// What is accepted, in words.
pub(super) const ACCEPTED: &str = "a whole number of bytes from 1 up, a whole number with one of \
     the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, or \"unlimited\"";

/// Said of a zero in addition to [`ACCEPTED`].
pub(super) const ZERO: &str = " (0 admits nothing; to lift the limit write \"unlimited\")";

/// Reads a size.
///
/// - Returns bytes, at least 1, or none for `unlimited`.
///
/// # Errors
///
/// What would have been accepted, in words.
pub(super) fn parse(text: &str) -> Result<Option<u64>, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let size = number.parse::<u64>().ok().zip(factor).and_then(|(n, factor)| n.checked_mul(factor));
    match size {
        Some(0) => Err(format!("{ACCEPTED}{ZERO}")),
        Some(bytes) => Ok(Some(bytes)),
        None if number.parse() == Ok(0_u64) && unit.is_empty() => Err(format!("{ACCEPTED}{ZERO}")),
        None => Err(ACCEPTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CFG-69d
    #[test]
    fn a_size_is_a_whole_number_with_a_unit_in_any_case() {
        for (text, bytes) in [
            ("1 B", 1),
            ("2KB", 2000),
            ("3 mb", 3_000_000),
            ("1 GB", 1_000_000_000),
            ("1 TB", 1_000_000_000_000),
            ("4 KiB", 4096),
            ("80 MIB", 80 << 20),
            ("2gib", 2 << 30),
            ("1 TiB", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(Some(bytes)), "{text}");
        }
        assert_eq!(parse("Unlimited"), Ok(None));
    }

    // CFG-69d
    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "1", "1.5 MiB", "-1 MB", "+1 MB", "1 PB", "MB", "lots", "1 MB 2", "99999999999 TB"]
        {
            assert_eq!(parse(text), Err(ACCEPTED.to_owned()), "{text}");
        }
    }

    // CFG-69d
    #[test]
    fn a_zero_points_at_the_word_for_no_limit() {
        for text in ["0", "0 B", "0MiB"] {
            assert!(parse(text).unwrap_err().contains("write \"unlimited\""), "{text}");
        }
    }
}
