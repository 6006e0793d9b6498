//! A served index ends up as one run over the same files would have made it,
//! whatever happened to them and in whatever order.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use ignore::gitignore::GitignoreBuilder;

use crate::contents::Contents;
use crate::server::Server;
use crate::site::{Draw, PATIENCE, Site, Tree, wait_for, wanted};

/// Rounds of changes, by default: in every run of the tests, and in the long
/// one.
const SOME: u64 = 12;
const MANY: u64 = 400;

/// A folder in which something happens, and the server that follows it.
struct Field<'a> {
    site: &'a Site,
    /// Documents that an ignore file let in or kept out after they were there:
    /// only a run over everything settles those.
    unsettled: BTreeSet<String>,
    told: Vec<String>,
    /// Whether the servers have still to notice what is excluded now.
    rules_changed: bool,
}

impl<'a> Field<'a> {
    fn new(site: &'a Site) -> Self {
        Self { site, unsettled: BTreeSet::new(), told: Vec::new(), rules_changed: false }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.site.base.kb().join(key)
    }

    /// Every file or every folder that is there, by key.
    fn all(&self, folders: bool) -> Vec<String> {
        let root = self.site.base.kb();
        let mut keys = Vec::new();
        let mut pending = vec![root.clone()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() == folders {
                    let key = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                    if key != ".grooveignore" {
                        keys.push(key);
                    }
                }
                if path.is_dir() {
                    pending.push(path);
                }
            }
        }
        keys.sort();
        keys
    }

    /// A key that nothing has yet, in a folder that may not be there yet.
    fn free(&self, suffix: &str, draw: &mut Draw) -> String {
        loop {
            let folders = self.all(true);
            let folder = match draw.below(4) {
                0 => String::new(),
                1 if !folders.is_empty() => format!("{}/", draw.one_of(&folders)),
                2 => format!("{}/", draw.one_of(&NAMES)),
                _ => format!("{}/{}/", draw.one_of(&NAMES), draw.one_of(&NAMES)),
            };
            let key = format!("{folder}{}{suffix}", draw.one_of(&NAMES));
            let mut above = Path::new(&key).ancestors().skip(1);
            let fits = above.all(|above| !self.path(above.to_str().unwrap()).is_file());
            if fits && !self.path(&key).exists() {
                return key;
            }
        }
    }

    fn write(&mut self, key: &str, text: &str) {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn rename(&mut self, from: &str, to: &str) {
        let to = self.path(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(self.path(from), to).unwrap();
    }

    /// One thing that happens.
    fn happens(&mut self, draw: &mut Draw) {
        let told = match draw.below(3) {
            0 => self.happens_to_folders(draw),
            _ => Some(self.happens_to_files(draw)),
        };
        self.told.extend(told);
    }

    fn happens_to_files(&mut self, draw: &mut Draw) -> String {
        let files = self.all(false);
        let documents: Vec<String> = files.iter().filter(|key| is_document(key)).cloned().collect();
        match draw.below(18) {
            0..4 => {
                let key = self.free(".md", draw);
                self.write(&key, &draw.document(3));
                format!("create {key}")
            }
            4..7 if !documents.is_empty() => {
                let key = draw.one_of(&documents).clone();
                self.write(&key, &draw.document(3));
                format!("edit {key}")
            }
            7..9 if !documents.is_empty() => {
                let key = draw.one_of(&documents).clone();
                self.site.replace(&key, Some(&draw.document(3)));
                format!("save {key}")
            }
            9 if !documents.is_empty() => {
                // As some editors do: beside the document, under another name.
                let key = draw.one_of(&documents).clone();
                let aside = format!("{key}~");
                self.write(&aside, &draw.document(3));
                self.rename(&aside, &key);
                format!("save {key} from beside it")
            }
            10 if !documents.is_empty() => {
                let key = draw.one_of(&documents).clone();
                let file = fs::File::options().append(true).open(self.path(&key)).unwrap();
                file.set_modified(std::time::SystemTime::now()).unwrap();
                format!("touch {key}")
            }
            11..13 if !files.is_empty() => {
                let key = draw.one_of(&files).clone();
                fs::remove_file(self.path(&key)).unwrap();
                format!("delete {key}")
            }
            13..15 if !files.is_empty() => {
                let from = draw.one_of(&files).clone();
                let to = self.free(if draw.percent(80) { ".md" } else { ".txt" }, draw);
                self.rename(&from, &to);
                format!("move {from} to {to}")
            }
            15 if documents.len() > 1 => {
                let (from, to) = (draw.one_of(&documents).clone(), draw.one_of(&documents).clone());
                self.rename(&from, &to);
                format!("move {from} over {to}")
            }
            16 => {
                let before = self.admitted();
                let lines = [*draw.one_of(&RULES), *draw.one_of(&RULES)];
                let there = self.path(".grooveignore").exists();
                let text = format!("{}\n{}\n", lines[0], lines[1]);
                let text = draw.percent(80).then_some(&*text);
                if there || text.is_some() {
                    self.site.replace(".grooveignore", text);
                    self.rules_changed = true;
                }
                self.unsettled.extend(before.symmetric_difference(&self.admitted()).cloned());
                format!("exclude {lines:?}")
            }
            _ => {
                let text = draw.document(2);
                let key = self.free(".md", draw);
                for round in 0..draw.below(20) {
                    self.write(&key, &format!("{text}{round}"));
                }
                self.write(&key, &text);
                format!("write {key} many times")
            }
        }
    }

    fn happens_to_folders(&mut self, draw: &mut Draw) -> Option<String> {
        let (files, folders) = (self.all(false), self.all(true));
        let told = match draw.below(8) {
            0 => {
                let key = self.free(if draw.percent(30) { ".md" } else { "" }, draw);
                fs::create_dir_all(self.path(&key)).unwrap();
                for number in 0..draw.below(4) {
                    self.write(&format!("{key}/deep/{number}.md"), &draw.document(1));
                }
                format!("make the folder {key}")
            }
            1..3 if !folders.is_empty() => {
                let from = draw.one_of(&folders).clone();
                let to = self.free(if draw.percent(20) { ".md" } else { "" }, draw);
                if to.starts_with(&format!("{from}/")) {
                    return None;
                }
                self.rename(&from, &to);
                format!("move the folder {from} to {to}")
            }
            3 if !folders.is_empty() => {
                let key = draw.one_of(&folders).clone();
                fs::remove_dir_all(self.path(&key)).unwrap();
                format!("delete the folder {key}")
            }
            4..6 if !folders.is_empty() => {
                let key = draw.one_of(&folders).clone();
                let away = self.free("", draw);
                if draw.percent(50) || away.starts_with(&format!("{key}/")) {
                    fs::remove_dir_all(self.path(&key)).unwrap();
                    self.write(&key, &draw.document(1));
                    format!("put a file in place of the folder {key}")
                } else {
                    self.rename(&key, &away);
                    self.write(&key, &draw.document(1));
                    format!("put a file in place of the folder {key}, which is {away} now")
                }
            }
            6..8 if !files.is_empty() => {
                let key = draw.one_of(&files).clone();
                fs::remove_file(self.path(&key)).unwrap();
                for number in 0..draw.below(3) {
                    self.write(&format!("{key}/{number}.md"), &draw.document(1));
                }
                format!("put a folder in place of the file {key}")
            }
            _ => return None,
        };
        Some(told)
    }

    /// The documents that the ignore file lets in, by someone else's reading of
    /// it.
    fn admitted(&self) -> BTreeSet<String> {
        let mut rules = GitignoreBuilder::new(self.site.base.kb());
        rules.case_insensitive(true).unwrap();
        for line in fs::read_to_string(self.path(".grooveignore")).unwrap_or_default().lines() {
            rules.add_line(None, line).unwrap();
        }
        let rules = rules.build().unwrap();
        let excluded = |key: &String| rules.matched_path_or_any_parents(key, false).is_ignore();
        self.all(false).into_iter().filter(|key| is_document(key) && !excluded(key)).collect()
    }

    /// Waits until the index holds what a new one would.
    fn settles(&self, server: &mut Server) {
        let expected = self.settled(self.site.fresh());
        let start = Instant::now();
        loop {
            let seen = self.settled(self.site.contents());
            if seen == expected {
                return;
            }
            if start.elapsed() > PATIENCE {
                println!("{}", server.log());
                println!("what happened: {:#?}", self.told);
                seen.assert_same(&expected);
            }
            server.assert_runs();
            thread::sleep(Duration::from_millis(30));
        }
    }

    /// Contents without the documents that only a run over everything settles.
    fn settled(&self, mut contents: Contents) -> Contents {
        contents.documents.retain(|path, _| !self.unsettled.contains(path));
        contents
    }

    /// A run over everything, which then settles all of it.
    fn assert_reconciled(&mut self) {
        self.site.indexed(&["--quiet"]);
        self.site.contents().assert_same(&self.site.fresh());
        self.unsettled.clear();
        self.told.clear();
    }
}

fn is_document(key: &str) -> bool {
    Path::new(key).extension().is_some_and(|extension| extension == "md")
}

const NAMES: [&str; 8] = ["sea", "land", "Roads", "港", "deep", "drafts", "a b", "sea.md"];

/// Lines of an ignore file.
const RULES: [&str; 6] = ["drafts/", "/sea/", "*deep*", "land/**", "!land/roads", "# nothing"];

/// How often a server has told what is excluded.
fn rules_read(server: &Server) -> usize {
    server.log().matches("documents that are indexed already stay").count()
}

fn follow(rounds: u64) {
    let mut draw = Draw::new();
    let site = Site::new();
    if draw.percent(30) {
        // The name of a file is part of what is embedded then.
        site.configure("[contextual]\nenabled = true\n");
    }
    site.arrange(&Tree::new(), &draw.tree(30));
    site.indexed(&["--quiet"]);
    let mut field = Field::new(&site);
    // Another one may follow the same files, and write to the same index.
    let servers = if draw.percent(30) { 2 } else { 1 };
    let mut servers: Vec<_> = (0..servers).map(|_| Server::start(&site)).collect();
    for round in 0..rounds {
        // Now and then while the server is busy with what came before.
        let busy = draw.percent(30);
        field.site.slow(Duration::from_millis(if busy { 100 } else { 0 }));
        for _ in 0..=draw.below(12) {
            let before: Vec<_> = servers.iter().map(rules_read).collect();
            field.happens(&mut draw);
            if std::mem::take(&mut field.rules_changed) {
                // What is let in before a server knows so is for the next run.
                wait_for("the rules are read", || {
                    servers.iter().map(rules_read).zip(&before).all(|(now, before)| now > *before)
                });
            }
            if draw.percent(20) {
                thread::sleep(Duration::from_millis(draw.below(120)));
            }
        }
        field.site.slow(Duration::ZERO);
        field.settles(&mut servers[0]);
        if draw.percent(10) || round + 1 == rounds {
            // Another process settles what the server may leave.
            field.assert_reconciled();
        }
    }
    servers.into_iter().for_each(Server::stop);
    let again = field.site.indexed(&["--quiet"]);
    assert!(again.contains("(0 updated, 0 renamed, 0 deleted"), "{again}");
}

// IDX-36 IDX-147 IDX-151 IDX-152a IDX-153 IDX-154 IDX-B22
#[test]
fn a_served_index_ends_up_as_a_new_one_would() {
    follow(wanted("GROOVE_TEST_ROUNDS", SOME));
}

// IDX-152a IDX-B22
#[test]
fn a_file_that_takes_the_place_of_a_folder_takes_its_documents_away() {
    let site = Site::new();
    for number in 0..20 {
        site.base.write(&format!("sea{number}/north/a.md"), "The tide turns twice a day.\n");
    }
    site.indexed(&["--quiet"]);
    let mut server = Server::start(&site);
    for number in 0..20 {
        let folder = site.base.kb().join(format!("sea{number}"));
        fs::rename(&folder, site.base.kb().join(format!("land{number}"))).unwrap();
        fs::write(folder, "no document").unwrap();
    }
    Field::new(&site).settles(&mut server);
    server.stop();
}

// IDX-148 IDX-157
#[test]
fn what_is_announced_as_watched_is_watched_and_a_schema_waits_for_a_run() {
    let site = Site::new();
    site.base.write("sea.md", "---\nowner: ann\n---\nEvery harbour has its own hour.\n");
    site.indexed(&["--quiet"]);
    let server = Server::start(&site);
    let said = format!("watcher: watching {} (debounce 30ms)", site.base.kb().display());
    assert!(server.log().contains(&said), "{}", server.log());
    site.base.write("groove-schema.toml", "[fields.owner]\n");
    // Noticed at once, and so after the schema.
    site.base.write("land.md", "---\nowner: bob\n---\nThe road to the harbour is long.\n");
    wait_for("the new document is there", || site.contents().documents.len() == 2);
    server.stop();
    let fields = |contents: Contents| -> usize {
        contents.documents.values().map(|document| document.fields.len()).sum()
    };
    assert_eq!(fields(site.contents()), 0);
    site.indexed(&["--quiet"]);
    assert_eq!(fields(site.contents()), 2);
}

mod with_patience {
    use super::*;

    // IDX-36 IDX-147 IDX-151 IDX-152a IDX-153 IDX-154 IDX-B22
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_served_index_ends_up_as_a_new_one_would() {
        follow(wanted("GROOVE_TEST_ROUNDS", MANY));
    }

    // IDX-149
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_knowledge_base_that_is_away_for_a_while_keeps_its_documents() {
        let site = Site::new();
        site.arrange(&Tree::new(), &Draw::new().tree(30));
        site.indexed(&["--quiet"]);
        let before = site.contents();
        let mut server = Server::start(&site);
        let away = site.folder().join("away");
        fs::rename(site.base.kb(), &away).unwrap();
        wait_for("the server notices", || server.log().contains("has gone"));
        site.contents().assert_same(&before);
        assert_eq!(site.run("index", &["--quiet"]).status.code(), Some(1));
        assert_eq!(site.run("index", &["--quiet", "--force"]).status.code(), Some(1));
        site.contents().assert_same(&before);
        fs::write(away.join("meanwhile.md"), "This was written while nobody watched.\n").unwrap();
        fs::rename(&away, site.base.kb()).unwrap();
        let mut field = Field::new(&site);
        field.settles(&mut server);
        field.write("later.md", "And this when everybody did.\n");
        field.settles(&mut server);
        server.stop();
    }

    // IDX-150 IDX-152a
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn a_switch_to_another_branch_is_followed() {
        let mut draw = Draw::new();
        let site = Site::new();
        let before = draw.tree(2000);
        let mut after = draw.tree(2000);
        after.extend(before.iter().take(700).map(|(path, text)| (path.clone(), text.clone())));
        site.arrange(&Tree::new(), &before);
        site.indexed(&["--quiet"]);
        let mut server = Server::start(&site);
        // What goes is removed first, and what changed is written anew.
        for (from, to) in [(&before, &after), (&after, &before)] {
            let changes = crate::site::changes(from, to);
            assert!(changes.len() > 1000);
            for (path, text) in &changes {
                drop(fs::remove_file(site.base.kb().join(path)));
                if let Some(text) = text {
                    site.base.write(path, text);
                }
            }
            Field::new(&site).settles(&mut server);
        }
        server.stop();
    }

    // IDX-150 IDX-B21
    #[test]
    #[ignore = "takes minutes; `make crash-test` runs it"]
    fn more_changes_than_can_be_noted_are_followed_all_the_same() {
        let mut draw = Draw::new();
        let site = Site::new();
        site.arrange(&Tree::new(), &draw.tree(100));
        site.indexed(&["--quiet"]);
        let mut server = Server::start(&site);
        // It is busy all the while.
        site.slow(Duration::from_secs(15));
        site.base.write("first.md", "This one takes a while.\n");
        wait_for("the server is busy", || !site.fake.take().is_empty());
        for round in 0..3 {
            for number in 0..2500 {
                let folder = draw.below(50);
                site.base.write(
                    &format!("{round}/{folder}/{number}.md"),
                    format!("Note {number} of round {round} is about {folder}.\n"),
                );
            }
            if round > 0 {
                fs::remove_dir_all(site.base.kb().join(format!("{}/7", round - 1))).unwrap();
            }
        }
        site.slow(Duration::ZERO);
        Field::new(&site).settles(&mut server);
        assert!(server.log().contains("changes were lost"), "nothing has overflowed");
        server.stop();
    }
}
