//! The copy of all vectors in memory, and who keeps it up to date.
//!
//! A copy belongs to one generation and never changes. Its rows lie in segments
//! that the copies of later generations share, so that a commit costs what it
//! changed and not what the index holds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::sample::{self, Sample};
use crate::adapters::store::sqlite::matrix::{self, Matrix, Part};
use crate::adapters::store::sqlite::rows::{self, Documents};
use crate::adapters::store::sqlite::{schema, vectors};
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{Candidate, Document};

/// Rows of a full segment, which no commit copies as long as most of it lives.
const SEGMENT: usize = if cfg!(test) { 16 } else { 16_384 };

/// After a load the next one waits this many times as long as the load took.
const REST: u32 = 4;

/// What a commit changed.
#[derive(Default)]
pub(super) struct Delta {
    /// Whether all rows before it are void.
    emptied: bool,
    /// Whether a copy cannot take it over and has to be loaded anew.
    void: bool,
    /// Of the vector table afterwards.
    pub(super) dimension: Option<usize>,
    /// Documents as they are afterwards; none for one that has gone.
    pub(super) documents: BTreeMap<i64, Option<Arc<Document>>>,
    removed: BTreeSet<i64>,
    added: BTreeMap<i64, Added>,
    embedded: BTreeMap<i64, Vec<f32>>,
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

/// What a filter has to know of a chunk.
#[derive(Clone, Copy)]
struct Facet {
    /// Where its document is among the owners.
    owner: usize,
    quality: f32,
}

/// The documents, each at a place that it keeps.
#[derive(Clone, Default)]
struct Owners {
    places: Arc<HashMap<i64, usize>>,
    documents: Vec<Option<Arc<Document>>>,
}

impl Owners {
    fn set(&mut self, id: i64, document: Option<Arc<Document>>) {
        if let Some(&place) = self.places.get(&id) {
            self.documents[place] = document;
        } else if document.is_some() {
            Arc::make_mut(&mut self.places).insert(id, self.documents.len());
            self.documents.push(document);
        }
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.places.get(&id).copied().filter(|&place| self.documents[place].is_some())
    }
}

/// Rows on their way into segments.
#[derive(Default)]
struct Loose {
    rows: Vec<(i64, Facet)>,
    /// The vectors, one after the other.
    values: Vec<f32>,
}

impl Loose {
    fn push(&mut self, id: i64, facet: Facet, vector: &[f32]) {
        self.rows.push((id, facet));
        self.values.extend_from_slice(vector);
    }

    /// Cuts full segments off, and at the end what is left.
    fn into_segments(self, dimension: usize) -> Vec<Segment> {
        let rows = self.rows.chunks(SEGMENT);
        let values = self.values.chunks(SEGMENT * dimension.max(1));
        rows.zip(values).map(|(rows, values)| Segment::new(rows, values, dimension)).collect()
    }
}

/// Up to [`SEGMENT`] rows in ascending order of id. Rows that have gone stay
/// until there are too many of them.
#[derive(Clone)]
struct Segment {
    block: Arc<Block>,
    /// One bit for each row.
    alive: Arc<Vec<u64>>,
    living: usize,
}

struct Block {
    ids: Vec<i64>,
    facets: Vec<Facet>,
    matrix: Matrix,
}

impl Segment {
    fn new(rows: &[(i64, Facet)], values: &[f32], dimension: usize) -> Self {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&place| rows[place].0);
        let vector = |&place: &usize| &values[place * dimension..][..dimension];
        let values = order.iter().flat_map(vector).copied().collect();
        let block = Block {
            ids: order.iter().map(|&place| rows[place].0).collect(),
            facets: order.iter().map(|&place| rows[place].1).collect(),
            matrix: Matrix::new(values, dimension),
        };
        let alive = bits(rows.len(), |_| true);
        Self { block: Arc::new(block), alive: Arc::new(alive), living: rows.len() }
    }

    fn is_alive(&self, place: usize) -> bool {
        self.alive[place / 64] >> (place % 64) & 1 == 1
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.block.ids.binary_search(&id).ok().filter(|&place| self.is_alive(place))
    }

    fn kill(&mut self, id: i64) {
        if let Some(place) = self.place(id) {
            Arc::make_mut(&mut self.alive)[place / 64] &= !(1 << (place % 64));
            self.living -= 1;
        }
    }

    fn pour_into(&self, loose: &mut Loose) {
        let Block { ids, facets, matrix } = &*self.block;
        for (place, (&id, &facet)) in ids.iter().zip(facets).enumerate() {
            if self.is_alive(place) {
                loose.push(id, facet, matrix.row(place));
            }
        }
    }

    fn part(&self, admission: &Admission) -> Part<'_> {
        let Block { ids, facets, matrix } = &*self.block;
        let admitted = bits(matrix.len(), |place| {
            self.is_alive(place) && admission.admits(ids[place], &facets[place])
        });
        Part { ids, matrix, admitted }
    }
}

/// One bit for each of the first `count` places.
fn bits(count: usize, is_set: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |first: usize| {
        (first..count.min(first + 64))
            .map(|place| u64::from(is_set(place)) << (place % 64))
            .fold(0, |word, bit| word | bit)
    };
    (0..count).step_by(64).map(word).collect()
}

/// Which rows pass, worked out once for each document.
pub(super) struct Admission {
    filter: Filter,
    /// By the place of the document; none if every document passes.
    documents: Option<Vec<bool>>,
    excluded: HashSet<i64>,
}

impl Admission {
    fn admits(&self, id: i64, facet: &Facet) -> bool {
        self.filter.admits_quality(facet.quality)
            && self.documents.as_ref().is_none_or(|documents| documents[facet.owner])
            && !self.excluded.contains(&id)
    }
}

/// All chunks of one generation. Cloning it copies pointers and documents' places.
#[derive(Clone)]
pub(super) struct Resident {
    generation: u64,
    dimension: Option<usize>,
    owners: Owners,
    segments: Vec<Segment>,
    /// Chunks without a vector.
    pending: BTreeMap<i64, Facet>,
}

impl Resident {
    /// Reads all that a transaction sees.
    pub(super) async fn load(
        connection: &mut SqliteConnection,
        generation: u64,
    ) -> Result<Self, sqlx::Error> {
        let mut owners = Owners::default();
        for (id, document) in rows::all_documents(&mut *connection).await? {
            owners.set(id, Some(document));
        }
        let mut pending = BTreeMap::new();
        for (id, owner, quality) in facets(connection).await? {
            if let Some(owner) = owners.place(owner) {
                pending.insert(id, Facet { owner, quality });
            }
        }
        let dimension = schema::declared_dimension(connection).await?;
        let mut loose = Loose::default();
        if let Some(dimension) = dimension {
            vectors::each(connection, dimension, |id, vector| {
                if let Some(facet) = pending.remove(&id) {
                    loose.push(id, facet, vector);
                }
            })
            .await?;
        }
        let segments =
            tokio::task::spawn_blocking(move || loose.into_segments(dimension.unwrap_or_default()))
                .await
                .map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok(Self { generation, dimension, owners, segments, pending })
    }

    /// Works out which rows pass.
    pub(super) fn admission(&self, filter: &Filter, excluded: HashSet<i64>) -> Admission {
        let admits = |document: &Option<Arc<Document>>| {
            document.as_ref().is_some_and(|document| filter.admits(&document.facets()))
        };
        let documents = (!filter.admits_every_document())
            .then(|| self.owners.documents.iter().map(admits).collect());
        Admission { filter: filter.clone(), documents, excluded }
    }

    /// Whether a chunk is there and passes.
    pub(super) fn admits(&self, id: i64, admission: &Admission) -> bool {
        self.facet(id).is_some_and(|facet| admission.admits(id, facet))
    }

    /// The admitted rows that are nearest to a query, best first.
    pub(super) fn nearest(
        &self,
        query: &[f32],
        depth: usize,
        admission: &Admission,
    ) -> Vec<Candidate> {
        let parts: Vec<Part<'_>> =
            self.segments.iter().map(|segment| segment.part(admission)).collect();
        matrix::nearest(query, depth, &parts)
    }

    /// How the cosines of all vectors with a query are spread.
    pub(super) fn spread(&self, query: &[f32]) -> Option<Spread> {
        let sample = Sample::of(self.segments.iter().map(|segment| segment.living).sum());
        let sampled = self.segments.iter().flat_map(|segment| {
            let Block { ids, matrix, .. } = &*segment.block;
            (0..ids.len())
                .filter(|&place| sample.takes(ids[place]) && segment.is_alive(place))
                .map(|place| (ids[place], matrix.row(place)))
        });
        sample::spread(query, sampled)
    }

    /// Every document, in ascending order of path.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        let mut documents: Vec<_> = self.owners.documents.iter().flatten().cloned().collect();
        documents.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        documents
    }

    /// The vector of a chunk.
    pub(super) fn vector(&self, id: i64) -> Option<&[f32]> {
        self.segments.iter().find_map(|segment| Some(segment.block.matrix.row(segment.place(id)?)))
    }

    fn facet(&self, id: i64) -> Option<&Facet> {
        self.segments
            .iter()
            .find_map(|segment| Some(&segment.block.facets[segment.place(id)?]))
            .or_else(|| self.pending.get(&id))
    }

    /// The copy of the next generation.
    fn patched(&self, generation: u64, delta: &Delta) -> Self {
        let mut next = Self {
            generation,
            dimension: delta.dimension,
            owners: Owners::default(),
            segments: Vec::new(),
            pending: BTreeMap::new(),
        };
        if !delta.emptied {
            next.owners = self.owners.clone();
            next.segments.clone_from(&self.segments);
            next.pending.clone_from(&self.pending);
        }
        for (&id, document) in &delta.documents {
            next.owners.set(id, document.clone());
        }
        let mut fresh = Loose::default();
        for (&id, vector) in &delta.embedded {
            if let Some(&facet) = next.facet(id) {
                fresh.push(id, facet, vector);
            }
        }
        for &id in delta.removed.iter().chain(delta.embedded.keys()) {
            next.pending.remove(&id);
            next.segments.iter_mut().for_each(|segment| segment.kill(id));
        }
        for added in delta.added.values() {
            if let Some(owner) = next.owners.place(added.owner) {
                let facet = Facet { owner, quality: added.quality };
                match &added.vector {
                    Some(vector) => fresh.push(added.id, facet, vector),
                    None => {
                        next.pending.insert(added.id, facet);
                    }
                }
            }
        }
        next.append(fresh);
        next
    }

    /// Adds rows. Segments that are no larger than twice what is added become
    /// one with it, so that there are few and a row is seldom copied; so do
    /// those of which half has gone.
    fn append(&mut self, mut fresh: Loose) {
        self.segments.retain(|segment| {
            let wasteful = segment.living * 2 < segment.block.ids.len();
            if wasteful {
                segment.pour_into(&mut fresh);
            }
            !wasteful
        });
        while let Some(small) = self.segments.pop_if(|last| {
            !fresh.rows.is_empty()
                && last.living <= 2 * fresh.rows.len()
                && last.living + fresh.rows.len() <= SEGMENT
        }) {
            small.pour_into(&mut fresh);
        }
        self.segments.extend(fresh.into_segments(self.dimension.unwrap_or_default()));
    }
}

/// Every chunk's id, the number of its document's row, and its quality.
pub(super) async fn facets(
    connection: &mut SqliteConnection,
) -> Result<Vec<(i64, i64, f32)>, sqlx::Error> {
    let rows: Vec<(i64, i64, Option<f64>)> =
        sqlx::query_as("SELECT id, document_id, quality_score FROM chunks")
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().map(|(id, owner, stored)| (id, owner, rows::quality(stored))).collect())
}

/// What passes, for a transaction that no copy fits.
pub(super) fn passing(
    facets: Vec<(i64, i64, f32)>,
    documents: &Documents,
    filter: &Filter,
    excluded: &HashSet<i64>,
) -> HashSet<i64> {
    let admitted: HashSet<i64> = documents
        .iter()
        .filter(|(_, document)| filter.admits(&document.facets()))
        .map(|(&id, _)| id)
        .collect();
    facets
        .into_iter()
        .filter(|(id, owner, quality)| {
            admitted.contains(owner) && filter.admits_quality(*quality) && !excluded.contains(id)
        })
        .map(|(id, ..)| id)
        .collect()
}

/// Holds the newest copy.
#[derive(Default)]
pub(super) struct Keeper(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    current: Option<Arc<Resident>>,
    loading: bool,
    /// Commits since the load under way began.
    missed: Vec<(u64, Delta)>,
    rest_until: Option<Instant>,
}

impl Keeper {
    /// The copy of one generation, if it is the one that is held.
    pub(super) fn fitting(&self, generation: u64) -> Option<Arc<Resident>> {
        self.lock().current.clone().filter(|resident| resident.generation == generation)
    }

    /// Takes over what this process committed.
    pub(super) fn committed(&self, generation: u64, delta: Delta) {
        let mut kept = self.lock();
        kept.take_over(generation, &delta);
        if kept.loading {
            kept.missed.push((generation, delta));
        }
    }

    /// Whether the caller is to load a copy: none that is at least as new is
    /// there or on its way, and the last load is long enough ago.
    pub(super) fn may_load(&self, generation: u64) -> bool {
        let mut kept = self.lock();
        let resting = kept.rest_until.is_some_and(|until| Instant::now() < until);
        let fits = kept.current.as_ref().is_some_and(|current| current.generation >= generation);
        if kept.loading || resting || fits {
            return false;
        }
        kept.loading = true;
        true
    }

    /// Whether a copy is held.
    pub(super) fn has_copy(&self) -> bool {
        self.lock().current.is_some()
    }

    /// Takes over the copy of a store whose contents become this one's, under
    /// the generation that they have here.
    pub(super) fn adopt(&self, other: &Self, generation: u64) {
        let Some(resident) = other.lock().current.take() else { return };
        let resident = Resident { generation, ..Resident::clone(&resident) };
        let mut kept = self.lock();
        if kept.current.as_ref().is_none_or(|held| held.generation < generation) {
            kept.current = Some(Arc::new(resident));
        }
    }

    /// Begins the load that was allowed.
    pub(super) fn loading(&self) -> Loading<'_> {
        Loading { keeper: self, start: Instant::now(), resident: None }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A load under way. It ends however the load does.
pub(super) struct Loading<'a> {
    keeper: &'a Keeper,
    start: Instant,
    resident: Option<Resident>,
}

impl Loading<'_> {
    /// Hands the copy over.
    pub(super) fn done(mut self, resident: Resident) {
        self.resident = Some(resident);
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.keeper.lock().loaded(self.resident.take(), self.start.elapsed());
    }
}

impl Kept {
    fn loaded(&mut self, resident: Option<Resident>, took: Duration) {
        self.loading = false;
        self.rest_until = Some(Instant::now() + took * REST);
        let missed = std::mem::take(&mut self.missed);
        let Some(resident) = resident else { return };
        if self.current.as_ref().is_none_or(|held| held.generation < resident.generation) {
            self.current = Some(Arc::new(resident));
            for (generation, delta) in &missed {
                self.take_over(*generation, delta);
            }
        }
    }

    fn take_over(&mut self, generation: u64, delta: &Delta) {
        if let Some(current) = &self.current
            && current.generation + 1 == generation
            && !delta.void
        {
            self.current = Some(Arc::new(current.patched(generation, delta)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::domain::document::{ContentHash, DocumentPath};

    fn document(number: i64) -> Arc<Document> {
        Arc::new(Document {
            path: DocumentPath::new(format!("{number}.md")).unwrap(),
            title: None,
            topic: None,
            category: None,
            depth: None,
            tags: Vec::new(),
            date: None,
            fields: BTreeMap::new(),
            hash: ContentHash::from_text(""),
            recipe: None,
            size_bytes: None,
            indexed_at: String::new(),
        })
    }

    fn empty() -> Resident {
        Resident {
            generation: 0,
            dimension: Some(2),
            owners: Owners::default(),
            segments: Vec::new(),
            pending: BTreeMap::new(),
        }
    }

    fn vector(seed: u8) -> Vec<f32> {
        vec![f32::from(seed % 7) - 3.0, f32::from(seed % 5) + 0.5]
    }

    /// What a commit does, by numbers that stand for what exists by then.
    #[derive(Clone, Debug)]
    enum Step {
        Add { count: u8, with_vector: bool },
        Remove { from: usize, count: usize },
        Embed { place: usize, seed: u8 },
        Empty,
    }

    fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
        let step = prop::strategy::Union::new_weighted(vec![
            (
                5,
                (1_u8..40, any::<bool>())
                    .prop_map(|(count, with_vector)| Step::Add { count, with_vector })
                    .boxed(),
            ),
            (
                4,
                (any::<usize>(), 1_usize..30)
                    .prop_map(|(from, count)| Step::Remove { from, count })
                    .boxed(),
            ),
            (
                3,
                (any::<usize>(), any::<u8>())
                    .prop_map(|(place, seed)| Step::Embed { place, seed })
                    .boxed(),
            ),
            (1, prop::strategy::Just(Step::Empty).boxed()),
        ]);
        prop::collection::vec(prop::collection::vec(step, 1..4), 1..16)
    }

    proptest! {
        #[test]
        fn a_patched_copy_answers_like_the_rows_that_it_should_hold(batches in steps()) {
            let mut model: BTreeMap<i64, Option<Vec<f32>>> = BTreeMap::new();
            let (mut resident, mut last) = (empty(), 0);
            for (batch, generation) in batches.into_iter().zip(1..) {
                let mut delta = Delta { dimension: Some(2), ..Delta::default() };
                delta.documents.insert(1, Some(document(1)));
                for step in batch {
                    let known: Vec<i64> = model.keys().copied().collect();
                    match step {
                        Step::Add { count, with_vector } => for seed in 0..count {
                            last += 1;
                            let vector = with_vector.then(|| vector(seed));
                            model.insert(last, vector.clone());
                            delta.add(Added { id: last, owner: 1, quality: 1.0, vector });
                        },
                        Step::Remove { from, count } => {
                            let from = from % known.len().max(1);
                            let gone: Vec<i64> =
                                known.into_iter().skip(from).take(count).collect();
                            for id in &gone {
                                model.remove(id);
                            }
                            delta.remove(gone);
                        }
                        Step::Embed { place, seed } => {
                            if let Some(&id) = known.get(place % known.len().max(1)) {
                                model.insert(id, Some(vector(seed)));
                                delta.embed(id, vector(seed));
                            }
                        }
                        Step::Empty => {
                            model.clear();
                            delta = Delta { dimension: Some(2), ..Delta::emptied() };
                            delta.documents.insert(1, Some(document(1)));
                        }
                    }
                }
                resident = resident.patched(generation, &delta);

                let admission = resident.admission(&Filter::default(), HashSet::new());
                let mut best = crate::adapters::store::ranking::Best::new(25);
                let query = crate::adapters::store::cosine::Query::new(&[1.0, 0.3]);
                for (&id, vector) in &model {
                    prop_assert_eq!(resident.vector(id), vector.as_deref());
                    prop_assert!(resident.admits(id, &admission));
                    if let Some(vector) = vector {
                        best.show(crate::domain::chunk::ChunkId(id), query.cosine(vector));
                    }
                }
                prop_assert!(!resident.admits(last + 1, &admission));
                let nearest = resident.nearest(&[1.0, 0.3], 25, &admission);
                prop_assert_eq!(nearest, best.into_ranking());
                let rows = model.values().flatten().count();
                let living: usize = resident.segments.iter().map(|segment| segment.living).sum();
                prop_assert_eq!(living, rows);
                // Few segments, however the rows came.
                prop_assert!(resident.segments.len() <= 10 + 4 * rows / SEGMENT);
            }
        }
    }

    #[test]
    fn commits_during_a_load_are_made_up_for() {
        let keeper = Keeper::default();
        let delta = |id| {
            let mut delta = Delta { dimension: Some(2), ..Delta::default() };
            delta.documents.insert(1, Some(document(1)));
            delta.add(Added { id, owner: 1, quality: 1.0, vector: Some(vector(1)) });
            delta
        };
        assert!(keeper.may_load(0));
        assert!(!keeper.may_load(0), "one load at a time");
        let loading = keeper.loading();
        for generation in 1..4 {
            keeper.committed(generation, delta(10));
        }
        // The load saw the first commit already.
        loading.done(Resident { generation: 1, ..empty() });
        let resident = keeper.fitting(3).unwrap();
        assert!(resident.vector(10).is_some());
        assert!(keeper.fitting(1).is_none());
        keeper.committed(4, delta(11));
        assert!(keeper.fitting(4).is_some());
        // A commit of another process came between.
        keeper.committed(6, delta(12));
        assert!(keeper.fitting(6).is_none());
    }

    #[test]
    fn a_load_that_fails_may_be_tried_again() {
        let keeper = Keeper::default();
        assert!(keeper.may_load(1));
        drop(keeper.loading());
        std::thread::sleep(Duration::from_millis(5));
        assert!(keeper.may_load(1));
    }
}
