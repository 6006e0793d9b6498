//! Handing out one document.

use std::fmt;
use std::sync::Arc;

use crate::app::error::AppError;
use crate::app::offer::{TEXT_CAP, cap_of};
use crate::app::registry::Registry;
use crate::domain::document::DocumentPath;
use crate::domain::format::Class;
use crate::ports::document_source::{DocumentSource, Refusal, SizeCap, SourceError};
use crate::ports::parser::ParseInput;
use crate::ports::transport::DocumentAnswer;

/// The use case of reading one document.
#[derive(Clone)]
pub struct Reader {
    /// Where the documents come from.
    pub source: Arc<dyn DocumentSource>,
    /// What reads them.
    pub registry: Registry,
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reader").field("registry", &self.registry).finish_non_exhaustive()
    }
}

impl Reader {
    /// Reads the document that has exactly this key.
    ///
    /// The index does not bound this: a document that is excluded from it, or
    /// not yet in it, is handed out as well.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] with a text that a client may see: not found,
    /// denied, too large, or not readable as its format.
    pub async fn read(&self, requested: &str) -> Result<DocumentAnswer, AppError> {
        let path = DocumentPath::new(requested).map_err(|_| not_found(requested))?;
        let reader = self.clone();
        tokio::task::spawn_blocking(move || reader.read_blocking(&path))
            .await
            .map_err(|_| AppError::Interrupted { what: "reading the document" })?
    }

    fn read_blocking(&self, path: &DocumentPath) -> Result<DocumentAnswer, AppError> {
        let parser = self.registry.parser_of(path);
        let class = parser.map_or(Class::Text, |parser| parser.format().class);
        let content = self.source.read(path, SizeCap(cap_of(class)));
        // A missing document is missing whatever its extension.
        let Some(parser) = parser else {
            return Err(match content {
                Err(SourceError::NotFound { .. }) => not_found(path.as_str()),
                Err(SourceError::Refused { reason, .. }) if !is_size(reason) => {
                    denied(path, &reason.to_string())
                }
                _ => denied(
                    path,
                    &format!("only {} can be read", self.registry.extensions().join(", ")),
                ),
            });
        };
        let content = content.map_err(|error| told(path, &error))?;
        let input = ParseInput { path, bytes: &content.bytes, exclude_headings: &[] };
        let parsed = parser
            .parse(&input)
            .map_err(|error| AppError::Invalid(format!("{path} cannot be read: {error}")))?;
        let mut answer = DocumentAnswer {
            path: path.to_string(),
            metadata: parsed.metadata,
            content: parsed.served_text,
            truncated: false,
        };
        // Text that was decoded is longer than its file, too.
        let cut = answer.content.floor_char_boundary(TEXT_CAP);
        answer.truncated = cut < answer.content.len();
        answer.content.truncate(cut);
        Ok(answer)
    }
}

fn is_size(reason: Refusal) -> bool {
    matches!(reason, Refusal::TooLarge { .. })
}

fn not_found(requested: &str) -> AppError {
    AppError::Invalid(format!(
        "document not found: {requested}; use a `path` exactly as a search result spells it"
    ))
}

fn denied(path: &DocumentPath, reason: &str) -> AppError {
    AppError::Invalid(format!("access to {path} is denied: {reason}"))
}

fn told(path: &DocumentPath, error: &SourceError) -> AppError {
    match error {
        SourceError::NotFound { .. } => not_found(path.as_str()),
        SourceError::Refused { reason: Refusal::TooLarge { size_bytes, cap_bytes }, .. } => {
            AppError::Invalid(format!(
                "{path} is too large to hand out: {size_bytes} bytes, the limit is {cap_bytes}"
            ))
        }
        SourceError::Refused { reason, .. } => denied(path, &reason.to_string()),
        SourceError::Unavailable { source, .. } => {
            tracing::warn!(%path, error = %source, "a document could not be examined");
            AppError::Invalid(format!("could not examine {path}; the server's log says why"))
        }
    }
}
