//! Opens a local reranker: finds it or downloads it, and runs it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adapters::model::catalogue::{HubSource, RerankerEntry};
use crate::adapters::model::encoder::{ModelFolder, Precision};
use crate::adapters::model::folder::SCHEME;
use crate::adapters::model::hub::{self, HubSettings};
use crate::adapters::model::locate::{self, ModelPlaces, OnnxFolder};
use crate::adapters::model::offline_way;
use crate::adapters::model::runtime::no_runtime;
use crate::adapters::reranker::native::NativeReranker;
use crate::ports::embedder::Engine;
use crate::ports::reranker::{RerankError, Reranker};
use crate::ports::{Cause, chain};

type Opened = Result<Arc<dyn Reranker>, RerankError>;

/// A reranker that is loaded, and what runs it.
pub struct Ready {
    /// The reranker.
    pub reranker: Arc<dyn Reranker>,
    /// What runs it.
    pub engine: Engine,
}

impl fmt::Debug for Ready {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Ready").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// What runs rerankers: one function an engine, each blocking while it reads.
#[derive(Clone, Copy)]
struct Engines {
    native: fn(&RerankerEntry, &ModelFolder) -> Opened,
    onnx: fn(&RerankerEntry, &OnnxFolder, &[PathBuf]) -> Opened,
}

const ENGINES: Engines = Engines { native, onnx };

/// Opens a reranker of the catalogue.
///
/// The native engine comes first, for safetensors and for ONNX files; what it
/// does not know is run where an ONNX Runtime is found. What is not on this
/// machine is downloaded into the first cache. Says in the log what is loaded
/// and how large it is.
///
/// # Errors
///
/// [`RerankError::Unavailable`], which names what to do about it.
pub async fn open(
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Result<Ready, RerankError> {
    open_with(ENGINES, entry, places, hub).await
}

/// Opens a reranker in a folder of one's own, natively: a cross-encoder of the
/// BERT and XLM-RoBERTa families with one label, as safetensors or in an ONNX file.
///
/// # Errors
///
/// [`RerankError::Unavailable`], which names the file and what is wrong with it.
pub async fn open_folder(root: PathBuf) -> Result<Arc<dyn Reranker>, RerankError> {
    let name = format!("{SCHEME}{}", root.display());
    tracing::info!(reranker = name, "loading the reranker");
    let what = name.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let folder = ModelFolder::of(&name, &root);
        NativeReranker::open(&name, &folder, Precision::F32)
    });
    let reranker = opened.await.map_err(|error| unavailable(what, error.into()))??;
    tracing::info!(reranker = reranker.model(), engine = "native", "the reranker is ready");
    Ok(Arc::new(reranker))
}

async fn open_with(
    engines: Engines,
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Result<Ready, RerankError> {
    tracing::info!(reranker = entry.name, size_mb = entry.download_mb, "loading the reranker");
    if let Some(ready) = open_found(engines, entry, places).await? {
        return Ok(ready);
    }
    fetch(entry, places, hub).await.map_err(|error| {
        let way = offline_way(&entry.into(), places);
        let name = entry.name;
        unavailable(format!("{name}, which is not here and cannot be fetched{way}"), error)
    })?;
    open_found(engines, entry, places).await?.ok_or_else(|| {
        unavailable(entry.name.to_owned(), "the cache does not keep what is downloaded".into())
    })
}

async fn open_found(
    engines: Engines,
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
) -> Result<Option<Ready>, RerankError> {
    let places = places.clone();
    let opened = tokio::task::spawn_blocking(move || open_found_now(engines, entry, &places)).await;
    opened.map_err(|error| unavailable(entry.name.to_owned(), error.into()))?
}

fn open_found_now(
    engines: Engines,
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
) -> Result<Option<Ready>, RerankError> {
    let safetensors = locate::native_folder(entry, places);
    let onnx = locate::onnx_folder(entry, places);
    let folder = match (&safetensors, &onnx) {
        (Some(root), _) => ModelFolder::new(root),
        (None, Some(folder)) => ModelFolder::new(&folder.root).with_onnx(&folder.model),
        (None, None) => return Ok(None),
    };
    let failed = match (engines.native)(entry, &folder) {
        Ok(reranker) => return Ok(Some(ready(entry, reranker, "native", &folder.root))),
        Err(error) => error,
    };
    // The native engine may not know this kind of model.
    let Some(folder) = onnx else { return Err(failed) };
    tracing::debug!(error = chain(&failed), "trying ONNX Runtime");
    if locate::runtime_libraries(&places.onnx_runtime).is_empty() {
        let what = format!("{}, which the native engine cannot run", entry.name);
        return Err(unavailable(what, no_runtime(&places.onnx_runtime)));
    }
    let reranker = (engines.onnx)(entry, &folder, &places.onnx_runtime)?;
    Ok(Some(ready(entry, reranker, "onnx", &folder.root)))
}

fn ready(
    entry: &RerankerEntry,
    reranker: Arc<dyn Reranker>,
    engine: &'static str,
    from: &Path,
) -> Ready {
    let precision = "f32";
    let from = from.display();
    tracing::info!(reranker = entry.name, engine, precision, %from, "the reranker is ready");
    Ready { reranker, engine: Engine { name: engine, precision } }
}

fn unavailable(model: String, source: Cause) -> RerankError {
    RerankError::Unavailable { model, source }
}

async fn fetch(
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Result<(), Cause> {
    let source = entry.safetensors.or(entry.onnx.first().copied());
    let source: HubSource = source.ok_or("the hub does not have it")?;
    // What has no safetensors is of a kind that the native engine does not know.
    if entry.safetensors.is_none() && locate::runtime_libraries(&places.onnx_runtime).is_empty() {
        return Err(no_runtime(&places.onnx_runtime));
    }
    let cache = places.hub_caches.first().ok_or("no folder is known to download it to")?;
    tracing::info!(
        reranker = entry.name,
        size_mb = entry.download_mb,
        host = hub.host(),
        repository = source.repository,
        cache = %cache.display(),
        "downloading the reranker"
    );
    hub::download_aside(hub, source, cache.clone()).await.map(drop)
}

#[cfg(feature = "onnx")]
fn onnx(entry: &RerankerEntry, folder: &OnnxFolder, runtime: &[PathBuf]) -> Opened {
    use std::num::NonZeroUsize;

    use crate::adapters::reranker::fastembed::FastEmbedReranker;

    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let window = entry.window_tokens;
    Ok(Arc::new(FastEmbedReranker::open(entry.name, folder, window, runtime, cores)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx(entry: &RerankerEntry, _folder: &OnnxFolder, runtime: &[PathBuf]) -> Opened {
    let source = no_runtime(runtime);
    Err(RerankError::Unavailable { model: entry.name.to_owned(), source })
}

/// In 32 bits: what smaller numbers cost the order of hits is not measured.
fn native(entry: &RerankerEntry, folder: &ModelFolder) -> Opened {
    Ok(Arc::new(NativeReranker::open(entry.name, folder, Precision::F32)?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::adapters::model::catalogue;
    use crate::adapters::model::encoder::testing::{Kind, Toy};
    use crate::adapters::reranker::overlap::OverlapReranker;

    /// Engines that only look at the file: `broken` weights cannot be read,
    /// `foreign` ones not natively.
    const FAKES: Engines = Engines {
        native: |entry, folder| {
            let weights = folder.onnx.clone();
            fake(entry, &weights.unwrap_or_else(|| folder.root.join("model.safetensors")), true)
        },
        onnx: |entry, folder, _| fake(entry, &folder.model, false),
    };

    fn fake(entry: &RerankerEntry, weights: &Path, native: bool) -> Opened {
        match fs::read_to_string(weights).unwrap().as_str() {
            "foreign" if !native => Ok(Arc::new(OverlapReranker)),
            "broken" | "foreign" => {
                Err(unavailable(entry.name.to_owned(), "its weights are broken".into()))
            }
            _ => Ok(Arc::new(OverlapReranker)),
        }
    }

    fn engine_of(opened: &Result<Ready, RerankError>) -> Option<&'static str> {
        opened.as_ref().ok().map(|ready| ready.engine.name)
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
            fill(&at("lib"), &["libonnxruntime.so"], "library");
            Self { root, places }
        }

        async fn open(&self, name: &str) -> Result<Ready, RerankError> {
            let hub =
                HubSettings { endpoint: "http://127.0.0.1:9".to_owned(), ..HubSettings::default() };
            open_with(FAKES, catalogue::find_reranker(name).unwrap(), &self.places, &hub).await
        }
    }

    fn fill(folder: &Path, files: &[&str], content: &str) {
        for name in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    // IDX-178 IDX-179
    #[tokio::test]
    async fn a_cache_that_holds_either_repository_is_accepted() {
        for repository in ["rozgo--bge-reranker-v2-m3", "BAAI--bge-reranker-v2-m3"] {
            let machine = Machine::new();
            let files = ["config.json", "tokenizer.json", "model.onnx", "model.onnx.data"];
            let snapshot = format!("cache/models--{repository}/snapshots/1");
            fill(&machine.root.path().join(snapshot), &files, "fine");
            assert!(machine.open("bge-v2-m3").await.is_ok(), "{repository}");
        }
    }

    // IDX-177
    #[tokio::test]
    async fn a_reranker_in_the_models_directory_needs_no_network() {
        let machine = Machine::new();
        let files = ["config.json", "tokenizer.json", "onnx/model.onnx"];
        fill(&machine.root.path().join("models/bge-base"), &files, "fine");
        assert_eq!(engine_of(&machine.open("bge-base").await), Some("native"));
        fill(&machine.root.path().join("models/bge-base"), &files, "foreign");
        assert_eq!(engine_of(&machine.open("bge-base").await), Some("onnx"));
        fill(&machine.root.path().join("models/bge-base"), &["model.safetensors"], "fine");
        assert_eq!(engine_of(&machine.open("bge-base").await), Some("native"));
        fs::remove_file(machine.root.path().join("models/bge-base/model.safetensors")).unwrap();
        fill(&machine.root.path().join("models/bge-base"), &files, "broken");
        let text = chain(&machine.open("bge-base").await.err().unwrap());
        assert!(text.contains("weights are broken"), "{text}");
    }

    // IDX-177
    #[tokio::test]
    async fn a_folder_of_ones_own_is_read_and_named_when_it_is_none() {
        let toy = Toy::cross_encoder(Kind::Bert);
        let folder = toy.write();
        let reranker = open_folder(folder.path().to_owned()).await.unwrap();
        assert_eq!(reranker.model(), format!("dir:{}", folder.path().display()));
        let (tokens, types) = toy.kind.pair("a b", "c d");
        let scores = reranker.score("a b", &["c d".to_owned()]).await.unwrap();
        assert!((f64::from(scores[0]) - toy.score(&tokens, &types)).abs() < 1e-4);

        let empty = tempfile::tempdir().unwrap();
        let text = chain(&open_folder(empty.path().to_owned()).await.err().unwrap());
        assert!(text.contains(&*empty.path().to_string_lossy()), "{text}");
        assert!(text.contains("config.json"), "{text}");
    }

    #[tokio::test]
    async fn what_cannot_be_fetched_names_host_and_remedy() {
        let machine = Machine::new();
        let text = chain(&machine.open("jina-v2-ml").await.err().unwrap());
        for expected in ["jina-v2-ml", "127.0.0.1:9", "groove models import", "ONNX files"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[cfg(feature = "onnx")]
    #[tokio::test]
    async fn without_its_library_nothing_is_downloaded() {
        let mut machine = Machine::new();
        machine.places.onnx_runtime = vec![machine.root.path().join("nowhere")];
        let text = chain(&machine.open("jina-v2-ml").await.err().unwrap());
        assert!(text.contains("ORT_DYLIB_PATH") && text.contains("nowhere"), "{text}");
    }
}
