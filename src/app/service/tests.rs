mod library_tests;
mod tool_tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::app::read::Reader;
use crate::app::service::Service;
use crate::app::testing::Bench;
use crate::domain::search::SearchRequest;
use crate::ports::document_source::Refusal;
use crate::ports::transport::{DocumentRequest, Handler, Progress, Unheard};

const TEXT: &str =
    "---\ntitle: Tides\ntopic: sea\n---\n## Ebb\n\nThe water falls for six hours, more or less.\n";

fn service(bench: &Bench) -> Service {
    let reader = Reader {
        source: Arc::clone(&bench.source) as Arc<_>,
        registry: bench.indexer.registry.clone(),
    };
    Service::new(bench.searcher(), reader, bench.indexer.clone())
}

#[derive(Default)]
struct Steps(AtomicU64);

impl Progress for Steps {
    fn advance(&self, done: u64, total: u64) {
        assert!(done <= total);
        self.0.store(done, Ordering::Relaxed);
    }
}

// MCP-35 MCP-36 MCP-37 MCP-38
#[tokio::test]
async fn a_document_is_handed_out_whole_whether_or_not_it_is_indexed() {
    let bench = Bench::new(&[("a/b.md", TEXT)]);
    let document = service(&bench).document(DocumentRequest::whole("a/b.md")).await.unwrap();
    assert_eq!(document.content, TEXT);
    assert_eq!(document.metadata.title.as_deref(), Some("Tides"));
    assert_eq!(document.metadata.topic.as_deref(), Some("sea"));
    assert!(!document.truncated);
}

// IDX-B16
#[tokio::test]
async fn a_document_in_another_encoding_is_handed_out_decoded_and_cut_at_the_cap() {
    let utf16 = |text: &str| -> Vec<u8> {
        let marked = std::iter::once(0xFEFF).chain(text.encode_utf16());
        marked.flat_map(u16::to_le_bytes).collect()
    };
    let bench = Bench::new(&[]);
    bench.source.put("a.md", utf16("# 潮\n"));
    bench.source.put("long.md", utf16(&"潮".repeat(400 * 1024)));
    let document = service(&bench).document(DocumentRequest::whole("a.md")).await.unwrap();
    assert_eq!((&*document.content, document.truncated), ("# 潮\n", false));
    assert_eq!(document.metadata.tags, ["encoding:utf-16le"]);
    let document = service(&bench).document(DocumentRequest::whole("long.md")).await.unwrap();
    assert!(document.truncated && document.content.len() <= 1024 * 1024);
    assert!(document.content.chars().all(|character| character == '潮'));
}

// QUA-16
#[tokio::test]
async fn documents_topics_and_counts_take_no_notice_of_quality() {
    let bench = Bench::new(&[("a/stub.md", "TBD")]);
    bench.run().await;
    assert!(bench.chunks_of("a/stub.md").await[0].quality < 0.1);
    let service = service(&bench);
    assert_eq!(service.document(DocumentRequest::whole("a/stub.md")).await.unwrap().content, "TBD");
    assert_eq!(service.topics().await.unwrap()[0].file_count, 1);
    assert_eq!(bench.summary().await.chunks, 1);
}

// MCP-39 MCP-40 MCP-42
#[tokio::test]
async fn any_other_route_to_a_document_is_not_found() {
    let bench = Bench::new(&[("a/b.md", TEXT)]);
    let service = service(&bench);
    for path in ["a/c.md", "./a/b.md", "a//b.md", "a/../a/b.md", "/a/b.md", "a/b.md/", "A/b.md", ""]
    {
        let refused = service.document(DocumentRequest::whole(path)).await.unwrap_err();
        assert!(refused.message.contains("not found"), "{path:?}: {refused}");
        assert!(path == "a/b.md/" || !refused.message.contains(" a/b.md"), "{refused}");
    }
}

// MCP-41 MCP-43
#[tokio::test]
async fn links_other_formats_and_large_files_are_refused() {
    let bench = Bench::new(&[("a.txt", "text")]);
    bench.source.put("large.md", vec![b'x'; 1024 * 1024 + 1]);
    bench.source.put("full.md", vec![b'x'; 1024 * 1024]);
    bench.source.put_refused("link.md", Refusal::SymbolicLink);
    let service = service(&bench);
    let refused = async |path: &str| {
        service.document(DocumentRequest::whole(path)).await.unwrap_err().message
    };
    assert!(refused("a.txt").await.contains(".md"));
    assert!(refused("link.md").await.contains("denied"));
    let large = refused("large.md").await;
    assert!(large.contains("1048577") && large.contains("1048576"), "{large}");
    assert!(service.document(DocumentRequest::whole("full.md")).await.is_ok());
}

// MCP-42 MCP-44
#[tokio::test]
async fn a_file_that_cannot_be_read_is_told_apart_from_a_missing_one() {
    let bench = Bench::new(&[]);
    bench.source.put_failing("a.md");
    let refused = service(&bench).document(DocumentRequest::whole("a.md")).await.unwrap_err();
    assert!(refused.message.contains("could not examine"), "{refused}");
}

// MCP-25 MCP-29
#[tokio::test]
async fn topics_come_from_the_index() {
    let bench = Bench::new(&[("a/b.md", TEXT), ("a/c/d/e.md", "Some text about tides and moons.")]);
    let service = service(&bench);
    assert!(service.topics().await.unwrap().is_empty());
    bench.run().await;
    let groups = service.topics().await.unwrap();
    let facts: Vec<_> = groups
        .iter()
        .map(|group| (group.category.as_deref(), group.topic.as_deref(), group.file_count))
        .collect();
    assert_eq!(facts, [(Some("a"), Some("c"), 1), (Some("a"), Some("sea"), 1)]);
    assert_eq!(groups[1].titles, ["Tides"]);
}

// MCP-50 MCP-51 IDX-15
#[tokio::test]
async fn a_rebuild_counts_what_it_did_and_reports_progress() {
    let bench = Bench::new(&[("a.md", TEXT), ("b.md", "Some text about tides and moons.")]);
    let steps = Arc::new(Steps::default());
    let answer = service(&bench).rebuild(false, Arc::clone(&steps) as Arc<_>).await.unwrap();
    assert_eq!((answer.total_documents, answer.updated, answer.total_chunks), (2, 2, 2));
    assert_eq!(answer.error, None);
    assert_eq!(steps.0.load(Ordering::Relaxed), 2);
}

// MCP-53
#[tokio::test]
async fn a_rebuild_that_finished_badly_tells_its_counters_as_well() {
    let mut bench = Bench::new(&[("a.md", "---\n[\n---\nSome text about tides and moons.")]);
    bench.indexer.settings.fail_on_frontmatter_error = true;
    let answer = service(&bench).rebuild(false, Arc::new(Steps::default())).await.unwrap();
    assert_eq!((answer.updated, answer.frontmatter_unparsed), (1, 1));
    assert!(answer.error.is_some());
}

// MCP-52
#[tokio::test]
async fn one_rebuild_runs_at_a_time_and_the_slot_is_freed() {
    let bench = Bench::new(&[("a.md", TEXT)]);
    let service = service(&bench);
    let slot = service.begin_rebuild().unwrap();
    let refused = service.rebuild(false, Arc::new(Steps::default())).await.unwrap_err();
    assert!(refused.message.contains("0 s"), "{refused}");
    drop(slot);
    service.rebuild(false, Arc::new(Steps::default())).await.unwrap();
    service.rebuild(false, Arc::new(Steps::default())).await.unwrap();
}

// IDX-43 MCP-44 MCP-54
#[tokio::test]
async fn a_failure_is_told_without_what_the_technology_said() {
    let mut bench = Bench::new(&[("a.md", TEXT)]);
    bench.run().await;
    bench.restart();
    *bench.counting.broken.lock().unwrap() = true;
    let service = service(&bench);
    let refused = service.rebuild(true, Arc::new(Steps::default())).await.unwrap_err();
    assert!(
        refused.message.contains("embedding model") && !refused.message.contains("it is broken")
    );
    // Nothing to look for by words, so the search needs the model.
    let request = SearchRequest { query: "?!".into(), ..SearchRequest::default() };
    let refused = service.search(request, Arc::new(Unheard)).await.unwrap_err();
    assert!(refused.message.contains("could not be embedded"), "{refused}");
}
