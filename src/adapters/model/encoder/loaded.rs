//! A model that was opened: its files, and what has been made of them so far.

use std::sync::{Mutex, OnceLock, PoisonError};

use grooveseek_kernels::Isa;

use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::folder::ModelFolder;
use crate::adapters::model::encoder::layer::{Formats, Scratch};
use crate::adapters::model::encoder::tokens::{Sequence, Tokens};
use crate::adapters::model::encoder::transformer::{self, Transformer};
use crate::adapters::model::encoder::weights::Weights;

/// Tokens from which on no further text joins a batch. More do not make the
/// work cheaper, and less lets others in earlier.
pub(crate) const BATCH_TOKENS: usize = 256;

/// How many memories of layers are kept between uses while nobody says that the
/// work is over, in any case.
const MOST_IDLE: usize = 64;

/// How the numbers are kept while many texts pass through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Small integers where the processor multiplies them faster, else 32 bits.
    #[default]
    Auto,
    /// 32-bit floating point.
    F32,
    /// Small integers, each part of a layer in as few bits as its accuracy
    /// bears. The cosine with [`F32`](Self::F32) stays above 0.995.
    Int8,
}

impl Precision {
    /// The formats that it stands for on a processor.
    pub(crate) fn formats(self, isa: Isa) -> Formats {
        let small = match self {
            Self::Auto => isa.has_integer_products(),
            Self::F32 => false,
            Self::Int8 => true,
        };
        if small { Formats::small(isa) } else { Formats::F32 }
    }
}

/// A model's files, and memory for its layers.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) isa: Isa,
    pub(crate) shape: Shape,
    pub(crate) tokens: Tokens,
    pub(crate) weights: Weights,
    /// Memory between uses; never more than threads at work.
    scratch: Mutex<Vec<Scratch>>,
}

impl Loaded {
    /// Opens a model and checks it, without reading any numbers.
    pub(crate) fn open(folder: &ModelFolder, shape: Shape, isa: Isa) -> Result<Self, LoadError> {
        let weights = Weights::open(folder)?;
        transformer::check(&weights, &shape)?;
        let tokens = Tokens::read(&folder.root, &shape)?;
        Ok(Self { isa, shape, tokens, weights, scratch: Mutex::default() })
    }

    /// The vectors of texts, of any length; packs the weights if nobody has yet.
    pub(crate) fn vectors(
        &self,
        packed: &Packed,
        texts: &[Sequence],
    ) -> Result<Vec<Vec<f32>>, LoadError> {
        let transformer = packed.transformer(self)?;
        let taken = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = taken.unwrap_or_default();
        let vectors = transformer.embed(&self.weights, texts, &mut scratch);
        let mut idle = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(scratch);
        }
        Ok(vectors)
    }

    /// Gives back the memory that many texts at once took; a little is kept for
    /// those that come one by one.
    pub(crate) fn rest(&self) {
        let mut idle = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        idle.sort_by_key(Scratch::bytes);
        idle.truncate(1);
        idle.retain(|scratch| scratch.bytes() <= MOST_RESTING_BYTES);
        idle.shrink_to_fit();
    }

    /// How many bytes of memory are kept between uses.
    #[cfg(test)]
    pub(crate) fn idle_bytes(&self) -> usize {
        self.scratch.lock().unwrap().iter().map(Scratch::bytes).sum()
    }
}

/// The most bytes that are kept while nothing is to do.
const MOST_RESTING_BYTES: usize = 4 << 20;

/// A transformer that is packed when first needed.
#[derive(Debug)]
pub(crate) struct Packed {
    formats: Formats,
    transformer: OnceLock<Transformer>,
    packing: Mutex<()>,
}

impl Packed {
    pub(crate) fn new(formats: Formats) -> Self {
        Self { formats, transformer: OnceLock::new(), packing: Mutex::new(()) }
    }

    fn transformer(&self, model: &Loaded) -> Result<&Transformer, LoadError> {
        if let Some(transformer) = self.transformer.get() {
            return Ok(transformer);
        }
        let _one_packs = self.packing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transformer) = self.transformer.get() {
            return Ok(transformer);
        }
        let read = Transformer::read(&model.weights, &model.shape, model.isa, self.formats)?;
        Ok(self.transformer.get_or_init(|| read))
    }
}
