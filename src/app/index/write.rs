//! Writing what a plan asks for: the texts of new documents at once, changed
//! documents once they are embedded.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::app::error::AppError;
use crate::app::index::plan::{Plan, Task, Work};
use crate::app::index::prepare::{Outcome, Parsed, Prepared};
use crate::app::index::tally::{Effect, Tally};
use crate::app::index::{IndexEvent, Indexer};
use crate::domain::chunk::{ChunkId, ContextMode, TextHash};
use crate::domain::document::DocumentPath;
use crate::domain::embedding::Embedding;
use crate::domain::frontmatter::UNPARSED_TAG;
use crate::ports::chunk_store::{Change, Document, NewChunk, Snapshot, StoredChunk};
use crate::ports::embedder::{EmbedError, Embedded};

/// How much text is embedded and committed together: enough to keep every
/// processor busy, little enough to lose or to wait for.
pub(super) const GROUP_BYTES: usize = 64 * 1024;
const GROUP_DOCUMENTS: usize = 64;

/// How many new documents are committed together as text.
const TEXT_DOCUMENTS: usize = 256;

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

impl Indexer {
    /// Carries a plan out, but for the vectors of new documents, which are left
    /// to come.
    pub(super) async fn carry_out(
        &self,
        plan: Plan,
        mode: ContextMode,
        declared: Arc<BTreeSet<String>>,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        let Plan { new, changed, gone, .. } = plan;
        self.store_texts(new, mode, Arc::clone(&declared), tally).await?;
        self.update(changed, mode, declared, tally).await?;
        self.sweep(gone, tally).await?;
        if tally.redescribed > 0 {
            let count = tally.redescribed;
            tally.note(&format!("re-read the metadata of {count} unchanged document(s)"));
        }
        if tally.tagged > 0 {
            let count = tally.tagged;
            tally.note(&format!(
                "Tagged {count} unchanged Markdown document(s) whose frontmatter is not understood"
            ));
        }
        Ok(())
    }

    /// Stores new documents without vectors, so that they can be found by their
    /// text.
    async fn store_texts(
        &self,
        tasks: Vec<Task>,
        mode: ContextMode,
        declared: Arc<BTreeSet<String>>,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        let total = tasks.len();
        let mut stored = 0;
        let mut prepare = self.prepare(tasks, declared);
        let mut group = Group::default();
        while let Some(mut next) = prepare.next().await? {
            let change = match parsed(&mut next, mode, tally) {
                Some(Parsed { document, chunks, .. }) if !chunks.is_empty() => {
                    Wanted::Chunks { document, chunks }
                }
                Some(_) => {
                    tally.skipped(&next.path, NOTHING_TO_INDEX);
                    Wanted::Nothing
                }
                None => Wanted::Nothing,
            };
            if matches!(change, Wanted::Nothing) {
                tally.settled(&next.path, next.work, Effect::None);
                stored += 1;
                continue;
            }
            group.add(Member { prepared: next, change });
            if group.members.len() >= TEXT_DOCUMENTS
                || group.held_kib >= self.group_kib() as usize
                || prepare.is_empty() && group.members.len() >= total.min(GROUP_DOCUMENTS)
            {
                stored += self.store_group(std::mem::take(&mut group), tally).await?;
                tally.texts(stored, total);
            }
        }
        stored += self.store_group(group, tally).await?;
        if total > 0 {
            tally.texts(stored, total);
        }
        Ok(())
    }

    async fn store_group(
        &self,
        mut group: Group,
        tally: &mut Tally<'_>,
    ) -> Result<usize, AppError> {
        let count = group.members.len();
        self.leave_out_what_is_done(&mut group, tally).await?;
        let (changes, held): (Vec<_>, Vec<_>) = group
            .members
            .into_iter()
            .map(|Member { prepared, change }| {
                (change.into_change(prepared.path), prepared.in_flight)
            })
            .unzip();
        let changes: Vec<Change> = changes.into_iter().flatten().collect();
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        drop(held);
        Ok(count)
    }

    /// Takes documents out of a group that somebody else has written meanwhile,
    /// from the same bytes.
    async fn leave_out_what_is_done(
        &self,
        group: &mut Group,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        if group.members.is_empty() {
            return Ok(());
        }
        let paths: Vec<DocumentPath> =
            group.members.iter().map(|member| member.prepared.path.clone()).collect();
        let rows = self.store.snapshot().await?.documents_at(&paths).await?;
        for (member, row) in group.members.iter_mut().zip(rows) {
            let is_news = row.is_some() && row != member.prepared.row;
            if let (true, Some(row), Wanted::Chunks { document, .. }) =
                (is_news, row, &member.change)
                && row.hash == document.hash
                && row.recipe == document.recipe
            {
                member.change = Wanted::Nothing;
                tally.settled(&member.prepared.path, member.prepared.work, Effect::None);
            }
        }
        group.members.retain(|member| !matches!(member.change, Wanted::Nothing));
        Ok(())
    }

    /// Brings documents up to date that the store has something of. Each keeps
    /// what it has until the new is complete.
    async fn update(
        &self,
        tasks: Vec<Task>,
        mode: ContextMode,
        declared: Arc<BTreeSet<String>>,
        tally: &mut Tally<'_>,
    ) -> Result<(), AppError> {
        let factor = self.group_factor();
        let mut prepare = self.prepare(tasks, declared);
        let mut group = Group::default();
        while let Some(next) = prepare.next().await? {
            group.add(self.want(next, mode, tally).await?);
            // What a group holds is what the preparation waits for.
            let full = group.bytes >= GROUP_BYTES * factor
                || group.members.len() >= GROUP_DOCUMENTS * factor
                || group.held_kib >= self.group_kib() as usize;
            // A document that needs no model is not kept waiting for more.
            if full || (prepare.is_empty() && group.bytes == 0) {
                self.flush(std::mem::take(&mut group), tally).await?;
            }
        }
        self.flush(group, tally).await
    }

    /// How many times as much is embedded together.
    pub(super) fn group_factor(&self) -> usize {
        if self.model.is_remote() { REMOTE_FACTOR } else { 1 }
    }

    /// Decides what a document needs, and takes over the vectors of chunks that
    /// the store has already.
    async fn want(
        &self,
        mut prepared: Prepared,
        mode: ContextMode,
        tally: &mut Tally<'_>,
    ) -> Result<Member, AppError> {
        let size = match &prepared.outcome {
            Outcome::Skipped { size_bytes: Some(size_bytes), .. } => Wanted::Size(*size_bytes),
            _ => Wanted::Nothing,
        };
        let Some(Parsed { document, mut chunks, .. }) = parsed(&mut prepared, mode, tally) else {
            return Ok(Member { prepared, change: size });
        };
        if chunks.is_empty() {
            tally.skipped(&prepared.path, NOTHING_TO_INDEX);
            return Ok(Member { prepared, change: Wanted::Removal });
        }
        let Some(row) = prepared.row.clone() else {
            return Ok(Member { prepared, change: Wanted::Chunks { document, chunks } });
        };
        let document = match prepared.work {
            Work::Index => document,
            // It was indexed when its text was.
            _ => Document { indexed_at: row.indexed_at.clone(), ..document },
        };
        if prepared.work == Work::Describe {
            let change =
                if *row == document { Wanted::Nothing } else { Wanted::Metadata(document) };
            return Ok(Member { prepared, change });
        }
        let snapshot = self.store.snapshot().await?;
        let stored = snapshot.chunks_of(&prepared.path).await?;
        if same_chunks(&stored, &chunks) {
            return Ok(Member { prepared, change: Wanted::Metadata(document) });
        }
        reuse(&*snapshot, &stored, &mut chunks).await?;
        Ok(Member { prepared, change: Wanted::Chunks { document, chunks } })
    }

    async fn flush(&self, mut group: Group, tally: &mut Tally<'_>) -> Result<(), AppError> {
        self.leave_out_what_is_done(&mut group, tally).await?;
        if group.members.is_empty() {
            return Ok(());
        }
        match self.embed(&mut group.members, tally).await {
            Ok(()) => {}
            Err(EmbedError::Refused { .. }) => {
                // One of them is at fault; the others must not suffer.
                for member in &mut group.members {
                    match self.embed(std::slice::from_mut(member), tally).await {
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
    /// one call, and each text once.
    async fn embed(&self, members: &mut [Member], tally: &mut Tally<'_>) -> Result<(), EmbedError> {
        let mut places = HashMap::new();
        let mut texts = Vec::new();
        for chunk in members.iter().flat_map(Member::pending) {
            let text = chunk.chunk.embedding_text();
            places.entry(TextHash::of(&text)).or_insert_with(|| {
                texts.push(text.into_owned());
                texts.len() - 1
            });
        }
        let vectors = self.embed_texts(&texts, tally).await?;
        for chunk in members.iter_mut().flat_map(Member::pending_mut) {
            let place = places.get(&TextHash::of(&chunk.chunk.embedding_text()));
            chunk.embedding = place.and_then(|&place| vectors.get(place).cloned());
        }
        Ok(())
    }

    /// Embeds texts; loads the model if there are any.
    pub(super) async fn embed_texts(
        &self,
        texts: &[String],
        tally: &mut Tally<'_>,
    ) -> Result<Vec<Embedding>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.model.get().await?.embed_documents(texts).await;
        tally.inputs.accepted |= match &vectors {
            Ok(_) => true,
            Err(EmbedError::Refused { accepted_others, .. }) => *accepted_others,
            Err(_) => false,
        };
        let Embedded { embeddings: vectors, in_parts } = vectors?;
        tally.inputs.in_parts += in_parts;
        if vectors.len() != texts.len() {
            let reason = format!("{} embeddings for {} texts", vectors.len(), texts.len());
            return Err(EmbedError::WrongShape { reason });
        }
        Ok(vectors)
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

const NOTHING_TO_INDEX: &str = "there is nothing in it to index";

/// What reading a document came to, with its remarks told; none if it is
/// skipped.
fn parsed(prepared: &mut Prepared, mode: ContextMode, tally: &mut Tally<'_>) -> Option<Parsed> {
    let outcome = std::mem::replace(&mut prepared.outcome, Outcome::nothing());
    let mut parsed = match outcome {
        Outcome::Parsed(parsed) => *parsed,
        Outcome::Skipped { reason, .. } => {
            tally.skipped(&prepared.path, &reason);
            return None;
        }
    };
    for warning in &parsed.warnings {
        tally.observer.event(IndexEvent::Warning(&format!("{}: {warning}", prepared.path)));
    }
    if let Some(row) = &prepared.row
        && row.hash != parsed.document.hash
    {
        // Edited since it was hashed: its chunks are no longer the known ones.
        prepared.work = Work::Index;
    }
    if let Some(reason) = &parsed.frontmatter_error {
        let tagged = |row: &Arc<Document>| row.tags.iter().any(|tag| tag == UNPARSED_TAG);
        let is_news = match prepared.work {
            Work::Index => true,
            Work::Recut => !prepared.row.as_ref().is_some_and(tagged),
            Work::Describe => false,
        };
        if is_news {
            tally.unparsed(&prepared.path, reason);
            tally.tagged += usize::from(prepared.work == Work::Recut);
        }
    }
    if mode == ContextMode::Off {
        for chunk in &mut parsed.chunks {
            chunk.chunk.context = None;
        }
    }
    Some(parsed)
}

impl Group {
    fn add(&mut self, member: Member) {
        self.bytes += member.pending_bytes();
        self.held_kib += member.prepared.in_flight.num_permits();
        self.members.push(member);
    }
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

    fn pending_bytes(&self) -> usize {
        self.pending().map(|chunk| chunk.chunk.embedding_text().len().max(1)).sum()
    }
}

impl Outcome {
    fn nothing() -> Self {
        Self::Skipped { reason: String::new(), size_bytes: None }
    }
}

/// Whether a document's chunks are as they were, and where they were.
fn same_chunks(stored: &[StoredChunk], chunks: &[NewChunk]) -> bool {
    stored.len() == chunks.len()
        && stored.iter().zip(chunks).all(|(stored, new)| stored.chunk == new.chunk)
}

/// Gives chunks the vectors that the store has for their text: of the document
/// as it was, else of any other.
async fn reuse(
    snapshot: &dyn Snapshot,
    stored: &[StoredChunk],
    chunks: &mut [NewChunk],
) -> Result<(), AppError> {
    let ids: Vec<ChunkId> = stored.iter().map(|chunk| chunk.id).collect();
    let vectors = snapshot.embeddings(&ids).await?;
    let known: HashMap<TextHash, Embedding> = stored
        .iter()
        .zip(vectors)
        .filter_map(|(chunk, vector)| Some((TextHash::of(&chunk.chunk.embedding_text()), vector?)))
        .collect();
    let texts: Vec<TextHash> =
        chunks.iter().map(|chunk| TextHash::of(&chunk.chunk.embedding_text())).collect();
    let elsewhere: Vec<TextHash> =
        texts.iter().filter(|text| !known.contains_key(text)).copied().collect();
    let mut found = snapshot.embeddings_of_texts(&elsewhere).await?.into_iter();
    for (chunk, text) in chunks.iter_mut().zip(&texts) {
        chunk.embedding = match known.get(text) {
            Some(embedding) => Some(embedding.clone()),
            None => found.next().flatten(),
        };
    }
    Ok(())
}
