//! What a commit changed, for a copy in memory to take over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ports::chunk_store::Document;

/// What a commit changed.
#[derive(Default)]
pub(super) struct Delta {
    /// Whether all rows before it are void.
    pub(super) emptied: bool,
    /// Whether a copy cannot take it over and has to be loaded anew.
    pub(super) void: bool,
    /// Of the vector table afterwards.
    pub(super) dimension: Option<usize>,
    /// Documents as they are afterwards; none for one that has gone.
    pub(super) documents: BTreeMap<i64, Option<Arc<Document>>>,
    pub(super) removed: BTreeSet<i64>,
    pub(super) added: BTreeMap<i64, Added>,
    pub(super) embedded: BTreeMap<i64, Vec<f32>>,
}

/// A chunk that a commit added.
pub(super) struct Added {
    pub(super) id: i64,
    /// The number of its document's row.
    pub(super) owner: i64,
    pub(super) quality: f32,
    pub(super) vector: Option<Vec<f32>>,
}

impl Delta {
    /// All that was there has gone.
    pub(super) fn emptied() -> Self {
        Self { emptied: true, ..Self::default() }
    }

    /// Notes something that a copy cannot take over.
    pub(super) fn make_void(&mut self) {
        self.void = true;
    }

    /// Notes a new chunk.
    pub(super) fn add(&mut self, added: Added) {
        self.added.insert(added.id, added);
    }

    /// Notes the vector of a chunk.
    pub(super) fn embed(&mut self, id: i64, vector: Vec<f32>) {
        match self.added.get_mut(&id) {
            Some(added) => added.vector = Some(vector),
            None => {
                self.embedded.insert(id, vector);
            }
        }
    }

    /// Notes chunks that have gone.
    pub(super) fn remove(&mut self, ids: Vec<i64>) {
        for id in ids {
            self.embedded.remove(&id);
            if self.added.remove(&id).is_none() {
                self.removed.insert(id);
            }
        }
    }
}
