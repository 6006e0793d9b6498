//! Looking after a knowledge base and its index without the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adapters::parser::guarded::Guarded;
use crate::adapters::parser::markdown::MarkdownParser;
use crate::adapters::source::filesystem::{FilesystemSource, read_alone};
use crate::app::config::Config;
use crate::app::doctor::{self, Diagnosis, Terms};
use crate::app::error::AppError;
use crate::app::place::Place;
use crate::app::schema_file::{self, SCHEMA_CAP, SCHEMA_FILE};
use crate::app::validate::Validator;
use crate::app::wiring::{IndexFile, open_store, place, registry};
use crate::domain::format::EnabledFormats;
use crate::domain::schema::Validation;
use crate::ports::document_source::SizeCap;

/// Makes sure that the schema of a knowledge base can be used, if there is one.
/// Neither opens nor makes an index.
///
/// # Errors
///
/// [`AppError`] if the root is no folder, or the schema cannot be used.
pub fn check_schema(kb_path: &Path, config: &Config, working_dir: &Path) -> Result<(), AppError> {
    let place = place(kb_path, working_dir)?;
    schema_file::load(&source(&place, config, config.formats.clone())?)?;
    Ok(())
}

/// Examines an index; nothing if there is none.
///
/// - `all`: whether to ask what is asked on request only.
///
/// # Errors
///
/// [`AppError`] if the root is no folder, the schema cannot be used (before the
/// index is opened), or the index cannot be read.
pub async fn diagnose(
    kb_path: &Path,
    config: &Config,
    working_dir: &Path,
    all: bool,
) -> Result<(Place, Option<Diagnosis>), AppError> {
    let place = place(kb_path, working_dir)?;
    let schema = schema_file::load(&source(&place, config, config.formats.clone())?)?;
    let declared = schema.map(|schema| schema.declared_fields()).unwrap_or_default();
    let Some(store) = open_store(&place, IndexFile::Existing).await? else {
        return Ok((place, None));
    };
    let terms = Terms {
        formats: &config.formats,
        registry: &registry(config),
        settings: &config.index,
        declared: &declared,
        all,
    };
    let diagnosis = doctor::examine(&*store, terms).await;
    store.close().await;
    Ok((place, Some(diagnosis?)))
}

/// How to validate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validating {
    /// A schema to use instead of the one in the root.
    pub schema: Option<PathBuf>,
    /// Whether a key that the schema does not name is a violation in any case.
    pub strict: bool,
    /// Whether to look no further than the first document with a violation.
    pub fail_fast: bool,
}

/// What validating a knowledge base came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// The root.
    pub root: PathBuf,
    /// Where the schema was looked for.
    pub schema: PathBuf,
    /// What was found; nothing without a schema.
    pub validation: Option<Validation>,
}

/// Holds the frontmatter of a knowledge base against its schema. Blocks.
///
/// - `warn`: told of what could not be read.
///
/// # Errors
///
/// [`AppError::Schema`] if there is a schema that cannot be used, and other
/// variants if the root is no folder or cannot be listed.
pub fn validate(
    kb_path: &Path,
    config: &Config,
    working_dir: &Path,
    how: &Validating,
    warn: &mut dyn FnMut(String),
) -> Result<Validated, AppError> {
    let place = place(kb_path, working_dir)?;
    let source = source(&place, config, EnabledFormats::default())?;
    let (path, schema) = match &how.schema {
        None => (place.root.join(SCHEMA_FILE), schema_file::load(&source)?),
        Some(path) => {
            let path = working_dir.join(path);
            let read = read_alone(&path, SCHEMA_CAP, config.index.require_owner);
            let schema = schema_file::parsed(&path.display().to_string(), read)?;
            (path, schema)
        }
    };
    let Some(mut schema) = schema else {
        return Ok(Validated { root: place.root, schema: path, validation: None });
    };
    schema.allow_unknown_fields &= !how.strict;
    let validator = Validator {
        source: Arc::new(source),
        parser: Arc::new(Guarded::new(MarkdownParser::new())),
        cap: SizeCap(config.index.max_text_file_size.unwrap_or(u64::MAX)),
    };
    let validation = validator.run(&schema, how.fail_fast, warn)?;
    Ok(Validated { root: place.root, schema: path, validation: Some(validation) })
}

fn source(
    place: &Place,
    config: &Config,
    formats: EnabledFormats,
) -> Result<FilesystemSource, AppError> {
    let source = FilesystemSource::new(&place.root, formats, &config.exclude_dirs)?;
    Ok(source.requiring_owner(config.index.require_owner))
}
