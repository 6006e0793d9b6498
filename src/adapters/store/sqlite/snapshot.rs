//! One read transaction as a view of the index.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use sqlx::Transaction;
use sqlx::sqlite::{Sqlite, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinError;

use crate::adapters::store::ranking::{MATCHING_LIMIT, NEAREST_LIMIT};
use crate::adapters::store::sqlite::admission::Admission;
use crate::adapters::store::sqlite::matching::{self, Gate};
use crate::adapters::store::sqlite::resident::Resident;
use crate::adapters::store::sqlite::rows::{self, Which};
use crate::adapters::store::sqlite::words::{self, Vocabulary};
use crate::adapters::store::sqlite::{
    Shared, cannot_read, damage, meta, nearest, schema, unavailable, vectors,
};
use crate::domain::chunk::{ChunkId, ContextMode, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::ports::chunk_store::{
    Candidate, Damage, Document, Fault, LexicalQuery, Matches, Restriction, Snapshot, Statistics,
    StoreError, StoredChunk, Summary,
};

/// Remembers something of the newest generation: reading it takes longer than a
/// search, and a generation has only one.
pub(super) struct Newest<T>(std::sync::Mutex<Option<(u64, T)>>);

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self(std::sync::Mutex::new(None))
    }
}

impl<T: Clone> Newest<T> {
    fn of(&self, generation: u64) -> Option<T> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(of, _)| *of == generation).map(|(_, known)| known.clone())
    }

    fn keep(&self, generation: u64, value: T) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(of, _)| *of < generation) {
            *known = Some((generation, value));
        }
    }
}

/// Which chunks pass a restriction.
struct Passing {
    /// Those that do not, whatever the filter says.
    excluded: Arc<HashSet<i64>>,
    /// What a copy in memory knows of both, if one fits.
    admission: Option<(Arc<Resident>, Arc<Admission>)>,
}

/// Which rows of a copy pass.
async fn admission(
    resident: &Arc<Resident>,
    filter: &Filter,
    excluded: &Arc<HashSet<i64>>,
) -> Result<Arc<Admission>, StoreError> {
    if let Some(known) = resident.known_admission(filter)
        && excluded.is_empty()
    {
        return Ok(known);
    }
    let (resident, filter) = (Arc::clone(resident), filter.clone());
    let excluded = Arc::clone(excluded);
    let admission = move || {
        let admission = resident.admission(&filter);
        if excluded.is_empty() {
            admission
        } else {
            Arc::new(resident.without(&admission, &excluded))
        }
    };
    let worked_out = tokio::task::spawn_blocking(admission).await;
    worked_out.map_err(|error| unavailable("work out what a filter admits", error))
}

/// A view of the index as one commit left it.
pub(super) struct SqliteSnapshot {
    shared: Arc<Shared>,
    generation: u64,
    /// The copy in memory that fits, if there was one from the start.
    resident: Option<Arc<Resident>>,
    /// What passed last.
    passing: Mutex<Option<(Restriction, Arc<Passing>)>>,
    /// Taken only when the snapshot is dropped.
    transaction: Mutex<Option<Transaction<'static, Sqlite>>>,
}

impl SqliteSnapshot {
    /// Begins a transaction and fixes what it sees.
    pub(super) async fn open(shared: Arc<Shared>) -> Result<Self, StoreError> {
        let mut transaction = shared.readers.begin().await.map_err(cannot_read)?;
        let generation =
            meta::number(&mut transaction, meta::GENERATION).await.map_err(cannot_read)?;
        let generation = u64::try_from(generation).unwrap_or(0);
        let resident = shared.keeper.arriving(generation).await;
        let transaction = Mutex::new(Some(transaction));
        Ok(Self { shared, generation, resident, passing: Mutex::default(), transaction })
    }

    async fn connection(&self) -> Reading<'_> {
        Reading(self.transaction.lock().await)
    }

    /// The copy in memory of what this snapshot sees.
    fn resident(&self) -> Option<Arc<Resident>> {
        self.resident.clone().or_else(|| self.shared.keeper.fitting(self.generation))
    }

    /// Which chunks pass: worked out once, for both legs of a search, so that one
    /// reading of the exclusions decides for both.
    async fn passing(&self, restriction: &Restriction) -> Result<Arc<Passing>, StoreError> {
        let mut known = self.passing.lock().await;
        if let Some((of, passing)) = &*known
            && of == restriction
        {
            return Ok(Arc::clone(passing));
        }
        let mut reading = self.connection().await;
        let excluded =
            matching::excluded(reading.get()?, &restriction.excluded).await.map_err(cannot_read)?;
        drop(reading);
        let excluded = Arc::new(excluded);
        let admission = match self.resident() {
            Some(resident) => {
                let admission = admission(&resident, &restriction.filter, &excluded).await?;
                Some((resident, admission))
            }
            None => None,
        };
        let passing = Arc::new(Passing { excluded, admission });
        *known = Some((restriction.clone(), Arc::clone(&passing)));
        Ok(passing)
    }

    /// Refuses queries that do not fit the vectors.
    async fn check(&self, queries: &[Embedding]) -> Result<(), StoreError> {
        let mut reading = self.connection().await;
        let Some(expected) = dimension(reading.get()?).await.map_err(cannot_read)? else {
            return Ok(());
        };
        let mut actual = queries.iter().map(Embedding::dimension);
        match actual.find(|&actual| actual != expected) {
            Some(actual) => Err(StoreError::WrongDimension { expected, actual }),
            None => Ok(()),
        }
    }

    /// Loads a copy beside the searches, unless one is on its way.
    fn load_beside(&self) {
        if self.shared.keeper.may_load(self.generation) {
            let shared = Arc::clone(&self.shared);
            self.shared.runtime.spawn(async move {
                if let Err(error) = load(&shared).await {
                    tracing::warn!(%error, "cannot load the vectors; they are read from the file");
                }
            });
        }
    }
}

/// Loads a copy of the newest generation, unless one is there or on its way.
pub(super) async fn load_resident(shared: &Arc<Shared>) -> Result<(), sqlx::Error> {
    let generation = newest_generation(shared).await?;
    if shared.keeper.may_load(generation) { load(shared).await } else { Ok(()) }
}

async fn newest_generation(shared: &Shared) -> Result<u64, sqlx::Error> {
    let mut connection = shared.readers.acquire().await?;
    let generation = meta::number(&mut connection, meta::GENERATION).await?;
    Ok(u64::try_from(generation).unwrap_or(0))
}

/// Loads a copy and hands it over; [`Keeper::may_load`] was asked before.
///
/// [`Keeper::may_load`]: crate::adapters::store::sqlite::keeper::Keeper::may_load
async fn load(shared: &Arc<Shared>) -> Result<(), sqlx::Error> {
    let loading = shared.keeper.loading();
    let mut transaction = shared.readers.begin().await?;
    let generation = meta::number(&mut transaction, meta::GENERATION).await?;
    let generation = u64::try_from(generation).unwrap_or(0);
    let loaded = Resident::load(&mut transaction, generation).await?;
    drop(transaction);
    loading.done(loaded);
    catch_up(shared).await.map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Has the copy take over what was committed since it was made.
pub(super) async fn catch_up(shared: &Arc<Shared>) -> Result<(), JoinError> {
    let shared = Arc::clone(shared);
    tokio::task::spawn_blocking(move || shared.keeper.catch_up()).await
}

impl Drop for SqliteSnapshot {
    fn drop(&mut self) {
        let _runtime = self.shared.runtime.enter();
        drop(self.transaction.get_mut().take());
    }
}

/// The transaction, for one statement after the other.
struct Reading<'a>(MutexGuard<'a, Option<Transaction<'static, Sqlite>>>);

impl Reading<'_> {
    fn get(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        match self.0.as_mut() {
            Some(transaction) => Ok(transaction),
            None => Err(unavailable("read the index", "the snapshot has ended")),
        }
    }
}

#[async_trait]
impl Snapshot for SqliteSnapshot {
    async fn summary(&self) -> Result<Summary, StoreError> {
        if let Some(known) = self.shared.summaries.of(self.generation) {
            return Ok(known);
        }
        let mut reading = self.connection().await;
        let summary = summary(reading.get()?, self.generation).await.map_err(cannot_read)?;
        self.shared.summaries.keep(self.generation, summary.clone());
        Ok(summary)
    }

    async fn statistics(&self) -> Result<Statistics, StoreError> {
        let mut reading = self.connection().await;
        statistics(reading.get()?).await.map_err(cannot_read)
    }

    async fn damage(&self, fault: Fault) -> Result<Damage, StoreError> {
        let mut reading = self.connection().await;
        damage::of(reading.get()?, fault).await.map_err(cannot_read)
    }

    async fn documents(&self) -> Result<Vec<Arc<Document>>, StoreError> {
        if let Some(resident) = self.resident() {
            return Ok(resident.documents());
        }
        let mut reading = self.connection().await;
        let documents = rows::all_documents(reading.get()?).await.map_err(cannot_read)?;
        let mut documents: Vec<_> = documents.into_values().collect();
        documents.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(documents)
    }

    async fn documents_at(
        &self,
        paths: &[DocumentPath],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let mut reading = self.connection().await;
        let documents = rows::documents_at(reading.get()?, paths).await.map_err(cannot_read)?;
        Ok(paths.iter().map(|path| documents.get(path).cloned()).collect())
    }

    async fn pending(&self) -> Result<Vec<DocumentPath>, StoreError> {
        let mut reading = self.connection().await;
        let paths: Vec<String> =
            sqlx::query_scalar("SELECT path FROM documents WHERE pending > 0 ORDER BY path")
                .fetch_all(reading.get()?)
                .await
                .map_err(cannot_read)?;
        Ok(paths.into_iter().filter_map(|path| DocumentPath::new(path).ok()).collect())
    }

    async fn pending_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        let mut reading = self.connection().await;
        let connection = reading.get()?;
        let exist = vectors::exist(connection).await.map_err(cannot_read)?;
        let which = if exist { Which::PendingOf(path) } else { Which::Of(path) };
        rows::chunks(connection, which).await.map_err(cannot_read)
    }

    async fn embeddings_of_texts(
        &self,
        texts: &[TextHash],
    ) -> Result<Vec<Option<Embedding>>, StoreError> {
        let mut reading = self.connection().await;
        let chunks = vectors::chunks_of_texts(reading.get()?, texts).await.map_err(cannot_read)?;
        drop(reading);
        let ids: Vec<ChunkId> = chunks.values().copied().collect();
        let known = self.embeddings(&ids).await?;
        let known: HashMap<ChunkId, Option<Embedding>> = ids.into_iter().zip(known).collect();
        let of_text = |text| known.get(chunks.get(text)?).cloned().flatten();
        Ok(texts.iter().map(of_text).collect())
    }

    async fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, StoreError> {
        let mut reading = self.connection().await;
        let chunks = rows::chunks(reading.get()?, Which::Ids(ids)).await.map_err(cannot_read)?;
        let chunks: HashMap<ChunkId, StoredChunk> =
            chunks.into_iter().map(|chunk| (chunk.id, chunk)).collect();
        Ok(ids.iter().filter_map(|id| chunks.get(id).cloned()).collect())
    }

    async fn chunks_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        let mut reading = self.connection().await;
        rows::chunks(reading.get()?, Which::Of(path)).await.map_err(cannot_read)
    }

    async fn chunks_between(
        &self,
        path: &DocumentPath,
        indexes: RangeInclusive<u32>,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let mut reading = self.connection().await;
        let which = Which::Between(path, *indexes.start(), *indexes.end());
        rows::chunks(reading.get()?, which).await.map_err(cannot_read)
    }

    async fn first_chunks_of(
        &self,
        path: &DocumentPath,
        most: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let mut reading = self.connection().await;
        let which = Which::FirstOf(path, most);
        rows::chunks(reading.get()?, which).await.map_err(cannot_read)
    }

    async fn embeddings(&self, ids: &[ChunkId]) -> Result<Vec<Option<Embedding>>, StoreError> {
        if let Some(resident) = self.resident() {
            let vector = |id: &ChunkId| resident.vector(id.0).map(<[f32]>::to_vec);
            return Ok(ids.iter().map(|id| vector(id).map(Embedding::from_stored)).collect());
        }
        let mut reading = self.connection().await;
        let vectors = stored_vectors(reading.get()?, ids).await.map_err(cannot_read)?;
        Ok(ids.iter().map(|id| vectors.get(&id.0).cloned().map(Embedding::from_stored)).collect())
    }

    async fn nearest(
        &self,
        query: &Embedding,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Candidate>, StoreError> {
        let query = std::slice::from_ref(query);
        let rankings = self.nearest_to_each(query, depth, restriction).await?;
        Ok(rankings.into_iter().next().unwrap_or_default())
    }

    async fn nearest_to_each(
        &self,
        queries: &[Embedding],
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Vec<Vec<Candidate>>, StoreError> {
        let depth = depth.min(NEAREST_LIMIT);
        self.check(queries).await?;
        if depth == 0 || queries.is_empty() {
            return Ok(vec![Vec::new(); queries.len()]);
        }
        let passing = self.passing(restriction).await?;
        let queries = queries.to_vec();
        if let Some((resident, admission)) = &passing.admission {
            let (resident, admission) = (Arc::clone(resident), Arc::clone(admission));
            return nearest::in_memory(resident, queries, depth, admission).await;
        }
        let (filter, excluded) = (&restriction.filter, Arc::clone(&passing.excluded));
        let mut reading = self.connection().await;
        let found = nearest::in_file(reading.get()?, queries, depth, filter, excluded)
            .await
            .map_err(cannot_read)?;
        drop(reading);
        self.load_beside();
        Ok(found)
    }

    async fn cosine_spread(&self, query: &Embedding) -> Result<Option<Spread>, StoreError> {
        if let Some(resident) = self.resident() {
            return nearest::spread_in_memory(resident, query.clone()).await;
        }
        let mut reading = self.connection().await;
        nearest::spread_in_file(reading.get()?, query.as_slice()).await.map_err(cannot_read)
    }

    async fn cosines_between(&self) -> Result<Option<Spread>, StoreError> {
        if let Some(known) = self.shared.spreads_between.of(self.generation) {
            return Ok(known);
        }
        let spread = if let Some(resident) = self.resident() {
            nearest::spread_between(resident).await?
        } else {
            let mut reading = self.connection().await;
            nearest::spread_between_in_file(reading.get()?).await.map_err(cannot_read)?
        };
        self.shared.spreads_between.keep(self.generation, spread);
        Ok(spread)
    }

    async fn matching(
        &self,
        query: &LexicalQuery,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Matches, StoreError> {
        let depth = depth.min(MATCHING_LIMIT);
        if depth == 0 {
            return Ok(Matches::default());
        }
        let vocabulary = self.vocabulary().await?;
        let passing = self.passing(restriction).await?;
        let (filter, excluded) = (&restriction.filter, &*passing.excluded);
        let gate = match &passing.admission {
            Some((resident, admission)) => {
                Gate::Resident(Arc::clone(resident), Arc::clone(admission))
            }
            None => Gate::File { filter, excluded },
        };
        let mut reading = self.connection().await;
        let connection = reading.get()?;
        matching::ranked(connection, query, vocabulary.as_deref(), depth, &gate)
            .await
            .map_err(cannot_read)
    }
}

impl SqliteSnapshot {
    /// What is known of all words; none if they are not counted.
    async fn vocabulary(&self) -> Result<Option<Arc<Vocabulary>>, StoreError> {
        if let Some(known) = self.shared.vocabularies.of(self.generation) {
            return Ok(known);
        }
        let mut reading = self.connection().await;
        let vocabulary =
            words::vocabulary(reading.get()?).await.map_err(cannot_read)?.map(Arc::new);
        self.shared.vocabularies.keep(self.generation, vocabulary.clone());
        Ok(vocabulary)
    }
}

/// The dimension of the vector table, else the recorded one.
async fn dimension(connection: &mut SqliteConnection) -> Result<Option<usize>, sqlx::Error> {
    if let Some(dimension) = schema::declared_dimension(connection).await? {
        return Ok(Some(dimension));
    }
    let recorded = meta::number(connection, meta::DIMENSION).await?;
    Ok(usize::try_from(recorded).ok().filter(|&dimension| dimension > 0))
}

/// The vectors of those chunks that are there.
async fn stored_vectors(
    connection: &mut SqliteConnection,
    ids: &[ChunkId],
) -> Result<HashMap<i64, Vec<f32>>, sqlx::Error> {
    if !vectors::exist(connection).await? {
        return Ok(HashMap::new());
    }
    let there: Vec<i64> =
        sqlx::query_scalar("SELECT id FROM chunks WHERE id IN (SELECT value FROM json_each(?))")
            .bind(rows::json_numbers(ids.iter().map(|id| id.0)))
            .fetch_all(&mut *connection)
            .await?;
    vectors::of(connection, &rows::json_numbers(there)).await
}

async fn summary(
    connection: &mut SqliteConnection,
    generation: u64,
) -> Result<Summary, sqlx::Error> {
    let entries = meta::all(connection).await?;
    let (documents, chunks): (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks)")
            .fetch_one(&mut *connection)
            .await?;
    let pending: Option<i64> =
        sqlx::query_scalar("SELECT sum(pending) FROM documents WHERE pending > 0")
            .fetch_one(&mut *connection)
            .await?;
    let has_vectors = vectors::exist(connection).await?
        && sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM vec_chunks_rowids)")
            .fetch_one(&mut *connection)
            .await?;
    Ok(Summary {
        identity: identity(&entries),
        context_mode: entries.get(meta::CONTEXT_MODE).and_then(|word| ContextMode::from_text(word)),
        declared_fields: entries
            .get(meta::DECLARED_FIELDS)
            .and_then(|fields| rows::words(fields))
            .map(|fields| fields.into_iter().collect()),
        root: entries.get(meta::ROOT).cloned(),
        quality_rules: entries.get(meta::QUALITY_RULES).cloned(),
        long_texts: entries.get(meta::LONG_TEXTS).cloned(),
        documents: count(documents),
        chunks: count(chunks),
        pending_chunks: count(pending.unwrap_or(0)),
        has_vectors,
        generation,
    })
}

async fn statistics(connection: &mut SqliteConnection) -> Result<Statistics, sqlx::Error> {
    let (chunks, field_values): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM document_fields)",
    )
    .fetch_one(&mut *connection)
    .await?;
    let without_vector = if vectors::exist(connection).await? {
        sqlx::query_scalar(
            "SELECT count(*) FROM chunks
             WHERE id NOT IN (SELECT rowid FROM vec_chunks_rowids)",
        )
        .fetch_one(&mut *connection)
        .await?
    } else {
        chunks
    };
    let tags: Vec<Option<String>> =
        sqlx::query_scalar("SELECT tags FROM documents WHERE tags IS NOT NULL AND tags <> '[]'")
            .fetch_all(&mut *connection)
            .await?;
    let unreadable = tags.iter().flatten().filter(|tags| rows::words(tags).is_none()).count();
    Ok(Statistics {
        field_values: count(field_values),
        chunks_without_vector: count(without_vector),
        qualities: qualities(connection).await?,
        unreadable_tags: u64::try_from(unreadable).unwrap_or(u64::MAX),
    })
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// How many chunks there are of each quality, in ascending order.
async fn qualities(connection: &mut SqliteConnection) -> Result<Vec<(f32, u64)>, sqlx::Error> {
    let stored: Vec<(Option<f64>, i64)> =
        sqlx::query_as("SELECT quality_score, count(*) FROM chunks GROUP BY quality_score")
            .fetch_all(connection)
            .await?;
    let mut counts: Vec<(f32, u64)> = stored
        .into_iter()
        .map(|(quality, chunks)| (rows::quality(quality), count(chunks)))
        .collect();
    counts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    counts.dedup_by(|(later, more), (quality, chunks)| {
        let equal = later.total_cmp(quality).is_eq();
        *chunks += if equal { *more } else { 0 };
        equal
    });
    Ok(counts)
}

fn identity(entries: &BTreeMap<String, String>) -> Option<ModelIdentity> {
    let model = entries.get(meta::MODEL)?.clone();
    let dimension = entries.get(meta::DIMENSION)?.parse().ok()?;
    Some(ModelIdentity { model, dimension })
}
