//! Embeddings: vectors of length 1 that stand for texts.

/// A vector of length 1.
///
/// ```
/// use grooveseek::domain::embedding::Embedding;
///
/// let a = Embedding::normalised(vec![3.0, 4.0]).unwrap();
/// assert_eq!(a.as_slice(), [0.6, 0.8]);
/// assert!((a.cosine(&a) - 1.0).abs() < 1e-6);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Vec<f32>);

/// A vector that has no direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a vector with no length, or with a value that is no number, cannot be an embedding")]
pub struct InvalidEmbedding;

impl Embedding {
    /// Scales a vector to length 1.
    ///
    /// # Errors
    ///
    /// [`InvalidEmbedding`] if the vector is empty or all zero, or holds a
    /// value that is not finite.
    pub fn normalised(mut values: Vec<f32>) -> Result<Self, InvalidEmbedding> {
        if !values.iter().all(|value| value.is_finite()) {
            return Err(InvalidEmbedding);
        }
        let square: f64 = values.iter().map(|&value| f64::from(value).powi(2)).sum();
        if square <= 0.0 {
            return Err(InvalidEmbedding);
        }
        let norm = square.sqrt();
        for value in &mut values {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the quotient lies between −1 and 1"
            )]
            let scaled = (f64::from(*value) / norm) as f32;
            *value = scaled;
        }
        Ok(Self(values))
    }

    /// Takes over values that were stored as an embedding.
    pub fn from_stored(values: Vec<f32>) -> Self {
        Self(values)
    }

    /// The mean direction of several, each of a weight.
    ///
    /// - Returns none if there is no such direction, as there are none or they
    ///   cancel out.
    ///
    /// ```
    /// use grooveseek::domain::embedding::Embedding;
    ///
    /// let [x, y] = [[1.0, 0.0], [0.0, 1.0]].map(|at| Embedding::from_stored(at.to_vec()));
    /// let mean = Embedding::mean([(&x, 3), (&y, 4)]).unwrap();
    /// assert_eq!(mean.as_slice(), [0.6, 0.8]);
    /// assert_eq!(Embedding::mean([]), None);
    /// ```
    pub fn mean<'a>(parts: impl IntoIterator<Item = (&'a Self, usize)>) -> Option<Self> {
        let mut sum: Vec<f64> = Vec::new();
        for (part, weight) in parts {
            sum.resize(part.dimension(), 0.0);
            #[expect(clippy::cast_precision_loss, reason = "a weight has a few digits")]
            let weight = weight as f64;
            for (sum, &number) in sum.iter_mut().zip(&part.0) {
                *sum += weight * f64::from(number);
            }
        }
        let length = sum.iter().map(|number| number * number).sum::<f64>().sqrt();
        #[expect(clippy::cast_possible_truncation, reason = "a quotient lies between −1 and 1")]
        let values = sum.iter().map(|number| (number / length) as f32).collect();
        Self::normalised(values).ok()
    }

    /// How many numbers the vector has.
    pub fn dimension(&self) -> usize {
        self.0.len()
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// The cosine of the angle between two embeddings of one dimension, from −1
    /// to 1. Stored vectors may be of another length than 1 (an index that an
    /// older version made), so the norms count.
    pub fn cosine(&self, other: &Self) -> f32 {
        let (mut dot, mut left, mut right) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (&a, &b) in self.0.iter().zip(&other.0) {
            dot += f64::from(a) * f64::from(b);
            left += f64::from(a).powi(2);
            right += f64::from(b).powi(2);
        }
        if left <= 0.0 || right <= 0.0 {
            return 0.0;
        }
        #[expect(clippy::cast_possible_truncation, reason = "a cosine lies between −1 and 1")]
        let cosine = (dot / (left * right).sqrt()) as f32;
        cosine.clamp(-1.0, 1.0)
    }
}

/// What the vectors of an index were made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelIdentity {
    /// The model's name, or the endpoint's role aliases.
    pub model: String,
    /// How many numbers each vector has.
    pub dimension: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_without_direction_is_refused() {
        for values in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY]] {
            assert_eq!(Embedding::normalised(values), Err(InvalidEmbedding));
        }
    }

    #[test]
    fn tiny_and_huge_vectors_keep_their_direction() {
        for scale in [1e-30_f32, 1e30] {
            let embedding = Embedding::normalised(vec![3.0 * scale, 4.0 * scale]).unwrap();
            assert!((embedding.as_slice()[0] - 0.6).abs() < 1e-6);
        }
    }

    // SRCH-122
    #[test]
    fn the_cosine_with_nothing_is_zero() {
        let zero = Embedding::from_stored(vec![0.0, 0.0]);
        let one = Embedding::normalised(vec![1.0, 0.0]).unwrap();
        assert!(zero.cosine(&one).abs() < f32::EPSILON);
    }
}
