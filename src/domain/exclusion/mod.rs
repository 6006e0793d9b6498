//! Exclusion: which files and directories of a knowledge base stay out of its
//! index.

mod glob;
mod pattern;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use crate::domain::exclusion::pattern::Pattern;

pub use crate::domain::exclusion::glob::InvalidPattern;

/// The file in the root of a knowledge base that holds patterns.
pub const IGNORE_FILE_NAME: &str = ".grooveignore";

/// The most bytes that an ignore file may have; a larger one is not read.
pub const IGNORE_FILE_CAP_BYTES: u64 = 64 * 1024;

/// The most patterns of an ignore file that apply.
pub const IGNORE_FILE_MAX_PATTERNS: usize = 1_000;

/// The directories that are excluded unless a configuration names others.
pub const DEFAULT_EXCLUDE_DIRS: [&str; 6] =
    [".obsidian", ".git", "node_modules", "target", ".vscode", ".idea"];

/// Directories that no configuration brings back.
const ALWAYS_EXCLUDED: [&str; 3] = [".git", ".svn", "node_modules"];

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Directory,
    /// A file.
    File,
}

/// Decides what stays out of an index.
///
/// The union of three layers, each of which may exclude and none of which takes
/// back what another one excluded:
///
/// 1. directories named `.git`, `.svn` or `node_modules`, always;
/// 2. directories with one of the configured names;
/// 3. files and directories that an ignore file names, in gitignore syntax.
///
/// Names are compared whole and without case: the Unicode lowercase mapping,
/// with the final sigma made an ordinary one (the first layer folds ASCII only).
/// Paths are relative to the root, separated by `/`. The root itself, the empty
/// path, is never excluded.
///
/// A re-including line (`!keep.md`) undoes earlier lines of the ignore file and
/// nothing else, and never what lies below an excluded directory.
///
/// ```
/// use grooveseek::domain::exclusion::{EntryKind, ExclusionRules};
///
/// let rules = ExclusionRules::new(&["build"]);
/// let (rules, remarks) = rules.with_ignore_file(b"drafts/\n*.tmp.md\n!keep.tmp.md\n");
/// assert!(remarks.is_empty());
///
/// assert!(rules.excludes("a/Build/x.md", EntryKind::File));
/// assert!(rules.excludes("a/drafts/keep.tmp.md", EntryKind::File));
/// assert!(rules.excludes_file("a/x.tmp.md"));
/// assert!(!rules.excludes_file("a/keep.tmp.md"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExclusionRules {
    /// Folded names.
    excluded_dirs: BTreeSet<String>,
    /// Each with its line, counted from 1.
    patterns: Vec<(usize, Pattern)>,
}

/// What excludes a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exclusion<'a> {
    /// The path itself, or the directory above it that is excluded.
    pub entry: &'a str,
    /// The rule.
    pub rule: ExclusionRule,
}

/// A rule that excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusionRule {
    /// Directories of this name never come in.
    Always,
    /// The configuration names the directory.
    Configured,
    /// A line of the ignore file.
    IgnoreFile {
        /// Counted from 1.
        line: usize,
    },
}

/// Something in an ignore file that its author should know about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IgnoreFileRemark {
    /// A line is no pattern; the other lines apply.
    InvalidLine {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: InvalidPattern,
    },
    /// A line holds a brace, which gitignore takes as an ordinary character.
    LiteralBrace {
        /// The line, counted from 1.
        line: usize,
    },
    /// There are more patterns than apply.
    TooManyPatterns {
        /// How many do not apply.
        dropped: usize,
    },
}

impl ExclusionRules {
    /// Excludes directories by name, below the ones that are always excluded.
    ///
    /// - `exclude_dirs`: whole names; they stand for directories only, never
    ///   for a file of that name.
    pub fn new<Name: AsRef<str>>(exclude_dirs: &[Name]) -> Self {
        let folded = exclude_dirs.iter().map(|name| glob::folded(name.as_ref()).collect());
        Self { excluded_dirs: folded.collect(), patterns: Vec::new() }
    }

    /// Adds the patterns of an ignore file, in place of those of another one.
    ///
    /// What is not UTF-8 is replaced, a byte-order mark and carriage returns
    /// before line feeds are passed over. Every line that is neither blank nor a
    /// comment counts as a pattern, and the first 1,000 apply.
    ///
    /// - Returns the rules, and what their author should know, in the order of
    ///   lines; at most one remark a pattern and one about the rest.
    pub fn with_ignore_file(mut self, bytes: &[u8]) -> (Self, Vec<IgnoreFileRemark>) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        let mut remarks = Vec::new();
        let (mut seen, mut dropped) = (0, 0);
        self.patterns.clear();
        for (line, text) in (1..).zip(text.split('\n')) {
            let parsed = Pattern::parse(text.strip_suffix('\r').unwrap_or(text));
            if parsed == Ok(None) {
                continue;
            }
            if seen == IGNORE_FILE_MAX_PATTERNS {
                dropped += 1;
                continue;
            }
            seen += 1;
            match parsed {
                Ok(pattern) => {
                    if has_bare_brace(text) {
                        remarks.push(IgnoreFileRemark::LiteralBrace { line });
                    }
                    self.patterns.extend(pattern.map(|pattern| (line, pattern)));
                }
                Err(reason) => remarks.push(IgnoreFileRemark::InvalidLine { line, reason }),
            }
        }
        if dropped > 0 {
            remarks.push(IgnoreFileRemark::TooManyPatterns { dropped });
        }
        (self, remarks)
    }

    /// How many patterns of the ignore file apply.
    pub fn pattern_count(&self) -> usize {
        self.patterns.len()
    }

    /// Tells whether a directory is excluded, none of those above it being so.
    ///
    /// - `path`: the directory's own path from the root.
    pub fn excludes_dir(&self, path: &str) -> bool {
        self.why_dir(path).is_some()
    }

    /// Tells whether a file is excluded, none of the directories above it being
    /// so.
    ///
    /// - `path`: the file's own path from the root.
    pub fn excludes_file(&self, path: &str) -> bool {
        self.line_about(path, EntryKind::File).is_some()
    }

    /// Tells whether a path is excluded, by itself or by a directory above it.
    ///
    /// The directories above are asked first, from the root downwards, and the
    /// first excluded one ends the question.
    pub fn excludes(&self, path: &str, kind: EntryKind) -> bool {
        self.why(path, kind).is_some()
    }

    /// Tells which rule excludes a path, in the order of
    /// [`excludes`](Self::excludes).
    pub fn why<'a>(&self, path: &'a str, kind: EntryKind) -> Option<Exclusion<'a>> {
        path.match_indices('/').find_map(|(end, _)| self.why_dir(&path[..end])).or_else(|| {
            match kind {
                EntryKind::Directory => self.why_dir(path),
                EntryKind::File => self.why_by_line(path, kind),
            }
        })
    }

    fn why_dir<'a>(&self, path: &'a str) -> Option<Exclusion<'a>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.is_empty() {
            return None;
        }
        if ALWAYS_EXCLUDED.iter().any(|always| always.eq_ignore_ascii_case(name)) {
            return Some(Exclusion { entry: path, rule: ExclusionRule::Always });
        }
        if !self.excluded_dirs.is_empty()
            && self.excluded_dirs.contains(&glob::folded(name).collect::<String>())
        {
            return Some(Exclusion { entry: path, rule: ExclusionRule::Configured });
        }
        self.why_by_line(path, EntryKind::Directory)
    }

    fn why_by_line<'a>(&self, path: &'a str, kind: EntryKind) -> Option<Exclusion<'a>> {
        let line = self.line_about(path, kind)?;
        Some(Exclusion { entry: path, rule: ExclusionRule::IgnoreFile { line } })
    }

    /// The verdict of the ignore file: the last line that speaks of an entry
    /// decides. Its number, if it excludes the entry.
    fn line_about(&self, path: &str, kind: EntryKind) -> Option<usize> {
        if self.patterns.is_empty() || path.is_empty() {
            return None;
        }
        let folded: Vec<char> = glob::folded(path).collect();
        let segments: Vec<&[char]> = folded.split(|&character| character == '/').collect();
        let is_directory = kind == EntryKind::Directory;
        self.patterns
            .iter()
            .rfind(|(_, pattern)| pattern.matches(&segments, is_directory))
            .filter(|(_, pattern)| !pattern.re_includes)
            .map(|(line, _)| *line)
    }
}

/// Tells whether a pattern holds a brace that its author did not escape.
fn has_bare_brace(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|character| {
        let bare = !escaped && matches!(character, '{' | '}');
        escaped = !escaped && character == '\\';
        bare
    })
}

impl fmt::Display for IgnoreFileRemark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidLine { line, reason } => {
                write!(formatter, "line {line} is no pattern and does not apply: {reason}")
            }
            Self::LiteralBrace { line } => write!(
                formatter,
                "line {line} holds a brace, which stands for itself; there are no alternatives \
                 in gitignore syntax, so give each its own line, or escape the brace"
            ),
            Self::TooManyPatterns { dropped } => write!(
                formatter,
                "only the first {IGNORE_FILE_MAX_PATTERNS} patterns apply, {dropped} were dropped"
            ),
        }
    }
}
