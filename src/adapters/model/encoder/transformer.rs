//! The whole transformer, from tokens to one vector a text.

use grooveseek_kernels::{Isa, LayerNorm, add_le_bytes, mean_of_rows};

use crate::adapters::model::encoder::config::{Pooling, Shape};
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::layer::{Formats, Layer, Scratch, read_norm};
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

/// A BERT encoder with packed weights. Its tables of vectors stay in the file.
///
/// # Source
///
/// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
/// Language Understanding", NAACL 2019.
#[derive(Debug)]
pub(crate) struct Transformer {
    isa: Isa,
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
    /// - `texts`: n times from 1 to the window's number of tokens, each below
    ///   the vocabulary's size.
    /// - Returns n vectors of `hidden` numbers, of any length; each is the same
    ///   whatever the others are.
    pub(crate) fn embed(
        &self,
        weights: &Weights,
        texts: &[Vec<u32>],
        scratch: &mut Scratch,
    ) -> Vec<Vec<f32>> {
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
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
            Pooling::First => {
                last.apply_to_first(&mut rows, &lengths, scratch);
                rows.chunks_exact(self.hidden).map(<[f32]>::to_vec).collect()
            }
        }
    }

    /// Adds up the vectors of each token, its position and its type.
    fn look_up(&self, weights: &Weights, texts: &[Vec<u32>]) -> Vec<f32> {
        let tokens = texts.iter().map(Vec::len).sum::<usize>();
        let mut rows = vec![0.0; tokens * self.hidden];
        let places = texts.iter().flat_map(|text| text.iter().enumerate());
        for (row, (position, &token)) in rows.chunks_exact_mut(self.hidden).zip(places) {
            let parts =
                [(&self.words, token as usize), (&self.positions, position), (&self.types, 0)];
            for (table, index) in parts {
                if let Some(bytes) = weights.row(table, index) {
                    add_le_bytes(row, bytes);
                }
            }
        }
        rows
    }
}
