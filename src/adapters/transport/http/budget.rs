//! Bounds how long a call may take.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use crate::domain::facets::Facets;
use crate::domain::graph::{Graph, GraphRequest};
use crate::domain::search::{SearchAnswer, SearchRequest};
use crate::domain::topics::TopicGroup;
use crate::ports::transport::{
    BestPracticeAnswer, BestPracticeRequest, DocumentAnswer, DocumentRequest, Handler, Library,
    Progress, QuoteAnswer, QuoteRequest, RebuildAnswer, Refused,
};

/// A handler whose calls have a limit, index runs left out.
pub(super) struct Budget {
    inner: Arc<dyn Handler>,
    limit: Duration,
}

impl Budget {
    /// - `limit`: without end if none.
    pub(super) fn around(inner: Arc<dyn Handler>, limit: Option<Duration>) -> Arc<dyn Handler> {
        match limit {
            Some(limit) => Arc::new(Self { inner, limit }),
            None => inner,
        }
    }

    async fn bounded<T>(
        &self,
        call: impl Future<Output = Result<T, Refused>>,
    ) -> Result<T, Refused> {
        timeout(self.limit, call).await.unwrap_or_else(|_| {
            let seconds = self.limit.as_secs_f64();
            Err(Refused {
                message: format!("the call took longer than {seconds} s and was given up"),
            })
        })
    }
}

#[async_trait]
impl Handler for Budget {
    async fn search(
        &self,
        request: SearchRequest,
        progress: Arc<dyn Progress>,
    ) -> Result<SearchAnswer, Refused> {
        self.bounded(self.inner.search(request, progress)).await
    }

    async fn document(&self, request: DocumentRequest) -> Result<DocumentAnswer, Refused> {
        self.bounded(self.inner.document(request)).await
    }

    async fn graph(&self, request: GraphRequest) -> Result<Graph, Refused> {
        self.bounded(self.inner.graph(request)).await
    }

    async fn topics(&self) -> Result<Vec<TopicGroup>, Refused> {
        self.bounded(self.inner.topics()).await
    }

    async fn facets(&self) -> Result<Facets, Refused> {
        self.bounded(self.inner.facets()).await
    }

    async fn best_practice(
        &self,
        request: BestPracticeRequest,
    ) -> Result<BestPracticeAnswer, Refused> {
        self.bounded(self.inner.best_practice(request)).await
    }

    async fn verify_quote(&self, request: QuoteRequest) -> Result<QuoteAnswer, Refused> {
        self.bounded(self.inner.verify_quote(request)).await
    }

    fn asks_outside(&self) -> bool {
        self.inner.asks_outside()
    }

    /// Opening and listing resources reads files and the index, and no model.
    fn library(&self) -> Arc<dyn Library> {
        self.inner.library()
    }

    async fn rebuild(
        &self,
        force: bool,
        progress: Arc<dyn Progress>,
    ) -> Result<RebuildAnswer, Refused> {
        self.inner.rebuild(force, progress).await
    }
}
