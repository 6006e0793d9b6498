//! What a cross-encoder makes of a pair of texts: one number.

use grooveseek_kernels::{Format, Isa, Linear, LinearScratch};

use crate::adapters::model::encoder::config::{Family, Shape};
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::weights::Weights;

/// The two layers over the first token's vector, with the hyperbolic tangent
/// between them.
#[derive(Debug)]
pub(crate) struct Head {
    dense: Linear,
    score: Linear,
}

/// The names of the two layers.
fn layers(family: Family) -> [&'static str; 2] {
    match family {
        Family::Bert => ["pooler.dense", "classifier"],
        Family::Roberta { .. } => ["classifier.dense", "classifier.out_proj"],
    }
}

impl Head {
    /// Checks that both layers are there, without reading them.
    pub(crate) fn check(weights: &Weights, shape: &Shape) -> Result<(), LoadError> {
        for (name, outputs) in layers(shape.family).into_iter().zip([shape.hidden, 1]) {
            weights.check(&format!("{name}.weight"), &[outputs, shape.hidden])?;
            weights.check(&format!("{name}.bias"), &[outputs])?;
        }
        Ok(())
    }

    /// Reads and packs both layers.
    pub(crate) fn read(weights: &Weights, shape: &Shape, isa: Isa) -> Result<Self, LoadError> {
        let linear = |name: &str, outputs: usize| {
            let matrix = weights.read(&format!("{name}.weight"), &[outputs, shape.hidden])?;
            let bias = weights.read(&format!("{name}.bias"), &[outputs])?;
            Ok::<_, LoadError>(Linear::pack(isa, Format::F32, &matrix, &bias, shape.hidden))
        };
        let [dense, score] = layers(shape.family);
        Ok(Self { dense: linear(dense, shape.hidden)?, score: linear(score, 1)? })
    }

    /// Scores pairs by the vectors of their first tokens.
    pub(crate) fn scores(&self, firsts: &[Vec<f32>]) -> Vec<f32> {
        let mut scratch = LinearScratch::default();
        let rows = firsts.concat();
        let mut inner = vec![0.0; rows.len()];
        self.dense.apply(&rows, &mut inner, &mut scratch);
        for number in &mut inner {
            *number = number.tanh();
        }
        let mut scores = vec![0.0; firsts.len()];
        self.score.apply(&inner, &mut scores, &mut scratch);
        scores
    }
}
