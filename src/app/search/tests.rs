pub(in crate::app) mod observed;
mod stage_tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::adapters::reranker::overlap::OverlapReranker;
use crate::app::error::AppError;
use crate::app::model::RerankerModel;
use crate::app::search::Patience;
use crate::app::testing::Bench;
use crate::domain::embedding::ModelIdentity;
use crate::domain::filter::default_min_quality;
use crate::domain::search::{Expansion, ScoreKind, SearchAnswer, SearchRequest};
use crate::ports::chunk_store::{Change, LexicalQuery, Restriction};
use crate::ports::reranker::{RerankError, Reranker};

const DOCUMENTS: &[(&str, &str)] = &[
    (
        "it/accounts/password.md",
        "---\ntitle: Passwords\ndate: 2026-03-02\ntags: [accounts]\n---\n\
         ## Forgotten password\n\nAsk the help desk for a temporary access code to sign in.\n\n\
         ## Expired password\n\nChoose a new password before the old one expires on its date.\n",
    ),
    (
        "it/network/vpn.md",
        "---\ntitle: VPN\ntags: [network]\n---\n\
         The tunnel needs UDP port 51820, which hotel networks often block for guests.\n",
    ),
    ("people/leave.md", "Everybody has thirty days of paid leave a year, and public holidays.\n"),
    ("people/stub.md", "TBD\n"),
];

async fn bench() -> Bench {
    let bench = Bench::new(DOCUMENTS);
    bench.run().await;
    bench
}

fn query(text: &str) -> SearchRequest {
    SearchRequest { query: text.to_owned(), ..SearchRequest::default() }
}

async fn answer(bench: &Bench, request: SearchRequest) -> SearchAnswer {
    bench.searcher().search(&request, Patience::Wait).await.unwrap()
}

async fn refusal(bench: &Bench, request: SearchRequest) -> String {
    match bench.searcher().search(&request, Patience::Wait).await {
        Err(AppError::Invalid(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn paths(answer: &SearchAnswer) -> Vec<&str> {
    answer.hits.iter().map(|hit| hit.path.as_str()).collect()
}

// SRCH-160 SRCH-85 SRCH-162 SRCH-B19
#[tokio::test]
async fn what_both_legs_find_comes_first_and_carries_its_document() {
    let bench = bench().await;
    let answer = answer(&bench, query("temporary access code")).await;
    let hit = &answer.hits[0];
    assert_eq!(hit.path, "it/accounts/password.md");
    assert_eq!(hit.title.as_deref(), Some("Passwords"));
    assert_eq!(hit.heading.as_deref(), Some("Forgotten password"));
    assert_eq!(hit.topic.as_deref(), Some("accounts"));
    assert_eq!(hit.date.as_deref(), Some("2026-03-02"));
    assert_eq!(hit.tags, ["accounts"]);
    assert_eq!((hit.chunk_index, hit.document_chunks), (0, 2));
    assert_eq!(hit.matched_by, ["vector", "fulltext"]);
    assert!((hit.score - 2.0 / 61.0).abs() < 1e-6, "{}", hit.score);
    let spans = hit.match_spans.as_ref().unwrap();
    let texts: Vec<&str> = spans.iter().map(|span| &hit.content[span.start..span.end]).collect();
    assert_eq!(texts, ["temporary", "access", "code"]);
}

// IDX-113
#[tokio::test]
async fn an_index_that_was_built_anew_with_another_model_is_searched_by_its_words() {
    let bench = bench().await;
    let other = ModelIdentity { model: "other".into(), dimension: 64 };
    bench.indexer.store.apply(vec![Change::Identify(other)]).await.unwrap();
    let found = answer(&bench, query("temporary access code")).await;
    assert_eq!(found.hits[0].path, "it/accounts/password.md");
    assert_eq!(found.hits[0].matched_by, ["fulltext"]);
    assert_eq!(found.degraded, ["vector"]);
    assert!(found.warnings[0].contains("built anew with other"), "{:?}", found.warnings);
    // A query without a word to look for cannot be answered.
    let searcher = bench.searcher();
    let refused = searcher.search(&query("?!"), Patience::Wait).await.unwrap_err();
    assert!(matches!(refused, AppError::OtherModel { .. }), "{refused}");
}

// SRCH-11
#[tokio::test]
async fn a_limit_of_nothing_gives_nothing() {
    let bench = bench().await;
    let request = SearchRequest { limit: Some(0), ..query("password") };
    assert!(answer(&bench, request).await.hits.is_empty());
    let request = SearchRequest { limit: Some(u32::MAX), ..query("password") };
    assert_eq!(answer(&bench, request).await.hits.len(), 4);
}

// SRCH-05 SRCH-78 SRCH-186
#[tokio::test]
async fn an_excluded_term_keeps_a_chunk_out_of_both_legs() {
    let bench = bench().await;
    let answer = answer(&bench, query("password -temporary")).await;
    assert!(answer.hits.iter().all(|hit| !hit.content.contains("temporary")));
    assert!(!answer.hits.is_empty());
    assert_eq!(answer.filter.excluded_terms, ["temporary"]);
}

// SRCH-90 SRCH-96 SRCH-76
#[tokio::test]
async fn a_filter_leaves_only_what_passes() {
    let bench = bench().await;
    let request = SearchRequest { category: Some("people".into()), ..query("password") };
    assert_eq!(paths(&answer(&bench, request).await), ["people/leave.md"]);
    let request = SearchRequest { tags_any: vec!["network".into()], ..query("password") };
    assert_eq!(paths(&answer(&bench, request).await), ["it/network/vpn.md"]);
}

// QUA-13 QUA-14 QUA-16
#[tokio::test]
async fn thin_chunks_are_hidden_until_asked_for() {
    let bench = bench().await;
    assert!(!paths(&answer(&bench, query("TBD")).await).contains(&"people/stub.md"));
    let request = SearchRequest { include_low_quality: true, ..query("TBD") };
    assert_eq!(answer(&bench, request).await.hits[0].path, "people/stub.md");
    let request = SearchRequest { min_quality: Some(0.0), ..query("TBD") };
    assert_eq!(answer(&bench, request).await.hits[0].path, "people/stub.md");
}

// QUA-15
#[tokio::test]
async fn no_threshold_hides_a_chunk_that_nothing_was_held_against() {
    let whole = "Spring tides rise when the moon is full or new.\nNeap tides lie between them.";
    let bench =
        Bench::new(&[("whole.md", whole), ("line.md", "Tides: a line of some length, no more")]);
    bench.run().await;
    for threshold in [1.0, 7.0, f64::MAX] {
        let request = SearchRequest { min_quality: Some(threshold), ..query("tides") };
        assert_eq!(paths(&answer(&bench, request).await), ["whole.md"], "{threshold}");
        let mut searcher = bench.searcher();
        searcher.settings.min_quality = default_min_quality(true, threshold);
        let answer = searcher.search(&query("tides"), Patience::Wait).await.unwrap();
        assert_eq!(paths(&answer), ["whole.md"], "{threshold}");
    }
}

// QUA-19
#[tokio::test]
async fn a_hidden_chunk_is_indexed_like_any_other_and_another_threshold_shows_it() {
    let bench = bench().await;
    let hidden = bench.chunks_of("people/stub.md").await.swap_remove(0);
    assert!(hidden.quality < 0.3);
    let snapshot = bench.indexer.store.snapshot().await.unwrap();
    assert!(snapshot.embeddings(&[hidden.id]).await.unwrap()[0].is_some(), "it has a vector");
    let words = LexicalQuery { text: "TBD".to_owned(), ..LexicalQuery::default() };
    let matching = snapshot.matching(&words, 10, &Restriction::default()).await.unwrap();
    assert_eq!(
        matching.candidates.iter().map(|found| found.chunk).collect::<Vec<_>>(),
        [hidden.id]
    );
    let mut searcher = bench.searcher();
    for (least, shown) in [(0.3, false), (0.0, true), (0.05, false)] {
        searcher.settings.min_quality = least;
        let answer = searcher.search(&query("TBD"), Patience::Wait).await.unwrap();
        assert_eq!(paths(&answer).contains(&"people/stub.md"), shown, "{least}");
    }
}

// SRCH-10 SRCH-23 SRCH-24 SRCH-47 SRCH-95 SRCH-28
#[tokio::test]
async fn a_bad_request_names_what_is_wrong_and_loads_no_model() {
    let mut bench = bench().await;
    bench.restart();
    let cases = [
        (SearchRequest { mmr_lambda: Some(1.5), ..query("-only") }, "mmr_lambda"),
        (
            SearchRequest { mmr_same_doc_penalty: Some(f64::NAN), ..query("x") },
            "mmr_same_doc_penalty",
        ),
        (query(&"x".repeat(1025)), "1024"),
        (query("-only"), "only excludes"),
        (SearchRequest { path_globs: Some(Vec::new()), ..query("x") }, "path_globs"),
        (SearchRequest { path_globs: Some(vec!["[".into()]), ..query("x") }, "["),
    ];
    for (request, word) in cases {
        let text = refusal(&bench, request).await;
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
    assert!(bench.indexer.model.if_loaded().is_none());
}

// SRCH-107
#[tokio::test]
async fn a_field_filter_waits_for_a_complete_run() {
    let bench = bench().await;
    bench.indexer.store.apply(vec![Change::Declare(None)]).await.unwrap();
    let fields = [("status".to_owned(), vec!["draft".to_owned()])].into();
    let request = SearchRequest { fields, ..query("password") };
    assert!(refusal(&bench, request.clone()).await.contains("groove index"));
    bench.run().await;
    assert!(answer(&bench, request).await.hits.is_empty());
}

// SRCH-B02
#[tokio::test]
async fn while_the_model_loads_the_text_answers_and_says_so() {
    let mut bench = bench().await;
    bench.restart();
    let searcher = bench.searcher();
    let early = searcher.search(&query("temporary"), Patience::AnswerFromText).await.unwrap();
    assert_eq!(early.degraded, ["vector"]);
    assert_eq!(early.hits[0].matched_by, ["fulltext"]);
    assert!(bench.indexer.model.if_loaded().is_none(), "the search has not waited for it");
    bench.indexer.model.get().await.unwrap();
    let late = searcher.search(&query("temporary"), Patience::AnswerFromText).await.unwrap();
    assert!(late.degraded.is_empty());
}

// SRCH-58 SRCH-88
#[tokio::test]
async fn a_query_too_short_for_words_is_answered_by_meaning() {
    let mut bench = bench().await;
    bench.restart();
    let request = query("?!");
    let answer = bench.searcher().search(&request, Patience::AnswerFromText).await.unwrap();
    assert!(answer.degraded.is_empty());
    assert!(answer.hits.iter().all(|hit| hit.matched_by == ["vector"]));
}

// SRCH-B03 SRCH-12
#[tokio::test]
async fn a_blank_query_is_answered_and_remarked_on() {
    let bench = bench().await;
    let answer = answer(&bench, query("  ")).await;
    assert!(!answer.hits.is_empty());
    assert!(answer.warnings.iter().any(|warning| warning.contains("blank")), "{answer:?}");
}

// SRCH-B04 SRCH-59
#[tokio::test]
async fn what_is_too_short_to_find_or_to_exclude_is_named() {
    let bench = bench().await;
    let answer = answer(&bench, query("\"AI\" password -xy")).await;
    let all = answer.warnings.join("\n");
    assert!(all.contains("\"AI\"") && all.contains("\"xy\""), "{all}");
    assert!(answer.filter.excluded_terms.is_empty());
}

// SRCH-141 SRCH-187 SRCH-03
#[tokio::test]
async fn flat_scores_are_told() {
    let bench = bench().await;
    let request = SearchRequest { min_confidence_ratio: Some(100.0), ..query("password") };
    let unsure = answer(&bench, request).await;
    assert!(unsure.low_confidence);
    assert_eq!(unsure.filter.min_confidence_ratio, Some(100.0));
    let request = SearchRequest { min_confidence_ratio: Some(0.0), ..query("password") };
    assert!(!answer(&bench, request).await.low_confidence);
}

// SRCH-130 SRCH-132 SRCH-134 SRCH-170
#[tokio::test]
async fn a_short_hit_is_widened_to_its_document() {
    let bench = bench().await;
    let request = SearchRequest {
        parent_retriever: Some(true),
        limit: Some(1),
        ..query("temporary access code")
    };
    let widened = answer(&bench, request).await;
    assert_eq!(widened.hits[0].expanded_from, Some(Expansion::WholeDocument { total_chunks: 2 }));
    assert!(widened.hits[0].content.contains("before the old one expires"));
    let plain = answer(&bench, query("temporary access code")).await;
    assert_eq!(plain.hits[0].expanded_from, None);
    assert!((plain.hits[0].score - widened.hits[0].score).abs() < f32::EPSILON);
}

// SRCH-116 SRCH-119 SRCH-71
#[tokio::test]
async fn a_reranker_decides_the_order_when_it_is_wanted() {
    let bench = bench().await;
    let mut searcher = bench.searcher();
    searcher.reranker = Some(on_demand(|| Ok(Arc::new(OverlapReranker))));
    let request = query("public holidays paid leave");
    let reranked = searcher.search(&request, Patience::Wait).await.unwrap();
    assert_eq!(reranked.hits[0].path, "people/leave.md");
    assert!(reranked.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    let off = SearchRequest { rerank: Some(false), ..request };
    let fused = searcher.search(&off, Patience::Wait).await.unwrap();
    assert!((fused.hits[0].score - reranked.hits[0].score).abs() > f32::EPSILON);
    searcher.rerank_by_default = false;
    let standing = searcher.search(&query("public holidays paid leave"), Patience::Wait).await;
    assert_eq!(standing.unwrap(), fused);
}

fn on_demand(load: fn() -> Result<Arc<dyn Reranker>, RerankError>) -> Arc<RerankerModel> {
    Arc::new(RerankerModel::new("overlap", Box::new(move || Box::pin(async move { load() }))))
}

fn broken() -> Arc<RerankerModel> {
    on_demand(|| {
        Err(RerankError::Unavailable { model: "overlap".to_owned(), source: "broken".into() })
    })
}

// SRCH-116
#[tokio::test]
async fn a_wish_to_rerank_without_a_reranker_changes_nothing() {
    let bench = bench().await;
    let plain = answer(&bench, query("password")).await;
    let wished = SearchRequest { rerank: Some(true), ..query("password") };
    assert_eq!(answer(&bench, wished).await, plain);
}

// SRCH-116 SRCH-B02
#[tokio::test]
async fn a_reranker_that_is_not_loaded_yet_is_waited_for_only_by_who_asks_for_it() {
    let bench = bench().await;
    let mut searcher = bench.searcher();
    searcher.model.get().await.unwrap();
    searcher.reranker = Some(on_demand(|| Ok(Arc::new(OverlapReranker))));
    let request = query("public holidays paid leave");
    let early = searcher.search(&request, Patience::AnswerFromText).await.unwrap();
    assert_eq!(early.degraded, ["reranker"]);
    assert!(early.hits[0].score < 0.1, "the fused score");
    let asked = SearchRequest { rerank: Some(true), ..request.clone() };
    let asked = searcher.search(&asked, Patience::AnswerFromText).await.unwrap();
    assert!(asked.degraded.is_empty());
    let later = searcher.search(&request, Patience::AnswerFromText).await.unwrap();
    assert_eq!(later, asked);
}

// SRCH-180 SRCH-116
#[tokio::test]
async fn a_reranker_that_fails_fails_the_search_that_wants_it_and_no_other() {
    let bench = bench().await;
    let mut searcher = bench.searcher();
    searcher.reranker = Some(broken());
    let error = searcher.search(&query("password"), Patience::Wait).await.unwrap_err();
    assert!(matches!(error, AppError::Rerank(_)), "{error}");
    let without = SearchRequest { rerank: Some(false), ..query("password") };
    assert!(searcher.search(&without, Patience::Wait).await.is_ok());
}

/// Answers with the same scores whatever it is asked.
struct Fixed(&'static [f32]);

#[async_trait::async_trait]
impl Reranker for Fixed {
    fn model(&self) -> &'static str {
        "fixed"
    }

    async fn score(&self, _: &str, _: &[String]) -> Result<Vec<f32>, RerankError> {
        Ok(self.0.to_vec())
    }
}

async fn answer_of(
    bench: &Bench,
    load: fn() -> Result<Arc<dyn Reranker>, RerankError>,
    limit: Option<Duration>,
) -> Result<SearchAnswer, AppError> {
    let mut searcher = bench.searcher();
    searcher.reranker = Some(on_demand(load));
    searcher.settings.rerank_timeout = limit;
    searcher.search(&query("password"), Patience::Wait).await
}

// SRCH-180
#[tokio::test]
async fn scores_that_are_no_numbers_or_not_one_for_each_are_refused_by_name() {
    let bench = bench().await;
    for limit in [None, Some(Duration::from_mins(1))] {
        let error = answer_of(&bench, || Ok(Arc::new(Fixed(&[]))), limit).await.unwrap_err();
        assert!(matches!(error, AppError::Rerank(RerankError::WrongShape { answered: 0, .. })));
        let broken = || Ok(Arc::new(Filled(f32::NAN)) as Arc<dyn Reranker>);
        let error = answer_of(&bench, broken, limit).await.unwrap_err();
        let AppError::Rerank(error) = error else { panic!("{error}") };
        assert!(error.to_string().contains("filled answered with the score NaN"), "{error}");
    }
}

/// Gives every passage the same score.
struct Filled(f32);

#[async_trait::async_trait]
impl Reranker for Filled {
    fn model(&self) -> &'static str {
        "filled"
    }

    async fn score(&self, _: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        Ok(vec![self.0; passages.len()])
    }
}

/// Scores nothing until it is let go.
struct Slow {
    runs: AtomicUsize,
    gate: tokio::sync::Semaphore,
}

#[async_trait::async_trait]
impl Reranker for Arc<Slow> {
    fn model(&self) -> &'static str {
        "slow"
    }

    async fn score(&self, _: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let _gone_through = self.gate.acquire().await;
        Ok((0_u8..).map(f32::from).take(passages.len()).collect())
    }
}

// SRCH-B13 SRCH-B14 SRCH-B02
#[tokio::test]
async fn a_reranker_that_takes_too_long_leaves_the_fused_order_and_is_not_asked_meanwhile() {
    let bench = bench().await;
    let slow = Arc::new(Slow { runs: AtomicUsize::new(0), gate: tokio::sync::Semaphore::new(0) });
    let mut searcher = bench.searcher();
    let shared = Arc::clone(&slow);
    searcher.reranker = Some(Arc::new(RerankerModel::new(
        "slow",
        Box::new(move || {
            let shared = Arc::new(Arc::clone(&shared)) as Arc<dyn Reranker>;
            Box::pin(async move { Ok(shared) })
        }),
    )));
    searcher.settings.rerank_timeout = Some(Duration::from_millis(1));
    let request = query("password");
    let off = SearchRequest { rerank: Some(false), ..request.clone() };
    let fused = searcher.search(&off, Patience::Wait).await.unwrap();
    for _ in 0..3 {
        let late = searcher.search(&request, Patience::Wait).await.unwrap();
        assert_eq!((&late.hits, late.score_kind), (&fused.hits, ScoreKind::Fused));
        assert_eq!(late.degraded, ["reranker"]);
        assert!(late.warnings.iter().any(|warning| warning.contains("rerank_timeout_ms")));
    }
    assert_eq!(slow.runs.load(Ordering::SeqCst), 1, "the first run is still on");

    slow.gate.add_permits(100);
    searcher.settings.rerank_timeout = Some(Duration::from_mins(1));
    let reranked = loop {
        let answer = searcher.search(&request, Patience::Wait).await.unwrap();
        if answer.degraded.is_empty() {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(reranked.score_kind, ScoreKind::Reranked);
    assert!(reranked.hits[0].score > reranked.hits[1].score);
}

/// Remembers what it was asked to score.
#[derive(Default)]
struct Recording(std::sync::Mutex<Vec<(String, Vec<String>)>>);

#[async_trait::async_trait]
impl Reranker for Recording {
    fn model(&self) -> &'static str {
        "recording"
    }

    async fn score(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        self.0.lock().unwrap().push((query.to_owned(), passages.to_vec()));
        Ok(vec![-1.5; passages.len()])
    }
}

fn recorded(recording: &Arc<Recording>) -> Arc<RerankerModel> {
    let shared = Arc::clone(recording);
    let load = move || {
        let shared = Arc::clone(&shared);
        Box::pin(async move { Ok(shared as Arc<dyn Reranker>) }) as std::pin::Pin<Box<_>>
    };
    Arc::new(RerankerModel::new("recording", Box::new(load)))
}

// SRCH-118 SRCH-119 SRCH-06 SRCH-87
#[tokio::test]
async fn the_positive_text_is_scored_with_each_chunk_and_equal_scores_keep_their_order() {
    let bench = bench().await;
    let recording = Arc::new(Recording::default());
    let mut searcher = bench.searcher();
    searcher.reranker = Some(recorded(&recording));
    let request = query("password -expired");
    let reranked = searcher.search(&request, Patience::Wait).await.unwrap();
    let off = SearchRequest { rerank: Some(false), ..request };
    let fused = searcher.search(&off, Patience::Wait).await.unwrap();
    let paths =
        |answer: &SearchAnswer| answer.hits.iter().map(|hit| hit.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&reranked), paths(&fused));
    assert!(reranked.hits.iter().all(|hit| (hit.score + 1.5).abs() < f32::EPSILON));
    let asked = recording.0.lock().unwrap();
    let (text, passages) = &asked[0];
    assert_eq!((asked.len(), text.trim()), (1, "password"));
    assert!(passages.len() >= reranked.hits.len());
    assert!(
        passages.iter().any(|passage| passage.starts_with("Ask the help desk")
            || passage.contains("temporary access code")),
        "{passages:?}"
    );
}

// SRCH-22 SRCH-120 SRCH-123 SRCH-72
#[tokio::test]
async fn diversity_takes_another_document_before_a_second_chunk_of_one() {
    let bench = bench().await;
    let request = SearchRequest {
        limit: Some(2),
        mmr: Some(true),
        mmr_lambda: Some(1.0),
        mmr_same_doc_penalty: Some(1.0),
        ..query("password")
    };
    let spread = answer(&bench, request).await;
    assert_ne!(spread.hits[0].path, spread.hits[1].path);
    let plain = answer(&bench, SearchRequest { limit: Some(2), ..query("password") }).await;
    assert_eq!(plain.hits[0].path, plain.hits[1].path, "without it both are of one document");
}

// SRCH-180 SRCH-181
#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_an_error() {
    let mut bench = bench().await;
    bench.restart();
    *bench.counting.broken.lock().unwrap() = true;
    let error = bench.searcher().search(&query("password"), Patience::Wait).await.unwrap_err();
    assert!(error.to_string().contains("could not be embedded"), "{error}");
}

#[tokio::test]
async fn an_empty_index_says_that_it_is_empty() {
    let bench = Bench::new(&[]);
    let empty = answer(&bench, query("password")).await;
    assert!(empty.warnings.iter().any(|warning| warning.contains("no documents")), "{empty:?}");
}

// SRCH-190
#[tokio::test]
async fn the_same_question_has_the_same_answer() {
    let bench = bench().await;
    let first = answer(&bench, query("password network")).await;
    assert_eq!(first, answer(&bench, query("password network")).await);
}
