//! What an index holds as text, and what a person sees of an index run.
#![expect(clippy::print_stderr, reason = "this is where the program speaks")]

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::skips::Skips;
use grooveseek::app::index::{IndexEvent, Observer, Report};
use grooveseek::app::line::on_one_line;
use grooveseek::app::quality::QualityReport;
use grooveseek::app::wiring::Status;
use grooveseek::domain::filter::passes_quality;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Writes a result to standard output. A reader that has gone away is no
/// failure of ours.
pub(crate) fn result(text: &str) -> io::Result<()> {
    let written = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line for the operator to standard error.
pub(crate) fn notice(text: &str) {
    eprintln!("{text}");
}

/// What an index holds, one fact a line.
pub(crate) fn status_as_text(status: &Status, min_quality: f32) -> String {
    let Status { summary, statistics, runs, .. } = status;
    let mut lines = vec![
        format!("Documents: {}", summary.documents),
        format!("Chunks: {}", summary.chunks),
        format!("Tags that could not be read: {}", statistics.unreadable_tags),
        format!("Context mode: {}", summary.context_mode.unwrap_or_default().as_str()),
    ];
    let fields = match &summary.declared_fields {
        None => "pending".to_owned(),
        Some(fields) if fields.is_empty() => "none".to_owned(),
        Some(fields) => fields.iter().cloned().collect::<Vec<_>>().join(", "),
    };
    lines.push(format!("Declared fields: {fields} ({} values)", statistics.field_values));
    if let Some(identity) = &summary.identity {
        lines.push(format!("Model: {} (dimension {})", identity.model, identity.dimension));
    }
    if summary.pending_chunks > 0 {
        lines.push(format!("Chunks whose vector is still to come: {}", summary.pending_chunks));
    }
    let lost = statistics.chunks_without_vector.saturating_sub(summary.pending_chunks);
    if lost > 0 {
        lines.push(format!("Chunks that have lost their vector: {lost}"));
    }
    for run in runs {
        lines.push(format!(
            "Indexing: process {} since {}, {} of {} documents",
            run.process, run.since, run.done, run.total
        ));
    }
    if min_quality > 0.0 {
        let count = |passes: bool| -> u64 {
            let side = |(quality, _): &&(f32, u64)| passes_quality(*quality, min_quality) == passes;
            statistics.qualities.iter().filter(side).map(|(_, chunks)| chunks).sum()
        };
        lines.push(format!(
            "Quality: {} chunks pass the threshold of {min_quality}, {} do not",
            count(true),
            count(false)
        ));
    }
    lines.join("\n") + "\n"
}

/// What lowers the scores of chunks: a line for each penalty, then its examples.
pub(crate) fn quality_as_text(report: &QualityReport) -> String {
    let QualityReport { chunks, lowered, penalties } = report;
    let mut lines = vec![format!("Quality below 1: {lowered} of {chunks} chunks")];
    for found in penalties {
        let (name, amount) = (found.penalty.as_str(), found.penalty.amount());
        lines.push(format!("  {name} (-{amount}): {} chunks", found.chunks));
        lines.extend(found.examples.iter().map(|example| {
            let heading = example.heading.as_ref().map(|heading| format!("#{heading}"));
            let heading = heading.unwrap_or_default();
            on_one_line(&format!("    {}{heading}: {}", example.path, example.beginning))
                .into_owned()
        }));
    }
    lines.join("\n") + "\n"
}

/// How much of a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// A line for each file that changes.
    Files,
    /// Start, count and summary.
    Quiet,
    /// A bar on a terminal, a line now and then elsewhere.
    Progress,
}

/// Shows an index run on standard error.
pub(crate) struct Console {
    detail: Detail,
    what: String,
    bar: Option<ProgressBar>,
    told: Mutex<Option<usize>>,
    skips: Mutex<Skips>,
}

impl Console {
    /// Gets ready to show a run over `what`.
    pub(crate) fn new(detail: Detail, what: String) -> Self {
        let bar = (detail == Detail::Progress && io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = "{elapsed_precise} [{bar:30}] {pos}/{len} ({percent}%) {msg} eta {eta}";
            let style = ProgressStyle::with_template(style)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ");
            bar.set_style(style);
            bar
        });
        Self { detail, what, bar, told: Mutex::default(), skips: Mutex::default() }
    }

    /// Writes a line without tearing the bar.
    fn line(&self, text: &str) {
        let text = on_one_line(text);
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn advanced(&self, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_message("");
            bar.set_position(done as u64);
            return;
        }
        if self.detail != Detail::Progress || total == 0 {
            return;
        }
        let step = (total / 20).max(1);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = match *told {
            None => done == total || done >= step,
            Some(last) => done > last && (done == total || done / step > last / step),
        };
        if due {
            *told = Some(done);
            self.line(&format!("Progress: {done}/{total} ({}%)", done * 100 / total));
        }
    }

    fn scanning(&self, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_message(format!("scanning {done}/{total}"));
        }
    }

    fn texts(&self, done: usize, total: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("text {done}/{total}"));
        } else if self.detail == Detail::Files && done == total {
            self.line(&format!(
                "The text of {total} new document(s) can be searched; their vectors follow"
            ));
        }
    }

    fn file(&self, text: &str) {
        if self.detail == Detail::Files {
            self.line(text);
        }
    }
}

impl Observer for Console {
    fn event(&self, event: IndexEvent<'_>) {
        match event {
            IndexEvent::Started { force } => {
                let how = if force { " anew" } else { "" };
                self.line(&format!("Indexing {}{how} ...", self.what));
            }
            IndexEvent::Found { files, extensions } => {
                self.line(&format!("Found {files} source files ({})", extensions.join(", ")));
            }
            IndexEvent::Scanning { done, total } => self.scanning(done, total),
            IndexEvent::Texts { done, total } => self.texts(done, total),
            IndexEvent::Recutting { documents } => {
                if self.detail != Detail::Quiet {
                    self.line(&format!(
                        "Re-reading {documents} unchanged document(s) once: their chunks were made \
                         by an earlier version or under other settings"
                    ));
                }
            }
            IndexEvent::Advanced { done, total } => self.advanced(done, total),
            IndexEvent::Indexed { path, chunks } => {
                self.file(&format!("  indexed: {path} ({chunks} chunks)"));
            }
            IndexEvent::Described { path } => self.file(&format!("  updated: {path}")),
            IndexEvent::Renamed { from, to } => self.file(&format!("  renamed: {from} -> {to}")),
            IndexEvent::Deleted { path } => self.file(&format!("  deleted: {path}")),
            IndexEvent::Rejected { path, reason, forced } => {
                let fate = IndexEvent::fate_of_rejected(forced);
                self.line(&format!(
                    "warning: {path}: embedding endpoint rejected the input ({reason}); {fate}"
                ));
            }
            IndexEvent::Skipped { path, reason } => {
                self.skips.lock().unwrap_or_else(PoisonError::into_inner).count(reason);
                self.file(&format!("Skipping {path}: {reason}"));
            }
            IndexEvent::FrontmatterUnparsed { path, reason } => {
                self.line(&format!("warning: {path}: failed to parse YAML frontmatter: {reason}"));
            }
            IndexEvent::Note(text) => self.line(&format!("note: {text}")),
            IndexEvent::Warning(text) => self.line(&format!("warning: {text}")),
            IndexEvent::Finished(report) => {
                if let Some(bar) = &self.bar {
                    bar.finish_and_clear();
                }
                let skips = self.skips.lock().unwrap_or_else(PoisonError::into_inner).summary();
                if let Some(reasons) = skips {
                    self.line(&reasons);
                }
                self.line(&summary(report));
            }
        }
    }
}

fn summary(report: &Report) -> String {
    let Report {
        documents,
        chunks,
        updated,
        renamed,
        deleted,
        skipped,
        frontmatter_unparsed,
        not_nameable,
        duration,
        ..
    } = report;
    let mut text = format!(
        "Done in {}ms: {documents} docs ({updated} updated, {renamed} renamed, {deleted} deleted, \
         {skipped} skipped, {frontmatter_unparsed} frontmatter unparsed), {chunks} chunks",
        duration.as_millis()
    );
    if *not_nameable > 0 {
        let count = not_nameable.to_string();
        text.extend([", ", &count, " not indexed (names that could not be opened)"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use grooveseek::app::quality::{Example, Lowered};
    use grooveseek::domain::document::DocumentPath;
    use grooveseek::domain::quality::Penalty;

    use super::*;

    // QUA-B06
    #[test]
    fn what_lowers_scores_is_a_line_for_each_penalty_and_example() {
        let example = |heading: Option<&str>, beginning: &str| Example {
            path: DocumentPath::new("ops/a.md").unwrap(),
            heading: heading.map(str::to_owned),
            beginning: beginning.to_owned(),
        };
        let examples = vec![example(Some("Po\x1b[2Jrt"), "3100"), example(None, "a\nb")];
        let lowered = Lowered { penalty: Penalty::Length, chunks: 7, examples };
        let report = QualityReport { chunks: 12, lowered: 8, penalties: vec![lowered] };
        let expected = "Quality below 1: 8 of 12 chunks\n  length (-0.6): 7 chunks\n    \
                        ops/a.md#Po\\u{1b}[2Jrt: 3100\n    ops/a.md: a\\nb\n";
        assert_eq!(quality_as_text(&report), expected);
    }

    // QUA-18 QUA-13
    #[test]
    fn passing_chunks_are_counted_as_a_search_would_and_only_with_a_threshold() {
        let mut status = Status::default();
        status.statistics.qualities = vec![(0.1, 2), (1.0 - 0.6, 3), (1.0, 4)];
        let text = |least| status_as_text(&status, least);
        let line = "Quality: 7 chunks pass the threshold of 0.4, 2 do not\n";
        assert!(text(0.4).contains(line), "{}", text(0.4));
        assert!(!text(0.0).contains("Quality"));
    }

    #[test]
    fn the_name_of_a_file_neither_ends_a_line_nor_speaks_to_the_terminal() {
        assert_eq!(on_one_line("notes/日本 é.md"), "notes/日本 é.md");
        assert_eq!(on_one_line("a\nDone\x1b[2J.md"), "a\\nDone\\u{1b}[2J.md");
    }
}
