//! Embedding and writing what a plan asks for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::app::error::AppError;
use crate::app::index::plan::{Plan, Work};
use crate::app::index::prepare::{Outcome, Parsed, Prepared};
use crate::app::index::{IndexEvent, Indexer, Observer, Report};
use crate::domain::chunk::{ChunkId, ContextMode};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::Embedding;
use crate::ports::chunk_store::{Change, Document, NewChunk, StoredChunk};
use crate::ports::embedder::EmbedError;

/// How much text is embedded and committed together: enough to keep every
/// processor busy, little enough to lose or to wait for.
const GROUP_BYTES: usize = 64 * 1024;
const GROUP_DOCUMENTS: usize = 64;

/// How many times as much goes to a remote model together, which takes several
/// requests at a time.
const REMOTE_FACTOR: usize = 4;

/// Documents that are embedded and committed together.
#[derive(Default)]
struct Group {
    members: Vec<Member>,
    /// Text that has to be embedded.
    bytes: usize,
    /// What its documents hold of the memory for documents in flight, in KiB.
    held_kib: usize,
}

struct Member {
    prepared: Prepared,
    change: Wanted,
}

/// What a document needs.
enum Wanted {
    /// Its chunks, those without a vector embedded.
    Chunks { document: Document, chunks: Vec<NewChunk> },
    /// New metadata over the same chunks.
    Metadata(Document),
    /// Only the size that was measured.
    Size(u64),
    /// To go, since there is nothing left to index.
    Removal,
    /// Nothing.
    Nothing,
}

/// Counts what is done and tells the observer.
struct Tally<'a> {
    observer: &'a Arc<dyn Observer>,
    report: &'a mut Report,
    found: usize,
    done: usize,
    redescribed: usize,
    forced: bool,
    inputs: Inputs,
}

/// What became of the texts that a model was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inputs {
    /// Documents of which it did not take a text.
    pub(super) rejected: u64,
    /// Whether it took any text at all.
    pub(super) accepted: bool,
}

impl Indexer {
    /// Carries a plan out.
    pub(super) async fn carry_out(
        &self,
        plan: Plan,
        mode: ContextMode,
        declared: Arc<BTreeSet<String>>,
        observer: &Arc<dyn Observer>,
        report: &mut Report,
    ) -> Result<Inputs, AppError> {
        let Plan { tasks, gone, found, forced } = plan;
        let done = found - tasks.len();
        let inputs = Inputs::default();
        let mut tally = Tally { observer, report, found, done, redescribed: 0, forced, inputs };
        observer.event(IndexEvent::Advanced { done, total: found });

        let factor = if self.model.is_remote() { REMOTE_FACTOR } else { 1 };
        let (mut prepared, preparing) = self.prepare(tasks, declared);
        let mut group = Group::default();
        while let Some(next) = prepared.recv().await {
            let member = self.want(next, mode, &mut tally).await?;
            group.bytes += member.pending_bytes(mode);
            group.held_kib += member.held_kib();
            group.members.push(member);
            // What a group holds is what the preparation waits for.
            let full = group.bytes >= GROUP_BYTES * factor
                || group.members.len() >= GROUP_DOCUMENTS * factor
                || group.held_kib >= self.group_kib() as usize;
            // A document that needs no model is not kept waiting for more.
            if full || (prepared.is_empty() && group.bytes == 0) {
                self.flush(std::mem::take(&mut group), mode, &mut tally).await?;
            }
        }
        self.flush(group, mode, &mut tally).await?;
        // A preparation that broke off has left documents out: nothing may be
        // swept, and nothing recorded as done.
        preparing.await.map_err(|_| AppError::Interrupted { what: "reading the documents" })?;
        self.sweep(gone, &mut tally).await?;
        if tally.redescribed > 0 {
            let text =
                format!("re-read the metadata of {} unchanged document(s)", tally.redescribed);
            observer.event(IndexEvent::Note(&text));
        }
        Ok(tally.inputs)
    }

    /// Decides what a document needs, and takes over the vectors of chunks that
    /// the store has already.
    async fn want(
        &self,
        mut prepared: Prepared,
        mode: ContextMode,
        tally: &mut Tally<'_>,
    ) -> Result<Member, AppError> {
        let outcome = std::mem::replace(&mut prepared.outcome, Outcome::nothing());
        let parsed = match outcome {
            Outcome::Parsed(parsed) => parsed,
            Outcome::Skipped { reason, size_bytes } => {
                tally.skipped(&prepared.path, &reason);
                let change = match size_bytes {
                    Some(size_bytes) if prepared.row.is_some() => Wanted::Size(size_bytes),
                    _ => Wanted::Nothing,
                };
                return Ok(Member { prepared, change });
            }
        };
        let Parsed { document, mut chunks, frontmatter_error, warnings } = *parsed;
        for warning in &warnings {
            tally.observer.event(IndexEvent::Warning(&format!("{}: {warning}", prepared.path)));
        }
        if let Some(row) = &prepared.row
            && row.hash != document.hash
        {
            // Edited since it was hashed: its chunks are no longer the known ones.
            prepared.work = Work::Index;
        }
        if let (Some(reason), Work::Index) = (&frontmatter_error, prepared.work) {
            tally.report.frontmatter_unparsed += 1;
            let path = &prepared.path;
            tally.observer.event(IndexEvent::FrontmatterUnparsed { path, reason });
        }
        if chunks.is_empty() {
            tally.skipped(&prepared.path, "there is nothing in it to index");
            let change = if prepared.row.is_some() { Wanted::Removal } else { Wanted::Nothing };
            return Ok(Member { prepared, change });
        }
        if mode == ContextMode::Off {
            for chunk in &mut chunks {
                chunk.chunk.context = None;
            }
        }
        let Some(row) = prepared.row.clone() else {
            return Ok(Member { prepared, change: Wanted::Chunks { document, chunks } });
        };
        if prepared.work == Work::Describe {
            let same = *row == Document { indexed_at: row.indexed_at.clone(), ..document.clone() };
            let change = if same { Wanted::Nothing } else { Wanted::Metadata(document) };
            return Ok(Member { prepared, change });
        }
        let snapshot = self.store.snapshot().await?;
        let stored = snapshot.chunks_of(&prepared.path).await?;
        if same_chunks(&stored, &chunks) {
            return Ok(Member { prepared, change: Wanted::Metadata(document) });
        }
        let ids: Vec<ChunkId> = stored.iter().map(|chunk| chunk.id).collect();
        let vectors = snapshot.embeddings(&ids).await?;
        reuse(&stored, vectors, &mut chunks, mode);
        Ok(Member { prepared, change: Wanted::Chunks { document, chunks } })
    }

    async fn flush(
        &self,
        mut group: Group,
        mode: ContextMode,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        if group.members.is_empty() {
            return Ok(());
        }
        match self.embed(&mut group.members, mode, tally).await {
            Ok(()) => {}
            Err(EmbedError::Refused { .. }) => {
                // One of them is at fault; the others must not suffer.
                for member in &mut group.members {
                    match self.embed(std::slice::from_mut(member), mode, tally).await {
                        Ok(()) => {}
                        Err(EmbedError::Refused { reason, .. }) => {
                            tally.rejected(&member.prepared.path, &reason);
                            member.change = Wanted::Nothing;
                        }
                        Err(error) => return Err(AppError::EmbedDocuments(error)),
                    }
                }
            }
            Err(error) => return Err(AppError::EmbedDocuments(error)),
        }
        let mut changes = Vec::with_capacity(group.members.len());
        let mut written = Vec::with_capacity(group.members.len());
        let mut held = Vec::with_capacity(group.members.len());
        for Member { prepared, change } in group.members {
            let Prepared { path, work, in_flight, .. } = prepared;
            written.push((path.clone(), work, change.effect()));
            changes.extend(change.into_change(path));
            held.push(in_flight);
        }
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        drop(held);
        for (path, work, effect) in written {
            tally.settled(&path, work, effect);
        }
        Ok(())
    }

    /// Embeds the chunks that have no vector yet, all of these documents' in
    /// one call.
    async fn embed(
        &self,
        members: &mut [Member],
        mode: ContextMode,
        tally: &mut Tally<'_>,
    ) -> Result<(), EmbedError> {
        let texts: Vec<String> = members
            .iter()
            .flat_map(Member::pending)
            .map(|chunk| chunk.chunk.embedding_text(mode))
            .collect();
        if texts.is_empty() {
            return Ok(());
        }
        let asked = texts.len();
        let vectors = self.model.get().await?.embed_documents(&texts).await;
        tally.inputs.accepted |= match &vectors {
            Ok(_) => true,
            Err(EmbedError::Refused { accepted_others, .. }) => *accepted_others,
            Err(_) => false,
        };
        let vectors = vectors?;
        if vectors.len() != asked {
            let reason = format!("{} embeddings for {asked} texts", vectors.len());
            return Err(EmbedError::WrongShape { reason });
        }
        let mut vectors = vectors.into_iter();
        for chunk in members.iter_mut().flat_map(Member::pending_mut) {
            chunk.embedding = vectors.next();
        }
        Ok(())
    }

    async fn sweep(&self, gone: Vec<DocumentPath>, tally: &mut Tally<'_>) -> Result<(), AppError> {
        if gone.is_empty() {
            return Ok(());
        }
        self.store.apply(gone.iter().cloned().map(Change::Remove).collect()).await?;
        for path in &gone {
            tally.report.deleted += 1;
            tally.observer.event(IndexEvent::Deleted { path });
        }
        Ok(())
    }
}

/// What a change came to, as far as it is told.
#[derive(Clone, Copy)]
enum Effect {
    Indexed { chunks: usize },
    Described,
    Removed,
    None,
}

impl Wanted {
    fn effect(&self) -> Effect {
        match self {
            Self::Chunks { chunks, .. } => Effect::Indexed { chunks: chunks.len() },
            Self::Metadata(_) => Effect::Described,
            Self::Removal => Effect::Removed,
            Self::Size(_) | Self::Nothing => Effect::None,
        }
    }

    fn into_change(self, path: DocumentPath) -> Option<Change> {
        match self {
            Self::Chunks { document, chunks } => Some(Change::Put { document, chunks }),
            Self::Metadata(document) => Some(Change::Describe(document)),
            Self::Size(size_bytes) => Some(Change::Resize { path, size_bytes }),
            Self::Removal => Some(Change::Remove(path)),
            Self::Nothing => None,
        }
    }
}

impl Member {
    fn pending(&self) -> impl Iterator<Item = &NewChunk> {
        let chunks: &[NewChunk] = match &self.change {
            Wanted::Chunks { chunks, .. } => chunks,
            _ => &[],
        };
        chunks.iter().filter(|chunk| chunk.embedding.is_none())
    }

    fn pending_mut(&mut self) -> impl Iterator<Item = &mut NewChunk> {
        let chunks: &mut [NewChunk] = match &mut self.change {
            Wanted::Chunks { chunks, .. } => chunks,
            _ => &mut [],
        };
        chunks.iter_mut().filter(|chunk| chunk.embedding.is_none())
    }

    fn held_kib(&self) -> usize {
        self.prepared.in_flight.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
    }

    fn pending_bytes(&self, mode: ContextMode) -> usize {
        self.pending().map(|chunk| chunk.chunk.embedding_text(mode).len().max(1)).sum()
    }
}

impl Outcome {
    fn nothing() -> Self {
        Self::Skipped { reason: String::new(), size_bytes: None }
    }
}

impl Tally<'_> {
    fn skipped(&mut self, path: &DocumentPath, reason: &str) {
        self.report.skipped += 1;
        self.observer.event(IndexEvent::Skipped { path, reason });
    }

    fn rejected(&mut self, path: &DocumentPath, reason: &str) {
        self.report.skipped += 1;
        self.inputs.rejected += 1;
        let forced = self.forced;
        self.observer.event(IndexEvent::Rejected { path, reason, forced });
    }

    fn settled(&mut self, path: &DocumentPath, work: Work, effect: Effect) {
        match (work, effect) {
            (_, Effect::Indexed { chunks }) => {
                self.report.updated += 1;
                self.observer.event(IndexEvent::Indexed { path, chunks });
            }
            (Work::Index, Effect::Described) => {
                self.report.updated += 1;
                self.observer.event(IndexEvent::Described { path });
            }
            (Work::Describe, Effect::Described) => self.redescribed += 1,
            (_, Effect::Removed) => {
                self.report.deleted += 1;
                self.observer.event(IndexEvent::Deleted { path });
            }
            (_, Effect::None) => {}
        }
        self.done += 1;
        self.observer.event(IndexEvent::Advanced { done: self.done, total: self.found });
    }
}

/// Whether a document's chunks are as they were, as far as they are found.
fn same_chunks(stored: &[StoredChunk], chunks: &[NewChunk]) -> bool {
    stored.len() == chunks.len()
        && stored.iter().zip(chunks).all(|(stored, new)| {
            let (stored, new) = (&stored.chunk, &new.chunk);
            stored.heading == new.heading
                && stored.content == new.content
                && stored.context == new.context
        })
}

/// Gives chunks whose embedding text the store has a vector for that vector.
fn reuse(
    stored: &[StoredChunk],
    vectors: Vec<Option<Embedding>>,
    chunks: &mut [NewChunk],
    mode: ContextMode,
) {
    let known: HashMap<String, Embedding> = stored
        .iter()
        .zip(vectors)
        .filter_map(|(chunk, vector)| Some((chunk.chunk.embedding_text(mode), vector?)))
        .collect();
    for chunk in chunks {
        chunk.embedding = known.get(&chunk.chunk.embedding_text(mode)).cloned();
    }
}
