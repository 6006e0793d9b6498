//! Embeddings from an endpoint that speaks the embeddings call of OpenAI.

mod address;
mod answer;
mod attempt;
mod key;
mod line;
mod wait;

#[cfg(test)]
mod early_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::json;

use crate::adapters::embedder::openai::attempt::{Attempt, Failure};
use crate::adapters::embedder::openai::wait::Wait;
use crate::domain::embedding::{Embedding, ModelIdentity};
use crate::ports::embedder::{EmbedError, Embedded, Embedder, Engine};

pub use crate::adapters::embedder::openai::address::identity;
pub use crate::adapters::embedder::openai::key::{KeySource, Secret};

/// The most texts of a request.
const BATCH_TEXTS: usize = 64;

/// The most requests for documents at a time.
const IN_FLIGHT: usize = 4;

/// Where an endpoint is, and how to speak to it.
#[derive(Clone)]
pub struct Endpoint {
    /// The URL of the embeddings call: absolute, `http` or `https`, without
    /// user information.
    pub url: String,
    /// The model name that is sent for documents.
    pub document_model: String,
    /// The model name that is sent for queries.
    pub query_model: String,
    /// How many numbers each vector has.
    pub dimension: usize,
    /// Whether a request names the dimension.
    pub request_dimensions: bool,
    /// Where the bearer token comes from, if there is one.
    pub key: Option<KeySource>,
    /// Bounds one attempt, its body included.
    pub timeout: Duration,
    /// The most characters of a text that are sent.
    pub max_input_chars: usize,
    /// How often a failed request is sent again.
    pub max_retries: u32,
    /// Proxies to go through; never to an endpoint on this machine.
    pub proxies: Proxies,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("url", &address::shown(&self.url))
            .field("document_model", &self.document_model)
            .field("query_model", &self.query_model)
            .field("dimension", &self.dimension)
            .finish_non_exhaustive()
    }
}

/// Proxies by what goes through them, as the surroundings name them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `http`.
    pub http: Option<String>,
    /// For `https`.
    pub https: Option<String>,
    /// For either that has none of its own.
    pub all: Option<String>,
    /// Hosts that are reached directly, separated by commas.
    pub none_for: Option<String>,
}

impl fmt::Debug for Proxies {
    /// The address of a proxy may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Proxies").finish_non_exhaustive()
    }
}

/// An embedder behind an OpenAI-compatible endpoint.
///
/// A call for documents sends requests of at most 64 texts, up to four at a
/// time. What may pass by itself is tried again; between attempts nothing is
/// held, so that a query is sent while documents wait. A vector is scaled to
/// length 1.
///
/// Nothing is sent before the first text is to be embedded.
pub struct OpenAiEmbedder {
    identity: ModelIdentity,
    endpoint: Endpoint,
    attempt: Arc<Attempt>,
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenAiEmbedder")
            .field("identity", &self.identity)
            .field("endpoint", &self.attempt.what())
            .finish_non_exhaustive()
    }
}

impl OpenAiEmbedder {
    /// Prepares to speak to an endpoint, and sends nothing.
    ///
    /// # Errors
    ///
    /// [`EmbedError::Remote`] if the proxy cannot be used.
    pub fn new(endpoint: Endpoint) -> Result<Self, EmbedError> {
        let Endpoint { document_model, query_model, dimension, .. } = &endpoint;
        let identity = identity(document_model, query_model, *dimension);
        let attempt = Arc::new(Attempt::new(&endpoint)?);
        if endpoint.key.is_some() && address::sends_in_the_clear(&endpoint.url) {
            tracing::warn!(
                endpoint = attempt.what(),
                "the API key is sent over plain http to another machine; use https"
            );
        }
        Ok(Self { identity, endpoint, attempt })
    }

    /// Sends one batch, again and again if that may help.
    async fn send(&self, model: &str, texts: &[String]) -> Result<Vec<Embedding>, Refusal> {
        let cut = |text: &String| {
            let end = text.char_indices().nth(self.endpoint.max_input_chars);
            text[..end.map_or(text.len(), |(end, _)| end)].to_owned()
        };
        let inputs: Vec<String> = texts.iter().map(cut).collect();
        let mut body = json!({ "model": model, "input": inputs });
        if self.endpoint.request_dimensions {
            body["dimensions"] = json!(self.endpoint.dimension);
        }
        let body: Arc<[u8]> = body.to_string().into_bytes().into();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match self.attempt.make(Arc::clone(&body), texts.len()).await {
                Ok(embeddings) => return Ok(embeddings),
                Err(failure) => failure,
            };
            let wait = match &failure {
                Failure::Refused { status } => return Err(Refusal::Input { status: *status }),
                Failure::Passing { retry_after, .. } if attempts <= self.endpoint.max_retries => {
                    Wait::before_attempt(attempts, *retry_after)
                }
                Failure::Passing { .. } | Failure::Stop { .. } => None,
            };
            let Some(wait) = wait else {
                return Err(Refusal::Stop(self.error(failure, attempts).await));
            };
            tracing::warn!(
                endpoint = self.attempt.what(),
                cause = failure.to_string(),
                attempt = attempts,
                wait_ms = wait.as_millis(),
                "the embedding endpoint did not answer; trying again"
            );
            tokio::time::sleep(wait).await;
        }
    }

    /// Some endpoints quote the key that they refuse.
    fn without_key(&self, answer: &str) -> String {
        match &self.endpoint.key {
            Some(KeySource::Given(key)) if !key.reveal().is_empty() => {
                answer.replace(key.reveal(), "(the API key)")
            }
            _ => answer.to_owned(),
        }
    }

    async fn error(&self, failure: Failure, attempts: u32) -> EmbedError {
        let mut reason = failure.to_string();
        // An endpoint that is not tried again answers as it is.
        if self.endpoint.max_retries > 0 && matches!(failure, Failure::Passing { .. }) {
            reason = format!("{reason} (gave up after {attempts} attempt(s))");
        }
        EmbedError::Remote {
            what: self.attempt.what().to_owned(),
            reason,
            answer: failure.into_answer().await.map(|answer| self.without_key(&answer)),
        }
    }
}

/// Why a batch has no embeddings.
enum Refusal {
    /// The endpoint does not take one of the texts.
    Input { status: u16 },
    /// No text can be embedded now.
    Stop(EmbedError),
}

impl Refusal {
    fn into_error(self, accepted_others: bool) -> EmbedError {
        match self {
            Self::Input { status } => {
                EmbedError::Refused { reason: format!("HTTP {status}"), accepted_others }
            }
            Self::Stop(error) => error,
        }
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn engine(&self) -> Engine {
        Engine { name: "endpoint", precision: "as sent" }
    }

    fn window_tokens(&self) -> Option<usize> {
        None
    }

    async fn exceed_window(&self, texts: &[String]) -> Result<Vec<bool>, EmbedError> {
        Ok(vec![false; texts.len()])
    }

    async fn embed_documents(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        let accepted = AtomicBool::new(false);
        let send = async |batch: &[String]| {
            let embeddings = self.send(&self.endpoint.document_model, batch).await?;
            accepted.store(true, Ordering::Relaxed);
            Ok(embeddings)
        };
        let batches: Result<Vec<Vec<Embedding>>, Refusal> =
            stream::iter(texts.chunks(BATCH_TEXTS).map(send))
                .buffered(IN_FLIGHT)
                .try_collect()
                .await;
        match batches {
            Ok(batches) => Ok(batches.into_iter().flatten().collect::<Vec<_>>().into()),
            Err(refusal) => Err(refusal.into_error(accepted.load(Ordering::Relaxed))),
        }
    }

    async fn embed_query(&self, text: &str) -> Result<Embedding, EmbedError> {
        let texts = [text.to_owned()];
        let embeddings = self.send(&self.endpoint.query_model, &texts).await;
        let embeddings = embeddings.map_err(|refusal| refusal.into_error(false))?;
        embeddings.into_iter().next().ok_or_else(|| EmbedError::WrongShape {
            reason: "no embedding for the query".to_owned(),
        })
    }
}
