//! A knowledge base that is indexed through an endpoint of this machine, so
//! that neither a model nor a network is needed, and what its index holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::contents::Contents;
use crate::endpoint::{Act, DIMENSION, FakeEndpoint};
use crate::groove::{Base, copy, stderr, stdout};

/// How long anything is waited for before it counts as never happening.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Files by their keys.
pub(crate) type Tree = BTreeMap<String, String>;

/// A knowledge base, an endpoint, and a configuration that joins them.
pub(crate) struct Site {
    pub(crate) base: Base,
    pub(crate) fake: FakeEndpoint,
    /// The end of the configuration.
    more: Mutex<String>,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::beside(FakeEndpoint::new(&[]))
    }

    fn beside(fake: FakeEndpoint) -> Self {
        let site = Self { base: Base::new(&[]), fake, more: Mutex::default() };
        site.configure("");
        site
    }

    /// Writes the configuration, with more lines at its end.
    pub(crate) fn configure(&self, more: &str) {
        let text = format!(
            "[embedding]\nprovider = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n\
             dimension = {DIMENSION}\nmax_retries = 0\n{more}",
            self.fake.url()
        );
        fs::write(self.config(), text).unwrap();
        more.clone_into(&mut self.more.lock().unwrap());
    }

    fn config(&self) -> PathBuf {
        self.base.index().with_file_name("named.toml")
    }

    /// The folder that holds the knowledge base and its index.
    pub(crate) fn folder(&self) -> PathBuf {
        self.base.index().parent().unwrap().to_owned()
    }

    pub(crate) fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let (config, kb) = (self.config(), self.base.kb());
        let mut all =
            vec!["--config", config.to_str().unwrap(), command, "--kb-path", kb.to_str().unwrap()];
        all.extend(arguments);
        self.base.bare(&all)
    }

    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> Output {
        self.command(command, arguments).output().unwrap()
    }

    /// Indexes, which has to succeed, and returns what the run said.
    pub(crate) fn indexed(&self, arguments: &[&str]) -> String {
        let output = self.run("index", arguments);
        assert!(output.status.success(), "{:?}\n{}", output.status, stderr(&output));
        self.fake.take();
        stderr(&output)
    }

    /// Searches, which has to succeed, and returns the paths of the hits.
    pub(crate) fn found(&self, query: &str) -> Vec<String> {
        let output = self.run("search", &["--limit", "20", "--", query]);
        assert!(output.status.success(), "{:?}\n{}", output.status, stderr(&output));
        self.fake.take();
        hits(&output)
    }

    /// From now on every answer of the endpoint takes this long.
    pub(crate) fn slow(&self, pause: Duration) {
        self.fake.always((!pause.is_zero()).then_some(Act::EmbedAfter(pause)));
    }

    /// What the index holds.
    pub(crate) fn contents(&self) -> Contents {
        Contents::of(&self.base.index())
    }

    /// What an index of this folder holds that one undisturbed run has made.
    pub(crate) fn fresh(&self) -> Contents {
        static ENDPOINT: OnceLock<FakeEndpoint> = OnceLock::new();
        let fake = ENDPOINT.get_or_init(|| FakeEndpoint::new(&[])).clone();
        let other = Self::beside(fake);
        other.configure(&self.more.lock().unwrap());
        copy(&self.base.kb(), &other.base.kb());
        other.indexed(&["--quiet"]);
        other.contents()
    }

    /// Makes the folder hold exactly these files. Each is replaced at once, as
    /// editors save, so that nobody reads a part of one.
    pub(crate) fn arrange(&self, from: &Tree, to: &Tree) {
        for (path, change) in changes(from, to) {
            self.replace(&path, change.as_deref());
        }
    }

    /// Replaces a file at once, or removes it.
    pub(crate) fn replace(&self, path: &str, text: Option<&str>) {
        let target = self.base.kb().join(path);
        let Some(text) = text else { return fs::remove_file(target).unwrap() };
        let aside = self.folder().join("being-written");
        fs::write(&aside, text).unwrap();
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::rename(aside, target).unwrap();
    }

    /// The files beside the knowledge base that belong to an index.
    pub(crate) fn index_files(&self) -> BTreeSet<String> {
        fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with(".groove"))
            .collect()
    }

    pub(crate) fn assert_tidy(&self) {
        assert_eq!(self.index_files(), BTreeSet::from([".groove.db".to_owned()]));
    }

    /// Takes the index away, with everything that belongs to it, and puts a copy
    /// of another one there.
    pub(crate) fn restore(&self, backup: Option<&Path>) {
        for name in self.index_files() {
            fs::remove_file(self.folder().join(name)).unwrap();
        }
        if let Some(backup) = backup {
            fs::copy(backup, self.base.index()).unwrap();
        }
    }

    /// A copy of the index under another name; the index must be closed.
    pub(crate) fn backup(&self, name: &str) -> PathBuf {
        self.assert_tidy();
        let backup = self.folder().join(name);
        fs::copy(self.base.index(), &backup).unwrap();
        backup
    }
}

/// The paths of what a search has found.
pub(crate) fn hits(output: &Output) -> Vec<String> {
    let answer: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    let hits = answer["results"].as_array().unwrap();
    hits.iter().map(|hit| hit["path"].as_str().unwrap().to_owned()).collect()
}

/// What has to be written, and what removed, to come from one tree to another.
pub(crate) fn changes(from: &Tree, to: &Tree) -> Vec<(String, Option<String>)> {
    let gone = from.keys().filter(|path| !to.contains_key(*path)).map(|path| (path.clone(), None));
    let written = to
        .iter()
        .filter(|(path, text)| from.get(*path) != Some(text))
        .map(|(path, text)| (path.clone(), Some(text.clone())));
    gone.chain(written).collect()
}

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < PATIENCE, "{what}: still not so after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The number that a variable of the environment gives, else this one.
pub(crate) fn wanted(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}"))
    })
}

/// Draws, from a seed that a failure names.
pub(crate) struct Draw {
    seed: u64,
    state: u64,
}

impl Draw {
    /// From `GROOVE_TEST_SEED`, else from a seed that nobody knows.
    pub(crate) fn new() -> Self {
        use std::hash::{BuildHasher as _, RandomState};

        let seed = wanted("GROOVE_TEST_SEED", RandomState::new().hash_one(0) >> 16);
        Self { seed, state: seed }
    }

    /// The next of `SplitMix64`.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Whether something happens that happens this often of a hundred times.
    pub(crate) fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let place = self.below(choices.len() as u64);
        &choices[usize::try_from(place).unwrap()]
    }

    /// A document: metadata in some, a few sections, now and then other scripts.
    pub(crate) fn document(&mut self, sections: u64) -> String {
        let mut text = String::new();
        if self.percent(50) {
            let (topic, tag) = (*self.one_of(&WORDS), *self.one_of(&WORDS));
            let day = self.below(28) + 1;
            let number = self.below(1000);
            writeln!(text, "---\ntitle: The {topic} of {number}\ndate: 2024-03-{day:02}").unwrap();
            writeln!(text, "tags: [{tag}, all]\n---").unwrap();
        }
        for _ in 0..=self.below(sections) {
            let number = self.below(1000);
            write!(text, "## {} {number}\n\n", self.one_of(&WORDS)).unwrap();
            for _ in 0..self.below(60) + 20 {
                let word = *self.one_of(&WORDS);
                text += word;
                text += if self.percent(10) { ".\n" } else { " " };
            }
            text += "\n\n";
        }
        text
    }

    /// A knowledge base of so many documents.
    pub(crate) fn tree(&mut self, documents: u64) -> Tree {
        (0..documents).map(|number| (self.path(number), self.document(4))).collect()
    }

    fn path(&mut self, number: u64) -> String {
        let folder = self.one_of(&FOLDERS);
        format!("{folder}{number:04}.md")
    }

    /// The same knowledge base some time later: edited, moved, removed and added
    /// to.
    pub(crate) fn later(&mut self, tree: &Tree) -> Tree {
        let mut later = Tree::new();
        for (path, text) in tree {
            match self.below(20) {
                0..8 => drop(later.insert(path.clone(), text.clone())),
                8..11 => drop(later.insert(path.clone(), self.document(4))),
                11..13 => {
                    // One section more, so that the others keep their vectors.
                    drop(later.insert(path.clone(), format!("{text}{}", self.document(1))));
                }
                13..15 => {
                    // Another title over the same text.
                    let text = format!("---\ntitle: {}\n---\n{}", self.below(1000), body(text));
                    drop(later.insert(path.clone(), text));
                }
                15..17 => drop(later.insert(moved(path), text.clone())),
                17 => drop(later.insert(moved(path), format!("{text}\nAnd more."))),
                _ => {}
            }
        }
        for number in 0..tree.len() as u64 / 4 {
            let path = format!("later/{}", self.path(number));
            later.insert(path, self.document(4));
        }
        later
    }
}

impl Drop for Draw {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("GROOVE_TEST_SEED={} draws the same again", self.seed);
        }
    }
}

/// Another name in the same folder.
fn moved(path: &str) -> String {
    path.replace(".md", " moved.md")
}

/// A document without its metadata.
fn body(text: &str) -> &str {
    match text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
        Some((_, body)) => body,
        None => text,
    }
}

const FOLDERS: [&str; 6] = ["", "sea/", "sea/north/", "land/", "land/roads/old/", "港/"];

pub(crate) const WORDS: [&str; 32] = [
    "harbour",
    "tide",
    "bowline",
    "anchor",
    "lantern",
    "gull",
    "keel",
    "mast",
    "rudder",
    "sail",
    "compass",
    "chart",
    "reef",
    "current",
    "mooring",
    "ferry",
    "pilot",
    "cargo",
    "crane",
    "dock",
    "fog",
    "storm",
    "signal",
    "buoy",
    "channel",
    "depth",
    "lighthouse",
    "island",
    "strait",
    "bay",
    "灯台",
    "naïve",
];
