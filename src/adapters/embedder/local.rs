//! Opens a local model: finds it or downloads it, and picks what runs it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use crate::adapters::embedder::native::{NativeEncoder, Precision};
use crate::adapters::model::catalogue::{HubSource, ModelEntry};
use crate::adapters::model::hub::{self, HubSettings};
use crate::adapters::model::locate::{self, Located, ModelPlaces, OnnxFolder};
use crate::ports::Cause;
use crate::ports::embedder::{EmbedError, Embedder};

type Opened = Result<Arc<dyn Embedder>, EmbedError>;

/// What runs models: one function an engine, each blocking while it reads.
#[derive(Clone, Copy)]
struct Engines {
    native: fn(&'static ModelEntry, &Path) -> Opened,
    onnx: fn(&'static ModelEntry, OnnxFolder, &[PathBuf]) -> Opened,
}

const ENGINES: Engines = Engines { native, onnx };

/// Opens a model of the catalogue.
///
/// A folder with safetensors is run natively, a folder with ONNX where an ONNX
/// Runtime is found; what is not on this machine is downloaded into the first
/// cache. Says in the log what is loaded, before a download how large it is,
/// and in the end what runs it.
///
/// # Errors
///
/// [`EmbedError::Unavailable`], which names what to do about it.
pub async fn open(entry: &'static ModelEntry, places: &ModelPlaces, hub: &HubSettings) -> Opened {
    open_with(ENGINES, entry, places, hub).await
}

async fn open_with(
    engines: Engines,
    entry: &'static ModelEntry,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    tracing::info!(
        model = entry.name,
        dimension = entry.dimension,
        size_mb = entry.download_mb,
        "loading the embedding model"
    );
    let onnx = match open_found(engines, entry, places).await? {
        Found::Ready(embedder) => return Ok(embedder),
        Found::Nothing { onnx } => onnx,
    };
    let missing = Missing { entry, places, onnx };
    missing.fetch(hub).await?;
    match open_found(engines, entry, places).await? {
        Found::Ready(embedder) => Ok(embedder),
        Found::Nothing { .. } => Err(missing.error("the cache does not keep what is downloaded")),
    }
}

/// What this machine has of a model.
enum Found {
    Ready(Arc<dyn Embedder>),
    /// Why an ONNX model that is here is of no use, if there is one.
    Nothing {
        onnx: Option<String>,
    },
}

async fn open_found(
    engines: Engines,
    entry: &'static ModelEntry,
    places: &ModelPlaces,
) -> Result<Found, EmbedError> {
    let places = places.clone();
    let opened = tokio::task::spawn_blocking(move || open_found_now(engines, entry, &places)).await;
    opened.map_err(|error| EmbedError::Unavailable {
        what: entry.name.to_owned(),
        source: error.into(),
    })?
}

fn open_found_now(
    engines: Engines,
    entry: &'static ModelEntry,
    places: &ModelPlaces,
) -> Result<Found, EmbedError> {
    match locate::locate(entry, places) {
        Located::Native(folder) => {
            let opened = (engines.native)(entry, &folder);
            let runnable = !locate::runtime_libraries(&places.onnx_runtime).is_empty();
            let onnx = locate::onnx_folder(entry, places).filter(|_| runnable);
            let opened = match (opened, onnx) {
                // The native engine may not know this kind of model.
                (Err(error), Some(onnx)) => {
                    tracing::warn!(model = entry.name, error = in_full(&error), "trying ONNX");
                    open_onnx(engines, entry, onnx, places)
                }
                (opened, _) => opened.and_then(|embedder| ready(entry, embedder, &folder)),
            };
            opened.map(Found::Ready)
        }
        Located::Onnx(folder) => match open_onnx(engines, entry, folder, places) {
            Ok(embedder) => Ok(Found::Ready(embedder)),
            // Safetensors need no library, so a download may still help.
            Err(error) if entry.safetensors.is_some() => {
                let onnx = in_full(&error);
                tracing::warn!(model = entry.name, error = onnx, "trying safetensors");
                Ok(Found::Nothing { onnx: Some(onnx) })
            }
            Err(error) => Err(error),
        },
        Located::Absent(absent) => {
            tracing::debug!(model = entry.name, ?absent, "not on this machine");
            let onnx = absent.without_runtime.map(|folder| {
                format!("{} is ONNX, and there is {}", folder.root.display(), no_runtime())
            });
            Ok(Found::Nothing { onnx })
        }
    }
}

fn open_onnx(
    engines: Engines,
    entry: &'static ModelEntry,
    folder: OnnxFolder,
    places: &ModelPlaces,
) -> Opened {
    let from = folder.root.clone();
    let embedder = (engines.onnx)(entry, folder, &places.onnx_runtime)?;
    ready(entry, embedder, &from)
}

/// A folder is known by its name only, so what it holds has to be looked at.
fn ready(entry: &ModelEntry, embedder: Arc<dyn Embedder>, from: &Path) -> Opened {
    let dimension = embedder.identity().dimension;
    if dimension != entry.dimension {
        let expected = entry.dimension;
        return Err(EmbedError::Unavailable {
            what: format!("{} from {}", entry.name, from.display()),
            source: format!("its embeddings have {dimension} numbers, not {expected}").into(),
        });
    }
    let engine = embedder.engine();
    tracing::info!(
        model = entry.name,
        dimension,
        engine = engine.name,
        precision = engine.precision,
        from = %from.display(),
        "the embedding model is ready"
    );
    Ok(embedder)
}

/// A model that is to be downloaded.
struct Missing<'a> {
    entry: &'static ModelEntry,
    places: &'a ModelPlaces,
    onnx: Option<String>,
}

impl Missing<'_> {
    async fn fetch(&self, hub: &HubSettings) -> Result<(), EmbedError> {
        let entry = self.entry;
        let source = self.source()?;
        let Some(cache) = self.places.hub_caches.first().cloned() else {
            return Err(self.error("no folder is known to download it to"));
        };
        tracing::info!(
            model = entry.name,
            dimension = entry.dimension,
            size_mb = entry.download_mb,
            host = hub.host(),
            repository = source.repository,
            cache = %cache.display(),
            "downloading the embedding model"
        );
        let settings = hub.clone();
        let (sender, receiver) = oneshot::channel();
        // A thread of its own: the end of the program does not wait for it, as
        // it would for a blocking thread of the runtime.
        let spawned = thread::Builder::new().name("model download".to_owned()).spawn(move || {
            // Nobody listens any more if the caller was cancelled.
            drop(sender.send(hub::download(&settings, &source, &cache)));
        });
        spawned.map_err(|error| self.error(error))?;
        let result = receiver.await.map_err(|error| self.error(error))?;
        result.map(drop).map_err(|error| self.error(error))
    }

    fn source(&self) -> Result<HubSource, EmbedError> {
        if let Some(source) = self.entry.safetensors {
            return Ok(source);
        }
        if locate::runtime_libraries(&self.places.onnx_runtime).is_empty() {
            return Err(EmbedError::Unavailable {
                what: format!("{}, which the hub has as ONNX only", self.entry.name),
                source: no_runtime(),
            });
        }
        let source = self.entry.onnx.first().copied();
        source.ok_or_else(|| self.error("the hub does not have it"))
    }

    /// Says what to do, as the cause alone does not.
    fn error(&self, source: impl Into<Cause>) -> EmbedError {
        let mut what = format!("{}, which is not here and cannot be fetched", self.entry.name);
        if let Some(folder) = &self.places.models_dir {
            let folder = folder.join(self.entry.name);
            what.push_str("; without a network, put its config.json, tokenizer.json and ");
            what.push_str(if self.entry.safetensors.is_some() {
                "model.safetensors"
            } else {
                "ONNX files"
            });
            what.push_str(" into ");
            what.push_str(&folder.display().to_string());
        }
        if let Some(onnx) = &self.onnx {
            what.push_str("; ");
            what.push_str(onnx);
        }
        EmbedError::Unavailable { what, source: source.into() }
    }
}

/// An error with all its causes on one line.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(feature = "onnx")]
fn onnx(entry: &'static ModelEntry, folder: OnnxFolder, runtime: &[PathBuf]) -> Opened {
    use std::num::NonZeroUsize;

    use crate::adapters::embedder::fastembed::{FastEmbedEmbedder, OnnxModel};

    let model = OnnxModel {
        identity: entry.identity(),
        folder,
        pooling: entry.pooling,
        window_tokens: entry.window_tokens,
    };
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(Arc::new(FastEmbedEmbedder::open(model, runtime, cores)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx(entry: &'static ModelEntry, folder: OnnxFolder, _runtime: &[PathBuf]) -> Opened {
    let OnnxFolder { root, .. } = folder;
    Err(EmbedError::Unavailable {
        what: format!("{} from {}", entry.name, root.display()),
        source: no_runtime(),
    })
}

#[cfg(feature = "onnx")]
fn no_runtime() -> Cause {
    crate::adapters::embedder::fastembed::NoRuntime { tried: Vec::new() }.into()
}

#[cfg(not(feature = "onnx"))]
fn no_runtime() -> Cause {
    "this program was built without the feature \"onnx\"".into()
}

fn native(entry: &'static ModelEntry, folder: &Path) -> Opened {
    let encoder = NativeEncoder::open(entry.name, folder, Precision::Auto)?;
    Ok(Arc::new(encoder))
}

#[cfg(test)]
mod tests;
