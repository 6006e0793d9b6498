//! Judged sets of queries: reading them, indexing their documents, and scoring
//! each leg and the fusion of both on them.

#![allow(dead_code, reason = "each user takes a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use grooveseek::app::config::Config;
use grooveseek::app::index::{IndexEvent, Observer, Report};
use grooveseek::app::search::{Patience, Searcher};
use grooveseek::app::wiring::{
    Groove, HubSettings, IndexFile, ModelPlaces, PrecisionChoice, Proxies, Surroundings,
};
use grooveseek::domain::evaluation::{ndcg_at, recall_at};
use grooveseek::domain::query::CompiledQuery;
use grooveseek::domain::search::SearchRequest;
use grooveseek::ports::chunk_store::{Candidate, LexicalQuery, Restriction, Snapshot};

/// How many chunks a leg is asked for, so that ten documents come of them.
const DEPTH: usize = 100;

/// A collection of documents with queries and judgements.
pub(crate) struct JudgedSet {
    /// Query id and text.
    pub(crate) queries: Vec<(String, String)>,
    /// For each query id, the grade of each relevant document.
    pub(crate) judgements: BTreeMap<String, BTreeMap<String, u32>>,
    archive: PathBuf,
}

impl JudgedSet {
    /// Reads a set from its folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let lines = |name: &str| -> Vec<Vec<String>> {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
            text.lines().map(cells).collect()
        };
        let mut judgements: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        for cells in lines("qrels.tsv") {
            let [query, document, grade] = &cells[..] else { continue };
            let Ok(grade) = grade.parse() else { continue };
            judgements.entry(query.clone()).or_default().insert(document.clone(), grade);
        }
        let queries = lines("queries.tsv")
            .into_iter()
            .filter_map(|cells| Some((cells.first()?.clone(), cells.get(1)?.clone())))
            .filter(|(id, _)| judgements.contains_key(id))
            .collect();
        Self { queries, judgements, archive: folder.join("docs.tar.gz") }
    }

    /// Unpacks the documents into a folder; they lie in `docs/` below it.
    pub(crate) fn unpack(&self, into: &Path) -> PathBuf {
        let status =
            Command::new("tar").arg("xzf").arg(&self.archive).arg("-C").arg(into).status().unwrap();
        assert!(status.success(), "tar could not unpack {}", self.archive.display());
        into.join("docs")
    }
}

/// Mean nDCG@10 and recall@10 over the queries of a set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    /// From 0 to 1.
    pub(crate) ndcg: f64,
    /// From 0 to 1.
    pub(crate) recall: f64,
}

/// The scores of each leg, and of both together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scores {
    pub(crate) dense: Score,
    pub(crate) lexical: Score,
    pub(crate) hybrid: Score,
}

struct Silent;

impl Observer for Silent {
    fn event(&self, _: IndexEvent<'_>) {}
}

/// Opens a knowledge base with the model in `model_folder`, and indexes it.
pub(crate) async fn indexed(
    kb: &Path,
    model_folder: &Path,
    precision: PrecisionChoice,
) -> (Groove, Report) {
    let surroundings = Surroundings {
        working_dir: std::env::current_dir().unwrap(),
        models: ModelPlaces {
            models_dir: model_folder.parent().map(Path::to_owned),
            ..ModelPlaces::default()
        },
        hub: HubSettings { endpoint: "http://127.0.0.1:9".to_owned(), ..HubSettings::default() },
        proxies: Proxies::default(),
    };
    let mut config = Config::default();
    config.use_local_model(model_folder.file_name().unwrap().to_str().unwrap());
    config.precision = precision;
    let groove =
        Groove::open(kb, config, &surroundings, IndexFile::Created).await.unwrap().unwrap();
    let observer: Arc<dyn Observer> = Arc::new(Silent);
    let clock = Arc::new(|| "2026-01-01T00:00:00Z".to_owned());
    let report = groove.indexer(clock).run(false, &observer).await.unwrap();
    (groove, report)
}

/// Scores both legs and their fusion.
pub(crate) async fn score(set: &JudgedSet, searcher: &Searcher) -> Scores {
    let snapshot = searcher.store.snapshot().await.unwrap();
    let mut scores =
        Scores { dense: Score::default(), lexical: Score::default(), hybrid: Score::default() };
    let everything = Restriction::default();
    let model = searcher.model.get().await.unwrap();
    for (id, text) in &set.queries {
        let judged = &set.judgements[id];
        let query = CompiledQuery::compile(text).unwrap();
        let vector = model.embed_query(query.positive_text()).await.unwrap();
        let dense = snapshot.nearest(&vector, DEPTH, &everything).await.unwrap();
        scores.dense.add(judged, &documents(&*snapshot, &dense).await);
        let lexical = lexical(&*snapshot, &query, searcher).await;
        scores.lexical.add(judged, &lexical);
        let request =
            SearchRequest { query: text.clone(), limit: Some(20), ..SearchRequest::default() };
        let answer = searcher.search(&request, Patience::Wait).await.unwrap();
        let hybrid = distinct(answer.hits.iter().map(|hit| hit.path.clone()));
        scores.hybrid.add(judged, &hybrid);
    }
    for score in [&mut scores.dense, &mut scores.lexical, &mut scores.hybrid] {
        score.ndcg /= set.queries.len() as f64;
        score.recall /= set.queries.len() as f64;
    }
    scores
}

/// Scores the lexical leg alone, for which no model is needed.
pub(crate) async fn score_lexical(set: &JudgedSet, searcher: &Searcher) -> Score {
    let snapshot = searcher.store.snapshot().await.unwrap();
    let mut score = Score::default();
    for (id, text) in &set.queries {
        let query = CompiledQuery::compile(text).unwrap();
        score.add(&set.judgements[id], &lexical(&*snapshot, &query, searcher).await);
    }
    score.ndcg /= set.queries.len() as f64;
    score.recall /= set.queries.len() as f64;
    score
}

async fn lexical(
    snapshot: &dyn Snapshot,
    query: &CompiledQuery,
    searcher: &Searcher,
) -> Vec<String> {
    if query.include().is_empty() {
        return Vec::new();
    }
    let query =
        LexicalQuery { phrases: query.include().to_vec(), weights: searcher.settings.weights };
    let found = snapshot.matching(&query, DEPTH, &Restriction::default()).await.unwrap();
    documents(snapshot, &found).await
}

async fn documents(snapshot: &dyn Snapshot, candidates: &[Candidate]) -> Vec<String> {
    let ids: Vec<_> = candidates.iter().map(|candidate| candidate.chunk).collect();
    let chunks = snapshot.chunks(&ids).await.unwrap();
    distinct(chunks.iter().map(|chunk| chunk.document.path.to_string()))
}

/// Document ids from paths, each once, in order.
fn distinct(paths: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    paths
        .map(|path| path.trim_end_matches(".md").to_owned())
        .filter(|id| seen.insert(id.clone()))
        .collect()
}

impl Score {
    fn add(&mut self, judged: &BTreeMap<String, u32>, ranking: &[String]) {
        self.ndcg += ndcg_at(10, ranking, judged);
        self.recall += recall_at(10, ranking, judged);
    }
}
