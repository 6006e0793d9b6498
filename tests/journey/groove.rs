//! A knowledge base in a folder of its own, and the binary that works on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) const MODEL: &str = "all-minilm-l6-v2";

/// A knowledge base, its index beside it, and nothing of this machine around.
pub(crate) struct Base {
    folder: TempDir,
}

impl Base {
    /// Makes a knowledge base of these files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let base = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(base.kb()).unwrap();
        for (path, text) in files {
            base.write(path, text);
        }
        base
    }

    /// A copy of the sample knowledge base.
    pub(crate) fn sample() -> Self {
        let base = Self::new(&[]);
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/knowledge-base");
        copy(&sample, &base.kb());
        base
    }

    pub(crate) fn kb(&self) -> PathBuf {
        self.folder.path().join("kb")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.folder.path().join(".groove.db")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.kb().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// `groove` with a home folder of its own, so that no model and no
    /// configuration of this machine is seen.
    pub(crate) fn bare(&self, arguments: &[&str]) -> Command {
        let home = self.home();
        fs::create_dir_all(&home).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_groove"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", &home)
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// `groove` on this knowledge base, with the test's model in place.
    pub(crate) fn groove(&self, command: &str, arguments: &[&str]) -> Command {
        let kb = self.kb();
        let mut all = vec![command, "--kb-path", kb.to_str().unwrap()];
        all.extend(arguments);
        let mut command = self.bare(&all);
        if let Some(models) = test_model().parent() {
            command.env("GROOVE_MODELS_DIR", models);
        }
        command
    }

    /// Indexes with the test's model and returns what the run said.
    pub(crate) fn indexed(&self, arguments: &[&str]) -> String {
        let mut all = vec!["--model", MODEL];
        all.extend(arguments);
        let output = self.groove("index", &all).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output), "", "index writes nothing to standard output");
        stderr(&output)
    }

    /// Searches with the test's model and returns the answer.
    pub(crate) fn search(&self, query: &str, arguments: &[&str]) -> serde_json::Value {
        let mut all = vec!["--model", MODEL];
        all.extend(arguments);
        all.extend(["--", query]);
        let output = self.groove("search", &all).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap()
    }
}

/// The folder of all-MiniLM-L6-v2; a test that needs it is ignored without it.
pub(crate) fn test_model() -> PathBuf {
    std::env::var_os("GROOVE_TEST_MODEL").map(PathBuf::from).unwrap_or_default()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What standard error says besides the log.
pub(crate) fn told(output: &Output) -> String {
    stderr(output)
        .lines()
        .filter(|line| !line.contains(" INFO "))
        .map(|line| format!("{line}\n"))
        .collect()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
