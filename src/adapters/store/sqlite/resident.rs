//! The copy of all vectors in memory.
//!
//! A copy belongs to one generation and never changes. Its rows lie in segments
//! that the copies of later generations share, so that a commit costs what it
//! changed and not what the index holds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock};

use sqlx::sqlite::SqliteConnection;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::adapters::store::cosine::{Query, TOGETHER, has_direction};
use crate::adapters::store::sample::{self, Sample};
pub(super) use crate::adapters::store::sqlite::admission::Admission;
use crate::adapters::store::sqlite::admission::Admissions;
pub(super) use crate::adapters::store::sqlite::delta::{Added, Delta};
use crate::adapters::store::sqlite::scan::{self, Part};
use crate::adapters::store::sqlite::segment::{Facet, Loose, Place, Rows, SEGMENT, Segment};
use crate::adapters::store::sqlite::vectors::{self, VectorBlock};
use crate::adapters::store::sqlite::{rows, schema};
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{Candidate, Document};

/// Groups of blocks that are cut into segments while the next one is read.
const READ_AHEAD: usize = 3;

/// The documents, each at a place that it keeps.
#[derive(Clone, Default)]
struct Owners {
    places: Arc<HashMap<i64, u32>>,
    documents: Vec<Option<Arc<Document>>>,
}

impl Owners {
    fn set(&mut self, id: i64, document: Option<Arc<Document>>) {
        if let Some(&place) = self.places.get(&id) {
            self.documents[place as usize] = document;
        } else if document.is_some()
            && let Ok(place) = u32::try_from(self.documents.len())
        {
            Arc::make_mut(&mut self.places).insert(id, place);
            self.documents.push(document);
        }
    }

    fn place(&self, id: i64) -> Option<u32> {
        let place = *self.places.get(&id)?;
        self.documents[place as usize].as_ref().map(|_| place)
    }
}

/// All chunks of one generation.
pub(super) struct Resident {
    generation: u64,
    owners: Owners,
    /// Chunks with a vector.
    embedded: Rows,
    /// Chunks without.
    pending: Rows,
    admissions: Admissions,
    /// Some rows with a vector that stand for all.
    sample: OnceLock<Vec<(i64, Place)>>,
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
        let all = facets(connection).await?;
        let (owners, all) = on_blocking_thread(move || {
            let placed = |(id, owner, quality)| {
                owners.place(owner).map(|owner| (id, Facet { owner, quality }))
            };
            let placed: Vec<(i64, Facet)> = all.into_iter().filter_map(placed).collect();
            (owners, Arc::new(placed))
        })
        .await?;
        let dimension = schema::declared_dimension(connection).await?;
        let embedded = match dimension {
            Some(dimension) => embedded(connection, dimension, &all).await?,
            None => Vec::new(),
        };
        on_blocking_thread(move || {
            let embedded = Rows::new(dimension.unwrap_or_default(), embedded);
            let mut pending = Loose::default();
            for &(id, facet) in all.iter().filter(|(id, _)| embedded.place(*id).is_none()) {
                pending.push(id, facet, &[]);
            }
            let pending = Rows::new(0, pending.into_segments(0));
            Self::of(generation, owners, embedded, pending)
        })
        .await
    }

    fn of(generation: u64, owners: Owners, embedded: Rows, pending: Rows) -> Self {
        let (admissions, sample) = (Admissions::default(), OnceLock::new());
        Self { generation, owners, embedded, pending, admissions, sample }
    }

    /// What it is a copy of.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The same as the copy of another generation.
    pub(super) fn of_generation(&self, generation: u64) -> Self {
        let (owners, embedded) = (self.owners.clone(), self.embedded.clone());
        Self::of(generation, owners, embedded, self.pending.clone())
    }

    /// Which rows pass a filter, if that was worked out before.
    pub(super) fn known_admission(&self, filter: &Filter) -> Option<Arc<Admission>> {
        self.admissions.known(filter)
    }

    /// Which rows pass a filter. Takes time linear in the rows the first time.
    pub(super) fn admission(&self, filter: &Filter) -> Arc<Admission> {
        self.admissions.of(filter, || {
            let admits = |document: &Option<Arc<Document>>| {
                document.as_ref().is_some_and(|document| filter.admits(&document.facets()))
            };
            let documents: Option<Vec<bool>> = (!filter.admits_every_document())
                .then(|| self.owners.documents.iter().map(admits).collect());
            Admission::new(filter, documents.as_deref(), &self.embedded, &self.pending)
        })
    }

    /// The same admission but for some chunks.
    pub(super) fn without(&self, admission: &Admission, excluded: &HashSet<i64>) -> Admission {
        admission.without(&self.embedded, &self.pending, excluded)
    }

    /// Whether a chunk is there and passes.
    ///
    /// - `admission`: of this copy.
    pub(super) fn admits(&self, id: i64, admission: &Admission) -> bool {
        match self.embedded.place(id) {
            Some(place) => admission.admits_embedded(place),
            None => self.pending.place(id).is_some_and(|place| admission.admits_pending(place)),
        }
    }

    /// The admitted rows that are nearest to each query, best first.
    ///
    /// - `admission`: of this copy.
    pub(super) fn nearest(
        &self,
        queries: &[&[f32]],
        depth: usize,
        admission: &Admission,
    ) -> Vec<Vec<Candidate>> {
        let parts: Vec<Part<'_>> = self
            .embedded
            .segments()
            .iter()
            .zip(admission.embedded())
            .map(|(segment, admitted)| Part {
                ids: segment.ids(),
                matrix: segment.matrix(),
                admitted,
            })
            .collect();
        scan::nearest(queries, depth, &parts)
    }

    /// How the cosines of all vectors with a query are spread.
    pub(super) fn spread(&self, query: &[f32]) -> Option<Spread> {
        let query = Query::new(query);
        let mut cosines = Vec::new();
        for group in self.sample().chunks(TOGETHER) {
            let sampled: [_; TOGETHER] =
                std::array::from_fn(|place| *group.get(place).unwrap_or(&group[0]));
            let (rows, squares) = self.embedded.vectors(sampled.map(|(_, place)| place));
            let found = query.cosines(rows, squares);
            let pairs = sampled.iter().zip(found).take(group.len());
            cosines.extend(pairs.map(|((id, _), cosine)| (*id, cosine)));
        }
        sample::spread_of(cosines)
    }

    /// How the cosines of vectors with one another are spread.
    pub(super) fn spread_between(&self) -> Option<Spread> {
        let sampled = self.sample().iter().filter_map(|(id, _)| Some((*id, self.vector(*id)?)));
        sample::spread_between(sampled)
    }

    fn sample(&self) -> &[(i64, Place)] {
        self.sample.get_or_init(|| {
            let sample = Sample::of(self.embedded.living());
            self.embedded.places().filter(|(id, _)| sample.takes(*id)).collect()
        })
    }

    /// Every document, in ascending order of path.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        let mut documents: Vec<_> = self.owners.documents.iter().flatten().cloned().collect();
        documents.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        documents
    }

    /// The vector of a chunk.
    pub(super) fn vector(&self, id: i64) -> Option<&[f32]> {
        self.embedded.vector(id)
    }

    /// The copy of the next generation.
    pub(super) fn patched(&self, generation: u64, delta: &Delta) -> Self {
        let mut next = if delta.emptied || delta.dimension.is_some_and(|it| it != self.dimension())
        {
            let embedded = Rows::new(delta.dimension.unwrap_or_default(), Vec::new());
            let (owners, pending) = if delta.emptied {
                (Owners::default(), Rows::default())
            } else {
                (self.owners.clone(), self.pending.clone())
            };
            Self::of(generation, owners, embedded, pending)
        } else {
            self.of_generation(generation)
        };
        for (&id, document) in &delta.documents {
            next.owners.set(id, document.clone());
        }
        let (mut with, mut without) = (Loose::default(), Loose::default());
        let mut take = |id, facet, vector: Option<&Vec<f32>>| match vector
            .filter(|vector| has_direction(vector))
        {
            Some(vector) => with.push(id, facet, vector),
            None => without.push(id, facet, &[]),
        };
        for (&id, vector) in &delta.embedded {
            let facet = next.embedded.facet(id).or_else(|| next.pending.facet(id));
            if let Some(facet) = facet {
                take(id, facet, Some(vector));
            }
        }
        for &id in delta.removed.iter().chain(delta.embedded.keys()) {
            next.pending.kill(id);
            next.embedded.kill(id);
        }
        for added in delta.added.values() {
            if let Some(owner) = next.owners.place(added.owner) {
                let facet = Facet { owner, quality: added.quality };
                take(added.id, facet, added.vector.as_ref());
            }
        }
        next.embedded.append(with);
        next.pending.append(without);
        next
    }

    fn dimension(&self) -> usize {
        self.embedded.dimension()
    }
}

/// Reads every vector, and cuts those that were read into segments meanwhile.
async fn embedded(
    connection: &mut SqliteConnection,
    dimension: usize,
    facets: &Arc<Vec<(i64, Facet)>>,
) -> Result<Vec<Segment>, sqlx::Error> {
    let (mut segments, mut under_way) = (Vec::new(), VecDeque::new());
    let (mut group, mut rows) = (Vec::new(), 0);
    for number in vectors::blocks(connection).await? {
        let block = vectors::block(connection, number, dimension).await?;
        rows += block.most_rows();
        group.push(block);
        if rows >= SEGMENT {
            under_way.push_back(cut(std::mem::take(&mut group), Arc::clone(facets), dimension));
            rows = 0;
        }
        if under_way.len() > READ_AHEAD
            && let Some(first) = under_way.pop_front()
        {
            segments.extend(finished(first).await?);
        }
    }
    under_way.push_back(cut(group, Arc::clone(facets), dimension));
    for handle in under_way {
        segments.extend(finished(handle).await?);
    }
    Ok(segments)
}

/// Makes segments of the vectors of chunks that are there.
///
/// - `facets`: in ascending order of id.
fn cut(
    blocks: Vec<VectorBlock>,
    facets: Arc<Vec<(i64, Facet)>>,
    dimension: usize,
) -> JoinHandle<Vec<Segment>> {
    spawn_blocking(move || {
        let mut loose = Loose::default();
        for block in blocks {
            block.each(|id, vector| {
                if let Ok(place) = facets.binary_search_by_key(&id, |&(id, _)| id) {
                    loose.push(id, facets[place].1, vector);
                }
            });
        }
        loose.into_segments(dimension)
    })
}

async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, sqlx::Error> {
    finished(spawn_blocking(work)).await
}

async fn finished<T>(handle: JoinHandle<T>) -> Result<T, sqlx::Error> {
    handle.await.map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Every chunk's id, the number of its document's row, and its quality, in
/// ascending order of id.
///
/// Two statements that read an index each take far less time than one that
/// reads the table, in which the texts lie.
pub(super) async fn facets(
    connection: &mut SqliteConnection,
) -> Result<Vec<(i64, i64, f32)>, sqlx::Error> {
    let mut owners: Vec<(i64, i64)> =
        sqlx::query_as("SELECT id, document_id FROM chunks").fetch_all(&mut *connection).await?;
    let mut qualities: Vec<(i64, Option<f64>)> =
        sqlx::query_as("SELECT id, quality_score FROM chunks").fetch_all(connection).await?;
    on_blocking_thread(move || {
        owners.sort_unstable();
        qualities.sort_unstable_by_key(|&(id, _)| id);
        // Both are of one transaction, and so of the same chunks.
        let pairs = owners.into_iter().zip(qualities);
        pairs.map(|((id, owner), (_, quality))| (id, owner, rows::quality(quality))).collect()
    })
    .await
}

/// Copies for tests of those who hold them.
#[cfg(test)]
pub(super) mod testing {
    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::document::{ContentHash, DocumentPath};

    pub(in super::super) fn document(number: i64) -> Arc<Document> {
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

    pub(in super::super) fn empty() -> Resident {
        Resident::of(0, Owners::default(), Rows::new(2, Vec::new()), Rows::default())
    }

    pub(in super::super) fn vector(seed: u8) -> Vec<f32> {
        vec![f32::from(seed % 7) - 3.0, f32::from(seed % 5) + 0.5]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::testing::{document, empty, vector};
    use super::*;

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

                let admission = resident.admission(&Filter::default());
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
                let nearest = resident.nearest(&[&[1.0, 0.3]], 25, &admission);
                prop_assert_eq!(nearest, [best.into_ranking()]);
                let all: HashSet<i64> = model.keys().copied().collect();
                let nobody = resident.without(&admission, &all);
                prop_assert!(all.iter().all(|&id| !resident.admits(id, &nobody)));
                let without = resident.nearest(&[&[1.0, 0.3]], 25, &nobody);
                prop_assert_eq!(without, [Vec::new()]);
                let vectors: Vec<(i64, &[f32])> = model
                    .iter()
                    .filter_map(|(&id, vector)| Some((id, vector.as_deref()?)))
                    .collect();
                let sample = Sample::of(vectors.len());
                let sampled = vectors.into_iter().filter(|(id, _)| sample.takes(*id));
                let expected = sample::spread(&[1.0, 0.3], sampled);
                prop_assert_eq!(resident.spread(&[1.0, 0.3]), expected);
                let rows = model.values().flatten().count();
                let segments = resident.embedded.segments();
                let living: usize = segments.iter().map(Segment::living).sum();
                prop_assert_eq!(living, rows);
                // Few segments, however the rows came.
                prop_assert!(segments.len() <= 10 + 4 * rows / SEGMENT);
            }
        }
    }
}
