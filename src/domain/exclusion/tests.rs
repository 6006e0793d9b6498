//! The rules of exclusion, form by form.

use proptest::prelude::*;

use super::*;

fn ignoring(text: impl AsRef<[u8]>) -> ExclusionRules {
    let (rules, remarks) = ExclusionRules::default().with_ignore_file(text.as_ref());
    assert_eq!(remarks, [], "{:?}", String::from_utf8_lossy(text.as_ref()));
    rules
}

/// Paths that end in a slash are directories.
fn excludes(rules: &ExclusionRules, path: &str) -> bool {
    match path.strip_suffix('/') {
        Some(directory) => rules.excludes(directory, EntryKind::Directory),
        None => rules.excludes(path, EntryKind::File),
    }
}

#[track_caller]
fn check(ignore_file: &str, out: &[&str], stays: &[&str]) {
    let rules = ignoring(ignore_file);
    for path in out {
        assert!(excludes(&rules, path), "{ignore_file:?} should exclude {path:?}");
    }
    for path in stays {
        assert!(!excludes(&rules, path), "{ignore_file:?} should leave {path:?}");
    }
}

// IDX-27
#[test]
fn version_control_and_packages_are_excluded_whatever_is_configured() {
    let rules = ExclusionRules::new::<&str>(&[]);
    for name in [".git", ".GIT", ".svn", "node_modules", "Node_Modules"] {
        assert!(rules.excludes_dir(name) && rules.excludes_dir(&format!("a/{name}")), "{name}");
        assert!(rules.excludes(&format!("{name}/deep/x.md"), EntryKind::File), "{name}");
        assert!(!rules.excludes_file(name), "{name} as a file");
    }
    assert!(!rules.excludes_dir(".github") && !rules.excludes_dir("target"));
}

// IDX-28 CFG-45c
#[test]
fn a_given_list_of_directories_replaces_the_default_one() {
    let defaults = ExclusionRules::new(&DEFAULT_EXCLUDE_DIRS);
    let expected = [".obsidian", ".git", "node_modules", "target", ".vscode", ".idea"];
    assert_eq!(DEFAULT_EXCLUDE_DIRS, expected);
    for name in expected {
        assert!(defaults.excludes_dir(&format!("a/{name}")), "{name}");
    }
    let given = ExclusionRules::new(&["build"]);
    assert!(given.excludes_dir("a/build") && !given.excludes_dir("a/target"));
    assert!(!given.excludes_dir("rebuild") && !given.excludes_dir("build-2"));
}

// IDX-29
#[test]
fn directory_names_are_compared_by_their_lowercase_with_one_sigma() {
    let same = [("résumé", "RÉSUMÉ"), ("οσ", "ΟΣ"), ("ΟΣ", "ος"), ("build", "Build"), ("ä", "Ä")];
    for (entry, name) in same {
        assert!(ExclusionRules::new(&[entry]).excludes_dir(name), "{entry} {name}");
        assert!(ExclusionRules::new(&[name]).excludes_dir(entry), "{name} {entry}");
    }
    for (entry, name) in [("straße", "STRASSE"), ("re\u{301}", "r\u{E9}"), ("ı", "I")] {
        assert!(!ExclusionRules::new(&[entry]).excludes_dir(name), "{entry} {name}");
    }
}

// IDX-30
#[test]
fn a_configured_name_stands_for_a_directory_and_all_below_but_for_no_file() {
    let rules = ExclusionRules::new(&["archive.md"]);
    assert!(rules.excludes("a/archive.md", EntryKind::Directory));
    assert!(rules.excludes("a/archive.md/b/c.md", EntryKind::File));
    assert!(!rules.excludes("a/archive.md", EntryKind::File));
}

// IDX-31
#[test]
fn a_pattern_without_a_slash_matches_at_any_depth() {
    check("name", &["name", "name/", "a/b/name", "name/x.md"], &["names", "a/my-name"]);
    check("*.tmp.md", &["x.tmp.md", "a/b/.tmp.md"], &["x.md", "x.tmp.mdx"]);
}

// IDX-31
#[test]
fn a_pattern_with_a_slash_at_its_start_or_inside_counts_from_the_root() {
    check("a/b.md", &["a/b.md"], &["x/a/b.md", "b.md"]);
    check("/drafts", &["drafts/", "drafts", "drafts/x.md"], &["a/drafts", "a/drafts/x.md"]);
    check("/*.md", &["x.md"], &["a/x.md"]);
}

// IDX-31
#[test]
fn a_slash_at_the_end_means_directories_and_what_is_below() {
    check("x/", &["x/", "a/x/", "a/x/deep/y.md"], &["x", "a/x"]);
    check("a/x/", &["a/x/"], &["b/a/x/", "a/x"]);
}

// IDX-31
#[test]
fn wildcards_stay_within_a_segment() {
    check("a/*.md", &["a/x.md", "a/.md"], &["a/b/x.md", "a.md"]);
    check("a/*/c.md", &["a/b/c.md"], &["a/c.md", "a/b/b/c.md"]);
    check("a?b", &["axb", "a日b"], &["ab", "axxb"]);
    check("a/?", &["a/b"], &["a/bb"]);
    check("x[a-c].md", &["xa.md", "xB.md"], &["xd.md", "x.md"]);
    check("x[!a-c].md", &["xd.md"], &["xa.md", "xB.md", "a/x/.md"]);
    check("x[^a-c].md", &["xd.md"], &["xc.md"]);
    check("[]a]", &["]", "a"], &["b"]);
    check("[a-]", &["-", "a"], &["b"]);
    check("[[:digit:]]*", &["1.md"], &["a.md", ":"]);
    check("[あ-ん]*.md", &["ひらがな.md"], &["漢字.md", "カタカナ.md"]);
    check("*a*b*c", &["xaybzc", "abc", "aabbcc"], &["acb", "abcd"]);
}

// IDX-31
#[test]
fn two_stars_span_directories() {
    check("**/x", &["x", "a/x", "a/b/x/"], &["ax"]);
    check("**/a/x", &["a/x", "b/c/a/x"], &["a/b/x"]);
    check("x/**", &["x/a", "x/a/b.md", "x/a/"], &["x", "x/", "a/x/b"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb", "x/a/b"]);
    check("a/**/b/**/c", &["a/b/c", "a/1/b/2/b/c", "a/b/1/2/c"], &["a/c", "a/1/c", "a/b"]);
    check("**", &["a", "a/b/"], &[]);
}

// IDX-31
#[test]
fn an_exclamation_mark_takes_back_what_an_earlier_line_excluded() {
    check("notes/*.md\n!notes/keep.md", &["notes/a.md"], &["notes/keep.md"]);
    check("!keep.md\n*.md", &["keep.md"], &[]);
    check("*.md\n!k*.md\nkeep.md", &["a.md", "keep.md"], &["kind.md"]);
}

// IDX-31
#[test]
fn comments_and_blank_lines_are_no_patterns() {
    let rules = ignoring("# a comment\n\n   \n!\n/\na.md\n#b.md");
    assert_eq!(rules.pattern_count(), 1);
    assert!(rules.excludes_file("a.md") && !rules.excludes_file("#b.md"));
}

// IDX-31
#[test]
fn a_backslash_takes_the_next_character_as_it_is() {
    check("\\#a\n\\!b\nc\\ ", &["#a", "!b", "c "], &["a", "b", "c"]);
    check("\\*.md", &["*.md"], &["x.md"]);
    check("a\\\\b", &["a\\b"], &["ab", "a/b"]);
    check("\\{a,b\\}", &["{a,b}"], &["a", "b"]);
}

// IDX-31
#[test]
fn patterns_are_compared_without_case() {
    check("Drafts/", &["DRAFTS/", "drafts/x.md"], &[]);
    check("RÉSUMÉ*.md", &["résumé-2.md"], &[]);
    check("οσ.md", &["ΟΣ.MD", "ος.md"], &[]);
    check("[А-Я].md", &["ж.md", "Ж.md"], &["z.md"]);
    check("[a-z].md", &["Q.md"], &["é.md"]);
}

// IDX-32
#[test]
fn nothing_comes_back_below_an_excluded_directory() {
    check("drafts/\n!drafts/keep.md\n!keep.md", &["drafts/keep.md", "a/drafts/keep.md"], &[]);
    check("a\n!a/b/\n!a/b/c.md", &["a/b/", "a/b/c.md"], &[]);
    check("a/*\n!a/b/", &["a/x.md"], &["a/b/", "a/b/x.md"]);
}

// IDX-32
#[test]
fn a_re_including_line_does_not_undo_the_other_layers() {
    let (rules, _) = ExclusionRules::new(&["build"])
        .with_ignore_file(b"!build/\n!.git/\n!build/**\n!.git/**\n!x.md");
    for path in ["build/x.md", "a/build/b/x.md", ".git/x.md"] {
        assert!(excludes(&rules, path), "{path}");
    }
}

// IDX-32
#[test]
fn spaces_at_the_end_are_dropped_and_spaces_at_the_start_are_kept() {
    check("a.md  \n b.md", &["a.md", " b.md"], &["a.md  ", "b.md"]);
    check("c\\   ", &["c "], &["c", "c   "]);
    check("d\\\\ ", &["d\\"], &["d\\ "]);
}

// IDX-32
#[test]
fn line_ends_of_windows_and_a_byte_order_mark_are_passed_over() {
    check("\u{FEFF}a.md\r\nb/\r\n\r\n", &["a.md", "b/"], &["b"]);
    assert_eq!(ignoring("\u{FEFF}# c\r\n\r\n").pattern_count(), 0);
}

// IDX-32
#[test]
fn a_line_that_is_not_utf_8_leaves_the_others_in_force() {
    let rules = ignoring(b"a.md\n\xFF\xFE.md\nb.md");
    assert!(rules.excludes_file("a.md") && rules.excludes_file("b.md"));
    assert!(!rules.excludes_file("c.md"));
}

// IDX-33
#[test]
fn the_root_is_never_excluded() {
    let rules = ignoring("*\n/\n/**\n**");
    assert!(!rules.excludes_dir("") && !rules.excludes("", EntryKind::Directory));
    assert!(rules.excludes("a.md", EntryKind::File));
}

// IDX-34
#[test]
fn the_first_thousand_patterns_apply_and_the_rest_is_counted() {
    let numbers: Vec<String> = (1..=1_003).map(|number| format!("{number}.md")).collect();
    let text = format!("# not counted\n\n{}\n", numbers.join("\n"));
    let (rules, remarks) = ExclusionRules::default().with_ignore_file(text.as_bytes());
    assert_eq!(rules.pattern_count(), 1_000);
    assert_eq!(remarks, [IgnoreFileRemark::TooManyPatterns { dropped: 3 }]);
    assert!(rules.excludes_file("1000.md") && !rules.excludes_file("1001.md"));
    assert!(remarks[0].to_string().contains("3 were dropped"));
    let exactly = text.lines().take(1_002).collect::<Vec<_>>().join("\n");
    assert_eq!(ignoring(exactly).pattern_count(), 1_000);
}

// IDX-34
#[test]
fn a_line_that_is_no_pattern_is_named_and_the_rest_applies() {
    let wrong = [
        ("x[a", InvalidPattern::UnclosedClass),
        ("[", InvalidPattern::UnclosedClass),
        ("[a-", InvalidPattern::UnclosedClass),
        ("[z-a].md", InvalidPattern::ReversedRange { start: 'z', end: 'a' }),
        ("[[:word:]]", InvalidPattern::UnknownClass),
        ("a\\", InvalidPattern::DanglingEscape),
    ];
    for (line, reason) in wrong {
        let text = format!("# one\na.md\n{line}\nb.md\n");
        let (rules, remarks) = ExclusionRules::default().with_ignore_file(text.as_bytes());
        assert_eq!(remarks, [IgnoreFileRemark::InvalidLine { line: 3, reason }], "{line}");
        assert!(remarks[0].to_string().contains("line 3"));
        assert!(rules.excludes_file("a.md") && rules.excludes_file("b.md"));
        assert_eq!(rules.pattern_count(), 2);
    }
}

#[test]
fn a_brace_stands_for_itself_and_is_remarked_upon() {
    let (rules, remarks) = ExclusionRules::default().with_ignore_file(b"a.md\n*.{md,txt}\n");
    assert_eq!(remarks, [IgnoreFileRemark::LiteralBrace { line: 2 }]);
    assert!(rules.excludes_file("x.{md,txt}") && !rules.excludes_file("x.txt"));
}

#[test]
fn another_ignore_file_takes_the_place_of_the_first() {
    let (rules, _) = ignoring("a.md").with_ignore_file(b"b.md");
    assert!(rules.excludes_file("b.md") && !rules.excludes_file("a.md"));
}

fn a_path() -> impl Strategy<Value = String> {
    prop::collection::vec("[abAΣ.]{1,3}|build|node_modules", 1..5)
        .prop_map(|segments| segments.join("/"))
}

fn an_ignore_file() -> impl Strategy<Value = String> {
    prop::collection::vec("!?/?[ab*?.]{1,3}(/[ab*]{1,2}){0,2}/?|[ -~]{0,6}", 0..6)
        .prop_map(|lines| lines.join("\n"))
}

fn a_kind() -> impl Strategy<Value = EntryKind> {
    prop_oneof![Just(EntryKind::Directory), Just(EntryKind::File)]
}

proptest! {
    // IDX-32
    #[test]
    fn a_further_layer_never_brings_anything_back(
        path in a_path(), kind in a_kind(), ignore_file in an_ignore_file(),
    ) {
        let built_in = ExclusionRules::new::<&str>(&[]);
        let configured = ExclusionRules::new(&["build", "a"]);
        let (all, _) = configured.clone().with_ignore_file(ignore_file.as_bytes());
        prop_assert!(!built_in.excludes(&path, kind) || configured.excludes(&path, kind));
        prop_assert!(!configured.excludes(&path, kind) || all.excludes(&path, kind));
    }

    // IDX-32
    #[test]
    fn whatever_lies_below_an_excluded_directory_is_excluded(
        path in a_path(), below in a_path(), kind in a_kind(), ignore_file in an_ignore_file(),
    ) {
        let (rules, _) = ExclusionRules::new(&["build"]).with_ignore_file(ignore_file.as_bytes());
        if rules.excludes(&path, EntryKind::Directory) {
            let inside = format!("{path}/{below}");
            prop_assert!(rules.excludes(&inside, kind));
        }
    }

    // IDX-31
    #[test]
    fn case_makes_no_difference(path in a_path(), kind in a_kind(), file in an_ignore_file()) {
        let (rules, _) = ExclusionRules::new(&["Build"]).with_ignore_file(file.as_bytes());
        prop_assert_eq!(rules.excludes(&path, kind), rules.excludes(&path.to_uppercase(), kind));
        prop_assert_eq!(rules.excludes(&path, kind), rules.excludes(&path.to_lowercase(), kind));
    }

    #[test]
    fn any_bytes_make_rules(bytes in prop::collection::vec(any::<u8>(), 0..200), path in a_path()) {
        let (rules, _) = ExclusionRules::default().with_ignore_file(&bytes);
        prop_assert!(!rules.excludes_dir(""));
        let _verdict = rules.excludes(&path, EntryKind::File);
    }

    #[test]
    fn a_name_of_many_stars_is_decided_at_once(tail in "[ab]{0,3}") {
        let rules = ignoring("*a".repeat(40) + "*b");
        let path = "a".repeat(300) + &tail;
        prop_assert_eq!(rules.excludes_file(&path), tail.ends_with('b'));
    }
}

#[test]
fn the_rule_that_excludes_a_path_is_named_with_the_entry_it_speaks_of() {
    let rules = ExclusionRules::new(&["build"]);
    let (rules, _) = rules.with_ignore_file(b"# drafts\n\ndrafts/\n*.tmp.md\n!keep.tmp.md\n");
    let why = |path, kind| rules.why(path, kind).map(|found| (found.entry, found.rule));
    let file = EntryKind::File;
    let line = |line| ExclusionRule::IgnoreFile { line };
    assert_eq!(why("a/.GIT/x.md", file), Some(("a/.GIT", ExclusionRule::Always)));
    assert_eq!(why("a/Build/x.md", file), Some(("a/Build", ExclusionRule::Configured)));
    assert_eq!(why("a/drafts/keep.tmp.md", file), Some(("a/drafts", line(3))));
    assert_eq!(why("a/x.tmp.md", file), Some(("a/x.tmp.md", line(4))));
    assert_eq!(why("drafts", EntryKind::Directory), Some(("drafts", line(3))));
    for kept in ["a/keep.tmp.md", "drafts", "build", "x.md"] {
        assert_eq!(why(kept, file), None, "{kept}");
    }
}
