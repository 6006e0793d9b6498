//! Opens a local model: finds it or downloads it, and picks what runs it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adapters::embedder::native::{NativeEncoder, Precision};
use crate::adapters::embedder::prefixed::PrefixedEmbedder;
use crate::adapters::model::catalogue::{HubSource, ModelEntry, Pooling, Prefixes, Sources};
use crate::adapters::model::encoder::ModelFolder;
use crate::adapters::model::folder::{FolderModel, sha256_of};
use crate::adapters::model::hub::{self, HubSettings};
use crate::adapters::model::locate::{self, Absent, Located, ModelPlaces, OnnxFolder};
use crate::adapters::model::offline_way;
use crate::adapters::model::runtime::no_runtime;
use crate::domain::embedding::ModelIdentity;
use crate::ports::embedder::{EmbedError, Embedder, EngineChoice, PrecisionChoice};
use crate::ports::{Cause, chain};

type Opened = Result<Arc<dyn Embedder>, EmbedError>;

/// A local model that can be asked for.
#[derive(Clone, Debug)]
pub enum LocalModel {
    /// One of the catalogue.
    Known(&'static ModelEntry),
    /// One in a folder of its own.
    Folder(Arc<FolderModel>),
}

/// What an engine has to know of a model besides its files.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What an index records of it.
    pub identity: ModelIdentity,
    /// How it pools, if its folder does not say.
    pub pooling: Pooling,
    /// The most tokens of a text that it reads.
    pub window_tokens: usize,
    /// Whether it gets one text at a time.
    pub quantised: bool,
    /// What each part of a long document begins with, if the document does.
    pub lead: String,
}

/// How a local model is to be run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunAs {
    /// By which engine.
    pub engine: EngineChoice,
    /// In which precision.
    pub precision: PrecisionChoice,
}

impl LocalModel {
    /// What an index records of it.
    pub fn identity(&self) -> ModelIdentity {
        self.spec().identity
    }

    fn spec(&self) -> Spec {
        match self {
            Self::Known(entry) => Spec {
                identity: entry.identity(),
                pooling: entry.pooling,
                window_tokens: entry.window_tokens,
                quantised: entry.quantised,
                lead: entry.prefixes.document.to_string(),
            },
            Self::Folder(folder) => Spec {
                identity: folder.identity.clone(),
                pooling: folder.pooling,
                window_tokens: folder.window_tokens,
                quantised: false,
                lead: folder.prefixes.document.to_string(),
            },
        }
    }

    fn prefixes(&self) -> &Prefixes {
        match self {
            Self::Known(entry) => &entry.prefixes,
            Self::Folder(folder) => &folder.prefixes,
        }
    }

    fn native_folder(&self, places: &ModelPlaces) -> Option<PathBuf> {
        match self {
            Self::Known(entry) => locate::native_folder(*entry, places),
            Self::Folder(folder) => folder.native.then(|| folder.root.clone()),
        }
    }

    fn onnx_folder(&self, places: &ModelPlaces) -> Option<OnnxFolder> {
        match self {
            Self::Known(entry) => locate::onnx_folder(*entry, places),
            Self::Folder(folder) => folder.onnx.clone(),
        }
    }

    /// What this machine has of the model for an engine.
    pub fn locate(&self, engine: EngineChoice, places: &ModelPlaces) -> Located {
        let native = || self.native_folder(places).map(Located::Native);
        let onnx = || self.onnx_folder(places).map(Located::Onnx);
        let found = match (engine, self) {
            (EngineChoice::Auto, Self::Known(entry)) => return locate::locate(*entry, places),
            (EngineChoice::Auto | EngineChoice::Native, _) => native().or_else(onnx),
            (EngineChoice::Onnx, _) => onnx(),
        };
        found.unwrap_or_else(|| Located::Absent(Absent::default()))
    }

    /// What would run what this machine has of the model: `native` or `onnx`;
    /// nothing if it is not here. Loads nothing, so that a model of another
    /// kind than its name says may still be run by the other one.
    pub fn engine_for(&self, engine: EngineChoice, places: &ModelPlaces) -> Option<&'static str> {
        match self.locate(engine, places) {
            Located::Native(_) => Some("native"),
            Located::Onnx(_) if self.reads_onnx_natively(engine) => Some("native"),
            Located::Onnx(_) => Some("onnx"),
            Located::Absent(_) => None,
        }
    }

    /// Whether weights are taken out of an ONNX file. Those of quantised models
    /// are of no use to the native engine.
    fn reads_onnx_natively(&self, engine: EngineChoice) -> bool {
        engine != EngineChoice::Onnx && !self.spec().quantised
    }
}

/// What runs models: one function an engine, each blocking while it reads.
#[derive(Clone, Copy)]
struct Engines {
    native: fn(&Spec, &ModelFolder, Precision) -> Opened,
    onnx: fn(&Spec, OnnxFolder, &[PathBuf]) -> Opened,
}

const ENGINES: Engines = Engines { native, onnx };

/// Opens a local model.
///
/// A folder with safetensors is run natively, and so is one with ONNX whose
/// weights can be read out of the file; otherwise ONNX Runtime runs it where one
/// is found. `run_as` may insist on one of the two. What is not on this machine
/// is downloaded into the first cache. Says in the log what is loaded,
/// before a download how large it is, and in the end what runs it.
///
/// # Errors
///
/// [`EmbedError::Unavailable`], which names what to do about it.
pub async fn open(
    model: &LocalModel,
    run_as: RunAs,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    open_with(ENGINES, model, run_as, places, hub).await
}

async fn open_with(
    engines: Engines,
    model: &LocalModel,
    run_as: RunAs,
    places: &ModelPlaces,
    hub: &HubSettings,
) -> Opened {
    let run_as = settled(model, run_as)?;
    let identity = model.identity();
    match model {
        LocalModel::Known(entry) => tracing::info!(
            model = entry.name,
            dimension = entry.dimension,
            size_mb = entry.download_mb,
            "loading the embedding model"
        ),
        LocalModel::Folder(folder) => tracing::info!(
            model = identity.model,
            dimension = identity.dimension,
            from = %folder.root.display(),
            "loading the embedding model"
        ),
    }
    let onnx = match open_found(engines, model, run_as, places).await? {
        Found::Ready(embedder) => return Ok(embedder),
        Found::Nothing { onnx } => onnx,
    };
    let LocalModel::Known(entry) = model else {
        return Err(EmbedError::Unavailable {
            what: identity.model,
            source: onnx.unwrap_or_else(|| "the folder has no files for that engine".into()).into(),
        });
    };
    let missing = Missing { entry, engine: run_as.engine, places, onnx };
    missing.fetch(hub).await?;
    match open_found(engines, model, run_as, places).await? {
        Found::Ready(embedder) => Ok(embedder),
        Found::Nothing { .. } => Err(missing.error("the cache does not keep what is downloaded")),
    }
}

/// An engine that serves the precision, or why there is none.
fn settled(model: &LocalModel, run_as: RunAs) -> Result<RunAs, EmbedError> {
    let spec = model.spec();
    let refuse = |reason: &str| {
        Err(EmbedError::Unavailable {
            what: spec.identity.model.clone(),
            source: reason.to_owned().into(),
        })
    };
    match (run_as.engine, run_as.precision) {
        (EngineChoice::Native, _) if spec.quantised => {
            refuse("it is a quantised ONNX model; [embedding].engine = \"native\" cannot run it")
        }
        (_, PrecisionChoice::F32) if spec.quantised => refuse(
            "it is a quantised model; for [embedding].precision = \"f32\" take the model without \
             \"-q\" at the end of its name",
        ),
        (EngineChoice::Auto, PrecisionChoice::Int8) if !spec.quantised => {
            Ok(RunAs { engine: EngineChoice::Native, ..run_as })
        }
        (EngineChoice::Onnx, PrecisionChoice::Int8) if !spec.quantised => refuse(
            "only the native engine embeds in int8; leave out [embedding].engine = \"onnx\", or \
             take a quantised model",
        ),
        _ => Ok(run_as),
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
    model: &LocalModel,
    run_as: RunAs,
    places: &ModelPlaces,
) -> Result<Found, EmbedError> {
    let what = model.identity().model;
    let opening = Opening { engines, model: model.clone(), run_as, places: places.clone() };
    let opened = tokio::task::spawn_blocking(move || opening.open_found()).await;
    opened.map_err(|error| EmbedError::Unavailable { what, source: error.into() })?
}

/// One attempt to open a model, on a thread that may block.
struct Opening {
    engines: Engines,
    model: LocalModel,
    run_as: RunAs,
    places: ModelPlaces,
}

impl Opening {
    fn open_found(&self) -> Result<Found, EmbedError> {
        let name = self.model.identity().model;
        let auto = self.run_as.engine == EngineChoice::Auto;
        match self.model.locate(self.run_as.engine, &self.places) {
            Located::Native(folder) => {
                let onnx = self.model.onnx_folder(&self.places).filter(|_| auto);
                match (self.native(&folder, None), onnx) {
                    // The native engine may not know this kind of model.
                    (Err(error), Some(onnx)) if self.has_runtime() => {
                        tracing::warn!(model = name, error = chain(&error), "trying ONNX");
                        self.onnx(onnx)
                    }
                    (opened, _) => opened,
                }
                .map(Found::Ready)
            }
            Located::Onnx(folder) => match self.read_onnx(folder) {
                Ok(embedder) => Ok(Found::Ready(embedder)),
                // Safetensors need no library, so a download may still help.
                Err(error) if auto && self.has_safetensors() => {
                    let onnx = chain(&error);
                    tracing::warn!(model = name, error = onnx, "trying safetensors");
                    Ok(Found::Nothing { onnx: Some(onnx) })
                }
                Err(error) => Err(error),
            },
            Located::Absent(absent) => {
                tracing::debug!(model = name, ?absent, "not on this machine");
                Ok(Found::Nothing { onnx: None })
            }
        }
    }

    /// Runs an ONNX folder: natively if its weights can be read, else with ONNX
    /// Runtime.
    fn read_onnx(&self, folder: OnnxFolder) -> Opened {
        if !self.model.reads_onnx_natively(self.run_as.engine) {
            return self.onnx(folder);
        }
        let read = self.native(&folder.root, Some(&folder.model));
        match read {
            Err(error) if self.run_as.engine == EngineChoice::Auto => {
                let why = chain(&error);
                if self.has_runtime() {
                    tracing::warn!(model = self.model.identity().model, error = why, "trying ONNX");
                    return self.onnx(folder);
                }
                let missing = no_runtime(&self.places.onnx_runtime);
                Err(EmbedError::Unavailable {
                    what: format!("{} from {}", self.model.identity().model, folder.root.display()),
                    source: format!("{why}; and there is {missing}").into(),
                })
            }
            read => read,
        }
    }

    fn has_runtime(&self) -> bool {
        !locate::runtime_libraries(&self.places.onnx_runtime).is_empty()
    }

    fn has_safetensors(&self) -> bool {
        matches!(self.model, LocalModel::Known(entry) if entry.safetensors.is_some())
    }

    /// - `onnx`: the file that holds the weights; safetensors otherwise.
    fn native(&self, root: &Path, onnx: Option<&Path>) -> Opened {
        let spec = self.model.spec();
        if onnx.is_none() {
            self.check_hash(root)?;
        }
        let precision = match self.run_as.precision {
            PrecisionChoice::Auto => Precision::Auto,
            PrecisionChoice::F32 => Precision::F32,
            PrecisionChoice::Int8 => Precision::Int8,
        };
        let folder = ModelFolder {
            root: root.to_owned(),
            onnx: onnx.map(Path::to_owned),
            pooling: Some(spec.pooling),
            window_tokens: Some(spec.window_tokens),
            lead: spec.lead.clone(),
        };
        let embedder = (self.engines.native)(&spec, &folder, precision)?;
        self.ready(&spec, embedder, root)
    }

    fn onnx(&self, folder: OnnxFolder) -> Opened {
        let spec = self.model.spec();
        let from = folder.root.clone();
        let embedder = (self.engines.onnx)(&spec, folder, &self.places.onnx_runtime)?;
        self.ready(&spec, embedder, &from)
    }

    /// What a cache holds under a known name has to be what is known by it. A
    /// person's own folder may hold another edition.
    fn check_hash(&self, folder: &Path) -> Result<(), EmbedError> {
        let LocalModel::Known(entry) = &self.model else { return Ok(()) };
        let by_hand = self.places.models_dir.as_ref().is_some_and(|dir| folder.starts_with(dir));
        let known =
            entry.safetensors.and_then(|source| Some((source.weights.first()?, source.sha256?)));
        let Some((file, expected)) = known.filter(|_| !by_hand) else { return Ok(()) };
        let path = folder.join(file);
        let refuse = |source: Cause| EmbedError::Unavailable {
            what: format!("{} from {}", entry.name, path.display()),
            source,
        };
        let found = sha256_of(&path).map_err(|error| refuse(error.into()))?;
        if found == expected {
            return Ok(());
        }
        Err(refuse(
            format!(
                "its SHA-256 is {found} instead of {expected}; delete the file to fetch it again"
            )
            .into(),
        ))
    }

    /// A folder is known by its name only, so what it holds has to be looked at.
    fn ready(&self, spec: &Spec, embedder: Arc<dyn Embedder>, from: &Path) -> Opened {
        let name = &spec.identity.model;
        let dimension = embedder.identity().dimension;
        if dimension != spec.identity.dimension {
            let expected = spec.identity.dimension;
            return Err(EmbedError::Unavailable {
                what: format!("{name} from {}", from.display()),
                source: format!("its embeddings have {dimension} numbers, not {expected}").into(),
            });
        }
        let engine = embedder.engine();
        tracing::info!(
            model = name,
            dimension,
            engine = engine.name,
            precision = engine.precision,
            from = %from.display(),
            "the embedding model is ready"
        );
        let prefixes = self.model.prefixes();
        if *prefixes == Prefixes::default() {
            return Ok(embedder);
        }
        Ok(Arc::new(PrefixedEmbedder::new(embedder, prefixes.clone())))
    }
}

/// A model that is to be downloaded.
struct Missing<'a> {
    entry: &'static ModelEntry,
    engine: EngineChoice,
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
        let fetched = hub::download_aside(hub, source, cache).await;
        fetched.map(drop).map_err(|error| self.error(error))
    }

    fn source(&self) -> Result<HubSource, EmbedError> {
        let safetensors = self.entry.safetensors.filter(|_| self.engine != EngineChoice::Onnx);
        if let Some(source) = safetensors {
            return Ok(source);
        }
        let natively = self.engine != EngineChoice::Onnx && !self.entry.quantised;
        if !natively && locate::runtime_libraries(&self.places.onnx_runtime).is_empty() {
            let why =
                if self.engine == EngineChoice::Onnx { "is to run as" } else { "the hub has as" };
            return Err(EmbedError::Unavailable {
                what: format!("{}, which {why} ONNX only", self.entry.name),
                source: no_runtime(&self.places.onnx_runtime),
            });
        }
        let source = self.entry.onnx.first().copied();
        source.ok_or_else(|| self.error("the hub does not have it"))
    }

    /// Says what to do, as the cause alone does not.
    fn error(&self, source: impl Into<Cause>) -> EmbedError {
        let mut what = format!("{}, which is not here and cannot be fetched", self.entry.name);
        what.push_str(&offline_way(&Sources::from(self.entry), self.places));
        if let Some(onnx) = &self.onnx {
            what.push_str("; ");
            what.push_str(onnx);
        }
        EmbedError::Unavailable { what, source: source.into() }
    }
}

#[cfg(feature = "onnx")]
fn onnx(spec: &Spec, folder: OnnxFolder, runtime: &[PathBuf]) -> Opened {
    use std::num::NonZeroUsize;

    use crate::adapters::embedder::fastembed::{FastEmbedEmbedder, OnnxModel};

    let model = OnnxModel {
        identity: spec.identity.clone(),
        folder,
        pooling: spec.pooling,
        window_tokens: spec.window_tokens,
        quantised: spec.quantised,
        lead: spec.lead.clone(),
    };
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(Arc::new(FastEmbedEmbedder::open(model, runtime, cores)?))
}

#[cfg(not(feature = "onnx"))]
fn onnx(spec: &Spec, folder: OnnxFolder, runtime: &[PathBuf]) -> Opened {
    let OnnxFolder { root, .. } = folder;
    Err(EmbedError::Unavailable {
        what: format!("{} from {}", spec.identity.model, root.display()),
        source: no_runtime(runtime),
    })
}

fn native(spec: &Spec, folder: &ModelFolder, precision: Precision) -> Opened {
    let encoder = NativeEncoder::open_folder(&spec.identity.model, folder, precision)?;
    Ok(Arc::new(encoder))
}

#[cfg(test)]
mod tests;
