//! Opens a local reranker: finds it or downloads it, and runs it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::adapters::model::catalogue::{HubSource, RerankerEntry, Sources};
use crate::adapters::model::encoder::{ModelFolder, Precision};
use crate::adapters::model::hub::{self, HubSettings};
use crate::adapters::model::locate::{self, ModelPlaces, OnnxFolder};
use crate::adapters::model::runtime::no_runtime;
use crate::adapters::model::{in_full, offline_way};
use crate::adapters::reranker::native::NativeReranker;
use crate::ports::Cause;
use crate::ports::reranker::{RerankError, Reranker};

type Opened = Result<Arc<dyn Reranker>, RerankError>;

/// What runs rerankers: one function an engine, each blocking while it reads.
#[derive(Clone, Copy)]
struct Engines {
    native: fn(&'static RerankerEntry, &OnnxFolder) -> Opened,
    onnx: fn(&'static RerankerEntry, &OnnxFolder, &[PathBuf]) -> Opened,
}

const ENGINES: Engines = Engines { native, onnx };

/// Opens a reranker of the catalogue.
///
/// It is run natively if its weights can be read out of the ONNX file, else with
/// an ONNX Runtime where one is found. What is not on this machine is downloaded
/// into the first cache. Says in the log what is loaded and how large it is.
///
/// # Errors
///
/// [`RerankError::Unavailable`], which names what to do about it.
pub async fn open(
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    open_with(ENGINES, entry, places, hub).await
}

async fn open_with(
    engines: Engines,
    entry: &'static RerankerEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    tracing::info!(reranker = entry.name, size_mb = entry.download_mb, "loading the reranker");
    let unavailable =
        |what: String, source: Cause| RerankError::Unavailable { model: what, source };
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
    let opening = move || open_found(engines, entry, &folder, &runtime);
    let opened = tokio::task::spawn_blocking(opening).await;
    let (reranker, engine) =
        opened.map_err(|error| unavailable(entry.name.to_owned(), error.into()))??;
    tracing::info!(
        reranker = entry.name,
        engine,
        from = %from.display(),
        "the reranker is ready"
    );
    Ok(reranker)
}

fn open_found(
    engines: Engines,
    entry: &'static RerankerEntry,
    folder: &OnnxFolder,
    runtime: &[PathBuf],
) -> Result<(Arc<dyn Reranker>, &'static str), RerankError> {
    let error = match (engines.native)(entry, folder) {
        Ok(reranker) => return Ok((reranker, "native")),
        Err(error) => error,
    };
    let why = in_full(&error);
    if locate::runtime_libraries(runtime).is_empty() {
        return Err(RerankError::Unavailable {
            model: format!("{} from {}", entry.name, folder.root.display()),
            source: format!("{why}; and there is {}", no_runtime(runtime)).into(),
        });
    }
    tracing::debug!(reranker = entry.name, error = why, "trying ONNX");
    Ok(((engines.onnx)(entry, folder, runtime)?, "onnx"))
}

/// What would run what this machine has of a reranker: `native` or `onnx`;
/// nothing if it is not here. Looks at the files, and reads no weights.
pub fn engine_for(entry: &'static RerankerEntry, places: &ModelPlaces) -> Option<&'static str> {
    let folder = locate::onnx_folder(entry, places)?;
    Some(if native(entry, &folder).is_ok() { "native" } else { "onnx" })
}

fn native(entry: &'static RerankerEntry, folder: &OnnxFolder) -> Opened {
    let folder = ModelFolder {
        window_tokens: Some(entry.window_tokens),
        ..ModelFolder::new(&folder.root).with_onnx(&folder.model)
    };
    Ok(Arc::new(NativeReranker::open(entry.name, &folder, Precision::F32)?))
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
    use crate::adapters::reranker::overlap::OverlapReranker;

    /// Only look at the folder. What is strange is of a kind that the native
    /// engine does not know.
    const FAKES: Engines = Engines {
        native: |entry, folder| fake(entry, folder, &["broken", "strange"]),
        onnx: |entry, folder, _| fake(entry, folder, &["broken"]),
    };

    fn fake(entry: &'static RerankerEntry, folder: &OnnxFolder, refused: &[&str]) -> Opened {
        if refused.contains(&&*fs::read_to_string(&folder.model).unwrap()) {
            return Err(RerankError::Unavailable {
                model: entry.name.to_owned(),
                source: "its weights are broken".into(),
            });
        }
        Ok(Arc::new(OverlapReranker))
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

        async fn open(&self, name: &str) -> Opened {
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

    // CFG-96 IDX-178
    #[tokio::test]
    async fn a_library_is_needed_only_for_what_cannot_be_read_natively() {
        let mut machine = Machine::new();
        machine.places.onnx_runtime = vec![machine.root.path().join("nowhere")];
        let files = ["config.json", "tokenizer.json", "onnx/model.onnx"];
        let folder = machine.root.path().join("models/bge-base");
        fill(&folder, &files, "fine");
        assert!(machine.open("bge-base").await.is_ok());
        fill(&folder, &files, "strange");
        let text = in_full(&machine.open("bge-base").await.err().unwrap());
        assert!(text.contains("weights are broken"), "{text}");
        #[cfg(feature = "onnx")]
        assert!(text.contains("ORT_DYLIB_PATH") && text.contains("nowhere"), "{text}");
        machine.places.onnx_runtime = vec![machine.root.path().join("lib")];
        assert!(machine.open("bge-base").await.is_ok());
    }
}
