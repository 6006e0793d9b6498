//! The cosine similarity of plain slices, equal to the domain's to the last bit.

/// Rows whose cosines are computed at once: a sum is a chain of additions, each
/// of which waits for the one before, so that several chains take no longer than
/// one.
pub(super) const TOGETHER: usize = 4;

/// A query whose own norm is computed once.
pub(super) struct Query {
    values: Vec<f64>,
    square: f64,
}

impl Query {
    /// Prepares a query.
    pub(super) fn new(values: &[f32]) -> Self {
        Self { values: values.iter().copied().map(f64::from).collect(), square: square(values) }
    }

    /// The cosine of the angle to a row of the same dimension, from −1 to 1.
    /// The additions run in the order in which the domain runs them.
    pub(super) fn cosine(&self, row: &[f32]) -> f32 {
        let (mut dot, mut square) = (0.0_f64, 0.0_f64);
        for (a, &b) in self.values.iter().zip(row) {
            dot += a * f64::from(b);
            square += f64::from(b).powi(2);
        }
        self.of_dot(dot, square)
    }

    /// The cosines of several rows whose [`square`] is known, each to the last
    /// bit as it is alone.
    pub(super) fn cosines(
        &self,
        rows: [&[f32]; TOGETHER],
        squares: [f64; TOGETHER],
    ) -> [f32; TOGETHER] {
        let count = self.values.len();
        let rows = rows.map(|row| &row[..count]);
        let mut dots = [0.0_f64; TOGETHER];
        for (place, a) in self.values.iter().enumerate() {
            for (dot, row) in dots.iter_mut().zip(rows) {
                *dot += a * f64::from(row[place]);
            }
        }
        std::array::from_fn(|row| self.of_dot(dots[row], squares[row]))
    }

    fn of_dot(&self, dot: f64, square: f64) -> f32 {
        if self.square <= 0.0 || square <= 0.0 {
            return 0.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a cosine lies between −1 and 1")]
        let cosine = (dot / (self.square * square).sqrt()) as f32;
        cosine.clamp(-1.0, 1.0)
    }
}

/// The sum of the squares of a row, as a cosine takes it.
pub(super) fn square(row: &[f32]) -> f64 {
    row.iter().map(|&value| f64::from(value).powi(2)).sum()
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
            let theirs =
                Embedding::from_stored(left.clone()).cosine(&Embedding::from_stored(right.clone()));
            proptest::prop_assert_eq!(ours.to_bits(), theirs.to_bits());
            let other: Vec<f32> = right.iter().rev().copied().collect();
            let rows = [&right[..], &other[..], &left[..], &right[..]];
            let together = Query::new(&left).cosines(rows, rows.map(square));
            let alone = rows.map(|row| Query::new(&left).cosine(row));
            proptest::prop_assert_eq!(together.map(f32::to_bits), alone.map(f32::to_bits));
        }
    }
}
