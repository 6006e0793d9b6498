//! Runs of the index over real files.

use std::fs;

use crate::groove::{Base, MODEL, stderr, stdout};
use crate::site::Site;

// IDX-101 IDX-102 CLI-59
#[test]
fn the_last_line_counts_what_became_of_the_files() {
    let site = Site::new();
    let text = |what: &str| format!("Every harbour has its own hour for the {what}.\n");
    for name in ["same", "edited", "moved", "gone", "refused"] {
        site.base.write(&format!("sea/{name}.md"), text(name));
    }
    assert!(site.indexed(&[]).contains("5 docs (5 updated, 0 renamed, 0 deleted, 0 skipped, "));
    let kb = site.base.kb();
    site.base.write("sea/edited.md", text("ferry"));
    site.base.write("sea/new.md", text("storm"));
    site.base.write("sea/broken.md", "---\ntags: [x\n---\nText that is long enough to be found.\n");
    site.base.write("sea/empty.md", "");
    site.base.write("sea/refused.md", text("inadmissible"));
    site.base.write(".git/left-out.md", text("left-out"));
    std::os::unix::fs::symlink("same.md", kb.join("sea/linked.md")).unwrap();
    fs::rename(kb.join("sea/moved.md"), kb.join("sea/moved away.md")).unwrap();
    fs::remove_file(kb.join("sea/gone.md")).unwrap();
    site.fake.refuse("inadmissible", 413);
    let told = site.indexed(&[]);
    let line =
        "6 docs (3 updated, 1 renamed, 1 deleted, 2 skipped, 1 frontmatter unparsed), 6 chunks";
    assert!(told.contains(line), "{told}");
}

mod with_model {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Stdio;
    use std::thread;
    use std::time::Duration;

    // CLI-16 CLI-51 CLI-52 CLI-53 CLI-59
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_run_says_what_it_does_and_a_second_one_does_nothing() {
        let base = Base::sample();
        let first = base.indexed(&[]);
        for line in [
            "Indexing ",
            "Found 11 source files (.md)",
            "  indexed: it/network/vpn.md (",
            "Done in ",
        ] {
            assert!(first.contains(line), "{line:?} is not in\n{first}");
        }
        assert!(
            first.contains(
                "11 docs (11 updated, 0 renamed, 0 deleted, 0 skipped, 0 frontmatter unparsed)"
            ),
            "{first}"
        );
        let second = base.indexed(&[]);
        assert!(second.contains("11 docs (0 updated, 0 renamed, 0 deleted, 0 skipped"), "{second}");
        assert!(!second.contains("loading the embedding model"), "{second}");
    }

    // CLI-43 CLI-44 CLI-55
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn quiet_and_progress_leave_out_the_line_for_each_file() {
        let base = Base::sample();
        base.write(
            "broken.md",
            "---\ntags: [x\n---\nText that is long enough to be found again.\n",
        );
        let quiet = base.indexed(&["--quiet"]);
        assert!(!quiet.contains("  indexed:"), "{quiet}");
        for line in [
            "Indexing ",
            "Found 12",
            "Done in ",
            "warning: broken.md: failed to parse YAML frontmatter",
        ] {
            assert!(quiet.contains(line), "{line:?} is not in\n{quiet}");
        }
        let progress = base.indexed(&["--progress", "--force"]);
        assert!(!progress.contains("  indexed:"), "{progress}");
        assert!(progress.contains("Progress: 12/12 (100%)"), "{progress}");
        let nothing_new = base.indexed(&["--progress"]);
        assert!(nothing_new.contains("Progress: 12/12 (100%)"), "{nothing_new}");
    }

    // CLI-112 CLI-124 CLI-15 CLI-24 SRCH-160 SRCH-174 SRCH-175
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_search_finds_by_meaning_and_prints_the_stable_object() {
        let base = Base::sample();
        base.indexed(&[]);
        let answer = base.search("I lost my phone and cannot sign in", &["--limit", "3"]);
        assert_eq!(answer["results"][0]["path"], "it/accounts/password-reset.md");
        assert_eq!(answer["results"].as_array().unwrap().len(), 3);
        assert_eq!(answer["filter_applied"], serde_json::json!({}));
        assert!(answer["low_confidence"].is_boolean());
        assert!(answer["results"][0].get("uri").is_none());
        let filtered = base.search("sign in", &["--tag-any", "security", "--category", "it"]);
        assert_eq!(filtered["results"][0]["path"], "it/accounts/two-factor.md");
        assert_eq!(
            filtered["filter_applied"],
            serde_json::json!({"category": "it", "tags_any": ["security"]})
        );
        let none = base.search("sign in", &["--category", "nothing"]);
        assert_eq!(none["results"], serde_json::json!([]));
        let japanese = base.search("領収書の原本", &[]);
        assert_eq!(japanese["results"][0]["path"], "product/経費精算.md");
    }

    // CLI-125
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn text_form_shows_title_place_score_tags_and_text() {
        let base = Base::sample();
        base.indexed(&[]);
        let output = base
            .groove("search", &["--model", MODEL, "--format", "text", "--limit", "2", "paper jam"])
            .output()
            .unwrap();
        let text = stdout(&output);
        for part in [
            "Printers\n",
            "it/network/printers.md#Paper jams",
            "score: 0.0",
            "tags: hardware",
            "\n---\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }

    // CLI-150 CLI-151 QUA-18
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn status_says_what_the_index_holds() {
        let base = Base::sample();
        base.write("stub.md", "TBD\n");
        base.write("groove-schema.toml", "[fields.owner]\n");
        base.indexed(&[]);
        let output = base.groove("status", &[]).env_remove("GROOVE_MODELS_DIR").output().unwrap();
        let text = stdout(&output);
        for line in [
            "Documents: 12\n",
            "Context mode: off\n",
            "Declared fields: owner (",
            "Model: all-minilm-l6-v2",
            ", 1 do not\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    // IDX-18 IDX-21 IDX-41 IDX-50 IDX-99 IDX-100 IDX-105 CLI-54
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn bad_files_are_named_with_what_to_do_and_the_run_goes_on() {
        let base = Base::sample();
        base.write("latin1.md", b"caf\xe9 au lait, et une phrase assez longue pour compter");
        base.write("large.md", "x".repeat(60 * 1024 * 1024));
        base.write("linked.md", "a file with two names that would otherwise be indexed");
        fs::hard_link(base.kb().join("linked.md"), base.home().parent().unwrap().join("other.md"))
            .unwrap();
        fs::write(base.index().with_file_name("secret.md"), "nobody may read this secret").unwrap();
        symlink(base.index().with_file_name("secret.md"), base.kb().join("out.md")).unwrap();
        let told = base.indexed(&[]);
        for fact in [
            "Skipping latin1.md: it is not valid UTF-8",
            "Skipping large.md: 62914560 bytes exceed the text file size limit of 52428800",
            "[index].max_text_file_size",
            "linked.md: not indexed: the file has more than one hard link",
            "11 docs (11 updated",
            "2 skipped",
        ] {
            assert!(told.contains(fact), "{fact:?} is not in\n{told}");
        }
        let found = base.search("secret", &["--include-low-quality", "--limit", "100"]);
        assert!(
            !found.to_string().contains("nobody may read"),
            "a link out of the folder was followed"
        );
    }

    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_model_folder_without_a_tokenizer_is_named() {
        let base = Base::sample();
        let models = base.home().join("models");
        crate::groove::copy(&crate::groove::test_model(), &models.join(MODEL));
        fs::remove_file(models.join(MODEL).join("tokenizer.json")).unwrap();
        let output = base
            .groove("index", &["--model", MODEL])
            .env("GROOVE_MODELS_DIR", &models)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let told = stderr(&output);
        assert!(
            told.contains("tokenizer.json") && told.contains(models.to_str().unwrap()),
            "{told}"
        );
    }

    // IDX-05 IDX-06 IDX-B02
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn force_replaces_a_damaged_index() {
        let base = Base::sample();
        fs::write(base.index(), "this is no database".repeat(500)).unwrap();
        base.indexed(&["--force"]);
        let answer = base.search("vpn", &[]);
        assert_eq!(answer["results"][0]["path"], "it/network/vpn.md");
    }

    // IDX-05 IDX-06
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn force_rebuilds_over_damage_that_only_some_tables_show() {
        let base = Base::sample();
        base.indexed(&[]);
        let mut bytes = fs::read(base.index()).unwrap();
        let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        for place in 3..12 {
            bytes[page * place..page * place + 600].fill(0xAA);
        }
        fs::write(base.index(), bytes).unwrap();
        let told = base.indexed(&["--force"]);
        assert!(told.contains("11 docs (11 updated"), "{told}");
        let answer = base.search("vpn", &[]);
        assert_eq!(answer["results"][0]["path"], "it/network/vpn.md");
        let aside = base.index().with_file_name(".groove.db.damaged");
        assert!(!aside.exists(), "what was moved aside goes after a complete run");
    }

    // IDX-01
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn once_a_command_has_ended_the_index_is_one_file() {
        let base = Base::sample();
        base.indexed(&[]);
        base.search("vpn", &[]);
        let copy = Base::new(&[]);
        fs::copy(base.index(), copy.index()).unwrap();
        let status = stdout(&copy.groove("status", &[]).output().unwrap());
        assert!(status.contains("Documents: 11\n"), "{status}");
    }

    // IDX-112 IDX-113 CLI-221
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn another_model_than_the_indexs_is_refused_with_the_remedy() {
        let base = Base::sample();
        base.indexed(&[]);
        for (command, arguments) in [("index", &[][..]), ("search", &["x"][..]), ("serve", &[])] {
            let output = base.groove(command, arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{command}");
            let told = stderr(&output);
            for fact in [
                "all-minilm-l6-v2",
                "bge-small-en-v1.5",
                "384",
                "groove index --kb-path",
                "--force --model",
            ] {
                assert!(told.contains(fact), "{command}: {fact:?} is not in\n{told}");
            }
        }
    }

    // IDX-07
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_killed_run_is_completed_by_the_next_one() {
        let base = Base::new(&[]);
        let paragraph = "The tide turns twice a day, and every harbour has its own hour for it. ";
        for number in 0..120 {
            let text = format!("## Harbour {number}\n\nPier {number}. {}", paragraph.repeat(12));
            base.write(&format!("{number:03}.md"), text);
        }
        let mut killed = 0;
        for pause in [400, 800, 1200] {
            let mut run = base
                .groove("index", &["--model", MODEL, "--quiet"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_millis(pause));
            if run.try_wait().unwrap().is_none() {
                killed += 1;
            }
            run.kill().unwrap();
            run.wait().unwrap();
        }
        assert!(killed > 0, "no run was still going when it was to be killed");
        let last = base.indexed(&["--quiet"]);
        assert!(last.contains("120 docs ("), "{last}");
        let status = stdout(&base.groove("status", &[]).output().unwrap());
        assert!(
            status.contains("Chunks: 120\n") && !status.contains("without a vector"),
            "{status}"
        );
        let again = base.indexed(&["--quiet"]);
        assert!(again.contains("120 docs (0 updated"), "{again}");
        let answer = base.search("\"Harbour 119\"", &[]);
        assert_eq!(answer["results"][0]["path"], "119.md");
        assert_eq!(answer["results"][0]["matched_by"], serde_json::json!(["vector", "fulltext"]));
    }

    // IDX-B03 IDX-08
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_forced_run_that_is_killed_leaves_the_old_index_in_service() {
        let base = Base::new(&[]);
        let paragraph = "The tide turns twice a day, and every harbour has its own hour for it. ";
        for number in 0..60 {
            let text = format!("## Harbour {number}\n\nPier {number}. {}", paragraph.repeat(12));
            base.write(&format!("{number:02}.md"), text);
        }
        base.indexed(&["--quiet"]);
        base.write("60.md", "## Harbour 60\n\nA new pier, which no complete run has seen yet.");
        let mut killed = 0;
        for pause in [300, 600, 900, 1200] {
            let mut run = base
                .groove("index", &["--model", MODEL, "--quiet", "--force"])
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            thread::sleep(Duration::from_millis(pause));
            let during = base.search("\"Harbour 59\"", &[]);
            if run.try_wait().unwrap().is_some() {
                break;
            }
            killed += 1;
            assert_eq!(during["results"][0]["path"], "59.md");
            run.kill().unwrap();
            run.wait().unwrap();
            let status = stdout(&base.groove("status", &[]).output().unwrap());
            assert!(status.contains("Documents: 60\n"), "{status}");
        }
        assert!(killed > 0, "no run was still going when it was to be killed");
        let last = base.indexed(&["--quiet", "--force"]);
        assert!(last.contains("61 docs (61 updated"), "{last}");
        let left: Vec<String> = fs::read_dir(base.index().parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("rebuild"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        let again = base.indexed(&["--quiet"]);
        assert!(again.contains("61 docs (0 updated"), "{again}");
    }
}
