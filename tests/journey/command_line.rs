//! What the command line promises without any model: streams, exit codes,
//! refusals.

use std::fs;

use crate::groove::{Base, stderr, stdout, told};

// CLI-03
#[test]
fn version_and_help_go_to_standard_output() {
    let base = Base::new(&[]);
    let version = base.bare(&["--version"]).output().unwrap();
    assert_eq!(version.status.code(), Some(0));
    assert_eq!(stdout(&version), format!("groove {}\n", env!("CARGO_PKG_VERSION")));
    for command in ["index", "serve", "search", "graph", "status"] {
        let help = base.bare(&[command, "--help"]).output().unwrap();
        assert_eq!(help.status.code(), Some(0));
        assert!(stdout(&help).contains("--kb-path"), "{command}");
    }
}

// CLI-22
#[test]
fn arguments_that_cannot_be_understood_end_with_two() {
    let base = Base::new(&[]);
    for arguments in [
        &["index", "--nonsense"][..],
        &["nonsense"],
        &["search"],
        &["graph"],
        &["index", "--quiet", "--progress"],
    ] {
        let output = base.bare(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "");
    }
}

// CLI-20 CLI-25 CLI-31
#[test]
fn status_without_an_index_says_so_and_succeeds() {
    let base = Base::new(&[("a.md", "text")]);
    let output = base.groove("status", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("No index found"));
    assert!(!base.index().exists(), "asking makes no index");
}

// CLI-111 CLI-21 CLI-126
#[test]
fn a_search_without_an_index_names_the_place_and_the_remedy() {
    let base = Base::new(&[("a.md", "text")]);
    let output = base.groove("search", &["tide"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let told = told(&output);
    assert!(told.contains(".groove.db") && told.contains("groove index"), "{told}");
    assert!(!base.index().exists());
}

// CLI-12
#[test]
fn without_a_knowledge_base_the_flag_is_asked_for() {
    let base = Base::new(&[]);
    for arguments in
        [&["index"][..], &["search", "x"], &["graph", "--start", "a.md"], &["serve"], &["status"]]
    {
        let output = base.bare(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(told(&output).contains("--kb-path"), "{}", told(&output));
    }
}

// CLI-12 CLI-13
#[test]
fn a_folder_that_is_not_there_is_named_and_nothing_is_made() {
    let base = Base::new(&[]);
    let output = base.bare(&["index", "--kb-path", "nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("nowhere"), "{}", told(&output));
    assert!(!base.index().exists());
}

// IDX-05 CLI-220
#[test]
fn a_garbage_index_is_named_by_every_command_and_left_alone() {
    let base = Base::new(&[("a.md", "text")]);
    let garbage = "this is no database, whatever its name says".repeat(100);
    fs::write(base.index(), &garbage).unwrap();
    for (command, arguments) in [
        ("index", &[][..]),
        ("search", &["x"][..]),
        ("graph", &["--start", "a.md"][..]),
        ("status", &[]),
        ("serve", &[]),
    ] {
        let output = base.groove(command, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(stdout(&output), "", "{command}");
        let told = told(&output);
        let line = told.lines().find(|line| line.contains(".groove.db")).unwrap();
        for fact in
            [base.index().to_str().unwrap(), "not a usable SQLite database", "delete", "--force"]
        {
            assert!(line.contains(fact), "{command}: {line}");
        }
    }
    assert_eq!(fs::read_to_string(base.index()).unwrap(), garbage);
}

// CLI-34 CFG-41
#[test]
fn an_unknown_model_is_answered_with_the_nearest_name() {
    let base = Base::new(&[("a.md", "text")]);
    let output = base.groove("index", &["--model", "bge-small-en-v15"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = told(&output);
    assert!(told.contains("bge-small-en-v15") && told.contains("bge-small-en-v1.5"), "{told}");
    assert!(!base.index().exists());
}

// IDX-161 CFG-95
#[test]
fn a_model_that_cannot_be_had_names_the_offline_way_and_loses_nothing() {
    let base = Base::new(&[("a.md", "text that is long enough to be embedded one day")]);
    let output = base.groove("index", &[]).env_remove("GROOVE_MODELS_DIR").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = told(&output);
    assert!(told.contains("bge-small-en-v1.5") && told.contains("127.0.0.1:9"), "{told}");
    assert!(told.contains("models"), "{told}");
}

// CFG-95
#[test]
fn a_relative_model_cache_stops_what_loads_a_model() {
    let base = Base::new(&[("a.md", "text")]);
    let output =
        base.groove("index", &[]).env("FASTEMBED_CACHE_DIR", "relative/cache").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("FASTEMBED_CACHE_DIR"), "{}", told(&output));
    let output =
        base.groove("status", &[]).env("FASTEMBED_CACHE_DIR", "relative/cache").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "status loads no model");
}

// CLI-106 CLI-108 CLI-94 CLI-95 CLI-126 SRCH-182 SRCH-47
#[test]
fn a_bad_search_is_refused_before_the_index_is_looked_for() {
    let base = Base::new(&[]);
    let (long, big) = ("x".repeat(1025), format!("k={}", "v".repeat(1025)));
    let many: Vec<String> = (0..65).map(|n| format!("t{n}")).collect();
    let many = many.join(",");
    let globs = ["--path-glob", "a"].repeat(65);
    let with_query = |arguments: &[&'static str]| [arguments, &["x"]].concat();
    for (arguments, word) in [
        (vec!["--mmr-lambda", "2", "x"], "mmr_lambda is 2"),
        (vec!["--mmr-lambda", "NaN", "x"], "mmr_lambda is NaN"),
        (vec!["--mmr-same-doc-penalty=-0.1", "x"], "mmr_same_doc_penalty is -0.1"),
        (vec!["--path-glob", "[", "x"], "\"[\""),
        (vec!["--path-glob", &long, "x"], "path_globs"),
        (with_query(&globs), "path_globs"),
        (vec!["--tag-any", &many, "x"], "tags_any"),
        (vec!["--tag-all", &many, "x"], "tags_all"),
        (vec!["--field", "=v", "x"], "fields"),
        (vec!["--field", "k=", "x"], "fields.k"),
        (vec!["--field-not", &big, "x"], "fields_not.k"),
        (vec!["--", "-only"], "excludes"),
        (vec![long.as_str()], "1024"),
    ] {
        for format in [&["--format", "json"][..], &["--format", "text"]] {
            let output = base.groove("search", &[format, &arguments].concat()).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{arguments:?}");
            assert_eq!(stdout(&output), "", "no envelope");
            assert!(told(&output).contains(word), "{arguments:?}: {}", told(&output));
            assert!(!told(&output).contains("No index"), "{}", told(&output));
        }
    }
    // What cannot be parsed at all ends as any parse error does.
    for arguments in [["--limit", "-1", "x"], ["--format", "xml", "x"], ["--field", "k", "x"]] {
        let output = base.groove("search", &arguments).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    }
}

// HTTP-03 CLI-76
#[test]
fn an_address_for_standard_input_and_output_is_refused() {
    let base = Base::new(&[("a.md", "text")]);
    let output = base.groove("serve", &["--port", "3100"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("--transport http"), "{}", told(&output));
    assert!(!base.index().exists());
}

// CFG-02 CFG-11 CLI-225
#[test]
fn a_misspelt_key_in_the_configuration_is_named() {
    let base = Base::new(&[("a.md", "text")]);
    let file = base.home().join("own.toml");
    fs::create_dir_all(base.home()).unwrap();
    fs::write(&file, "exclude_dir = []\n").unwrap();
    let output = base.groove("status", &["--config", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = told(&output);
    for fact in ["exclude_dir", "exclude_dirs", "own.toml"] {
        assert!(told.contains(fact), "{told}");
    }
}

// CLI-11
#[test]
fn the_log_says_where_the_configuration_came_from() {
    let base = Base::new(&[]);
    let output = base.groove("status", &[]).output().unwrap();
    let log = stderr(&output);
    assert!(
        log.contains("loaded config") && log.contains("source=NotFound") && log.contains("trust="),
        "{log}"
    );
}
