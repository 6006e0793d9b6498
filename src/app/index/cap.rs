//! How large a document may be, and why one is skipped.

use crate::app::config::IndexSettings;
use crate::domain::format::Class;
use crate::ports::document_source::{Refusal, SizeCap, SourceError};

/// A size cap, and how to speak of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::app) struct Cap {
    /// The most bytes.
    pub(in crate::app) size: SizeCap,
    kind: &'static str,
    key: &'static str,
}

impl Cap {
    /// The cap of a family of formats; of text where the family is not known.
    pub(in crate::app) fn of(settings: &IndexSettings, class: Option<Class>) -> Self {
        let (limit, kind, key) = match class {
            Some(Class::Binary) => {
                (settings.max_binary_file_size, "binary", "[index].max_binary_file_size")
            }
            _ => (settings.max_text_file_size, "text", "[index].max_text_file_size"),
        };
        Self { size: SizeCap(limit.unwrap_or(u64::MAX)), kind, key }
    }

    /// Why a document is skipped, with the limit and the key that would admit
    /// it.
    pub(in crate::app) fn skip_reason(self, error: &SourceError) -> String {
        match error {
            SourceError::Refused {
                reason: Refusal::TooLarge { size_bytes, cap_bytes }, ..
            } => format!(
                "{size_bytes} bytes exceed the {} file size limit of {cap_bytes} bytes; raise {} \
                 in a trusted groove.toml to admit it",
                self.kind, self.key
            ),
            SourceError::Refused { reason, .. } => reason.to_string(),
            SourceError::NotFound { .. } => "it has vanished".to_owned(),
            SourceError::Unavailable { source, .. } => format!("it cannot be read: {source}"),
        }
    }
}
