//! One layer of the transformer.

use std::ops::Range;

use grooveseek_kernels::{
    AttentionScratch, Format, Heads, Isa, LayerNorm, Linear, LinearScratch, attention, gelu,
};

use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::weights::Weights;

/// Rows that pass through the feed-forward part at a time, so that its wide
/// middle stays in the processor's cache.
const BLOCK_ROWS: usize = 120;

/// How the weights of each part of a layer are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Formats {
    /// The projections to queries, keys and values.
    pub(crate) projections: Format,
    /// The projection of what attention gives.
    pub(crate) mixed: Format,
    /// The feed-forward part, on the way in.
    pub(crate) widen: Format,
    /// The feed-forward part, on the way out.
    pub(crate) narrow: Format,
}

impl Formats {
    /// Everything in 32 bits.
    pub(crate) const F32: Self = Self::all(Format::F32);

    /// In as few bits as still keep the cosine with 32 bits above 0.995, in what
    /// is fastest on the processor at hand.
    pub(crate) fn small(isa: Isa) -> Self {
        if isa.has_byte_products() { Self::BYTES } else { Self::all(Format::I16) }
    }

    /// Bytes where a layer bears them: the projections to queries, keys and
    /// values take most of the error.
    pub(crate) const BYTES: Self = Self { projections: Format::I16, ..Self::all(Format::I8) };

    /// The narrowest numbers that weights are kept in, for a person to read.
    pub(crate) fn name(self) -> &'static str {
        let parts = [self.projections, self.mixed, self.widen, self.narrow];
        if parts.contains(&Format::I8) {
            "int8"
        } else if parts.contains(&Format::I16) {
            "int16"
        } else {
            "f32"
        }
    }

    /// One format for everything.
    pub(crate) const fn all(format: Format) -> Self {
        Self { projections: format, mixed: format, widen: format, narrow: format }
    }
}

/// Memory that the layers share.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    linear: LinearScratch,
    attention: AttentionScratch,
    projected: Vec<f32>,
    mixed: Vec<f32>,
    inner: Vec<f32>,
    outer: Vec<f32>,
}

impl Scratch {
    /// Bytes that it holds, but for those of the products, which are in
    /// proportion.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [&self.projected, &self.mixed, &self.inner, &self.outer];
        4 * parts.into_iter().map(Vec::capacity).sum::<usize>()
    }
}

/// A layer with packed weights.
#[derive(Debug)]
pub(crate) struct Layer {
    isa: Isa,
    heads: Heads,
    projections: Linear,
    mixed: Linear,
    after_attention: LayerNorm,
    widen: Linear,
    narrow: Linear,
    after_feed_forward: LayerNorm,
}

/// The matrices of a layer, each with a bias: name, outputs, inputs.
fn matrices(shape: &Shape) -> [(&'static str, usize, usize); 6] {
    let (hidden, inner) = (shape.hidden, shape.inner);
    [
        ("attention.self.query", hidden, hidden),
        ("attention.self.key", hidden, hidden),
        ("attention.self.value", hidden, hidden),
        ("attention.output.dense", hidden, hidden),
        ("intermediate.dense", inner, hidden),
        ("output.dense", hidden, inner),
    ]
}

/// The normalisations of a layer.
const NORMS: [&str; 2] = ["attention.output.LayerNorm", "output.LayerNorm"];

/// Reads the tensors of one layer.
struct Reader<'a> {
    weights: &'a Weights,
    shape: &'a Shape,
    index: usize,
}

impl Reader<'_> {
    fn name(&self, part: &str, kind: &str) -> String {
        format!("encoder.layer.{}.{part}.{kind}", self.index)
    }

    /// Packs matrices with the same inputs as one, their outputs side by side.
    fn linear(&self, parts: Range<usize>, isa: Isa, format: Format) -> Result<Linear, LoadError> {
        let (mut weights, mut bias, mut width) = (Vec::new(), Vec::new(), 1);
        for (part, outputs, inputs) in &matrices(self.shape)[parts] {
            let name = self.name(part, "weight");
            weights.append(&mut self.weights.read(&name, &[*outputs, *inputs])?);
            bias.append(&mut self.weights.read(&self.name(part, "bias"), &[*outputs])?);
            width = *inputs;
        }
        Ok(Linear::pack(isa, format, &weights, &bias, width))
    }

    fn norm(&self, part: &str) -> Result<LayerNorm, LoadError> {
        read_norm(self.weights, &format!("encoder.layer.{}.{part}", self.index), self.shape)
    }
}

/// Reads a normalisation.
pub(crate) fn read_norm(
    weights: &Weights,
    name: &str,
    shape: &Shape,
) -> Result<LayerNorm, LoadError> {
    let weight = weights.read(&format!("{name}.weight"), &[shape.hidden])?;
    let bias = weights.read(&format!("{name}.bias"), &[shape.hidden])?;
    Ok(LayerNorm::new(weight, bias, shape.epsilon))
}

impl Layer {
    /// Checks that a layer's tensors are there, without reading them.
    pub(crate) fn check(weights: &Weights, shape: &Shape, index: usize) -> Result<(), LoadError> {
        let reader = Reader { weights, shape, index };
        for (part, outputs, inputs) in matrices(shape) {
            weights.check(&reader.name(part, "weight"), &[outputs, inputs])?;
            weights.check(&reader.name(part, "bias"), &[outputs])?;
        }
        for part in NORMS {
            weights.check(&reader.name(part, "weight"), &[shape.hidden])?;
            weights.check(&reader.name(part, "bias"), &[shape.hidden])?;
        }
        Ok(())
    }

    /// Reads and packs a layer.
    pub(crate) fn read(
        weights: &Weights,
        shape: &Shape,
        index: usize,
        isa: Isa,
        formats: Formats,
    ) -> Result<Self, LoadError> {
        let reader = Reader { weights, shape, index };
        Ok(Self {
            isa,
            heads: Heads { count: shape.heads, size: shape.hidden / shape.heads },
            projections: reader.linear(0..3, isa, formats.projections)?,
            mixed: reader.linear(3..4, isa, formats.mixed)?,
            after_attention: reader.norm(NORMS[0])?,
            widen: reader.linear(4..5, isa, formats.widen)?,
            narrow: reader.linear(5..6, isa, formats.narrow)?,
            after_feed_forward: reader.norm(NORMS[1])?,
        })
    }

    /// Lets the tokens of texts pass through the layer.
    ///
    /// - `rows`: the vectors of all tokens, text after text; they are replaced.
    /// - `lengths`: the tokens of each text, from 1.
    pub(crate) fn apply(&self, rows: &mut [f32], lengths: &[usize], scratch: &mut Scratch) {
        self.attend(rows, lengths, scratch);
        self.feed_forward(rows, scratch);
    }

    /// As [`apply`](Self::apply), for the first token of each text alone.
    ///
    /// - `rows`: afterwards the vectors of the first tokens, and no others.
    pub(crate) fn apply_to_first(
        &self,
        rows: &mut Vec<f32>,
        lengths: &[usize],
        scratch: &mut Scratch,
    ) {
        self.mix(rows, lengths, scratch);
        let width = self.mixed.inputs();
        let mut from = 0;
        for (text, length) in lengths.iter().enumerate() {
            rows.copy_within(from..from + width, text * width);
            scratch.mixed.copy_within(from..from + width, text * width);
            from += length * width;
        }
        rows.truncate(lengths.len() * width);
        scratch.mixed.truncate(lengths.len() * width);
        self.project(rows, scratch);
        self.feed_forward(rows, scratch);
    }

    fn attend(&self, rows: &mut [f32], lengths: &[usize], scratch: &mut Scratch) {
        self.mix(rows, lengths, scratch);
        self.project(rows, scratch);
    }

    /// Computes what attention makes of the rows.
    fn mix(&self, rows: &[f32], lengths: &[usize], scratch: &mut Scratch) {
        let Scratch { linear, attention: keys, projected, mixed, .. } = scratch;
        projected.resize(3 * rows.len(), 0.0);
        self.projections.apply(rows, projected, linear);
        mixed.resize(rows.len(), 0.0);
        attention(self.isa, self.heads, projected, lengths, mixed, keys);
    }

    /// Projects what attention gave, and adds it to the rows.
    fn project(&self, rows: &mut [f32], scratch: &mut Scratch) {
        let Scratch { linear, mixed, outer, .. } = scratch;
        outer.resize(rows.len(), 0.0);
        self.mixed.apply(mixed, outer, linear);
        self.after_attention.add_and_apply(self.isa, rows, outer);
    }

    fn feed_forward(&self, rows: &mut [f32], scratch: &mut Scratch) {
        let Scratch { linear, inner, outer, .. } = scratch;
        let width = self.widen.inputs();
        for rows in rows.chunks_mut(BLOCK_ROWS * width) {
            inner.resize(rows.len() / width * self.widen.outputs(), 0.0);
            self.widen.apply(rows, inner, linear);
            gelu(self.isa, inner);
            outer.resize(rows.len(), 0.0);
            self.narrow.apply(inner, outer, linear);
            self.after_feed_forward.add_and_apply(self.isa, rows, outer);
        }
    }
}
