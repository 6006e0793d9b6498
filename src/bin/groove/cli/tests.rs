//! Tests of the command line as it is defined.
#![allow(clippy::disallowed_methods, reason = "the pages of the guide are read from disk")]

use super::*;
use clap::CommandFactory as _;

fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("groove").chain(arguments.iter().copied()))
}

fn search(arguments: &[&str]) -> SearchArgs {
    let arguments: Vec<&str> = ["search"].into_iter().chain(arguments.iter().copied()).collect();
    match parse(&arguments).unwrap().command {
        Command::Search(arguments) => *arguments,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

// CLI-45
#[test]
fn quiet_and_progress_exclude_each_other() {
    assert_eq!(parse(&["index", "--quiet", "--progress"]).unwrap_err().exit_code(), 2);
    assert!(parse(&["index", "--quiet"]).is_ok());
}

// CLI-04
#[test]
fn the_configuration_may_be_named_before_or_after_the_command() {
    for arguments in [["--config", "x.toml", "status"], ["status", "--config", "x.toml"]] {
        assert_eq!(parse(&arguments).unwrap().config, Some(PathBuf::from("x.toml")));
    }
}

// CLI-06 CLI-90 CLI-91
#[test]
fn comma_lists_split_and_repeatable_flags_do_not() {
    let arguments = search(&[
        "q",
        "--path-glob",
        "a,b",
        "--path-glob",
        "c",
        "--tag-any",
        "x,y",
        "--tag-any",
        "z",
    ]);
    assert_eq!(arguments.path_glob, ["a,b", "c"]);
    assert_eq!(arguments.tag_any, ["x", "y", "z"]);
}

// CLI-94
#[test]
fn a_field_splits_at_its_first_equals_sign() {
    let arguments = search(&["q", "--field", "status=a=b"]);
    assert_eq!(arguments.field, [("status".to_owned(), "a=b".to_owned())]);
    assert!(parse(&["search", "q", "--field", "status"]).is_err());
}

// CLI-07
#[test]
fn a_valued_switch_takes_its_value_with_or_without_an_equals_sign() {
    assert_eq!(search(&["q", "--mmr", "true"]).mmr, Some(true));
    assert_eq!(search(&["q", "--mmr=false"]).mmr, Some(false));
    assert!(parse(&["search", "q", "--mmr"]).is_err());
}

// CLI-106
#[test]
fn a_confidence_ratio_that_is_no_ratio_is_refused() {
    for ratio in ["-1", "NaN", "inf", "x"] {
        assert!(parse(&["search", "q", "--min-confidence-ratio", ratio]).is_err(), "{ratio}");
    }
    assert_eq!(search(&["q", "--min-confidence-ratio", "0"]).min_confidence_ratio, Some(0.0));
}

// CLI-85 CLI-86 CLI-87 CLI-88 CLI-89 CLI-92 CLI-93 CLI-95 CLI-96 CLI-97 CLI-98 CLI-99
// CLI-100 CLI-101 CLI-102 CLI-103
#[test]
fn every_flag_of_a_search_arrives_and_has_its_default() {
    let plain = search(&["q"]);
    assert_eq!((plain.query.as_str(), plain.limit), ("q", 5));
    assert!(matches!(plain.format, Format::Json) && !plain.include_low_quality);
    assert_eq!((plain.mmr, plain.parent_retriever, plain.min_quality), (None, None, None));
    assert!(plain.reranker.reranker.is_none());
    let line = "q --limit 7 --format text --category c --topic t --tag-all a,b --date-from 1 \
                --date-to 2 --field k=v --field k=w --field-not k=x --min-quality 0.5 \
                --include-low-quality --min-confidence-ratio 2 --mmr true --mmr-lambda 0.5 \
                --mmr-same-doc-penalty 0.25 --parent-retriever false --reranker none";
    let given = search(&line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(given.limit, 7);
    assert!(matches!(given.format, Format::Text) && given.include_low_quality);
    let texts = [given.category, given.topic, given.date_from, given.date_to];
    assert_eq!(texts.map(Option::unwrap), ["c", "t", "1", "2"]);
    assert_eq!(given.tag_all, ["a", "b"]);
    let pair = |value: &str| ("k".to_owned(), value.to_owned());
    assert_eq!(given.field, [pair("v"), pair("w")]);
    assert_eq!(given.field_not, [pair("x")]);
    let numbers = [
        given.min_quality,
        given.min_confidence_ratio,
        given.mmr_lambda,
        given.mmr_same_doc_penalty,
    ];
    assert_eq!(numbers, [Some(0.5), Some(2.0), Some(0.5), Some(0.25)]);
    assert_eq!((given.mmr, given.parent_retriever), (Some(true), Some(false)));
    assert!(given.reranker.reranker.is_some());
    assert!(parse(&["search"]).is_err());
}

// CLI-107
#[test]
fn a_query_that_starts_with_a_hyphen_follows_two_hyphens() {
    assert_eq!(search(&["--", "-async rust"]).query, "-async rust");
    assert!(parse(&["search", "-async rust"]).is_err());
}

/// Every command below another one, with the words that lead to it.
fn commands() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, words: &str, all: &mut Vec<(String, clap::Command)>) {
        all.push((words.to_owned(), command.clone()));
        for below in command.get_subcommands() {
            walk(below, &format!("{words} {}", below.get_name()), all);
        }
    }
    let mut program = Cli::command();
    program.build();
    let mut all = Vec::new();
    walk(&program, "groove", &mut all);
    all
}

/// The pages for users.
fn pages() -> Vec<(PathBuf, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("groove.toml.example")];
    let guide = std::fs::read_dir(root.join("docs/guide")).unwrap();
    files.extend(guide.map(|entry| entry.unwrap().path()));
    files.into_iter().map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect()
}

/// The long flags in a text.
fn flags_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("--").filter_map(|(start, _)| {
        let before = text[..start].chars().next_back();
        let rest = &text[start + 2..];
        let is_word = |character: char| character.is_ascii_lowercase() || character == '-';
        let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let starts =
            before.is_none_or(|character| !character.is_alphanumeric() && character != '-');
        let name = &rest[..end];
        (starts && name.starts_with(|first: char| first.is_ascii_lowercase())).then_some(name)
    })
}

// CLI-02
#[test]
fn every_command_of_the_reference_is_there() {
    let names: Vec<String> = commands().into_iter().map(|(words, _)| words).collect();
    for name in [
        "index",
        "serve",
        "search",
        "graph",
        "status",
        "eval",
        "tune",
        "service",
        "service install",
        "service uninstall",
        "service status",
        "service list",
        "service tray-install",
        "service tray-uninstall",
    ] {
        assert!(names.contains(&format!("groove {name}")), "{name}");
    }
    for name in ["service start", "service stop"] {
        assert!(!names.contains(&format!("groove {name}")), "{name}");
    }
}

// CLI-03 CLI-08
#[test]
fn every_flag_explains_itself_and_stands_in_the_guide() {
    let guide = pages();
    for (words, command) in commands() {
        assert!(words == "groove" || command.get_about().is_some(), "{words}");
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "{words} {id} has no help");
            let Some(flag) = argument.get_long() else { continue };
            if matches!(flag, "help" | "version") {
                continue;
            }
            let documented = guide.iter().any(|(_, text)| flags_in(text).any(|word| word == flag));
            assert!(documented, "{words} --{flag} stands in no page of docs/guide");
        }
    }
}

// CLI-08
#[test]
fn no_page_names_a_flag_that_there_is_not() {
    let of_others = ["path", "locked", "bench"];
    let known: Vec<String> = commands()
        .iter()
        .flat_map(|(_, command)| command.get_arguments().filter_map(|flag| flag.get_long()))
        .map(str::to_owned)
        .collect();
    for (file, text) in pages() {
        for flag in flags_in(&text) {
            let is_known = known.iter().any(|name| name == flag) || of_others.contains(&flag);
            assert!(is_known, "{} names --{flag}", file.display());
        }
    }
}

// CLI-06 CLI-218
#[test]
fn lists_split_on_commas_where_the_guide_says_so_and_nowhere_else() {
    let comma_lists = ["tag-any", "tag-all", "exclude-paths", "k"];
    for (words, command) in commands() {
        for argument in command.get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            assert!(!flag.contains('_') && flag.to_ascii_lowercase() == flag, "{words} --{flag}");
            let splits = argument.get_value_delimiter() == Some(',');
            assert_eq!(splits, comma_lists.contains(&flag), "{words} --{flag}");
        }
    }
}

// CLI-232
#[test]
fn only_help_and_version_have_a_short_form() {
    for (words, command) in commands() {
        for argument in command.get_arguments() {
            let short = argument.get_short();
            assert!(short.is_none() || matches!(short, Some('h' | 'V')), "{words} -{short:?}");
        }
    }
}

// CLI-33 CLI-200 CLI-201 CLI-202 CLI-203 CLI-204
#[test]
fn every_command_takes_the_flags_of_its_table() {
    let flags = |name: &str| {
        let words = format!("groove {name}");
        let (_, command) = commands().into_iter().find(|(known, _)| *known == words).unwrap();
        let flags = command.get_arguments().filter_map(|flag| flag.get_long().map(str::to_owned));
        flags.filter(|flag| !matches!(&**flag, "config" | "help" | "version")).collect::<Vec<_>>()
    };
    for (command, expected) in [
        ("index", "kb-path force model quiet progress"),
        ("status", "kb-path quality"),
        ("service install", "kb-path service-name bind i-know no-auto-start force with-tray"),
        ("service uninstall", "service-name purge yes"),
        ("service status", "service-name"),
        ("service list", ""),
        ("service tray-install", "service-name force"),
        ("service tray-uninstall", "service-name"),
    ] {
        assert_eq!(flags(command).join(" "), expected, "{command}");
    }
}

// CLI-180 CLI-181 CLI-182 CLI-183 CLI-184 CLI-185 CLI-186 CLI-187 CLI-188 CLI-195
#[test]
fn the_flags_of_measuring_are_understood() {
    let line = "eval --kb-path kb --config c.toml --golden g.yml --k 1,5 --k 20 --limit 7 \
                --format json --no-history --no-diff --no-color --fail-on-regression --model bge-m3 \
                --reranker none --mmr true --mmr-lambda 0.5 --mmr-same-doc-penalty=0.1 \
                --parent-retriever=false";
    assert!(parse(&line.split_whitespace().collect::<Vec<_>>()).is_ok());
    let line = "tune --kb-path kb --config c.toml --golden g.yml --k 5,10 --limit 7 --model bge-m3 \
                --no-color --format text";
    assert!(parse(&line.split_whitespace().collect::<Vec<_>>()).is_ok());
    assert!(parse(&["eval"]).is_ok() && parse(&["tune"]).is_ok());
}

// CLI-65 CLI-66 CLI-67 CLI-68 CLI-69 CLI-70 CLI-71 CLI-72
#[test]
fn the_flags_of_serving_are_understood() {
    let served = |line: &str| {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        match parse(&arguments).unwrap().command {
            Command::Serve(arguments) => arguments,
            other => panic!("{other:?}"),
        }
    };
    let plain = served("serve");
    assert_eq!((plain.rerank_by_default, plain.debounce_ms), (None, None));
    assert!(!plain.no_watch && plain.http.transport.is_none() && plain.http.port.is_none());
    let given = served(
        "serve --transport http --port 0 --i-know --rerank-by-default=false --no-watch \
         --debounce-ms 9 --reranker none",
    );
    assert_eq!((given.rerank_by_default, given.debounce_ms), (Some(false), Some(9)));
    assert!(given.http.i_know && given.no_watch && given.http.port == Some(0));
    assert!(served("serve --bind [::1]:80").http.bind.is_some());
}

// CLI-230 CLI-231 CLI-234
#[test]
fn the_crate_is_not_published_and_the_guide_says_what_is_promised() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let manifest: toml::Table =
        std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    assert_eq!(manifest["workspace"]["package"]["publish"].as_bool(), Some(false));
    assert_eq!(manifest["package"]["publish"]["workspace"].as_bool(), Some(true));
    let guide = std::fs::read_to_string(root.join("docs/guide/commands.md")).unwrap();
    for promise in ["Semantic Versioning", "deprecated", "before 1.0.0", "is not published"] {
        assert!(guide.contains(promise), "{promise}");
    }
}

// CLI-233
#[test]
fn every_format_of_every_command_is_sorted_into_stable_or_not() {
    let guide = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/guide/commands.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let (_, section) = guide.split_once("## What is stable").unwrap();
    for (words, command) in commands() {
        let formats = command.get_arguments().filter(|flag| flag.get_long() == Some("format"));
        for format in formats {
            let named = format!("`{words}`");
            let row = section.lines().find(|line| line.starts_with('|') && line.contains(&named));
            let row = row.unwrap_or_else(|| panic!("{words} has formats that are not sorted"));
            for value in format.get_possible_values() {
                let value = value.get_name();
                assert!(row.contains(&format!("`{value}`")), "{words} --format {value}");
            }
        }
    }
}
