//! Whole runs over an embedding endpoint.

use std::path::PathBuf;
use std::process::Output;

use crate::endpoint::{Act, DIMENSION, FakeEndpoint};
use crate::groove::{Base, stderr, stdout};

/// A knowledge base, an endpoint, and a configuration that joins them.
struct Remote {
    base: Base,
    fake: FakeEndpoint,
    config: PathBuf,
}

impl Remote {
    fn new(more: &str) -> Self {
        let base = Base::new(&[
            ("tides.md", "The tide turns twice a day, and every harbour has its own hour.\n"),
            ("rope.md", "A bowline holds under load and is easy to untie afterwards.\n"),
        ]);
        let fake = FakeEndpoint::new(&[]);
        let config = base.index().with_file_name("named.toml");
        let text = format!(
            "[embedding]\nprovider = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n\
             dimension = {DIMENSION}\nmax_retries = 0\n{more}",
            fake.url()
        );
        std::fs::write(&config, text).unwrap();
        Self { base, fake, config }
    }

    fn groove(&self, command: &str, arguments: &[&str]) -> Output {
        let kb = self.base.kb();
        let config = self.config.to_str().unwrap();
        let mut all = vec!["--config", config, command, "--kb-path", kb.to_str().unwrap()];
        all.extend(arguments);
        self.base.bare(&all).output().unwrap()
    }
}

// IDX-165 IDX-112 IDX-173 CFG-50
#[test]
fn a_knowledge_base_is_indexed_and_searched_through_an_endpoint() {
    let remote = Remote::new("api_key = 'k3y'\n");
    let first = remote.groove("index", &[]);
    assert!(first.status.success(), "{}", stderr(&first));
    assert!(stderr(&first).contains("2 docs (2 updated"), "{}", stderr(&first));
    assert_eq!(remote.fake.take().len(), 1, "one request for both, and no probe");
    let found = remote.groove("search", &["harbour tide"]);
    let found: serde_json::Value = serde_json::from_str(&stdout(&found)).unwrap();
    assert_eq!(found["results"][0]["path"], "tides.md");
    assert_eq!(found["results"][0]["matched_by"], serde_json::json!(["vector", "fulltext"]));
    assert_eq!(remote.fake.take().len(), 1);
    let status = remote.groove("status", &[]);
    assert!(stdout(&status).contains("Model: openai-compatible:m|m:"), "{}", stdout(&status));
    let again = remote.groove("index", &[]);
    assert!(stderr(&again).contains("(0 updated"), "{}", stderr(&again));
    assert!(remote.fake.take().is_empty());
}

// IDX-176 IDX-B03
#[test]
fn a_forced_run_probes_first_and_removes_nothing_if_that_fails() {
    let remote = Remote::new("");
    assert!(remote.groove("index", &[]).status.success());
    remote.fake.take();
    remote.fake.always(Some(Act::Answer(401, "", "{\"error\": \"wrong key\"}".to_owned())));
    let forced = remote.groove("index", &["--force"]);
    let told = stderr(&forced);
    assert_eq!(forced.status.code(), Some(1), "{told}");
    assert!(told.contains("nothing was removed") && told.contains("answered HTTP 401"), "{told}");
    assert!(told.contains("the endpoint answered: {\"error\": \"wrong key\"}"), "{told}");
    assert_eq!(remote.fake.take().len(), 1);
    assert!(stdout(&remote.groove("status", &[])).contains("Documents: 2\n"));
    remote.fake.always(None);
    assert!(remote.groove("index", &["--force"]).status.success());
    let asked = remote.fake.take();
    assert_eq!(asked[0].body["input"], serde_json::json!(["GrooveSeek endpoint probe"]));
    assert_eq!(asked.len(), 2);
}

// CLI-23 CLI-56 IDX-104 IDX-171
#[test]
fn an_input_that_is_rejected_is_named_without_a_word_of_the_answer() {
    let remote = Remote::new("");
    remote.fake.refuse("bowline", 413);
    let first = remote.groove("index", &[]);
    let told = stderr(&first);
    assert!(first.status.success(), "{told}");
    let line = "warning: rope.md: embedding endpoint rejected the input (HTTP 413); the index \
                keeps what it had";
    assert!(told.contains(line) && !told.contains("s3cret"), "{told}");
    assert!(told.contains("1 docs (1 updated, 0 renamed, 0 deleted, 1 skipped"), "{told}");
    let forced = remote.groove("index", &["--force"]);
    let told = stderr(&forced);
    assert_eq!(forced.status.code(), Some(1), "{told}");
    assert!(told.contains("(HTTP 413); the file is not in the index"), "{told}");
    remote.fake.refuse("", 422);
    remote.base.write("tides.md", "Other words about the tide and the harbour, for once.\n");
    let nothing = remote.groove("index", &[]);
    assert_eq!(nothing.status.code(), Some(1), "{}", stderr(&nothing));
    assert!(stderr(&nothing).contains("accepted no input at all"), "{}", stderr(&nothing));
}

// IDX-113 CFG-61
#[test]
fn an_index_of_an_endpoint_is_not_taken_for_one_of_a_local_model() {
    let remote = Remote::new("");
    assert!(remote.groove("index", &[]).status.success());
    let other = remote.groove("search", &["--model", "bge-small-en-v1.5", "tide"]);
    let told = stderr(&other);
    assert_eq!(other.status.code(), Some(1), "{told}");
    assert!(
        told.contains("openai-compatible:m|m:") && told.contains("bge-small-en-v1.5"),
        "{told}"
    );
}

// QUA-B01 QUA-B06 QUA-18
#[test]
fn status_tells_what_lowers_quality_only_when_asked() {
    let remote = Remote::new("[quality_filter]\nextra_boilerplate = ['Noch offen']\n");
    remote.base.write("later.md", "## When\n\n- *noch offen*\n");
    let index = remote.groove("index", &[]);
    assert!(index.status.success(), "{}", stderr(&index));
    let plain = stdout(&remote.groove("status", &[]));
    assert!(plain.contains("Quality: 2 chunks pass the threshold of 0.3, 1 do not\n"), "{plain}");
    assert!(!plain.contains("boilerplate"), "{plain}");
    let output = remote.groove("status", &["--quality"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    for line in [
        "Quality below 1: 3 of 3 chunks\n",
        "  boilerplate (-0.5): 1 chunks\n    later.md#When: - *noch offen*\n",
        "  structure (-0.3): 3 chunks\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}
