//! Following what changes below a folder by looking at it again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use crate::adapters::source::filesystem::entry::Stamp;
use crate::adapters::source::filesystem::watch::Place;
use crate::adapters::source::filesystem::{FilesystemSource, walk};
use crate::domain::exclusion::IGNORE_FILE_NAME;
use crate::ports::document_source::{ReportChange, SourceChange, SourceError};

/// What a listing finds, and how each file looked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// By key.
    pub(super) files: BTreeMap<String, Stamp>,
    /// The keys of folders that could not be listed.
    pub(super) unreadable: BTreeSet<String>,
    /// The ignore file, if there is one.
    pub(super) rules: Option<Stamp>,
}

impl Snapshot {
    /// Looks at everything that a listing looks at; no file is opened.
    fn take(source: &FilesystemSource) -> Result<Self, SourceError> {
        let root = source.open_root()?;
        let rules = root.facts(OsStr::new(IGNORE_FILE_NAME)).ok().map(|facts| facts.stamp);
        let found = walk::snapshot(&root, &source.formats, &source.rules_now().0)?;
        Ok(Self { rules, ..found })
    }

    fn is_hidden(&self, key: &str) -> bool {
        !self.unreadable.is_empty()
            && (self.unreadable.contains(key)
                || key.match_indices('/').any(|(end, _)| self.unreadable.contains(&key[..end])))
    }

    /// Keeps what was known of folders that cannot be listed now.
    fn keep_hidden(&mut self, before: &Self) {
        let hidden = |(key, _): &(&String, &Stamp)| self.is_hidden(key);
        let kept: Vec<_> =
            before.files.iter().filter(hidden).map(|(key, stamp)| (key.clone(), *stamp)).collect();
        for (key, stamp) in kept {
            self.files.entry(key).or_insert(stamp);
        }
    }

    /// What has changed since an earlier one. Only that something differs counts,
    /// never which time is the later one: clocks are set back, too.
    ///
    /// - `is_gone`: whether there is nothing at a key. It is asked where other
    ///   rules may be all that has changed: what they exclude is not gone.
    fn changes_since(&self, before: &Self, is_gone: impl Fn(&str) -> bool) -> Vec<SourceChange> {
        let mut changes = BTreeSet::new();
        let other_rules = self.rules != before.rules;
        if other_rules {
            changes.insert(SourceChange::Rules);
        }
        let at = |key: &String| SourceChange::At(key.clone());
        for (key, stamp) in &self.files {
            if before.files.get(key) != Some(stamp) {
                changes.insert(at(key));
            }
        }
        for key in before.files.keys().filter(|key| !self.files.contains_key(*key)) {
            if !other_rules || is_gone(key) {
                changes.insert(at(key));
            }
        }
        changes.extend(self.unreadable.symmetric_difference(&before.unreadable).map(at));
        changes.into_iter().collect()
    }
}

/// What the thread works with.
pub(super) struct Poller {
    source: FilesystemSource,
    report: ReportChange,
    interval: Duration,
    place: Option<Place>,
    last: Snapshot,
}

impl Poller {
    /// Looks for the first time.
    pub(super) fn begin(
        source: FilesystemSource,
        report: ReportChange,
        interval: Duration,
    ) -> Result<Self, SourceError> {
        let place = Place::of(&source.root);
        let last = Snapshot::take(&source)?;
        Ok(Self { source, report, interval, place, last })
    }

    /// Looks again after each interval, until it is told to stop or who could
    /// tell it has gone.
    pub(super) fn follow<Message>(mut self, messages: &Receiver<Message>) {
        let mut is_troubled = false;
        while let Err(RecvTimeoutError::Timeout) = messages.recv_timeout(self.interval) {
            let looked = Snapshot::take(&self.source);
            if Place::of(&self.source.root) != self.place {
                // Another folder has this path, such as the one below a file
                // system that was unmounted: what is not in it has not gone.
                continue;
            }
            let mut now = match looked {
                Ok(now) => now,
                Err(error) => {
                    if !is_troubled {
                        let error = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(error, "the knowledge base cannot be looked at for changes");
                    }
                    is_troubled = true;
                    continue;
                }
            };
            is_troubled = false;
            now.keep_hidden(&self.last);
            let changes = now.changes_since(&self.last, |key| self.is_gone(key));
            self.last = now;
            for change in changes {
                if !matches!(messages.try_recv(), Err(TryRecvError::Empty)) {
                    return;
                }
                (self.report)(change);
            }
        }
    }

    fn is_gone(&self, key: &str) -> bool {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        self.source.open_root().is_ok_and(|root| {
            let facts = root.below(parent).and_then(|folder| folder.facts(OsStr::new(name)));
            matches!(facts, Err(error) if error.kind() == io::ErrorKind::NotFound)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(modified: i128, size_bytes: u64) -> Stamp {
        Stamp { modified_ns: modified, changed_ns: 0, size_bytes }
    }

    fn snapshot(files: &[(&str, Stamp)]) -> Snapshot {
        let files = files.iter().map(|(key, stamp)| ((*key).to_owned(), *stamp)).collect();
        Snapshot { files, ..Snapshot::default() }
    }

    fn at(keys: &[&str]) -> Vec<SourceChange> {
        keys.iter().map(|key| SourceChange::At((*key).to_owned())).collect()
    }

    // IDX-B20 IDX-152a
    #[test]
    fn whatever_differs_is_a_change_in_whichever_direction_the_clock_went() {
        let before = snapshot(&[
            ("back.md", stamp(9, 1)),
            ("gone.md", stamp(5, 1)),
            ("longer.md", stamp(5, 1)),
            ("on.md", stamp(5, 1)),
            ("same.md", stamp(5, 1)),
        ]);
        let now = snapshot(&[
            ("back.md", stamp(-3, 1)),
            ("longer.md", stamp(5, 2)),
            ("new.md", stamp(5, 1)),
            ("on.md", stamp(i128::MAX, 1)),
            ("same.md", stamp(5, 1)),
        ]);
        let expected = at(&["back.md", "gone.md", "longer.md", "new.md", "on.md"]);
        assert_eq!(now.changes_since(&before, |_| unreachable!()), expected);
        assert_eq!(now.changes_since(&now, |_| unreachable!()), []);
    }

    // IDX-B20 IDX-36 IDX-155
    #[test]
    fn what_other_rules_exclude_is_not_reported_as_gone() {
        let before = snapshot(&[("a.md", stamp(1, 1)), ("b.md", stamp(1, 1))]);
        let now = Snapshot { rules: Some(stamp(1, 1)), ..Snapshot::default() };
        let mut expected = at(&["b.md"]);
        expected.push(SourceChange::Rules);
        assert_eq!(now.changes_since(&before, |key| key == "b.md"), expected);
    }

    // IDX-B20 IDX-B05
    #[test]
    fn a_folder_that_cannot_be_read_any_more_is_one_change() {
        let before = snapshot(&[("a/b.md", stamp(1, 1)), ("a/c/d.md", stamp(1, 1))]);
        let mut closed = Snapshot { unreadable: ["a".to_owned()].into(), ..Snapshot::default() };
        closed.keep_hidden(&before);
        assert_eq!(closed.changes_since(&before, |_| unreachable!()), at(&["a"]));
        let mut open = snapshot(&[("a/b.md", stamp(1, 1))]);
        open.keep_hidden(&closed);
        assert_eq!(open.changes_since(&closed, |_| unreachable!()), at(&["a", "a/c/d.md"]));
    }
}
