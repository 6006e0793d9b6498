//! From a folder to the documents below it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;

use crate::adapters::source::admission::admits;
use crate::adapters::source::filesystem::entry::{Entry, Facts, Kind, Stamp};
use crate::adapters::source::filesystem::folder::{Folder, is_link_on_the_way};
use crate::adapters::source::filesystem::poll::Snapshot;
use crate::adapters::source::filesystem::unavailable;
use crate::domain::document::DocumentPath;
use crate::domain::exclusion::ExclusionRules;
use crate::domain::format::EnabledFormats;
use crate::ports::document_source::{
    Found, LeftOut, LeftOutReason, Listing, SourceError, Unreadable,
};

/// Lists the documents below a root, what only looks like one, and the folders
/// that could not be listed, all sorted.
///
/// Folders wait in a list of their own instead of on the call stack, so that
/// depth is bounded by memory alone, and one of them is open at a time.
///
/// # Errors
///
/// [`SourceError::Unavailable`] if the root cannot be listed.
pub(super) fn walk(
    root: &Folder,
    formats: &EnabledFormats,
    rules: &ExclusionRules,
) -> Result<Listing, SourceError> {
    let mut walk = Walk::new(formats, rules);
    walk.pending.push(String::new());
    walk.enter_pending(root)?;
    Ok(walk.listing())
}

/// Looks at the documents below a root, as [`walk`] does.
///
/// # Errors
///
/// As [`walk`].
pub(super) fn snapshot(
    root: &Folder,
    formats: &EnabledFormats,
    rules: &ExclusionRules,
) -> Result<Snapshot, SourceError> {
    let mut walk = Walk::new(formats, rules);
    walk.pending.push(String::new());
    walk.enter_pending(root)?;
    let stamped = |(found, stamp): (Found, Stamp)| (found.path.as_str().to_owned(), stamp);
    Ok(Snapshot {
        files: walk.found.into_iter().map(stamped).collect(),
        unreadable: walk.unreadable.into_iter().map(|part| part.key).collect(),
        rules: None,
    })
}

/// Lists the documents at or below some keys, sorted. What only looks like one
/// is not mentioned: whoever lists everything tells of it.
///
/// # Errors
///
/// As [`walk`].
pub(super) fn walk_below(
    root: &Folder,
    keys: &BTreeSet<String>,
    formats: &EnabledFormats,
    rules: &ExclusionRules,
) -> Result<Listing, SourceError> {
    let mut walk = Walk::new(formats, rules);
    for key in outermost(keys) {
        walk.begin_at(root, key);
        walk.enter_pending(root)?;
    }
    Ok(Listing { left_out: Vec::new(), ..walk.listing() })
}

/// The keys that lie below none of the others.
fn outermost(keys: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    keys.iter().map(String::as_str).filter(|key| {
        let above = key.match_indices('/').map(|(end, _)| &key[..end]);
        !above.chain((!key.is_empty()).then_some("")).any(|above| keys.contains(above))
    })
}

struct Walk<'rules> {
    formats: &'rules EnabledFormats,
    rules: &'rules ExclusionRules,
    /// Keys of folders that are still to be listed.
    pending: Vec<String>,
    found: Vec<(Found, Stamp)>,
    left_out: Vec<LeftOut>,
    unreadable: Vec<Unreadable>,
}

impl<'rules> Walk<'rules> {
    fn new(formats: &'rules EnabledFormats, rules: &'rules ExclusionRules) -> Self {
        Self {
            formats,
            rules,
            pending: Vec::new(),
            found: Vec::new(),
            left_out: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    fn listing(mut self) -> Listing {
        self.found.sort_unstable_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        self.left_out.sort_by(|a, b| a.name.cmp(&b.name));
        self.unreadable.sort_by(|a, b| a.key.cmp(&b.key));
        let Self { left_out, unreadable, .. } = self;
        let found = self.found.into_iter().map(|(found, _)| found).collect();
        Listing { found, left_out, unreadable, notes: Vec::new() }
    }

    /// Lists the folders that wait, and those in them. One that cannot be listed
    /// is set aside: what is in it must not pass for deleted.
    fn enter_pending(&mut self, root: &Folder) -> Result<(), SourceError> {
        while let Some(key) = self.pending.pop() {
            match self.enter(root, &key) {
                Err(error) if key.is_empty() => return Err(unavailable(&key, error)),
                Err(error) => self.set_aside(key, &error),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn set_aside(&mut self, key: String, error: &io::Error) {
        self.unreadable.push(Unreadable { key, reason: error.to_string() });
    }

    /// Begins with what is at a key, if it lies in no excluded folder.
    fn begin_at(&mut self, root: &Folder, key: &str) {
        if key.is_empty() {
            self.pending.push(String::new());
            return;
        }
        let excluded = key.match_indices('/').any(|(end, _)| self.rules.excludes_dir(&key[..end]));
        if excluded || DocumentPath::new(key).is_err() {
            return;
        }
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        let looked = root.below(parent).and_then(|folder| {
            let kind = folder.facts(OsStr::new(name))?.kind;
            Ok((folder, kind))
        });
        match looked {
            Ok((folder, kind)) => {
                let entry = Entry { name: name.into(), kind: Some(kind) };
                self.look_at(&folder, parent, &entry);
            }
            Err(error) if is_gone(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {}
            Err(error) => self.set_aside(key.to_owned(), &error),
        }
    }

    /// Lists one folder.
    fn enter(&mut self, root: &Folder, key: &str) -> io::Result<()> {
        let folder = match root.below_to_list(key) {
            Ok(folder) => folder,
            Err(error) if !key.is_empty() && is_gone(&error) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
                // The whole path is longer than the system takes.
                self.leave_out(key.to_owned(), LeftOutReason::NotNameable);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for entry in folder.entries()? {
            match entry {
                Ok(entry) => self.look_at(&folder, key, &entry),
                Err(error) if !key.is_empty() && is_gone(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn look_at(&mut self, folder: &Folder, parent: &str, entry: &Entry) {
        let kind = match entry.kind {
            Some(kind) => kind,
            None => match folder.facts(&entry.name) {
                Ok(facts) => facts.kind,
                Err(error) if is_gone(&error) => return,
                // It may be a folder.
                Err(error) => {
                    let key = join(parent, &entry.name.to_string_lossy());
                    if document_path(&entry.name, &key).is_some() && !self.rules.excludes_dir(&key)
                    {
                        self.set_aside(key, &error);
                    }
                    return;
                }
            },
        };
        match kind {
            Kind::Folder => self.look_at_folder(parent, &entry.name),
            Kind::File => self.look_at_file(folder, parent, &entry.name),
            Kind::Link | Kind::Other => {}
        }
    }

    fn look_at_folder(&mut self, parent: &str, name: &OsStr) {
        let key = join(parent, &name.to_string_lossy());
        if self.rules.excludes_dir(&key) {
            return;
        }
        match document_path(name, &key) {
            Some(_) => self.pending.push(key),
            None => self.leave_out(key, LeftOutReason::NotNameable),
        }
    }

    /// Asks for links last, so that nothing is looked at in vain.
    fn look_at_file(&mut self, folder: &Folder, parent: &str, name: &OsStr) {
        let shown = name.to_string_lossy();
        if !admits(self.formats, &shown) {
            return;
        }
        let key = join(parent, &shown);
        if self.rules.excludes_file(&key) {
            return;
        }
        let Some(path) = document_path(name, &key) else {
            self.leave_out(key, LeftOutReason::NotNameable);
            return;
        };
        match folder.facts(name) {
            Ok(Facts { kind: Kind::File, has_other_names: true, .. }) => {
                self.leave_out(key, LeftOutReason::MultipleLinks);
            }
            Ok(Facts { kind: Kind::File, size_bytes, stamp, .. }) => {
                self.found.push((Found { path, size_bytes }, stamp));
            }
            // It has become something else since the folder was listed.
            Ok(_) => {}
            Err(error) if is_gone(&error) => {}
            // It is there, so whoever reads it shall say what is wrong.
            Err(_) => self.found.push((Found { path, size_bytes: 0 }, Stamp::default())),
        }
    }

    fn leave_out(&mut self, name: String, reason: LeftOutReason) {
        self.left_out.push(LeftOut { name, reason });
    }
}

/// Tells whether an error says that what was listed before is not there any
/// more, or that something else is in its place.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || is_link_on_the_way(error)
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// The key of an entry, if it is nameable.
fn document_path(name: &OsStr, key: &str) -> Option<DocumentPath> {
    let _utf_8 = name.to_str()?;
    DocumentPath::new(key).ok()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_below_another_key_is_not_walked_twice() {
        let keys = ["a", "a/b", "a/b/c.md", "ab", "c/d.md"].map(str::to_owned).into();
        assert_eq!(outermost(&keys).collect::<Vec<_>>(), ["a", "ab", "c/d.md"]);
        let keys = ["", "a"].map(str::to_owned).into();
        assert_eq!(outermost(&keys).collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn a_folder_that_went_away_meanwhile_has_no_documents() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("file"), "text").unwrap();
        symlink("..", place.path().join("link")).unwrap();
        let root = Folder::open(place.path()).unwrap();
        let (formats, rules) = (EnabledFormats::default(), ExclusionRules::default());
        let mut walk = Walk::new(&formats, &rules);
        for key in ["gone", "gone/deep", "file", "link"] {
            walk.enter(&root, key).unwrap();
        }
        assert!(walk.found.is_empty() && walk.left_out.is_empty());
    }

    // IDX-18
    #[test]
    fn an_entry_of_which_the_listing_tells_no_kind_is_asked_for_it() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        fs::write(place.path().join("file.md"), "text").unwrap();
        symlink("file.md", place.path().join("link.md")).unwrap();
        let root = Folder::open(place.path()).unwrap();
        let (formats, rules) = (EnabledFormats::default(), ExclusionRules::default());
        let mut walk = Walk::new(&formats, &rules);
        for name in ["folder", "file.md", "link.md", "gone.md"] {
            walk.look_at(&root, "", &Entry { name: name.into(), kind: None });
        }
        assert_eq!(walk.pending, ["folder"]);
        let keys: Vec<&str> = walk.found.iter().map(|(found, _)| found.path.as_str()).collect();
        assert_eq!(keys, ["file.md"]);
    }
}
