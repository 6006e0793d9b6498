//! How long to wait before another attempt.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use jiff::fmt::rfc2822;

/// The longest wait, of ours and of what an endpoint may ask for.
const LONGEST: Duration = Duration::from_mins(1);

/// Works out waits.
pub(super) struct Wait;

impl Wait {
    /// How long to wait after so many attempts; none if the endpoint asks for
    /// more than a minute.
    ///
    /// Without a wish of the endpoint: 1, 2, 4 … seconds up to a minute, and
    /// less than a quarter of it more, so that those who failed together do not
    /// come back together.
    ///
    /// - `attempts`: how many were made, from 1.
    pub(super) fn before_attempt(attempts: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if let Some(wish) = retry_after {
            return (wish <= LONGEST).then_some(wish);
        }
        let base = Duration::from_secs(1 << (attempts - 1).min(6)).min(LONGEST);
        Some(base + base.mul_f64(random() / 4.0))
    }

    /// Reads `Retry-After`: seconds, or a date of HTTP. What is neither says
    /// nothing.
    pub(super) fn read(value: &str, now: SystemTime) -> Option<Duration> {
        let value = value.trim();
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
        }
        let then = rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let then = Duration::from_secs(u64::try_from(then.as_second()).unwrap_or(0));
        Some(then.saturating_sub(now))
    }
}

/// A number from 0 to 1, 1 excluded; good enough to spread attempts.
fn random() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 12;
    f64::from_bits(0x3FF0_0000_0000_0000 | bits) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-169
    #[test]
    fn waits_double_up_to_a_minute_and_are_spread() {
        for (attempts, seconds) in [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (11, 60)] {
            let base = Duration::from_secs(seconds);
            let waits: Vec<Duration> =
                (0..64).map(|_| Wait::before_attempt(attempts, None).unwrap()).collect();
            assert!(waits.iter().all(|wait| (base..base * 5 / 4).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }

    // IDX-169
    #[test]
    fn a_wish_is_kept_exactly_unless_it_is_too_long() {
        let seconds = Duration::from_secs;
        assert_eq!(Wait::before_attempt(3, Some(seconds(7))), Some(seconds(7)));
        assert_eq!(Wait::before_attempt(3, Some(seconds(0))), Some(seconds(0)));
        assert_eq!(Wait::before_attempt(1, Some(seconds(60))), Some(seconds(60)));
        assert_eq!(Wait::before_attempt(1, Some(seconds(61))), None);
    }

    // IDX-169
    #[test]
    fn a_wish_is_a_number_of_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (text, expected) in [
            ("12", Some(12)),
            (" 0 ", Some(0)),
            ("99999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
            ("soon", None),
            ("-3", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(Wait::read(text, now), expected.map(Duration::from_secs), "{text:?}");
        }
    }
}
