//! `groove doctor` over indexes that are sound and over such as were damaged by
//! hand, and what its remedies do.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::contents::execute;
use crate::groove::{Base, stderr, stdout, told};
use crate::site::{Site, wait_for};

/// An indexed knowledge base, each document of which has one chunk.
fn site() -> Site {
    let site = Site::new();
    for (path, text) in [
        ("sea/tides.md", "---\nowner: me\n---\nThe harbour tide turns twice every single day.\n"),
        ("sea/fog.md", "Thick morning fog closes the harbour for every single ferry.\n"),
        ("land/bread.md", "Knead sourdough dough, then bake bread inside of hot ovens.\n"),
    ] {
        site.replace(path, Some(text));
    }
    site.indexed(&[]);
    site
}

fn damaged(statements: &str) -> Site {
    let site = site();
    execute(&site.base.index(), statements);
    site
}

fn report(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

fn examined(site: &Site) -> (Option<i32>, Value) {
    let output = site.run("doctor", &["--format", "json"]);
    (output.status.code(), report(&output))
}

fn checks(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["check"].as_str().unwrap()).collect()
}

/// Makes sure that an index damaged so has this one finding, and that the
/// command that its remedy begins with puts it right.
fn found_and_repaired(statements: &str, check: &str, count: u64, samples: &[&str]) {
    let site = damaged(statements);
    let (code, report) = examined(&site);
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(checks(&report), [check]);
    let finding = &report["findings"][0];
    assert_eq!(finding["severity"], "error");
    assert_eq!((&finding["count"], &finding["samples"]), (&json!(count), &json!(samples)));
    let again = examined(&site).1;
    assert_eq!(again, report, "it changes nothing");

    let remedy = finding["remedy"].as_str().unwrap();
    assert!(remedy.contains("groove index --force"), "{remedy}");
    let forced = remedy.starts_with("groove index --force");
    site.indexed(if forced { &["--force"] } else { &[] });
    let (code, report) = examined(&site);
    assert_eq!((code, checks(&report).len()), (Some(0), 0), "after {remedy}: {report:#}");
    assert_eq!(site.contents().difference(&site.fresh()), "");
}

// CLI-155 CLI-156 CLI-157 CLI-15 CLI-26
#[test]
fn a_sound_index_is_clean_in_every_form() {
    let site = site();
    let output = site.run("doctor", &["--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(report(&output), json!({ "documents": 3, "chunks": 3, "findings": [] }));
    assert_eq!(told(&output), "");
    let output = site.run("doctor", &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "No issues found in 3 documents, 3 chunks\n");
    assert!(site.fake.take().is_empty(), "no model is asked");
    site.assert_tidy();
}

// OPS-60a
#[test]
fn a_missing_vector_table_is_found_and_made_again() {
    found_and_repaired("DROP TABLE vec_chunks", "vector-table-missing", 3, &[]);
}

// OPS-60
#[test]
fn a_missing_vector_is_found_and_made_again() {
    let lost = "DELETE FROM vec_chunks WHERE chunk_id IN
        (SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE path LIKE 'sea/%')";
    found_and_repaired(lost, "missing-embedding", 2, &["sea/fog.md", "sea/tides.md"]);
}

// OPS-62a
#[test]
fn a_vector_without_a_chunk_is_found_and_removed() {
    let stray = "INSERT INTO vec_chunks (chunk_id, embedding)
        SELECT 99, embedding FROM vec_chunks LIMIT 1";
    found_and_repaired(stray, "orphan-embedding", 1, &[]);
}

// OPS-61
#[test]
fn a_missing_full_text_row_is_found_and_added() {
    let lost = "DELETE FROM fts_chunks WHERE rowid =
        (SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE path = 'sea/fog.md')";
    found_and_repaired(lost, "missing-fts-row", 1, &["sea/fog.md"]);
}

// OPS-62
#[test]
fn a_full_text_row_without_a_chunk_is_found_and_removed() {
    let stray =
        "INSERT INTO fts_chunks (rowid, heading, context, content) VALUES (99, '', '', 'stray')";
    found_and_repaired(stray, "orphan-fts-row", 1, &[]);
}

// OPS-62b
#[test]
fn a_chunk_without_a_document_is_found_and_removed() {
    let gone = "PRAGMA foreign_keys = OFF; DELETE FROM documents WHERE path = 'sea/fog.md'";
    let site = damaged(gone);
    let (code, report) = examined(&site);
    assert_eq!((code, checks(&report)), (Some(1), vec!["chunk-without-document"]));
    assert_eq!(report["findings"][0]["count"], 1);
    assert_eq!(report["findings"][0]["samples"], json!([]));
    assert_eq!(report["documents"], 2);
    site.indexed(&["--force"]);
    assert_eq!(examined(&site).0, Some(0));
    assert_eq!(site.contents().difference(&site.fresh()), "");
}

// OPS-62c
#[test]
fn a_document_without_chunks_is_found_and_made_again() {
    // What belongs to the chunks goes with them, so that nothing else is wrong.
    let gone = "DELETE FROM vec_chunks WHERE chunk_id = (SELECT c.id FROM chunks c
            JOIN documents d ON d.id = c.document_id WHERE path = 'sea/fog.md');
        DELETE FROM fts_chunks WHERE rowid = (SELECT c.id FROM chunks c
            JOIN documents d ON d.id = c.document_id WHERE path = 'sea/fog.md');
        DELETE FROM chunks WHERE document_id = (SELECT id FROM documents WHERE path = 'sea/fog.md')";
    found_and_repaired(gone, "document-without-chunks", 1, &["sea/fog.md"]);
}

// OPS-60
#[test]
fn vectors_that_an_interrupted_run_left_to_come_are_made_by_the_next_one() {
    let site = Site::new();
    site.replace("a.md", Some("The harbour tide turns twice every single day.\n"));
    site.slow(std::time::Duration::from_mins(1));
    let mut run = site.command("index", &[]).spawn().unwrap();
    wait_for("the text is written", || {
        let output = site.run("status", &[]);
        stdout(&output).contains("Chunks: 1\n")
    });
    // While a run is under way, what it has not made yet is not missing.
    let during = site.run("doctor", &["--format", "json"]);
    assert!(!checks(&report(&during)).contains(&"missing-embedding"), "{}", stdout(&during));
    assert!(told(&during).contains("1 chunk(s) wait"), "{}", told(&during));
    run.kill().unwrap();
    run.wait().unwrap();
    let (code, found) = examined(&site);
    assert_eq!((code, checks(&found)[0]), (Some(1), "missing-embedding"));
    assert_eq!(found["findings"][0]["samples"], json!(["a.md"]));
    site.slow(std::time::Duration::ZERO);
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
}

// OPS-64
#[test]
fn sizes_that_are_not_recorded_are_recorded_by_the_next_run() {
    let site = damaged("UPDATE documents SET size_bytes = NULL WHERE path LIKE 'sea/%'");
    let (code, found) = examined(&site);
    assert_eq!((code, checks(&found)), (Some(1), vec!["size-not-recorded"]));
    assert_eq!(found["findings"][0]["severity"], "warning");
    assert_eq!(found["findings"][0]["count"], 2);
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
}

// OPS-63 OPS-66
#[test]
fn documents_that_cannot_be_opened_are_named() {
    let site = damaged(
        "UPDATE documents SET path = 'sea/fog.doc' WHERE path = 'sea/fog.md';
         UPDATE documents SET size_bytes = 1048577 WHERE path = 'sea/tides.md'",
    );
    let (code, found) = examined(&site);
    assert_eq!(code, Some(1));
    assert_eq!(checks(&found), ["extension-not-registered", "larger-than-a-read-returns"]);
    assert_eq!(found["findings"][0]["samples"], json!(["sea/fog.doc"]));
    assert_eq!(found["findings"][1]["samples"], json!(["sea/tides.md"]));
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
}

// OPS-69 OPS-70
#[test]
fn another_schema_is_noticed_until_a_run_has_taken_it_in() {
    let site = site();
    site.base.write("groove-schema.toml", "[fields.owner]\n[fields.title]\n");
    let (code, found) = examined(&site);
    assert_eq!((code, checks(&found)), (Some(1), vec!["declared-fields-stale"]));
    assert_eq!(found["findings"][0]["count"], 0);
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
    execute(&site.base.index(), "DELETE FROM index_meta WHERE key = 'declared_fields'");
    let (code, found) = examined(&site);
    assert_eq!((code, checks(&found)), (Some(1), vec!["declared-fields-pending"]));
    assert_eq!(found["findings"][0]["count"], 1);
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
}

// CLI-20 CLI-21 CLI-26 OPS-74
#[test]
fn what_cannot_be_examined_ends_with_2_and_an_empty_standard_output() {
    let site = Site::new();
    let refused = |arguments: &[&str], part: &str| {
        let output = site.run("doctor", arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
        assert!(told(&output).contains(part), "{part}: {}", told(&output));
    };
    refused(&[], "No index found");
    refused(&["--format", "json"], "No index found");
    refused(&["--format", "yaml"], "yaml");
    assert!(site.index_files().is_empty(), "none is made");

    site.base.write("groove-schema.toml", "[fields.x]\ntype = 'date'\n");
    // The schema is looked at first, so that the file is not.
    fs::write(site.base.index(), "no database".repeat(100)).unwrap();
    refused(&[], "groove-schema.toml");
    fs::remove_file(site.base.kb().join("groove-schema.toml")).unwrap();
    refused(&[], "not a usable SQLite database");
    site.restore(None);

    site.base.write("a.md", "The harbour tide turns twice every single day.\n");
    site.indexed(&[]);
    execute(
        &site.base.index(),
        "UPDATE index_meta SET value = '[1]' WHERE key = 'declared_fields'",
    );
    refused(&["--format", "json"], "declared frontmatter fields");

    let bare = |arguments: &[&str]| site.base.bare(arguments).output().unwrap();
    for (output, part) in [
        (bare(&["doctor"]), "--kb-path"),
        (bare(&["doctor", "--kb-path", "gone"]), "gone"),
        (bare(&["--config", "gone.toml", "doctor"]), "gone.toml"),
    ] {
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{part}");
        assert!(told(&output).contains(part), "{}", told(&output));
    }
    let config = site.folder().join("bad.toml");
    fs::write(&config, "nonsense = 1\n").unwrap();
    let output = bare(&["--config", config.to_str().unwrap(), "doctor", "--kb-path", "kb"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("nonsense"), "{}", told(&output));
}

// OPS-75
#[test]
fn a_check_that_could_not_be_made_is_no_clean_one() {
    let site = damaged("DROP TABLE fts_chunks_docsize");
    let (code, found) = examined(&site);
    assert_eq!(code, Some(1));
    assert_eq!(checks(&found), ["missing-fts-row", "orphan-fts-row"]);
    for finding in found["findings"].as_array().unwrap() {
        assert!(finding["summary"].as_str().unwrap().contains("could not be made"), "{finding}");
        assert_eq!((&finding["count"], &finding["samples"]), (&json!(0), &json!([])));
        assert_eq!(finding["severity"], "error");
    }
}

// CLI-158
#[test]
fn text_names_samples_and_remedies() {
    let site = damaged("DELETE FROM vec_chunks");
    let output = site.run("doctor", &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("error missing-embedding: 3 chunk(s)"), "{text}");
    assert_eq!(lines[1..4], ["  land/bread.md", "  sea/fog.md", "  sea/tides.md"]);
    assert!(lines[4].starts_with("  remedy: groove index"), "{text}");
    assert_eq!(lines[5], "1 issue found in 3 documents, 3 chunks");
}

// OPS-B02 QUA-B06
#[test]
fn further_checks_are_made_on_request_only() {
    let site = site();
    let text = fs::read_to_string(site.base.kb().join("sea/fog.md")).unwrap();
    site.replace("copy.md", Some(&text));
    site.replace("short.md", Some("TODO"));
    site.indexed(&[]);
    assert_eq!(examined(&site).0, Some(0));
    let output = site.run("doctor", &["--all", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let found = report(&output);
    assert_eq!(checks(&found), ["duplicate-content"]);
    assert_eq!(found["findings"][0]["severity"], "warning");
    assert_eq!(found["findings"][0]["count"], 2);
    assert_eq!(found["findings"][0]["samples"], json!(["copy.md = sea/fog.md"]));
    assert_eq!(found["quality"]["chunks"], 5);
    assert_eq!(found["quality"]["penalties"][0]["examples"][0]["path"], "short.md");
    site.replace("copy.md", None);
    site.indexed(&[]);
    let output = site.run("doctor", &["--all"]);
    assert_eq!(output.status.code(), Some(0), "quality is no finding");
    assert!(stdout(&output).contains("Quality below 1: "), "{}", stdout(&output));
    assert!(stdout(&output).contains("    short.md: TODO\n"), "{}", stdout(&output));
    let help = Base::new(&[]).bare(&["doctor", "--help"]).output().unwrap();
    for part in ["--all", "duplicate-content", "mixed-normalisation", "quality"] {
        assert!(stdout(&help).contains(part), "{part}");
    }
}
