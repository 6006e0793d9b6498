//! One line of an ignore file as a pattern over whole paths.

use crate::domain::exclusion::glob::{Glob, InvalidPattern, wildcard};

/// What one line of an ignore file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Whether it takes back what an earlier line excluded.
    pub(super) re_includes: bool,
    /// Whether it speaks of directories only.
    directories_only: bool,
    scope: Scope,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    /// A name at any depth.
    Name(Glob),
    /// A path from the root.
    Path(Vec<Step>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Any number of directories, none included.
    AnyDepth,
    /// One segment.
    Segment(Glob),
}

impl Pattern {
    /// Reads a line without its line break; `None` if it holds no pattern.
    pub(super) fn parse(line: &str) -> Result<Option<Self>, InvalidPattern> {
        if line.starts_with('#') {
            return Ok(None);
        }
        let line = without_trailing_spaces(line);
        let (re_includes, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (directories_only, path) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if path.is_empty() {
            return Ok(None);
        }
        let scope = if path.contains('/') {
            Scope::Path(parse_steps(path.strip_prefix('/').unwrap_or(path))?)
        } else {
            Scope::Name(Glob::parse(path)?)
        };
        Ok(Some(Self { re_includes, directories_only, scope }))
    }

    /// Tells whether the pattern speaks of an entry.
    ///
    /// - `segments`: its path from the root, folded; at least one segment.
    pub(super) fn matches(&self, segments: &[&[char]], is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        match &self.scope {
            Scope::Name(glob) => segments.last().is_some_and(|name| glob.matches(name)),
            Scope::Path(steps) => wildcard(
                steps,
                segments,
                |step| *step == Step::AnyDepth,
                |step, segment| match step {
                    Step::AnyDepth => true,
                    Step::Segment(glob) => glob.matches(segment),
                },
            ),
        }
    }
}

fn parse_steps(path: &str) -> Result<Vec<Step>, InvalidPattern> {
    let mut steps = path
        .split('/')
        .map(|segment| match segment {
            "**" => Ok(Step::AnyDepth),
            _ => Glob::parse(segment).map(Step::Segment),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if steps.last() == Some(&Step::AnyDepth) {
        // What lies inside a directory is at least one segment longer than the directory.
        steps.push(Step::Segment(Glob::anything()));
    }
    Ok(steps)
}

/// Drops the spaces at the end of a line, save one behind a backslash.
fn without_trailing_spaces(line: &str) -> &str {
    let kept = line.trim_end_matches(' ');
    let backslashes = kept.len() - kept.trim_end_matches('\\').len();
    if backslashes % 2 == 1 && kept.len() < line.len() { &line[..=kept.len()] } else { kept }
}
