//! The whole transformer, from tokens to one vector a text.

use grooveseek_kernels::{Isa, LayerNorm, mean_of_rows};

use crate::adapters::model::catalogue::Pooling;
use crate::adapters::model::encoder::config::{Family, Shape};
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::layer::{Formats, Layer, Scratch, read_norm};
use crate::adapters::model::encoder::tokens::Sequence;
use crate::adapters::model::encoder::weights::{Table, Weights};

const WORDS: &str = "embeddings.word_embeddings.weight";
const POSITIONS: &str = "embeddings.position_embeddings.weight";
const TYPES: &str = "embeddings.token_type_embeddings.weight";
const NORM: &str = "embeddings.LayerNorm";

/// Checks that every tensor that a model of this shape has is there.
pub(crate) fn check(weights: &Weights, shape: &Shape) -> Result<(), LoadError> {
    weights.check(WORDS, &[shape.vocabulary, shape.hidden])?;
    weights.check(POSITIONS, &[shape.positions, shape.hidden])?;
    weights.check(TYPES, &[shape.types, shape.hidden])?;
    weights.check(&format!("{NORM}.weight"), &[shape.hidden])?;
    weights.check(&format!("{NORM}.bias"), &[shape.hidden])?;
    (0..shape.layers).try_for_each(|index| Layer::check(weights, shape, index))
}

/// An encoder with packed weights. Its tables of vectors stay in the file.
///
/// # Source
///
/// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
/// Language Understanding", NAACL 2019; Conneau et al., "Unsupervised
/// Cross-lingual Representation Learning at Scale", ACL 2020.
#[derive(Debug)]
pub(crate) struct Transformer {
    isa: Isa,
    family: Family,
    hidden: usize,
    pooling: Pooling,
    words: Table,
    positions: Table,
    types: Table,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

impl Transformer {
    /// Reads and packs a model.
    pub(crate) fn read(
        weights: &Weights,
        shape: &Shape,
        isa: Isa,
        formats: Formats,
    ) -> Result<Self, LoadError> {
        let layers =
            (0..shape.layers).map(|index| Layer::read(weights, shape, index, isa, formats));
        Ok(Self {
            isa,
            family: shape.family,
            hidden: shape.hidden,
            pooling: shape.pooling,
            words: weights.table(WORDS, shape.vocabulary, shape.hidden)?,
            positions: weights.table(POSITIONS, shape.positions, shape.hidden)?,
            types: weights.table(TYPES, shape.types, shape.hidden)?,
            norm: read_norm(weights, NORM, shape)?,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// Embeds texts together, without padding.
    ///
    /// - `weights`: those that the model was read from.
    /// - `texts`: n times the tokens of a text.
    /// - Returns n vectors of `hidden` numbers, of any length; each is the same
    ///   whatever the others are.
    pub(crate) fn embed(
        &self,
        weights: &Weights,
        texts: &[Sequence],
        scratch: &mut Scratch,
    ) -> Vec<Vec<f32>> {
        let lengths: Vec<usize> = texts.iter().map(|text| text.tokens.len()).collect();
        let mut rows = self.look_up(weights, texts);
        self.norm.apply(self.isa, &mut rows);
        let Some((last, layers)) = self.layers.split_last() else { return Vec::new() };
        for layer in layers {
            layer.apply(&mut rows, &lengths, scratch);
        }
        match self.pooling {
            Pooling::Mean => {
                last.apply(&mut rows, &lengths, scratch);
                let mut rest = rows.as_slice();
                let mut text = |length: &usize| {
                    let (text, after) = rest.split_at(length * self.hidden);
                    rest = after;
                    mean_of_rows(text, self.hidden)
                };
                lengths.iter().map(&mut text).collect()
            }
            Pooling::Cls => {
                last.apply_to_first(&mut rows, &lengths, scratch);
                rows.chunks_exact(self.hidden).map(<[f32]>::to_vec).collect()
            }
        }
    }

    /// Adds up the vectors of each token, its position and its type.
    fn look_up(&self, weights: &Weights, texts: &[Sequence]) -> Vec<f32> {
        let tokens = texts.iter().map(|text| text.tokens.len()).sum::<usize>();
        let mut rows = vec![0.0; tokens * self.hidden];
        let mut left = rows.chunks_exact_mut(self.hidden);
        for Sequence { tokens, types } in texts {
            let mut position = self.family.first_position();
            for ((&token, &kind), row) in tokens.iter().zip(types).zip(&mut left) {
                weights.add_row(&self.words, token as usize, row);
                weights.add_row(&self.types, kind as usize, row);
                match self.family {
                    // A padding token in a text has a position of its own and takes none.
                    Family::Roberta { padding } if token == padding => {
                        weights.add_row(&self.positions, padding as usize, row);
                    }
                    _ => {
                        weights.add_row(&self.positions, position, row);
                        position += 1;
                    }
                }
            }
        }
        rows
    }
}
