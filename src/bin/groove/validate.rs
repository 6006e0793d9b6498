//! `groove validate`: whether frontmatter is as the schema wants it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use grooveseek::app::error::AppError;
use grooveseek::app::line::on_one_line;
use grooveseek::app::wiring::json;
use grooveseek::app::wiring::upkeep::{self, Validated, Validating};
use grooveseek::domain::schema::{Checked, Kind, Validation, Violation};
use serde_json::{Map, Value, json};

use crate::answer::Emphasis;
use crate::cli::KnowledgeBase;
use crate::config::LoadedConfig;
use crate::one_line;
use crate::print;
use crate::surroundings;

#[derive(Debug, Args)]
#[command(after_help = "Ends with 0 if there are no violations or there is no schema, with 1 if \
                        there are violations, and with 2 if the schema cannot be used")]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    kb: KnowledgeBase,
    /// Schema to use instead of groove-schema.toml in the root of the knowledge
    /// base; the index goes by the one in the root all the same
    #[arg(long, value_name = "PATH")]
    schema: Option<PathBuf>,
    /// Every key that the schema does not name is a violation
    #[arg(long)]
    strict: bool,
    /// Stop after the first file with a violation
    #[arg(long)]
    fail_fast: bool,
    /// No colours in text; otherwise a terminal shows them
    #[arg(long)]
    no_color: bool,
    /// json is stable; github writes annotations of a GitHub workflow; text is for
    /// people and may change
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    Text,
    Json,
    Github,
}

pub(crate) async fn run(arguments: ValidateArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let kb_path = loaded.kb_path(arguments.kb.kb_path.as_deref())?;
    let working_dir = surroundings::working_dir()?;
    let how = Validating {
        schema: arguments.schema,
        strict: arguments.strict,
        fail_fast: arguments.fail_fast,
    };
    let (config, from) = (loaded.config, working_dir.clone());
    let validated = tokio::task::spawn_blocking(move || {
        let mut warn = |text: String| print::notice(&on_one_line(&text));
        upkeep::validate(&kb_path, &config, &from, &how, &mut warn)
    })
    .await
    .context("validating ended early")?;
    let Validated { root, schema, validation } = match validated {
        Err(error @ AppError::Schema { .. }) => {
            print::notice(&format!("error: {}", one_line(&error.into())));
            return Ok(ExitCode::from(2));
        }
        other => other?,
    };
    let Some(validation) = validation else {
        let place = schema.display().to_string();
        print::notice(&format!("No schema found at {}; nothing to check", on_one_line(&place)));
        return Ok(ExitCode::SUCCESS);
    };
    let emphasis = if arguments.no_color { Emphasis::None } else { surroundings::emphasis() };
    let text = match arguments.format {
        ReportFormat::Text => as_text(&validation, emphasis),
        ReportFormat::Json => json::pretty(&as_json(&validation)) + "\n",
        ReportFormat::Github => as_annotations(&validation, &prefix(&root, &working_dir)),
    };
    print::result(&text).context("cannot write the result")?;
    Ok(if validation.files.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The way from the working directory to a root below it, which ends with a
/// slash; empty for any other root.
fn prefix(root: &Path, working_dir: &Path) -> String {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, working_dir) = (resolved(root), resolved(working_dir));
    let below = root.strip_prefix(working_dir).unwrap_or_else(|_| Path::new(""));
    below.components().fold(String::new(), |mut prefix, part| {
        prefix.extend([&*part.as_os_str().to_string_lossy(), "/"]);
        prefix
    })
}

fn as_json(validation: &Validation) -> Value {
    let files: Vec<Value> = validation
        .files
        .iter()
        .map(|Checked { path, violations }| {
            let violations: Vec<Value> = violations.iter().map(violation_as_json).collect();
            json!({ "path": path, "violations": violations })
        })
        .collect();
    let (scanned, violated) = (validation.scanned, files.len());
    json!({
        "scanned": scanned,
        "violated": violated,
        "ok": scanned - violated,
        "files": files,
    })
}

fn violation_as_json(violation: &Violation) -> Value {
    let more = match &violation.kind {
        Kind::MissingRequired | Kind::UndeclaredField => json!({}),
        Kind::TypeMismatch { expected, actual } => {
            json!({ "expected": expected, "actual": actual })
        }
        Kind::PatternMismatch { pattern, actual } => {
            json!({ "pattern": pattern, "actual": actual })
        }
        Kind::NotInEnum { actual, allowed } => json!({ "actual": actual, "allowed": allowed }),
        Kind::LengthOutOfRange { actual, min, max } => {
            json!({ "actual": actual, "min": min, "max": max })
        }
        Kind::FrontmatterUnparsed { reason } => json!({ "reason": reason }),
    };
    let mut members = Map::new();
    members.insert("kind".to_owned(), violation.kind.as_str().into());
    members.insert("field".to_owned(), violation.field.as_str().into());
    if let Value::Object(more) = more {
        members.extend(more);
    }
    members.into()
}

/// What is wrong, as one sentence part.
fn told(kind: &Kind) -> String {
    match kind {
        Kind::MissingRequired => "a value is required and missing".to_owned(),
        Kind::TypeMismatch { expected, actual } => format!("expected {expected}, found {actual}"),
        Kind::PatternMismatch { pattern, actual } => {
            format!("expected a match of {pattern}, found {actual:?}")
        }
        Kind::NotInEnum { actual, allowed } => {
            format!("expected one of {}, found {actual:?}", allowed.join(", "))
        }
        Kind::LengthOutOfRange { actual, min, max } => {
            let bound = |word: &str, bound: &Option<usize>| {
                bound.map(|bound| format!("{word} {bound}")).into_iter()
            };
            let bounds: Vec<String> = bound("at least", min).chain(bound("at most", max)).collect();
            format!("expected a length of {}, found {actual}", bounds.join(" and "))
        }
        Kind::UndeclaredField => "the schema does not name this key".to_owned(),
        Kind::FrontmatterUnparsed { reason } => format!("not readable as YAML: {reason}"),
    }
}

fn as_text(validation: &Validation, emphasis: Emphasis) -> String {
    let (on, off) = emphasis.marks();
    let mut text = String::new();
    let mut count = 0;
    for Checked { path, violations } in &validation.files {
        count += violations.len();
        text.extend([on, &on_one_line(path), off, "\n"]);
        for Violation { field, line, kind } in violations {
            let told = on_one_line(&format!("{field}: {}", told(kind))).into_owned();
            text.extend(["  line ", &line.to_string(), ": ", &told, "\n"]);
        }
    }
    let scanned = validation.scanned;
    let summary = match validation.files.len() {
        0 => format!("{scanned} file(s) checked, no violations\n"),
        violated => {
            format!("{scanned} file(s) checked, {violated} with violations, {count} in all\n")
        }
    };
    text + &summary
}

/// One workflow command of GitHub for each violation.
fn as_annotations(validation: &Validation, prefix: &str) -> String {
    let mut text = String::new();
    for Checked { path, violations } in &validation.files {
        let file = escaped_property(&format!("{prefix}{path}"));
        for Violation { field, line, kind } in violations {
            let message = escaped(&format!("{field}: {}", told(kind)));
            // Writing to a string cannot fail.
            let _written =
                writeln!(text, "::error file={file},line={line},title=frontmatter::{message}");
        }
    }
    text
}

/// The text of a workflow command; other control characters than line breaks,
/// which have an escape, do not reach the log.
fn escaped(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    on_one_line(&text).into_owned()
}

/// A property of a workflow command.
fn escaped_property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validation(kinds: Vec<Kind>) -> Validation {
        let violation = |kind| Violation { field: "x".to_owned(), line: 3, kind };
        let violations = kinds.into_iter().map(violation).collect();
        Validation { scanned: 4, files: vec![Checked { path: "a/b.md".into(), violations }] }
    }

    fn kinds() -> Vec<Kind> {
        vec![
            Kind::MissingRequired,
            Kind::TypeMismatch { expected: "string", actual: "mapping" },
            Kind::PatternMismatch { pattern: "^a".into(), actual: "b\n100%".into() },
            Kind::NotInEnum { actual: "c".into(), allowed: vec!["d".into(), "e".into()] },
            Kind::LengthOutOfRange { actual: 9, min: None, max: Some(3) },
            Kind::UndeclaredField,
            Kind::FrontmatterUnparsed { reason: "bad at line 3".into() },
        ]
    }

    // CLI-171 CLI-172
    #[test]
    fn json_has_the_members_of_each_kind_and_no_others() {
        let expected = json!({
            "scanned": 4, "violated": 1, "ok": 3,
            "files": [{ "path": "a/b.md", "violations": [
                { "kind": "missing_required", "field": "x" },
                { "kind": "type_mismatch", "field": "x", "expected": "string", "actual": "mapping" },
                { "kind": "pattern_mismatch", "field": "x", "pattern": "^a", "actual": "b\n100%" },
                { "kind": "not_in_enum", "field": "x", "actual": "c", "allowed": ["d", "e"] },
                { "kind": "length_out_of_range", "field": "x", "actual": 9, "min": null, "max": 3 },
                { "kind": "undeclared_field", "field": "x" },
                { "kind": "frontmatter_unparsed", "field": "x", "reason": "bad at line 3" },
            ] }],
        });
        assert_eq!(as_json(&validation(kinds())), expected);
    }

    // CLI-173 CLI-235 CLI-B02
    #[test]
    fn an_annotation_is_one_line_with_the_escapes_of_github() {
        let mut found = validation(vec![Kind::PatternMismatch {
            pattern: "^100%\r\n:,$".into(),
            actual: "a\x1b".into(),
        }]);
        found.files[0].path = "a,b:c%\n.md".into();
        let text = as_annotations(&found, "docs/");
        let expected = "::error file=docs/a%2Cb%3Ac%25%0A.md,line=3,title=frontmatter::\
                        x: expected a match of ^100%25%0D%0A:,$, found \"a\\u{1b}\"\n";
        assert_eq!(text, expected);
        assert_eq!(as_annotations(&validation(kinds()), "").lines().count(), 7);
    }

    // OPS-81 CLI-168
    #[test]
    fn text_has_a_group_for_each_file_and_a_line_for_each_violation() {
        let expected = "a/b.md\n  line 3: x: a value is required and missing\n  \
                        line 3: x: expected string, found mapping\n  \
                        line 3: x: expected a match of ^a, found \"b\\n100%\"\n  \
                        line 3: x: expected one of d, e, found \"c\"\n  \
                        line 3: x: expected a length of at most 3, found 9\n  \
                        line 3: x: the schema does not name this key\n  \
                        line 3: x: not readable as YAML: bad at line 3\n\
                        4 file(s) checked, 1 with violations, 7 in all\n";
        assert_eq!(as_text(&validation(kinds()), Emphasis::None), expected);
        let bold = as_text(&validation(kinds()), Emphasis::Bold);
        assert!(bold.starts_with("\x1b[1ma/b.md\x1b[0m\n"), "{bold:?}");
        let clean = Validation { scanned: 4, files: Vec::new() };
        assert_eq!(as_text(&clean, Emphasis::Bold), "4 file(s) checked, no violations\n");
    }
}
