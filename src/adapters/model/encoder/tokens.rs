//! From text to the tokens of a model.

use std::panic;
use std::path::Path;

use tokenizers::{Encoding, PostProcessor, Tokenizer, TruncationDirection};

use crate::adapters::model::encoder::beginning;
use crate::adapters::model::encoder::config::{Family, Shape};
use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::parts::Splitter;

const FILE: &str = "tokenizer.json";

/// The most bytes of a tokenizer. Those of models for many languages have about
/// 17 million.
const MOST_FILE_BYTES: u64 = 1 << 28;

/// The tokens of a text, or of two texts together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// From 1 to the window's number of tokens, each below the vocabulary's size.
    pub(crate) tokens: Vec<u32>,
    /// The type of each, below the number of types.
    pub(crate) types: Vec<u32>,
}

/// A model's tokenizer, with the model's own window and without padding,
/// whatever its file says about either.
#[derive(Debug)]
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    family: Family,
    vocabulary: usize,
    types: usize,
    window: usize,
}

impl Tokens {
    /// Reads the tokenizer of the model in a folder.
    pub(crate) fn read(folder: &Path, shape: &Shape) -> Result<Self, LoadError> {
        let path = folder.join(FILE);
        let size = std::fs::metadata(&path).map(|metadata| metadata.len());
        let size = size.map_err(|error| LoadError::from_io(folder, FILE, error))?;
        if size > MOST_FILE_BYTES {
            let reason = format!("it has more than {MOST_FILE_BYTES} bytes");
            return Err(LoadError::malformed(&path, reason));
        }
        let bytes =
            std::fs::read(&path).map_err(|error| LoadError::from_io(folder, FILE, error))?;
        // Reading some damaged files panics; nothing is shared with what does.
        let read = panic::catch_unwind(|| Tokenizer::from_bytes(&bytes));
        let mut tokenizer = read
            .map_err(|_| LoadError::malformed(&path, "it is no tokenizer that can be read"))?
            .map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
        let tokens = Self {
            tokenizer,
            family: shape.family,
            vocabulary: shape.vocabulary,
            types: shape.types,
            window: shape.window_tokens,
        };
        let special = tokens.special(false);
        if special == 0 {
            return Err(LoadError::malformed(&path, "it adds no special tokens to a text"));
        }
        if tokens.window <= special {
            let window = tokens.window;
            let reason = format!("it adds {special} special tokens, and the window has {window}");
            return Err(LoadError::malformed(&path, reason));
        }
        Ok(tokens)
    }

    /// Checks that two texts have room in the window, too.
    pub(crate) fn check_pairs(&self, folder: &Path) -> Result<(), LoadError> {
        let (special, window) = (self.special(true), self.window);
        if special < 3 || window < special + 2 {
            let reason =
                format!("it adds {special} special tokens to a pair, and the window has {window}");
            return Err(LoadError::malformed(&folder.join(FILE), reason));
        }
        Ok(())
    }

    /// Cuts a text into tokens; what is beyond the window is left out.
    ///
    /// - Returns why that was not possible otherwise.
    pub(crate) fn of(&self, text: &str) -> Result<Sequence, String> {
        let room = self.window - self.special(false);
        let mut encoding = self.first_tokens(text, room)?;
        encoding.truncate(room, 0, TruncationDirection::Right);
        self.sequence(self.tokenizer.post_process(encoding, None, true))
    }

    /// Cuts a text into tokens, in parts if it is longer than the window.
    ///
    /// - `lead`: what each part begins with, if the text does.
    /// - Returns at least one part, each with the weight of its vector.
    pub(crate) fn of_parts(
        &self,
        text: &str,
        lead: &str,
    ) -> Result<Vec<(Sequence, usize)>, String> {
        let room = self.window - self.special(false);
        let encoding = self.first_tokens(text, room)?;
        let weight = encoding.len();
        if weight <= room {
            let sequence = self.sequence(self.tokenizer.post_process(encoding, None, true))?;
            return Ok(vec![(sequence, weight)]);
        }
        drop(encoding);
        let parts = Splitter { tokenizer: &self.tokenizer, room, lead }.split(text)?;
        parts.into_iter().map(|part| Ok((self.of(&part.text)?, part.tokens))).collect()
    }

    /// Whether a text is longer than the window.
    pub(crate) fn exceed(&self, text: &str) -> Result<bool, String> {
        let room = self.window - self.special(false);
        Splitter { tokenizer: &self.tokenizer, room, lead: "" }.exceeds(text)
    }

    /// Cuts two texts into tokens of one sequence. What is beyond the window is
    /// taken off the longer one, and off both once each has its half.
    pub(crate) fn of_pair(&self, first: &str, second: &str) -> Result<Sequence, String> {
        let room = self.window - self.special(true);
        let mut one = self.first_tokens(first, room)?;
        let mut other = self.first_tokens(second, room)?;
        // Some processors leave the types as they are.
        other.set_type_ids(vec![1; other.len()]);
        let (of_one, of_other) = shares(one.len(), other.len(), room);
        one.truncate(of_one, 0, TruncationDirection::Right);
        other.truncate(of_other, 0, TruncationDirection::Right);
        self.sequence(self.tokenizer.post_process(one, Some(other), true))
    }

    fn special(&self, pair: bool) -> usize {
        self.tokenizer.get_post_processor().map_or(0, |it| it.added_tokens(pair))
    }

    fn sequence(&self, encoding: tokenizers::Result<Encoding>) -> Result<Sequence, String> {
        let encoding = encoding.map_err(|error| error.to_string())?;
        let tokens = encoding.get_ids().to_vec();
        if tokens.is_empty() {
            return Err("the tokenizer gives no token".to_owned());
        }
        if tokens.len() > self.window {
            return Err(format!("the tokenizer gives {} tokens", tokens.len()));
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= self.vocabulary) {
            let most = self.vocabulary;
            return Err(format!("the tokenizer gives token {token}, the model has {most}"));
        }
        let types = match self.family {
            Family::Bert => encoding.get_type_ids().to_vec(),
            // Whatever the tokenizer says of types, these models have no use for them.
            Family::Roberta { .. } => vec![0; tokens.len()],
        };
        match types.iter().find(|&&kind| kind as usize >= self.types) {
            Some(kind) => {
                Err(format!("the tokenizer gives type {kind}, the model has {}", self.types))
            }
            None => Ok(Sequence { tokens, types }),
        }
    }

    fn first_tokens(&self, text: &str, room: usize) -> Result<Encoding, String> {
        beginning::tokens(&self.tokenizer, text, room)
    }
}

/// What of two lengths fits together.
fn shares(one: usize, other: usize, room: usize) -> (usize, usize) {
    let half = room / 2;
    if one <= half {
        (one, other.min(room - one))
    } else if other <= room - half {
        (one.min(room - other), other)
    } else {
        (half, room - half)
    }
}

#[cfg(test)]
mod tests;
