//! Engines that only look at the folder stand in for those that read weights.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tempfile::TempDir;

use super::*;
use crate::adapters::model::catalogue::{self, Pooling};
use crate::adapters::model::hub::tests::{FakeHub, Fault};
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::embedder::Engine;

static ENTRY: ModelEntry = ModelEntry {
    name: "tiny",
    dimension: 4,
    pooling: Pooling::Mean,
    window_tokens: 8,
    languages: "none",
    licence: "MIT",
    download_mb: 17,
    safetensors: Some(HubSource {
        repository: "org/tiny",
        weights: &["model.safetensors"],
        extras: &[],
        sha256: None,
    }),
    onnx: &[HubSource {
        repository: "org/tiny-onnx",
        weights: &["onnx/model.onnx"],
        extras: &[],
        sha256: None,
    }],
};

const FAKES: Engines = Engines {
    native: |entry, folder| fake("native", entry, &folder.join("model.safetensors")),
    onnx: |entry, folder, _| fake("onnx", entry, &folder.model),
};

struct Fake(ModelIdentity, &'static str);

/// Weights that say `broken` cannot be read; `wide` ones have more numbers.
fn fake(engine: &'static str, entry: &ModelEntry, weights: &Path) -> Opened {
    let weights = fs::read_to_string(weights).unwrap();
    let mut identity = entry.identity();
    match weights.as_str() {
        "broken" => Err(EmbedError::Unavailable {
            what: entry.name.to_owned(),
            source: format!("{engine} weights are broken").into(),
        }),
        "wide" => {
            identity.dimension += 1;
            Ok(Arc::new(Fake(identity, engine)))
        }
        _ => Ok(Arc::new(Fake(identity, engine))),
    }
}

#[async_trait]
impl Embedder for Fake {
    fn identity(&self) -> &ModelIdentity {
        &self.0
    }

    fn engine(&self) -> Engine {
        Engine { name: self.1, precision: "f32" }
    }

    async fn embed_documents(&self, _: &[String]) -> Result<Vec<Embedding>, EmbedError> {
        Ok(Vec::new())
    }

    async fn embed_query(&self, _: &str) -> Result<Embedding, EmbedError> {
        Err(EmbedError::Refused { reason: "a fake".to_owned(), accepted_others: false })
    }
}

struct Machine {
    root: TempDir,
    places: ModelPlaces,
}

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let places = ModelPlaces {
            models_dir: Some(at("models")),
            hub_caches: vec![at("cache")],
            onnx_runtime: vec![at("lib")],
        };
        Self { root, places }
    }

    fn fill(&self, folder: &str, files: &[(&str, &str)]) {
        let settings = [("config.json", "{}"), ("tokenizer.json", "{}")];
        for (name, content) in settings.iter().chain(files) {
            let path = self.root.path().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    fn place(&self, weights: &str) {
        self.fill("models/tiny", &[("model.safetensors", weights)]);
    }

    fn cache_onnx(&self, weights: &str) {
        self.fill("cache/models--org--tiny-onnx/snapshots/1", &[("onnx/model.onnx", weights)]);
    }

    fn add_runtime(&self) {
        self.fill("lib", &[("libonnxruntime.so", "library")]);
    }

    async fn open(&self, hub: &HubSettings) -> Opened {
        open_with(FAKES, &ENTRY, &self.places, hub).await
    }

    async fn open_offline(&self) -> Opened {
        self.open(&offline()).await
    }
}

/// A hub at a port that nobody listens on.
fn offline() -> HubSettings {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    HubSettings { endpoint: format!("http://127.0.0.1:{port}"), ..HubSettings::default() }
}

fn engine_of(opened: &Opened) -> Option<&'static str> {
    opened.as_ref().ok().map(|embedder| embedder.engine().name)
}

fn text_of(opened: Opened) -> String {
    in_full(&opened.err().unwrap())
}

#[tokio::test]
async fn safetensors_are_run_natively_without_a_network() {
    let machine = Machine::new();
    machine.place("fine");
    machine.cache_onnx("fine");
    machine.add_runtime();
    assert_eq!(engine_of(&machine.open_offline().await), Some("native"));
}

#[tokio::test]
async fn onnx_is_run_where_a_library_is_without_a_network() {
    let machine = Machine::new();
    machine.cache_onnx("fine");
    machine.add_runtime();
    assert_eq!(engine_of(&machine.open_offline().await), Some("onnx"));
}

#[tokio::test]
async fn onnx_helps_out_where_the_native_engine_cannot() {
    let machine = Machine::new();
    machine.place("broken");
    machine.cache_onnx("fine");
    assert!(text_of(machine.open_offline().await).contains("native weights are broken"));
    machine.add_runtime();
    assert_eq!(engine_of(&machine.open_offline().await), Some("onnx"));
}

// CFG-97
#[tokio::test]
async fn what_is_nowhere_is_downloaded_once_and_run_natively() {
    let hub = FakeHub::new(Fault::None);
    let machine = Machine::new();
    let places =
        ModelPlaces { hub_caches: vec![hub.cache.path().to_owned()], ..machine.places.clone() };
    let opened = open_with(FAKES, &ENTRY, &places, &hub.settings).await;
    assert_eq!(engine_of(&opened), Some("native"));
    let opened = open_with(FAKES, &ENTRY, &places, &offline()).await;
    assert_eq!(engine_of(&opened), Some("native"));
}

#[tokio::test]
async fn a_download_helps_out_where_onnx_cannot_be_run() {
    let hub = FakeHub::new(Fault::None);
    let machine = Machine::new();
    machine.cache_onnx("broken");
    machine.add_runtime();
    assert_eq!(engine_of(&machine.open(&hub.settings).await), Some("native"));
}

#[tokio::test]
async fn without_a_network_the_error_names_host_cause_and_remedy() {
    let machine = Machine::new();
    let hub = offline();
    let started = Instant::now();
    let text = text_of(machine.open(&hub).await);
    assert!(started.elapsed() < Duration::from_secs(5));
    let folder = machine.root.path().join("models").join("tiny").display().to_string();
    for expected in ["tiny", "model.safetensors", &folder, &hub.host(), "refused"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[tokio::test]
async fn without_a_network_an_onnx_model_without_its_library_is_mentioned() {
    let machine = Machine::new();
    machine.cache_onnx("fine");
    let text = text_of(machine.open_offline().await);
    assert!(text.contains("models--org--tiny-onnx"), "{text}");
    #[cfg(feature = "onnx")]
    assert!(text.contains("ORT_DYLIB_PATH") && text.contains("1.24"), "{text}");
}

#[tokio::test]
async fn without_a_network_the_reason_why_onnx_did_not_run_is_mentioned() {
    let machine = Machine::new();
    machine.cache_onnx("broken");
    machine.add_runtime();
    assert!(text_of(machine.open_offline().await).contains("onnx weights are broken"));
}

#[cfg(feature = "onnx")]
#[tokio::test]
async fn a_model_that_needs_the_library_is_not_downloaded_without_it() {
    let machine = Machine::new();
    let entry = catalogue::find("bge-m3").unwrap();
    let text = text_of(open(entry, &machine.places, &offline()).await);
    assert!(text.contains("ORT_DYLIB_PATH") && text.contains("1.24"), "{text}");
    assert!(!text.contains("no answer"), "{text}");
}

#[tokio::test]
async fn without_a_cache_nothing_is_downloaded() {
    let machine = Machine::new();
    let places = ModelPlaces { hub_caches: Vec::new(), ..machine.places.clone() };
    let text = text_of(open_with(FAKES, &ENTRY, &places, &offline()).await);
    assert!(text.contains("no folder is known"), "{text}");
}

#[tokio::test]
async fn a_folder_that_holds_another_model_is_refused() {
    let machine = Machine::new();
    machine.place("wide");
    assert!(text_of(machine.open_offline().await).contains("5 numbers, not 4"));
}

/// What is logged on this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// IDX-160
#[tokio::test]
async fn the_log_tells_model_dimension_and_size_before_a_download() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let machine = Machine::new();
    let hub = offline();
    assert!(machine.open(&hub).await.is_err());
    drop(guard);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let line = log.lines().find(|line| line.contains("downloading")).unwrap();
    for expected in ["model=\"tiny\"", "dimension=4", "size_mb=17", &hub.host()] {
        assert!(line.contains(expected), "{expected}: {line}");
    }
}
