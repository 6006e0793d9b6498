//! Examining an index: what is wrong with it, and what puts it right.

mod names;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::app::config::IndexSettings;
use crate::app::error::{AppError, chain};
use crate::app::offer::{BINARY_CAP, TEXT_CAP, Withheld, offered};
use crate::app::quality::{self, QualityReport};
use crate::app::registry::Registry;
use crate::domain::document::DocumentPath;
use crate::domain::finding::{Check, Finding};
use crate::domain::format::{Class, EnabledFormats};
use crate::ports::chunk_store::{
    ChunkStore, Damage, Document, Fault, RunUnderWay, Snapshot, StoreError,
};

/// Tags of source code that was cut without looking at its definitions.
const WITHOUT_DEFINITIONS: [&str; 2] = ["parse:too-deep", "parse:too-many-chunks"];

/// What an index is measured by.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The formats that are switched on.
    pub formats: &'a EnabledFormats,
    /// What reads them.
    pub registry: &'a Registry,
    /// The settings of indexing.
    pub settings: &'a IndexSettings,
    /// The frontmatter keys that the schema declares now.
    pub declared: &'a BTreeSet<String>,
    /// Whether to ask what is asked on request only.
    pub all: bool,
}

/// What an examination has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Documents of the index.
    pub documents: u64,
    /// Chunks of the index.
    pub chunks: u64,
    /// In the order of the checks.
    pub findings: Vec<Finding>,
    /// What lowers the quality of chunks, which is no finding; on request only.
    pub quality: Option<QualityReport>,
    /// The runs that are changing the index now. Vectors that are still to come
    /// are none of the findings then.
    pub runs: Vec<RunUnderWay>,
    /// Chunks whose vector is still to come.
    pub pending_chunks: u64,
}

/// Examines an index, and changes nothing.
///
/// A check that cannot be made is a finding that says so.
///
/// # Errors
///
/// [`AppError::Store`] if the index cannot be read at all, and
/// [`AppError::Invalid`] if what it records of frontmatter keys cannot be.
pub async fn examine(store: &dyn ChunkStore, terms: Terms<'_>) -> Result<Diagnosis, AppError> {
    let runs = store.runs().await?;
    let snapshot = store.snapshot().await?;
    let snapshot = &*snapshot;
    if snapshot.damage(Fault::UnreadableFields).await?.count > 0 {
        return Err(AppError::Invalid(
            "what the index records of declared frontmatter fields cannot be read; run `groove \
             index --force`, which builds the index anew"
                .to_owned(),
        ));
    }
    let summary = snapshot.summary().await?;
    let documents = snapshot.documents().await?;
    let mut examined = Examination { snapshot, findings: Vec::new() };
    examined.integrity(runs.is_empty()).await;
    examined.offers(&documents, terms);
    examined.sizes(&documents);
    examined.fields(summary.declared_fields.as_ref(), terms.declared).await;
    examined.source_code(&documents, terms).await;
    if cfg!(windows) {
        examined.damage(Fault::NoKey).await;
    }
    if terms.all {
        examined.findings.extend(names::duplicates(&documents));
        examined.findings.extend(names::look_alikes(&documents));
    }
    let quality = if terms.all {
        Some(quality::explain(snapshot, &terms.settings.quality).await?)
    } else {
        None
    };
    Ok(Diagnosis {
        documents: summary.documents,
        chunks: summary.chunks,
        findings: examined.findings,
        quality,
        runs,
        pending_chunks: summary.pending_chunks,
    })
}

struct Examination<'a> {
    snapshot: &'a dyn Snapshot,
    findings: Vec<Finding>,
}

impl Examination<'_> {
    fn find(&mut self, check: Check, damage: Damage, summary: &str, remedy: &str) {
        let Damage { count, samples } = damage;
        if count > 0 {
            let (summary, remedy) = (summary.to_owned(), remedy.to_owned());
            self.findings.push(Finding { check, summary, count, samples, remedy });
        }
    }

    /// A check that could not be made is not clean.
    fn could_not(&mut self, check: Check, error: &StoreError) {
        self.findings.push(Finding {
            check,
            summary: format!("this check could not be made: {}", chain(error)),
            count: 0,
            samples: Vec::new(),
            remedy: format!("groove index --force ({ANEW})"),
        });
    }

    /// Asks the store for a kind of damage and reports it.
    async fn damage(&mut self, fault: Fault) -> u64 {
        let (check, summary, remedy) = explained(fault);
        match self.snapshot.damage(fault).await {
            Ok(damage) => {
                let count = damage.count;
                self.find(check, damage, &format!("{count} {summary}"), &remedy);
                count
            }
            Err(error) => {
                self.could_not(check, &error);
                0
            }
        }
    }

    /// Whether all the parts of a chunk are there.
    ///
    /// - `at_rest`: whether no run is under way. Vectors that are still to come
    ///   are nothing to report while one is: it makes them.
    async fn integrity(&mut self, at_rest: bool) {
        if self.damage(Fault::NoVectors).await == 0 {
            self.vectors(at_rest).await;
        }
        for fault in [
            Fault::OrphanVector,
            Fault::LostText,
            Fault::OrphanText,
            Fault::OrphanChunk,
            Fault::EmptyDocument,
        ] {
            self.damage(fault).await;
        }
    }

    /// Whether every chunk has its vector, or will have it.
    async fn vectors(&mut self, at_rest: bool) {
        let check = Check::MissingEmbedding;
        let pending = async {
            let pending = self.snapshot.summary().await?.pending_chunks;
            Ok((pending, self.snapshot.pending().await?))
        };
        let (lost, pending) = match (self.snapshot.damage(Fault::LostVector).await, pending.await) {
            (Ok(lost), Ok(pending)) => (lost, pending),
            (Err(error), _) | (_, Err(error)) => return self.could_not(check, &error),
        };
        let (pending, documents) = if at_rest { pending } else { (0, Vec::new()) };
        let summary = match (lost.count, pending) {
            (lost, 0) => format!("{lost} chunk(s) have lost their vector: only words find them"),
            (0, pending) => format!(
                "{pending} chunk(s) have no vector yet, since a run has not come to its end: only \
                 words find them"
            ),
            (lost, pending) => format!(
                "{lost} chunk(s) have lost their vector and {pending} have none yet, since a run \
                 has not come to its end: only words find them"
            ),
        };
        let mut samples = lost.samples;
        samples.extend(documents.iter().map(DocumentPath::to_string));
        samples.sort_unstable();
        samples.dedup();
        samples.truncate(Damage::MAX_SAMPLES);
        let remedy =
            format!("groove index (makes the missing vectors); groove index --force {ANEW}");
        self.find(check, Damage { count: lost.count + pending, samples }, &summary, &remedy);
    }

    /// Whether every document can be handed out.
    fn offers(&mut self, documents: &[Arc<Document>], terms: Terms<'_>) {
        let max_decompressed_size = terms.settings.max_decompressed_size;
        let withheld: Vec<(&Document, Withheld)> = documents
            .iter()
            .filter_map(|row| {
                let offer =
                    offered(&row.path, row.size_bytes, terms.formats, max_decompressed_size);
                Some((&**row, offer.err()?))
            })
            .collect();
        let of = |is: fn(&Withheld) -> bool| {
            let found = withheld.iter().filter(|(_, withheld)| is(withheld));
            at(found.map(|(row, _)| *row))
        };
        let not_registered = of(|it| matches!(it, Withheld::NotRegistered));
        let too_large = of(|it| matches!(it, Withheld::TooLarge { .. }));
        let unpacked = of(|it| matches!(it, Withheld::MayUnpackToTooMuch));
        let count = not_registered.count;
        self.find(
            Check::ExtensionNotRegistered,
            not_registered,
            &format!(
                "{count} document(s) have no parser that is switched on: they are found and \
                 cannot be opened"
            ),
            "enable their formats in [parsers].enabled, or run groove index, which removes them \
             from the index",
        );
        let (count, mib) = (too_large.count, 1024 * 1024);
        let (text, binary) = (TEXT_CAP / mib, BINARY_CAP / 1024 / 1024);
        self.find(
            Check::LargerThanARead,
            too_large,
            &format!(
                "{count} document(s) are larger than what is handed out ({text} MiB of text, \
                 {binary} MiB of a binary file): they are found without an address"
            ),
            "split the document; while larger files are indexed on purpose, this stays",
        );
        let count = unpacked.count;
        self.find(
            Check::BinaryUrisWithheld,
            unpacked,
            &format!(
                "[index].max_decompressed_size is above {binary} MiB, so that {count} binary \
                 document(s) are found without an address"
            ),
            &format!("lower [index].max_decompressed_size to {binary} MiB"),
        );
    }

    fn sizes(&mut self, documents: &[Arc<Document>]) {
        let count = documents.iter().filter(|row| row.size_bytes.is_none()).count() as u64;
        self.find(
            Check::SizeNotRecorded,
            Damage { count, samples: Vec::new() },
            &format!("the size of {count} document(s) is not recorded"),
            "groove index",
        );
    }

    /// Whether the frontmatter keys are kept that the schema declares.
    async fn fields(&mut self, recorded: Option<&BTreeSet<String>>, declared: &BTreeSet<String>) {
        let (check, summary) = match recorded {
            None => (
                Check::DeclaredFieldsPending,
                "no run has come to its end, so that the index does not know which frontmatter \
                 fields it holds: filters on fields are refused"
                    .to_owned(),
            ),
            Some(recorded) if recorded != declared => {
                (Check::DeclaredFieldsStale, stale(recorded, declared))
            }
            Some(_) => return,
        };
        match self.snapshot.statistics().await {
            Ok(statistics) => self.findings.push(Finding {
                check,
                summary,
                count: statistics.field_values,
                samples: Vec::new(),
                remedy: "groove index".to_owned(),
            }),
            Err(error) => self.could_not(check, &error),
        }
    }

    /// Whether source code was cut as it would be now, and by its definitions.
    async fn source_code(&mut self, documents: &[Arc<Document>], terms: Terms<'_>) {
        let is_code = |path: &DocumentPath| {
            let format = path.extension().and_then(|it| terms.formats.of_extension(it));
            format.is_some_and(|format| format.class == Class::Code)
        };
        let is_of_today = |row: &Document| {
            let today = terms.registry.recipe_of(&row.path, &[], terms.settings.max_chunk_chars);
            policy(row.recipe.as_deref()) == policy(today.as_deref())
        };
        let code = documents.iter().filter(|row| is_code(&row.path));
        let count = code.filter(|row| !is_of_today(row)).count() as u64;
        self.find(
            Check::ChunkPolicyNotRecorded,
            Damage { count, samples: Vec::new() },
            &format!(
                "{count} source file(s) were cut in a way that is not recorded or not today's, so \
                 that it cannot be told whether their definitions were found"
            ),
            &format!("groove index (cuts them anew); groove index --force {ANEW}"),
        );

        let is_tagged = |tag: &String| WITHOUT_DEFINITIONS.contains(&tag.as_str());
        let mut found = Vec::new();
        for row in documents.iter().filter(|row| row.tags.iter().any(is_tagged)) {
            // A note may have such a tag by hand; its chunks have no lines.
            match self.snapshot.first_chunks_of(&row.path, 1).await {
                Ok(first) if first.iter().any(|stored| stored.chunk.lines.is_some()) => {
                    found.push(&**row);
                }
                Ok(_) => {}
                Err(error) => return self.could_not(Check::ChunkedWithoutDefinitions, &error),
            }
        }
        let found = at(found);
        let count = found.count;
        self.find(
            Check::ChunkedWithoutDefinitions,
            found,
            &format!(
                "{count} source file(s) are nested too deeply or have too many definitions, and \
                 were cut without them"
            ),
            "change the file itself: split it, or nest it less; no command helps",
        );
        self.damage(Fault::BlankCode).await;
    }
}

/// What a forced run does, as the end of a remedy.
const ANEW: &str = "builds the whole index anew";

/// What a kind of damage is called, what follows its number, and what helps.
fn explained(fault: Fault) -> (Check, &'static str, String) {
    let anew = || format!("groove index --force ({ANEW})");
    let or_anew = |what: &str| format!("groove index ({what}); groove index --force {ANEW}");
    match fault {
        Fault::NoVectors => (
            Check::VectorTableMissing,
            "chunk(s) are there, but the table of vectors is not: only words find them",
            or_anew("makes all vectors"),
        ),
        Fault::LostVector => (
            Check::MissingEmbedding,
            "chunk(s) have lost their vector: only words find them",
            or_anew("makes the missing vectors"),
        ),
        Fault::OrphanVector => {
            (Check::OrphanEmbedding, "vector(s) belong to no chunk", or_anew("removes them"))
        }
        Fault::LostText => (
            Check::MissingFtsRow,
            "chunk(s) are missing in the full text: no word finds them",
            or_anew("adds them"),
        ),
        Fault::OrphanText => (
            Check::OrphanFtsRow,
            "row(s) of the full text belong to no chunk",
            or_anew("removes them"),
        ),
        Fault::OrphanChunk => {
            (Check::ChunkWithoutDocument, "chunk(s) belong to no document", anew())
        }
        Fault::EmptyDocument => (
            Check::DocumentWithoutChunks,
            "document(s) have no chunk: nothing can find them",
            anew(),
        ),
        Fault::BlankCode => {
            (Check::BlankCodeChunks, "chunk(s) of source code hold nothing but white space", anew())
        }
        Fault::NoKey => (
            Check::NameNotSpellable,
            "document(s) have a name that cannot be opened on Windows",
            "groove index (removes them)".to_owned(),
        ),
        Fault::UnreadableFields => (
            Check::DeclaredFieldsPending,
            "record(s) of declared frontmatter fields cannot be read",
            anew(),
        ),
    }
}

/// Parser and version, which begin a recipe.
fn policy(recipe: Option<&str>) -> Option<&str> {
    recipe.and_then(|recipe| recipe.split(' ').next())
}

fn stale(recorded: &BTreeSet<String>, declared: &BTreeSet<String>) -> String {
    let list = |of: Vec<&String>| of.into_iter().cloned().collect::<Vec<_>>().join(", ");
    let added = list(declared.difference(recorded).collect());
    let gone = list(recorded.difference(declared).collect());
    let changes = [("newly declared", added), ("no longer declared", gone)];
    let changes: Vec<String> = changes
        .into_iter()
        .filter(|(_, fields)| !fields.is_empty())
        .map(|(what, fields)| format!("{what}: {fields}"))
        .collect();
    format!(
        "the schema declares other frontmatter fields than the index holds ({})",
        changes.join("; ")
    )
}

/// Documents as they are reported.
fn at<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Damage {
    let mut damage = Damage::default();
    for row in documents {
        damage.count += 1;
        if damage.samples.len() < Damage::MAX_SAMPLES {
            damage.samples.push(row.path.to_string());
        }
    }
    damage
}

#[cfg(test)]
mod tests;
