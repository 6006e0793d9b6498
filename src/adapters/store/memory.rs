//! Maps and a full scan: the store that is plainly right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::ops::RangeInclusive;
use std::process;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use async_trait::async_trait;

use crate::adapters::store::cosine;
use crate::adapters::store::ranking::{Best, MATCHING_LIMIT, NEAREST_LIMIT};
use crate::adapters::store::sample::{self, Sample};
use crate::adapters::store::trigram;
use crate::adapters::store::words::{
    Analyser, Collection, Counts, Group, Language, Names, Occurrences, Posting, Scored, Sought,
    below, columns, count as count_words, named_share, score_all, spread, sum,
};
use crate::domain::chunk::{Chunk, ChunkId, ContextMode, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::domain::evidence::Spread;
use crate::domain::filter::Filter;
use crate::domain::query::Phrase;
use crate::ports::chunk_store::{
    AnnouncedRun, Candidate, Change, ChunkStore, ColumnWeights, Damage, Document, Fault,
    LexicalQuery, Matches, NewChunk, Repairs, Replacement, Restriction, RunUnderWay, Snapshot,
    Statistics, StoreError, StoredChunk, Summary,
};

/// A store in memory. It is empty when it is made and gone when it is dropped.
#[derive(Default)]
pub struct MemoryStore {
    current: Arc<Current>,
    runs: Runs,
}

/// The runs that are announced, by a number of their own.
type Runs = Arc<Mutex<BTreeMap<u64, RunUnderWay>>>;

/// One of them.
struct OwnRun {
    number: u64,
    runs: Runs,
}

impl AnnouncedRun for OwnRun {
    fn advanced(&self, done: usize, total: usize) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = runs.get_mut(&self.number) {
            (run.done, run.total) = (done, total);
        }
    }
}

impl Drop for OwnRun {
    fn drop(&mut self) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// The newest state, for whoever may change it.
#[derive(Default)]
struct Current(RwLock<Arc<State>>);

impl Current {
    fn get(&self) -> Arc<State> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets one after the other make a new state out of the last one.
    fn change(
        &self,
        make: impl FnOnce(&State) -> Result<State, StoreError>,
    ) -> Result<(), StoreError> {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let generation = current.generation + 1;
        *current = Arc::new(State { generation, ..make(&current)? });
        Ok(())
    }
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl ChunkStore for MemoryStore {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        Ok(Box::new(MemorySnapshot(self.current.get())))
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.current.change(|state| {
            let mut next = state.clone();
            for change in changes {
                next.make(change)?;
            }
            Ok(next)
        })
    }

    async fn replacement(
        &self,
        identity: ModelIdentity,
    ) -> Result<Box<dyn Replacement>, StoreError> {
        let mut state = State { last_chunk: self.current.get().last_chunk, ..State::default() };
        state.make(Change::Empty(identity))?;
        let current = Arc::new(Current(RwLock::new(Arc::new(state))));
        let store = Self { current, runs: Runs::default() };
        Ok(Box::new(MemoryReplacement {
            original: Arc::clone(&self.current),
            store: Arc::new(store),
        }))
    }

    async fn repair(&self) -> Result<Repairs, StoreError> {
        // A chunk is one value here: no part of it can be missing.
        Ok(Repairs::default())
    }

    async fn runs(&self) -> Result<Vec<RunUnderWay>, StoreError> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(runs.values().cloned().collect())
    }

    async fn announce(&self, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let number = runs.last_key_value().map_or(0, |(last, _)| last + 1);
        let since = since.to_owned();
        runs.insert(number, RunUnderWay { process: process::id(), since, done: 0, total: 0 });
        Ok(Box::new(OwnRun { number, runs: Arc::clone(&self.runs) }))
    }
}

/// A store in memory that is to take another one's place.
struct MemoryReplacement {
    original: Arc<Current>,
    store: Arc<MemoryStore>,
}

#[async_trait]
impl Replacement for MemoryReplacement {
    fn store(&self) -> Arc<dyn ChunkStore> {
        Arc::clone(&self.store) as Arc<dyn ChunkStore>
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let built = self.store.current.get();
        self.original.change(|state| {
            let last_chunk = built.last_chunk.max(state.last_chunk);
            Ok(State { last_chunk, ..State::clone(&built) })
        })
    }
}

/// All that a store holds. Cloning it copies pointers.
#[derive(Clone, Default)]
struct State {
    identity: Option<ModelIdentity>,
    /// Of the vectors; known before the identity if a vector came first.
    dimension: Option<usize>,
    context_mode: Option<ContextMode>,
    declared_fields: Option<BTreeSet<String>>,
    root: Option<String>,
    quality_rules: Option<String>,
    long_texts: Option<String>,
    documents: BTreeMap<DocumentPath, Entry>,
    last_chunk: i64,
    generation: u64,
}

#[derive(Clone)]
struct Entry {
    document: Arc<Document>,
    chunks: Vec<Arc<Row>>,
}

impl Entry {
    /// Counts the words of the chunks again, whose document is called otherwise.
    fn count_again(&mut self) {
        let beginning = self.chunks.first().map(|row| row.new.chunk.content.clone());
        for row in &mut self.chunks {
            let row = Arc::make_mut(row);
            let mut analyser = Analyser::new(row.language);
            (row.words, row.length) =
                words_of(&mut analyser, &row.new.chunk, &self.document, beginning.as_deref());
        }
    }
}

fn words_of(
    analyser: &mut Analyser,
    chunk: &Chunk,
    document: &Document,
    beginning: Option<&str>,
) -> (HashMap<String, Counts>, u32) {
    let names = Names::new(document.title.as_deref(), beginning, document.path.as_str());
    let (heading, context) = (chunk.heading.as_deref(), chunk.context.as_deref());
    let columns = columns(heading, context, &chunk.content, names);
    count_words(analyser, columns.each_ref().map(String::as_str))
}

/// A chunk with its text as the lexical leg sees it.
#[derive(Clone)]
struct Row {
    id: ChunkId,
    new: NewChunk,
    /// Heading, context, content.
    columns: [String; 3],
    language: Language,
    words: HashMap<String, Counts>,
    /// How many words there are.
    length: u32,
}

impl Row {
    fn is_pending(&self) -> bool {
        self.new.embedding.is_none()
    }

    fn is_blank_code(&self) -> bool {
        let chunk = &self.new.chunk;
        chunk.lines.is_some() && chunk.content.trim().is_empty()
    }

    /// Its vector; one without a direction is none.
    fn vector(&self) -> Option<&Embedding> {
        let embedding = self.new.embedding.as_ref();
        embedding.filter(|embedding| cosine::has_direction(embedding.as_slice()))
    }
}

impl State {
    fn make(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::Put { document, chunks } => return self.put(document, chunks),
            Change::Describe(document) => {
                if let Some(entry) = self.documents.get_mut(&document.path) {
                    entry.document = Arc::new(without_empty_fields(document));
                    entry.count_again();
                }
            }
            Change::Rename { from, to } => return self.rename(&from, to),
            Change::Resize { path, size_bytes } => {
                if let Some(entry) = self.documents.get_mut(&path) {
                    Arc::make_mut(&mut entry.document).size_bytes = Some(size_bytes);
                }
            }
            Change::Remove(path) => {
                self.documents.remove(&path);
            }
            Change::Embed { chunk, embedding } => return self.embed(chunk, embedding),
            Change::Unembed(chunk) => {
                if let Some(row) = self.row(chunk) {
                    row.new.embedding = None;
                }
            }
            Change::Score { chunk, quality } => {
                if let Some(row) = self.row(chunk) {
                    row.new.quality = quality;
                }
            }
            Change::Empty(identity) => {
                self.documents.clear();
                self.dimension = Some(identity.dimension);
                self.identity = Some(identity);
                self.context_mode = None;
                self.declared_fields = None;
                self.quality_rules = None;
                self.long_texts = None;
            }
            Change::Identify(identity) => {
                if self.rows().any(|(_, row)| row.new.embedding.is_some()) {
                    fit(&mut self.dimension, identity.dimension)?;
                }
                self.dimension = Some(identity.dimension);
                self.identity = Some(identity);
            }
            Change::BelongTo(root) => self.root = Some(root),
            Change::Judge(rules) => self.quality_rules = Some(rules),
            Change::EmbedLongTexts(way) => self.long_texts = Some(way),
            Change::UseContext(mode) => self.context_mode = Some(mode),
            Change::Declare(fields) => self.declared_fields = fields,
        }
        Ok(())
    }

    fn put(&mut self, document: Document, chunks: Vec<NewChunk>) -> Result<(), StoreError> {
        let mut rows = Vec::with_capacity(chunks.len());
        let language = Language::detect(chunks.iter().map(|new| new.chunk.content.as_str()));
        let mut analyser = Analyser::new(language);
        let beginning = chunks.first().map(|new| new.chunk.content.clone());
        for new in chunks {
            if let Some(embedding) = &new.embedding {
                fit(&mut self.dimension, embedding.dimension())?;
            }
            self.last_chunk += 1;
            let text = |part: &Option<String>| trigram::fold(part.as_deref().unwrap_or_default());
            let columns = [
                text(&new.chunk.heading),
                text(&new.chunk.context),
                trigram::fold(&new.chunk.content),
            ];
            let (words, length) =
                words_of(&mut analyser, &new.chunk, &document, beginning.as_deref());
            let id = ChunkId(self.last_chunk);
            rows.push(Arc::new(Row { id, new, columns, language, words, length }));
        }
        let document = Arc::new(without_empty_fields(document));
        self.documents.insert(document.path.clone(), Entry { document, chunks: rows });
        Ok(())
    }

    fn rename(&mut self, from: &DocumentPath, to: DocumentPath) -> Result<(), StoreError> {
        if !self.documents.contains_key(from) {
            return Err(StoreError::NotFound { path: from.clone() });
        }
        if self.documents.contains_key(&to) {
            return Err(StoreError::Exists { path: to });
        }
        if let Some(mut entry) = self.documents.remove(from) {
            Arc::make_mut(&mut entry.document).path = to.clone();
            entry.count_again();
            self.documents.insert(to, entry);
        }
        Ok(())
    }

    fn embed(&mut self, chunk: ChunkId, embedding: Embedding) -> Result<(), StoreError> {
        if self.row(chunk).is_none() {
            return Ok(());
        }
        fit(&mut self.dimension, embedding.dimension())?;
        if let Some(row) = self.row(chunk) {
            row.new.embedding = Some(embedding);
        }
        Ok(())
    }

    /// A chunk that is to be changed.
    fn row(&mut self, chunk: ChunkId) -> Option<&mut Row> {
        let mut rows = self.documents.values_mut().flat_map(|entry| &mut entry.chunks);
        rows.find(|row| row.id == chunk).map(Arc::make_mut)
    }

    fn rows(&self) -> impl Iterator<Item = (&Entry, &Row)> {
        self.documents
            .values()
            .flat_map(|entry| entry.chunks.iter().map(move |row| (entry, &**row)))
    }
}

/// Refuses a vector of another dimension; the first one decides.
fn fit(dimension: &mut Option<usize>, actual: usize) -> Result<(), StoreError> {
    let expected = *dimension.get_or_insert(actual);
    if expected == actual { Ok(()) } else { Err(StoreError::WrongDimension { expected, actual }) }
}

fn without_empty_fields(mut document: Document) -> Document {
    document.fields.retain(|_, values| !values.is_empty());
    document
}

/// The state at one moment.
struct MemorySnapshot(Arc<State>);

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// Counts equal qualities, in ascending order.
fn qualities(of: impl Iterator<Item = f32>) -> Vec<(f32, u64)> {
    let mut counts: Vec<(f32, u64)> = Vec::new();
    for quality in of {
        match counts.binary_search_by(|(known, _)| known.total_cmp(&quality)) {
            Ok(place) => counts[place].1 += 1,
            Err(place) => counts.insert(place, (quality, 1)),
        }
    }
    counts
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    async fn summary(&self) -> Result<Summary, StoreError> {
        let state = &self.0;
        Ok(Summary {
            identity: state.identity.clone(),
            context_mode: state.context_mode,
            declared_fields: state.declared_fields.clone(),
            root: state.root.clone(),
            quality_rules: state.quality_rules.clone(),
            long_texts: state.long_texts.clone(),
            documents: count(state.documents.len()),
            chunks: count(state.rows().count()),
            pending_chunks: count(state.rows().filter(|(_, row)| row.is_pending()).count()),
            has_vectors: state.rows().any(|(_, row)| !row.is_pending()),
            generation: state.generation,
        })
    }

    async fn statistics(&self) -> Result<Statistics, StoreError> {
        let state = &self.0;
        let values = |entry: &Entry| entry.document.fields.values().map(Vec::len).sum::<usize>();
        Ok(Statistics {
            field_values: count(state.documents.values().map(values).sum()),
            chunks_without_vector: count(state.rows().filter(|(_, row)| row.is_pending()).count()),
            qualities: qualities(state.rows().map(|(_, row)| row.new.quality)),
            unreadable_tags: 0,
        })
    }

    async fn damage(&self, fault: Fault) -> Result<Damage, StoreError> {
        // A chunk is one value here, which nobody else can reach.
        let found = |entry: &Entry| match fault {
            Fault::EmptyDocument => usize::from(entry.chunks.is_empty()),
            Fault::BlankCode => entry.chunks.iter().filter(|row| row.is_blank_code()).count(),
            _ => 0,
        };
        let mut damage = Damage::default();
        for (path, entry) in &self.0.documents {
            let found = found(entry);
            damage.count += count(found);
            if found > 0 && damage.samples.len() < Damage::MAX_SAMPLES {
                damage.samples.push(path.to_string());
            }
        }
        Ok(damage)
    }

    async fn documents(&self) -> Result<Vec<Arc<Document>>, StoreError> {
        Ok(self.0.documents.values().map(|entry| Arc::clone(&entry.document)).collect())
    }

    async fn documents_at(
        &self,
        paths: &[DocumentPath],
    ) -> Result<Vec<Option<Arc<Document>>>, StoreError> {
        let at = |path| self.0.documents.get(path).map(|entry| Arc::clone(&entry.document));
        Ok(paths.iter().map(at).collect())
    }

    async fn pending(&self) -> Result<Vec<DocumentPath>, StoreError> {
        let pending = |entry: &Entry| entry.chunks.iter().any(|row| row.is_pending());
        let documents = self.0.documents.iter().filter(|(_, entry)| pending(entry));
        Ok(documents.map(|(path, _)| path.clone()).collect())
    }

    async fn pending_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        let Some(entry) = self.0.documents.get(path) else { return Ok(Vec::new()) };
        let rows = stored(entry).into_iter().zip(&entry.chunks);
        Ok(rows.filter(|(_, row)| row.is_pending()).map(|(chunk, _)| chunk).collect())
    }

    async fn embeddings_of_texts(
        &self,
        texts: &[TextHash],
    ) -> Result<Vec<Option<Embedding>>, StoreError> {
        let all: HashMap<TextHash, &Embedding> = self
            .0
            .rows()
            .filter_map(|(_, row)| {
                let text = TextHash::of(&row.new.chunk.embedding_text());
                Some((text, row.vector()?))
            })
            .collect();
        Ok(texts.iter().map(|text| all.get(text).copied().cloned()).collect())
    }

    async fn chunks(&self, ids: &[ChunkId]) -> Result<Vec<StoredChunk>, StoreError> {
        let all: HashMap<ChunkId, StoredChunk> =
            self.0.documents.values().flat_map(stored).map(|chunk| (chunk.id, chunk)).collect();
        Ok(ids.iter().filter_map(|id| all.get(id).cloned()).collect())
    }

    async fn chunks_of(&self, path: &DocumentPath) -> Result<Vec<StoredChunk>, StoreError> {
        Ok(self.0.documents.get(path).map(stored).unwrap_or_default())
    }

    async fn chunks_between(
        &self,
        path: &DocumentPath,
        indexes: RangeInclusive<u32>,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let mut chunks = self.chunks_of(path).await?;
        chunks.retain(|chunk| indexes.contains(&chunk.index));
        Ok(chunks)
    }

    async fn first_chunks_of(
        &self,
        path: &DocumentPath,
        most: usize,
    ) -> Result<Vec<StoredChunk>, StoreError> {
        let mut chunks = self.chunks_of(path).await?;
        chunks.truncate(most);
        Ok(chunks)
    }

    async fn embeddings(&self, ids: &[ChunkId]) -> Result<Vec<Option<Embedding>>, StoreError> {
        let all: HashMap<ChunkId, &Embedding> =
            self.0.rows().filter_map(|(_, row)| Some((row.id, row.vector()?))).collect();
        Ok(ids.iter().map(|id| all.get(id).copied().cloned()).collect())
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
        for query in queries {
            fit(&mut self.0.dimension.clone(), query.dimension())?;
        }
        let depth = depth.min(NEAREST_LIMIT);
        let excluded = fold_all(&restriction.excluded);
        let mut rankings: Vec<(cosine::Query, Best)> = queries
            .iter()
            .map(|query| (cosine::Query::new(query.as_slice()), Best::new(depth)))
            .collect();
        for (entry, row) in self.0.rows() {
            if let Some(embedding) = row.vector()
                && admits(&restriction.filter, entry, row)
                && !occurs(row, &excluded)
            {
                for (query, best) in &mut rankings {
                    best.show(row.id, query.cosine(embedding.as_slice()));
                }
            }
        }
        Ok(rankings.into_iter().map(|(_, best)| best.into_ranking()).collect())
    }

    async fn cosine_spread(&self, query: &Embedding) -> Result<Option<Spread>, StoreError> {
        let vectors =
            || self.0.rows().filter_map(|(_, row)| Some((row.id.0, row.vector()?.as_slice())));
        let sample = Sample::of(vectors().count());
        Ok(sample::spread(query.as_slice(), vectors().filter(|(id, _)| sample.takes(*id))))
    }

    async fn cosines_between(&self) -> Result<Option<Spread>, StoreError> {
        let vectors = || {
            self.0.rows().filter_map(|(_, row)| {
                Some((row.id.0, row.new.embedding.as_ref().map(Embedding::as_slice)?))
            })
        };
        let sample = Sample::of(vectors().count());
        Ok(sample::spread_between(vectors().filter(|(id, _)| sample.takes(*id))))
    }

    async fn matching(
        &self,
        query: &LexicalQuery,
        depth: usize,
        restriction: &Restriction,
    ) -> Result<Matches, StoreError> {
        let depth = depth.min(MATCHING_LIMIT);
        let state = &self.0;
        let languages: BTreeSet<Language> = state.rows().map(|(_, row)| row.language).collect();
        let languages: Vec<Language> = languages.into_iter().collect();
        let sought = Sought::new(query, &languages);
        let words: Vec<Occurrences> =
            sought.groups.iter().map(|group| state.occurrences(group)).collect();
        let known: Vec<bool> = words.iter().map(|word| !word.stems.is_empty()).collect();
        let (needed, others) = sought.phrases(&known);
        let collection = state.collection();
        let mut scored = score_all(collection, query.weights, &words);
        if !needed.is_empty() {
            scored = sum(&scored, &state.phrases(&fold_all(&needed), query.weights));
        }
        let spread = spread(&scored, collection.chunks);

        let excluded = fold_all(&restriction.excluded);
        let pass = |scored: &[Scored], depth: usize| {
            let known: HashMap<i64, f64> = scored.iter().copied().collect();
            let mut best = Best::new(depth);
            for (entry, row) in state.rows() {
                if let Some(&score) = known.get(&row.id.0)
                    && !occurs(row, &excluded)
                    && admits(&restriction.filter, entry, row)
                {
                    #[expect(clippy::cast_possible_truncation, reason = "a score needs no more")]
                    best.show(row.id, score as f32);
                }
            }
            best.into_ranking()
        };
        let mut candidates = pass(&scored, depth);
        if candidates.len() < depth && !others.is_empty() {
            let found: BTreeSet<i64> = scored.iter().map(|&(id, _)| id).collect();
            let mut inside = state.phrases(&fold_all(&others), query.weights);
            inside.retain(|(id, _)| !found.contains(id));
            below(candidates.last().map(|last| f64::from(last.score)), &mut inside);
            candidates.extend(pass(&inside, depth - candidates.len()));
        }
        let named =
            candidates.first().map_or(0.0, |best| named_share(collection, &words, best.chunk.0));
        Ok(Matches { candidates, spread, named })
    }
}

impl State {
    /// Where the stems of a word stand.
    fn occurrences(&self, group: &Group) -> Occurrences {
        let postings = |stem: &String| -> Vec<Posting> {
            let mut postings: Vec<Posting> = self
                .rows()
                .filter_map(|(_, row)| {
                    let counts = *row.words.get(stem)?;
                    Some(Posting { id: row.id.0, counts, length: row.length })
                })
                .collect();
            postings.sort_unstable_by_key(|posting| posting.id);
            postings
        };
        let stems = group.stems.iter().map(postings).filter(|postings| !postings.is_empty());
        Occurrences { weight: group.weight, stems: stems.collect() }
    }

    fn collection(&self) -> Collection {
        let words = self.rows().map(|(_, row)| u64::from(row.length)).sum();
        Collection { chunks: count(self.rows().count()), words }
    }

    /// Scores the chunks in which phrases occur, in ascending order.
    fn phrases(&self, phrases: &[String], weights: ColumnWeights) -> Vec<Scored> {
        let statistics = Frequencies::of(self, phrases);
        let weights = [weights.heading, weights.context, weights.content];
        let mut scored: Vec<Scored> = self
            .rows()
            .filter(|(_, row)| occurs(row, phrases))
            .map(|(_, row)| (row.id.0, statistics.score(row, phrases, weights)))
            .collect();
        scored.sort_unstable_by_key(|&(id, _)| id);
        scored
    }
}

fn stored(entry: &Entry) -> Vec<StoredChunk> {
    let siblings = u32::try_from(entry.chunks.len()).unwrap_or(u32::MAX);
    (0..)
        .zip(&entry.chunks)
        .map(|(index, row)| StoredChunk {
            id: row.id,
            document: Arc::clone(&entry.document),
            index,
            siblings,
            chunk: row.new.chunk.clone(),
            token_count: row.new.chunk.token_count(),
            quality: row.new.quality,
        })
        .collect()
}

fn admits(filter: &Filter, entry: &Entry, row: &Row) -> bool {
    filter.admits_quality(row.new.quality) && filter.admits(&entry.document.facets())
}

fn fold_all(phrases: &[Phrase]) -> Vec<String> {
    phrases.iter().map(|phrase| trigram::fold(phrase.as_str())).collect()
}

fn occurs(row: &Row, phrases: &[String]) -> bool {
    phrases
        .iter()
        .any(|phrase| row.columns.iter().any(|column| trigram::occurrences(column, phrase) > 0))
}

/// What BM25 has to know of all rows.
///
/// # Source
///
/// Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and
/// Beyond", 2009, as SQLite's full-text index computes it: a phrase counts as a
/// term, an inverse document frequency that would not be positive is one
/// millionth, and an occurrence weighs what its column weighs.
struct Frequencies {
    mean_tokens: f64,
    inverse_frequencies: Vec<f64>,
}

impl Frequencies {
    fn of(state: &State, phrases: &[String]) -> Self {
        let rows = state.rows().count();
        let tokens: usize = state.rows().map(|(_, row)| row_tokens(row)).sum();
        let inverse_frequency = |phrase: &String| {
            let phrase = std::slice::from_ref(phrase);
            let hits = real(state.rows().filter(|(_, row)| occurs(row, phrase)).count());
            let value = ((real(rows) - hits + 0.5) / (hits + 0.5)).ln();
            if value <= 0.0 { 1e-6 } else { value }
        };
        Self {
            mean_tokens: real(tokens) / real(rows),
            inverse_frequencies: phrases.iter().map(inverse_frequency).collect(),
        }
    }

    fn score(&self, row: &Row, phrases: &[String], weights: [f64; 3]) -> f64 {
        const SATURATION: f64 = 1.2;
        const LENGTH_INFLUENCE: f64 = 0.75;
        let length = real(row_tokens(row));
        let damping =
            SATURATION * (1.0 - LENGTH_INFLUENCE + LENGTH_INFLUENCE * length / self.mean_tokens);
        let mut score = 0.0;
        for (phrase, inverse_frequency) in phrases.iter().zip(&self.inverse_frequencies) {
            let mut frequency = 0.0;
            for (column, weight) in row.columns.iter().zip(weights) {
                for _ in 0..trigram::occurrences(column, phrase) {
                    frequency += weight;
                }
            }
            score += inverse_frequency * ((frequency * (SATURATION + 1.0)) / (frequency + damping));
        }
        score
    }
}

fn row_tokens(row: &Row) -> usize {
    row.columns.iter().map(|column| trigram::tokens(column)).sum()
}

#[expect(clippy::cast_precision_loss, reason = "counts of what fits in memory")]
fn real(count: usize) -> f64 {
    count as f64
}
