//! Puts a model's own words in front of what it embeds.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::adapters::model::catalogue::Prefixes;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::embedder::{EmbedError, Embedded, Embedder, Engine};

/// An embedder whose model was trained with a prefix for queries and another
/// for documents. Whatever runs the model, the prefixes are the same. What splits
/// a long document repeats the prefix in front of each part.
///
/// ```
/// use std::sync::Arc;
///
/// use grooveseek::adapters::embedder::hashing::HashingEmbedder;
/// use grooveseek::adapters::embedder::prefixed::PrefixedEmbedder;
/// use grooveseek::adapters::model::catalogue::Prefixes;
/// use grooveseek::ports::embedder::Embedder;
///
/// let prefixes = Prefixes { query: "query: ".into(), document: "passage: ".into() };
/// let inner: Arc<dyn Embedder> = Arc::new(HashingEmbedder::new(64));
/// let embedder = PrefixedEmbedder::new(Arc::clone(&inner), prefixes);
/// assert_eq!(embedder.identity(), inner.identity());
/// ```
pub struct PrefixedEmbedder {
    inner: Arc<dyn Embedder>,
    prefixes: Prefixes,
}

impl PrefixedEmbedder {
    /// Wraps an embedder.
    pub fn new(inner: Arc<dyn Embedder>, prefixes: Prefixes) -> Self {
        Self { inner, prefixes }
    }

    fn of_documents(&self, texts: &[String]) -> Vec<String> {
        let prefix = &self.prefixes.document;
        texts.iter().map(|text| format!("{prefix}{text}")).collect()
    }
}

#[async_trait]
impl Embedder for PrefixedEmbedder {
    fn identity(&self) -> &ModelIdentity {
        self.inner.identity()
    }

    fn engine(&self) -> Engine {
        self.inner.engine()
    }

    fn window_tokens(&self) -> Option<usize> {
        self.inner.window_tokens()
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        self.inner.exceed_window(&self.of_documents(texts)).await
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        self.inner.embed_documents(&self.of_documents(texts)).await
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        self.inner.embed_query(&format!("{}{text}", self.prefixes.query)).await
    }
}

impl fmt::Debug for PrefixedEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PrefixedEmbedder")
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::embedder::hashing::HashingEmbedder;

    // IDX-158 IDX-159
    #[tokio::test]
    async fn queries_and_documents_each_get_their_own_prefix() {
        let inner: Arc<dyn Embedder> = Arc::new(HashingEmbedder::new(64));
        let prefixes = Prefixes { query: "ask ".into(), document: "read ".into() };
        let embedder = PrefixedEmbedder::new(Arc::clone(&inner), prefixes);
        let query = embedder.embed_query("tide").await.unwrap();
        assert_eq!(query, inner.embed_query("ask tide").await.unwrap());
        let texts = ["tide".to_owned(), "moon".to_owned()];
        let expected = ["read tide".to_owned(), "read moon".to_owned()];
        assert_eq!(
            embedder.embed_documents(&texts).await.unwrap().embeddings,
            inner.embed_documents(&expected).await.unwrap().embeddings
        );
    }
}
