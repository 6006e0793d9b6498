//! Bringing the store up to date with the source.
//!
//! A run lists the source, decides from the hashes what has changed, and then
//! reads, embeds and writes only that. The text of new documents is written
//! first, so that it can be searched soon, and their vectors follow; a document
//! that has changed keeps what it had until all of the new is there. A run that
//! is killed leaves nothing half done that the next one does not go on with.

pub(in crate::app) mod cap;
mod long;
mod pending;
mod plan;
mod prepare;
mod report;
mod rescore;
mod tally;
mod write;

#[cfg(test)]
mod tests;

pub use prepare::IN_FLIGHT_KIB;
pub use report::{IndexEvent, Observer, Report};

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::app::config::IndexSettings;
use crate::app::error::{AppError, chain};
use crate::app::index::pending::Turn;
use crate::app::index::plan::Plan;
use crate::app::index::tally::{Inputs, Tally};
use crate::app::model::Model;
use crate::app::registry::Registry;
use crate::app::schema_file;
use crate::domain::chunk::ContextMode;
use crate::domain::embedding::ModelIdentity;
use crate::ports::chunk_store::{AnnouncedRun, Change, ChunkStore, StoreError, Summary};
use crate::ports::document_source::{DocumentSource, Listing, Severity, Unreadable};

/// How often a plan is made while others move the same documents.
const PLANS: u32 = 3;

/// The text that a remote model is asked for before a forced run.
const PROBE: &str = "GrooveSeek endpoint probe";

/// How the identity of a remote model begins.
const REMOTE: &str = "openai-compatible:";

/// How that of a model in a folder of its own begins.
const FOLDER: &str = "dir:";

/// The most folders that one message names.
const NAMED_FOLDERS: usize = 3;

/// Tells the time as RFC 3339, UTC.
pub type Clock = Arc<dyn Fn() -> String + Send + Sync>;

/// The use case of indexing one knowledge base.
#[derive(Clone)]
pub struct Indexer {
    /// Where the documents come from.
    pub source: Arc<dyn DocumentSource>,
    /// What reads them.
    pub registry: Registry,
    /// Where they are kept.
    pub store: Arc<dyn ChunkStore>,
    /// What embeds them.
    pub model: Arc<Model>,
    /// Caps, context mode and the like.
    pub settings: IndexSettings,
    /// Substrings of headings whose sections are dropped.
    pub exclude_headings: Vec<String>,
    /// How much text may be read but not yet written, in KiB; 2 at least. See
    /// [`IN_FLIGHT_KIB`].
    pub in_flight_kib: u32,
    /// When a document is indexed.
    pub clock: Clock,
    /// Held by the run that is on: there is one at a time in a process.
    pub turn: Arc<Mutex<()>>,
}

impl fmt::Debug for Indexer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Indexer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Indexer {
    /// Runs once over the whole knowledge base.
    ///
    /// - `force`: index every file anew, under the model that is configured.
    /// - `observer`: told of everything that a person may want to see.
    ///
    /// A file that cannot be read or parsed is skipped and keeps what the index
    /// has of it; the model is loaded only if there is something to embed. A
    /// forced run builds beside the index and takes its place at the end.
    ///
    /// # Errors
    ///
    /// [`AppError`] if the run has to stop: a schema that does not load, a
    /// source or store that cannot be reached, a model that cannot be run or
    /// is not the index's. What was written before that stays; after a forced
    /// run, that is nothing.
    pub async fn run(&self, force: bool, observer: &Arc<dyn Observer>) -> Result<Report, AppError> {
        self.run_over(force, EmptySource::IsTaken, observer).await
    }

    /// Runs once over the whole knowledge base, on nobody's request: a source
    /// in which nothing is left is taken for one that is not there, and the
    /// index keeps what it has.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn reconcile(&self, observer: &Arc<dyn Observer>) -> Result<Report, AppError> {
        self.run_over(false, EmptySource::IsAway, observer).await
    }

    async fn run_over(
        &self,
        force: bool,
        empty: EmptySource,
        observer: &Arc<dyn Observer>,
    ) -> Result<Report, AppError> {
        let announced = self.announce(observer).await;
        let mut turn = Turn::take(&self.turn).await;
        let started = Instant::now();
        observer.event(IndexEvent::Started { force });
        let declared = self.declared_fields().await?;
        let summary = self.store.snapshot().await?.summary().await?;
        if !force {
            check_identity(&summary, &self.model)?;
            check_root(&summary, &*self.source)?;
        }
        let listing = self.list(observer).await?;
        if empty == EmptySource::IsAway && listing.found.is_empty() && summary.documents > 0 {
            let text = format!(
                "there is no document left where {} were; a file system may not be mounted, so \
                 the index keeps them until `groove index` is run",
                summary.documents
            );
            observer.event(IndexEvent::Warning(&text));
            let Summary { documents, chunks, .. } = summary;
            return Ok(Report { documents, chunks, ..Report::default() });
        }
        if force {
            self.check_nothing_is_lost(&listing, observer).await?;
            self.probe().await?;
        }
        let whole = Whole { force, declared, listing, announced: announced.as_deref() };
        // An index without documents has nothing to protect.
        let (mut report, inputs) = if force && summary.documents > 0 {
            let replacement = self.store.replacement(self.model.identity().clone()).await?;
            let beside = Self { store: replacement.store(), turn: Arc::default(), ..self.clone() };
            // Meanwhile, the index that serves may follow changes.
            drop(turn);
            let mut own = Turn::take(&beside.turn).await;
            let mut built = beside.bring_up_to_date(whole, &mut own, observer).await?;
            turn = Turn::take(&self.turn).await;
            // An index of which the endpoint took nothing replaces none.
            if built.1.rejected == 0 || built.1.accepted {
                replacement.commit().await?;
                self.make_up_leeway(&mut built.0, &mut turn, observer).await?;
            }
            built
        } else {
            self.bring_up_to_date(whole, &mut turn, observer).await?
        };
        drop(turn);

        let summary = self.store.snapshot().await?.summary().await?;
        report.documents = summary.documents;
        report.chunks = summary.chunks;
        report.duration = started.elapsed();
        report.failure = self.failure(force, &report, inputs);
        observer.event(IndexEvent::Finished(&report));
        Ok(report)
    }

    /// Tells others of this run, and the observer of others. That neither can be
    /// done keeps no run from going on.
    async fn announce(&self, observer: &Arc<dyn Observer>) -> Option<Box<dyn AnnouncedRun>> {
        for other in self.store.runs().await.unwrap_or_default() {
            let how_far = match other.total {
                0 => String::new(),
                total => format!(", {} of {total} documents done", other.done),
            };
            let text = format!(
                "another run (process {}) has been indexing since {}{how_far}; going on beside it",
                other.process, other.since
            );
            observer.event(IndexEvent::Warning(&text));
        }
        match self.store.announce(&(self.clock)()).await {
            Ok(announced) => Some(announced),
            Err(error) => {
                tracing::debug!(error = chain(&error), "the run is not announced");
                None
            }
        }
    }

    /// Takes in what changed in the source while an index was built beside the one
    /// that serves. What other processes made of it meanwhile went with the old
    /// index.
    async fn make_up_leeway(
        &self,
        report: &mut Report,
        turn: &mut Turn,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), AppError> {
        let declared = self.declared_fields().await?;
        let listing = self.blocking("listing", |indexer| indexer.source.list()).await??;
        let quiet: Arc<dyn Observer> = Arc::new(OfDocuments(Arc::clone(observer)));
        let whole = Whole { force: false, declared, listing, announced: None };
        let (later, _) = self.bring_up_to_date(whole, turn, &quiet).await?;
        report.updated += later.updated;
        report.renamed += later.renamed;
        report.deleted += later.deleted;
        Ok(())
    }

    /// Makes sure that no indexed document lies in a folder that cannot be read:
    /// an index that is built anew could not keep it.
    async fn check_nothing_is_lost(
        &self,
        listing: &Listing,
        observer: &Arc<dyn Observer>,
    ) -> Result<(), AppError> {
        if listing.unreadable.is_empty() {
            return Ok(());
        }
        let rows = self.store.snapshot().await?.documents().await?;
        let is_hidden = listing.hides();
        let lost = rows.iter().filter(|row| is_hidden(&row.path)).count();
        if lost == 0 {
            return Ok(());
        }
        for Unreadable { key, reason } in &listing.unreadable {
            let text = format!("the folder {key} cannot be read ({reason})");
            observer.event(IndexEvent::Warning(&text));
        }
        let mut folders: Vec<&str> =
            listing.unreadable.iter().map(|part| part.key.as_str()).collect();
        if folders.len() > NAMED_FOLDERS {
            folders.truncate(NAMED_FOLDERS);
            folders.push("and more");
        }
        Err(AppError::Invalid(format!(
            "nothing was changed: an index that is built anew would lose {lost} document(s) in \
             folders that cannot be read: {}; make them readable, or exclude them in .grooveignore",
            folders.join(", ")
        )))
    }

    /// Makes sure that the model works, before a forced run begins.
    async fn probe(&self) -> Result<(), AppError> {
        let model = self.model.get().await.map_err(AppError::EmbedDocuments)?;
        if self.model.is_remote() {
            let texts = [PROBE.to_owned()];
            model.embed_documents(&texts).await.map_err(AppError::Probe)?;
        }
        Ok(())
    }

    /// Why a run that came to its end does not count as a success.
    fn failure(&self, force: bool, report: &Report, inputs: Inputs) -> Option<String> {
        let mut failures = Vec::new();
        if inputs.rejected > 0 && !inputs.accepted {
            failures.push(
                "the embedding endpoint accepted no input at all: check the model and the limits \
                 in [embedding], and the endpoint itself"
                    .to_owned(),
            );
        }
        if force && inputs.rejected > 0 {
            failures.push(if inputs.accepted || report.documents == 0 {
                format!(
                    "{} document(s) that the embedding endpoint rejected are not in the index",
                    inputs.rejected
                )
            } else {
                "the index was not replaced, and keeps what it had".to_owned()
            });
        }
        if self.settings.fail_on_frontmatter_error && report.frontmatter_unparsed > 0 {
            failures.push(format!(
                "{} document(s) have frontmatter that could not be parsed, and \
                 [index].fail_on_frontmatter_error is set",
                report.frontmatter_unparsed
            ));
        }
        (!failures.is_empty()).then(|| failures.join("; "))
    }

    /// Runs over a part of the knowledge base, in which something has changed.
    /// Afterwards the index has of this part what a run over everything would
    /// have left; only a document that was moved from another part is embedded
    /// again.
    ///
    /// - `part`: keys of documents and folders.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn catch_up(
        &self,
        part: &BTreeSet<String>,
        observer: &Arc<dyn Observer>,
    ) -> Result<Report, AppError> {
        let mut turn = Turn::take(&self.turn).await;
        let started = Instant::now();
        let summary = self.store.snapshot().await?.summary().await?;
        check_identity(&summary, &self.model)?;
        check_root(&summary, &*self.source)?;
        // Another schema waits for a run over everything.
        let declared = match summary.declared_fields.clone() {
            Some(declared) => declared,
            None => self.declared_fields().await?,
        };
        let keys = part.clone();
        let listing =
            self.blocking("listing", move |indexer| indexer.source.list_below(&keys)).await??;
        let mode = self.settle(false, false, &summary, observer).await?;
        let mut report = Report::default();
        let plan = self.plan_anew(part, &listing, false, false, observer, &mut report).await?;
        let mut tally = Tally::of(&plan, None, observer, &mut report);
        self.carry_out(plan, mode, Arc::new(declared), &mut tally).await?;
        self.finish_pending(part, &mut turn, &mut tally).await?;
        report.duration = started.elapsed();
        Ok(report)
    }

    /// Makes this indexer's store hold what the source was found to hold.
    async fn bring_up_to_date(
        &self,
        whole: Whole<'_>,
        turn: &mut Turn,
        observer: &Arc<dyn Observer>,
    ) -> Result<(Report, Inputs), AppError> {
        let Whole { force, declared, listing, announced } = whole;
        self.repair(observer).await?;
        let summary = self.store.snapshot().await?.summary().await?;
        if !force {
            self.refresh_scores(summary.quality_rules.as_deref(), observer).await?;
        }
        let redeclared = summary.declared_fields.as_ref() != Some(&declared);
        let mode = self.settle(force, redeclared, &summary, observer).await?;
        if !force {
            // As it is by now: settling may have emptied it.
            let summary = self.store.snapshot().await?.summary().await?;
            self.renew_long_texts(&summary, observer).await?;
        }
        let mut report = Report { not_nameable: listing.not_nameable(), ..Report::default() };
        let everything = BTreeSet::from([String::new()]);
        let plan =
            self.plan_anew(&everything, &listing, force, redeclared, observer, &mut report).await?;
        drop(listing);
        let mut tally = Tally::of(&plan, announced, observer, &mut report);
        self.carry_out(plan, mode, Arc::new(declared.clone()), &mut tally).await?;
        // By now every document has its metadata, if not its vectors.
        let mut marks = Vec::new();
        if redeclared || force {
            marks.push(Change::Declare(Some(declared)));
        }
        if force {
            marks.push(Change::Judge(self.settings.quality.generation()));
            marks.push(Change::EmbedLongTexts(long::WAY.to_owned()));
        }
        if summary.root.as_ref() != Some(&self.source.name()) {
            marks.push(Change::BelongTo(self.source.name()));
        }
        self.store.apply(marks).await?;
        self.finish_pending(&everything, turn, &mut tally).await?;
        if tally.done < tally.found {
            // Another process has taken some away.
            tally.advance_to(tally.found);
        }
        self.tell_of_long_texts(&tally).await?;
        let inputs = tally.inputs;
        Ok((report, inputs))
    }

    /// Plans, and plans again if another process moves the same documents.
    async fn plan_anew(
        &self,
        part: &BTreeSet<String>,
        listing: &Listing,
        force: bool,
        redeclared: bool,
        observer: &Arc<dyn Observer>,
        report: &mut Report,
    ) -> Result<Plan, AppError> {
        let mut attempts = 0..PLANS;
        loop {
            attempts.next();
            let listing = listing.clone();
            match self.plan(part, listing, force, redeclared, observer, report).await {
                Err(AppError::Store(StoreError::NotFound { .. } | StoreError::Exists { .. }))
                    if !attempts.is_empty() => {}
                other => return other,
            }
        }
    }

    /// Makes good what the index has lost of its chunks.
    async fn repair(&self, observer: &Arc<dyn Observer>) -> Result<(), AppError> {
        let repairs = self.store.repair().await?;
        for (count, what) in [
            (repairs.texts, "chunk(s) added to the full text, which lacked them"),
            (repairs.vectors, "chunk(s) without a vector are embedded again"),
            (repairs.orphans, "text(s) and vector(s) of chunks that are gone were removed"),
        ] {
            if count > 0 {
                observer.event(IndexEvent::Note(&format!("{count} {what}")));
            }
        }
        Ok(())
    }

    /// Runs blocking work of this indexer on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, AppError> {
        let indexer = self.clone();
        tokio::task::spawn_blocking(move || work(&indexer))
            .await
            .map_err(|_| AppError::Interrupted { what })
    }

    async fn declared_fields(&self) -> Result<BTreeSet<String>, AppError> {
        let load = |indexer: &Self| schema_file::load(&*indexer.source);
        let schema = self.blocking("reading the schema", load).await??;
        Ok(schema.map(|schema| schema.declared_fields()).unwrap_or_default())
    }

    async fn list(&self, observer: &Arc<dyn Observer>) -> Result<Listing, AppError> {
        let listing = self.blocking("listing", |indexer| indexer.source.list()).await??;
        for note in &listing.notes {
            observer.event(match note.severity {
                Severity::Note => IndexEvent::Note(&note.text),
                Severity::Warning => IndexEvent::Warning(&note.text),
            });
        }
        for left_out in &listing.left_out {
            let text = format!("{}: not indexed: {}", left_out.name, left_out.reason);
            observer.event(IndexEvent::Warning(&text));
        }
        observer.event(IndexEvent::Found {
            files: listing.found.len(),
            extensions: &self.registry.extensions(),
        });
        Ok(listing)
    }

    /// Decides on the context mode, and records it and the identity where they
    /// are not yet. A forced run starts from an empty store here.
    async fn settle(
        &self,
        force: bool,
        redeclared: bool,
        summary: &Summary,
        observer: &Arc<dyn Observer>,
    ) -> Result<ContextMode, AppError> {
        let configured = self.settings.context_mode;
        let identity = self.model.identity().clone();
        let mut changes = Vec::new();
        let other = summary.identity.as_ref().is_some_and(|recorded| *recorded != identity);
        if force || (other && summary.documents == 0) {
            changes.push(Change::Empty(identity));
        } else if other {
            // It gets here only while it has no vector.
            changes.push(Change::Identify(identity));
        } else if summary.identity.is_none() {
            if summary.chunks > 0 {
                let text = format!(
                    "the index records no model; taking it as made with {}",
                    identity.model
                );
                observer.event(IndexEvent::Note(&text));
            }
            changes.push(Change::Identify(identity));
        }
        let mode = match summary.context_mode {
            Some(recorded) if !force && summary.chunks > 0 => recorded,
            None if !force && summary.chunks > 0 => ContextMode::Off,
            _ => configured,
        };
        if mode != configured {
            let text = format!(
                "the index was made with context mode {}, the configuration asks for {}; going on \
                 with {}; `groove index --force` switches",
                mode.as_str(),
                configured.as_str(),
                mode.as_str()
            );
            observer.event(IndexEvent::Warning(&text));
        }
        if force || summary.context_mode != Some(mode) {
            changes.push(Change::UseContext(mode));
        }
        if !force && redeclared && summary.declared_fields.is_some() {
            // Until the run is complete, a filter on fields would miss documents.
            changes.push(Change::Declare(None));
        }
        if !changes.is_empty() {
            self.store.apply(changes).await?;
        }
        Ok(mode)
    }
}

/// What a source without a single document means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptySource {
    /// That all of them have gone.
    IsTaken,
    /// That it is not there, as a folder on which nothing is mounted.
    IsAway,
}

/// A run over everything.
struct Whole<'a> {
    force: bool,
    /// The frontmatter keys whose values are kept.
    declared: BTreeSet<String>,
    listing: Listing,
    announced: Option<&'a dyn AnnouncedRun>,
}

/// Passes on what became of documents; the course of the run is told already,
/// and so are the files that it skips.
struct OfDocuments(Arc<dyn Observer>);

impl Observer for OfDocuments {
    fn event(&self, event: IndexEvent<'_>) {
        if matches!(
            event,
            IndexEvent::Indexed { .. }
                | IndexEvent::Described { .. }
                | IndexEvent::Renamed { .. }
                | IndexEvent::Deleted { .. }
        ) {
            self.0.event(event);
        }
    }
}

/// How to name the model that an index records.
fn way_back(recorded: &ModelIdentity) -> String {
    let of_folder = recorded.model.strip_prefix(FOLDER).and_then(|rest| rest.rsplit_once('@'));
    match of_folder {
        Some((folder, _)) => {
            format!("--model {FOLDER} and the path of the folder {folder} that it was built with")
        }
        None if recorded.model.starts_with(REMOTE) => {
            "--config <cfg> with the [embedding] section that it was built with".to_owned()
        }
        None => format!("--model {}", recorded.model),
    }
}

/// Compares what the index records with the place that the documents come from.
/// Two knowledge bases in one folder would share one index, and each would sweep
/// the other's documents away.
///
/// # Errors
///
/// [`AppError::OtherRoot`] if the index belongs to another one that is still
/// there. One that has gone was moved, and its index serves on.
pub fn check_root(summary: &Summary, source: &dyn DocumentSource) -> Result<(), AppError> {
    let current = source.name();
    match &summary.root {
        Some(recorded)
            if summary.documents > 0 && *recorded != current && source.has_neighbour(recorded) =>
        {
            Err(AppError::OtherRoot { recorded: recorded.clone(), current })
        }
        _ => Ok(()),
    }
}

/// Compares what the index records with the model that is configured. An index
/// without vectors fits any model.
///
/// # Errors
///
/// [`AppError::OtherModel`] if they differ.
pub fn check_identity(summary: &Summary, model: &Model) -> Result<(), AppError> {
    match &summary.identity {
        Some(recorded) if summary.has_vectors && recorded != model.identity() => {
            Err(AppError::OtherModel {
                recorded: recorded.clone(),
                current: model.identity().clone(),
                remedy: if model.is_remote() {
                    "groove --config <cfg> index --kb-path <path> --force".to_owned()
                } else {
                    format!("groove index --kb-path <path> --force --model {}", model.name())
                },
                way_back: way_back(recorded),
            })
        }
        _ => Ok(()),
    }
}
