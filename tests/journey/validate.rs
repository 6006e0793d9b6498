//! `groove validate`: its forms, its exit codes, and what it looks at.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::groove::{Base, stderr, stdout, told};
use crate::server::Server;
use crate::site::{Site, wait_for};

const SCHEMA: &str = "[fields.status]\nrequired = true\nenum = ['draft', 'done']\n";
const DONE: &str = "---\nstatus: done\n---\nText.\n";

fn validate(base: &Base, arguments: &[&str]) -> Output {
    base.groove("validate", arguments).output().unwrap()
}

fn report(base: &Base, arguments: &[&str]) -> Value {
    let output = validate(base, &[arguments, &["--format", "json"]].concat());
    let report: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let violated = report["violated"] != 0;
    assert_eq!(output.status.code(), Some(i32::from(violated)), "{report:#}");
    report
}

fn paths(report: &Value) -> Vec<&str> {
    let files = report["files"].as_array().unwrap();
    files.iter().map(|file| file["path"].as_str().unwrap()).collect()
}

fn base() -> Base {
    Base::new(&[
        ("groove-schema.toml", SCHEMA),
        ("good.md", DONE),
        ("a/gone.md", "---\ntitle: T\nstatus: gone\n---\n"),
        ("none.md", "No frontmatter.\n"),
    ])
}

// CLI-15 CLI-27 CLI-171 CLI-172 OPS-82
#[test]
fn json_tells_the_files_with_violations() {
    let base = base();
    let expected = json!({
        "scanned": 3, "violated": 2, "ok": 1,
        "files": [
            { "path": "a/gone.md", "violations": [{
                "kind": "not_in_enum", "field": "status", "actual": "gone",
                "allowed": ["draft", "done"],
            }] },
            { "path": "none.md", "violations": [{ "kind": "missing_required", "field": "status" }] },
        ],
    });
    assert_eq!(report(&base, &[]), expected);
    assert!(!base.index().exists(), "no index is made");
    base.write("a/gone.md", DONE);
    base.write("none.md", DONE);
    let clean = json!({ "scanned": 3, "violated": 0, "ok": 3, "files": [] });
    assert_eq!(report(&base, &[]), clean);
}

// CLI-168 CLI-169 OPS-81
#[test]
fn text_is_grouped_by_file() {
    let base = base();
    for more in [&[][..], &["--no-color"], &["--format", "text"]] {
        let output = validate(&base, more);
        assert_eq!(output.status.code(), Some(1));
        let expected = "a/gone.md\n  line 3: status: expected one of draft, done, found \"gone\"\n\
                        none.md\n  line 1: status: a value is required and missing\n\
                        3 file(s) checked, 2 with violations, 2 in all\n";
        assert_eq!(stdout(&output), expected);
        assert_eq!(told(&output), "");
    }
}

// CLI-173 CLI-235 CLI-B02
#[test]
fn annotations_name_the_file_from_the_working_directory() {
    let base = base();
    let annotated = |from: &Path| {
        let output =
            base.groove("validate", &["--format", "github"]).current_dir(from).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        stdout(&output)
    };
    let expected = |prefix: &str| {
        format!(
            "::error file={prefix}a/gone.md,line=3,title=frontmatter::status: expected one of \
             draft, done, found \"gone\"\n\
             ::error file={prefix}none.md,line=1,title=frontmatter::status: a value is required \
             and missing\n"
        )
    };
    assert_eq!(annotated(base.kb().parent().unwrap()), expected("kb/"));
    assert_eq!(annotated(&base.kb()), expected(""));
    assert_eq!(annotated(&base.kb().join("a")), expected(""));
}

// CLI-166
#[test]
fn strict_only_tightens() {
    let base = base();
    base.write("a/gone.md", "---\nstatus: done\nzeta:\nowner: me\ntitle: T\n---\n");
    assert_eq!(paths(&report(&base, &[])), ["none.md"]);
    let strict = report(&base, &["--strict"]);
    let undeclared = |field: &str| json!({ "kind": "undeclared_field", "field": field });
    assert_eq!(strict["files"][0]["path"], "a/gone.md");
    assert_eq!(strict["files"][0]["violations"], json!([undeclared("owner"), undeclared("zeta")]));
    base.write("groove-schema.toml", "[options]\nallow_unknown_fields = false\n");
    let by_option = report(&base, &[]);
    assert_eq!(paths(&by_option), ["a/gone.md", "good.md"]);
    fs::remove_file(base.kb().join("groove-schema.toml")).unwrap();
    assert_eq!(validate(&base, &["--strict"]).status.code(), Some(0));
}

// CLI-167
#[test]
fn fail_fast_stops_after_the_first_file() {
    let first = report(&base(), &["--fail-fast"]);
    assert_eq!((paths(&first), &first["scanned"]), (vec!["a/gone.md"], &json!(1)));
}

// CLI-174 CLI-27
#[test]
fn without_a_schema_there_is_nothing_to_check() {
    let base = Base::new(&[("a.md", "text")]);
    for format in ["text", "json", "github"] {
        let output = validate(&base, &["--strict", "--format", format]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
        let place = base.kb().join("groove-schema.toml");
        assert!(told(&output).contains(place.to_str().unwrap()), "{}", told(&output));
        let elsewhere = validate(&base, &["--schema", "x/other.toml", "--format", format]);
        assert_eq!((elsewhere.status.code(), stdout(&elsewhere).as_str()), (Some(0), ""));
        assert!(told(&elsewhere).contains("x/other.toml"), "{}", told(&elsewhere));
    }
}

// CLI-165 CLI-14
#[test]
fn another_schema_is_seen_by_validation_alone() {
    let base = base();
    let other = base.kb().with_file_name("other.toml");
    fs::write(&other, "[fields.title]\nrequired = true\n").unwrap();
    let from_working_dir = report(&base, &["--schema", "other.toml"]);
    assert_eq!(paths(&from_working_dir), ["good.md", "none.md"]);
    assert_eq!(report(&base, &["--schema", other.to_str().unwrap()]), from_working_dir);
    // One that does not load in the root is not looked at.
    base.write("groove-schema.toml", "nonsense");
    assert_eq!(report(&base, &["--schema", "other.toml"]), from_working_dir);
}

fn refused(base: &Base, arguments: &[&str], parts: &[&str]) {
    for format in ["text", "json", "github"] {
        let output = validate(base, &[arguments, &["--format", format]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        let told = told(&output);
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
}

// CFG-86 CFG-88 CLI-21 CLI-27
#[test]
fn a_schema_that_does_not_load_ends_with_2_and_one_message() {
    let base = base();
    for (text, part) in [
        ("[fields.x]\nreqired = true\n", "\"reqired\""),
        ("[fields.x]\ntype = 'integer'\n", "`pattern`"),
        ("[fields.x]\npattern = '('\n", "unclosed group"),
        ("[options]\nstrict = true\n", "allow_unknown_fields"),
        ("[fields\n", "line 1"),
    ] {
        base.write("groove-schema.toml", text);
        refused(&base, &[], &["groove-schema.toml", "line ", part, "correct it"]);
    }
    base.write("groove-schema.toml", vec![b'#'; 1024 * 1024 + 1]);
    refused(&base, &[], &["groove-schema.toml", "1048576"]);
}

// CFG-86 CLI-165 IDX-38
#[cfg(unix)]
#[test]
fn a_schema_is_read_by_the_rules_of_documents() {
    use std::os::unix::fs::symlink;

    let base = base();
    let outside = base.kb().with_file_name("outside.toml");
    fs::write(&outside, SCHEMA).unwrap();
    let inside = base.kb().join("groove-schema.toml");
    let given = base.kb().with_file_name("given.toml");
    let flag = ["--schema", "given.toml"];
    for (place, arguments) in [(&inside, &[][..]), (&given, &flag[..])] {
        let name = place.file_name().unwrap().to_str().unwrap();
        let again = |make: &dyn Fn()| {
            let _gone = fs::remove_file(place);
            make();
        };
        again(&|| symlink(&outside, place).unwrap());
        refused(&base, arguments, &[name, "symbolic link"]);
        again(&|| symlink("nowhere", place).unwrap());
        refused(&base, arguments, &[name, "symbolic link"]);
        again(&|| fs::hard_link(&outside, place).unwrap());
        refused(&base, arguments, &[name, "hard link"]);
        again(&|| fs::create_dir(place).unwrap());
        refused(&base, arguments, &[name, "not a regular file"]);
        fs::remove_dir(place).unwrap();
    }
}

// CLI-13 CFG-86 CLI-23
#[test]
fn a_schema_that_does_not_load_is_noticed_before_there_is_an_index() {
    let site = Site::new();
    site.base.write("a.md", "The harbour tide turns twice every single day.\n");
    site.base.write("groove-schema.toml", "[fields.x]\nreqired = true\n");
    for arguments in [&[][..], &["--force"]] {
        let output = site.run("index", arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(told(&output).contains("\"reqired\""), "{}", told(&output));
        assert_eq!(site.index_files(), BTreeSet::new());
    }
    fs::write(site.base.index(), "no database").unwrap();
    let output = site.run("index", &["--force"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(site.base.index()).unwrap(), "no database");
    assert_eq!(site.index_files().len(), 1);
    assert!(site.fake.take().is_empty());
}

// CFG-86 OPS-82
#[test]
fn a_schema_that_does_not_load_is_told_by_a_server_that_serves_all_the_same() {
    let site = Site::new();
    site.base.write("groove-schema.toml", "[fields.x]\nreqired = true\n");
    let server = Server::start_with(&site, &["--no-watch"]);
    let log = server.log();
    assert!(log.contains("WARN") && log.contains("reqired"), "{log}");
}

// CLI-170
#[test]
fn markdown_alone_is_checked_whatever_its_case() {
    let base = base();
    base.write("UPPER.MD", "text");
    base.write("other.txt", "text");
    base.write("~$lock.md", "text");
    base.write("wide.md", b"\xFF\xFE\x00".as_slice());
    let output = validate(&base, &["--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(paths(&report), ["UPPER.MD", "a/gone.md", "none.md"]);
    assert_eq!((&report["scanned"], &report["ok"]), (&json!(5), &json!(2)));
    assert!(told(&output).contains("wide.md"), "{}", told(&output));
}

// CLI-12 CLI-22
#[test]
fn other_failures_end_with_1() {
    let base = Base::new(&[]);
    for (arguments, part) in [
        (&["validate"][..], "--kb-path"),
        (&["validate", "--kb-path", "gone"], "gone"),
        (&["--config", "gone.toml", "validate"], "gone.toml"),
    ] {
        let output = base.bare(arguments).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
        assert!(told(&output).contains(part), "{}", told(&output));
    }
}

/// Writes the same files, some in and some out by every rule of exclusion.
fn fixture(site: &Site) {
    let write = |path: &str| {
        site.base.write(path, format!("---\nodd: 1\n---\nThe harbour tide of {path} turns.\n"));
    };
    for path in [
        "in.md",
        "Case.MD",
        "archive.md",
        ".hidden/in.md",
        "deep/er/in.md",
        "keep.tmp.md",
        "drafts/kept/in.md",
        ".git/out.md",
        "a/Node_Modules/out.md",
        ".svn/out.md",
        "ARCHIVE/out.md",
        "a/archive/b/out.md",
        "Entwürfe/out.md",
        "ENTWÜRFE/b/out.md",
        "out.tmp.md",
        "deep/out.tmp.md",
        "private/out.md",
        "~$out.md",
        "a/out.txt",
    ] {
        write(path);
    }
    site.base.write("drafts/out.md", "---\nodd: 1\n---\nDraft.\n");
}

// CFG-84 IDX-27 IDX-28 IDX-31 IDX-32 CLI-170
#[test]
fn the_index_validation_and_the_watcher_let_the_same_documents_in() {
    let site = Site::new();
    let config = site.folder().join("named.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("exclude_dirs = ['archive', 'entwürfe']\n{text}")).unwrap();
    site.base.write(
        ".grooveignore",
        "# rules\n*.tmp.md\n!/keep.tmp.md\n/private\n!private/out.md\ndrafts/*.md\n",
    );
    // The watcher meets every file as a change, the last of all at the end.
    let server = Server::start(&site);
    fixture(&site);
    site.base.write("last.md", "---\nodd: 1\n---\nThe last one of all of them.\n");
    let of_index = || site.contents().documents.keys().cloned().collect::<BTreeSet<_>>();
    let expected: BTreeSet<String> = [
        ".hidden/in.md",
        "Case.MD",
        "archive.md",
        "deep/er/in.md",
        "drafts/kept/in.md",
        "in.md",
        "keep.tmp.md",
        "last.md",
    ]
    .map(str::to_owned)
    .into();
    wait_for("the watcher follows", || of_index().contains("last.md"));
    let watched = of_index();
    drop(server);
    site.restore(None);
    site.indexed(&[]);
    let indexed = of_index();
    site.base.write("groove-schema.toml", "[options]\nallow_unknown_fields = false\n");
    let output = site.run("validate", &["--format", "json"]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let validated: BTreeSet<String> = paths(&report).into_iter().map(str::to_owned).collect();
    assert_eq!(report["scanned"], json!(validated.len()));
    assert_eq!(indexed, expected);
    assert_eq!(validated, expected);
    assert_eq!(watched, expected);
}
