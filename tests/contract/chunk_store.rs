//! The contract of the store port.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use tempfile::TempDir;

use grooveseek::adapters::store::memory::MemoryStore;
use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::domain::chunk::{Chunk, ChunkId, ContextMode, LineRange, Span, TextHash};
use grooveseek::domain::document::{ContentHash, DocumentPath};
use grooveseek::domain::embedding::{Embedding, ModelIdentity};
use grooveseek::domain::filter::Filter;
use grooveseek::domain::query::Phrase;
use grooveseek::domain::search::SearchRequest;
use grooveseek::ports::chunk_store::{
    AnnouncedRun, Candidate, Change, ChunkStore, ColumnWeights, Document, LexicalQuery, Matches,
    NewChunk, Repairs, Replacement, Restriction, RunUnderWay, Snapshot, Statistics, StoreError,
    StoredChunk, Summary,
};

mod damage;
mod words;

use damage::{
    a_blank_chunk_of_source_code_is_damage, a_document_without_chunks_is_damage,
    a_store_that_nobody_damaged_is_sound,
};
use words::{
    a_document_is_found_by_what_it_is_called, a_heading_at_the_beginning_is_a_title,
    a_word_is_found_in_all_its_forms, cosines_tell_how_they_are_spread,
    identifiers_are_found_whole_and_in_parts, matches_tell_how_far_the_best_stands_out,
    what_is_quoted_is_found_as_it_stands_only, what_stands_inside_of_a_word_comes_after_words,
    words_of_two_characters_are_found,
};

macro_rules! store_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            a_new_store_is_empty,
            what_was_stored_comes_back_whole,
            a_part_of_a_document_is_read_by_the_places_of_its_chunks,
            documents_come_in_ascending_order_of_path,
            chunks_come_in_the_order_of_the_ids_without_those_that_are_missing,
            the_first_chunks_of_a_document_are_those_at_its_beginning,
            putting_a_document_again_replaces_its_chunks,
            describing_a_document_keeps_its_chunks,
            renaming_a_document_keeps_everything_else,
            a_rename_needs_a_document_and_a_free_key,
            the_size_that_was_measured_last_is_kept,
            removing_a_document_removes_all_of_it,
            a_chunk_without_a_vector_is_found_by_its_words_only,
            a_vector_that_comes_later_makes_a_chunk_near,
            a_vector_for_a_chunk_that_has_gone_is_no_error,
            vectors_that_are_still_to_come_are_counted_until_they_are_there,
            a_vector_that_is_taken_away_counts_as_still_to_come,
            a_vector_is_found_by_the_text_that_it_was_made_of,
            a_chunk_can_be_scored_again,
            a_store_that_lacks_nothing_is_not_repaired,
            a_store_that_nobody_damaged_is_sound,
            a_document_without_chunks_is_damage,
            a_blank_chunk_of_source_code_is_damage,
            a_run_is_known_for_as_long_as_it_lives,
            a_vector_that_does_not_fit_is_refused,
            emptying_takes_on_another_dimension,
            an_identity_is_recorded_without_touching_documents,
            what_a_run_records_comes_back,
            ids_are_never_used_again,
            a_batch_that_fails_changes_nothing,
            every_change_raises_the_generation,
            a_snapshot_does_not_see_later_changes,
            a_replacement_is_not_seen_before_it_is_committed,
            a_replacement_takes_the_place_of_all_that_was_there,
            a_replacement_that_is_dropped_leaves_no_trace,
            a_snapshot_does_not_see_a_later_replacement,
            a_replaced_store_goes_on_as_before,
            several_snapshots_may_be_held_at_once,
            the_nearest_chunks_come_first,
            equally_near_chunks_are_ordered_by_id,
            a_query_without_direction_finds_everything_in_the_order_of_ids,
            several_queries_are_answered_as_one_after_the_other,
            a_query_of_another_dimension_is_refused,
            several_queries_are_answered_as_if_each_came_alone,
            several_queries_that_do_not_fit_are_refused,
            a_vector_without_a_direction_is_none,
            no_more_candidates_come_than_were_asked_for,
            a_phrase_is_found_in_every_column,
            a_phrase_is_found_whatever_its_case_and_accents,
            a_phrase_may_hold_anything,
            a_phrase_does_not_reach_from_one_column_into_the_next,
            a_rarer_phrase_weighs_more,
            a_heading_weighs_what_the_query_says,
            equally_good_matches_are_ordered_by_id,
            an_excluded_phrase_leaves_both_legs,
            an_exclusion_that_excludes_nothing_changes_nothing,
            a_filter_over_documents_starves_neither_leg,
            a_filter_over_quality_starves_neither_leg,
            every_part_of_a_filter_reaches_both_legs,
            scores_do_not_depend_on_what_was_there_before,
            the_summary_and_the_statistics_count_what_is_there,
            a_word_is_found_in_all_its_forms,
            words_of_two_characters_are_found,
            identifiers_are_found_whole_and_in_parts,
            what_stands_inside_of_a_word_comes_after_words,
            what_is_quoted_is_found_as_it_stands_only,
            a_document_is_found_by_what_it_is_called,
            a_heading_at_the_beginning_is_a_title,
            matches_tell_how_far_the_best_stands_out,
            cosines_tell_how_they_are_spread,
        }
    };
}

store_contract! { memory = super::memory() }
store_contract! { sqlite_from_the_file = super::sqlite() }
store_contract! { sqlite_from_memory = super::resident() }
store_contract! { sqlite_of_another_process = super::followed() }

/// A store, and the folder that its file is in.
pub(crate) struct Subject {
    store: Box<dyn ChunkStore>,
    _folder: Option<TempDir>,
}

#[expect(clippy::unused_async, reason = "every adapter is made alike")]
async fn memory() -> Subject {
    Subject { store: Box::new(MemoryStore::new()), _folder: None }
}

fn index_file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".groove.db");
    (folder, path)
}

/// Vectors are read from the file until one search has loaded them.
async fn sqlite() -> Subject {
    let (folder, path) = index_file();
    let store = SqliteStore::open_or_create(&path).await.unwrap();
    Subject { store: Box::new(store), _folder: Some(folder) }
}

/// Vectors are held in memory from the start and follow every commit.
async fn resident() -> Subject {
    let (folder, path) = index_file();
    let store = SqliteStore::open_or_create(&path).await.unwrap();
    store.load_vectors().await.unwrap();
    Subject { store: Box::new(store), _folder: Some(folder) }
}

// What the cases are made of.

fn path(text: &str) -> DocumentPath {
    DocumentPath::new(text).unwrap()
}

fn document(key: &str) -> Document {
    let path = path(key);
    Document {
        title: path.title(),
        topic: path.topic().map(str::to_owned),
        category: path.category().map(str::to_owned),
        depth: None,
        tags: Vec::new(),
        date: None,
        fields: BTreeMap::new(),
        hash: ContentHash::from_text(format!("hash of {key}")),
        recipe: None,
        size_bytes: None,
        indexed_at: "2026-11-30T12:00:00Z".to_owned(),
        path,
    }
}

fn text(content: &str) -> NewChunk {
    let chunk = Chunk { content: content.to_owned(), ..Chunk::default() };
    NewChunk { chunk, quality: 1.0, embedding: None }
}

fn headed(heading: &str, context: &str, content: &str) -> NewChunk {
    let mut new = text(content);
    new.chunk.heading = Some(heading.to_owned());
    new.chunk.context = Some(context.to_owned());
    new
}

fn towards(values: &[f32]) -> Embedding {
    Embedding::normalised(values.to_vec()).unwrap()
}

fn near(content: &str, values: &[f32]) -> NewChunk {
    NewChunk { embedding: Some(towards(values)), ..text(content) }
}

fn put(key: &str, chunks: Vec<NewChunk>) -> Change {
    Change::Put { document: document(key), chunks }
}

fn identity(dimension: usize) -> ModelIdentity {
    ModelIdentity { model: format!("model-{dimension}"), dimension }
}

fn phrases(texts: &[&str]) -> Vec<Phrase> {
    texts.iter().map(|&text| Phrase::new(text).unwrap()).collect()
}

fn query(texts: &[&str]) -> LexicalQuery {
    LexicalQuery { verbatim: phrases(texts), ..LexicalQuery::default() }
}

fn free() -> Restriction {
    Restriction::default()
}

fn without(texts: &[&str]) -> Restriction {
    Restriction { excluded: phrases(texts), ..free() }
}

fn only(request: &SearchRequest) -> Restriction {
    Restriction { filter: Filter::check(request, 0.0).unwrap().filter, ..free() }
}

fn ids(candidates: &[Candidate]) -> Vec<i64> {
    candidates.iter().map(|candidate| candidate.chunk.0).collect()
}

/// What is asked of a store in most cases.
impl Subject {
    async fn apply(&self, changes: Vec<Change>) {
        self.store.apply(changes).await.unwrap();
    }

    async fn refused(&self, changes: Vec<Change>) -> StoreError {
        self.store.apply(changes).await.unwrap_err()
    }

    async fn snapshot(&self) -> Box<dyn Snapshot> {
        self.store.snapshot().await.unwrap()
    }

    async fn statistics(&self) -> Statistics {
        self.snapshot().await.statistics().await.unwrap()
    }

    async fn summary(&self) -> Summary {
        self.snapshot().await.summary().await.unwrap()
    }

    async fn chunks_of(&self, key: &str) -> Vec<StoredChunk> {
        self.snapshot().await.chunks_of(&path(key)).await.unwrap()
    }

    /// The ids of a document's chunks.
    async fn ids_of(&self, key: &str) -> Vec<i64> {
        self.chunks_of(key).await.iter().map(|chunk| chunk.id.0).collect()
    }

    async fn document(&self, key: &str) -> Option<Document> {
        let documents = self.snapshot().await.documents().await.unwrap();
        documents.iter().find(|document| document.path == path(key)).map(|found| (**found).clone())
    }

    async fn nearest(
        &self,
        values: &[f32],
        depth: usize,
        restriction: &Restriction,
    ) -> Vec<Candidate> {
        let snapshot = self.snapshot().await;
        snapshot.nearest(&towards(values), depth, restriction).await.unwrap()
    }

    async fn matching(
        &self,
        texts: &[&str],
        depth: usize,
        restriction: &Restriction,
    ) -> Vec<Candidate> {
        let snapshot = self.snapshot().await;
        snapshot.matching(&query(texts), depth, restriction).await.unwrap().candidates
    }

    /// The contents in which a phrase is found, best first.
    async fn found(&self, texts: &[&str]) -> Vec<String> {
        let snapshot = self.snapshot().await;
        let found = snapshot.matching(&query(texts), 100, &free()).await.unwrap().candidates;
        let ids: Vec<ChunkId> = found.iter().map(|candidate| candidate.chunk).collect();
        let chunks = snapshot.chunks(&ids).await.unwrap();
        chunks.into_iter().map(|chunk| chunk.chunk.content).collect()
    }
}

/// Runs a case. The runtime outlives the store.
fn case<Case: AsyncFnOnce(Subject)>(subject: impl Future<Output = Subject>, case: Case) {
    run(async { case(subject.await).await });
}

fn run<Answer>(future: impl Future<Output = Answer>) -> Answer {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

// What a store keeps.

fn a_new_store_is_empty(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let snapshot = store.snapshot().await;
        assert_eq!(snapshot.summary().await.unwrap(), Summary::default());
        assert!(snapshot.documents().await.unwrap().is_empty());
        assert!(snapshot.chunks(&[ChunkId(1)]).await.unwrap().is_empty());
        assert!(snapshot.chunks_of(&path("a.md")).await.unwrap().is_empty());
        assert_eq!(snapshot.embeddings(&[ChunkId(1)]).await.unwrap(), [None]);
        assert!(store.nearest(&[1.0, 0.0], 5, &free()).await.is_empty());
        assert!(store.matching(&["anything"], 5, &free()).await.is_empty());
    });
}

fn everything() -> (Document, Vec<NewChunk>) {
    let document = Document {
        title: Some("A \"title\"".to_owned()),
        topic: Some("storage".to_owned()),
        category: Some("文書".to_owned()),
        depth: Some("deep".to_owned()),
        tags: vec!["z".to_owned(), "a \"quoted\" tag".to_owned(), "日本".to_owned(), String::new()],
        date: Some("2026-04-16".to_owned()),
        fields: BTreeMap::from([
            ("owner".to_owned(), vec!["Zoë".to_owned(), "Adam".to_owned(), "Zoë".to_owned()]),
            ("status".to_owned(), vec!["draft".to_owned()]),
        ]),
        recipe: Some("md/1 headings=文書".to_owned()),
        size_bytes: Some(5_000_000_000),
        ..document("文書/a b.md")
    };
    let chunk = Chunk {
        heading: Some("Port".to_owned()),
        level: Some(2),
        content: "The port is 3100.\n\n| a | b |\n".to_owned(),
        context: Some("Guide > Port".to_owned()),
        lines: Some(LineRange { start: 3, end: 9 }),
        symbol_kind: Some("function".to_owned()),
        table_rows: vec![Span { start: 19, end: 28 }],
    };
    let first = NewChunk { chunk, quality: 0.1, embedding: Some(towards(&[0.6, 0.8])) };
    (document, vec![first, text("Only content, with a \0 inside.")])
}

// SRCH-133
fn a_part_of_a_document_is_read_by_the_places_of_its_chunks(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        let texts = ["zero", "one", "two", "three"].map(text).to_vec();
        let changes = [("a.md", texts), ("b.md", vec![text("another")])]
            .map(|(key, chunks)| Change::Put { document: document(key), chunks });
        store.apply(changes.to_vec()).await;
        let snapshot = store.snapshot().await;
        let all = snapshot.chunks_of(&path("a.md")).await.unwrap();
        for (indexes, expected) in [
            (1..=2, &all[1..3]),
            (0..=0, &all[..1]),
            (3..=9, &all[3..]),
            (0..=u32::MAX, &all[..]),
            (4..=9, &[]),
        ] {
            let part = snapshot.chunks_between(&path("a.md"), indexes.clone()).await.unwrap();
            assert_eq!(part, expected, "{indexes:?}");
        }
        assert!(snapshot.chunks_between(&path("c.md"), 0..=9).await.unwrap().is_empty());
    });
}

// IDX-07
fn what_was_stored_comes_back_whole(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let (document, chunks) = everything();
        store.apply(vec![Change::Put { document: document.clone(), chunks: chunks.clone() }]).await;
        let snapshot = store.snapshot().await;
        assert_eq!(snapshot.documents().await.unwrap(), [Arc::new(document.clone())]);
        let stored = snapshot.chunks_of(&document.path).await.unwrap();
        for (index, (stored, new)) in stored.iter().zip(&chunks).enumerate() {
            assert_eq!(*stored.document, document);
            assert_eq!(stored.index as usize, index);
            assert_eq!(stored.siblings, 2);
            assert_eq!(stored.chunk, new.chunk);
            assert_eq!(stored.token_count, new.chunk.token_count());
            assert_eq!(stored.quality.to_bits(), new.quality.to_bits());
        }
        assert_eq!(stored.len(), 2);
        let ids: Vec<ChunkId> = stored.iter().map(|chunk| chunk.id).collect();
        let embeddings = snapshot.embeddings(&ids).await.unwrap();
        assert_eq!(embeddings, [chunks[0].embedding.clone(), None]);
    });
}

fn documents_come_in_ascending_order_of_path(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let keys = ["b.md", "B.md", "a/z.md", "日本.md", "a.md", "é.md"];
        store.apply(keys.iter().map(|key| put(key, vec![text("some text")])).collect()).await;
        let documents = store.snapshot().await.documents().await.unwrap();
        let found: Vec<&str> = documents.iter().map(|document| document.path.as_str()).collect();
        assert_eq!(found, ["B.md", "a.md", "a/z.md", "b.md", "é.md", "日本.md"]);
    });
}

fn chunks_come_in_the_order_of_the_ids_without_those_that_are_missing(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![text("one"), text("two"), text("three")])]).await;
        let ids = store.ids_of("a.md").await;
        let asked = [ChunkId(ids[2]), ChunkId(i64::MAX), ChunkId(ids[0])];
        let found = store.snapshot().await.chunks(&asked).await.unwrap();
        let contents: Vec<&str> = found.iter().map(|chunk| chunk.chunk.content.as_str()).collect();
        assert_eq!(contents, ["three", "one"]);
        assert_eq!(found[0].siblings, 3);
        assert_eq!(found[0].index, 2);
    });
}

// GRAPH-20
fn the_first_chunks_of_a_document_are_those_at_its_beginning(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        let chunks = ["one", "two", "three"].map(text).to_vec();
        store.apply(vec![put("a.md", chunks), put("b.md", vec![text("other")])]).await;
        let all = store.chunks_of("a.md").await;
        let snapshot = store.snapshot().await;
        for most in [0, 1, 2, 3, 4, usize::MAX] {
            let first = snapshot.first_chunks_of(&path("a.md"), most).await.unwrap();
            assert_eq!(first, all[..most.min(3)]);
        }
        assert_eq!(snapshot.first_chunks_of(&path("c.md"), 5).await.unwrap(), []);
    });
}

fn putting_a_document_again_replaces_its_chunks(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![near("old words", &[1.0, 0.0])])]).await;
        let mut changed = document("a.md");
        changed.tags = vec!["new".to_owned()];
        let chunks = vec![near("new words", &[0.0, 1.0])];
        store.apply(vec![Change::Put { document: changed.clone(), chunks }]).await;
        assert_eq!(store.document("a.md").await, Some(changed));
        assert_eq!(store.found(&["words"]).await, ["new words"]);
        let ids = store.ids_of("a.md").await;
        assert_eq!(store.nearest(&[1.0, 0.0], 5, &free()).await.len(), 1);
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), ids);
        assert_eq!(store.summary().await.documents, 1);
    });
}

fn describing_a_document_keeps_its_chunks(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![near("some words", &[1.0, 0.0])])]).await;
        let before = store.ids_of("a.md").await;
        let mut described = document("a.md");
        described.title = None;
        described.fields = BTreeMap::from([("status".to_owned(), vec!["final".to_owned()])]);
        store.apply(vec![Change::Describe(described.clone())]).await;
        assert_eq!(store.document("a.md").await, Some(described));
        assert_eq!(store.ids_of("a.md").await, before);
        assert_eq!(ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), before);

        store.apply(vec![Change::Describe(document("b.md"))]).await;
        assert_eq!(store.document("b.md").await, None, "one that has gone stays away");
    });
}

// IDX-59
fn renaming_a_document_keeps_everything_else(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let (document, chunks) = everything();
        store.apply(vec![Change::Put { document: document.clone(), chunks }]).await;
        let before = store.chunks_of(document.path.as_str()).await;
        let to = path("moved/elsewhere.md");
        let rename = Change::Rename { from: document.path.clone(), to: to.clone() };
        store.apply(vec![rename]).await;
        let moved = Document { path: to, ..document.clone() };
        let after = store.chunks_of("moved/elsewhere.md").await;
        assert_eq!(*after[0].document, moved);
        let plain = |chunks: &[StoredChunk]| -> Vec<(ChunkId, Chunk)> {
            chunks.iter().map(|chunk| (chunk.id, chunk.chunk.clone())).collect()
        };
        assert_eq!(plain(&after), plain(&before));
        assert!(store.chunks_of(document.path.as_str()).await.is_empty());
        assert_eq!(ids(&store.matching(&["3100"], 5, &free()).await), [before[0].id.0]);
        assert_eq!(ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [before[0].id.0]);
    });
}

fn a_rename_needs_a_document_and_a_free_key(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![text("one")]), put("b.md", vec![text("two")])]).await;
        let rename = |from, to| vec![Change::Rename { from: path(from), to: path(to) }];
        let error = store.refused(rename("c.md", "d.md")).await;
        assert!(matches!(error, StoreError::NotFound { path } if path.as_str() == "c.md"));
        let error = store.refused(rename("a.md", "b.md")).await;
        assert!(matches!(error, StoreError::Exists { path } if path.as_str() == "b.md"));

        let swap = [rename("a.md", "c.md"), rename("b.md", "a.md"), rename("c.md", "b.md")];
        store.apply(swap.concat()).await;
        assert_eq!(store.chunks_of("a.md").await[0].chunk.content, "two");
        assert_eq!(store.chunks_of("b.md").await[0].chunk.content, "one");
    });
}

// IDX-54
fn the_size_that_was_measured_last_is_kept(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![text("one")])]).await;
        let resize = |key, size_bytes| vec![Change::Resize { path: path(key), size_bytes }];
        store.apply(resize("a.md", 7)).await;
        let expected = Document { size_bytes: Some(7), ..document("a.md") };
        assert_eq!(store.document("a.md").await, Some(expected));
        store.apply(resize("b.md", 7)).await;
        assert_eq!(store.document("b.md").await, None, "one that has gone stays away");
    });
}

fn removing_a_document_removes_all_of_it(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let (document, chunks) = everything();
        store.apply(vec![Change::Put { document: document.clone(), chunks }]).await;
        store.apply(vec![put("b.md", vec![near("another port", &[1.0, 0.0])])]).await;
        let gone = store.ids_of(document.path.as_str()).await;
        let removals =
            vec![Change::Remove(document.path.clone()), Change::Remove(path("never.md"))];
        store.apply(removals).await;
        let kept = store.ids_of("b.md").await;
        assert_eq!(ids(&store.matching(&["port"], 5, &free()).await), kept);
        assert_eq!(ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), kept);
        assert_eq!(store.document(document.path.as_str()).await, None);
        let summary = store.summary().await;
        assert_eq!((summary.documents, summary.chunks), (1, 1));
        assert_eq!(store.statistics().await.field_values, 0);
        let gone: Vec<ChunkId> = gone.into_iter().map(ChunkId).collect();
        assert!(store.snapshot().await.chunks(&gone).await.unwrap().is_empty());
        assert_eq!(store.snapshot().await.embeddings(&gone).await.unwrap(), [None, None]);
    });
}

// Vectors.

// IDX-13
fn a_chunk_without_a_vector_is_found_by_its_words_only(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = vec![text("pending words"), near("embedded words", &[1.0, 0.0])];
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [ids[1]]);
        assert_eq!(self::ids(&store.matching(&["pending"], 5, &free()).await), [ids[0]]);
        assert_eq!(store.statistics().await.chunks_without_vector, 1);
    });
}

fn a_vector_that_comes_later_makes_a_chunk_near(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![Change::Empty(identity(2))]).await;
        store.apply(vec![put("a.md", vec![text("first words"), text("second words")])]).await;
        store.apply(vec![put("b.md", vec![near("third words", &[1.0, 1.0])])]).await;
        let ids = store.ids_of("a.md").await;
        let embed =
            |id, values: &[f32]| Change::Embed { chunk: ChunkId(id), embedding: towards(values) };
        store.apply(vec![embed(ids[1], &[1.0, 0.0]), embed(ids[0], &[0.0, 1.0])]).await;
        let expected = [ids[1], store.ids_of("b.md").await[0], ids[0]];
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), expected);
        assert_eq!(store.statistics().await.chunks_without_vector, 0);

        // The vector of a chunk may be given anew.
        store.apply(vec![embed(ids[0], &[1.0, 0.1])]).await;
        let found = store.nearest(&[0.0, 1.0], 5, &free()).await;
        assert_eq!(self::ids(&found), [expected[1], ids[0], ids[1]]);
        let embeddings = store.snapshot().await.embeddings(&[ChunkId(ids[0])]).await.unwrap();
        assert_eq!(embeddings, [Some(towards(&[1.0, 0.1]))]);
    });
}

fn a_vector_for_a_chunk_that_has_gone_is_no_error(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![text("some words")])]).await;
        let chunk = ChunkId(store.ids_of("a.md").await[0]);
        store.apply(vec![Change::Empty(identity(3))]).await;
        store.apply(vec![Change::Embed { chunk, embedding: towards(&[1.0, 0.0]) }]).await;
        assert!(store.nearest(&[1.0, 0.0, 0.0], 5, &free()).await.is_empty());
        assert_eq!(store.snapshot().await.embeddings(&[chunk]).await.unwrap(), [None]);
    });
}

// IDX-13
fn vectors_that_are_still_to_come_are_counted_until_they_are_there(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        let pending = async || {
            let snapshot = store.snapshot().await;
            let mut left = Vec::new();
            for path in snapshot.pending().await.unwrap() {
                for chunk in snapshot.pending_of(&path).await.unwrap() {
                    assert_eq!(chunk.document.path, path);
                    left.push((path.to_string(), chunk.index, chunk.siblings));
                }
            }
            assert_eq!(snapshot.summary().await.unwrap().pending_chunks, left.len() as u64);
            left
        };
        let chunks = vec![text("one"), near("two", &[1.0, 0.0]), text("three")];
        store.apply(vec![put("b.md", chunks), put("a.md", vec![text("four")])]).await;
        let of_b = |index| ("b.md".to_owned(), index, 3);
        let of_a = ("a.md".to_owned(), 0, 1);
        assert_eq!(pending().await, [of_a.clone(), of_b(0), of_b(2)]);

        let ids = store.ids_of("b.md").await;
        let embed = |place: usize| Change::Embed {
            chunk: ChunkId(ids[place]),
            embedding: towards(&[0.0, 1.0]),
        };
        // A vector in place of another one is none that was to come.
        store.apply(vec![embed(2), embed(1), embed(2)]).await;
        assert_eq!(pending().await, [of_a.clone(), of_b(0)]);
        store.apply(vec![put("a.md", vec![near("four", &[1.0, 0.0])])]).await;
        assert_eq!(pending().await, [of_b(0)]);
        store.apply(vec![Change::Remove(path("b.md"))]).await;
        assert_eq!(pending().await, []);
        assert!(store.snapshot().await.pending_of(&path("b.md")).await.unwrap().is_empty());
    });
}

// IDX-B23
fn a_vector_that_is_taken_away_counts_as_still_to_come(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = vec![near("one", &[1.0, 0.0]), near("two", &[0.0, 1.0]), text("three")];
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        // What is nearest is known before, so that a store has it at hand.
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [ids[0], ids[1]]);
        let away = |id: i64| Change::Unembed(ChunkId(id));
        store.apply(vec![away(ids[0]), away(ids[0]), away(ids[2]), away(i64::MAX)]).await;
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [ids[1]]);
        assert_eq!(self::ids(&store.matching(&["one"], 5, &free()).await), [ids[0]]);
        let snapshot = store.snapshot().await;
        assert_eq!(snapshot.summary().await.unwrap().pending_chunks, 2);
        let pending = snapshot.pending_of(&path("a.md")).await.unwrap();
        assert_eq!(pending.iter().map(|chunk| chunk.id.0).collect::<Vec<_>>(), [ids[0], ids[2]]);
        let texts = ["one", "two"].map(TextHash::of);
        let found = snapshot.embeddings_of_texts(&texts).await.unwrap();
        assert_eq!(found, [None, Some(towards(&[0.0, 1.0]))]);
        assert_eq!(store.store.repair().await.unwrap(), Repairs::default());

        let embedding = towards(&[1.0, 0.0]);
        store.apply(vec![Change::Embed { chunk: ChunkId(ids[0]), embedding }]).await;
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [ids[0], ids[1]]);
        assert_eq!(store.summary().await.pending_chunks, 1);
    });
}

fn a_vector_is_found_by_the_text_that_it_was_made_of(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let with_context = |new: NewChunk| {
            let embedding = Some(towards(&[0.6, 0.8]));
            NewChunk { embedding, ..new }
        };
        store
            .apply(vec![
                put("a.md", vec![near("plain", &[1.0, 0.0]), text("pending")]),
                put("b.md", vec![with_context(headed("Port", "Guide > Port", "3100"))]),
            ])
            .await;
        let of = async |texts: &[&str]| {
            let texts: Vec<TextHash> = texts.iter().map(|text| TextHash::of(text)).collect();
            store.snapshot().await.embeddings_of_texts(&texts).await.unwrap()
        };
        let known = of(&["pending", "Guide > Port\n\n3100", "3100", "plain", "plain"]).await;
        let plain = Some(towards(&[1.0, 0.0]));
        assert_eq!(known, [None, Some(towards(&[0.6, 0.8])), None, plain.clone(), plain]);
        store.apply(vec![Change::Remove(path("a.md"))]).await;
        assert_eq!(of(&["plain"]).await, [None]);
        assert_eq!(of(&[]).await, []);
    });
}

// QUA-21
fn a_chunk_can_be_scored_again(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![near("words", &[1.0, 0.0]), text("words")])]).await;
        assert_eq!(store.nearest(&[1.0, 0.0], 5, &free()).await.len(), 1);
        let ids = store.ids_of("a.md").await;
        let score = |chunk| Change::Score { chunk: ChunkId(chunk), quality: 0.25 };
        store.apply(vec![score(ids[0]), score(999)]).await;
        let qualities: Vec<f32> =
            store.chunks_of("a.md").await.iter().map(|chunk| chunk.quality).collect();
        assert_eq!(qualities, [0.25, 1.0]);
        let request = SearchRequest { min_quality: Some(0.3), ..SearchRequest::default() };
        assert!(store.nearest(&[1.0, 0.0], 5, &only(&request)).await.is_empty());
        assert_eq!(self::ids(&store.matching(&["words"], 5, &only(&request)).await), ids[1..]);
    });
}

fn a_store_that_lacks_nothing_is_not_repaired(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        assert_eq!(store.store.repair().await.unwrap(), Repairs::default());
        store.apply(vec![put("a.md", vec![near("words", &[1.0, 0.0]), text("words")])]).await;
        let before = store.summary().await;
        assert_eq!(store.store.repair().await.unwrap(), Repairs::default());
        assert_eq!(store.summary().await, before);
    });
}

// IDX-B18
fn a_run_is_known_for_as_long_as_it_lives(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        assert_eq!(store.store.runs().await.unwrap(), []);
        let first = store.store.announce("2026-04-16T10:00:00Z").await.unwrap();
        let second = store.store.announce("2026-04-16T11:00:00Z").await.unwrap();
        let runs = store.store.runs().await.unwrap();
        let told = |run: &RunUnderWay| (run.process, run.since.clone());
        let expected = ["2026-04-16T10:00:00Z", "2026-04-16T11:00:00Z"]
            .map(|since| (std::process::id(), since.to_owned()));
        assert_eq!(runs.iter().map(told).collect::<Vec<_>>(), expected);
        // How far a run has come may be told a little late, but is told.
        while store.store.runs().await.unwrap()[0].total == 0 {
            first.advanced(3, 7);
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let run = store.store.runs().await.unwrap().remove(0);
        assert_eq!((run.done, run.total), (3, 7));
        drop(first);
        assert_eq!(store.store.runs().await.unwrap().len(), 1);
        drop(second);
        assert_eq!(store.store.runs().await.unwrap(), []);
    });
}

fn a_vector_that_does_not_fit_is_refused(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![Change::Empty(identity(2)), put("a.md", vec![text("words")])]).await;
        let three = [1.0, 0.0, 0.0];
        let chunk = ChunkId(store.ids_of("a.md").await[0]);
        let misfits = [
            put("b.md", vec![near("one", &[1.0, 0.0]), near("two", &three)]),
            Change::Embed { chunk, embedding: towards(&three) },
        ];
        for misfit in misfits {
            let error = store.refused(vec![misfit]).await;
            assert!(matches!(error, StoreError::WrongDimension { expected: 2, actual: 3 }));
        }
        assert_eq!(store.document("b.md").await, None);
    });
}

// IDX-08 IDX-112
fn emptying_takes_on_another_dimension(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store
            .apply(vec![
                Change::Empty(identity(2)),
                put("a.md", vec![near("old words", &[1.0, 0.0])]),
                Change::UseContext(ContextMode::Static),
                Change::Declare(Some(BTreeSet::from(["owner".to_owned()]))),
            ])
            .await;
        store.apply(vec![Change::Empty(identity(3))]).await;
        let summary = store.summary().await;
        let expected = Summary {
            identity: Some(identity(3)),
            generation: summary.generation,
            ..Summary::default()
        };
        assert_eq!(summary, expected);
        assert!(store.matching(&["words"], 5, &free()).await.is_empty());
        store.apply(vec![put("b.md", vec![near("new words", &[0.0, 1.0, 0.0])])]).await;
        let ids = store.ids_of("b.md").await;
        assert_eq!(self::ids(&store.nearest(&[0.0, 1.0, 0.0], 5, &free()).await), ids);
        assert_eq!(self::ids(&store.matching(&["words"], 5, &free()).await), ids);
    });
}

// IDX-112 IDX-114
fn an_identity_is_recorded_without_touching_documents(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![text("words")]), Change::Identify(identity(2))]).await;
        assert_eq!(store.summary().await.identity, Some(identity(2)));
        // No vector was stored yet, so another dimension fits as well.
        store.apply(vec![Change::Identify(identity(3))]).await;
        store.apply(vec![put("b.md", vec![near("more words", &[1.0, 0.0, 0.0])])]).await;
        let renamed = ModelIdentity { model: "another name".to_owned(), dimension: 3 };
        store.apply(vec![Change::Identify(renamed.clone())]).await;
        let error = store.refused(vec![Change::Identify(identity(2))]).await;
        assert!(matches!(error, StoreError::WrongDimension { expected: 3, actual: 2 }));
        assert_eq!(store.summary().await.identity, Some(renamed));
        assert_eq!(store.found(&["words"]).await, ["words", "more words"]);
        assert_eq!(store.nearest(&[1.0, 0.0, 0.0], 5, &free()).await.len(), 1);
    });
}

// IDX-12
fn what_a_run_records_comes_back(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let declared: BTreeSet<String> = ["owner", "状態"].map(str::to_owned).into();
        for mode in [ContextMode::Static, ContextMode::Off] {
            store.apply(vec![Change::UseContext(mode)]).await;
            assert_eq!(store.summary().await.context_mode, Some(mode));
        }
        for fields in [Some(declared), Some(BTreeSet::new()), None] {
            store.apply(vec![Change::Declare(fields.clone())]).await;
            assert_eq!(store.summary().await.declared_fields, fields);
        }
        store.apply(vec![Change::BelongTo("文書".to_owned())]).await;
        store.apply(vec![Change::Judge("1".to_owned()), Change::Judge("2".to_owned())]).await;
        store.apply(vec![Change::EmbedLongTexts("in parts".to_owned())]).await;
        let summary = store.summary().await;
        assert_eq!(summary.root.as_deref(), Some("文書"));
        assert_eq!(summary.quality_rules.as_deref(), Some("2"));
        assert_eq!(summary.long_texts.as_deref(), Some("in parts"));
        store.apply(vec![Change::Empty(identity(2))]).await;
        let summary = store.summary().await;
        assert_eq!((summary.root.as_deref(), summary.quality_rules), (Some("文書"), None));
        assert_eq!(summary.long_texts, None);
    });
}

fn ids_are_never_used_again(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut seen = BTreeSet::new();
        let removals =
            [vec![], vec![Change::Remove(path("a.md"))], vec![Change::Empty(identity(2))]];
        for before in removals {
            store.apply(before).await;
            store.apply(vec![put("a.md", vec![text("one"), text("two")])]).await;
            for id in store.ids_of("a.md").await {
                assert!(seen.insert(id), "{id} came twice");
            }
        }
        // Within one batch as well.
        store.apply(vec![put("b.md", vec![text("x")]), put("b.md", vec![text("y")])]).await;
        assert!(seen.insert(store.ids_of("b.md").await[0]));
    });
}

// IDX-07
fn a_batch_that_fails_changes_nothing(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![Change::Empty(identity(2))]).await;
        store.apply(vec![put("a.md", vec![near("old words", &[1.0, 0.0])])]).await;
        let before = (store.summary().await, store.chunks_of("a.md").await);
        let last = [
            Change::Rename { from: path("missing.md"), to: path("d.md") },
            Change::Rename { from: path("b.md"), to: path("a.md") },
            put("c.md", vec![near("too long", &[1.0, 0.0, 0.0])]),
        ];
        for last in last {
            let batch = vec![
                put("a.md", vec![near("new words", &[0.0, 1.0])]),
                put("b.md", vec![near("more words", &[0.0, 1.0])]),
                Change::UseContext(ContextMode::Static),
                last,
            ];
            store.refused(batch).await;
            assert_eq!((store.summary().await, store.chunks_of("a.md").await), before);
            assert_eq!(store.found(&["words"]).await, ["old words"]);
            assert_eq!(store.nearest(&[0.0, 1.0], 5, &free()).await.len(), 1);
        }
        let missing = Change::Rename { from: path("missing.md"), to: path("d.md") };
        let emptied = vec![Change::Empty(identity(3)), missing];
        store.refused(emptied).await;
        assert_eq!((store.summary().await, store.chunks_of("a.md").await), before);
    });
}

fn every_change_raises_the_generation(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut last = store.summary().await.generation;
        let changes = [
            Change::Empty(identity(2)),
            put("a.md", vec![text("words")]),
            Change::Resize { path: path("a.md"), size_bytes: 1 },
            Change::Describe(document("a.md")),
            Change::Rename { from: path("a.md"), to: path("b.md") },
            Change::UseContext(ContextMode::Off),
            Change::Declare(None),
            Change::Remove(path("b.md")),
        ];
        for change in changes {
            store.apply(vec![change.clone()]).await;
            let generation = store.summary().await.generation;
            assert!(generation > last, "{change:?}");
            last = generation;
        }
        store.apply(Vec::new()).await;
        assert_eq!(store.summary().await.generation, last);
    });
}

// Snapshots.

// IDX-111
fn a_snapshot_does_not_see_later_changes(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![Change::Empty(identity(2))]).await;
        let chunks = vec![near("old words", &[1.0, 0.0]), text("pending words")];
        store.apply(vec![put("a.md", chunks), put("b.md", vec![text("other words")])]).await;
        let ids = store.ids_of("a.md").await;
        let early = store.snapshot().await;
        let before = dump(&*early, &[1.0, 0.0]).await;
        let changes = [
            Change::Embed { chunk: ChunkId(ids[1]), embedding: towards(&[1.0, 0.1]) },
            put("a.md", vec![near("new words", &[0.0, 1.0])]),
            Change::Rename { from: path("b.md"), to: path("c.md") },
            Change::Remove(path("c.md")),
            Change::Empty(identity(3)),
        ];
        for change in changes {
            store.apply(vec![change]).await;
            assert_eq!(dump(&*early, &[1.0, 0.0]).await, before);
        }
        drop(early);
        assert_eq!(store.summary().await.documents, 0);
    });
}

// Replacements.

/// A store with a document of each kind, and what it answers.
async fn inhabited(store: &Subject) -> Dump {
    let (document, chunks) = everything();
    let documents = vec![
        Change::Empty(identity(2)),
        Change::Put { document, chunks },
        put("b.md", vec![text("pending words"), near("old words", &[1.0, 0.0])]),
        Change::Declare(Some(BTreeSet::from(["status".to_owned()]))),
    ];
    store.apply(documents).await;
    dump(&*store.snapshot().await, &[1.0, 0.5]).await
}

/// What goes into a replacement, with vectors of another dimension.
fn newcomers() -> Vec<Change> {
    vec![
        put("b.md", vec![near("new words", &[1.0, 0.0, 0.0])]),
        put("n.md", vec![near("more words", &[0.0, 1.0, 0.0]), text("日本語")]),
        Change::UseContext(ContextMode::Static),
    ]
}

// IDX-B03
fn a_replacement_is_not_seen_before_it_is_committed(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let before = inhabited(&store).await;
        let replacement = store.store.replacement(identity(3)).await.unwrap();
        let new = replacement.store();
        let summary = new.snapshot().await.unwrap().summary().await.unwrap();
        assert_eq!(summary.identity, Some(identity(3)));
        assert_eq!((summary.documents, summary.chunks), (0, 0));
        assert_eq!((summary.context_mode, summary.declared_fields), (None, None));
        new.apply(newcomers()).await.unwrap();
        assert_eq!(dump(&*store.snapshot().await, &[1.0, 0.5]).await, before);
        let new = new.snapshot().await.unwrap();
        assert_eq!(new.summary().await.unwrap().documents, 2);
        let found = new.matching(&query(&["old words"]), 5, &free()).await.unwrap().candidates;
        assert!(found.is_empty());
    });
}

// IDX-B03
fn a_replacement_takes_the_place_of_all_that_was_there(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        inhabited(&store).await;
        let before = store.summary().await;
        let replacement = store.store.replacement(identity(3)).await.unwrap();
        replacement.store().apply(newcomers()).await.unwrap();
        let expected =
            dump(&*replacement.store().snapshot().await.unwrap(), &[1.0, 0.5, 0.0]).await;
        // What is written to the original meanwhile goes with it.
        store.apply(vec![put("late.md", vec![text("late words")])]).await;
        replacement.commit().await.unwrap();
        assert_eq!(dump(&*store.snapshot().await, &[1.0, 0.5, 0.0]).await, expected);
        assert!(store.summary().await.generation > before.generation);
        assert!(store.matching(&["late words"], 5, &free()).await.is_empty());
        assert_eq!(store.nearest(&[1.0, 0.0, 0.0], 5, &free()).await.len(), 2);
    });
}

// IDX-B03
fn a_replacement_that_is_dropped_leaves_no_trace(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let before = inhabited(&store).await;
        let generation = store.summary().await.generation;
        let replacement = store.store.replacement(identity(3)).await.unwrap();
        replacement.store().apply(newcomers()).await.unwrap();
        drop(replacement);
        assert_eq!(dump(&*store.snapshot().await, &[1.0, 0.5]).await, before);
        assert_eq!(store.summary().await.generation, generation);
    });
}

// IDX-B03
fn a_snapshot_does_not_see_a_later_replacement(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let before = inhabited(&store).await;
        let snapshot = store.snapshot().await;
        let replacement = store.store.replacement(identity(3)).await.unwrap();
        replacement.store().apply(newcomers()).await.unwrap();
        replacement.commit().await.unwrap();
        assert_eq!(dump(&*snapshot, &[1.0, 0.5]).await, before);
    });
}

// IDX-B03
fn a_replaced_store_goes_on_as_before(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        inhabited(&store).await;
        let first = store.ids_of("b.md").await;
        for round in 0..2 {
            let replacement = store.store.replacement(identity(2)).await.unwrap();
            let chunks = vec![near("round words", &[1.0, 0.1])];
            replacement.store().apply(vec![put("b.md", chunks)]).await.unwrap();
            replacement.commit().await.unwrap();
            let name = format!("after-{round}.md");
            store.apply(vec![put(&name, vec![near("late words", &[1.0, 0.0])])]).await;
            let (new, late) = (store.ids_of("b.md").await, store.ids_of(&name).await);
            assert!(new.iter().chain(&late).all(|id| !first.contains(id)));
            assert_eq!(ids(&store.nearest(&[1.0, 0.0], 5, &free()).await), [late[0], new[0]]);
            assert_eq!(ids(&store.matching(&["late words"], 5, &free()).await), late);
            assert_eq!(ids(&store.matching(&["round words"], 5, &free()).await), new);
            store.apply(vec![Change::Remove(path(&name))]).await;
            assert_eq!(ids(&store.matching(&["words"], 5, &free()).await), new);
        }
    });
}

fn several_snapshots_may_be_held_at_once(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut held = Vec::new();
        for generation in 0..20 {
            held.push(store.snapshot().await);
            store.apply(vec![put(&format!("{generation}.md"), vec![text("words")])]).await;
        }
        for (generation, snapshot) in held.iter().enumerate() {
            assert_eq!(snapshot.documents().await.unwrap().len(), generation);
        }
    });
}

// The dense leg.

// SRCH-74
fn the_nearest_chunks_come_first(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let vectors = [[0.0, 1.0, 0.0], [1.0, 0.2, 0.0], [-1.0, 0.0, 0.0], [1.0, 1.0, 1.0]];
        let chunks = vectors.iter().map(|values| near("words", values)).collect();
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        let query = [1.0, 0.1, 0.0];
        let found = store.nearest(&query, 10, &free()).await;
        assert_eq!(self::ids(&found), [ids[1], ids[3], ids[0], ids[2]]);
        for (candidate, place) in found.iter().zip([1, 3, 0, 2]) {
            let expected = towards(&query).cosine(&towards(&vectors[place]));
            assert!((candidate.score - expected).abs() < 1e-6);
        }
        assert_eq!(self::ids(&store.nearest(&query, 2, &free()).await), [ids[1], ids[3]]);
    });
}

// SRCH-89 SRCH-190
fn equally_near_chunks_are_ordered_by_id(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        // More equal rows than any scan keeps for so few candidates.
        for key in ["b.md", "a.md", "c.md"] {
            let chunks = (0..150).map(|_| near("words", &[0.6, 0.8])).collect();
            store.apply(vec![put(key, chunks)]).await;
        }
        store.apply(vec![Change::Remove(path("b.md"))]).await;
        let mut expected = [store.ids_of("a.md").await, store.ids_of("c.md").await].concat();
        let best = expected.pop().unwrap();
        let chunk = ChunkId(best);
        store.apply(vec![Change::Embed { chunk, embedding: towards(&[1.0, 0.0]) }]).await;
        expected.insert(0, best);
        let found = store.nearest(&[1.0, 0.0], 7, &free()).await;
        assert_eq!(ids(&found), expected[..7]);
    });
}

// GRAPH-23
fn a_query_without_direction_finds_everything_in_the_order_of_ids(
    subject: impl Future<Output = Subject>,
) {
    case(subject, async |store| {
        for key in ["b.md", "a.md"] {
            let chunks = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]].map(|it| near("words", &it));
            store.apply(vec![put(key, chunks.to_vec())]).await;
        }
        let mut expected = [store.ids_of("b.md").await, store.ids_of("a.md").await].concat();
        expected.sort_unstable();
        let nowhere = Embedding::from_stored(vec![0.0, 0.0]);
        // Once from the file, and once from what that has loaded.
        for _ in 0..2 {
            let found = store.snapshot().await.nearest(&nowhere, 5, &free()).await.unwrap();
            assert_eq!(ids(&found), expected[..5]);
            assert!(found.iter().all(|candidate| candidate.score.abs() < f32::EPSILON));
        }
    });
}

// GRAPH-32
fn several_queries_are_answered_as_one_after_the_other(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        for (key, turn) in [("a.md", 0.0_f32), ("b.md", 0.4), ("c.md", 0.9)] {
            let chunks = (0..40).map(|step| {
                let angle = turn + step as f32 * 0.15;
                near("words", &[angle.cos(), angle.sin(), 0.3])
            });
            store.apply(vec![put(key, chunks.collect())]).await;
        }
        let filter = Filter::default().without(["b.md"]);
        let restriction = Restriction { filter, excluded: Vec::new() };
        let queries: Vec<Embedding> =
            (0..9).map(|step| towards(&[step as f32 - 4.0, 2.0, 0.1])).collect();
        for restriction in [free(), restriction] {
            for depth in [0, 1, 7, 500] {
                let snapshot = store.snapshot().await;
                let together =
                    snapshot.nearest_to_each(&queries, depth, &restriction).await.unwrap();
                assert_eq!(together.len(), queries.len());
                for (query, ranking) in queries.iter().zip(together) {
                    let alone = snapshot.nearest(query, depth, &restriction).await.unwrap();
                    assert_eq!(ranking, alone);
                }
            }
        }
        let none = store.snapshot().await.nearest_to_each(&[], 5, &free()).await.unwrap();
        assert_eq!(none, Vec::<Vec<Candidate>>::new());
    });
}

// IDX-115
fn a_query_of_another_dimension_is_refused(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let three = towards(&[1.0, 0.0, 0.0]);
        for changes in
            [vec![Change::Empty(identity(2))], vec![put("a.md", vec![near("words", &[1.0, 0.0])])]]
        {
            store.apply(changes).await;
            let error = store.snapshot().await.nearest(&three, 5, &free()).await.unwrap_err();
            assert!(matches!(error, StoreError::WrongDimension { expected: 2, actual: 3 }));
        }
    });
}

// SRCH-74 SRCH-78 SRCH-89 SRCH-B07
fn several_queries_are_answered_as_if_each_came_alone(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        // Coarse directions, so that many are equally near; some are missing, and
        // some are of documents or of a quality that a filter drops.
        let direction =
            |number: usize| towards(&[(number % 7) as f32 - 3.0, (number % 5) as f32 + 0.5]);
        for (key, count) in [("a.md", 90), ("b/c.md", 150), ("b/d.md", 70)] {
            let chunks = (0..count).map(|number| NewChunk {
                quality: if number % 4 == 0 { 0.1 } else { 1.0 },
                embedding: (number % 6 != 5).then(|| direction(number)),
                ..text(if number % 9 == 0 { "secret words" } else { "words" })
            });
            store.apply(vec![put(key, chunks.collect())]).await;
        }
        let queries: Vec<Embedding> = (0..13).map(direction).collect();
        let mut restrictions = vec![
            free(),
            without(&["secret"]),
            only(&SearchRequest { category: Some("b".to_owned()), ..SearchRequest::default() }),
            only(&SearchRequest { min_quality: Some(0.5), ..SearchRequest::default() }),
            only(&SearchRequest { category: Some("x".to_owned()), ..SearchRequest::default() }),
        ];
        let mut both = restrictions[2].clone();
        both.excluded = phrases(&["secret"]);
        restrictions.push(both);
        let snapshot = store.snapshot().await;
        for restriction in &restrictions {
            for (count, depth) in [(0, 5), (1, 5), (5, 0), (4, 1), (13, 7), (6, 1000)] {
                let queries = &queries[..count];
                let together = snapshot.nearest_to_each(queries, depth, restriction).await.unwrap();
                assert_eq!(together.len(), count);
                for (query, ranking) in queries.iter().zip(&together) {
                    let alone = snapshot.nearest(query, depth, restriction).await.unwrap();
                    assert_eq!(ranking, &alone);
                }
            }
        }
        let all = snapshot.nearest_to_each(&queries[..2], 1000, &free()).await.unwrap();
        assert_eq!(all[1].len(), 310 - 310 / 6, "those without a vector are no candidates");
    });
}

// IDX-115
fn several_queries_that_do_not_fit_are_refused(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![near("words", &[1.0, 0.0])])]).await;
        let queries = [towards(&[1.0, 0.0]), towards(&[1.0, 0.0, 0.0])];
        let error = store.snapshot().await.nearest_to_each(&queries, 5, &free()).await.unwrap_err();
        assert!(matches!(error, StoreError::WrongDimension { expected: 2, actual: 3 }));
    });
}

// SRCH-74
fn a_vector_without_a_direction_is_none(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let broken = [[0.0, 0.0], [f32::NAN, 1.0], [f32::INFINITY, 0.0], [-1.0, f32::NEG_INFINITY]];
        let mut chunks: Vec<NewChunk> = broken
            .iter()
            .map(|values| NewChunk {
                embedding: Some(Embedding::from_stored(values.to_vec())),
                ..text("words")
            })
            .collect();
        // Nothing that is there could be farther away.
        chunks.push(near("words", &[-1.0, 0.0]));
        chunks.push(near("words", &[-1.0, 0.1]));
        store.apply(vec![put("a.md", chunks)]).await;
        let chunks = store.ids_of("a.md").await;
        let snapshot = store.snapshot().await;
        let query = towards(&[1.0, 0.0]);
        let found = snapshot.nearest(&query, 9, &free()).await.unwrap();
        assert_eq!(ids(&found), [chunks[5], chunks[4]]);
        let each = snapshot.nearest_to_each(&[query.clone(), query], 1, &free()).await.unwrap();
        assert!(each.iter().all(|ranking| ids(ranking) == [chunks[5]]));
        let numbers: Vec<ChunkId> = chunks.iter().copied().map(ChunkId).collect();
        let embeddings = snapshot.embeddings(&numbers).await.unwrap();
        let there: Vec<bool> = embeddings.iter().map(Option::is_some).collect();
        assert_eq!(there, [false, false, false, false, true, true]);
        // One that loses its direction later.
        let broken = Embedding::from_stored(vec![0.0, 0.0]);
        drop(snapshot);
        store.apply(vec![Change::Embed { chunk: numbers[5], embedding: broken }]).await;
        let found = store.nearest(&[1.0, 0.0], 9, &free()).await;
        assert_eq!(ids(&found), [chunks[4]]);
        assert_eq!(store.matching(&["words"], 9, &free()).await.len(), 6);
    });
}

// SRCH-191
fn no_more_candidates_come_than_were_asked_for(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = (0..5).map(|number| near("words", &[1.0, number as f32])).collect();
        store.apply(vec![put("a.md", chunks)]).await;
        for (depth, expected) in [(0, 0), (1, 1), (4, 4), (5, 5), (6, 5), (usize::MAX, 5)] {
            assert_eq!(store.nearest(&[1.0, 0.0], depth, &free()).await.len(), expected);
            assert_eq!(store.matching(&["words"], depth, &free()).await.len(), expected);
        }
    });
}

// The lexical leg.

// SRCH-63
fn a_phrase_is_found_in_every_column(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = vec![
            headed("needle", "x", "one"),
            headed("x", "a needle here", "two"),
            headed("x", "x", "three needles"),
            headed("nee", "dle", "four"),
        ];
        store.apply(vec![put("a.md", chunks)]).await;
        let mut found = store.found(&["needle"]).await;
        found.sort();
        assert_eq!(found, ["one", "three needles", "two"]);
        // Any of several phrases will do.
        assert_eq!(store.found(&["needle", "four"]).await.len(), 4);
        assert!(store.found(&["needless"]).await.is_empty());
        assert!(store.matching(&[], 5, &free()).await.is_empty());
    });
}

// SRCH-63
fn a_phrase_is_found_whatever_its_case_and_accents(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let contents = [
            "Crème Brûlée",
            "cre\u{301}me bru\u{302}le\u{301}e",
            "再ランキングの評価手法",
            "ＡＢＣ検索とは",
            "ΟΔΥΣΣΕΥΣ",
            "straße",
        ];
        store
            .apply(vec![put("a.md", contents.iter().map(|content| text(content)).collect())])
            .await;
        for (phrase, count) in [
            ("CREME", 2),
            ("crème brûlée", 2),
            ("ランキング", 1),
            ("の評価", 1),
            ("検索と", 1),
            ("ａｂｃ検", 1),
            ("οδυσσευς", 1),
            ("STRASSE", 0),
            ("Straße", 1),
        ] {
            assert_eq!(store.found(&[phrase]).await.len(), count, "{phrase}");
        }
        // Nothing is left of a phrase that is all accents.
        assert!(store.found(&["\u{301}\u{301}\u{301}"]).await.is_empty());
        assert!(store.found(&["e\u{301}\u{301}"]).await.is_empty());
    });
}

// SRCH-62
fn a_phrase_may_hold_anything(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let content = r#"say "hi" OR (heading: NOT x*) AND -y ^z + NEAR(a b) {c} 'd' \ ; --"#;
        store.apply(vec![put("a.md", vec![text(content)])]).await;
        for phrase in
            [content, r#""hi""#, "OR (", "heading:", "x*)", " -y", "^z +", "' \\ ;", " --"]
        {
            assert_eq!(store.found(&[phrase]).await, [content], "{phrase}");
        }
        assert!(store.found(&[r#"hi" OR "say"#]).await.is_empty());
        let long = "long ".repeat(500);
        store.apply(vec![put("b.md", vec![text(&long)])]).await;
        assert_eq!(store.found(&[&long[..2000]]).await, [long]);
    });
}

fn a_phrase_does_not_reach_from_one_column_into_the_next(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        store.apply(vec![put("a.md", vec![headed("abc", "def", "ghi")])]).await;
        for phrase in ["abcdef", "abc def", "cde", "fgh", "f ghi"] {
            assert!(store.found(&[phrase]).await.is_empty(), "{phrase}");
        }
    });
}

// SRCH-75
fn a_rarer_phrase_weighs_more(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut chunks: Vec<NewChunk> = (0..8).map(|_| text("common words stand here")).collect();
        chunks.push(text("unusual words stand here"));
        chunks.extend((0..12).map(|_| text("nothing of the kind at all")));
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        let found = store.matching(&["common", "unusual"], 20, &free()).await;
        assert_eq!(found.len(), 9);
        assert_eq!(found[0].chunk.0, ids[8]);
        assert!(found[0].score > found[1].score && found[1].score > 0.0);
        // A shorter text in which a phrase occurs as often is better.
        store.apply(vec![put("b.md", vec![text("unusual")])]).await;
        let found = store.matching(&["unusual"], 20, &free()).await;
        assert_eq!(found[0].chunk.0, store.ids_of("b.md").await[0]);
    });
}

// SRCH-75
fn a_heading_weighs_what_the_query_says(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let mut chunks =
            vec![headed("needle", "aaaaaa", "bbbbbb"), headed("aaaaaa", "bbbbbb", "needle")];
        chunks.extend((0..6).map(|_| headed("aaaaaa", "bbbbbb", "cccccc")));
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        let snapshot = store.snapshot().await;
        let ranked = async |heading, content| {
            let weights = ColumnWeights { heading, context: 1.0, content };
            let verbatim = phrases(&["needle"]);
            let query = LexicalQuery { verbatim, weights, ..LexicalQuery::default() };
            self::ids(&snapshot.matching(&query, 5, &free()).await.unwrap().candidates)
        };
        assert_eq!(ranked(2.0, 1.0).await, [ids[0], ids[1]]);
        assert_eq!(ranked(1.0, 2.0).await, [ids[1], ids[0]]);
        assert_eq!(ranked(0.5, 0.5).await, [ids[0], ids[1]]);
        assert_eq!(ranked(0.0, 0.0).await, [ids[0], ids[1]]);
    });
}

// SRCH-89 SRCH-190
fn equally_good_matches_are_ordered_by_id(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        for key in ["b.md", "a.md"] {
            let chunks = (0..40).map(|_| text("the same words")).collect();
            store.apply(vec![put(key, chunks)]).await;
        }
        let expected = [store.ids_of("b.md").await, store.ids_of("a.md").await].concat();
        let found = store.matching(&["same", "words"], 60, &free()).await;
        assert_eq!(ids(&found), expected[..60]);
    });
}

// What both legs leave out.

// SRCH-05 SRCH-61 SRCH-63 SRCH-78
fn an_excluded_phrase_leaves_both_legs(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let near = |heading, context, content| NewChunk {
            embedding: Some(towards(&[1.0, 0.0])),
            ..headed(heading, context, content)
        };
        let chunks = vec![
            near("Async", "x", "some words"),
            near("x", "about ÁSYNC code", "some words"),
            near("x", "x", "some async words"),
            near("x", "x", "some other words"),
            near("x", "x", "some synced words"),
        ];
        store.apply(vec![put("a.md", chunks)]).await;
        let ids = store.ids_of("a.md").await;
        let restriction = without(&["async", "other"]);
        assert_eq!(self::ids(&store.nearest(&[1.0, 0.0], 1, &restriction).await), [ids[4]]);
        assert_eq!(self::ids(&store.matching(&["words", "some"], 1, &restriction).await), [ids[4]]);
        let all = without(&["some", "nowhere to be found"]);
        assert!(store.nearest(&[1.0, 0.0], 5, &all).await.is_empty());
        assert!(store.matching(&["words"], 5, &all).await.is_empty());
    });
}

// SRCH-79
fn an_exclusion_that_excludes_nothing_changes_nothing(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let chunks = (0..30).map(|number| near("some words", &[1.0, number as f32])).collect();
        store.apply(vec![put("a.md", chunks)]).await;
        for depth in [3, 100] {
            for nothing in ["nowhere", "\u{301}\u{301}\u{301}"] {
                let restriction = without(&[nothing]);
                let plain = store.nearest(&[1.0, 0.0], depth, &free()).await;
                assert_eq!(store.nearest(&[1.0, 0.0], depth, &restriction).await, plain);
                let plain = store.matching(&["words"], depth, &free()).await;
                assert_eq!(store.matching(&["words"], depth, &restriction).await, plain);
            }
        }
    });
}

/// Many chunks that are better by both legs than the few in the folder `rare`.
async fn few_among_many(store: &Subject, quality: f32) -> Vec<i64> {
    let poor = |content: &str, values: &[f32]| NewChunk { quality, ..near(content, values) };
    let many = (0..30).map(|number| {
        let chunks = (0..20).map(|_| poor("words", &[1.0, 0.0])).collect();
        put(&format!("common/{number}.md"), chunks)
    });
    store.apply(many.collect()).await;
    let few = (0..3)
        .map(|_| near("a long text in which words are but a small part of it", &[0.1, 1.0]))
        .collect();
    store.apply(vec![put("rare/a.md", few)]).await;
    store.ids_of("rare/a.md").await
}

// SRCH-76 SRCH-90 SRCH-B07
fn a_filter_over_documents_starves_neither_leg(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let few = few_among_many(&store, 1.0).await;
        let request =
            SearchRequest { category: Some("rare".to_owned()), ..SearchRequest::default() };
        let restriction = only(&request);
        assert_eq!(ids(&store.nearest(&[1.0, 0.0], 2, &restriction).await), few[..2]);
        assert_eq!(ids(&store.matching(&["words"], 2, &restriction).await), few[..2]);
        let both = Restriction { excluded: phrases(&["small part"]), ..restriction };
        assert!(store.nearest(&[1.0, 0.0], 2, &both).await.is_empty());
        assert!(store.matching(&["words"], 2, &both).await.is_empty());
    });
}

// SRCH-76 SRCH-B07
fn a_filter_over_quality_starves_neither_leg(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let few = few_among_many(&store, 0.2).await;
        let request = SearchRequest { min_quality: Some(0.3), ..SearchRequest::default() };
        let restriction = only(&request);
        assert_eq!(ids(&store.nearest(&[1.0, 0.0], 2, &restriction).await), few[..2]);
        assert_eq!(ids(&store.matching(&["words"], 9, &restriction).await), few);
    });
}

// SRCH-91 SRCH-93 SRCH-96 SRCH-99 SRCH-100 SRCH-77
fn every_part_of_a_filter_reaches_both_legs(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let one = |text: &str| vec![text.to_owned()];
        let mut wanted = document("notes/storage/wanted.md");
        wanted.tags = vec!["kept".to_owned(), "other".to_owned()];
        wanted.date = Some("2026-04-16".to_owned());
        wanted.fields = BTreeMap::from([("owner".to_owned(), one("zoë"))]);
        let chunks = || vec![near("words", &[1.0, 0.0])];
        store.apply(vec![put("notes/other/x.md", chunks())]).await;
        store.apply(vec![Change::Put { document: wanted, chunks: chunks() }]).await;
        let expected = store.ids_of("notes/storage/wanted.md").await;
        let owner = |name: &str| BTreeMap::from([("owner".to_owned(), one(name))]);
        let plain = SearchRequest::default;
        let requests = [
            SearchRequest { topic: Some("storage".to_owned()), ..plain() },
            SearchRequest { path_globs: Some(one("**/wanted.md")), ..plain() },
            SearchRequest { path_globs: Some(one("!**/x.md")), ..plain() },
            SearchRequest { tags_any: one("kept"), ..plain() },
            SearchRequest { tags_all: vec!["other".to_owned(), "kept".to_owned()], ..plain() },
            SearchRequest { date_from: Some("2026-04-16".to_owned()), ..plain() },
            SearchRequest { date_to: Some("2026-04-16".to_owned()), ..plain() },
            SearchRequest { fields: owner("zoë"), ..plain() },
        ];
        for request in requests {
            let restriction = only(&request);
            let nearest = store.nearest(&[1.0, 0.0], 5, &restriction).await;
            assert_eq!(ids(&nearest), expected, "{request:?}");
            let matching = store.matching(&["words"], 5, &restriction).await;
            assert_eq!(ids(&matching), expected, "{request:?}");
        }
        // What is known of a document may change under its chunks.
        store.apply(vec![Change::Describe(document("notes/storage/wanted.md"))]).await;
        let restriction = only(&SearchRequest { tags_any: one("kept"), ..plain() });
        assert!(store.nearest(&[1.0, 0.0], 5, &restriction).await.is_empty());
        assert!(store.matching(&["words"], 5, &restriction).await.is_empty());
    });
}

// SRCH-190
fn scores_do_not_depend_on_what_was_there_before(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let last = || {
            vec![
                put("a.md", vec![text("some words"), text("a much longer text with some words")]),
                put("b.md", vec![text("nothing of it"), text("nothing at all"), text("nor here")]),
            ]
        };
        store.apply(last()).await;
        let fresh: Vec<f32> = scores(&store, &["words", "nor here"]).await;
        let other = |number: usize| {
            let long = "other words ".repeat(number);
            put("a.md", vec![text(&long), text("and words"), text("and nor here")])
        };
        for number in 1..6 {
            store.apply(vec![other(number), put("c.md", vec![text("nor here")])]).await;
            store.apply(vec![other(number), Change::Remove(path("c.md"))]).await;
        }
        store.apply(last()).await;
        assert_eq!(scores(&store, &["words", "nor here"]).await, fresh);
    });
}

async fn scores(store: &Subject, texts: &[&str]) -> Vec<f32> {
    let found = store.matching(texts, 10, &free()).await;
    found.iter().map(|candidate| candidate.score).collect()
}

fn the_summary_and_the_statistics_count_what_is_there(subject: impl Future<Output = Subject>) {
    case(subject, async |store| {
        let (document, chunks) = everything();
        store
            .apply(vec![
                Change::Empty(identity(2)),
                Change::Put { document, chunks },
                put("b.md", vec![text("pending"), near("words", &[1.0, 0.0])]),
                put("c.md", Vec::new()),
            ])
            .await;
        let expected = Summary {
            identity: Some(identity(2)),
            context_mode: None,
            declared_fields: None,
            root: None,
            quality_rules: None,
            long_texts: None,
            documents: 3,
            chunks: 4,
            pending_chunks: 2,
            has_vectors: true,
            generation: store.summary().await.generation,
        };
        assert_eq!(store.summary().await, expected);
        let expected = Statistics {
            field_values: 4,
            chunks_without_vector: 2,
            qualities: vec![(0.1, 1), (1.0, 3)],
            unreadable_tags: 0,
        };
        assert_eq!(store.statistics().await, expected);
    });
}

// Random sequences of operations, replayed on every store.

/// All that a snapshot answers.
#[derive(Debug, PartialEq)]
struct Dump {
    pending: Vec<(DocumentPath, Vec<ChunkId>)>,
    by_text: Vec<bool>,
    summary: Summary,
    statistics: Statistics,
    documents: Vec<Arc<Document>>,
    chunks: Vec<StoredChunk>,
    embeddings: Vec<Option<Embedding>>,
    nearest: Vec<Candidate>,
    matching: Close,
    /// By words, in scripts of both kinds.
    words: Close,
    named: bool,
}

/// Candidates whose scores are equal but for rounding.
#[derive(Debug)]
struct Close(Vec<Candidate>);

impl PartialEq for Close {
    fn eq(&self, other: &Self) -> bool {
        ids(&self.0) == ids(&other.0)
            && self.0.iter().zip(&other.0).all(|(a, b)| (a.score - b.score).abs() <= 1e-4)
    }
}

async fn dump(snapshot: &dyn Snapshot, direction: &[f32]) -> Dump {
    dump_with(snapshot, direction, &["words", "日本語"], &free(), 4).await
}

async fn dump_with(
    snapshot: &dyn Snapshot,
    direction: &[f32],
    texts: &[&str],
    restriction: &Restriction,
    depth: usize,
) -> Dump {
    let documents = snapshot.documents().await.unwrap();
    let mut chunks = Vec::new();
    for document in &documents {
        chunks.extend(snapshot.chunks_of(&document.path).await.unwrap());
    }
    let ids: Vec<ChunkId> = chunks.iter().map(|chunk| chunk.id).collect();
    assert_eq!(snapshot.chunks(&ids).await.unwrap(), chunks);
    let matching = snapshot.matching(&query(texts), depth, restriction).await.unwrap().candidates;
    let asked = LexicalQuery {
        text: "wording 日本語 another c".to_owned(),
        phrases: phrases(&["ord"]),
        ..LexicalQuery::default()
    };
    let words = snapshot.matching(&asked, depth, restriction).await.unwrap();
    let mut pending = Vec::new();
    for path in snapshot.pending().await.unwrap() {
        let chunks = snapshot.pending_of(&path).await.unwrap();
        pending.push((path, chunks.iter().map(|chunk| chunk.id).collect()));
    }
    let hashes = CONTENTS.map(TextHash::of);
    let by_text = snapshot.embeddings_of_texts(&hashes).await.unwrap();
    Dump {
        pending,
        // Which of several equal texts is taken is the store's own affair.
        by_text: by_text.iter().map(Option::is_some).collect(),
        // Where a store begins to count is its own affair.
        summary: Summary { generation: 0, ..snapshot.summary().await.unwrap() },
        statistics: snapshot.statistics().await.unwrap(),
        embeddings: snapshot.embeddings(&ids).await.unwrap(),
        nearest: snapshot.nearest(&towards(direction), depth, restriction).await.unwrap(),
        matching: Close(matching),
        named: words.named > 0.0,
        words: Close(words.candidates),
        documents,
        chunks,
    }
}

/// A step of a sequence; numbers stand for what exists by then.
#[derive(Clone, Debug)]
enum Step {
    Put { key: usize, chunks: Vec<(usize, usize, Option<(i8, i8)>)> },
    Describe { key: usize, tag: usize },
    Rename { from: usize, to: usize },
    Resize { key: usize },
    Remove { key: usize },
    Embed { place: usize, vector: (i8, i8) },
    Score { place: usize },
    Empty,
    Misfit,
}

const KEYS: [&str; 5] = ["a.md", "b/c.md", "b/d.md", "日本/語.md", "e.md"];

const CONTENTS: [&str; 7] = [
    "some words",
    "words, words and words",
    "Wörds in 日本語 text",
    "日本語の文書です",
    "another thing altogether",
    "no",
    "",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = || 0..KEYS.len();
    let vector = || (-3_i8..4, -3_i8..4);
    let chunk = (0..CONTENTS.len(), 0..CONTENTS.len(), prop::option::of(vector()));
    prop::collection::vec(
        prop_oneof![
            6 => (key(), prop::collection::vec(chunk, 0..5))
                .prop_map(|(key, chunks)| Step::Put { key, chunks }),
            1 => (key(), 0..3_usize).prop_map(|(key, tag)| Step::Describe { key, tag }),
            1 => (key(), key()).prop_map(|(from, to)| Step::Rename { from, to }),
            1 => key().prop_map(|key| Step::Resize { key }),
            2 => key().prop_map(|key| Step::Remove { key }),
            3 => (any::<usize>(), vector()).prop_map(|(place, vector)| Step::Embed { place, vector }),
            1 => any::<usize>().prop_map(|place| Step::Score { place }),
            1 => Just(Step::Empty),
            1 => Just(Step::Misfit),
        ],
        1..14,
    )
}

/// A direction of small numbers, so that many are equally near.
fn direction((x, y): (i8, i8)) -> Embedding {
    Embedding::normalised(vec![f32::from(x), f32::from(y)]).unwrap_or_else(|_| towards(&[1.0, 0.0]))
}

fn change(step: &Step, chunks: &[ChunkId]) -> Change {
    match step {
        Step::Put { key, chunks } => {
            let chunk = |&(heading, content, vector): &(usize, usize, Option<(i8, i8)>)| NewChunk {
                quality: if heading % 2 == 0 { 1.0 } else { 0.25 },
                embedding: vector.map(direction),
                ..headed(CONTENTS[heading], "", CONTENTS[content])
            };
            put(KEYS[*key], chunks.iter().map(chunk).collect())
        }
        Step::Describe { key, tag } => {
            Change::Describe(Document { tags: vec![format!("tag {tag}")], ..document(KEYS[*key]) })
        }
        Step::Rename { from, to } => {
            Change::Rename { from: path(KEYS[*from]), to: path(KEYS[*to]) }
        }
        Step::Resize { key } => Change::Resize { path: path(KEYS[*key]), size_bytes: 7 },
        Step::Remove { key } => Change::Remove(path(KEYS[*key])),
        Step::Embed { place, vector } => Change::Embed {
            chunk: chunks.get(place % chunks.len().max(1)).copied().unwrap_or(ChunkId(999)),
            embedding: direction(*vector),
        },
        Step::Score { place } => Change::Score {
            chunk: chunks.get(place % chunks.len().max(1)).copied().unwrap_or(ChunkId(999)),
            quality: 0.75,
        },
        Step::Empty => Change::Empty(identity(2)),
        Step::Misfit => put("f.md", vec![near("misfit", &[1.0, 0.0, 0.0])]),
    }
}

/// A store that another one of the same file follows.
struct Followed {
    first: SqliteStore,
    second: SqliteStore,
}

#[async_trait]
impl ChunkStore for Followed {
    async fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.second.snapshot().await
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), StoreError> {
        self.first.apply(changes).await
    }

    async fn replacement(
        &self,
        identity: ModelIdentity,
    ) -> Result<Box<dyn Replacement>, StoreError> {
        self.first.replacement(identity).await
    }

    async fn repair(&self) -> Result<Repairs, StoreError> {
        self.first.repair().await
    }

    async fn runs(&self) -> Result<Vec<RunUnderWay>, StoreError> {
        self.second.runs().await
    }

    async fn announce(&self, since: &str) -> Result<Box<dyn AnnouncedRun>, StoreError> {
        self.first.announce(since).await
    }
}

async fn followed() -> Subject {
    let (folder, path) = index_file();
    let first = SqliteStore::open_or_create(&path).await.unwrap();
    let second = SqliteStore::open_or_create(&path).await.unwrap();
    second.load_vectors().await.unwrap();
    Subject { store: Box::new(Followed { first, second }), _folder: Some(folder) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    // SRCH-74 SRCH-75 SRCH-76 SRCH-78 SRCH-86 SRCH-89 SRCH-190 IDX-111
    #[test]
    fn every_store_answers_like_the_one_in_memory(
        batches in prop::collection::vec(steps(), 1..6),
        category in any::<bool>(),
        quality in any::<bool>(),
        excluded in any::<bool>(),
        depth in 0_usize..8,
        towards in (-3_i8..4, -3_i8..4),
    ) {
        let request = SearchRequest {
            category: category.then(|| "b".to_owned()),
            min_quality: quality.then_some(0.5),
            ..SearchRequest::default()
        };
        let mut restriction = only(&request);
        if excluded {
            restriction.excluded = phrases(&["日本語"]);
        }
        run(async {
            let plain = memory().await;
            let others = [sqlite().await, resident().await, followed().await];
            plain.apply(vec![Change::Empty(identity(2))]).await;
            for other in &others {
                other.apply(vec![Change::Empty(identity(2))]).await;
            }
            for batch in &batches {
                let mut known = Vec::new();
                for key in KEYS {
                    known.extend(plain.ids_of(key).await.into_iter().map(ChunkId));
                }
                let changes: Vec<Change> = batch.iter().map(|step| change(step, &known)).collect();
                let expected = plain.store.apply(changes.clone()).await;
                for other in &others {
                    let actual = other.store.apply(changes.clone()).await;
                    assert_eq!(format!("{actual:?}"), format!("{expected:?}"));
                }
                let direction = direction(towards);
                let direction = direction.as_slice();
                let snapshot = plain.snapshot().await;
                let texts = ["words", "日本語", "wor"];
                let expected =
                    dump_with(&*snapshot, direction, &texts, &restriction, depth).await;
                for other in &others {
                    let snapshot = other.snapshot().await;
                    let actual =
                        dump_with(&*snapshot, direction, &texts, &restriction, depth).await;
                    assert_eq!(actual, expected);
                }
            }
        });
    }
}
