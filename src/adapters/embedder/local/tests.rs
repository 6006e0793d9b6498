//! Engines that only look at the folder stand in for those that read weights.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tempfile::TempDir;

use super::*;
use crate::adapters::model::catalogue;
use crate::adapters::model::hub::tests::{FakeHub, Fault};
use crate::domain::embedding::Embedding;
use crate::ports::embedder::{Embedded, Engine};

static ENTRY: ModelEntry = ModelEntry {
    name: "tiny",
    dimension: 4,
    pooling: Pooling::Mean,
    window_tokens: 8,
    prefixes: Prefixes {
        query: std::borrow::Cow::Borrowed(""),
        document: std::borrow::Cow::Borrowed(""),
    },
    quantised: false,
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

const TINY: LocalModel = LocalModel::Known(&ENTRY);

const FAKES: Engines = Engines {
    native: |spec, folder, precision| {
        let name = match (&folder.onnx, precision) {
            (Some(_), _) => "native out of onnx",
            (None, Precision::Int8) => "native int8",
            (None, _) => "native",
        };
        let weights = folder.onnx.clone();
        fake(name, spec, &weights.unwrap_or_else(|| folder.root.join("model.safetensors")))
    },
    onnx: |spec, folder, _| fake("onnx", spec, &folder.model),
};

struct Fake(ModelIdentity, &'static str);

/// Weights that say `broken` cannot be read; `wide` ones have more numbers.
fn fake(engine: &'static str, spec: &Spec, weights: &Path) -> Opened {
    let weights = fs::read_to_string(weights).unwrap();
    let mut identity = spec.identity.clone();
    match weights.as_str() {
        // Of a kind that the native engine does not know.
        "strange" if engine == "onnx" => Ok(Arc::new(Fake(identity, engine))),
        "broken" | "strange" => Err(EmbedError::Unavailable {
            what: identity.model,
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

    fn window_tokens(&self) -> Option<usize> {
        None
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        Ok(vec![false; texts.len()])
    }

    async fn embed_documents(&self, _: &[String]) -> Result<Embedded, EmbedError> {
        Ok(Embedded::default())
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
        open_with(FAKES, &TINY, RunAs::default(), &self.places, hub).await
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
    chain(&opened.err().unwrap())
}

#[tokio::test]
async fn safetensors_are_run_natively_without_a_network() {
    let machine = Machine::new();
    machine.place("fine");
    machine.cache_onnx("fine");
    machine.add_runtime();
    assert_eq!(engine_of(&machine.open_offline().await), Some("native"));
}

// CFG-96 IDX-161
#[tokio::test]
async fn weights_are_read_out_of_onnx_without_a_network_and_without_its_library() {
    let machine = Machine::new();
    machine.cache_onnx("fine");
    for _ in 0..2 {
        assert_eq!(engine_of(&machine.open_offline().await), Some("native out of onnx"));
        assert_eq!(TINY.engine_for(EngineChoice::Auto, &machine.places), Some("native"));
        let native = as_engine(EngineChoice::Native);
        let opened = open_with(FAKES, &TINY, native, &machine.places, &offline()).await;
        assert_eq!(engine_of(&opened), Some("native out of onnx"));
        machine.add_runtime();
    }
    let onnx = as_engine(EngineChoice::Onnx);
    let opened = open_with(FAKES, &TINY, onnx, &machine.places, &offline()).await;
    assert_eq!(engine_of(&opened), Some("onnx"));
}

#[tokio::test]
async fn onnx_that_cannot_be_read_natively_is_run_where_a_library_is() {
    let machine = Machine::new();
    machine.cache_onnx("strange");
    let text = text_of(machine.open_offline().await);
    assert!(text.contains("native out of onnx weights are broken"), "{text}");
    #[cfg(feature = "onnx")]
    assert!(text.contains("ORT_DYLIB_PATH"), "{text}");
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
    let opened = open_with(FAKES, &TINY, RunAs::default(), &places, &hub.settings).await;
    assert_eq!(engine_of(&opened), Some("native"));
    let opened = open_with(FAKES, &TINY, RunAs::default(), &places, &offline()).await;
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
    let entry = catalogue::find("all-minilm-l6-v2-q").unwrap();
    let known = LocalModel::Known(entry);
    let text = text_of(open(&known, RunAs::default(), &machine.places, &offline()).await);
    assert!(text.contains("ORT_DYLIB_PATH") && text.contains("1.24"), "{text}");
    assert!(!text.contains("no answer"), "{text}");
    // The weights of this one can be read without it.
    let known = LocalModel::Known(catalogue::find("bge-m3").unwrap());
    let hub = offline();
    let text = text_of(open(&known, RunAs::default(), &machine.places, &hub).await);
    assert!(text.contains(&hub.host()) && !text.contains("ORT_DYLIB_PATH"), "{text}");
}

#[tokio::test]
async fn without_a_cache_nothing_is_downloaded() {
    let machine = Machine::new();
    let places = ModelPlaces { hub_caches: Vec::new(), ..machine.places.clone() };
    let text = text_of(open_with(FAKES, &TINY, RunAs::default(), &places, &offline()).await);
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

fn as_engine(engine: EngineChoice) -> RunAs {
    RunAs { engine, precision: PrecisionChoice::Auto }
}

#[tokio::test]
async fn the_engine_that_was_asked_for_is_the_one_that_runs() {
    let machine = Machine::new();
    machine.place("fine");
    machine.cache_onnx("fine");
    machine.add_runtime();
    for (engine, name) in [
        (EngineChoice::Auto, "native"),
        (EngineChoice::Native, "native"),
        (EngineChoice::Onnx, "onnx"),
    ] {
        let opened = open_with(FAKES, &TINY, as_engine(engine), &machine.places, &offline()).await;
        assert_eq!(engine_of(&opened), Some(name));
    }
    let int8 = RunAs { engine: EngineChoice::Auto, precision: PrecisionChoice::Int8 };
    let opened = open_with(FAKES, &TINY, int8, &machine.places, &offline()).await;
    assert_eq!(engine_of(&opened), Some("native int8"));
    let onnx = RunAs { engine: EngineChoice::Onnx, ..int8 };
    let text = text_of(open_with(FAKES, &TINY, onnx, &machine.places, &offline()).await);
    assert!(text.contains("[embedding].engine"), "{text}");
}

#[tokio::test]
async fn an_engine_that_was_asked_for_is_not_replaced_by_the_other() {
    let machine = Machine::new();
    machine.place("broken");
    machine.cache_onnx("fine");
    machine.add_runtime();
    let native = as_engine(EngineChoice::Native);
    let text = text_of(open_with(FAKES, &TINY, native, &machine.places, &offline()).await);
    assert!(text.contains("native weights are broken"), "{text}");
}

#[cfg(feature = "onnx")]
#[tokio::test]
async fn onnx_without_its_library_says_what_was_tried_and_what_to_do() {
    let machine = Machine::new();
    machine.place("fine");
    let onnx = as_engine(EngineChoice::Onnx);
    let text = text_of(open_with(FAKES, &TINY, onnx, &machine.places, &offline()).await);
    let tried = machine.places.onnx_runtime[0].display().to_string();
    for expected in ["tiny", "ORT_DYLIB_PATH", "1.24", &tried, "does not exist"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

// IDX-B24
#[tokio::test]
async fn what_a_cache_holds_under_a_known_name_is_checked_before_it_is_loaded() {
    let machine = Machine::new();
    let known = LocalModel::Known(catalogue::find("all-minilm-l6-v2").unwrap());
    machine.fill(
        "cache/models--sentence-transformers--all-MiniLM-L6-v2/snapshots/1",
        &[("model.safetensors", "something else")],
    );
    let opened = open_with(FAKES, &known, RunAs::default(), &machine.places, &offline()).await;
    let text = text_of(opened);
    assert!(text.contains("SHA-256") && text.contains("53aa5117"), "{text}");
    machine.fill("models/all-minilm-l6-v2", &[("model.safetensors", "an edition of my own")]);
    let opened = open_with(FAKES, &known, RunAs::default(), &machine.places, &offline()).await;
    assert_eq!(engine_of(&opened), Some("native"));
}

// IDX-159
#[tokio::test]
async fn a_folder_of_ones_own_is_opened_where_it_lies() {
    let machine = Machine::new();
    let root = machine.root.path().join("elsewhere/mine");
    machine.fill("elsewhere/mine", &[("model.safetensors", "fine")]);
    fs::write(root.join("config.json"), r#"{"hidden_size": 4}"#).unwrap();
    let folder = FolderModel::read(root.to_str().unwrap()).unwrap();
    let model = LocalModel::Folder(Arc::new(folder));
    let opened = open_with(FAKES, &model, RunAs::default(), &machine.places, &offline()).await;
    assert_eq!(engine_of(&opened), Some("native"));
    assert_eq!(opened.unwrap().identity(), &model.identity());
    let onnx = as_engine(EngineChoice::Onnx);
    let text = text_of(open_with(FAKES, &model, onnx, &machine.places, &offline()).await);
    assert!(text.contains("dir:mine@"), "{text}");
}
