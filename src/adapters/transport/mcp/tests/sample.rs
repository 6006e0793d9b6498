//! A service with an answer of every shape.

use crate::domain::chunk::ChunkId;
use crate::domain::chunk::LineRange;
use crate::domain::chunk::Span;
use crate::domain::facets::Facets;
use crate::domain::graph::Graph;
use crate::domain::graph::GraphRequest;
use crate::domain::graph::Node;
use crate::domain::graph::SeedStrategy;
use crate::domain::graph::Truncation;
use crate::domain::highlights::Highlight;
use crate::domain::resource::ResourceEntry;
use crate::domain::resource::ResourceGroup;
use crate::domain::resource::groups;
use crate::domain::search::Budget;
use crate::domain::search::Expansion;
use crate::domain::search::FilterEcho;
use crate::domain::search::Hit;
use crate::domain::search::ScoreKind;
use crate::domain::search::SearchAnswer;
use crate::domain::search::SearchRequest;
use crate::domain::topics::TopicFolder;
use crate::domain::topics::TopicGroup;
use crate::ports::transport::BestPracticeAnswer;
use crate::ports::transport::BestPracticeRequest;
use crate::ports::transport::Completable;
use crate::ports::transport::DocumentAnswer;
use crate::ports::transport::DocumentRequest;
use crate::ports::transport::Handler;
use crate::ports::transport::Library;
use crate::ports::transport::Listener;
use crate::ports::transport::OtherRun;
use crate::ports::transport::Progress;
use crate::ports::transport::QuoteAnswer;
use crate::ports::transport::QuotePlace;
use crate::ports::transport::QuoteRequest;
use crate::ports::transport::RebuildAnswer;
use crate::ports::transport::Refused;
use crate::ports::transport::Unopened;
use async_trait::async_trait;
use std::sync::Mutex;
use std::sync::Weak;
use std::sync::atomic::AtomicUsize;
use tokio::sync::Notify;

use super::*;

/// A service with an answer of every shape.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) begun: Notify,
    pub(super) may_end: Notify,
    /// Index runs that came to their end.
    pub(super) runs: AtomicUsize,
    pub(super) library: Arc<SampleLibrary>,
}

/// A library of a few documents.
#[derive(Default)]
pub(super) struct SampleLibrary {
    /// Whether anybody watches.
    pub(super) is_watched: bool,
    pub(super) listeners: Mutex<Vec<Weak<dyn Listener>>>,
}

impl SampleLibrary {
    pub(super) fn tell(&self, news: &News) {
        for listener in self.listeners.lock().unwrap().iter().filter_map(Weak::upgrade) {
            listener.hear(news);
        }
    }
}

#[async_trait]
impl Library for SampleLibrary {
    async fn groups(&self) -> Result<Vec<ResourceGroup>, Refused> {
        Ok(groups(["a.md", "it/b c.md"].map(|path| ResourceEntry {
            path: DocumentPath::new(path).unwrap(),
            size_bytes: Some(4),
            indexed_at: "2026-01-01T00:00:00Z".into(),
        })))
    }

    async fn open(&self, path: &DocumentPath) -> Result<DocumentAnswer, Unopened> {
        let answer = |content: &str, truncated| DocumentAnswer {
            content: content.into(),
            truncated,
            size_bytes: 4,
            modified: Some("2026-02-02T00:00:00Z".into()),
            ..DocumentAnswer::default()
        };
        match path.as_str() {
            "a.md" => Ok(answer("text", false)),
            "long.PDF" => Ok(answer("text", true)),
            "broken.md" => Err(Unopened::Failed(Refused { message: "broken".into() })),
            "panic.md" => panic!("on purpose"),
            _ => Err(Unopened::NotFound(Refused { message: "see `groove doctor`".into() })),
        }
    }

    async fn complete(&self, what: Completable, start: &str) -> Result<Vec<String>, Refused> {
        Ok(match start {
            "many" => (0..150).map(|number| number.to_string()).collect(),
            start => vec![format!("{what:?} from {start}")],
        })
    }

    fn listen(&self, listener: Weak<dyn Listener>) -> bool {
        self.listeners.lock().unwrap().push(listener);
        self.is_watched
    }
}

#[async_trait]
impl Handler for Sample {
    async fn search(
        &self,
        request: SearchRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused> {
        match request.query.as_str() {
            "slow" => {
                progress.advance(3, 3);
                Ok(SearchAnswer::default())
            }
            "refuse" => Err(Refused { message: "refused".into() }),
            "panic" => panic!("on purpose"),
            "wait" => {
                self.begun.notify_one();
                self.may_end.notified().await;
                Ok(SearchAnswer::default())
            }
            "full" => Ok(full_answer()),
            "long" => {
                let content = format!("{}needle{}", "hay ".repeat(500), " hay".repeat(500));
                let start = content.find("needle").unwrap();
                let spans = Some(vec![Span { start, end: start + 6 }]);
                let hit = Hit { content, match_spans: spans, ..bare_hit() };
                Ok(SearchAnswer { hits: vec![hit; 5], ..SearchAnswer::default() })
            }
            _ => Ok(SearchAnswer { hits: vec![bare_hit()], ..SearchAnswer::default() }),
        }
    }

    async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, Refused> {
        let DocumentRequest { path, offset, max_bytes } = request;
        if path == "a.md" {
            return Ok(DocumentAnswer {
                path,
                content: "text".into(),
                offset,
                next_offset: max_bytes,
                uri: max_bytes.map(|_| "kb://doc/a.md".into()),
                indexed: max_bytes.map(|_| true),
                modified: max_bytes.map(|_| "2026-01-01T00:00:00Z".into()),
                ..DocumentAnswer::default()
            });
        }
        if path == "long.md" {
            return Ok(DocumentAnswer {
                path,
                content: "tide and ebb, ".repeat(1000),
                ..DocumentAnswer::default()
            });
        }
        Err(Refused { message: "not found".into() })
    }

    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused> {
        match request.start.as_str() {
            "wait" => {
                self.begun.notify_one();
                self.may_end.notified().await;
                Ok(Graph::default())
            }
            "a.md" => Ok(Graph { start_path: request.start, ..Graph::default() }),
            "full.md" => Ok(full_graph()),
            _ => Err(Refused { message: "not in the index".into() }),
        }
    }

    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused> {
        let leaf = TopicFolder { segment: "x".into(), file_count: 1, children: Vec::new() };
        let folder = TopicFolder { segment: "y".into(), file_count: 2, children: vec![leaf] };
        let children = vec![folder];
        Ok(vec![TopicGroup::default(), TopicGroup { children, ..TopicGroup::default() }])
    }

    async fn facets(&self) -> Result<Facets, Refused> {
        Ok(Facets {
            documents: 2,
            tags: vec![("a".into(), 2), ("b".into(), 1)],
            fields: Some([("status".to_owned(), vec![("open".to_owned(), 1)])].into()),
            ..Facets::default()
        })
    }

    async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, Refused> {
        let BestPracticeRequest { target, category } = request;
        match target.as_str() {
            "rust" => Ok(BestPracticeAnswer { target, category, content: "## A".into() }),
            _ => Err(Refused { message: "there is none".into() }),
        }
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, Refused> {
        let place = QuotePlace {
            path: request.path,
            lines: LineRange { start: 1, end: 2 },
            start: 0,
            end: request.text.len(),
            cite: "a.md:1-2".into(),
            uri: Some("kb://doc/a.md".into()),
        };
        Ok(QuoteAnswer { places: vec![place], is_exact: true })
    }

    fn asks_outside(&self) -> bool {
        false
    }

    fn library(&self) -> Arc<dyn Library> {
        Arc::clone(&self.library) as Arc<dyn Library>
    }

    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused> {
        for done in 1..=3 {
            progress.advance(done, 3);
            self.begun.notify_one();
            tokio::time::sleep(Duration::from_millis(120)).await;
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let error = force.then(|| "one file is not in the index".to_owned());
        let other = OtherRun { process: 7, since: "2026-01-01T00:00:00Z".into() };
        let others = force.then_some(other).into_iter().collect();
        Ok(RebuildAnswer { others, error, ..RebuildAnswer::default() })
    }
}

pub(super) fn bare_hit() -> Hit {
    Hit {
        score: 0.5,
        path: "a.md".into(),
        title: None,
        heading: None,
        topic: None,
        date: None,
        tags: Vec::new(),
        content: "text".into(),
        match_spans: None,
        highlights: None,
        expanded_from: None,
        lines: None,
        symbol_kind: None,
        uri: None,
        chunk_index: 0,
        document_chunks: 1,
        matched_by: vec!["fulltext"],
        ..Hit::default()
    }
}

pub(super) fn full_answer() -> SearchAnswer {
    let hit = Hit {
        title: Some("T".into()),
        match_spans: Some(vec![Span { start: 0, end: 4 }]),
        highlights: Some(vec![Highlight { span: Span { start: 0, end: 4 }, line: 1 }]),
        expanded_from: Some(Expansion::WholeDocument { total_chunks: 2 }),
        lines: Some(LineRange { start: 1, end: 2 }),
        symbol_kind: Some("function".into()),
        uri: Some("kb://doc/a.md".into()),
        location: Some(LineRange { start: 1, end: 2 }),
        cite: Some("T (a.md:1-2)".into()),
        is_shortened: true,
        ..bare_hit()
    };
    let filter = FilterEcho {
        category: Some("c".into()),
        fields: [("k".to_owned(), vec!["v".to_owned()])].into(),
        min_confidence_ratio: Some(1.5),
        excluded_terms: vec!["x".into()],
        ..FilterEcho::default()
    };
    SearchAnswer {
        hits: vec![hit, bare_hit()],
        low_confidence: true,
        confidence: Some(0.25),
        min_quality: 0.3,
        filter,
        score_kind: ScoreKind::Reranked,
        degraded: vec!["vector"],
        pending_chunks: 7,
        warnings: vec!["w".into()],
        budget: Some(Budget { max_tokens: 200, left_out: 1, shortened: 1 }),
    }
}

pub(super) fn full_graph() -> Graph {
    let seed = Node {
        parent: None,
        depth: 0,
        chunk: ChunkId(1),
        score: 1.0,
        path: "full.md".into(),
        heading: None,
        title: None,
        topic: None,
        snippet: String::new(),
        lines: None,
        symbol_kind: None,
        uri: None,
    };
    let found = Node {
        parent: Some(0),
        heading: Some("H".into()),
        title: Some("T".into()),
        topic: Some("t".into()),
        lines: Some(LineRange { start: 1, end: 2 }),
        symbol_kind: Some("function".into()),
        uri: Some("kb://doc/a.md".into()),
        ..seed.clone()
    };
    Graph {
        start_path: "full.md".into(),
        truncation: vec![
            Truncation::seed_chunks(1, SeedStrategy::AllChunks),
            Truncation::node_budget(2),
            Truncation::time_budget(5),
        ],
        nodes: vec![seed, found],
        warnings: vec!["w".into()],
        ..Graph::default()
    }
}
