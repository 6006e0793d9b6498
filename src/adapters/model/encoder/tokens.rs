//! From text to the tokens of a model.

use std::path::Path;

use tokenizers::{PostProcessor, Tokenizer, TruncationParams};

use crate::adapters::model::encoder::config::Shape;
use crate::adapters::model::encoder::error::LoadError;

const FILE: &str = "tokenizer.json";

/// A model's tokenizer, with the model's own window and without padding,
/// whatever its file says about either.
#[derive(Debug)]
pub(crate) struct Tokens {
    tokenizer: Tokenizer,
    vocabulary: usize,
    window: usize,
}

/// Bytes of a text that are looked at first for each token of the window. Words
/// are shorter, so as a rule the window is full by then.
const BYTES_PER_TOKEN: usize = 16;

impl Tokens {
    /// Reads the tokenizer of the model in a folder.
    pub(crate) fn read(folder: &Path, shape: &Shape) -> Result<Self, LoadError> {
        let path = folder.join(FILE);
        let bytes =
            std::fs::read(&path).map_err(|error| LoadError::from_io(folder, FILE, error))?;
        let mut tokenizer = Tokenizer::from_bytes(&bytes)
            .map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
        tokenizer.with_padding(None);
        // Truncation takes the special tokens off the window without looking.
        let special = tokenizer.get_post_processor().map_or(0, |it| it.added_tokens(false));
        let malformed = |reason| LoadError::Malformed { path: path.clone(), reason };
        if special == 0 {
            return Err(malformed("it adds no special tokens to a text".to_owned()));
        }
        if shape.window_tokens <= special {
            return Err(malformed(format!(
                "it adds {special} special tokens, and the window has {}",
                shape.window_tokens
            )));
        }
        let truncation =
            TruncationParams { max_length: shape.window_tokens, ..TruncationParams::default() };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
        Ok(Self { tokenizer, vocabulary: shape.vocabulary, window: shape.window_tokens })
    }

    /// Cuts a text into tokens.
    ///
    /// - Returns from 1 to the window's number of tokens, each below the
    ///   vocabulary's size; or why that was not possible.
    pub(crate) fn of(&self, text: &str) -> Result<Vec<u32>, String> {
        let tokens = self.first_tokens(text)?;
        if tokens.is_empty() {
            return Err("the tokenizer gives no token".to_owned());
        }
        match tokens.iter().find(|&&token| token as usize >= self.vocabulary) {
            Some(token) => {
                Err(format!("the tokenizer gives token {token}, the model has {}", self.vocabulary))
            }
            None => Ok(tokens),
        }
    }

    /// The tokens of the window. Of a long text no more is looked at than fills
    /// it, since a tokenizer needs a hundred times the memory of its text.
    fn first_tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let mut bytes = self.window * BYTES_PER_TOKEN;
        loop {
            let head = &text[..text.floor_char_boundary(bytes)];
            let encoding =
                self.tokenizer.encode_fast(head, true).map_err(|error| error.to_string())?;
            // More tokens than the window takes: the cut in the text lies behind
            // it, but for a word that spans the border of both.
            let filled = !encoding.get_overflowing().is_empty();
            if filled || head.len() == text.len() {
                return Ok(encoding.get_ids().to_vec());
            }
            bytes *= 4;
        }
    }
}
