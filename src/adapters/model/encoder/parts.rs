//! Texts that are longer than a model's window, in parts that fit.

use tokenizers::Tokenizer;

use crate::adapters::model::encoder::beginning;
use crate::domain::embedding::Embedding;

/// The most parts of a text; what is beyond them is left out. So a line of
/// 50 MiB takes no longer than a text of 64 windows.
pub(crate) const MOST_PARTS: usize = 64;

/// A text, or a part of one, that fits into the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What is embedded: the lead, if there is one, and some of the text.
    pub(crate) text: String,
    /// How many tokens of the text it holds, which is what it weighs.
    pub(crate) tokens: usize,
    /// How many tokens it has by itself, the lead's too and no special ones.
    pub(crate) length: usize,
}

/// Splits long texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splitter<'a> {
    /// Neither cuts nor pads.
    pub(crate) tokenizer: &'a Tokenizer,
    /// How many tokens fit into the window besides the special ones.
    pub(crate) room: usize,
    /// What each part begins with, if the text does.
    pub(crate) lead: &'a str,
}

impl Splitter<'_> {
    /// Whether a text is longer than the window.
    pub(crate) fn exceeds(self, text: &str) -> Result<bool, String> {
        Ok(beginning::tokens(self.tokenizer, text, self.room)?.len() > self.room)
    }

    /// Splits a text into parts that follow one another, each of as many tokens
    /// as there is room for; one that fits remains whole.
    ///
    /// A part ends where a word does. A word that takes a quarter of the room is
    /// torn; the part before the tear is a little shorter, as its rest may give
    /// more tokens by itself than it gave in its place.
    pub(crate) fn split(self, text: &str) -> Result<Vec<Part>, String> {
        let tokens = beginning::tokens(self.tokenizer, text, self.room)?.len();
        if tokens <= self.room {
            return Ok(vec![Part { text: text.to_owned(), tokens, length: tokens }]);
        }
        let (lead, text) = match text.strip_prefix(self.lead) {
            Some(text) => (self.lead, text),
            None => ("", text),
        };
        let of_lead = match lead {
            "" => 0,
            lead => {
                let lead = self.tokenizer.encode_fast(lead, false);
                lead.map_err(|error| error.to_string())?.len()
            }
        };
        let room = self.room.saturating_sub(of_lead).max(1);
        let most = room * MOST_PARTS;
        let encoding = beginning::tokens_in_place(self.tokenizer, text, most)?;
        let (words, offsets) = (encoding.get_word_ids(), encoding.get_offsets());
        let mut parts = Vec::new();
        let (mut token, mut byte) = (0, 0);
        while token < words.len() && parts.len() < MOST_PARTS {
            let next = end_of_part(words, token, room);
            let end = offsets.get(next - 1).map_or(byte, |offset| offset.1);
            let end = text.floor_char_boundary(end);
            if end > byte {
                let own = if lead.is_empty() { &text[byte..end] } else { text[byte..end].trim() };
                let own = format!("{lead}{own}");
                let length = beginning::tokens(self.tokenizer, &own, self.room)?.len();
                let length = length.min(self.room);
                parts.push(Part { text: own, tokens: next - token, length });
                byte = end;
            }
            token = next;
        }
        if parts.is_empty() {
            parts.push(Part { text: format!("{lead}{text}"), tokens, length: self.room });
        }
        Ok(parts)
    }
}

/// The embedding of a text whose parts are embedded: their mean by weight, or
/// the first one if that is no direction.
pub(crate) fn whole(mut parts: Vec<(Embedding, usize)>) -> Option<Embedding> {
    let mean = match &parts[..] {
        [] | [_] => None,
        several => Embedding::mean(several.iter().map(|(part, weight)| (part, *weight))),
    };
    mean.or_else(|| (!parts.is_empty()).then(|| parts.swap_remove(0).0))
}

/// The token with which the next part begins.
fn end_of_part(words: &[Option<u32>], first: usize, room: usize) -> usize {
    let end = first + room;
    if end >= words.len() {
        return words.len();
    }
    let begins_word = |at: &usize| words[*at] != words[*at - 1];
    let least = end - room / 4;
    (least.max(first + 1)..=end).rev().find(begins_word).unwrap_or(end - room / 16)
}
