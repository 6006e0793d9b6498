//! Cross-encoders as ONNX: FastEmbed over an ONNX Runtime that is found at run
//! time.

use std::fmt;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use fastembed::{
    AutoDevicePolicy, OnnxSource, RerankInitOptionsUserDefined, TextRerank, TokenizerFiles,
    UserDefinedRerankingModel,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use ort::environment::Environment;
use tokio::sync::Semaphore;

use crate::adapters::model::locate::OnnxFolder;
use crate::adapters::model::onnx::{
    MOST_SESSIONS, SHARED_FROM_BYTES, data_folder, size_bytes, tokenizer_files,
};
use crate::adapters::model::runtime::environment;
use crate::ports::Cause;
use crate::ports::reranker::{RerankError, Reranker};

/// A cross-encoder, run by a few sessions. Each takes one pair at a time: pairs
/// of different lengths in one batch would have to be padded, which costs more
/// than a batch gains on a processor.
pub struct FastEmbedReranker {
    sessions: Arc<Sessions>,
    parallel: usize,
}

impl FastEmbedReranker {
    /// Opens a cross-encoder; blocks while its weights are read.
    ///
    /// - `model`: its name.
    /// - `window_tokens`: the most tokens of a query and a passage together.
    /// - `runtime`: libraries of ONNX Runtime to try, or folders that hold one.
    /// - `parallel`: how many processor cores it may use.
    ///
    /// # Errors
    ///
    /// [`RerankError::Unavailable`] if no library works, or if the files cannot
    /// be read or are no cross-encoder.
    pub fn open(
        model: &str,
        folder: &OnnxFolder,
        window_tokens: usize,
        runtime: &[PathBuf],
        parallel: NonZeroUsize,
    ) -> Result<Self, RerankError> {
        let what = format!("{model} from {}", folder.root.display());
        let unavailable = |source: Cause| RerankError::Unavailable { model: what.clone(), source };
        let environment = environment(runtime).map_err(|error| unavailable(error.into()))?;
        let shared = size_bytes(folder).map_err(&unavailable)? > SHARED_FROM_BYTES;
        let recipe = Recipe {
            environment,
            file: runnable_file(folder).map_err(|error| unavailable(error.into()))?,
            tokenizer: tokenizer_files(&folder.root, window_tokens).map_err(&unavailable)?,
            window_tokens,
            intra_threads: if shared { parallel.get() } else { 1 },
        };
        let first = recipe.open().map_err(&unavailable)?;
        let parallel = if shared { 1 } else { parallel.get().min(MOST_SESSIONS) };
        let sessions = Sessions {
            model: model.to_owned(),
            recipe,
            idle: Mutex::new(vec![first]),
            permits: Arc::new(Semaphore::new(parallel)),
        };
        Ok(Self { sessions: Arc::new(sessions), parallel })
    }
}

#[async_trait]
impl Reranker for FastEmbedReranker {
    fn model(&self) -> &str {
        &self.sessions.model
    }

    async fn score(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let query: Arc<str> = query.into();
        stream::iter(passages.to_vec())
            .map(|passage| self.sessions.score(Arc::clone(&query), passage))
            .buffered(self.parallel)
            .try_collect()
            .await
    }
}

impl fmt::Debug for FastEmbedReranker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("FastEmbedReranker")
            .field("model", &self.sessions.model)
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

/// Sessions of one model, opened when they are first needed.
struct Sessions {
    model: String,
    recipe: Recipe,
    idle: Mutex<Vec<TextRerank>>,
    permits: Arc<Semaphore>,
}

impl Sessions {
    async fn score(self: &Arc<Self>, query: Arc<str>, passage: String) -> Result<f32, RerankError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|error| self.unavailable(error.into()))?;
        let sessions = Arc::clone(self);
        let run = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            sessions.score_now(&query, &passage)
        });
        run.await.map_err(|error| self.unavailable(error.into()))?
    }

    /// A session that panics is lost, and another opened in its place.
    fn score_now(&self, query: &str, passage: &str) -> Result<f32, RerankError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut session = match idle {
            Some(session) => session,
            None => self.recipe.open().map_err(|error| self.unavailable(error))?,
        };
        let ranked = session.rerank(query, [passage], false, Some(1));
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        let ranked = ranked.map_err(|error| self.unavailable(error.into()))?;
        match ranked[..] {
            [ref only] if only.score.is_finite() => Ok(only.score),
            [_] => Err(self.unavailable("it answered with a score that is no number".into())),
            _ => Err(RerankError::WrongShape { asked: 1, answered: ranked.len() }),
        }
    }

    fn unavailable(&self, source: Cause) -> RerankError {
        RerankError::Unavailable { model: self.model.clone(), source }
    }
}

/// All that opening a session takes.
struct Recipe {
    environment: Environment,
    file: PathBuf,
    tokenizer: TokenizerFiles,
    window_tokens: usize,
    intra_threads: usize,
}

impl Recipe {
    fn open(&self) -> Result<TextRerank, Cause> {
        let source = OnnxSource::File(self.file.clone());
        let model = UserDefinedRerankingModel::new(source, self.tokenizer.clone());
        let options = RerankInitOptionsUserDefined::new()
            .with_environment(self.environment.clone())
            .with_max_length(self.window_tokens)
            .with_intra_threads(self.intra_threads)
            .with_auto_device(AutoDevicePolicy::PreferCPU)
            .with_session_config("session.intra_op.allow_spinning", "0");
        Ok(TextRerank::try_new_from_user_defined(model, options)?)
    }
}

/// The model's file at a place from which ONNX Runtime reads its data, too. It
/// refuses links that lead out of the folder, as those of a cache do; so such a
/// model gets a folder of hard links beside its snapshots.
fn runnable_file(folder: &OnnxFolder) -> io::Result<PathBuf> {
    if folder.data.is_empty() || data_folder(folder).is_some() {
        return Ok(folder.model.clone());
    }
    let missing = || io::Error::other("the cache has another layout than the hub's");
    let revision = folder.root.file_name().ok_or_else(missing)?;
    let repository = folder.root.parent().and_then(Path::parent).ok_or_else(missing)?;
    let linked = repository.join("groove-linked").join(revision);
    fs::create_dir_all(&linked)?;
    for path in folder.data.iter().chain([&folder.model]) {
        let target = linked.join(path.file_name().ok_or_else(missing)?);
        let real = fs::canonicalize(path)?;
        let size = |path: &Path| fs::metadata(path).map(|metadata| metadata.len());
        if size(&target).ok() == size(&real).ok() {
            continue;
        }
        match fs::remove_file(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::hard_link(real, &target)?,
        }
    }
    Ok(linked.join(folder.model.file_name().ok_or_else(missing)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    // CFG-96
    #[cfg(unix)]
    #[test]
    fn data_behind_links_of_a_cache_is_linked_to_where_it_may_be_read() {
        let repository = tempfile::tempdir().unwrap();
        let at = |name: &str| repository.path().join(name);
        fs::create_dir_all(at("snapshots/1")).unwrap();
        fs::create_dir_all(at("blobs")).unwrap();
        for name in ["model.onnx", "model.onnx.data"] {
            fs::write(at("blobs").join(name), name).unwrap();
            std::os::unix::fs::symlink(at("blobs").join(name), at("snapshots/1").join(name))
                .unwrap();
        }
        let folder = OnnxFolder {
            root: at("snapshots/1"),
            model: at("snapshots/1/model.onnx"),
            data: vec![at("snapshots/1/model.onnx.data")],
        };
        for _ in 0..2 {
            let file = runnable_file(&folder).unwrap();
            let data = file.with_file_name("model.onnx.data");
            assert_eq!(fs::read_to_string(&file).unwrap(), "model.onnx");
            assert!(!fs::symlink_metadata(&data).unwrap().is_symlink());
            assert_eq!(fs::canonicalize(&data).unwrap().parent(), file.parent());
        }
        let alone = OnnxFolder { data: Vec::new(), ..folder.clone() };
        assert_eq!(runnable_file(&alone).unwrap(), alone.model);
    }
}
