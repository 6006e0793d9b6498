//! Opens a local reranker: finds it or downloads it, and runs it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::adapters::model::catalogue::{HubSource, RerankerEntry, Sources};
use crate::adapters::model::hub::{self, HubSettings};
use crate::adapters::model::locate::{self, ModelPlaces, OnnxFolder};
use crate::adapters::model::offline_way;
use crate::adapters::model::runtime::no_runtime;
use crate::ports::Cause;
use crate::ports::reranker::{RerankError, Reranker};

type Opened = Result<Arc<dyn Reranker>, RerankError>;

/// What runs a reranker as ONNX; blocks while it reads.
type Run = fn(&'static RerankerEntry, &OnnxFolder, &[PathBuf]) -> Opened;

/// Opens a reranker of the catalogue.
///
/// What is not on this machine is downloaded into the first cache. Says in the
/// log what is loaded and how large it is.
///
/// # Errors
///
/// [`RerankError::Unavailable`], which names what to do about it.
pub async fn open(
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    open_with(onnx, entry, places, hub).await
}

async fn open_with(
    run: Run,
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    tracing::info!(reranker = entry.name, size_mb = entry.download_mb, "loading the reranker");
    let unavailable =
        |what: String, source: Cause| RerankError::Unavailable { model: what, source };
    if locate::runtime_libraries(&places.onnx_runtime).is_empty() {
        let what = format!("{}, which runs on ONNX Runtime", entry.name);
        return Err(unavailable(what, no_runtime(&places.onnx_runtime)));
    }
    if locate::onnx_folder(entry, places).is_none() {
        fetch(entry, places, hub).await.map_err(|error| {
            let way = offline_way(&Sources { safetensors: None, ..entry.into() }, places);
            let name = entry.name;
            unavailable(format!("{name}, which is not here and cannot be fetched{way}"), error)
        })?;
    }
    let Some(folder) = locate::onnx_folder(entry, places) else {
        return Err(unavailable(
            entry.name.to_owned(),
            "the cache does not keep what is downloaded".into(),
        ));
    };
    let (runtime, from) = (places.onnx_runtime.clone(), folder.root.clone());
    let opened = tokio::task::spawn_blocking(move || run(entry, &folder, &runtime)).await;
    let reranker = opened.map_err(|error| unavailable(entry.name.to_owned(), error.into()))??;
    tracing::info!(
        reranker = entry.name,
        engine = "onnx",
        precision = "f32",
        from = %from.display(),
        "the reranker is ready"
    );
    Ok(reranker)
}

async fn fetch(
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Result<(), Cause> {
    let source: HubSource = *entry.onnx.first().ok_or("the hub does not have it")?;
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
fn onnx(entry: &'static RerankerEntry, folder: &OnnxFolder, runtime: &[PathBuf]) -> Opened {
    use std::num::NonZeroUsize;

    use crate::adapters::reranker::fastembed::FastEmbedReranker;

    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let window = entry.window_tokens;
    Ok(Arc::new(FastEmbedReranker::open(entry.name, folder, window, runtime, cores)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx(entry: &'static RerankerEntry, _folder: &OnnxFolder, runtime: &[PathBuf]) -> Opened {
    let source = no_runtime(runtime);
    Err(RerankError::Unavailable { model: entry.name.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;

    use super::*;
    use crate::adapters::model::catalogue;
    use crate::adapters::model::in_full;
    use crate::adapters::reranker::overlap::OverlapReranker;

    /// Only looks at the folder.
    const FAKE: Run = |entry, folder, _| match fs::read_to_string(&folder.model).unwrap().as_str() {
        "broken" => Err(RerankError::Unavailable {
            model: entry.name.to_owned(),
            source: "its weights are broken".into(),
        }),
        _ => Ok(Arc::new(OverlapReranker)),
    };

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

        async fn open(&self, name: &str) -> Opened {
            let hub =
                HubSettings { endpoint: "http://127.0.0.1:9".to_owned(), ..HubSettings::default() };
            open_with(FAKE, catalogue::find_reranker(name).unwrap(), &self.places, &hub).await
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
        assert!(machine.open("bge-base").await.is_ok());
        fill(&machine.root.path().join("models/bge-base"), &files, "broken");
        let text = in_full(&machine.open("bge-base").await.err().unwrap());
        assert!(text.contains("weights are broken"), "{text}");
    }

    #[tokio::test]
    async fn what_cannot_be_fetched_names_host_and_remedy() {
        let machine = Machine::new();
        let text = in_full(&machine.open("jina-v2-ml").await.err().unwrap());
        for expected in ["jina-v2-ml", "127.0.0.1:9", "groove models import", "ONNX files"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[cfg(feature = "onnx")]
    #[tokio::test]
    async fn without_its_library_nothing_is_downloaded() {
        let mut machine = Machine::new();
        machine.places.onnx_runtime = vec![machine.root.path().join("nowhere")];
        let text = in_full(&machine.open("bge-base").await.err().unwrap());
        assert!(text.contains("ORT_DYLIB_PATH") && text.contains("nowhere"), "{text}");
    }
}
