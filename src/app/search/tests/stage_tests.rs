//! What the stages of a search see of one another, and what they ask of the
//! store.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::observed::{Asked, Observed};
use super::{DOCUMENTS, Recording, answer, bench, on_demand, query, recorded};
use crate::adapters::json;
use crate::adapters::reranker::overlap::OverlapReranker;
use crate::app::model::Model;
use crate::app::search::{Patience, Searcher, check};
use crate::app::testing::Bench;
use crate::domain::chunk::{Chunk, Span};
use crate::domain::query::CompiledQuery;
use crate::domain::search::{Expansion, SearchAnswer, SearchRequest};
use crate::ports::chunk_store::{Change, NewChunk};
use crate::ports::transport::Progress;

/// A searcher whose store is observed.
fn observed(bench: &Bench) -> (Searcher, Arc<Asked>) {
    let mut searcher = bench.searcher();
    let asked = Arc::<Asked>::default();
    searcher.store =
        Arc::new(Observed { store: Arc::clone(&searcher.store), asked: Arc::clone(&asked) });
    (searcher, asked)
}

/// A document of ten sections, each too long to be widened to the whole.
async fn sections() -> Bench {
    let section = |number: usize| {
        format!(
            "## Section {number}\n\n{}tide {number}.\n\n",
            "The water falls slowly. ".repeat(30)
        )
    };
    let long: String = (0..10).map(section).collect();
    let bench = Bench::new(&[("long.md", &long), ("short.md", "Another tide, on its own line.\n")]);
    bench.run().await;
    bench
}

async fn of(searcher: &Searcher, request: &SearchRequest) -> SearchAnswer {
    searcher.search(request, Patience::Wait).await.unwrap()
}

// SRCH-02 SRCH-70
#[tokio::test]
async fn with_every_later_stage_off_the_answer_is_the_head_of_the_fused_list() {
    let bench = bench().await;
    let off = SearchRequest {
        rerank: Some(false),
        mmr: Some(false),
        parent_retriever: Some(false),
        include_low_quality: true,
        ..query("password network leave")
    };
    let whole = answer(&bench, SearchRequest { limit: Some(10), ..off.clone() }).await.hits;
    assert!(whole.len() > 3 && whole.is_sorted_by(|a, b| a.score >= b.score));
    for limit in 1..4 {
        let head = answer(&bench, SearchRequest { limit: Some(limit), ..off.clone() }).await.hits;
        assert_eq!(head, whole[..limit as usize]);
    }
}

// SRCH-70 SRCH-71 SRCH-72 SRCH-73 SRCH-80 SRCH-01
#[tokio::test]
async fn each_stage_makes_the_legs_read_as_deep_as_it_needs() {
    let documents: Vec<(String, String)> = (0..400)
        .map(|n| (format!("{n}.md"), format!("A tide of number {n}, told in one long line.\n")))
        .collect();
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let bench = Bench::new(&documents);
    bench.run().await;
    // Stages; rows that a leg reads; rows that are passed on.
    for (rerank, mmr, parent, depth, passed) in [
        (false, false, false, 60, 12),
        (false, false, true, 60, 12),
        (true, false, false, 300, 60),
        (true, false, true, 300, 60),
        (false, true, false, 60, 120),
        (true, true, true, 60, 120),
    ] {
        let (mut searcher, asked) = observed(&bench);
        searcher.reranker = Some(on_demand(|| Ok(Arc::new(OverlapReranker))));
        let request = SearchRequest {
            limit: Some(12),
            rerank: Some(rerank),
            mmr: Some(mmr),
            parent_retriever: Some(parent),
            ..query("tide number line")
        };
        assert_eq!(of(&searcher, &request).await.hits.len(), 12);
        let case = (rerank, mmr, parent);
        assert_eq!(asked.nearest.lock().unwrap()[0].0, depth, "{case:?}");
        assert_eq!(asked.matching.lock().unwrap()[0].0, depth, "{case:?}");
        let fetched = asked.fetched.lock().unwrap()[0];
        assert!(fetched <= passed && (mmr || fetched == passed), "{case:?}: {fetched}");
        assert!(!mmr || fetched >= depth, "{case:?}: {fetched}");
        assert_eq!(asked.snapshots.load(Ordering::Relaxed), 1, "one state for everything");
    }
}

#[derive(Default)]
struct Stages(Mutex<Vec<(u64, u64)>>);

impl Progress for Stages {
    fn advance(&self, done: u64, total: u64) {
        self.0.lock().unwrap().push((done, total));
    }
}

// MCP-B11
#[tokio::test]
async fn a_search_with_a_reranker_tells_its_stages() {
    let bench = bench().await;
    let mut searcher = bench.searcher();
    let stages = async |searcher: &Searcher| {
        let stages = Stages::default();
        searcher.search_told(&query("password"), Patience::Wait, &stages).await.unwrap();
        stages.0.into_inner().unwrap()
    };
    assert_eq!(stages(&searcher).await, []);
    searcher.reranker = Some(on_demand(|| Ok(Arc::new(OverlapReranker))));
    assert_eq!(stages(&searcher).await, [(1, 3), (2, 3), (3, 3)]);
}

// SRCH-192 SRCH-05 SRCH-06
#[tokio::test]
async fn one_reading_of_the_query_serves_legs_echo_and_spans() {
    let bench = bench().await;
    let (searcher, asked) = observed(&bench);
    let text = "password -\"access code\" -temporary sign";
    let found = of(&searcher, &query(text)).await;
    let read = CompiledQuery::compile(text).unwrap();
    let (_, nearest) = asked.nearest.lock().unwrap()[0].clone();
    let (_, matching, lexical) = asked.matching.lock().unwrap()[0].clone();
    assert_eq!(nearest, matching);
    assert_eq!(nearest.excluded, read.exclude());
    assert_eq!(lexical.phrases, read.include());
    assert_eq!(found.filter.excluded_terms, ["access code", "temporary"]);
    let expired = found.hits.iter().find(|hit| hit.content.contains("password")).unwrap();
    let spans = expired.match_spans.as_ref().unwrap();
    assert!(spans.iter().all(|span| expired.content[span.start..span.end] == *"password"));
}

// SRCH-01 SRCH-03 SRCH-04
#[tokio::test]
async fn only_what_comes_after_the_parent_retriever_sees_the_widened_text() {
    let bench = bench().await;
    let recording = Arc::new(Recording::default());
    let mut searcher = bench.searcher();
    searcher.reranker = Some(recorded(&recording));
    let request = SearchRequest { limit: Some(1), ..query("temporary expires") };
    let plain = of(&searcher, &request).await;
    let widened = of(&searcher, &SearchRequest { parent_retriever: Some(true), ..request }).await;
    let asked = recording.0.lock().unwrap();
    assert_eq!(asked[0], asked[1], "the reranker comes before");
    let (plain, widened) = (&plain.hits[0], &widened.hits[0]);
    assert!(matches!(widened.expanded_from, Some(Expansion::WholeDocument { .. })));
    let texts = |spans: &[Span]| -> Vec<String> {
        spans.iter().map(|span| widened.content[span.start..span.end].to_owned()).collect()
    };
    assert_eq!(texts(widened.match_spans.as_ref().unwrap()), ["temporary", "expires"]);
    assert_eq!(plain.match_spans.as_ref().unwrap().len(), 1);
    assert!((plain.score - widened.score).abs() < f32::EPSILON);
}

// SRCH-125
#[tokio::test]
async fn widening_does_not_change_what_diversity_picks() {
    let bench = sections().await;
    let request = |parent| SearchRequest {
        mmr: Some(true),
        mmr_lambda: Some(0.3),
        parent_retriever: Some(parent),
        limit: Some(6),
        ..query("tide")
    };
    let picked = |answer: SearchAnswer| -> Vec<(String, u32)> {
        answer.hits.into_iter().map(|hit| (hit.path, hit.chunk_index)).collect()
    };
    let plain = picked(answer(&bench, request(false)).await);
    assert_eq!(plain.len(), 6);
    assert_eq!(plain, picked(answer(&bench, request(true)).await));
}

// SRCH-135
#[tokio::test]
async fn neighbours_come_along_whatever_a_filter_or_an_exclusion_says_of_them() {
    let bench = Bench::new(&[("a.md", "Only a place for chunks, which are put in here below.\n")]);
    bench.run().await;
    let document = (*bench.chunks_of("a.md").await[0].document).clone();
    let part = |content: &str, quality| {
        let chunk = Chunk { content: content.to_owned(), ..Chunk::default() };
        NewChunk { chunk, quality, embedding: None }
    };
    let chunks = vec![
        part("TBD", 0.1),
        part("Choose a new password before the old one is gone.", 1.0),
        part("The temporary code is for guests.", 1.0),
    ];
    bench.indexer.store.apply(vec![Change::Put { document, chunks }]).await.unwrap();
    let request = |parent| SearchRequest {
        parent_retriever: Some(parent),
        ..query("choose a new password -temporary")
    };
    let alone = answer(&bench, request(false)).await;
    assert_eq!(alone.hits.len(), 1, "one neighbour is thin, the other excluded");
    let widened = answer(&bench, request(true)).await;
    assert_eq!(widened.hits.len(), 1);
    assert!(widened.hits[0].content.starts_with("TBD"), "{}", widened.hits[0].content);
    assert!(widened.hits[0].content.contains("temporary"));
}

// SRCH-137
#[tokio::test]
async fn a_hit_that_cannot_be_widened_stays_as_it_is() {
    let bench = bench().await;
    let (searcher, asked) = observed(&bench);
    let request = SearchRequest { parent_retriever: Some(true), ..query("password") };
    assert!(of(&searcher, &request).await.hits.iter().any(|hit| hit.expanded_from.is_some()));
    asked.fails_between.store(true, Ordering::Relaxed);
    let unwidened = of(&searcher, &request).await;
    assert_eq!(unwidened.hits, answer(&bench, query("password")).await.hits);
}

// SRCH-132 SRCH-133
#[tokio::test]
async fn only_the_part_that_a_hit_needs_is_read_and_once_for_all_hits_of_a_document() {
    let bench = sections().await;
    let (searcher, asked) = observed(&bench);
    let request = |limit| SearchRequest {
        parent_retriever: Some(true),
        limit: Some(limit),
        include_low_quality: true,
        ..query("\"tide 4.\"")
    };
    let found = of(&searcher, &request(1)).await;
    assert_eq!(found.hits[0].chunk_index, 4);
    let read = std::mem::take(&mut *asked.between.lock().unwrap());
    assert_eq!(read, [("long.md".to_owned(), 3..=5)]);
    assert_eq!(
        found.hits[0].expanded_from,
        Some(Expansion::Adjacent { from_index: 3, to_index: 5 })
    );
    assert_eq!(of(&searcher, &request(11)).await.hits.len(), 11);
    let mut read = std::mem::take(&mut *asked.between.lock().unwrap());
    read.sort_by(|left, right| left.0.cmp(&right.0));
    assert_eq!(read, [("long.md".to_owned(), 0..=9), ("short.md".to_owned(), 0..=0)]);
}

// SRCH-179
#[tokio::test]
async fn chunks_of_one_document_are_hits_of_their_own() {
    let bench = bench().await;
    let found = answer(&bench, query("password")).await;
    let mut places: Vec<(&str, u32)> =
        found.hits.iter().map(|hit| (hit.path.as_str(), hit.chunk_index)).collect();
    assert_eq!(places.iter().filter(|(path, _)| path.ends_with("password.md")).count(), 2);
    let count = places.len();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), count);
}

// SRCH-178
#[tokio::test]
async fn the_rows_of_a_table_are_no_part_of_an_answer() {
    let bench = bench().await;
    let mut document = (*bench.chunks_of("people/leave.md").await[0].document).clone();
    document.path = crate::domain::document::DocumentPath::new("table.md").unwrap();
    let chunk = Chunk {
        content: "| kraken | 7 |\n| squid | 8 |".to_owned(),
        table_rows: vec![Span { start: 0, end: 14 }],
        ..Chunk::default()
    };
    let chunks = vec![NewChunk { chunk, quality: 1.0, embedding: None }];
    bench.indexer.store.apply(vec![Change::Put { document, chunks }]).await.unwrap();
    let found = answer(&bench, query("kraken")).await;
    let place = found.hits.iter().position(|hit| hit.path == "table.md").unwrap();
    let mut hit = json::search_answer(&found)["results"][place].clone();
    for name in ["score", "path", "title", "heading", "topic", "date", "tags", "content"] {
        assert!(hit.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    let places = json!([{ "start": 2, "end": 8 }]);
    let lines = json!([{ "start": 2, "end": 8, "line": 1 }]);
    assert_eq!(
        hit,
        json!({
            "match_spans": places, "highlights": lines,
            "chunk_index": 0, "document_chunks": 1, "matched_by": ["fulltext"],
        })
    );
}

// SRCH-B17 SRCH-B18
#[tokio::test]
async fn highlights_tell_lines_of_the_document_where_those_are_known() {
    let bench = bench().await;
    let document = (*bench.chunks_of("people/leave.md").await[0].document).clone();
    let path = document.path.to_string();
    let part = |content: &str, start, end| {
        let lines = Some(crate::domain::chunk::LineRange { start, end });
        let chunk = Chunk { content: content.to_owned(), lines, ..Chunk::default() };
        NewChunk { chunk, quality: 1.0, embedding: None }
    };
    let chunks =
        vec![part("fn un() {\n  café();\n}", 10, 12), part("// Café\nfn deux() {}", 20, 21)];
    bench.indexer.store.apply(vec![Change::Put { document, chunks }]).await.unwrap();
    let request = |parent| SearchRequest { parent_retriever: Some(parent), ..query("CAFÉ") };
    let lines = |answer: &SearchAnswer, chunk: u32| -> Vec<u32> {
        let of = |hit: &&crate::domain::search::Hit| hit.path == path && hit.chunk_index == chunk;
        let hit = answer.hits.iter().find(of).unwrap();
        assert_eq!(hit.match_spans, None);
        hit.highlights.as_ref().unwrap().iter().map(|it| it.line).collect()
    };
    let plain = answer(&bench, request(false)).await;
    assert_eq!((lines(&plain, 0), lines(&plain, 1)), (vec![11], vec![20]));
    let widened = answer(&bench, request(true)).await;
    assert_eq!(lines(&widened, 0), [11, 20], "of the file, not of the joined text");
}

// SRCH-122
#[tokio::test]
async fn diversity_says_what_it_leaves_out_and_gives_up_without_any_vector() {
    let bench = bench().await;
    let request = SearchRequest { mmr: Some(true), ..query("password") };
    let all = answer(&bench, request.clone()).await;
    assert!(all.warnings.is_empty(), "{:?}", all.warnings);
    let unembed = |ids: Vec<_>| bench.indexer.store.apply(ids);
    let ids = bench.chunks_of("it/accounts/password.md").await;
    unembed(vec![Change::Unembed(ids[0].id)]).await.unwrap();
    let some = answer(&bench, request.clone()).await;
    assert!(some.hits.iter().all(|hit| hit.matched_by.contains(&"vector")));
    assert_eq!(some.warnings, ["mmr left 1 passage(s) out that have no vector yet"]);
    for (path, _) in DOCUMENTS {
        let ids = bench.chunks_of(path).await;
        unembed(ids.iter().map(|chunk| Change::Unembed(chunk.id)).collect()).await.unwrap();
    }
    let none = answer(&bench, request).await;
    assert_eq!(none.hits, answer(&bench, query("password")).await.hits);
    assert!(!none.hits.is_empty());
    assert!(none.warnings[0].contains("could not spread"), "{:?}", none.warnings);
}

// SRCH-B02
#[tokio::test]
async fn the_wait_for_a_busy_model_can_be_bounded() {
    let bench = bench().await;
    let mut searcher = bench.searcher();
    let identity = searcher.model.identity().clone();
    let never = || Box::pin(std::future::pending()) as std::pin::Pin<Box<_>>;
    searcher.model = Arc::new(Model::new(identity, Box::new(never)));
    searcher.settings.max_embed_wait = Some(Duration::from_millis(5));
    let early = of(&searcher, &query("temporary code")).await;
    assert_eq!(early.degraded, ["vector"]);
    assert_eq!(early.hits[0].matched_by, ["fulltext"]);
    // Only meaning can answer this one, so it waits.
    let patient = query("?!");
    let waiting = searcher.search(&patient, Patience::Wait);
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
    searcher.settings.max_embed_wait = None;
    let patient = query("temporary code");
    let waiting = searcher.search(&patient, Patience::Wait);
    assert!(tokio::time::timeout(Duration::from_millis(50), waiting).await.is_err());
}

// SRCH-B12
#[tokio::test]
async fn the_threshold_of_quality_that_applied_is_told() {
    let bench = bench().await;
    let told = async |request| answer(&bench, request).await.min_quality;
    assert!((told(query("password")).await - 0.3).abs() < f32::EPSILON);
    let request = SearchRequest { min_quality: Some(7.0), ..query("password") };
    assert!((told(request).await - 1.0).abs() < f32::EPSILON);
    let request = SearchRequest { include_low_quality: true, limit: Some(0), ..query("x") };
    assert!(told(request).await.abs() < f32::EPSILON);
}

// SRCH-B16
#[tokio::test]
async fn confidence_tells_a_clear_hit_from_none_and_stays_away_where_nothing_can_be_told() {
    let few = bench().await;
    assert_eq!(answer(&few, query("password")).await.confidence, None);
    let mut searcher = few.searcher();
    searcher.reranker = Some(recorded(&Arc::default()));
    let reranked = of(&searcher, &query("password")).await.confidence.unwrap();
    assert!((reranked - 0.182_425_53).abs() < 1e-6, "the logistic function of -1.5: {reranked}");

    let texts: Vec<(String, String)> =
        (0..300).map(|n| (format!("{n}.md"), format!("{}.\n", made_up(n)))).collect();
    let mut documents: Vec<(&str, &str)> =
        texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    documents.push(("k.md", "The kraken sleeps beneath volcanic islands all winter.\n"));
    let many = Bench::new(&documents);
    many.run().await;
    let clear = answer(&many, query("kraken beneath volcanic islands")).await;
    assert_eq!(clear.hits[0].path, "k.md");
    assert!(clear.confidence.unwrap() > 0.9, "{:?}", clear.confidence);
    let unclear = answer(&many, query("zygote quartz")).await;
    assert!(unclear.confidence.unwrap() < 0.8, "{:?}", unclear.confidence);
}

/// Ten words that mean nothing, other ones for every number.
fn made_up(number: u32) -> String {
    let syllable = |value: u32| {
        let letter =
            |letters: &str, value: u32| letters.chars().nth(value as usize % letters.len());
        [letter("bdfglmnprst", value), letter("aeiou", value / 11)].into_iter().flatten()
    };
    let word = |place: u32| -> String {
        let value = (number * 10 + place).wrapping_mul(2_654_435_761) >> 8;
        [value, value / 55, value / 3025].into_iter().flat_map(syllable).collect()
    };
    (0..10).map(word).collect::<Vec<_>>().join(" ")
}

/// What the log says.
#[derive(Clone, Default)]
struct Pen(Arc<Mutex<Vec<u8>>>);

impl Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// SRCH-56 SRCH-B10 SRCH-124 SRCH-B04
#[tokio::test]
async fn remarks_are_logged_once_a_search_each_at_warn() {
    let bench = bench().await;
    let pen = Pen::default();
    let writer = pen.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let guard = tracing::subscriber::set_default(subscriber.finish());
    let words = |sign: &str, count: u8| -> String {
        let word =
            |n: u8| format!("{sign}q{}{}", char::from(b'a' + n / 6), char::from(b'a' + n % 6));
        (0..count).map(word).collect::<Vec<_>>().join(" ")
    };
    let request = SearchRequest {
        date_from: Some("last week".into()),
        mmr_lambda: Some(0.5),
        ..query(&format!("{} {}", words("", 34), words("-z", 35)))
    };
    // The command line checks first, and searches then.
    check(&request, &bench.searcher().settings).unwrap();
    let found = answer(&bench, request).await;
    drop(guard);
    let log = String::from_utf8(pen.0.lock().unwrap().clone()).unwrap();
    for (part, told) in [
        ("2 phrase(s) over the limit of 32", true),
        ("3 exclusion(s) over the limit of 32", true),
        ("`date_from` is \"last week\"", true),
        ("mmr_lambda and mmr_same_doc_penalty have no effect", false),
    ] {
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(part)).collect();
        assert_eq!(lines.len(), 1, "{part}: {log}");
        assert!(lines[0].contains("WARN"), "{}", lines[0]);
        assert_eq!(found.warnings.iter().any(|warning| warning.contains(part)), told, "{part}");
    }
}

// SRCH-B06
#[tokio::test]
async fn an_exclusion_that_reaches_further_than_typed_is_told() {
    let bench = bench().await;
    let plain = answer(&bench, query("password -再ランキング")).await;
    let remark = plain.warnings.iter().find(|warning| warning.contains("excluded as well"));
    assert!(remark.is_some_and(|remark| remark.contains("\"ランキング\"")), "{:?}", plain.warnings);
    assert_eq!(plain.filter.excluded_terms, ["再ランキング", "ランキング"]);
    let quoted = answer(&bench, query("password -\"再ランキング\"")).await;
    assert!(quoted.warnings.is_empty(), "{:?}", quoted.warnings);
}

// SRCH-195
#[test]
fn the_guide_states_the_limits_of_low_confidence() {
    let guide = include_str!("../../../../docs/guide/searching.md").replace('\n', " ");
    for words in [
        "After a rerank, false tells nothing",
        "the formula, not a judgement",
        "a threshold that works for one knowledge base means nothing for another",
    ] {
        assert!(guide.contains(words), "{words}");
    }
}
