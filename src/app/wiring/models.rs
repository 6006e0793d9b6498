//! What can be done with the models of this machine: tell which there are, get
//! more, check and measure them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adapters::embedder::local::{self, LocalModel, RunAs};
use crate::adapters::embedder::measure::{Speed, measure};
use crate::adapters::model::catalogue::{self, ModelEntry, RerankerEntry, Sources};
use crate::adapters::model::encoder::{ModelFolder, Precision};
use crate::adapters::model::folder::{FolderModel, SCHEME, sha256_of};
use crate::adapters::model::hub;
use crate::adapters::model::locate;
use crate::adapters::model::offline_way;
use crate::adapters::model::shelf::{self, Staged};
use crate::adapters::reranker;
use crate::adapters::reranker::native::NativeReranker;
use crate::app::config::Config;
use crate::app::error::{AppError, chain};
use crate::app::wiring::{Surroundings, local_model};
use crate::ports::embedder::{Embedder, Engine, EngineChoice, PrecisionChoice};
use crate::ports::reranker::Reranker as _;

pub use crate::adapters::model::shelf::{Checked, Format, Holding, Proof};

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It embeds.
    Embedding,
    /// It scores a query and a passage together.
    Reranker,
}

/// A known model, and what of it is here.
#[derive(Clone, Debug)]
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub role: Role,
    /// How many numbers an embedding has; none for a reranker.
    pub dimension: Option<usize>,
    /// The languages that it was trained for.
    pub languages: &'static str,
    /// The licence of its weights.
    pub licence: &'static str,
    /// About how much a download takes.
    pub download_mb: u32,
    /// Whether the configuration names it.
    pub configured: bool,
    /// What is here.
    pub holdings: Vec<Holding>,
    /// The engine that would run what is here.
    pub engine: Option<&'static str>,
}

/// A model of the catalogue, whatever it does.
#[derive(Clone, Copy)]
enum Known {
    Model(&'static ModelEntry),
    Reranker(&'static RerankerEntry),
}

impl Known {
    fn find(name: &str) -> Result<Self, AppError> {
        if let Some(entry) = catalogue::find_reranker(name) {
            return Ok(Self::Reranker(entry));
        }
        let found = catalogue::find(name).map(Self::Model);
        found.map_err(|error| {
            let rerankers: Vec<&str> = catalogue::rerankers().iter().map(|e| e.name).collect();
            AppError::Invalid(format!("{error}; rerankers: {}", rerankers.join(", ")))
        })
    }

    fn all() -> impl Iterator<Item = Self> {
        let models = catalogue::entries().iter().map(Self::Model);
        models.chain(catalogue::rerankers().iter().map(Self::Reranker))
    }

    /// Whether the native engine knows its kind, whatever its format.
    fn is_native(self) -> bool {
        match self {
            Self::Model(entry) => !entry.quantised,
            Self::Reranker(entry) => entry.safetensors.is_some(),
        }
    }

    fn sources(self) -> Sources {
        match self {
            Self::Model(entry) => entry.into(),
            Self::Reranker(entry) => entry.into(),
        }
    }
}

/// Every known model, those that embed first.
pub fn list(config: &Config, surroundings: &Surroundings) -> Vec<Card> {
    let runnable = !locate::runtime_libraries(&surroundings.models.onnx_runtime).is_empty();
    Known::all()
        .map(|known| {
            let sources = known.sources();
            let holdings = shelf::holdings(sources, &surroundings.models);
            let has = |format| holdings.iter().any(|holding| holding.format == format);
            let native = has(Format::Safetensors) || (has(Format::Onnx) && known.is_native());
            let engine = match (native, has(Format::Onnx) && runnable) {
                (true, _) => Some("native"),
                (false, true) => Some("onnx"),
                (false, false) => None,
            };
            let (name, holdings) = (sources.name, holdings);
            match known {
                Known::Model(entry) => Card {
                    name,
                    role: Role::Embedding,
                    dimension: Some(entry.dimension),
                    languages: entry.languages,
                    licence: entry.licence,
                    download_mb: entry.download_mb,
                    configured: config.endpoint.is_none() && config.model == name,
                    holdings,
                    engine,
                },
                Known::Reranker(entry) => Card {
                    name,
                    role: Role::Reranker,
                    dimension: None,
                    languages: entry.languages,
                    licence: entry.licence,
                    download_mb: entry.download_mb,
                    configured: config.reranker == name,
                    holdings,
                    engine,
                },
            }
        })
        .collect()
}

/// What would embed with this configuration, for a person to read; loads
/// nothing.
pub fn engine_of(config: &Config, surroundings: &Surroundings) -> String {
    if config.endpoint.is_some() {
        return "an OpenAI-compatible endpoint".to_owned();
    }
    let precision = match config.precision {
        PrecisionChoice::Auto => "auto",
        PrecisionChoice::F32 => "f32",
        PrecisionChoice::Int8 => "int8",
    };
    let engine = local_model(&config.model)
        .map(|model| model.engine_for(config.engine, &surroundings.models));
    match engine {
        Ok(Some(engine)) => format!("{engine}, precision {precision}"),
        Ok(None) => format!("none yet, {} is not here", config.model),
        Err(error) => chain(&error),
    }
}

/// Where a model lies that is here.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no such model, or if it is not here.
pub fn path(name: &str, surroundings: &Surroundings) -> Result<PathBuf, AppError> {
    if name.starts_with(SCHEME)
        && let LocalModel::Folder(folder) = local_model(name)?
    {
        return Ok(folder.root.clone());
    }
    let sources = Known::find(name)?.sources();
    let first = shelf::holdings(sources, &surroundings.models).into_iter().next();
    first.map(|holding| holding.root).ok_or_else(|| {
        let way = offline_way(&sources, &surroundings.models);
        AppError::Invalid(format!("{name} is not here: `groove models pull {name}` gets it{way}"))
    })
}

/// What a download came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Where the model lies.
    pub root: PathBuf,
    /// Whether it was here before.
    pub was_here: bool,
    /// What is missing to run it.
    pub missing: Option<String>,
}

/// Downloads a model, unless it is here.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no such model or it cannot be had, naming
/// host, cause and the way without a network.
pub async fn pull(
    name: &str,
    engine: EngineChoice,
    surroundings: &Surroundings,
) -> Result<Pulled, AppError> {
    let places = &surroundings.models;
    let known = Known::find(name)?;
    let sources = known.sources();
    let safetensors = sources.safetensors.filter(|_| engine != EngineChoice::Onnx);
    let wanted = if safetensors.is_some() { Format::Safetensors } else { Format::Onnx };
    let source = safetensors.or(sources.onnx.first().copied());
    let runnable = !locate::runtime_libraries(&places.onnx_runtime).is_empty();
    let native = known.is_native() && engine != EngineChoice::Onnx;
    let missing = (wanted == Format::Onnx && !runnable && !native)
        .then(|| crate::adapters::model::runtime::no_runtime(&places.onnx_runtime).to_string());
    // Whatever can be run is as good as what would be fetched.
    let usable = |format: Format| match format {
        Format::Safetensors => engine != EngineChoice::Onnx,
        Format::Onnx => engine == EngineChoice::Onnx || native || runnable,
    };
    let here = || shelf::holdings(sources, places).into_iter().find(|held| usable(held.format));
    if let Some(held) = here() {
        return Ok(Pulled { root: held.root, was_here: true, missing });
    }
    let failed = |cause: &(dyn std::error::Error + 'static)| {
        let way = offline_way(&sources, places);
        AppError::Invalid(format!("{name} cannot be fetched: {}{way}", chain(cause)))
    };
    let nowhere = || AppError::Invalid("no folder is known to download it to".to_owned());
    let source = source.ok_or_else(nowhere)?;
    let cache = places.hub_caches.first().cloned().ok_or_else(nowhere)?;
    let root = hub::download_aside(&surroundings.hub, source, cache)
        .await
        .map_err(|error| failed(&*error))?;
    Ok(Pulled { root, was_here: false, missing })
}

/// What a model did when it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its name.
    pub name: String,
    /// The format that was tried.
    pub format: Format,
    /// The folder.
    pub root: PathBuf,
    /// Its weights and their checksums.
    pub files: Vec<Checked>,
    /// What ran it; or why it does not work.
    pub ran: Result<Engine, String>,
}

impl Trial {
    /// Whether nothing is wrong with it.
    pub fn is_fine(&self) -> bool {
        self.ran.is_ok() && !self.files.iter().any(|file| matches!(file.proof, Proof::Mismatch(_)))
    }
}

/// Checks what is here of one model or of all: the checksums, then whether it
/// loads and works.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no such model, or if it is not here.
pub async fn verify(
    name: Option<&str>,
    surroundings: &Surroundings,
) -> Result<Vec<Trial>, AppError> {
    let wanted: Vec<Known> = match name {
        Some(name) => {
            path(name, surroundings)?;
            vec![Known::find(name)?]
        }
        None => Known::all().collect(),
    };
    let mut trials = Vec::new();
    for known in wanted {
        let sources = known.sources();
        for holding in shelf::holdings(sources, &surroundings.models) {
            trials.push(try_one(known, holding, surroundings).await);
        }
    }
    Ok(trials)
}

async fn try_one(known: Known, holding: Holding, surroundings: &Surroundings) -> Trial {
    let sources = known.sources();
    let name = sources.name.to_owned();
    let shared = holding.clone();
    let files = tokio::task::spawn_blocking(move || shelf::check(sources, &shared)).await;
    let (format, root) = (holding.format, holding.root);
    let files = match files {
        Ok(Ok(files)) => files,
        Ok(Err(error)) => {
            return Trial { name, format, root, files: Vec::new(), ran: Err(chain(&error)) };
        }
        Err(error) => {
            return Trial { name, format, root, files: Vec::new(), ran: Err(chain(&error)) };
        }
    };
    // Weights that are not what they should be are not loaded.
    if files.iter().any(|file| matches!(file.proof, Proof::Mismatch(_))) {
        let ran = Err("its weights are not what they should be".to_owned());
        return Trial { name, format, root, files, ran };
    }
    let ran = match known {
        Known::Model(entry) => {
            let places = &surroundings.models;
            let runnable = !locate::runtime_libraries(&places.onnx_runtime).is_empty();
            // Without its library, the native engine reads the weights of ONNX.
            let engine = match format {
                Format::Onnx if runnable || entry.quantised => EngineChoice::Onnx,
                _ => EngineChoice::Native,
            };
            let run_as = RunAs { engine, precision: PrecisionChoice::Auto };
            embed_once(&LocalModel::Known(entry), run_as, surroundings).await
        }
        Known::Reranker(entry) => score_once(entry, surroundings).await,
    };
    Trial { name, format, root, files, ran }
}

const SENTENCE: &str = "The harbour master writes the tide tables by hand.";

/// Loads a model and embeds a sentence; the type of an embedding sees to it
/// that it is finite and of length 1.
async fn embed_once(
    model: &LocalModel,
    run_as: RunAs,
    surroundings: &Surroundings,
) -> Result<Engine, String> {
    let opened = local::open(model, run_as, &surroundings.models, &surroundings.hub).await;
    let embedder = opened.map_err(|error| chain(&error))?;
    let query = embedder.embed_query(SENTENCE).await.map_err(|error| chain(&error))?;
    let documents = embedder.embed_documents(&[SENTENCE.to_owned()]).await;
    let documents = documents.map_err(|error| chain(&error))?;
    let expected = model.identity().dimension;
    for embedding in documents.embeddings.iter().chain([&query]) {
        if embedding.dimension() != expected {
            return Err(format!("{} numbers instead of {expected}", embedding.dimension()));
        }
    }
    Ok(embedder.engine())
}

async fn score_once(
    entry: &'static RerankerEntry,
    surroundings: &Surroundings,
) -> Result<Engine, String> {
    let opened = reranker::local::open(entry, &surroundings.models, &surroundings.hub).await;
    let ready = opened.map_err(|error| chain(&error))?;
    let scores = ready.reranker.score("who writes the tide tables", &[SENTENCE.to_owned()]).await;
    scores.map_err(|error| chain(&error))?;
    Ok(ready.engine)
}

/// A model that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its name.
    pub name: String,
    /// Where it lies now.
    pub root: PathBuf,
    /// How a configuration names it.
    pub model_key: String,
    /// What ran it; or why it could not be tried here.
    pub ran: Result<Engine, String>,
}

/// Takes a model in from a folder or an archive: checks that it works before it
/// puts it in its place.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no model in it, if it does not work, or if
/// there is no name for it.
pub async fn import(
    from: &Path,
    name: Option<&str>,
    surroundings: &Surroundings,
) -> Result<Imported, AppError> {
    let invalid = |error: &(dyn std::error::Error + 'static)| AppError::Invalid(chain(error));
    let models_dir = surroundings.models.models_dir.clone().ok_or_else(|| {
        AppError::Invalid("no models directory is known; GROOVE_MODELS_DIR names one".to_owned())
    })?;
    let from = surroundings.working_dir.join(from);
    let of_archive = stem(&from);
    let staged = tokio::task::spawn_blocking(move || Staged::new(&from, &models_dir)).await;
    let staged = staged.map_err(|error| invalid(&error))?.map_err(|error| invalid(&error))?;
    let is_known = |name: &String| Known::find(name).is_ok();
    let suggested = || staged.suggested_name().filter(is_known).or(of_archive.filter(is_known));
    let name = name.map(str::to_owned).or_else(suggested).ok_or_else(|| {
        AppError::Invalid(
            "it is not called like a known model (`groove models list`); say with --name which \
             it is, or a name of your own"
                .to_owned(),
        )
    })?;
    let ran = try_staged(&name, staged.root(), surroundings).await?;
    let put = name.clone();
    let root = tokio::task::spawn_blocking(move || staged.put(&put)).await;
    let root = root.map_err(|error| invalid(&error))?.map_err(|error| invalid(&error))?;
    let model_key = if is_known(&name) { name.clone() } else { format!("dir:{}", root.display()) };
    Ok(Imported { name, root, model_key, ran })
}

/// The name of a folder or an archive, without what tells the kind of archive.
fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let endings = [".tar.gz", ".tgz", ".tar", ".zip", ".whl"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
    Some(stem.unwrap_or(name).to_owned())
}

/// Runs a model before it is in its place. Without an ONNX Runtime a model as
/// ONNX is taken in untried.
async fn try_staged(
    name: &str,
    root: &Path,
    surroundings: &Surroundings,
) -> Result<Result<Engine, String>, AppError> {
    let refused = |reason: String| AppError::Invalid(format!("{name} does not work: {reason}"));
    if let Some(entry) = catalogue::find_reranker(name) {
        if entry.safetensors.is_none() {
            return Ok(Err("a reranker; `groove models verify` tries it".to_owned()));
        }
        let folder = ModelFolder::of(name, root);
        let (name, opening) = (name.to_owned(), folder);
        let opened = tokio::task::spawn_blocking(move || {
            NativeReranker::open(&name, &opening, Precision::F32)
        });
        let opened = opened.await.map_err(|error| refused(error.to_string()))?;
        let reranker = opened.map_err(|error| refused(chain(&error)))?;
        let scores = reranker.score("who writes the tide tables", &[SENTENCE.to_owned()]).await;
        scores.map_err(|error| refused(chain(&error)))?;
        return Ok(Ok(Engine { name: "native", precision: "f32" }));
    }
    let folder = FolderModel::read(&root.to_string_lossy());
    let folder = folder.map_err(|error| refused(chain(&error)))?;
    if let Ok(entry) = catalogue::find(name)
        && entry.dimension != folder.identity.dimension
    {
        let (expected, found) = (entry.dimension, folder.identity.dimension);
        return Err(refused(format!("its embeddings have {found} numbers, not {expected}")));
    }
    let runnable = !locate::runtime_libraries(&surroundings.models.onnx_runtime).is_empty();
    let untried = !folder.native && !runnable;
    if let Ok(entry) = catalogue::find(name)
        && let Some(published) = entry.safetensors.and_then(|source| source.sha256)
        && folder.native
    {
        let weights = root.join("model.safetensors");
        let found = tokio::task::spawn_blocking(move || sha256_of(&weights)).await;
        let found = found.map_err(|error| refused(error.to_string()))?;
        let found = found.map_err(|error| refused(error.to_string()))?;
        if found != published {
            return Err(refused(format!(
                "the SHA-256 of its weights is {found}, and that of the published ones is \
                 {published}; if it is another edition, give it a name of your own with --name"
            )));
        }
    }
    let model = LocalModel::Folder(Arc::new(folder));
    match embed_once(&model, RunAs::default(), surroundings).await {
        // It may be fine where there is an ONNX Runtime.
        Err(why) if untried => Ok(Err(why)),
        ran => ran.map(Ok).map_err(refused),
    }
}

/// What a model on an engine was measured at.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// The model.
    pub name: String,
    /// What ran it, with its precision.
    pub engine: Engine,
    /// The speed; or why it could not be measured.
    pub speed: Result<Speed, String>,
}

/// Measures one model or all that are here, on every engine that can run them.
///
/// # Errors
///
/// [`AppError::Invalid`] if there is no such model, or if it is not here.
pub async fn bench(
    name: Option<&str>,
    surroundings: &Surroundings,
) -> Result<Vec<Benchmark>, AppError> {
    let wanted: Vec<LocalModel> = match name {
        Some(name) => {
            path(name, surroundings)?;
            vec![local_model(name)?]
        }
        None => catalogue::entries().iter().map(LocalModel::Known).collect(),
    };
    let runnable = !locate::runtime_libraries(&surroundings.models.onnx_runtime).is_empty();
    let mut measured = Vec::new();
    for model in wanted {
        let name = match &model {
            LocalModel::Known(entry) => entry.name.to_owned(),
            LocalModel::Folder(_) => model.identity().model,
        };
        let native = [PrecisionChoice::F32, PrecisionChoice::Int8]
            .map(|precision| RunAs { engine: EngineChoice::Native, precision });
        let onnx = RunAs { engine: EngineChoice::Onnx, precision: PrecisionChoice::Auto };
        for run_as in native.into_iter().chain(runnable.then_some(onnx)) {
            if model.engine_for(run_as.engine, &surroundings.models).is_none() {
                continue;
            }
            let asked = match (run_as.engine, run_as.precision) {
                (EngineChoice::Onnx, _) => Engine { name: "onnx", precision: "f32" },
                (_, PrecisionChoice::Int8) => Engine { name: "native", precision: "int8" },
                _ => Engine { name: "native", precision: "f32" },
            };
            let opened = local::open(&model, run_as, &surroundings.models, &surroundings.hub).await;
            let (engine, speed) = match opened {
                Ok(embedder) => (embedder.engine(), speed_of(&*embedder).await),
                Err(error) => (asked, Err(chain(&error))),
            };
            measured.push(Benchmark { name: name.clone(), engine, speed });
        }
    }
    Ok(measured)
}

async fn speed_of(embedder: &dyn Embedder) -> Result<Speed, String> {
    measure(embedder).await.map_err(|error| chain(&error))
}
