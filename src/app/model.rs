//! The embedding model, loaded once and only when it is needed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;

use crate::domain::embedding::ModelIdentity;
use crate::ports::embedder::{EmbedError, Embedder};

/// Loads the model.
pub type Load = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<Arc<dyn Embedder>, EmbedError>> + Send>>
        + Send
        + Sync,
>;

/// A model that is known by its identity from the start and loaded when it is
/// first asked to embed, or earlier.
pub struct Model {
    identity: ModelIdentity,
    is_remote: bool,
    load: Load,
    loaded: OnceLock<Arc<dyn Embedder>>,
    loading: Mutex<()>,
}

impl Model {
    /// Describes a model of this machine without loading it.
    pub fn new(identity: ModelIdentity, load: Load) -> Self {
        Self { identity, is_remote: false, load, loaded: OnceLock::new(), loading: Mutex::new(()) }
    }

    /// Describes a model that is reached over a network, without asking it.
    pub fn remote(identity: ModelIdentity, load: Load) -> Self {
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
        self.loaded.get()
    }

    /// The model; loads it if nobody has, waits if somebody does.
    ///
    /// # Errors
    ///
    /// What loading failed with. The next call tries again.
    pub async fn get(&self) -> Result<&Arc<dyn Embedder>, EmbedError> {
        if let Some(embedder) = self.loaded.get() {
            return Ok(embedder);
        }
        let _one_loads = self.loading.lock().await;
        if let Some(embedder) = self.loaded.get() {
            return Ok(embedder);
        }
        let embedder = (self.load)().await?;
        if embedder.identity() != &self.identity {
            return Err(EmbedError::WrongShape {
                reason: format!(
                    "expected {} (dimension {}), loaded {} (dimension {})",
                    self.identity.model,
                    self.identity.dimension,
                    embedder.identity().model,
                    embedder.identity().dimension,
                ),
            });
        }
        Ok(self.loaded.get_or_init(|| embedder))
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Model")
            .field("identity", &self.identity)
            .field("loaded", &self.loaded.get().is_some())
            .finish_non_exhaustive()
    }
}
