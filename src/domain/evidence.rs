//! How much each leg of a search has to say about a query.
//!
//! A leg always ranks something first. Whether that means anything shows in how
//! far its best score stands out from those of all chunks: a model that does not
//! know a query's language puts every chunk at about the same distance, and words
//! that stand everywhere tell no chunk from another.

/// How the scores of all chunks are spread for one query.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
}

impl Spread {
    /// Of some scores; none if there are fewer than two.
    pub fn of(scores: &[f32]) -> Option<Self> {
        if scores.len() < 2 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a sample is small")]
        let count = scores.len() as f64;
        let mean = scores.iter().copied().map(f64::from).sum::<f64>() / count;
        let square =
            scores.iter().map(|&score| (f64::from(score) - mean).powi(2)).sum::<f64>() / count;
        #[expect(clippy::cast_possible_truncation, reason = "a judgement needs no more digits")]
        let spread = Self { mean: mean as f32, deviation: square.sqrt() as f32 };
        Some(spread)
    }

    /// By how many standard deviations a score stands out; 0 if all scores are
    /// the same.
    pub fn standing(&self, score: f32) -> f32 {
        if self.deviation > 0.0 { (score - self.mean) / self.deviation } else { 0.0 }
    }
}

/// What a leg proposes, best first, and how the scores of all chunks are spread.
#[derive(Clone, Copy, Debug)]
pub struct Testimony<'a, Id> {
    /// Its candidates with their scores.
    pub candidates: &'a [(Id, f32)],
    /// None where that is not known: the leg is then believed.
    pub spread: Option<Spread>,
}

/// Which legs count for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both.
    Both {
        /// How many candidates of the lexical leg: those after them match too
        /// little of the query.
        lexical: usize,
    },
    /// Only the dense leg.
    Dense,
    /// Only the lexical leg.
    Lexical,
}

/// A lexical candidate counts beside the dense leg with this share of the best
/// score at least.
const HEAD: f32 = 0.5;

/// From here on the dense leg is sure of its best candidate.
const DENSE_IS_SURE: f32 = 4.0;

/// From here on it is so sure that it is never left out.
const DENSE_IS_CERTAIN: f32 = 5.0;

/// The lexical leg's best stands out by this many times as much as the dense
/// leg's: less, and words say little; more, and the dense leg does. The scores of
/// words stand out more by their nature, since most chunks have none.
const WORDS_SAY_LITTLE: f32 = 2.5;
const WORDS_SAY_ALL: f32 = 3.5;

/// The dense leg supports what it puts nearly as high as its best candidate.
const SUPPORT: f32 = 0.97;

/// Below this many candidates there is too little to compare.
const FEWEST: usize = 20;

/// A document is meant by its name if this share of the query's weight stands in
/// what it is called.
const MEANT_BY_NAME: f32 = 0.6;

/// Decides which legs count.
///
/// - `understood`: whether the model can read the query at all.
/// - `named`: how much of the query's weight stands in what names the lexical
///   leg's best candidate.
///
/// The thresholds were chosen on judged sets of queries in four languages; see
/// the decision on fusion in `docs/adr`.
pub fn weigh<Id: PartialEq>(
    dense: &Testimony<'_, Id>,
    lexical: &Testimony<'_, Id>,
    understood: bool,
    named: f32,
) -> Verdict {
    let (Some(nearest), Some(matched)) = (dense.candidates.first(), lexical.candidates.first())
    else {
        return Verdict::Both { lexical: lexical.candidates.len() };
    };
    let few = dense.candidates.len() < FEWEST;
    if !understood || (named >= MEANT_BY_NAME && !few) {
        return Verdict::Lexical;
    }
    let floor = HEAD * matched.1;
    let lexical_head = lexical.candidates.iter().take_while(|(_, score)| *score >= floor).count();
    let both = Verdict::Both { lexical: lexical_head };
    let (Some(cosines), Some(scores)) = (dense.spread, lexical.spread) else { return both };
    if few {
        return both;
    }
    let sure = cosines.standing(nearest.1);
    let distinct = scores.standing(matched.1);
    if distinct > WORDS_SAY_ALL * sure && sure < DENSE_IS_CERTAIN {
        return Verdict::Lexical;
    }
    let of_matched = dense.candidates.iter().find(|(id, _)| *id == matched.0);
    let supported =
        of_matched.is_some_and(|(_, cosine)| cosines.standing(*cosine) >= SUPPORT * sure);
    if sure > DENSE_IS_SURE && distinct < WORDS_SAY_LITTLE * sure && !supported {
        return Verdict::Dense;
    }
    both
}

/// Whether no more than half of a text's letters are of another script than the
/// Latin one.
pub fn is_mostly_latin(text: &str) -> bool {
    let is_latin = |letter: &char| matches!(letter, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{ff21}'..='\u{ff5a}');
    let letters = || text.chars().filter(|letter| letter.is_alphabetic());
    2 * letters().filter(is_latin).count() >= letters().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_of_the_script_of_most_of_its_letters() {
        for text in ["", "1 + 1", "naïve Straße", "ＡＢＣ", "Rust の", "tokio 非同期"] {
            assert!(is_mostly_latin(text), "{text}");
        }
        for text in ["再ランキングの評価", "Rust における非同期処理", "привет мир", "서울"]
        {
            assert!(!is_mostly_latin(text), "{text}");
        }
    }

    const COSINES: Spread = Spread { mean: 0.1, deviation: 0.1 };
    const SCORES: Spread = Spread { mean: 1.0, deviation: 1.0 };

    /// A dense leg whose best stands out by `best` deviations.
    fn dense(best: f32) -> Vec<(u32, f32)> {
        (0..30_u8).map(|rank| (rank.into(), 0.1 + (best - f32::from(rank) * 0.05) * 0.1)).collect()
    }

    fn verdict(dense_best: f32, lexical: &[(u32, f32)]) -> Verdict {
        let dense = dense(dense_best);
        weigh(
            &Testimony { candidates: &dense, spread: Some(COSINES) },
            &Testimony { candidates: lexical, spread: Some(SCORES) },
            true,
            0.0,
        )
    }

    // SRCH-85
    #[test]
    fn legs_that_both_stand_out_both_count_and_a_weak_match_does_not() {
        assert_eq!(verdict(4.5, &[(90, 14.0), (91, 8.0), (92, 7.5)]), Verdict::Both { lexical: 3 });
        assert_eq!(verdict(4.5, &[(90, 14.0), (91, 6.9), (92, 1.0)]), Verdict::Both { lexical: 1 });
    }

    #[test]
    fn a_dense_leg_without_a_favourite_is_left_out_beside_a_distinct_match() {
        assert_eq!(verdict(2.5, &[(90, 15.0)]), Verdict::Lexical);
        // Sure of itself, it never is.
        assert_eq!(verdict(5.5, &[(90, 40.0)]), Verdict::Both { lexical: 1 });
    }

    #[test]
    fn words_that_single_nothing_out_are_left_out_beside_a_sure_dense_leg() {
        assert_eq!(verdict(5.0, &[(90, 9.0), (91, 8.0)]), Verdict::Dense);
        // Unless the dense leg thinks the same, or is not sure.
        assert_eq!(verdict(5.0, &[(1, 9.0), (91, 2.0)]), Verdict::Both { lexical: 1 });
        assert_eq!(verdict(3.9, &[(90, 8.0), (91, 8.0)]), Verdict::Both { lexical: 2 });
    }

    #[test]
    fn a_query_that_the_model_cannot_read_is_answered_by_words() {
        let dense = dense(4.5);
        let dense = Testimony { candidates: &dense, spread: Some(COSINES) };
        let words = Testimony { candidates: &[(90, 14.0)], spread: Some(SCORES) };
        assert_eq!(weigh(&dense, &words, false, 0.0), Verdict::Lexical);
        assert_eq!(weigh(&dense, &words, true, 0.5), Verdict::Both { lexical: 1 });
        // So is one that names a document.
        assert_eq!(weigh(&dense, &words, true, 0.6), Verdict::Lexical);
        // Where there are no words, there is only the model.
        let none = Testimony { candidates: &[], spread: None };
        assert_eq!(weigh(&dense, &none, false, 1.0), Verdict::Both { lexical: 0 });
    }

    #[test]
    fn where_nothing_is_known_of_all_scores_only_the_tail_is_cut() {
        let dense = dense(9.0);
        let dense = Testimony { candidates: &dense, spread: None };
        let words = Testimony { candidates: &[(90, 2.0), (91, 0.5)], spread: Some(SCORES) };
        assert_eq!(weigh(&dense, &words, true, 0.0), Verdict::Both { lexical: 1 });
        let few = [(1, 0.9), (2, 0.1)];
        let dense = Testimony { candidates: &few, spread: Some(COSINES) };
        assert_eq!(weigh(&dense, &words, true, 0.0), Verdict::Both { lexical: 1 });
    }

    #[test]
    fn a_spread_is_that_of_the_scores() {
        let spread = Spread::of(&[1.0, 3.0]).unwrap();
        assert_eq!(spread, Spread { mean: 2.0, deviation: 1.0 });
        assert_eq!(spread.standing(4.0).to_bits(), 2.0_f32.to_bits());
        assert_eq!(Spread::of(&[1.0]), None);
        assert_eq!(Spread { mean: 1.0, deviation: 0.0 }.standing(9.0).to_bits(), 0.0_f32.to_bits());
    }
}
