//! The tokens of the beginning of a text.

use tokenizers::{Encoding, Tokenizer};

/// Bytes of a text that are looked at first for each token of the window. Words
/// are shorter, so as a rule the window is full by then.
const BYTES_PER_TOKEN: usize = 16;

/// The same where as many tokens are wanted as several windows hold.
const FEW_BYTES_PER_TOKEN: usize = 4;

/// Bytes of a text that are looked at in the end, however few tokens they give
/// and however long its words are.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// Words between the window's last and the place where a text was cut inside a
/// word. A special token may be cut, too, and has several words in place of one.
const MARGIN_WORDS: u32 = 16;

/// The tokens of a text, without special ones: all, or more than `room`, of
/// which the first `room` are those of the whole text.
///
/// Of a long text no more is looked at than that takes, since a tokenizer
/// needs a hundred times the memory of its text.
pub(crate) fn tokens(tokenizer: &Tokenizer, text: &str, room: usize) -> Result<Encoding, String> {
    let fast = |head: &str| tokenizer.encode_fast(head, false);
    beginning(tokenizer, text, room, room * BYTES_PER_TOKEN, &fast)
}

/// The same, with the word of each token and its offsets in the text, in bytes.
pub(crate) fn tokens_in_place(
    tokenizer: &Tokenizer,
    text: &str,
    room: usize,
) -> Result<Encoding, String> {
    let slow = |head: &str| tokenizer.encode(head, false);
    beginning(tokenizer, text, room, room * FEW_BYTES_PER_TOKEN, &slow)
}

fn beginning(
    tokenizer: &Tokenizer,
    text: &str,
    room: usize,
    mut bytes: usize,
    encode: &dyn Fn(&str) -> tokenizers::Result<Encoding>,
) -> Result<Encoding, String> {
    let encode = |head: &str| encode(head).map_err(|error| error.to_string());
    loop {
        let is_last = bytes >= MOST_BYTES;
        let encoding = match head(text, bytes) {
            Head::All => return encode(text),
            // No token reaches over white space.
            Head::ToSpace(head) => Some(encode(head)?).filter(|it| it.len() > room),
            Head::ToAnywhere(head) => {
                let encoding = tokenizer.encode(head, false).map_err(|error| error.to_string())?;
                Some(encoding).filter(|it| it.len() > room && (is_last || settled(it, room)))
            }
        };
        if let Some(encoding) = encoding {
            return Ok(encoding);
        }
        bytes = bytes.saturating_mul(4);
    }
}

/// The beginning of a text.
enum Head<'a> {
    /// There is no more.
    All,
    /// Up to white space, where every tokenizer begins a new word.
    ToSpace(&'a str),
    /// Cut somewhere, for want of white space.
    ToAnywhere(&'a str),
}

fn head(text: &str, bytes: usize) -> Head<'_> {
    if bytes >= text.len() {
        return Head::All;
    }
    let head = &text[..text.floor_char_boundary(bytes)];
    let space = head.rfind([' ', '\n']).map(|space| head[..space].trim_end());
    match space.filter(|words| words.len() >= bytes / 2) {
        Some(words) => Head::ToSpace(words),
        None => Head::ToAnywhere(head),
    }
}

/// Whether the window ends well before the word that the cut may have changed.
fn settled(encoding: &Encoding, room: usize) -> bool {
    let words = encoding.get_word_ids();
    let last_of = |words: &[Option<u32>]| words.iter().rev().find_map(|word| *word);
    match (words.get(..room).and_then(last_of), last_of(words)) {
        (Some(within), Some(last)) => within.saturating_add(MARGIN_WORDS) <= last,
        _ => false,
    }
}
