use proptest::prelude::*;

use super::*;

fn compile(raw: &str) -> CompiledQuery {
    CompiledQuery::compile(raw).unwrap()
}

fn texts(phrases: &[Phrase]) -> Vec<&str> {
    phrases.iter().map(Phrase::as_str).collect()
}

fn include(raw: &str) -> Vec<String> {
    compile(raw).include().iter().map(|phrase| phrase.as_str().to_owned()).collect()
}

fn exclude(raw: &str) -> Vec<String> {
    compile(raw).exclude().iter().map(|phrase| phrase.as_str().to_owned()).collect()
}

/// The positive text that equals the query.
const SAME: Option<&str> = None;

type Row = (&'static str, &'static [&'static str], &'static [&'static str], Option<&'static str>);

const TABLE: &[Row] = &[
    ("tokio spawn", &["tokio", "spawn"], &[], SAME),
    (
        "再ランキングの評価について",
        &["再ランキング", "ランキング", "の評価", "について"],
        &[],
        SAME,
    ),
    ("システム化", &["システム化", "システム"], &[], SAME),
    ("の評価は", &["の評価は", "の評価"], &[], SAME),
    ("ＡＢＣ検索", &["ＡＢＣ検索", "ＡＢＣ"], &[], SAME),
    ("東京〇丁目", &["東京〇丁目", "東京〇"], &[], SAME),
    ("AI について", &["について"], &[], SAME),
    ("ML pipelines", &["pipelines"], &[], SAME),
    ("\"Foundry Local\" の設定", &["Foundry Local", "の設定"], &[], SAME),
    ("\"ab\" テスト", &["テスト"], &[], SAME),
    ("\"say \"\"hi\"\"\"", &["say \"hi\""], &[], SAME),
    ("abc \"def", &["abc", "def"], &[], SAME),
    ("rust、tokio", &["rust", "tokio"], &[], SAME),
    ("C# の型推論", &["の型推論", "型推論"], &[], SAME),
    ("AI と ML", &["AI と ML"], &[], SAME),
    ("v1.2.3", &["v1.2.3"], &[], SAME),
    ("ab", &[], &[], SAME),
    ("---", &["---"], &[], SAME),
    ("rust -async", &["rust"], &["async"], Some("rust")),
    ("-async rust", &["rust"], &["async"], Some("rust")),
    ("rust -\"exact phrase\" tokio", &["rust", "tokio"], &["exact phrase"], Some("rust tokio")),
    ("-再ランキング 評価手法", &["評価手法"], &["再ランキング", "ランキング"], Some("評価手法")),
    ("xy -abc z", &[], &["abc"], Some("xy z")),
    ("foo -ab", &["foo"], &[], Some("foo")),
    ("foo -\"bar\"-baz", &["foo", "-baz"], &["bar"], Some("foo -baz")),
    ("\"-foo\" bar", &["-foo", "bar"], &[], SAME),
    ("foo,-bar", &["foo", "-bar"], &[], SAME),
    ("--foo bar", &["--foo", "bar"], &[], SAME),
];

// SRCH-64 SRCH-40 SRCH-51 SRCH-53 SRCH-58 SRCH-59
#[test]
fn every_row_of_the_table_holds() {
    for &(raw, include, exclude, positive_text) in TABLE {
        let query = compile(raw);
        assert_eq!(texts(query.include()), include, "include of {raw:?}");
        assert_eq!(texts(query.exclude()), exclude, "exclude of {raw:?}");
        assert_eq!(query.positive_text(), positive_text.unwrap_or(raw), "{raw:?}");
        let fallback = matches!(raw, "AI と ML" | "v1.2.3");
        assert_eq!(query.used_fallback(), fallback, "fallback of {raw:?}");
    }
    assert_eq!(CompiledQuery::compile("-abc"), Err(QueryError::ExclusionOnly));
}

// SRCH-10 SRCH-181
#[test]
fn a_query_over_its_limit_is_refused_with_size_and_limit() {
    assert!(CompiledQuery::compile(&"a".repeat(1024)).is_ok());
    let error = CompiledQuery::compile(&"語".repeat(342)).unwrap_err();
    assert_eq!(error, QueryError::TooLarge { size_bytes: 1026, limit_bytes: 1024 });
    let text = error.to_string();
    for part in ["query", "1026", "1024"] {
        assert!(text.contains(part), "{text}");
    }
}

// SRCH-28
#[test]
fn the_size_is_checked_before_the_exclusions() {
    let raw = format!("-{}", "a".repeat(1024));
    assert!(matches!(CompiledQuery::compile(&raw), Err(QueryError::TooLarge { .. })));
}

// SRCH-12
#[test]
fn a_blank_query_is_accepted_and_looks_for_no_phrase() {
    for raw in ["", " ", "\t\u{3000}\n"] {
        let query = compile(raw);
        assert_eq!(query.positive_text(), raw);
        assert!(query.include().is_empty());
        assert!(!query.used_fallback());
    }
}

// SRCH-41 SRCH-54
#[test]
fn a_quoted_region_is_one_phrase_word_for_word() {
    assert_eq!(include("\" a.b -c \""), [" a.b -c "]);
    assert_eq!(include("x\"one two\"y"), ["one two"]);
    assert_eq!(include("\"one\"\"two\""), ["one\"two"]);
    assert_eq!(include("\"one\" \"two\""), ["one", "two"]);
    assert_eq!(include("\"one\0two\" three"), ["three"]);
    assert_eq!(include("\"\" three"), ["three"]);
}

// SRCH-42
#[test]
fn a_quote_that_never_closes_is_an_ordinary_character() {
    assert_eq!(include("\"one two\" abc \"def -ghi"), ["one two", "abc", "def", "-ghi"]);
    let query = compile("abc \"def -ghi");
    assert_eq!(query.positive_text(), "abc \"def -ghi");
    assert!(query.exclude().is_empty());
    // What was excluded before the quote stays so.
    assert_eq!(exclude("-abc \"def"), ["abc"]);
    // The last quote belongs to a doubled one.
    assert_eq!(include("\"abc\"\""), ["abc"]);
}

// SRCH-43
#[test]
fn a_hyphen_excludes_only_at_the_head_of_a_group() {
    for raw in ["a\u{3000}-bcd", "a\t-bcd", "a\n-bcd", "a -_cd", "a -再ランキング", "a -\"b\""]
    {
        assert_ne!(compile(raw).positive_text(), raw, "{raw:?}");
    }
    for raw in ["a -.bcd", "a -、bcd", "a (-bcd)", "a -#bcd"] {
        assert_eq!(compile(raw).positive_text(), raw, "{raw:?}");
    }
}

// SRCH-44
#[test]
fn an_exclusion_runs_to_white_space_or_to_its_closing_quote() {
    assert_eq!(exclude("rust -foo.bar\u{3000}baz"), ["foo", "bar"]);
    assert_eq!(exclude("rust -\"say \"\"hi\"\" now\""), ["say \"hi\" now"]);
    assert_eq!(exclude("rust -foo\"bar"), ["foo", "bar"]);
    let unclosed = compile("rust -\"foo bar");
    assert!(unclosed.exclude().is_empty());
    assert_eq!(texts(unclosed.include()), ["rust", "foo", "bar"]);
}

// SRCH-45
#[test]
fn what_only_looks_like_an_exclusion_is_searched_for() {
    for raw in ["sqlite-vec", "foo,-bar", "\"foo\"-bar", "--foo", "- foo", "---", "foo -"] {
        let query = compile(raw);
        assert_eq!(query.positive_text(), raw);
        assert!(query.exclude().is_empty(), "{raw:?}");
    }
    assert_eq!(include("\"-foo\""), ["-foo"]);
    assert_eq!(include("sqlite-vec"), ["sqlite-vec"]);
}

// SRCH-46
#[test]
fn taking_an_exclusion_out_touches_no_other_white_space() {
    for (raw, expected) in [
        ("  rust  -abc \u{3000} tokio ", "  rust  tokio "),
        ("rust \u{3000}-abc", "rust"),
        ("rust -abc ", "rust "),
        ("rust -abc -def", "rust"),
        ("-abc  -def  rust", "rust"),
        (" -abc rust", " rust"),
        ("foo -\"bar\".baz", "foo .baz"),
        ("foo -\"\"", "foo"),
    ] {
        assert_eq!(compile(raw).positive_text(), expected, "{raw:?}");
    }
}

// SRCH-47
#[test]
fn a_query_that_only_excludes_is_refused_with_advice() {
    for raw in ["-abc", " -abc ", "-ab", "-\"a b c\"", "-abc -def", "\u{3000}-abc"] {
        assert_eq!(CompiledQuery::compile(raw), Err(QueryError::ExclusionOnly), "{raw:?}");
    }
    // Too short for a phrase, but not blank.
    assert!(CompiledQuery::compile("x -abc").is_ok());
    let text = QueryError::ExclusionOnly.to_string();
    assert!(text.contains("add a term") && text.contains("quotes"), "{text}");
}

// SRCH-50
#[test]
fn each_script_is_a_class_of_its_own() {
    // Kanji with its iteration and closing marks; the extensions; compatibility forms.
    assert_eq!(include("々々〆"), ["々々〆"]);
    assert_eq!(include("\u{3400}\u{F900}\u{2F800}"), ["\u{3400}\u{F900}\u{2F800}"]);
    // The prolonged sound mark and the middle dot are Katakana, as are half-width forms.
    assert_eq!(include("サーバ・ﾃｽﾄ"), ["サーバ・ﾃｽﾄ"]);
    // Kanji of the second plane, numbers of any category, letters of any script.
    assert_eq!(include("a\u{20000}Ⅷ²é"), ["a\u{20000}Ⅷ²é"]);
    assert_eq!(include("snake_case-name"), ["snake_case-name"]);
    // Marks that are not alphabetic separate.
    assert_eq!(include("cafe\u{301}teria"), ["cafe", "teria"]);
    assert_eq!(
        include("ひらがなカタカナ漢字漢字latin"),
        ["ひらがな", "カタカナ", "漢字漢字", "latin"]
    );
}

// SRCH-53
#[test]
fn short_runs_are_joined_within_their_group() {
    // Three joined, none of them long.
    assert_eq!(include("aあ亜"), ["aあ亜"]);
    // The rest goes to the phrase that was started last, before what it was.
    assert_eq!(include("再ランキングは"), ["再ランキングは", "再ランキング", "ランキング"]);
    assert_eq!(include("ひらがなabcの亜"), ["ひらがな", "abcの亜", "abc"]);
    // A long run ends a join, and is a phrase of its own.
    assert_eq!(include("再aランキング"), ["再aランキング", "ランキング"]);
    // With nothing before it, it is dropped, and nothing crosses a separator.
    assert_eq!(include("亜の tokio"), ["tokio"]);
    assert_eq!(include("亜.の.a tokio"), ["tokio"]);
}

// SRCH-52 SRCH-59
#[test]
fn three_characters_are_the_least_for_both_polarities() {
    assert_eq!(include("ab abc"), ["abc"]);
    assert_eq!(include("亜亜 亜亜亜"), ["亜亜亜"]);
    assert_eq!(exclude("foo -ab -\"cd\" -abc"), ["abc"]);
}

// SRCH-55
#[test]
fn repetitions_go_before_the_budget_is_applied() {
    assert_eq!(include("foo Foo foo"), ["foo", "Foo"]);
    let word = |n: usize| format!("w{n:02}");
    let mut words: Vec<String> = (0..40).map(word).collect();
    words.insert(0, word(5));
    let raw = format!("{} -{}", words.join(" "), words.join(" -"));
    let query = compile(&raw);
    for phrases in [query.include(), query.exclude()] {
        assert_eq!(phrases.len(), 32);
        assert_eq!(texts(&phrases[..3]), ["w05", "w00", "w01"]);
    }
    assert_eq!((query.include_over_budget(), query.exclude_over_budget()), (8, 8));
}

// SRCH-58
#[test]
fn without_a_phrase_each_stretch_between_exclusions_is_one() {
    let query = compile(" a b -xyz  c.d -uvw ef");
    assert_eq!(texts(query.include()), ["a b", "c.d"]);
    assert!(query.used_fallback());
    assert_eq!(include("\"ab\" c"), ["\"ab\" c"]);
    assert!(include("a\0b").is_empty());
    assert!(!compile("a\0b").used_fallback());
}

// SRCH-B04
#[test]
fn what_is_too_short_to_be_found_is_told_apart_by_polarity() {
    let query = compile("AI と ML pipelines \"ab\" AI -x -\"a\0b\" -async");
    assert_eq!(query.unsearchable(), ["AI", "と", "ML", "ab"]);
    assert_eq!(query.unexcludable(), ["x", "a\0b"]);
    assert!(compile("tokio spawn").unsearchable().is_empty());
}

// SRCH-B06
#[test]
fn an_exclusion_that_takes_more_than_was_typed_is_named() {
    let widened = |raw| {
        let query = compile(raw);
        texts(query.widened_exclusions()).join(" ")
    };
    assert_eq!(widened("評価手法 -再ランキング"), "ランキング");
    assert_eq!(widened("評価手法 -\"再ランキング\""), "");
    assert_eq!(widened("評価手法 -再ランキング -ランキング"), "");
    assert_eq!(widened("rust -foo.bar"), "foo bar");
    assert_eq!(widened("rust -async,"), "");
}

// SRCH-60 SRCH-61 SRCH-62
#[test]
fn phrases_become_quoted_strings_of_an_expression() {
    let query = compile("rust \"a \"\"b\"\"\" -async -\"x) OR (y\"");
    assert_eq!(
        full_text_expression(query.include(), query.exclude()).unwrap(),
        "(\"rust\" OR \"a \"\"b\"\"\") NOT (\"async\" OR \"x) OR (y\")"
    );
    let one = compile("rust -async");
    assert_eq!(
        full_text_expression(one.include(), one.exclude()).unwrap(),
        "(\"rust\") NOT (\"async\")"
    );
    assert_eq!(full_text_expression(one.include(), &[]).unwrap(), "\"rust\"");
    assert_eq!(full_text_expression(&[], one.exclude()), None);
}

/// Queries that are likely to hit the rules: quotes, hyphens, scripts, spaces.
fn queries() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \u{3000}\"\\-a-c.、亜-亞あ-うア-ウ〇０]{0,40}",
        "(-?\"?[a-cあ亜ア]{0,4}\"?[ -]?){0,8}",
    ]
}

/// Reads an FTS5 expression back: the strings in it, and what is outside.
fn read_back(expression: &str) -> (Vec<String>, String) {
    let (mut strings, mut outside) = (Vec::new(), String::new());
    let mut rest = expression;
    while let Some((before, after)) = rest.split_once('"') {
        outside.push_str(before);
        let (mut string, mut inside) = (String::new(), after);
        rest = loop {
            let (text, tail) = inside.split_once('"').unwrap();
            string.push_str(text);
            match tail.strip_prefix('"') {
                Some(tail) => {
                    string.push('"');
                    inside = tail;
                }
                None => break tail,
            }
        };
        strings.push(string);
        outside.push('s');
    }
    outside.push_str(rest);
    (strings, outside)
}

proptest! {
    // SRCH-57
    #[test]
    fn every_phrase_is_a_part_of_the_query(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw) {
            let folded = raw.replace("\"\"", "\"");
            for phrase in query.include().iter().chain(query.exclude()) {
                let text = phrase.as_str();
                prop_assert!(raw.contains(text) || folded.contains(text), "{text:?} of {raw:?}");
            }
        }
    }

    // SRCH-46
    #[test]
    fn positive_text_is_the_query_unless_something_is_excluded(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw) {
            let text = query.positive_text();
            let starts_a_group = |at: usize| {
                raw[..at].chars().next_back().is_none_or(char::is_whitespace)
            };
            if !raw.match_indices('-').any(|(at, _)| starts_a_group(at)) {
                prop_assert_eq!(text, &raw);
                prop_assert!(query.exclude().is_empty());
            }
            if text.len() == raw.len() {
                prop_assert!(query.exclude().is_empty());
            }
            let mut left = raw.chars();
            prop_assert!(text.chars().all(|wanted| left.any(|character| character == wanted)));
        }
    }

    // SRCH-52 SRCH-55
    #[test]
    fn phrases_are_distinct_long_enough_and_within_budget(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw) {
            for phrases in [query.include(), query.exclude()] {
                let distinct: std::collections::BTreeSet<_> = phrases.iter().collect();
                prop_assert_eq!(distinct.len(), phrases.len());
                prop_assert!(phrases.len() <= 32);
                prop_assert!(phrases.iter().all(|phrase| phrase.as_str().chars().count() >= 3));
            }
        }
    }

    // SRCH-58
    #[test]
    fn only_a_query_under_three_characters_has_nothing_to_look_for(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw)
            && query.positive_text() == raw
            && !raw.contains('\0')
        {
            prop_assert_eq!(query.include().is_empty(), raw.trim().chars().count() < 3);
        }
    }

    // SRCH-62
    #[test]
    fn no_text_gets_outside_the_strings_of_an_expression(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw)
            && let Some(expression) = full_text_expression(query.include(), query.exclude())
        {
            let (strings, outside) = read_back(&expression);
            let expected: Vec<&str> =
                texts(query.include()).into_iter().chain(texts(query.exclude())).collect();
            prop_assert_eq!(strings, expected);
            prop_assert!(outside.chars().all(|character| "s ORNT()".contains(character)));
        }
    }

    // SRCH-59 SRCH-B06
    #[test]
    fn a_widened_exclusion_is_one_that_is_applied(raw in queries()) {
        if let Ok(query) = CompiledQuery::compile(&raw) {
            let applied = query.exclude();
            prop_assert!(query.widened_exclusions().iter().all(|phrase| applied.contains(phrase)));
        }
    }
}
