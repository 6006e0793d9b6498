//! Which rows of a copy in memory pass a filter.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::adapters::store::sqlite::segment::{Place, Rows, is_set};
use crate::domain::filter::Filter;

/// How many filters a copy remembers the admission of. Most searches have the
/// same one, and a search has both its legs ask.
const REMEMBERED: usize = 4;

/// One bit for each row of a copy. Cloning it copies pointers.
#[derive(Clone)]
pub(super) struct Admission {
    /// For each segment of rows with a vector.
    embedded: Vec<Arc<Vec<u64>>>,
    /// For each segment of rows without.
    pending: Vec<Arc<Vec<u64>>>,
}

impl Admission {
    /// Works out which rows pass.
    ///
    /// - `documents`: whether each passes, by its place; none if all do.
    pub(super) fn new(
        filter: &Filter,
        documents: Option<&[bool]>,
        embedded: &Rows,
        pending: &Rows,
    ) -> Self {
        let of = |rows: &Rows| {
            let segments = rows.segments().iter();
            let quality = |quality| filter.admits_quality(quality);
            segments.map(|segment| segment.admitted(documents, quality)).collect()
        };
        Self { embedded: of(embedded), pending: of(pending) }
    }

    /// The bits of each segment of rows with a vector.
    pub(super) fn embedded(&self) -> &[Arc<Vec<u64>>] {
        &self.embedded
    }

    /// Whether a row with a vector passes.
    pub(super) fn admits_embedded(&self, place: Place) -> bool {
        is_set(&self.embedded[place.segment], place.row)
    }

    /// Whether a row without a vector passes.
    pub(super) fn admits_pending(&self, place: Place) -> bool {
        is_set(&self.pending[place.segment], place.row)
    }

    /// The same but for some rows.
    pub(super) fn without(&self, embedded: &Rows, pending: &Rows, excluded: &HashSet<i64>) -> Self {
        let mut without = self.clone();
        for &id in excluded {
            if let Some(place) = embedded.place(id) {
                clear(&mut without.embedded, place);
            } else if let Some(place) = pending.place(id) {
                clear(&mut without.pending, place);
            }
        }
        without
    }
}

fn clear(bits: &mut [Arc<Vec<u64>>], place: Place) {
    Arc::make_mut(&mut bits[place.segment])[place.row / 64] &= !(1 << (place.row % 64));
}

type Cell = Arc<OnceLock<Arc<Admission>>>;

/// The admissions of the filters that were used last, the newest at the end.
#[derive(Default)]
pub(super) struct Admissions(Mutex<Vec<(Filter, Cell)>>);

impl Admissions {
    /// The admission of a filter, if it is known.
    pub(super) fn known(&self, filter: &Filter) -> Option<Arc<Admission>> {
        self.cell(filter).get().cloned()
    }

    /// The admission of a filter; whoever asks first works it out, and who asks
    /// meanwhile waits.
    pub(super) fn of(
        &self,
        filter: &Filter,
        work_out: impl FnOnce() -> Admission,
    ) -> Arc<Admission> {
        Arc::clone(self.cell(filter).get_or_init(|| Arc::new(work_out())))
    }

    fn cell(&self, filter: &Filter) -> Cell {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = used.iter().position(|(known, _)| known == filter);
        let entry = match known {
            Some(place) => used.remove(place),
            None => (filter.clone(), Cell::default()),
        };
        let cell = Arc::clone(&entry.1);
        used.push(entry);
        if used.len() > REMEMBERED {
            used.remove(0);
        }
        cell
    }
}
