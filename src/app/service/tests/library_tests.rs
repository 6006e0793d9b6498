//! What the service adds to answers, and how it behaves while it indexes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Steps, TEXT, service};
use crate::app::best_practice::Templates;
use crate::app::news::NewsDesk;
use crate::app::news::tests::Ear;
use crate::app::testing::Bench;
use crate::domain::graph::GraphRequest;
use crate::domain::search::SearchRequest;
use crate::ports::transport::{
    BestPracticeRequest, DocumentRequest, Handler, Listener, News, QuoteRequest, Unheard,
};

const LONG: &str = "Some text about tides and moons, as long as no one interrupts it. ";

fn about(query: &str) -> SearchRequest {
    SearchRequest { query: query.into(), ..SearchRequest::default() }
}

/// A knowledge base with a document that is found and cannot be opened.
async fn bench() -> Bench {
    let mut bench = Bench::new(&[("a/b.md", TEXT)]);
    bench.indexer.settings.max_text_file_size = None;
    bench.source.put("a/large.md", LONG.repeat(20_000));
    bench.run().await;
    bench
}

// MCP-21 MCP-75 SRCH-173
#[tokio::test]
async fn a_hit_has_an_address_if_its_document_can_be_opened() {
    let bench = bench().await;
    let service = service(&bench);
    let hits = service.search(about("tides water"), Arc::new(Unheard)).await.unwrap().hits;
    let uri = |path: &str| hits.iter().find(|hit| hit.path == path).unwrap().uri.as_deref();
    assert_eq!(uri("a/b.md"), Some("kb://doc/a/b.md"));
    assert_eq!(uri("a/large.md"), None);
    let start = GraphRequest {
        start: "a/b.md".into(),
        min_similarity: Some(0.0),
        ..GraphRequest::default()
    };
    let graph = service.graph(start).await.unwrap();
    for node in &graph.nodes {
        assert_eq!(node.uri.is_some(), node.path == "a/b.md", "{}", node.path);
    }
}

// CLI-124
#[tokio::test]
async fn the_command_line_gets_no_addresses() {
    let bench = bench().await;
    let patience = crate::app::search::Patience::Wait;
    let answer = bench.searcher().search(&about("tides"), patience).await.unwrap();
    assert!(!answer.hits.is_empty() && answer.hits.iter().all(|hit| hit.uri.is_none()));
}

#[tokio::test]
async fn a_hit_says_where_its_passage_stands_now_and_how_to_cite_it() {
    let bench = Bench::new(&[("a/b.md", TEXT)]);
    bench.run().await;
    let service = service(&bench);
    let hit =
        async || service.search(about("water"), Arc::new(Unheard)).await.unwrap().hits.remove(0);
    let found = hit().await;
    assert_eq!(found.location.map(|lines| (lines.start, lines.end)), Some((7, 7)));
    assert_eq!(found.cite.as_deref(), Some("Tides, Ebb (a/b.md:7)"));
    assert_eq!(found.lines, None);
    // The file has changed since, and the index does not know that yet.
    bench.source.put("a/b.md", format!("{TEXT}\nAnd more.").replace("## Ebb", "New.\n\n## Ebb"));
    assert_eq!(hit().await.location.map(|lines| lines.start), Some(9));
    bench.source.put("a/b.md", "Other text.");
    let gone = hit().await;
    assert_eq!((gone.location, gone.cite.as_deref()), (None, Some("Tides, Ebb (a/b.md)")));
}

// MCP-B07
#[tokio::test]
async fn a_document_says_whether_it_is_indexed_and_can_be_opened() {
    let bench = bench().await;
    bench.source.put("new.md", TEXT);
    let service = service(&bench);
    let facts = async |path: &str, max_bytes| {
        let request = DocumentRequest { path: path.into(), offset: None, max_bytes };
        let answer = service.document(request).await.unwrap();
        (answer.indexed, answer.uri, answer.size_bytes)
    };
    let uri = Some("kb://doc/a/b.md".to_owned());
    assert_eq!(facts("a/b.md", None).await, (Some(true), uri, TEXT.len() as u64));
    assert_eq!(facts("new.md", None).await, (Some(false), None, TEXT.len() as u64));
    let size = LONG.len() as u64 * 20_000;
    assert_eq!(facts("a/large.md", Some(10)).await, (Some(true), None, size));
}

// MCP-41 MCP-B06
#[tokio::test]
async fn a_text_that_is_too_large_is_refused_whole_and_read_in_parts() {
    let bench = bench().await;
    let service = service(&bench);
    let refused = service.document(DocumentRequest::whole("a/large.md")).await.unwrap_err();
    assert!(refused.message.contains("`offset`"), "{refused}");
    let (mut read, mut offset) = (String::new(), Some(0));
    while offset.is_some() {
        let request = DocumentRequest { path: "a/large.md".into(), offset, max_bytes: None };
        let part = service.document(request).await.unwrap();
        read.push_str(&part.content);
        offset = part.next_offset;
    }
    assert_eq!(read, LONG.repeat(20_000));
    let request = DocumentRequest { path: "a/b.md".into(), offset: Some(9999), max_bytes: None };
    let refused = service.document(request).await.unwrap_err();
    assert!(refused.message.contains("behind the end"), "{refused}");
}

// MCP-B04
#[tokio::test]
async fn filters_are_counted_over_the_whole_index() {
    let text = "---\ntags: [a, b]\ndate: 2026-01-02\n---\nSome text about winds.";
    let bench = Bench::new(&[("x/one.md", text), ("x/two.md", "Some text about storms.")]);
    bench.run().await;
    let facets = service(&bench).facets().await.unwrap();
    assert_eq!((facets.documents, facets.tags.len()), (2, 2));
    assert_eq!(facets.categories, [("x".to_owned(), 2)]);
    assert_eq!(facets.dates, Some(("2026-01-02".into(), "2026-01-02".into())));
}

// MCP-45 MCP-47
#[tokio::test]
async fn best_practice_and_quotes_are_part_of_the_service() {
    let bench = bench().await;
    let service = service(&bench).with_best_practice(Templates(vec!["a/{target}.md".into()]));
    let request = BestPracticeRequest { target: "b".into(), category: Some("ebb".into()) };
    let answer = service.best_practice(request).await.unwrap();
    assert!(answer.content.starts_with("## Ebb"));
    let request = QuoteRequest { text: "falls for six hours".into(), path: "a/b.md".into() };
    let answer = service.verify_quote(request).await.unwrap();
    assert_eq!(answer.places[0].uri.as_deref(), Some("kb://doc/a/b.md"));
}

// MCP-57 MCP-B10
#[tokio::test]
async fn searches_are_answered_while_the_index_is_built_anew() {
    let documents: Vec<(String, String)> = (0..40)
        .map(|number| (format!("a/{number}.md"), format!("{LONG}Part {number} of many.")))
        .collect();
    let documents: Vec<(&str, &str)> =
        documents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let bench = Bench::new(&documents);
    bench.run().await;
    let service = service(&bench);
    let steps = Arc::new(Steps::default());
    let run = service.rebuild(true, Arc::clone(&steps) as Arc<_>);
    let mut run = std::pin::pin!(run);
    let mut answered = 0;
    let report = loop {
        tokio::select! {
            biased;
            report = &mut run => break report.unwrap(),
            answer = service.search(about("tides"), Arc::new(Unheard)) => {
                assert_eq!(answer.unwrap().hits.len(), 5);
                answered += 1;
            }
        }
    };
    assert_eq!((report.updated, report.total_documents), (40, 40));
    assert!(answered > 0, "no search was answered meanwhile");
}

// MCP-B12
#[tokio::test]
async fn a_run_that_is_dropped_leaves_the_index_sound_and_the_slot_free() {
    let bench = bench().await;
    bench.source.put("c/d.md", "Some text about winds and storms.");
    let service = service(&bench);
    for force in [false, true] {
        let steps = Arc::new(Steps::default());
        {
            let run = service.rebuild(force, Arc::clone(&steps) as Arc<_>);
            let mut run = std::pin::pin!(run);
            for _ in 0..5 {
                let _pending = futures::poll!(&mut run);
                tokio::task::yield_now().await;
            }
        }
        assert!(!service.search(about("tides"), Arc::new(Unheard)).await.unwrap().hits.is_empty());
    }
    let steps = Arc::new(Steps::default());
    let answer = service.rebuild(false, Arc::clone(&steps) as Arc<_>).await.unwrap();
    assert_eq!((answer.total_documents, steps.0.load(Ordering::Relaxed)), (3, 3));
    assert_eq!(answer.others, []);
}

// MCP-B16
#[tokio::test]
async fn a_run_that_a_client_asks_for_is_news() {
    let bench = Bench::new(&[("a/b.md", TEXT)]);
    let (desk, ear) = (Arc::new(NewsDesk::default()), Arc::new(Ear::default()));
    let service = service(&bench).with_news(Arc::clone(&desk));
    let listener: Arc<dyn Listener> = Arc::clone(&ear) as Arc<_>;
    assert!(service.library().listen(Arc::downgrade(&listener)));
    service.rebuild(false, Arc::new(Steps::default())).await.unwrap();
    bench.source.put("new/d.md", "Some text about winds and storms.");
    service.rebuild(false, Arc::new(Steps::default())).await.unwrap();
    let heard = ear.heard();
    assert!(heard.contains(&News::Groups), "{heard:?}");
    let documents = heard.iter().filter(|news| matches!(news, News::Document(_)));
    assert_eq!(documents.count(), 2, "{heard:?}");
}
