//! Handing out one document.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::app::error::AppError;
use crate::app::offer::{BINARY_CAP, TEXT_CAP, cap_of};
use crate::app::registry::Registry;
use crate::domain::document::{DocumentPath, Metadata};
use crate::domain::format::Class;
use crate::ports::document_source::{Content, DocumentSource, Refusal, SizeCap, SourceError};
use crate::ports::parser::{ParseInput, Parser};
use crate::ports::transport::{DocumentAnswer, DocumentRequest};

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

/// Why a document is not handed out; the text of each may be shown to a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::app) enum Unread {
    /// There is none of this name.
    #[error("document not found: {0}; use a `path` exactly as a search result spells it")]
    Missing(String),
    /// A link leads to it.
    #[error("{0}")]
    Linked(String),
    /// It must not, or cannot, be read.
    #[error("{0}")]
    Refused(String),
    /// Whether it could be read is not known.
    #[error("could not examine {0}; the server's log says why")]
    Unexaminable(String),
}

impl From<Unread> for AppError {
    fn from(unread: Unread) -> Self {
        Self::Invalid(unread.to_string())
    }
}

/// All of a document.
#[derive(Clone, Debug)]
pub(in crate::app) struct Whole {
    pub(in crate::app) metadata: Metadata,
    pub(in crate::app) text: String,
    size_bytes: u64,
    modified: Option<SystemTime>,
}

impl Reader {
    /// Reads the document that has exactly this key.
    ///
    /// The index does not bound this: a document that is excluded from it, or
    /// not yet in it, is handed out as well. A text that is too large to be
    /// handed out at once can be asked for in parts.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] with a text that a client may see: not found,
    /// denied, too large, or not readable as its format.
    pub async fn read(&self, request: &DocumentRequest) -> Result<DocumentAnswer, AppError> {
        let whole = self.whole(&request.path, request.is_for_a_part()).await??;
        part_of(whole, request)
    }

    /// Reads all of a document.
    ///
    /// - `in_parts`: whether it may be longer than what is handed out at once.
    pub(in crate::app) async fn whole(
        &self,
        requested: &str,
        in_parts: bool,
    ) -> Result<Result<Whole, Unread>, AppError> {
        let Ok(path) = DocumentPath::new(requested) else {
            return Ok(Err(Unread::Missing(requested.to_owned())));
        };
        let reader = self.clone();
        tokio::task::spawn_blocking(move || reader.whole_blocking(&path, in_parts))
            .await
            .map_err(|_| AppError::Interrupted { what: "reading the document" })
    }

    fn whole_blocking(&self, path: &DocumentPath, in_parts: bool) -> Result<Whole, Unread> {
        let class = self.registry.parser_of(path).map(|parser| parser.format().class);
        let cap = if in_parts { BINARY_CAP } else { cap_of(class.unwrap_or(Class::Text)) };
        let (parser, content) = self.bytes(path, cap)?;
        let input = ParseInput { path, bytes: &content.bytes, exclude_headings: &[] };
        let parsed = parser
            .parse(&input)
            .map_err(|error| Unread::Refused(format!("{path} cannot be read: {error}")))?;
        Ok(Whole {
            metadata: parsed.metadata,
            text: parsed.served_text,
            size_bytes: content.bytes.len() as u64,
            modified: content.modified,
        })
    }

    /// Reads the bytes of a document, if a parser is switched on for it.
    pub(in crate::app) fn bytes(
        &self,
        path: &DocumentPath,
        cap: u64,
    ) -> Result<(&Arc<dyn Parser>, Content), Unread> {
        let content = self.source.read(path, SizeCap(cap));
        // A missing document is missing whatever its extension.
        let Some(parser) = self.registry.parser_of(path) else {
            return Err(match content {
                Err(error @ SourceError::NotFound { .. }) => told(path, &error),
                Err(SourceError::Refused { reason, .. }) if !is_size(reason) => {
                    denied(path, reason)
                }
                _ => Unread::Refused(format!(
                    "access to {path} is denied: only {} can be read",
                    self.registry.extensions().join(", ")
                )),
            });
        };
        Ok((parser, content.map_err(|error| told(path, &error))?))
    }
}

impl DocumentRequest {
    fn is_for_a_part(&self) -> bool {
        self.offset.is_some() || self.max_bytes.is_some()
    }
}

/// Cuts what was asked for out of a document: whole characters, at least one as
/// long as there are any.
pub(in crate::app) fn part_of(
    whole: Whole,
    request: &DocumentRequest,
) -> Result<DocumentAnswer, AppError> {
    let Whole { metadata, mut text, size_bytes, modified } = whole;
    let length = text.len();
    let start = usize::try_from(request.offset.unwrap_or_default()).unwrap_or(usize::MAX);
    if start > length {
        return Err(AppError::Invalid(format!(
            "offset {start} is behind the end of {}: its text has {length} bytes",
            request.path
        )));
    }
    let start = text.floor_char_boundary(start);
    // Text that was decoded is longer than its file, too.
    let most = request.max_bytes.and_then(|most| usize::try_from(most).ok()).unwrap_or(TEXT_CAP);
    let mut end = text.floor_char_boundary(start.saturating_add(most.min(TEXT_CAP)));
    if end == start && start < length {
        end = text.ceil_char_boundary(start + 1);
    }
    text.truncate(end);
    text.drain(..start);
    Ok(DocumentAnswer {
        path: request.path.clone(),
        metadata,
        content: text,
        truncated: end < length,
        offset: request.is_for_a_part().then_some(start as u64),
        next_offset: (end < length).then_some(end as u64),
        size_bytes,
        modified: modified
            .and_then(|at| jiff::Timestamp::try_from(at).ok())
            .map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ..DocumentAnswer::default()
    })
}

fn is_size(reason: Refusal) -> bool {
    matches!(reason, Refusal::TooLarge { .. })
}

fn denied(path: &DocumentPath, reason: Refusal) -> Unread {
    let text = format!("access to {path} is denied: {reason}");
    match reason {
        Refusal::SymbolicLink | Refusal::MultipleLinks => Unread::Linked(text),
        _ => Unread::Refused(text),
    }
}

fn told(path: &DocumentPath, error: &SourceError) -> Unread {
    match error {
        SourceError::NotFound { .. } => Unread::Missing(path.to_string()),
        SourceError::Refused { reason: Refusal::TooLarge { size_bytes, cap_bytes }, .. } => {
            Unread::Refused(format!(
                "{path} is too large to hand out: {size_bytes} bytes, the limit is {cap_bytes}; \
                 ask for it in parts, with `offset` and `max_bytes`"
            ))
        }
        SourceError::Refused { reason, .. } => denied(path, *reason),
        SourceError::Unavailable { source, .. } => {
            tracing::warn!(%path, error = %source, "a document could not be examined");
            Unread::Unexaminable(path.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, offset: Option<u64>, max_bytes: Option<u64>) -> (String, Option<u64>) {
        let whole = Whole {
            metadata: Metadata::default(),
            text: text.to_owned(),
            size_bytes: 0,
            modified: None,
        };
        let request = DocumentRequest { path: "a.md".into(), offset, max_bytes };
        let answer = part_of(whole, &request).unwrap();
        assert_eq!(answer.truncated, answer.next_offset.is_some());
        (answer.content, answer.next_offset)
    }

    // MCP-B06
    #[test]
    fn a_text_can_be_read_part_by_part_and_no_character_is_cut() {
        let text = "潮 tide ebb 干潮 🌊";
        for most in 0..9 {
            let (mut read, mut offset, mut parts) = (String::new(), Some(0), 0);
            while let Some(start) = offset {
                let (content, next) = part(text, Some(start), Some(most));
                assert!(!content.is_empty());
                read.push_str(&content);
                (offset, parts) = (next, parts + 1);
            }
            assert_eq!(read, text, "{most}");
            assert!(parts > 2);
        }
        assert_eq!(part(text, Some(1), Some(3)), ("潮".into(), Some(3)));
        assert_eq!(part(text, Some(text.len() as u64), None), (String::new(), None));
    }

    // MCP-37 MCP-B06
    #[test]
    fn what_is_cut_off_can_be_asked_for() {
        let text = "x".repeat(TEXT_CAP + 5);
        let (content, next) = part(&text, None, None);
        assert_eq!((content.len(), next), (TEXT_CAP, Some(TEXT_CAP as u64)));
        assert_eq!(part(&text, next, None), ("xxxxx".into(), None));
        assert_eq!(part(&text, None, Some(u64::MAX)).0.len(), TEXT_CAP);
    }
}
