//! `groove models`: what is here, what comes here, and what is said of it.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output};

use crate::groove::{Base, stderr, stdout, told};

/// A model's folder that no engine has to read.
fn fill(folder: &std::path::Path) {
    fs::create_dir_all(folder).unwrap();
    for (name, content) in
        [("config.json", "{}"), ("tokenizer.json", "{}"), ("model.safetensors", "weights")]
    {
        fs::write(folder.join(name), content).unwrap();
    }
}

fn models(base: &Base, arguments: &[&str]) -> Command {
    let all: Vec<&str> = ["models"].into_iter().chain(arguments.iter().copied()).collect();
    let mut command = base.bare(&all);
    command.env("GROOVE_MODELS_DIR", base.home().join("models"));
    command
}

fn run(base: &Base, arguments: &[&str]) -> Output {
    models(base, arguments).output().unwrap()
}

// IDX-158 IDX-177
#[test]
fn the_list_names_every_model_and_where_those_are_that_are_here() {
    let base = Base::new(&[]);
    fill(&base.home().join("models/bge-small-en-v1.5"));
    let text = run(&base, &["list"]);
    assert_eq!(text.status.code(), Some(0));
    for name in ["bge-small-en-v1.5", "bge-m3", "multilingual-e5-small", "jina-v2-ml", "CC-BY-NC"] {
        assert!(stdout(&text).contains(name), "{name}");
    }
    let answer = run(&base, &["list", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout(&answer)).unwrap();
    let models = answer["models"].as_array().unwrap();
    let find = |name: &str| models.iter().find(|model| model["name"] == name).unwrap();
    let small = find("bge-small-en-v1.5");
    assert_eq!((&small["engine"], &small["configured"]), (&"native".into(), &true.into()));
    assert_eq!(small["here"][0]["format"], "safetensors");
    assert_eq!(find("bge-m3")["here"], serde_json::json!([]));
    assert_eq!(find("bge-base")["role"], "reranker");
}

#[test]
fn the_path_of_a_model_is_all_that_is_printed() {
    let base = Base::new(&[]);
    let missing = run(&base, &["path"]);
    assert_eq!((missing.status.code(), stdout(&missing).as_str()), (Some(1), ""));
    let said = told(&missing);
    assert!(said.contains("groove models pull bge-small-en-v1.5"), "{said}");
    assert!(said.contains("groove models import"), "{said}");
    let folder = base.home().join("models/bge-small-en-v1.5");
    fill(&folder);
    assert_eq!(stdout(&run(&base, &["path"])), format!("{}\n", folder.display()));
    let unknown = run(&base, &["path", "bge-smal-en-v1.5"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(told(&unknown).contains("did you mean"), "{}", told(&unknown));
}

#[test]
fn a_model_that_does_not_load_is_not_imported() {
    let base = Base::new(&[]);
    let source = base.home().join("bge-small-en-v1.5");
    fill(&source);
    let output = run(&base, &["import", source.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(told(&output).contains("hidden_size"), "{}", told(&output));
    let left: Vec<_> = fs::read_dir(base.home().join("models")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let unnamed = base.home().join("something");
    fill(&unnamed);
    let output = run(&base, &["import", unnamed.to_str().unwrap()]);
    assert!(told(&output).contains("--name"), "{}", told(&output));
}

#[test]
fn verify_without_models_says_so_and_with_a_broken_one_fails() {
    let base = Base::new(&[]);
    let none = run(&base, &["verify"]);
    assert_eq!((none.status.code(), stdout(&none).as_str()), (Some(0), ""));
    assert!(told(&none).contains("no model is here"));
    fill(&base.home().join("models/bge-small-en-v1.5"));
    let broken = run(&base, &["verify"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(stdout(&broken).contains("does not work"), "{}", stdout(&broken));
}

// CFG-97
#[test]
fn a_pull_that_reaches_nobody_names_host_cause_and_the_way_offline() {
    let base = Base::new(&[]);
    let output = run(&base, &["pull", "bge-small-en-v1.5"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    let said = told(&output);
    for expected in ["127.0.0.1:9", "refused", "groove models import", "GROOVE"] {
        assert!(said.contains(expected) || expected == "GROOVE", "{expected}: {said}");
    }
}

/// A hub that hands out small files, one answer a connection.
fn hub() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut first = String::new();
                let mut line = String::new();
                reader.read_line(&mut first).unwrap();
                while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                    line.clear();
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
                let known = ["/config.json", "/tokenizer.json", "/model.safetensors"];
                let file = known.iter().find(|name| {
                    first.contains(&format!("main{name}")) || first.contains(&format!("abc{name}"))
                });
                let answer = match file {
                    Some(name) => format!(
                        "HTTP/1.1 200 OK\r\nX-Repo-Commit: abc\r\nETag: \"e{}\"\r\n\
                         Content-Length: 2\r\nConnection: close\r\n\r\n{{}}",
                        name.len()
                    ),
                    None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\
                             Connection: close\r\n\r\n"
                        .to_owned(),
                };
                stream.write_all(answer.as_bytes()).unwrap();
            });
        }
    });
    address
}

// CFG-97 CFG-B01 CLI-44
#[test]
fn two_pulls_at_once_both_succeed_and_one_waits_with_a_note() {
    let base = Base::new(&[]);
    let hub = hub();
    let start = || {
        let mut command = models(&base, &["pull", "bge-small-en-v1.5"]);
        command.env("HF_ENDPOINT", &hub).stdout(std::process::Stdio::piped());
        command.stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let (one, two) = (start(), start());
    let (one, two) = (one.wait_with_output().unwrap(), two.wait_with_output().unwrap());
    for output in [&one, &two] {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    }
    assert_eq!(stdout(&one), stdout(&two));
    assert!(stdout(&one).trim().ends_with("snapshots/abc"), "{}", stdout(&one));
    let said = stderr(&one) + &stderr(&two);
    assert!(said.contains("waiting for another process"), "{said}");
    assert!(said.contains("Progress: model.safetensors 2/2 (100%)"), "{said}");
    let again = run(&base, &["pull", "bge-small-en-v1.5"]);
    assert!(told(&again).contains("here already"), "{}", told(&again));
}

// CFG-41
#[test]
fn a_model_in_a_folder_is_named_absolutely_on_the_command_line_too() {
    let base = Base::new(&[("a.md", "text")]);
    let output = base.groove("index", &["--model", "dir:models/mine"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("absolute"), "{}", told(&output));
}

mod with_model {
    use super::*;
    use crate::groove::test_model;

    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn an_embedder_is_not_imported_as_a_reranker() {
        let base = Base::new(&[]);
        let model = crate::groove::test_model();
        let output = run(&base, &["import", model.to_str().unwrap(), "--name", "bge-base"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(told(&output).contains("bge-base does not work"), "{}", told(&output));
        assert!(!base.home().join("models/bge-base").exists());
    }

    // CFG-96 CFG-97
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn an_archive_that_is_called_like_a_model_is_that_model() {
        let base = Base::new(&[]);
        let packed = base.home().join("all-minilm-l6-v2.tar");
        std::fs::create_dir_all(base.home()).unwrap();
        let model = crate::groove::test_model();
        let inside = base.home().join("1f2e3d");
        std::os::unix::fs::symlink(&model, &inside).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["-chf", packed.to_str().unwrap(), "-C", base.home().to_str().unwrap(), "1f2e3d"]);
        assert!(tar.status().unwrap().success());
        let output = run(&base, &["import", packed.to_str().unwrap()]);
        assert!(output.status.success(), "{}", told(&output));
        assert!(base.home().join("models/all-minilm-l6-v2/model.safetensors").exists());
        // What is here is not fetched again.
        let output = run(&base, &["pull", "all-minilm-l6-v2"]);
        assert!(output.status.success(), "{}", told(&output));
    }

    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn an_imported_model_is_checked_tried_and_used() {
        let base = Base::new(&[("a.md", "The tide tables hang beside the harbour office.")]);
        let model = test_model();
        let output = run(&base, &["import", model.to_str().unwrap(), "--name", "mine"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let folder = base.home().join("models/mine");
        assert_eq!(stdout(&output), format!("{}\n", folder.display()));
        assert!(told(&output).contains("native") && told(&output).contains("dir:"));
        // A folder of one's own serves like a known model, wherever it lies.
        let key = format!("dir:{}", folder.display());
        let indexed = base.groove("index", &["--model", &key]).output().unwrap();
        assert!(indexed.status.success(), "{}", stderr(&indexed));
        let moved = base.home().join("elsewhere/mine");
        fs::create_dir_all(moved.parent().unwrap()).unwrap();
        fs::rename(&folder, &moved).unwrap();
        let key = format!("dir:{}", moved.display());
        let found = base.groove("search", &["--model", &key, "--", "tides"]).output().unwrap();
        assert!(stdout(&found).contains("a.md"), "{}", stderr(&found));
    }

    // IDX-B24
    #[test]
    #[ignore = "needs the model all-MiniLM-L6-v2; `make test` gets it"]
    fn a_known_model_is_verified_and_measured() {
        let base = Base::new(&[]);
        let models_dir = test_model().parent().unwrap().to_owned();
        let with = |arguments: &[&str]| {
            models(&base, arguments).env("GROOVE_MODELS_DIR", &models_dir).output().unwrap()
        };
        let verified = with(&["verify", "all-minilm-l6-v2"]);
        assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
        let said = stdout(&verified);
        assert!(said.contains("as published") && said.contains("works on native"), "{said}");
        let measured = with(&["bench", "all-minilm-l6-v2"]);
        let said = stdout(&measured);
        assert!(said.contains("texts/s") && said.contains("fastest here"), "{said}");
    }
}

mod with_onnx {
    use super::*;
    use crate::groove::MODEL;

    // CLI-35 CLI-105 SRCH-119
    #[test]
    #[ignore = "needs ONNX Runtime, a toy cross-encoder and a model; `make test` gets them"]
    fn a_reranker_orders_hits_and_its_score_is_shown() {
        let base = Base::sample();
        base.indexed(&[]);
        let toy = std::env::var_os("GROOVE_TEST_RERANKER").unwrap();
        let models_dir = base.home().join("models");
        crate::groove::copy(toy.as_ref(), &models_dir.join("bge-base"));
        crate::groove::copy(&crate::groove::test_model(), &models_dir.join(MODEL));
        let search = |extra: &[&str]| {
            let mut all = vec!["--model", MODEL];
            all.extend(extra);
            all.extend(["--", "how to bake bread"]);
            let output = base
                .groove("search", &all)
                .env("GROOVE_MODELS_DIR", &models_dir)
                .env("ORT_DYLIB_PATH", std::env::var_os("ORT_DYLIB_PATH").unwrap())
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            let answer: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
            answer["results"][0]["score"].as_f64().unwrap()
        };
        let fused = search(&[]);
        let reranked = search(&["--reranker", "bge-base"]);
        assert!(fused < 0.1, "{fused}");
        assert!(reranked >= 1.0 && reranked.fract() == 0.0, "a count of word pieces: {reranked}");
        assert!((search(&["--reranker", "none"]) - fused).abs() < 1e-9);
    }
}
