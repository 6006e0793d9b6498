//! Reading the schema of a knowledge base, for whoever needs it.

use crate::app::error::{AppError, chain};
use crate::domain::schema::Schema;
use crate::ports::document_source::{Content, DocumentSource, SizeCap, SourceError};

/// The file in the root of a knowledge base that holds its schema.
pub const SCHEMA_FILE: &str = "groove-schema.toml";

/// The most bytes that a schema may have.
pub(crate) const SCHEMA_CAP: SizeCap = SizeCap(1024 * 1024);

/// Reads the schema in the root of a source. Blocks.
///
/// - Returns none if there is nothing of its name.
///
/// # Errors
///
/// [`AppError::Schema`] if there is something that is no schema, or that cannot
/// be looked at.
pub fn load(source: &dyn DocumentSource) -> Result<Option<Schema>, AppError> {
    parsed(SCHEMA_FILE, source.read_aside(SCHEMA_FILE, SCHEMA_CAP))
}

/// Reads the schema in a file that was read.
///
/// - `file`: what the file is called in an error.
///
/// # Errors
///
/// As [`load`].
pub(crate) fn parsed(
    file: &str,
    read: Result<Content, SourceError>,
) -> Result<Option<Schema>, AppError> {
    let unusable = |reason: &str, remedy: &str| AppError::Schema {
        file: file.to_owned(),
        reason: format!("{reason}; {remedy}"),
    };
    let wrong =
        |reason: &str| unusable(reason, "correct it, or remove the file to go on without one");
    let bytes = match read {
        Ok(content) => content.bytes,
        Err(SourceError::NotFound { .. }) => return Ok(None),
        Err(SourceError::Refused { reason, .. }) => return Err(wrong(&reason.to_string())),
        Err(error) => return Err(unusable(&chain(&error), "make it readable")),
    };
    let text = str::from_utf8(&bytes)
        .map_err(|error| wrong(&format!("it is not valid UTF-8 ({error})")))?;
    let schema = Schema::parse(text).map_err(|error| wrong(&error.to_string()))?;
    Ok(Some(schema))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::source::memory::MemorySource;
    use crate::ports::document_source::Refusal;

    fn refusal(bytes: &[u8]) -> String {
        let source = MemorySource::default();
        source.put(SCHEMA_FILE, bytes);
        load(&source).unwrap_err().to_string()
    }

    // CFG-86
    #[test]
    fn only_nothing_counts_as_no_schema() {
        let source = MemorySource::default();
        assert!(load(&source).unwrap().is_none());
        source.put(SCHEMA_FILE, "");
        assert!(load(&source).unwrap().is_some_and(|schema| schema.fields.is_empty()));
        let file = || SCHEMA_FILE.to_owned();
        let refused = SourceError::Refused { path: file(), reason: Refusal::SymbolicLink };
        let unavailable = SourceError::Unavailable { what: file(), source: "no permission".into() };
        for (read, reason) in [(refused, "symbolic link"), (unavailable, "no permission")] {
            let message = parsed(SCHEMA_FILE, Err(read)).unwrap_err().to_string();
            assert!(message.contains(reason) && message.contains(SCHEMA_FILE), "{message}");
        }
    }

    // CFG-86 CFG-88
    #[test]
    fn a_schema_that_does_not_load_is_named_with_line_rule_and_remedy() {
        let message = refusal(b"[fields.x]\nreqired = true\n");
        for part in [SCHEMA_FILE, "line 2", "field x", "\"reqired\"", "correct it"] {
            assert!(message.contains(part), "{message}");
        }
        assert!(refusal(b"[fields.\xFF]").contains("UTF-8"));
        let most = vec![b'#'; 1024 * 1024];
        let source = MemorySource::default();
        source.put(SCHEMA_FILE, most.as_slice());
        assert!(load(&source).is_ok());
        assert!(refusal(&[most.as_slice(), b"#"].concat()).contains("1048576"));
    }
}
