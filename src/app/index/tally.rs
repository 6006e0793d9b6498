//! Counting what a run does, and telling of it.

use std::sync::Arc;

use crate::app::index::plan::{Plan, Work};
use crate::app::index::{IndexEvent, Observer, Report};
use crate::domain::document::DocumentPath;
use crate::ports::chunk_store::AnnouncedRun;

/// Counts what is done and tells the observer.
pub(super) struct Tally<'a> {
    pub(super) observer: &'a Arc<dyn Observer>,
    pub(super) report: &'a mut Report,
    /// Who else is to know how far the run is.
    pub(super) announced: Option<&'a dyn AnnouncedRun>,
    /// Documents that were found.
    pub(super) found: usize,
    /// Documents that are settled.
    pub(super) done: usize,
    /// Unchanged documents whose metadata was derived again.
    pub(super) redescribed: usize,
    /// Unchanged documents whose frontmatter turned out not to be understood.
    pub(super) tagged: usize,
    /// Whether the run builds anew.
    pub(super) forced: bool,
    pub(super) inputs: Inputs,
}

/// What became of the texts that a model was given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inputs {
    /// Documents of which it did not take a text.
    pub(super) rejected: u64,
    /// Whether it took any text at all.
    pub(super) accepted: bool,
    /// How many texts it embedded in parts, as they are longer than its window.
    pub(super) in_parts: usize,
}

/// What a change came to, as far as it is told.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    Indexed { chunks: usize },
    Described,
    Removed,
    None,
}

impl<'a> Tally<'a> {
    /// Begins to count what a plan comes to.
    pub(super) fn of(
        plan: &Plan,
        announced: Option<&'a dyn AnnouncedRun>,
        observer: &'a Arc<dyn Observer>,
        report: &'a mut Report,
    ) -> Self {
        let open = plan.new.len() + plan.changed.len() + plan.unfinished;
        let mut tally = Self {
            observer,
            report,
            announced,
            found: plan.found,
            done: 0,
            redescribed: 0,
            tagged: 0,
            forced: plan.forced,
            inputs: Inputs::default(),
        };
        tally.advance_to(plan.found.saturating_sub(open));
        tally
    }

    pub(super) fn note(&self, text: &str) {
        self.observer.event(IndexEvent::Note(text));
    }

    pub(super) fn skipped(&mut self, path: &DocumentPath, reason: &str) {
        self.report.skipped += 1;
        self.observer.event(IndexEvent::Skipped { path, reason });
    }

    pub(super) fn rejected(&mut self, path: &DocumentPath, reason: &str) {
        self.report.skipped += 1;
        self.inputs.rejected += 1;
        let forced = self.forced;
        self.observer.event(IndexEvent::Rejected { path, reason, forced });
    }

    pub(super) fn unparsed(&mut self, path: &DocumentPath, reason: &str) {
        self.report.frontmatter_unparsed += 1;
        self.observer.event(IndexEvent::FrontmatterUnparsed { path, reason });
    }

    /// So many new documents can be found by their text.
    pub(super) fn texts(&self, done: usize, total: usize) {
        self.observer.event(IndexEvent::Texts { done, total });
    }

    pub(super) fn settled(&mut self, path: &DocumentPath, work: Work, effect: Effect) {
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
            (Work::Recut, Effect::Described) | (_, Effect::None) => {}
        }
        // What another process has added is not among what was found.
        self.advance_to((self.done + 1).min(self.found));
    }

    /// Counts so many documents as settled.
    pub(super) fn advance_to(&mut self, done: usize) {
        self.done = done;
        let total = self.found;
        self.observer.event(IndexEvent::Advanced { done, total });
        if let Some(announced) = self.announced {
            announced.advanced(done, total);
        }
    }
}
