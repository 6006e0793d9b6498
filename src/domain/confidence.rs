//! Confidence: whether the scores of an answer are flat, and how sure its best
//! hit is.

/// How far the best score has to stand out from the mean for an answer to
/// count as sure: finite and not negative, where 0 means that it always does.
///
/// ```
/// use grooveseek::domain::confidence::ConfidenceRatio;
///
/// assert_eq!(ConfidenceRatio::default().value(), 1.5);
/// assert!(ConfidenceRatio::new(-1.0).is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ConfidenceRatio(f64);

/// A number that scores cannot be held against.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the confidence ratio is {value}, it must be a finite number of at least 0")]
pub struct InvalidConfidenceRatio {
    /// What was given.
    pub value: f64,
}

impl ConfidenceRatio {
    /// Checks a ratio.
    ///
    /// # Errors
    ///
    /// [`InvalidConfidenceRatio`] if it is negative or not finite.
    pub fn new(value: f64) -> Result<Self, InvalidConfidenceRatio> {
        if value.is_finite() && value >= 0.0 {
            Ok(Self(value))
        } else {
            Err(InvalidConfidenceRatio { value })
        }
    }

    /// The ratio of a request where a bad one is no reason to refuse it: what is
    /// negative counts as 0, and of what is not finite nothing is made.
    ///
    /// ```
    /// use grooveseek::domain::confidence::ConfidenceRatio;
    ///
    /// assert_eq!(ConfidenceRatio::lenient(-3.0).unwrap().value(), 0.0);
    /// assert_eq!(ConfidenceRatio::lenient(f64::NAN), None);
    /// ```
    pub fn lenient(value: f64) -> Option<Self> {
        Self::new(value.max(0.0)).ok().filter(|_| value.is_finite())
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// The ratio that applies without a configuration, 1.5.
impl Default for ConfidenceRatio {
    fn default() -> Self {
        Self(1.5)
    }
}

/// Whether the best score hardly stands out: there are at least two scores,
/// their mean is above 0, and the greatest is less than `ratio` times the mean.
///
/// - `scores`: those of the hits, in any order.
/// - Returns false for any scores if `ratio` is 0. False says nothing about
///   scores whose mean is not above 0, such as those of a reranker often are.
///
/// ```
/// use grooveseek::domain::confidence::{ConfidenceRatio, low_confidence};
///
/// assert!(low_confidence(&[0.033, 0.032, 0.031], ConfidenceRatio::default()));
/// assert!(!low_confidence(&[0.033, 0.016, 0.016], ConfidenceRatio::default()));
/// ```
pub fn low_confidence(scores: &[f32], ratio: ConfidenceRatio) -> bool {
    if scores.len() < 2 {
        return false;
    }
    let sum: f64 = scores.iter().copied().map(f64::from).sum();
    let max = scores.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "an answer has far fewer hits than 2^53")]
    let mean = sum / scores.len() as f64;
    mean > 0.0 && ratio.0 > 0.0 && max / mean < ratio.0
}

/// Among fewer chunks than this none can stand out far enough to tell anything:
/// of n scores the greatest lies at most √(n − 1) standard deviations above
/// their mean.
pub const FEWEST_CHUNKS: u64 = 50;

/// What speaks for the best hit of an answer, none where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The logit that a reranker gave it: nothing else counts then.
    pub logit: Option<f32>,
    /// By how many standard deviations its cosine similarity with the query lies
    /// above that of any two chunks with one another.
    pub likeness: Option<f32>,
}

/// By so many standard deviations a hit is more like the query than two chunks are
/// like one another, if it is as likely to be an answer as not; and how sharply
/// that divides.
const EVEN: f32 = 2.0;
const SHARPNESS: f32 = 2.0;

/// How sure the best hit of an answer is.
///
/// With a reranker, the logistic function of its logit, which such models are
/// trained to make a probability of. Without one, its similarity to the query is
/// compared with how similar any two chunks of the index are, which differs between
/// models and between collections: the logistic function of `2 (z − 2)`, where `z`
/// is the number of standard deviations by which it lies above their mean.
///
/// - Returns a number from 0 to 1; none where nothing is known of the hit.
///
/// ```
/// use grooveseek::domain::confidence::{Evidence, confidence};
///
/// let sure = Evidence { likeness: Some(4.0), ..Evidence::default() };
/// assert!(confidence(sure).unwrap() > 0.9);
/// let unsure = Evidence { logit: Some(-4.0), ..sure };
/// assert!(confidence(unsure).unwrap() < 0.1);
/// assert_eq!(confidence(Evidence::default()), None);
/// ```
pub fn confidence(evidence: Evidence) -> Option<f32> {
    let Evidence { logit, likeness } = evidence;
    let known = |value: Option<f32>| value.filter(|value| value.is_finite());
    if let Some(logit) = known(logit) {
        return Some(logistic(logit));
    }
    known(likeness).map(|likeness| logistic(SHARPNESS * (likeness - EVEN)))
}

fn logistic(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the rules give exact values")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_low(scores: &[f32], ratio: f64) -> bool {
        low_confidence(scores, ConfidenceRatio::new(ratio).unwrap())
    }

    // SRCH-142
    #[test]
    fn fewer_than_two_hits_are_never_of_low_confidence() {
        assert!(!is_low(&[], 1.5));
        assert!(!is_low(&[0.5], 1e9));
    }

    // SRCH-141
    #[test]
    fn the_greatest_score_is_held_against_the_mean() {
        // 3 / 2 is not below 1.5.
        assert!(!is_low(&[3.0, 1.0, 2.0], 1.5));
        assert!(is_low(&[3.0, 1.0, 2.0], 1.500_001));
        // The greatest is not always the first.
        assert!(!is_low(&[1.0, 9.0], 1.5));
        assert!(is_low(&[1.0, 1.0], 1.5));
    }

    // SRCH-141
    #[test]
    fn a_ratio_of_zero_switches_the_flag_off() {
        assert!(!is_low(&[1.0, 1.0], 0.0));
    }

    // SRCH-141
    #[test]
    fn a_mean_that_is_not_above_zero_says_nothing() {
        assert!(!is_low(&[1.0, -1.0], 1.5));
        assert!(!is_low(&[-2.0, -3.0], 1.5));
        assert!(!is_low(&[0.0, 0.0], 1.5));
        assert!(!is_low(&[f32::NAN, 1.0], 1.5));
    }

    // CFG-72 SRCH-26
    #[test]
    fn a_ratio_is_finite_and_not_negative() {
        for value in [0.0, 1.5, 1e300] {
            assert_eq!(ConfidenceRatio::new(value).unwrap().value(), value);
        }
        for value in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(ConfidenceRatio::new(value).is_err(), "{value}");
        }
    }

    // SRCH-26
    #[test]
    fn a_lenient_ratio_raises_what_is_negative_and_leaves_out_what_is_not_finite() {
        let lenient = |value| ConfidenceRatio::lenient(value).map(ConfidenceRatio::value);
        assert_eq!(lenient(2.0), Some(2.0));
        assert_eq!(lenient(-2.0), Some(0.0));
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(lenient(value), None);
        }
    }

    // SRCH-B16
    #[test]
    fn the_logit_of_a_reranker_is_all_that_counts_where_there_is_one() {
        let evidence = Evidence { logit: Some(0.0), likeness: Some(9.0) };
        assert_eq!(confidence(evidence), Some(0.5));
        assert_eq!(confidence(Evidence { logit: Some(f32::NAN), ..evidence }), {
            confidence(Evidence { logit: None, ..evidence })
        });
    }

    // SRCH-B16
    #[test]
    fn without_a_reranker_likeness_counts() {
        let of = |likeness| confidence(Evidence { logit: None, likeness });
        assert_eq!(of(Some(2.0)), Some(0.5));
        assert!(of(Some(3.5)).unwrap() > 0.9);
        assert!(of(Some(0.5)).unwrap() < 0.1);
        assert_eq!(of(None), None);
        assert_eq!(of(Some(f32::NAN)), None);
    }

    proptest! {
        // SRCH-B16
        #[test]
        fn confidence_lies_between_0_and_1_and_grows_with_the_evidence(
            less in -1e3..1e3_f32,
            more in -1e3..1e3_f32,
        ) {
            let (less, more) = (less.min(more), less.max(more));
            let of = |likeness| {
                confidence(Evidence { likeness: Some(likeness), ..Evidence::default() })
            };
            let (less, more) = (of(less).unwrap(), of(more).unwrap());
            prop_assert!((0.0..=1.0).contains(&less) && less <= more && more <= 1.0);
        }

        // SRCH-141
        #[test]
        fn the_order_of_hits_does_not_matter(
            mut scores in proptest::collection::vec(0_u8..9, 0..6),
            ratio in 0.0..3.0_f64,
        ) {
            let flag = |scores: &[u8]| {
                is_low(&scores.iter().map(|&score| f32::from(score)).collect::<Vec<_>>(), ratio)
            };
            let before = flag(&scores);
            scores.sort_unstable();
            prop_assert_eq!(before, flag(&scores));
        }
    }
}
