//! Following what changes below a folder.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use notify::event::{EventKind, ModifyKind};
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::adapters::source::admission::admits;
use crate::adapters::source::filesystem::FilesystemSource;
use crate::adapters::source::filesystem::network::is_on_network;
use crate::adapters::source::filesystem::poll::Poller;
use crate::domain::exclusion::{ExclusionRules, IGNORE_FILE_NAME};
use crate::ports::document_source::{
    Polling, PollingReason, ReportChange, SourceChange, SourceError, Watch, WatchMode,
};

/// Whether one watch on the root covers everything below it. Where it does not,
/// each folder has one, and excluded folders have none.
const COVERS_ALL: bool = cfg!(any(target_os = "macos", target_os = "windows"));

/// Follows the changes of a folder on a thread of its own, until it is dropped.
pub(super) struct FilesystemWatch {
    root: PathBuf,
    place: Option<Place>,
    polling: Option<Polling>,
    /// The thread ends when it is told to.
    stop: Sender<Message>,
}

enum Message {
    Event(notify::Result<Event>),
    Stop,
}

impl FilesystemWatch {
    /// Watches everything below the root before it returns.
    pub(super) fn begin(
        source: FilesystemSource,
        report: ReportChange,
    ) -> Result<Self, SourceError> {
        match polling(&source) {
            Some(polling) => Self::begin_polling(source, report, polling),
            None => Self::begin_listening(source, report),
        }
    }

    fn begin_polling(
        source: FilesystemSource,
        report: ReportChange,
        polling: Polling,
    ) -> Result<Self, SourceError> {
        let (stop, messages) = mpsc::channel();
        let root = source.root.clone();
        let place = Place::of(&root);
        let poller = Poller::begin(source, report, polling.interval)?;
        on_a_thread(&root, move || poller.follow(&messages))?;
        Ok(Self { root, place, polling: Some(polling), stop })
    }

    fn begin_listening(
        source: FilesystemSource,
        report: ReportChange,
    ) -> Result<Self, SourceError> {
        let (sender, messages) = mpsc::channel();
        let events = sender.clone();
        let watcher = RecommendedWatcher::new(
            // Nobody listens any more once the watch was dropped.
            move |event| drop(events.send(Message::Event(event))),
            Config::default().with_follow_symlinks(false),
        )
        .map_err(|error| cannot_watch(&source.root, error))?;
        let root = source.root.clone();
        let place = Place::of(&root);
        let rules = source.rules_now().0;
        let mut follower = Follower { source, rules, watcher, report, watched: BTreeSet::new() };
        follower.arm("").map_err(|error| cannot_watch(&root, error))?;
        on_a_thread(&root, move || follower.follow(&messages))?;
        Ok(Self { root, place, polling: None, stop: sender })
    }
}

fn on_a_thread(root: &Path, work: impl FnOnce() + Send + 'static) -> Result<(), SourceError> {
    let begun = thread::Builder::new().name("watch".to_owned()).spawn(work);
    begun.map(drop).map_err(|error| cannot_watch(root, notify::Error::io(error)))
}

/// Whether the changes of a source have to be looked for, and why.
fn polling(source: &FilesystemSource) -> Option<Polling> {
    let reason = match source.watch_mode {
        WatchMode::Poll => PollingReason::Configured,
        WatchMode::Auto if is_on_network(&source.root) => PollingReason::NetworkFileSystem,
        WatchMode::Auto | WatchMode::Events => return None,
    };
    Some(Polling { interval: source.poll_interval, reason })
}

impl Watch for FilesystemWatch {
    fn is_alive(&self) -> bool {
        self.place.is_some() && Place::of(&self.root) == self.place
    }

    fn polling(&self) -> Option<Polling> {
        self.polling
    }
}

impl Drop for FilesystemWatch {
    fn drop(&mut self) {
        // The thread may have ended by itself.
        drop(self.stop.send(Message::Stop));
    }
}

/// Tells a folder from another one that has its path later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64, u64);

impl Place {
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;

        fs::metadata(path).ok().map(|metadata| Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.is_dir().then_some(Self(0, 0))
    }
}

/// What the thread works with.
struct Follower {
    source: FilesystemSource,
    rules: ExclusionRules,
    watcher: RecommendedWatcher,
    report: ReportChange,
    /// The keys of the folders that have a watch.
    watched: BTreeSet<String>,
}

impl Follower {
    fn follow(mut self, messages: &Receiver<Message>) {
        while let Ok(Message::Event(event)) = messages.recv() {
            match event {
                Ok(event) if event.need_rescan() => (self.report)(SourceChange::Unknown),
                Ok(event) => self.take(&event),
                Err(error) => {
                    tracing::warn!(%error, "changes of the knowledge base were lost");
                    (self.report)(SourceChange::Unknown);
                }
            }
        }
    }

    fn take(&mut self, event: &Event) {
        if matches!(event.kind, EventKind::Access(_)) {
            return;
        }
        for path in &event.paths {
            match key_of(&self.source.root, path) {
                Some(key) if key == IGNORE_FILE_NAME => {
                    self.rules = self.source.rules_now().0;
                    // A folder may be excluded no more.
                    self.arm_and_complain("");
                    (self.report)(SourceChange::Rules);
                }
                Some(key) if !key.is_empty() => self.look_at(key, path, event.kind),
                _ => {}
            }
        }
    }

    fn look_at(&mut self, key: String, path: &Path, kind: EventKind) {
        if key.match_indices('/').any(|(end, _)| self.rules.excludes_dir(&key[..end])) {
            return;
        }
        let appears = matches!(kind, EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)));
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                // One that could not be watched may have become readable.
                let opens = !COVERS_ALL && !self.watched.contains(&key);
                if !(appears || opens) || self.rules.excludes_dir(&key) {
                    return;
                }
                // Watched first: what comes later is an event, what is there
                // already is found by who is told of the folder.
                self.disarm(&key);
                self.arm_and_complain(&key);
                if !appears && !self.watched.contains(&key) {
                    return;
                }
            }
            Ok(_) => {
                // A file may have taken the place of a folder, whose documents have
                // gone with it.
                let was_folder = self.disarm(&key) || (COVERS_ALL && appears);
                let name = key.rsplit('/').next().unwrap_or(&key);
                if !was_folder && !admits(&self.source.formats, name) {
                    return;
                }
            }
            Err(_) => {
                self.disarm(&key);
            }
        }
        (self.report)(SourceChange::At(key));
    }

    fn arm_and_complain(&mut self, key: &str) {
        if let Err(error) = self.arm(key) {
            complain(&self.source.root, key, error);
        }
    }

    /// Watches a folder and, where that is not enough, all below it.
    fn arm(&mut self, key: &str) -> notify::Result<()> {
        if COVERS_ALL {
            let first = key.is_empty() && self.watched.insert(String::new());
            let root = &self.source.root;
            return if first { self.watcher.watch(root, RecursiveMode::Recursive) } else { Ok(()) };
        }
        let mut pending = vec![key.to_owned()];
        while let Some(key) = pending.pop() {
            let path = path_of(&self.source.root, &key);
            if !self.watched.contains(&key) {
                match self.watcher.watch(&path, RecursiveMode::NonRecursive) {
                    Ok(()) => {
                        self.watched.insert(key.clone());
                    }
                    Err(error) if is_gone(&error) && !key.is_empty() => continue,
                    Err(error) if is_closed(&error) && !key.is_empty() => {
                        complain(&path, &key, error);
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                let below = if key.is_empty() { name } else { format!("{key}/{name}") };
                if is_folder && !self.rules.excludes_dir(&below) {
                    pending.push(below);
                }
            }
        }
        Ok(())
    }

    /// Forgets the watches of a folder that has gone: if it was moved, they
    /// would go on under its old name. Tells whether there were any.
    fn disarm(&mut self, key: &str) -> bool {
        if COVERS_ALL {
            return false;
        }
        let inside = format!("{key}/");
        let gone: Vec<String> = self
            .watched
            .range(key.to_owned()..)
            .take_while(|watched| watched.starts_with(key))
            .filter(|watched| *watched == key || watched.starts_with(&inside))
            .cloned()
            .collect();
        for key in &gone {
            self.watched.remove(key);
            // The system forgets a folder that was deleted by itself.
            drop(self.watcher.unwatch(&path_of(&self.source.root, key)));
        }
        !gone.is_empty()
    }
}

fn complain(place: &Path, folder: &str, error: notify::Error) {
    let error = cannot_watch(place, error);
    let error = std::error::Error::source(&error).map(ToString::to_string);
    tracing::warn!(folder, error, "changes in this folder will not be noticed");
}

/// Tells whether an error is one of this folder, so that others can be watched.
fn is_closed(error: &notify::Error) -> bool {
    matches!(error.kind, notify::ErrorKind::Io(_))
}

fn path_of(root: &Path, key: &str) -> PathBuf {
    if key.is_empty() { root.to_owned() } else { root.join(key) }
}

/// The key of a path below the root; where a part of it is no key, that of the
/// folder above.
fn key_of(root: &Path, path: &Path) -> Option<String> {
    let below = path.strip_prefix(root).ok()?;
    let names = below.components().map_while(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    Some(names.collect::<Vec<_>>().join("/"))
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
        _ => false,
    }
}

fn cannot_watch(root: &Path, error: notify::Error) -> SourceError {
    let remedy = match error.kind {
        notify::ErrorKind::MaxFilesWatch => {
            "; the system allows too few watches, raise fs.inotify.max_user_watches"
        }
        _ => "",
    };
    SourceError::Unavailable {
        what: format!("the changes of {}{remedy}", root.display()),
        source: error.into(),
    }
}
