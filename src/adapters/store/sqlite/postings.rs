//! How the places of a word are written down.
//!
//! A block holds postings in ascending order of chunk. Each is three or more
//! numbers of seven bits a byte, the lowest first: how far the chunk is from the
//! one before (the first: from the block's own number), how often the word stands
//! in it, and how many words the chunk has. Most words stand in the content
//! alone: then the second number is twice the count; else it is twice the count
//! plus one, and the counts of heading and context follow.

use crate::adapters::store::words::Posting;

/// A block that is larger gets no further posting: with its word it still fits
/// into a leaf of the tree.
pub(super) const FULL: usize = 880;

/// Adds a posting to a block.
///
/// - `before`: the chunk of the posting before, or the block's own number.
pub(super) fn push(block: &mut Vec<u8>, before: i64, posting: &Posting) {
    let [heading, context, text] = posting.counts;
    put(block, posting.id.wrapping_sub(before).unsigned_abs());
    if heading == 0 && context == 0 {
        put(block, u64::from(text) << 1);
    } else {
        put(block, u64::from(text) << 1 | 1);
        put(block, heading.into());
        put(block, context.into());
    }
    put(block, posting.length.into());
}

/// Reads a block to its end, or to where it is damaged.
///
/// - `first`: the block's own number.
pub(super) fn read(block: &[u8], first: i64, postings: &mut Vec<Posting>) {
    let mut rest = block;
    let mut id = first;
    while !rest.is_empty() {
        let Some(posting) = take_posting(&mut rest, id) else { return };
        id = posting.id;
        postings.push(posting);
    }
}

fn take_posting(rest: &mut &[u8], before: i64) -> Option<Posting> {
    let step = i64::try_from(take(rest)?).ok()?;
    let id = before.checked_add(step)?;
    let text = take(rest)?;
    let (heading, context) = if text & 1 == 1 {
        (u32::try_from(take(rest)?).ok()?, u32::try_from(take(rest)?).ok()?)
    } else {
        (0, 0)
    };
    let text = u32::try_from(text >> 1).ok()?;
    let length = u32::try_from(take(rest)?).ok()?;
    Some(Posting { id, counts: [heading, context, text], length })
}

fn put(block: &mut Vec<u8>, mut number: u64) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return block.push(low & 0x7f);
        }
        block.push(low | 0x80);
    }
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn postings_survive_being_written_down(
            first in 0_i64..1 << 40,
            rows in prop::collection::vec((0_i64..1 << 33, any::<[u16; 3]>(), any::<u32>()), 0..60),
        ) {
            let mut id = first;
            let mut postings = Vec::new();
            let mut block = Vec::new();
            for (step, counts, length) in rows {
                let posting = Posting { id: id + step, counts: counts.map(u32::from), length };
                push(&mut block, id, &posting);
                id = posting.id;
                postings.push(posting);
            }
            let mut back = Vec::new();
            read(&block, first, &mut back);
            prop_assert_eq!(back, postings);
        }

        #[test]
        fn damaged_blocks_are_read_as_far_as_they_go(
            block in prop::collection::vec(any::<u8>(), 0..200),
            first in any::<i64>(),
        ) {
            let mut postings = Vec::new();
            read(&block, first, &mut postings);
            prop_assert_eq!(postings.len() <= block.len(), true);
        }
    }

    #[test]
    fn a_usual_posting_takes_three_bytes() {
        let mut block = Vec::new();
        push(&mut block, 100, &Posting { id: 117, counts: [0, 0, 2], length: 90 });
        assert_eq!(block, [17, 4, 90]);
    }
}
