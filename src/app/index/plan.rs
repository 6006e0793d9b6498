//! Deciding what a run has to do: what has changed, moved or gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use crate::app::error::AppError;
use crate::app::index::cap::Cap;
use crate::app::index::{IndexEvent, Indexer, Observer, Report};
use crate::domain::chunk::ContextMode;
use crate::domain::document::{ContentHash, DocumentPath};
use crate::ports::chunk_store::{Change, Document};
use crate::ports::document_source::{
    Content, Found, LeftOutReason, Listing, Refusal, SourceError, Unreadable,
};

/// Files up to this size are kept from when they are hashed until they are
/// parsed, as long as all of them together stay below the second bound.
const KEPT_FILE_BYTES: u64 = 256 * 1024;
const KEPT_BYTES: u64 = 16 * 1024 * 1024;

/// What a run has to do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The documents that the store has nothing of, in ascending order of path.
    pub(super) new: Vec<Task>,
    /// The other documents to look into, in ascending order of path.
    pub(super) changed: Vec<Task>,
    /// How many documents are as they were, but for vectors that are still to
    /// come.
    pub(super) unfinished: usize,
    /// The rows whose documents have gone.
    pub(super) gone: Vec<DocumentPath>,
    /// How many documents were found.
    pub(super) found: usize,
    /// Whether the run builds anew.
    pub(super) forced: bool,
}

/// One document to look into.
#[derive(Debug)]
pub(super) struct Task {
    /// Which.
    pub(super) path: DocumentPath,
    /// What the store has of it.
    pub(super) row: Option<Arc<Document>>,
    /// What has to be done.
    pub(super) work: Work,
    /// Its size when it was last looked at.
    pub(super) size_bytes: u64,
    /// What was read when it was hashed, if that was kept.
    pub(super) content: Option<Content>,
}

impl Task {
    /// A document that nothing is known of.
    fn unseen(found: Found) -> Self {
        let Found { path, size_bytes } = found;
        Self { path, row: None, work: Work::Index, size_bytes, content: None }
    }
}

/// What has to be done with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Its bytes are new: cut and embed it.
    Index,
    /// Its bytes are known, but they were cut otherwise than they would be now.
    Recut,
    /// Its bytes are known: derive its metadata again.
    Describe,
}

enum Scan {
    Read { hash: ContentHash, size_bytes: u64, content: Option<Content> },
    Skipped { reason: String, size_bytes: Option<u64> },
}

impl Listing {
    pub(super) fn not_nameable(&self) -> u64 {
        let unnameable = |reason: LeftOutReason| reason == LeftOutReason::NotNameable;
        self.left_out.iter().filter(|left_out| unnameable(left_out.reason)).count() as u64
    }

    /// Tells of which documents nothing can be said, since they would lie in a
    /// folder that could not be read.
    pub(super) fn hides(&self) -> impl Fn(&DocumentPath) -> bool {
        let unseen: BTreeSet<String> =
            self.unreadable.iter().map(|part| part.key.clone()).collect();
        let is_found =
            |path: &DocumentPath| self.found.binary_search_by(|found| found.path.cmp(path)).is_ok();
        move |path| !unseen.is_empty() && path.is_below_any(&unseen) && !is_found(path)
    }
}

impl Indexer {
    /// Compares a listing with what the store has of the same part of the
    /// source. Renames and measured sizes are written here; everything else is
    /// left to the plan.
    ///
    /// - `part`: keys at or below which everything was listed.
    pub(super) async fn plan(
        &self,
        part: &BTreeSet<String>,
        listing: Listing,
        force: bool,
        redeclared: bool,
        observer: &Arc<dyn Observer>,
        report: &mut Report,
    ) -> Result<Plan, AppError> {
        let snapshot = self.store.snapshot().await?;
        let mut rows: BTreeMap<DocumentPath, Arc<Document>> = snapshot
            .documents()
            .await?
            .into_iter()
            .filter(|row| row.path.is_below_any(part))
            .map(|row| (row.path.clone(), row))
            .collect();
        let mode = snapshot.summary().await?.context_mode.unwrap_or_default();
        let pending: BTreeSet<DocumentPath> = snapshot.pending().await?.into_iter().collect();
        drop(snapshot);
        protect(&mut rows, &listing, observer);

        let found = listing.found.len();
        if rows.is_empty() {
            // There is nothing to compare with, so each file is read once only.
            let new = listing.found.into_iter().map(Task::unseen).collect();
            return Ok(Plan { new, found, forced: force, ..Plan::default() });
        }

        let known = rows.iter().map(|(path, row)| (path.clone(), row.hash.clone())).collect();
        let scans = self.scan(listing.found, known, observer).await?;
        let renames = renames(&rows, &scans);
        let moved = self.rename(&mut rows, renames, observer, report).await?;

        let mut plan = Plan { found, ..Plan::default() };
        let mut sizes = Vec::new();
        let mut recut = 0;
        let in_index = rows.len();
        for (path, scan) in scans {
            let row = rows.remove(&path);
            let (hash, size_bytes, content) = match scan {
                Scan::Skipped { reason, size_bytes } => {
                    report.skipped += 1;
                    observer.event(IndexEvent::Skipped { path: &path, reason: &reason });
                    if let (Some(_), Some(size_bytes)) = (&row, size_bytes) {
                        sizes.push(Change::Resize { path, size_bytes });
                    }
                    continue;
                }
                Scan::Read { hash, size_bytes, content } => (hash, size_bytes, content),
            };
            let task = |row, work| Task { path: path.clone(), row, work, size_bytes, content };
            let Some(row) = row else {
                plan.new.push(task(None, Work::Index));
                continue;
            };
            let unchanged = row.hash == hash;
            if unchanged && row.size_bytes != Some(size_bytes) {
                sizes.push(Change::Resize { path: path.clone(), size_bytes });
            }
            let recipe = self.recipe_of(&path);
            let made_by = moved.get(&path).unwrap_or(&row.recipe);
            let is_moved = moved.contains_key(&path);
            let work = if !unchanged || (is_moved && mode == ContextMode::Static) {
                Work::Index
            } else if *made_by != recipe {
                recut += 1;
                Work::Recut
            } else if is_moved || redeclared {
                Work::Describe
            } else {
                plan.unfinished += usize::from(pending.contains(&path));
                continue;
            };
            plan.changed.push(task(Some(row), work));
        }
        if recut > 0 {
            observer.event(IndexEvent::Recutting { documents: recut });
        }
        self.record_sizes(sizes, observer).await;
        plan.gone = rows.into_keys().collect();
        self.warn_of_sweep(&plan.gone, in_index, observer);
        Ok(plan)
    }

    /// Failing to record sizes keeps no run from going on.
    async fn record_sizes(&self, sizes: Vec<Change>, observer: &Arc<dyn Observer>) {
        if !sizes.is_empty()
            && let Err(error) = self.store.apply(sizes).await
        {
            let text = format!("could not record file sizes: {error}");
            observer.event(IndexEvent::Warning(&text));
        }
    }

    /// Warns of a sweep that takes most of the index away because of the formats
    /// that are switched on, and not because files have gone.
    fn warn_of_sweep(&self, gone: &[DocumentPath], in_index: usize, observer: &Arc<dyn Observer>) {
        let unread = |path: &&DocumentPath| self.registry.parser_of(path).is_none();
        let unread = gone.iter().filter(unread).count();
        if unread * 2 > in_index {
            let text = format!(
                "{unread} of {in_index} documents leave the index because no parser is switched \
                 on for them; if that is not meant, add their formats to [parsers].enabled of a \
                 trusted groove.toml and index again"
            );
            observer.event(IndexEvent::Warning(&text));
        }
    }

    /// Moves rows to their new keys. What follows from the key is not yet true
    /// then: until it is, a row records no recipe, so that a run that stops here
    /// leaves it to the next one.
    ///
    /// - Returns the new keys, each with the recipe that its row had.
    async fn rename(
        &self,
        rows: &mut BTreeMap<DocumentPath, Arc<Document>>,
        renames: Vec<(DocumentPath, DocumentPath)>,
        observer: &Arc<dyn Observer>,
        report: &mut Report,
    ) -> Result<BTreeMap<DocumentPath, Option<String>>, AppError> {
        let mut changes = Vec::new();
        let mut moved = Vec::new();
        for (from, to) in &renames {
            let Some(row) = rows.get(from) else { continue };
            let row = Document { path: to.clone(), recipe: None, ..(**row).clone() };
            changes.push(Change::Rename { from: from.clone(), to: to.clone() });
            changes.push(Change::Describe(row.clone()));
            moved.push(row);
        }
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        let mut recipes = BTreeMap::new();
        for ((from, to), row) in renames.into_iter().zip(moved) {
            report.renamed += 1;
            observer.event(IndexEvent::Renamed { from: &from, to: &to });
            let recipe = rows.remove(&from).and_then(|row| row.recipe.clone());
            rows.insert(to.clone(), Arc::new(row));
            recipes.insert(to, recipe);
        }
        Ok(recipes)
    }

    /// Hashes documents, several at a time; the result keeps their order.
    ///
    /// - `known`: the hashes that the store has.
    async fn scan(
        &self,
        found: Vec<Found>,
        known: BTreeMap<DocumentPath, ContentHash>,
        observer: &Arc<dyn Observer>,
    ) -> Result<Vec<(DocumentPath, Scan)>, AppError> {
        let observer = Arc::clone(observer);
        self.blocking("hashing", move |indexer| {
            let threads = thread::available_parallelism().map_or(1, usize::from).min(found.len());
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let kept = AtomicU64::new(0);
            let work = || {
                let mut scans = Vec::new();
                while let Some(entry) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let scan = indexer.scan_one(&entry.path, known.get(&entry.path), &kept);
                    scans.push((entry.path.clone(), scan));
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    observer.event(IndexEvent::Scanning { done, total: found.len() });
                }
                scans
            };
            let mut scans: Vec<(DocumentPath, Scan)> = thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                workers
                    .into_iter()
                    .map(|worker| {
                        worker.join().map_err(|_| AppError::Interrupted { what: "hashing" })
                    })
                    .collect::<Result<Vec<_>, _>>()
            })?
            .into_iter()
            .flatten()
            .collect();
            scans.sort_by(|(left, _), (right, _)| left.cmp(right));
            Ok(scans)
        })
        .await?
    }

    fn scan_one(&self, path: &DocumentPath, known: Option<&ContentHash>, kept: &AtomicU64) -> Scan {
        match self.source.read(path, self.cap(path).size) {
            Ok(content) => {
                let (hash, size_bytes) = (content.hash.clone(), content.bytes.len() as u64);
                // What has changed is about to be parsed.
                let keep = known != Some(&hash)
                    && size_bytes <= KEPT_FILE_BYTES
                    && kept.fetch_add(size_bytes, Ordering::Relaxed) + size_bytes <= KEPT_BYTES;
                Scan::Read { hash, size_bytes, content: keep.then_some(content) }
            }
            Err(error) => Scan::Skipped {
                reason: self.skip_reason(path, &error),
                size_bytes: measured(&error),
            },
        }
    }

    /// What would make chunks of a document now.
    pub(super) fn recipe_of(&self, path: &DocumentPath) -> Option<String> {
        let chars = self.settings.max_chunk_chars;
        self.registry.recipe_of(path, &self.exclude_headings, chars)
    }

    /// The size cap of a document, by the class of its format.
    pub(super) fn cap(&self, path: &DocumentPath) -> Cap {
        Cap::of(&self.settings, self.registry.parser_of(path).map(|parser| parser.format().class))
    }

    /// Why a document is skipped.
    pub(super) fn skip_reason(&self, path: &DocumentPath, error: &SourceError) -> String {
        self.cap(path).skip_reason(error)
    }
}

/// The size that a refusal measured.
pub(super) fn measured(error: &SourceError) -> Option<u64> {
    match error {
        SourceError::Refused { reason: Refusal::TooLarge { size_bytes, .. }, .. } => {
            Some(*size_bytes)
        }
        _ => None,
    }
}

/// Takes out of the rows those of which the listing cannot tell whether their
/// documents are there: they are neither swept nor moved. Says so.
fn protect(
    rows: &mut BTreeMap<DocumentPath, Arc<Document>>,
    listing: &Listing,
    observer: &Arc<dyn Observer>,
) {
    let is_hidden = listing.hides();
    rows.retain(|path, _| !is_hidden(path));
    for Unreadable { key, reason } in &listing.unreadable {
        let text = format!(
            "the folder {key} cannot be read ({reason}); documents in it are kept as they were \
             indexed"
        );
        observer.event(IndexEvent::Warning(&text));
    }
}

/// Pairs rows whose file has gone with new files of the same bytes: both in
/// ascending order, the first match wins, and each file is taken once.
fn renames(
    rows: &BTreeMap<DocumentPath, Arc<Document>>,
    scans: &[(DocumentPath, Scan)],
) -> Vec<(DocumentPath, DocumentPath)> {
    let on_disk: BTreeSet<&DocumentPath> = scans.iter().map(|(path, _)| path).collect();
    let mut new: BTreeMap<&ContentHash, Vec<&DocumentPath>> = BTreeMap::new();
    for (path, scan) in scans.iter().rev() {
        if let Scan::Read { hash, .. } = scan
            && !rows.contains_key(path)
        {
            new.entry(hash).or_default().push(path);
        }
    }
    rows.values()
        .filter(|row| !on_disk.contains(&row.path))
        .filter_map(|row| Some((row.path.clone(), new.get_mut(&row.hash)?.pop()?.clone())))
        .collect()
}
