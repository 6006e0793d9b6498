//! Linear layers against naive code, on every instruction set of this processor.

use proptest::prelude::*;

use super::*;
use crate::testing::noise;

struct Case {
    rows: usize,
    inputs: usize,
    outputs: usize,
    x: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Case {
    fn new(rows: usize, inputs: usize, outputs: usize, seed: u64) -> Self {
        Self {
            rows,
            inputs,
            outputs,
            x: noise(rows * inputs, seed),
            weights: noise(outputs * inputs, seed + 1),
            bias: noise(outputs, seed + 2),
        }
    }

    fn apply(&self, isa: Isa, format: Format) -> Vec<f32> {
        let layer = Linear::pack(isa, format, &self.weights, &self.bias, self.inputs);
        let mut y = vec![f32::NAN; self.rows * self.outputs];
        layer.apply(&self.x, &mut y, &mut LinearScratch::default());
        y
    }

    fn naive(&self) -> Vec<f64> {
        let mut y = Vec::with_capacity(self.rows * self.outputs);
        for x in self.x.chunks_exact(self.inputs) {
            for (weights, &bias) in self.weights.chunks_exact(self.inputs).zip(&self.bias) {
                let products = x.iter().zip(weights).map(|(&x, &w)| f64::from(x) * f64::from(w));
                y.push(products.sum::<f64>() + f64::from(bias));
            }
        }
        y
    }

    /// The greatest difference from the naive product, over the square root of
    /// the shared side: about the error of one product.
    fn error(&self, isa: Isa, format: Format) -> f64 {
        let differences = self.apply(isa, format).into_iter().zip(self.naive());
        let most = differences.map(|(y, naive)| (f64::from(y) - naive).abs());
        most.fold(0.0, |most, error| if error > most || error.is_nan() { error } else { most })
            / (self.inputs as f64).sqrt()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_format_agrees_with_the_naive_product(
        rows in 0_usize..30,
        inputs in 1_usize..70,
        outputs in 0_usize..70,
        seed in 0_u64..1000,
    ) {
        let case = Case::new(rows, inputs, outputs, seed);
        for isa in Isa::all() {
            for (format, bound) in [(Format::F32, 1e-6), (Format::I16, 2e-3), (Format::I8, 3e-2)] {
                let error = case.error(isa, format);
                prop_assert!(error <= bound, "{} {format:?}: {error}", isa.name());
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_beside_it(rows in 1_usize..40, seed in 0_u64..1000) {
        let case = Case::new(rows, 48, 50, seed);
        for isa in Isa::all() {
            for format in [Format::F32, Format::I16, Format::I8] {
                let together = case.apply(isa, format);
                for row in 0..rows {
                    let alone = Case {
                        rows: 1,
                        x: case.x[row * 48..][..48].to_vec(),
                        weights: case.weights.clone(),
                        bias: case.bias.clone(),
                        ..case
                    };
                    let alone = alone.apply(isa, format);
                    prop_assert_eq!(&together[row * 50..][..50], &alone[..]);
                }
            }
        }
    }
}

#[test]
fn blocks_of_rows_fit_together() {
    let case = Case::new(131, 1536, 40, 7);
    for isa in Isa::all() {
        assert!(case.error(isa, Format::F32) < 1e-5, "{}", isa.name());
        assert!(case.error(isa, Format::I16) < 3e-3, "{}", isa.name());
    }
}

#[test]
fn extreme_values_do_not_overflow() {
    for inputs in [4, 1536, 65_536] {
        let case = Case {
            rows: 1,
            inputs,
            outputs: 2,
            x: vec![1e3; inputs],
            weights: [vec![-1e3; inputs], vec![1e3; inputs]].concat(),
            bias: vec![0.0; 2],
        };
        for isa in Isa::all() {
            for format in [Format::I16, Format::I8] {
                for (y, naive) in case.apply(isa, format).into_iter().zip(case.naive()) {
                    let error = (f64::from(y) / naive - 1.0).abs();
                    assert!(error < 1e-5, "{} {format:?} {inputs}: {error}", isa.name());
                }
            }
        }
    }
}

#[test]
fn zeros_give_the_bias() {
    let mut case = Case::new(3, 20, 5, 1);
    case.x.fill(0.0);
    for isa in Isa::all() {
        for format in [Format::F32, Format::I16, Format::I8] {
            assert_eq!(case.apply(isa, format), case.bias.repeat(3));
        }
    }
}

#[test]
#[should_panic(expected = "a row of output for each row of input")]
fn too_little_room_is_a_panic() {
    let layer = Linear::pack(Isa::portable(), Format::F32, &[1.0; 6], &[0.0; 2], 3);
    layer.apply(&[0.0; 6], &mut [0.0; 3], &mut LinearScratch::default());
}
