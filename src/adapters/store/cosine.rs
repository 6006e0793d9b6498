//! The cosine similarity of plain slices, equal to the domain's to the last bit.

/// A query whose own norm is computed once.
pub(super) struct Query<'a> {
    values: &'a [f32],
    square: f64,
}

impl<'a> Query<'a> {
    /// Prepares a query.
    pub(super) fn new(values: &'a [f32]) -> Self {
        Self { values, square: values.iter().map(|&value| f64::from(value).powi(2)).sum() }
    }

    /// The cosine of the angle to a row of the same dimension, from −1 to 1.
    /// The additions run in the order in which the domain runs them.
    pub(super) fn cosine(&self, row: &[f32]) -> f32 {
        let (mut dot, mut square) = (0.0_f64, 0.0_f64);
        for (&a, &b) in self.values.iter().zip(row) {
            dot += f64::from(a) * f64::from(b);
            square += f64::from(b).powi(2);
        }
        if self.square <= 0.0 || square <= 0.0 {
            return 0.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a cosine lies between −1 and 1")]
        let cosine = (dot / (self.square * square).sqrt()) as f32;
        cosine.clamp(-1.0, 1.0)
    }
}

/// Whether a vector has a direction, without which it is none: another program
/// or damage may have stored zeros, or values that are no numbers.
pub(super) fn has_direction(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite()) && values.iter().any(|&value| value != 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, proptest};

    use super::*;
    use crate::domain::embedding::Embedding;

    proptest! {
        #[test]
        fn the_domain_computes_the_same_bits(
            pairs in prop::collection::vec((-1.0_f32..1.0, -1.0_f32..1.0), 1..40),
            zero in any::<bool>(),
        ) {
            let left: Vec<f32> = pairs.iter().map(|pair| pair.0).collect();
            let right: Vec<f32> =
                pairs.iter().map(|pair| if zero { 0.0 } else { pair.1 }).collect();
            let ours = Query::new(&left).cosine(&right);
            let theirs = Embedding::from_stored(left).cosine(&Embedding::from_stored(right));
            proptest::prop_assert_eq!(ours.to_bits(), theirs.to_bits());
        }
    }
}
