//! Reading and cutting documents, ahead of what is being written.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::app::error::AppError;
use crate::app::index::Indexer;
use crate::app::index::plan::{Task, Work, measured};
use crate::domain::document::DocumentPath;
use crate::domain::frontmatter;
use crate::domain::quality::Profile;
use crate::ports::chunk_store::{Document, NewChunk};
use crate::ports::document_source::Content;
use crate::ports::parser::{ParseInput, ParsedDocument};

/// How much text may be read but not yet written, in KiB, as a rule.
pub const IN_FLIGHT_KIB: u32 = 32 * 1024;
/// How many documents may be read but not yet written.
const IN_FLIGHT_DOCUMENTS: usize = 64;

/// A document that is ready to be embedded and written.
pub(super) struct Prepared {
    pub(super) path: DocumentPath,
    pub(super) row: Option<Arc<Document>>,
    pub(super) work: Work,
    pub(super) outcome: Outcome,
    /// Gives the bytes in flight back when the document is done with.
    pub(super) in_flight: OwnedSemaphorePermit,
}

/// Documents on their way, in the order of their tasks.
pub(super) struct Prepare {
    queue: mpsc::Receiver<JoinHandle<Prepared>>,
    feeding: JoinHandle<()>,
}

impl Prepare {
    /// The next document; none after the last.
    ///
    /// # Errors
    ///
    /// [`AppError::Interrupted`] if a document was lost on the way: nothing may
    /// be swept then, and nothing recorded as done.
    pub(super) async fn next(&mut self) -> Result<Option<Prepared>, AppError> {
        let interrupted = |_| AppError::Interrupted { what: "reading the documents" };
        match self.queue.recv().await {
            Some(document) => document.await.map(Some).map_err(interrupted),
            None => (&mut self.feeding).await.map(|()| None).map_err(interrupted),
        }
    }

    /// Whether no document waits to be taken.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Drop for Prepare {
    fn drop(&mut self) {
        // The run may have stopped.
        self.feeding.abort();
    }
}

/// What reading a document came to.
pub(super) enum Outcome {
    /// It is left as it was.
    Skipped { reason: String, size_bytes: Option<u64> },
    /// It is cut into chunks, possibly none.
    Parsed(Box<Parsed>),
}

/// A document that was cut.
pub(super) struct Parsed {
    pub(super) document: Document,
    pub(super) chunks: Vec<NewChunk>,
    pub(super) frontmatter_error: Option<String>,
    pub(super) warnings: Vec<String>,
}

impl Indexer {
    /// How much of the text in flight a group of documents may hold before it is
    /// written: what is left lets one more document in, so neither side waits
    /// for the other.
    pub(super) fn group_kib(&self) -> u32 {
        (self.in_flight_kib / 2).max(1)
    }

    /// Reads and cuts documents, several at a time, as far ahead as the memory
    /// bounds allow. They come out in the order of the tasks.
    pub(super) fn prepare(&self, tasks: Vec<Task>, declared: Arc<BTreeSet<String>>) -> Prepare {
        let (sender, queue) = mpsc::channel(IN_FLIGHT_DOCUMENTS);
        let budget = Arc::new(Semaphore::new(self.in_flight_kib as usize));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = Arc::new(Semaphore::new(threads));
        let indexer = self.clone();
        let feeding = tokio::spawn(async move {
            for task in tasks {
                // Both are given out in the order of the tasks, so that the
                // document which is waited for is never one that waits.
                let weight = weight(task.size_bytes, indexer.group_kib());
                let held = Arc::clone(&budget).acquire_many_owned(weight).await;
                let thread = Arc::clone(&threads).acquire_owned().await;
                let (Ok(in_flight), Ok(thread)) = (held, thread) else { break };
                let (indexer, declared) = (indexer.clone(), Arc::clone(&declared));
                let document = tokio::task::spawn_blocking(move || {
                    let Task { path, row, work, content, .. } = task;
                    let outcome = indexer.prepare_one(&path, content, &declared);
                    drop(thread);
                    Prepared { path, row, work, outcome, in_flight }
                });
                if sender.send(document).await.is_err() {
                    break;
                }
            }
        });
        Prepare { queue, feeding }
    }

    fn prepare_one(
        &self,
        path: &DocumentPath,
        known: Option<Content>,
        declared: &BTreeSet<String>,
    ) -> Outcome {
        let Some(parser) = self.registry.parser_of(path) else {
            let reason = "no parser is switched on for this extension".to_owned();
            return Outcome::Skipped { reason, size_bytes: None };
        };
        let read = match known {
            Some(content) => Ok(content),
            None => self.source.read(path, self.cap(path).size),
        };
        let content = match read {
            Ok(content) => content,
            Err(error) => {
                let size_bytes = measured(&error);
                return Outcome::Skipped { reason: self.skip_reason(path, &error), size_bytes };
            }
        };
        let size_bytes = Some(content.bytes.len() as u64);
        let input =
            ParseInput { path, bytes: &content.bytes, exclude_headings: &self.exclude_headings };
        let parsed = match parser.parse(&input) {
            Ok(parsed) => parsed,
            Err(error) => return Outcome::Skipped { reason: error.to_string(), size_bytes },
        };
        let ParsedDocument { metadata, chunks, frontmatter_error, warnings, .. } = parsed;
        let class = parser.format().class;
        let chunks = chunks
            .into_iter()
            .map(|chunk| {
                let profile = Profile::of(class, chunk.symbol_kind.as_deref());
                let heading = chunk.heading.as_deref();
                let quality = self.settings.quality.score(&chunk.content, heading, profile);
                NewChunk { chunk, quality, embedding: None }
            })
            .collect();
        let document = Document {
            title: metadata.title.clone(),
            topic: metadata.topic.clone().or_else(|| path.topic().map(str::to_owned)),
            category: path.category().map(str::to_owned),
            depth: metadata.depth.clone(),
            date: metadata.date.clone(),
            fields: frontmatter::declared_fields(&metadata, declared),
            tags: metadata.tags,
            hash: content.hash,
            recipe: self.recipe_of(path),
            size_bytes,
            indexed_at: (self.clock)(),
            path: path.clone(),
        };
        let parsed = Parsed { document, chunks, frontmatter_error, warnings };
        Outcome::Parsed(Box::new(parsed))
    }
}

/// What a document holds of the memory in flight, in KiB: no more than a group
/// may.
fn weight(size_bytes: u64, most: u32) -> u32 {
    u32::try_from(size_bytes / 1024).unwrap_or(u32::MAX).clamp(1, most)
}
