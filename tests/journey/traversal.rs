//! Ten thousand names that lead anywhere: nothing outside a knowledge base, and
//! nothing through a link, is ever handed out.

use std::fs;
use std::sync::Arc;

use grooveseek::adapters::embedder::hashing::HashingEmbedder;
use grooveseek::adapters::parser::markdown::MarkdownParser;
use grooveseek::adapters::source::filesystem::FilesystemSource;
use grooveseek::adapters::store::memory::MemoryStore;
use grooveseek::app::best_practice::Templates;
use grooveseek::app::config::{IndexSettings, SearchSettings};
use grooveseek::app::index::{IN_FLIGHT_KIB, Indexer};
use grooveseek::app::model::Model;
use grooveseek::app::read::Reader;
use grooveseek::app::registry::Registry;
use grooveseek::app::search::Searcher;
use grooveseek::app::service::Service;
use grooveseek::domain::format::EnabledFormats;
use grooveseek::domain::resource::ResourceName;
use grooveseek::ports::embedder::Embedder;
use grooveseek::ports::parser::Parser;
use grooveseek::ports::transport::{
    BestPracticeRequest, DocumentRequest, Handler, Progress, QuoteRequest,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const SECRET: &str = "The launch code is 4711 and nobody may read it.";
const OPEN: &str = "Tides and moons, for everybody to read.";

struct Unheard;

impl Progress for Unheard {
    fn advance(&self, _done: u64, _total: u64) {}
}

fn service(root: &std::path::Path) -> Service {
    let formats = EnabledFormats::default();
    let source = Arc::new(FilesystemSource::new(root, formats.clone(), &[] as &[&str]).unwrap());
    let parsers: [Arc<dyn Parser>; 1] = [Arc::new(MarkdownParser::new())];
    let registry = Registry::new(parsers, &formats);
    let embedder = Arc::new(HashingEmbedder::new(16));
    let identity = embedder.identity().clone();
    let load = move || {
        let embedder = Arc::clone(&embedder) as Arc<dyn Embedder>;
        Box::pin(async { Ok(embedder) }) as std::pin::Pin<Box<dyn Future<Output = _> + Send>>
    };
    let model = Arc::new(Model::new(identity, Box::new(load)));
    let store = Arc::new(MemoryStore::new());
    let indexer = Indexer {
        source: source.clone(),
        registry: registry.clone(),
        store: store.clone(),
        model: Arc::clone(&model),
        settings: IndexSettings::default(),
        exclude_headings: Vec::new(),
        in_flight_kib: IN_FLIGHT_KIB,
        clock: Arc::new(|| "2026-01-01T00:00:00Z".to_owned()),
        turn: Arc::default(),
    };
    let searcher = Searcher {
        store,
        model,
        reranker: None,
        rerank_by_default: false,
        settings: SearchSettings::default(),
    };
    let templates = ["{target}", "{target}.md", "a/{target}.md", "a/../{target}.md"];
    let templates = Templates(templates.map(str::to_owned).to_vec());
    Service::new(searcher, Reader { source, registry }, indexer).with_best_practice(templates)
}

/// Paths made of what is known to lead somewhere.
fn paths(outside: &str) -> impl Strategy<Value = String> + use<> {
    let absolute = outside.to_owned();
    let part = prop_oneof![
        4 => Just("..".to_owned()),
        2 => Just(".".to_owned()),
        1 => Just(String::new()),
        2 => Just("a".to_owned()),
        2 => Just("kb".to_owned()),
        3 => Just("secret.md".to_owned()),
        2 => Just("open.md".to_owned()),
        2 => Just("link.md".to_owned()),
        1 => Just("hard.md".to_owned()),
        2 => Just("door".to_owned()),
        1 => Just("%2e%2e".to_owned()),
        1 => Just("%2E%2E%2Fsecret.md".to_owned()),
        1 => Just("..%2fsecret.md".to_owned()),
        1 => Just("..\\secret.md".to_owned()),
        1 => Just("..\0".to_owned()),
        1 => Just("．．".to_owned()),
        1 => Just("secret".to_owned()),
        1 => Just("C:".to_owned()),
        1 => Just("secret.md::$DATA".to_owned()),
        1 => "\\PC{0,6}",
    ];
    let joined =
        (proptest::collection::vec(part, 1..7), prop_oneof![4 => Just("/"), 1 => Just("\\")])
            .prop_map(|(parts, separator)| parts.join(separator));
    (joined, 0..10_u8).prop_map(move |(path, kind)| match kind {
        0 => format!("/{path}"),
        1 => format!("{absolute}/{path}"),
        2 => format!("kb/../{path}"),
        _ => path,
    })
}

// MCP-39 MCP-40 MCP-41 MCP-47 MCP-76 MCP-78
#[test]
fn no_name_leads_out_of_the_knowledge_base() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("kb");
    fs::create_dir_all(root.join("a")).unwrap();
    fs::create_dir_all(folder.path().join("a")).unwrap();
    for outside in ["secret.md", "a/secret.md"] {
        fs::write(folder.path().join(outside), SECRET).unwrap();
    }
    fs::write(root.join("open.md"), OPEN).unwrap();
    fs::write(root.join("a/open.md"), OPEN).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path().join("secret.md"), root.join("link.md")).unwrap();
        std::os::unix::fs::symlink(folder.path(), root.join("door")).unwrap();
    }
    fs::hard_link(folder.path().join("secret.md"), root.join("hard.md")).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let service = service(&root);
    runtime.block_on(service.rebuild(false, Arc::new(Unheard))).unwrap();
    let library = service.library();
    let whole = |text: &str| text == OPEN;
    let served = std::cell::Cell::new(0_u32);

    let mut runner = TestRunner::new(ProptestConfig { cases: 10_000, ..Default::default() });
    let outside = folder.path().to_str().unwrap().to_owned();
    let outcome = runner.run(&paths(&outside), |path| {
        runtime.block_on(async {
            let document = service.document(DocumentRequest::whole(path.as_str())).await;
            if let Ok(answer) = document {
                prop_assert!(whole(&answer.content), "get_document {:?}", path);
                served.set(served.get() + 1);
            }
            let request =
                DocumentRequest { path: path.clone(), offset: Some(0), max_bytes: Some(9) };
            if let Ok(answer) = service.document(request).await {
                prop_assert!(OPEN.starts_with(&answer.content), "a part of {:?}", path);
            }
            for uri in [format!("kb://doc/{path}"), path.clone()] {
                if let Some(ResourceName::Document(key)) = ResourceName::from_uri(&uri)
                    && let Ok(answer) = library.open(&key).await
                {
                    prop_assert!(whole(&answer.content), "resources/read {:?}", uri);
                }
            }
            let request = BestPracticeRequest { target: path.clone(), category: None };
            if let Ok(answer) = service.best_practice(request).await {
                prop_assert!(answer.content.ends_with(OPEN), "get_best_practice {:?}", path);
            }
            let request = QuoteRequest { text: "launch code".into(), path: path.clone() };
            if let Ok(answer) = service.verify_quote(request).await {
                prop_assert!(answer.places.is_empty(), "verify_quote {:?}", path);
            }
            Ok(())
        })
    });
    outcome.unwrap();
    assert!(served.get() > 0, "not one name was a document, so nothing was shown");
}
