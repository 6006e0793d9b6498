//! Telling of one path whether it is indexed, and why, or why not.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::app::config::{IndexSettings, SearchSettings};
use crate::app::error::AppError;
use crate::app::index::cap::Cap;
use crate::app::registry::Registry;
use crate::domain::document::DocumentPath;
use crate::domain::exclusion::{EntryKind, ExclusionRule, IGNORE_FILE_NAME};
use crate::domain::filter::passes_quality;
use crate::domain::quality::{Penalty, Profile};
use crate::ports::chunk_store::{Document, Snapshot, StoredChunk};
use crate::ports::document_source::{Content, DocumentSource, Refusal, SourceError};
use crate::ports::parser::ParseInput;

/// The use case of explaining one path.
#[derive(Clone)]
pub struct Explainer {
    /// Where documents come from.
    pub source: Arc<dyn DocumentSource>,
    /// What reads them.
    pub registry: Registry,
    /// How they are indexed.
    pub settings: IndexSettings,
    /// Substrings of headings whose sections are not indexed.
    pub exclude_headings: Vec<String>,
    /// The least quality of a chunk that a search shows.
    pub min_quality: f32,
}

impl fmt::Debug for Explainer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Explainer")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// What is known of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The path, as it was asked for.
    pub path: String,
    /// What an index run does about it.
    pub fate: Fate,
    /// What the index has of it.
    pub stored: Option<Stored>,
}

/// What an index run does about a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is indexed.
    Indexed,
    /// It is a folder, below which so many documents are found.
    Folder {
        /// How many.
        documents: usize,
    },
    /// It is left out.
    LeftOut {
        /// Why, and what would admit it.
        reason: String,
    },
    /// Nothing is there.
    Missing,
}

/// What the index has of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The row.
    pub document: Arc<Document>,
    /// How the row stands to the file.
    pub state: State,
    /// How many chunks there are.
    pub chunks: usize,
    /// How many of them wait for their vectors.
    pub pending: usize,
    /// Those that a search does not show unless it is asked to.
    pub hidden: Vec<Hidden>,
}

/// How a row of the index stands to the file that it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As an index run would make it now.
    Current,
    /// The file has other bytes now.
    Changed,
    /// The file would be cut otherwise now, by another parser or other settings.
    CutOtherwise,
    /// The file is not indexed any more: the next run removes the row.
    Leaving,
}

/// A chunk that a search does not show by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Hidden {
    /// The chunk.
    pub chunk: StoredChunk,
    /// What lowers its quality by the rules of now.
    pub penalties: Vec<Penalty>,
}

impl Explainer {
    /// Explains a path.
    ///
    /// - `path`: relative to the root, separated by `/`.
    /// - `snapshot`: of the index, if there is one.
    ///
    /// Reads the file, so that what is wrong with its content is told, too.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the root cannot be listed or the index cannot be read.
    pub async fn explain(
        &self,
        path: &str,
        snapshot: Option<&dyn Snapshot>,
    ) -> Result<Explanation, AppError> {
        let explainer = self.clone();
        let asked = path.to_owned();
        let examined = tokio::task::spawn_blocking(move || explainer.examine(&asked)).await;
        let (fate, content) =
            examined.map_err(|_| AppError::Interrupted { what: "reading the document" })??;
        let stored = match (snapshot, DocumentPath::new(path)) {
            (Some(snapshot), Ok(key)) => self.stored(&key, content, snapshot).await?,
            _ => None,
        };
        Ok(Explanation { path: path.to_owned(), fate, stored })
    }

    /// What a run would do about a path, with its content if that is indexed.
    fn examine(&self, path: &str) -> Result<(Fate, Option<Content>), AppError> {
        let left_out = |reason: String| Ok((Fate::LeftOut { reason }, None));
        let Ok(key) = DocumentPath::new(path) else {
            return left_out(
                "its name cannot be a key: a key is relative, separated by `/`, and holds no \
                 empty part, `.` or `..`, no control character and no backslash"
                    .to_owned(),
            );
        };
        let rules = self.source.exclusions();
        if let Some(found) = rules.why(path, EntryKind::File) {
            return left_out(excluded_by(found.entry, found.rule));
        }
        let parser = self.registry.parser_of(&key);
        let cap = Cap::of(&self.settings, parser.map(|parser| parser.format().class));
        let read = self.source.read(&key, cap.size);
        let content = match read {
            Err(SourceError::NotFound { .. }) => return Ok((Fate::Missing, None)),
            Err(SourceError::Refused { reason: Refusal::NotRegular, .. }) => {
                if let Some(found) = rules.why(path, EntryKind::Directory) {
                    return left_out(excluded_by(found.entry, found.rule));
                }
                let listing = self.source.list_below(&BTreeSet::from([path.to_owned()]))?;
                let documents = listing.found.len();
                return match documents {
                    0 => left_out("it is no file, and no document is found below it".to_owned()),
                    documents => Ok((Fate::Folder { documents }, None)),
                };
            }
            Err(_) if parser.is_none() => return left_out(self.no_parser(&key)),
            Err(error) => return left_out(cap.skip_reason(&error)),
            Ok(content) => content,
        };
        let Some(parser) = parser else { return left_out(self.no_parser(&key)) };
        let listing = self.source.list_below(&BTreeSet::from([path.to_owned()]))?;
        if !listing.found.iter().any(|found| found.path == key) {
            return left_out("its name is that of an editor's lock file".to_owned());
        }
        let input = ParseInput {
            path: &key,
            bytes: &content.bytes,
            exclude_headings: &self.exclude_headings,
        };
        match parser.parse(&input) {
            Ok(_) => Ok((Fate::Indexed, Some(content))),
            Err(error) => left_out(error.to_string()),
        }
    }

    fn no_parser(&self, key: &DocumentPath) -> String {
        let what = match key.extension() {
            Some(extension) => format!("no parser is switched on for .{extension}"),
            None => "it has no extension that a parser is switched on for".to_owned(),
        };
        let read = self.registry.extensions().join(", ");
        format!("{what}; files that are read: {read} ([parsers].enabled of a trusted groove.toml)")
    }

    async fn stored(
        &self,
        key: &DocumentPath,
        content: Option<Content>,
        snapshot: &dyn Snapshot,
    ) -> Result<Option<Stored>, AppError> {
        let rows = snapshot.documents_at(std::slice::from_ref(key)).await?;
        let Some(document) = rows.into_iter().flatten().next() else { return Ok(None) };
        let chunks = snapshot.chunks_of(key).await?;
        let pending = snapshot.pending_of(key).await?.len();
        let chars = self.settings.max_chunk_chars;
        let recipe = self.registry.recipe_of(key, &self.exclude_headings, chars);
        let state = match content {
            None => State::Leaving,
            Some(content) if content.hash != document.hash => State::Changed,
            Some(_) if recipe != document.recipe => State::CutOtherwise,
            Some(_) => State::Current,
        };
        let count = chunks.len();
        let hidden = chunks
            .into_iter()
            .filter(|stored| !passes_quality(stored.quality, self.min_quality))
            .map(|chunk| self.hidden(key, chunk))
            .collect();
        Ok(Some(Stored { document, state, chunks: count, pending, hidden }))
    }

    fn hidden(&self, key: &DocumentPath, stored: StoredChunk) -> Hidden {
        let chunk = &stored.chunk;
        let extension = key.extension().unwrap_or_default();
        let profile = Profile::of_extension(extension, chunk.symbol_kind.as_deref());
        let rules = &self.settings.quality;
        let penalties = rules.explain(&chunk.content, chunk.heading.as_deref(), profile);
        Hidden { chunk: stored, penalties }
    }

    /// The explainer of a configuration.
    pub fn new(
        source: Arc<dyn DocumentSource>,
        registry: Registry,
        index: IndexSettings,
        search: &SearchSettings,
        exclude_headings: Vec<String>,
    ) -> Self {
        let min_quality = search.min_quality;
        Self { source, registry, settings: index, exclude_headings, min_quality }
    }
}

fn excluded_by(entry: &str, rule: ExclusionRule) -> String {
    match rule {
        ExclusionRule::Always => {
            format!("{entry} is left out: folders of this name never come into an index")
        }
        ExclusionRule::Configured => format!("exclude_dirs leaves out the folder {entry}"),
        ExclusionRule::IgnoreFile { line } => {
            format!("line {line} of {IGNORE_FILE_NAME} leaves out {entry}")
        }
    }
}
