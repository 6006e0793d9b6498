//! The models, each loaded once and only when it is needed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout_at};

use crate::domain::embedding::ModelIdentity;
use crate::domain::evidence::is_mostly_latin;
use crate::ports::chain;
use crate::ports::embedder::{EmbedError, Embedder};
use crate::ports::reranker::{RerankError, Reranker};

/// Loads what a port is about.
pub type Load<T, E> =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Arc<T>, E>> + Send>> + Send + Sync>;

/// Something that takes long to load: loaded when it is first asked for, by
/// whoever asks first.
struct OnDemand<T: ?Sized, E> {
    load: Load<T, E>,
    loaded: OnceLock<Arc<T>>,
    loading: Mutex<()>,
}

impl<T: ?Sized, E> OnDemand<T, E> {
    fn new(load: Load<T, E>) -> Self {
        Self { load, loaded: OnceLock::new(), loading: Mutex::new(()) }
    }

    async fn get(&self) -> Result<&Arc<T>, E> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let _one_loads = self.loading.lock().await;
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = (self.load)().await?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// A model that is known by its identity from the start and loaded when it is
/// first asked to embed, or earlier.
pub struct Model {
    identity: ModelIdentity,
    /// How it is asked for.
    name: String,
    is_remote: bool,
    /// Whether it was made for texts in Latin letters alone.
    latin_only: bool,
    embedder: OnDemand<dyn Embedder, EmbedError>,
}

impl Model {
    /// Describes a model of this machine without loading it.
    pub fn new(identity: ModelIdentity, load: Load<dyn Embedder, EmbedError>) -> Self {
        let expected = identity.clone();
        let checked = move || {
            let (loading, expected) = (load(), expected.clone());
            let checked = async move {
                let embedder = loading.await?;
                check_loaded(&expected, embedder.identity())?;
                Ok(embedder)
            };
            Box::pin(checked) as Pin<Box<dyn Future<Output = _> + Send>>
        };
        let name = identity.model.clone();
        let embedder = OnDemand::new(Box::new(checked));
        Self { identity, name, is_remote: false, latin_only: false, embedder }
    }

    /// The same under the name that it is asked for by, where an index records
    /// another one.
    #[must_use]
    pub fn asked_for_as(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// The same, known to have been made for texts in Latin letters alone.
    #[must_use]
    pub fn for_latin_letters(self) -> Self {
        Self { latin_only: true, ..self }
    }

    /// Whether the model can read a text at all, as far as its script tells.
    pub fn reads(&self, text: &str) -> bool {
        !self.latin_only || is_mostly_latin(text)
    }

    /// How to ask for it with `--model`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Describes a model that is reached over a network, without asking it.
    pub fn remote(identity: ModelIdentity, load: Load<dyn Embedder, EmbedError>) -> Self {
        Self { is_remote: true, ..Self::new(identity, load) }
    }

    /// Whether the model is reached over a network, so that only a request
    /// tells whether it works.
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// What an index records of the model.
    pub fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    /// The model, if it is loaded.
    pub fn if_loaded(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.loaded.get()
    }

    /// The model; loads it if nobody has, waits if somebody does.
    ///
    /// # Errors
    ///
    /// What loading failed with. The next call tries again.
    pub async fn get(&self) -> Result<&Arc<dyn Embedder>, EmbedError> {
        self.embedder.get().await
    }
}

fn check_loaded(expected: &ModelIdentity, loaded: &ModelIdentity) -> Result<(), EmbedError> {
    if loaded == expected {
        return Ok(());
    }
    Err(EmbedError::WrongShape {
        reason: format!(
            "expected {} (dimension {}), loaded {} (dimension {})",
            expected.model, expected.dimension, loaded.model, loaded.dimension,
        ),
    })
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Model")
            .field("identity", &self.identity)
            .field("loaded", &self.if_loaded().is_some())
            .finish_non_exhaustive()
    }
}

/// A reranker that is known by its name from the start and loaded when it is
/// first wanted, or earlier.
pub struct RerankerModel {
    name: String,
    reranker: OnDemand<dyn Reranker, RerankError>,
    /// Held by the one run that may go on under a limit.
    turn: Arc<Mutex<()>>,
    current: Current,
}

/// The run that goes on under a limit, if one does: what its caller holds for as
/// long as it waits.
type Current = Arc<std::sync::Mutex<Option<Weak<()>>>>;

/// A run under a limit. The next one may begin when this is dropped, however the
/// run ended.
struct Run {
    current: Current,
    caller: Weak<()>,
    _turn: OwnedMutexGuard<()>,
}

impl Run {
    fn begin(turn: OwnedMutexGuard<()>, current: &Current, caller: &Arc<()>) -> Self {
        let (current, caller) = (Arc::clone(current), Arc::downgrade(caller));
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Weak::clone(&caller));
        Self { current, caller, _turn: turn }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl RerankerModel {
    /// Describes a reranker without loading it.
    pub fn new(name: &str, load: Load<dyn Reranker, RerankError>) -> Self {
        Self {
            name: name.to_owned(),
            reranker: OnDemand::new(load),
            turn: Arc::default(),
            current: Arc::default(),
        }
    }

    /// The name that configuration knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reranker, if it is loaded.
    pub fn if_loaded(&self) -> Option<&Arc<dyn Reranker>> {
        self.reranker.loaded.get()
    }

    /// The reranker; loads it if nobody has, waits if somebody does.
    ///
    /// # Errors
    ///
    /// What loading failed with. The next call tries again.
    pub async fn get(&self) -> Result<&Arc<dyn Reranker>, RerankError> {
        self.reranker.get().await
    }

    /// Scores passages within a time, one call after the other; waiting for its
    /// turn counts as part of the time.
    ///
    /// - Returns none if the time is over, and at once while a run goes on whose
    ///   caller has given up: what nobody waits for must not pile up.
    ///
    /// # Errors
    ///
    /// What the reranker failed with.
    pub async fn score_within(
        &self,
        limit: Duration,
        reranker: Arc<dyn Reranker>,
        query: String,
        passages: Vec<String>,
    ) -> Result<Option<Vec<f32>>, RerankError> {
        if self.is_overdue() {
            return Ok(None);
        }
        let deadline = Instant::now() + limit;
        let turn = timeout_at(deadline, Arc::clone(&self.turn).lock_owned());
        let Ok(turn) = turn.await else { return Ok(None) };
        let caller = Arc::new(());
        let run = Run::begin(turn, &self.current, &caller);
        let work = tokio::spawn(async move {
            let scores = reranker.score(&query, &passages).await;
            if let Err(error) = &scores
                && run.caller.strong_count() == 0
            {
                tracing::warn!(error = chain(error), "a reranker that was given up on failed");
            }
            scores
        });
        let ended = timeout_at(deadline, work).await;
        drop(caller);
        match ended {
            Ok(Ok(scores)) => scores.map(Some),
            Ok(Err(error)) => {
                Err(RerankError::Unavailable { model: self.name.clone(), source: error.into() })
            }
            Err(_) => Ok(None),
        }
    }

    /// Whether a run goes on that nobody waits for.
    fn is_overdue(&self) -> bool {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().is_some_and(|caller| caller.strong_count() == 0)
    }
}

impl fmt::Debug for RerankerModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RerankerModel")
            .field("name", &self.name)
            .field("loaded", &self.if_loaded().is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
