//! Numbers as files of weights hold them: narrow, or turned on their side.

/// How a file holds its numbers, the least significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// IEEE 754, 32 bits.
    F32,
    /// IEEE 754, 16 bits.
    F16,
    /// The upper half of a 32-bit number.
    Bf16,
}

impl Stored {
    /// Bytes of a number.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Reads numbers and puts them at the end of others.
    ///
    /// # Panics
    ///
    /// If the bytes are no whole numbers.
    pub fn append(self, bytes: &[u8], numbers: &mut Vec<f32>) {
        assert!(bytes.len().is_multiple_of(self.bytes()), "numbers are whole");
        match self {
            Self::F32 => {
                let (words, _) = bytes.as_chunks();
                numbers.extend(words.iter().map(|&word| f32::from_le_bytes(word)));
            }
            Self::F16 => numbers.extend(halves(bytes).map(from_half)),
            Self::Bf16 => numbers.extend(halves(bytes).map(from_brain)),
        }
    }

    /// Adds numbers to others, one to one.
    ///
    /// # Panics
    ///
    /// If there is not a number in the bytes for each of `numbers`.
    pub fn add(self, bytes: &[u8], numbers: &mut [f32]) {
        assert_eq!(Some(bytes.len()), numbers.len().checked_mul(self.bytes()), "one to one");
        match self {
            Self::F32 => {
                let (words, _) = bytes.as_chunks();
                for (number, &word) in numbers.iter_mut().zip(words) {
                    *number += f32::from_le_bytes(word);
                }
            }
            Self::F16 => add_each(numbers, halves(bytes).map(from_half)),
            Self::Bf16 => add_each(numbers, halves(bytes).map(from_brain)),
        }
    }
}

fn add_each(numbers: &mut [f32], addends: impl Iterator<Item = f32>) {
    for (number, addend) in numbers.iter_mut().zip(addends) {
        *number += addend;
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|&word| u16::from_le_bytes(word))
}

/// The magnitude's bits in the place of a 32-bit number's mean the same number
/// but for the exponent's bias, which one product puts right; it is exact, for
/// numbers below the smallest normal one too.
fn from_half(bits: u16) -> f32 {
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    let value = if magnitude >= 0x7c00 {
        f32::from_bits(0x7f80_0000 | (magnitude & 0x3ff) << 13)
    } else {
        f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)
    };
    f32::from_bits(value.to_bits() | sign)
}

fn from_brain(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Rows and columns of a tile that is turned at a time, so that neither side
/// leaves the cache.
const TILE: usize = 16;

/// Turns a matrix on its side.
///
/// - `numbers`: `rows` × `columns` numbers, row after row.
/// - Returns `columns` × `rows` numbers.
///
/// # Panics
///
/// If the lengths do not fit together.
pub fn transposed(numbers: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    assert_eq!(Some(numbers.len()), rows.checked_mul(columns), "rows are whole");
    let mut turned = vec![0.0; numbers.len()];
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for row in top..rows.min(top + TILE) {
                for column in left..columns.min(left + TILE) {
                    turned[column * rows + row] = numbers[row * columns + column];
                }
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::noise;

    fn all(stored: Stored, bytes: &[u8]) -> Vec<f32> {
        let mut numbers = Vec::new();
        stored.append(bytes, &mut numbers);
        numbers
    }

    /// The definition of a 16-bit number, in 64 bits.
    fn half(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
        let magnitude = match exponent {
            0 => fraction * 2.0_f64.powi(-14),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    }

    #[test]
    fn every_half_is_what_the_definition_says() {
        for bits in 0..=u16::MAX {
            let got = f64::from(all(Stored::F16, &bits.to_le_bytes())[0]);
            let expected = half(bits);
            let same = got.total_cmp(&expected).is_eq() || got.is_nan() && expected.is_nan();
            assert!(same, "{bits:#x}: {got}");
        }
    }

    #[test]
    fn a_brain_float_is_the_upper_half_of_a_number() {
        for number in [1.0_f32, -2.5, 0.0, f32::INFINITY] {
            let [_, _, low, high] = number.to_le_bytes();
            assert_eq!(all(Stored::Bf16, &[low, high]), [number]);
        }
    }

    #[test]
    fn numbers_are_appended_and_added() {
        for (stored, bytes) in [
            (Stored::F32, [1.5_f32, -2.0].map(f32::to_le_bytes).concat()),
            (Stored::F16, [0x3e00_u16, 0xc000].map(u16::to_le_bytes).concat()),
            (Stored::Bf16, [0x3fc0_u16, 0xc000].map(u16::to_le_bytes).concat()),
        ] {
            assert_eq!(all(stored, &bytes), [1.5, -2.0]);
            let mut numbers = [1.0, 1.0];
            stored.add(&bytes, &mut numbers);
            assert_eq!(numbers.as_slice(), [2.5, -1.0]);
        }
    }

    #[test]
    fn a_matrix_turns_row_for_column() {
        for (rows, columns) in [(1, 1), (3, 5), (16, 16), (17, 33), (0, 4)] {
            let numbers = noise(rows * columns, 3);
            let turned = transposed(&numbers, rows, columns);
            for row in 0..rows {
                for column in 0..columns {
                    let (got, expected) =
                        (turned[column * rows + row], numbers[row * columns + column]);
                    assert_eq!(got.to_bits(), expected.to_bits());
                }
            }
        }
    }
}
