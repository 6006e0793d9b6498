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

/// How many chunks a leg is asked for, so that a hundred documents come of most.
const DEPTH: usize = 300;

/// A collection of documents with queries and judgements.
pub(crate) struct JudgedSet {
    /// Query id and text.
    pub(crate) queries: Vec<(String, String)>,
    /// For each query id, the grade of each relevant document.
    pub(crate) judgements: BTreeMap<String, BTreeMap<String, u32>>,
    archive: PathBuf,
    /// The pages of an archive that belong to the set, if not all of it does.
    pages: Option<PathBuf>,
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
        // Some sets are made of pages of a larger archive.
        let pages = folder.join("docs-list.txt");
        if pages.is_file() {
            let archive = folder.join("../../markdown/cpp-docs-10k.tar.gz");
            return Self { queries, judgements, archive, pages: Some(pages) };
        }
        Self { queries, judgements, archive: folder.join("docs.tar.gz"), pages: None }
    }

    /// Unpacks the documents into a folder; they lie in `docs/` below it.
    pub(crate) fn unpack(&self, into: &Path) -> PathBuf {
        let mut tar = Command::new("tar");
        tar.arg("xzf").arg(&self.archive).arg("-C").arg(into);
        if let Some(pages) = &self.pages {
            let list = into.join("pages.txt");
            let pages = fs::read_to_string(pages).unwrap();
            let named: Vec<String> = pages.lines().map(|page| format!("cpp-docs/{page}")).collect();
            fs::write(&list, named.join("\n")).unwrap();
            tar.args(["--strip-components=1", "-T"]).arg(list);
        }
        let status = tar.status().unwrap();
        assert!(status.success(), "tar could not unpack {}", self.archive.display());
        into.join("docs")
    }
}

/// Means over the queries of a set, from 0 to 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Score {
    /// nDCG@10.
    pub(crate) ndcg: f64,
    /// Recall@10.
    pub(crate) recall: f64,
    /// Recall@100.
    pub(crate) deep_recall: f64,
}

/// What each query found: its id, and documents, best first.
pub(crate) type Run = Vec<(String, Vec<String>)>;

/// The runs of each leg alone, and of searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) dense: Run,
    pub(crate) lexical: Run,
    /// Both legs, whatever they have to say.
    pub(crate) blind: Run,
    /// What a search does by default.
    pub(crate) default: Run,
}

impl JudgedSet {
    /// Scores a run.
    pub(crate) fn score(&self, run: &Run) -> Score {
        let mut score = Score::default();
        for (id, ranking) in run {
            let judged = &self.judgements[id];
            score.ndcg += ndcg_at(10, ranking, judged);
            score.recall += recall_at(10, ranking, judged);
            score.deep_recall += recall_at(100, ranking, judged);
        }
        for mean in [&mut score.ndcg, &mut score.recall, &mut score.deep_recall] {
            *mean /= self.queries.len() as f64;
        }
        score
    }

    /// How a document of a path is called in the judgements.
    fn name_of(&self, path: &str) -> String {
        match self.pages {
            Some(_) => format!("docs/{path}"),
            None => path.trim_end_matches(".md").to_owned(),
        }
    }
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

/// Runs every query of a set.
///
/// - `limit`: how many hits a search is asked for.
pub(crate) async fn runs(set: &JudgedSet, searcher: &Searcher, limit: u32) -> Runs {
    let snapshot = searcher.store.snapshot().await.unwrap();
    let mut runs = Runs::default();
    let everything = Restriction::default();
    let model = searcher.model.get().await.unwrap();
    let mut blind = searcher.clone();
    blind.settings.adaptive = false;
    for (id, text) in &set.queries {
        let query = CompiledQuery::compile(text).unwrap();
        let vector = model.embed_query(query.positive_text()).await.unwrap();
        let dense = snapshot.nearest(&vector, DEPTH, &everything).await.unwrap();
        runs.dense.push((id.clone(), documents(set, &*snapshot, &dense).await));
        runs.lexical.push((id.clone(), lexical(set, &*snapshot, &query, searcher).await));
        for (searcher, run) in [(&blind, &mut runs.blind), (searcher, &mut runs.default)] {
            let limit = Some(limit);
            let request = SearchRequest { query: text.clone(), limit, ..SearchRequest::default() };
            let answer = searcher.search(&request, Patience::Wait).await.unwrap();
            let paths = answer.hits.iter().map(|hit| set.name_of(&hit.path));
            run.push((id.clone(), distinct(paths)));
        }
    }
    runs
}

/// Scores the lexical leg alone, for which no model is needed.
pub(crate) async fn score_lexical(set: &JudgedSet, searcher: &Searcher) -> Score {
    let snapshot = searcher.store.snapshot().await.unwrap();
    let mut run = Run::new();
    for (id, text) in &set.queries {
        let query = CompiledQuery::compile(text).unwrap();
        run.push((id.clone(), lexical(set, &*snapshot, &query, searcher).await));
    }
    set.score(&run)
}

async fn lexical(
    set: &JudgedSet,
    snapshot: &dyn Snapshot,
    query: &CompiledQuery,
    searcher: &Searcher,
) -> Vec<String> {
    let query = LexicalQuery {
        text: query.plain_text().to_owned(),
        verbatim: query.verbatim().to_vec(),
        phrases: query.include().to_vec(),
        weights: searcher.settings.weights,
    };
    let found = snapshot.matching(&query, DEPTH, &Restriction::default()).await.unwrap();
    documents(set, snapshot, &found.candidates).await
}

async fn documents(
    set: &JudgedSet,
    snapshot: &dyn Snapshot,
    candidates: &[Candidate],
) -> Vec<String> {
    let ids: Vec<_> = candidates.iter().map(|candidate| candidate.chunk).collect();
    let chunks = snapshot.chunks(&ids).await.unwrap();
    distinct(chunks.iter().map(|chunk| set.name_of(chunk.document.path.as_str())))
}

/// Each once, in order.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}
