//! The copy of all vectors in memory, and who keeps it up to date.
//!
//! A copy belongs to one generation and never changes. Its rows lie in segments
//! that the copies of later generations share, so that a commit costs what it
//! changed and not what the index holds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnection;

use crate::adapters::store::cosine::Query;
use crate::adapters::store::ranking::Best;
use crate::adapters::store::sqlite::rows::{self, Documents};
use crate::adapters::store::sqlite::{schema, vectors};
use crate::domain::chunk::ChunkId;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{Candidate, Document};

/// Rows of a full segment.
const SEGMENT: usize = 1024;

/// After a load the next one waits this many times as long as the load took.
const REST: u32 = 4;

/// What a commit changed.
#[derive(Default)]
pub(super) struct Delta {
    /// Whether all rows before it are void.
    emptied: bool,
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

/// A row on its way into a segment.
struct Row {
    id: i64,
    facet: Facet,
    vector: Vec<f32>,
}

/// Up to [`SEGMENT`] rows in ascending order of id, their vectors one after the
/// other.
struct Segment {
    ids: Vec<i64>,
    facets: Vec<Facet>,
    dimension: usize,
    values: Vec<f32>,
}

impl Segment {
    fn new(mut rows: Vec<Row>, dimension: usize) -> Self {
        rows.sort_unstable_by_key(|row| row.id);
        Self {
            ids: rows.iter().map(|row| row.id).collect(),
            facets: rows.iter().map(|row| row.facet).collect(),
            dimension,
            values: rows.into_iter().flat_map(|row| row.vector).collect(),
        }
    }

    fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        // A dimension is at least 1: a vector has a direction.
        self.values.chunks_exact(self.dimension.max(1))
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        self.ids.iter().zip(&self.facets).zip(self.vectors()).map(|((&id, &facet), vector)| Row {
            id,
            facet,
            vector: vector.to_vec(),
        })
    }

    /// Shows every admitted row with its similarity.
    fn scan(&self, query: &Query<'_>, admission: &Admission, best: &mut Best) {
        for ((&id, facet), vector) in self.ids.iter().zip(&self.facets).zip(self.vectors()) {
            if admission.admits(id, facet) {
                best.show(ChunkId(id), query.cosine(vector));
            }
        }
    }
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
            && !(!self.excluded.is_empty() && self.excluded.contains(&id))
    }
}

/// All chunks of one generation.
pub(super) struct Resident {
    generation: u64,
    dimension: Option<usize>,
    owners: Owners,
    segments: Vec<Arc<Segment>>,
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
        let mut segments = Vec::new();
        if let Some(dimension) = dimension {
            let mut rows = Vec::new();
            vectors::each(connection, dimension, |id, vector| {
                if let Some(facet) = pending.remove(&id) {
                    rows.push(Row { id, facet, vector: vector.to_vec() });
                }
                if rows.len() == SEGMENT {
                    segments.push(Arc::new(Segment::new(std::mem::take(&mut rows), dimension)));
                }
            })
            .await?;
            if !rows.is_empty() {
                segments.push(Arc::new(Segment::new(rows, dimension)));
            }
        }
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
        let query = Query::new(query);
        let mut best = Best::new(depth);
        for segment in &self.segments {
            segment.scan(&query, admission, &mut best);
        }
        best.into_ranking()
    }

    /// Every document, in ascending order of path.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        let mut documents: Vec<_> = self.owners.documents.iter().flatten().cloned().collect();
        documents.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        documents
    }

    /// The vector of a chunk.
    pub(super) fn vector(&self, id: i64) -> Option<&[f32]> {
        self.segments.iter().find_map(|segment| {
            let place = segment.place(id)?;
            segment.vectors().nth(place)
        })
    }

    fn facet(&self, id: i64) -> Option<&Facet> {
        self.segments
            .iter()
            .find_map(|segment| Some(&segment.facets[segment.place(id)?]))
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
        let mut fresh = Vec::new();
        for (&id, vector) in &delta.embedded {
            if let Some(&facet) = next.facet(id) {
                fresh.push(Row { id, facet, vector: vector.clone() });
            }
        }
        next.drop_rows(delta.removed.iter().chain(delta.embedded.keys()).copied().collect());
        for added in delta.added.values() {
            if let Some(owner) = next.owners.place(added.owner) {
                let facet = Facet { owner, quality: added.quality };
                match &added.vector {
                    Some(vector) => fresh.push(Row { id: added.id, facet, vector: vector.clone() }),
                    None => {
                        next.pending.insert(added.id, facet);
                    }
                }
            }
        }
        next.append(fresh);
        next
    }

    fn drop_rows(&mut self, gone: BTreeSet<i64>) {
        if gone.is_empty() {
            return;
        }
        self.pending.retain(|id, _| !gone.contains(id));
        for segment in &mut self.segments {
            let (Some(&first), Some(&last)) = (segment.ids.first(), segment.ids.last()) else {
                continue;
            };
            if gone.range(first..=last).any(|&id| segment.place(id).is_some()) {
                let rows = segment.rows().filter(|row| !gone.contains(&row.id)).collect();
                *segment = Arc::new(Segment::new(rows, segment.dimension));
            }
        }
        self.segments.retain(|segment| !segment.ids.is_empty());
        let rows: usize = self.segments.iter().map(|segment| segment.ids.len()).sum();
        if self.segments.len() > 8 + 2 * rows.div_ceil(SEGMENT) {
            let all = std::mem::take(&mut self.segments);
            self.append(all.iter().flat_map(|segment| segment.rows()).collect());
        }
    }

    fn append(&mut self, mut fresh: Vec<Row>) {
        let Some(dimension) = self.dimension.filter(|_| !fresh.is_empty()) else { return };
        if let Some(tail) = self.segments.pop_if(|tail| tail.ids.len() < SEGMENT) {
            fresh.extend(tail.rows());
        }
        fresh.sort_unstable_by_key(|row| row.id);
        let mut fresh = fresh.into_iter().peekable();
        while fresh.peek().is_some() {
            let rows = fresh.by_ref().take(SEGMENT).collect();
            self.segments.push(Arc::new(Segment::new(rows, dimension)));
        }
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
        {
            self.current = Some(Arc::new(current.patched(generation, delta)));
        }
    }
}
