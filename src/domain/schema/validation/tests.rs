use proptest::prelude::*;

use super::*;

/// What the rules of field `x` hold against a block.
fn of_block(rules: &str, block: &str) -> Vec<Kind> {
    let schema = Schema::parse(&format!("[fields.x]\n{rules}")).unwrap();
    let found = schema.violations(&format!("---\n{block}\n---\n"));
    assert!(found.iter().all(|violation| violation.field == "x"), "{found:?}");
    found.into_iter().map(|violation| violation.kind).collect()
}

fn pattern_mismatch(pattern: &str, actual: &str) -> Kind {
    Kind::PatternMismatch { pattern: pattern.into(), actual: actual.into() }
}

fn mismatch(expected: &'static str, actual: &'static str) -> Vec<Kind> {
    vec![Kind::TypeMismatch { expected, actual }]
}

// CFG-88a
#[test]
fn a_required_key_is_missing_without_a_value() {
    for block in ["", "y: 1", "x:", "x: ~", "x: null", "x: ''", "x: []"] {
        assert_eq!(of_block("required = true", block), [Kind::MissingRequired], "{block:?}");
        assert_eq!(of_block("required = false", block), [], "{block:?}");
    }
    for block in ["x: a", "x: 0", "x: false", "x: [a]", "x: ' '", "x: {a: b}", "x: [[]]"] {
        assert_eq!(of_block("required = true", block), [], "{block:?}");
    }
}

// CFG-88b
#[test]
fn a_value_has_the_shape_that_its_type_names() {
    assert_eq!(of_block("type = 'string'", "x: [a]"), mismatch("string", "array"));
    assert_eq!(of_block("type = 'array'", "x: a"), mismatch("array", "string"));
    assert_eq!(of_block("type = 'string'", "x: 3"), []);
    assert_eq!(of_block("type = 'array'", "x: []"), []);
    assert_eq!(of_block("type = 'array'", "x: ~"), []);
}

// CFG-88c
#[test]
fn a_pattern_is_looked_for_anywhere_in_every_element() {
    let of = |block| of_block("pattern = '[0-9]'", block);
    assert_eq!(of("x: a1b"), []);
    assert_eq!(of("x: 12"), []);
    assert_eq!(of("x: ab"), [pattern_mismatch("[0-9]", "ab")]);
    let both = [pattern_mismatch("[0-9]", "a"), pattern_mismatch("[0-9]", "b")];
    assert_eq!(of("x: [a, 1, b]"), both);
    assert_eq!(of_block("pattern = '^b$'", "x: abc"), [pattern_mismatch("^b$", "abc")]);
}

// CFG-88d
#[test]
fn a_value_is_exactly_one_of_those_that_are_allowed() {
    let of = |block| of_block("enum = ['true', 'A']", block);
    let not = |actual: &str| Kind::NotInEnum {
        actual: actual.into(),
        allowed: vec!["true".into(), "A".into()],
    };
    assert_eq!(of("x: A"), []);
    assert_eq!(of("x: True"), []);
    assert_eq!(of("x: a"), [not("a")]);
    assert_eq!(of("x: [A, 'A ', c]"), [not("A "), not("c")]);
    assert_eq!(of("x: []"), []);
}

// CFG-88e
#[test]
fn a_length_lies_between_both_bounds_included() {
    let of = |block| of_block("min_length = 2\nmax_length = 3", block);
    let short = |actual| Kind::LengthOutOfRange { actual, min: Some(2), max: None };
    let long = |actual| Kind::LengthOutOfRange { actual, min: None, max: Some(3) };
    for block in ["x: ab", "x: 日本語", "x: [a, b]", "x: [a, b, cdefg]"] {
        assert_eq!(of(block), [], "{block}");
    }
    assert_eq!(of("x: é"), [short(1)]);
    assert_eq!(of("x: abcd"), [long(4)]);
    assert_eq!(of("x: [abc]"), [short(1)]);
    assert_eq!(of("x: ''"), [short(0)]);
    let neither = of_block("min_length = 3\nmax_length = 1", "x: ab");
    let short = Kind::LengthOutOfRange { actual: 2, min: Some(3), max: None };
    assert_eq!(neither, [short, Kind::LengthOutOfRange { actual: 2, min: None, max: Some(1) }]);
}

// CFG-88f
#[test]
fn an_empty_value_may_satisfy_required_and_meets_the_other_rules_all_the_same() {
    let allowed = "required = true\nallow_empty = true\n";
    for block in ["x: ''", "x: []"] {
        assert_eq!(of_block(allowed, block), [], "{block}");
    }
    for block in ["x:", "y: 1"] {
        assert_eq!(of_block(allowed, block), [Kind::MissingRequired], "{block}");
    }
    let strict = format!("{allowed}min_length = 1\npattern = 'a'\nenum = ['a']");
    let words: Vec<&str> = of_block(&strict, "x: ''").iter().map(Kind::as_str).collect();
    assert_eq!(words, ["length_out_of_range", "pattern_mismatch", "not_in_enum"]);
    // Without `required` it changes nothing.
    for more in ["", "allow_empty = true\n"] {
        let found = of_block(&format!("{more}pattern = 'a'"), "x: ''");
        assert_eq!(found, [pattern_mismatch("a", "")]);
    }
}

// CFG-88g
#[test]
fn keys_that_are_not_declared_are_violations_only_if_the_schema_says_so() {
    let block = "---\nzeta: 1\nalpha:\ntitle: T\nx: 1\n<<: {merged: 1}\n---\n";
    let schema = |options: &str| Schema::parse(&format!("{options}[fields.x]\n")).unwrap();
    assert_eq!(schema("").violations(block), []);
    let found = schema("[options]\nallow_unknown_fields = false\n").violations(block);
    let found: Vec<_> = found.iter().map(|it| (it.field.as_str(), it.line, &it.kind)).collect();
    let undeclared = &Kind::UndeclaredField;
    assert_eq!(found, [("alpha", 3, undeclared), ("zeta", 2, undeclared)]);
}

// CFG-88h
#[test]
fn a_value_is_read_as_the_text_that_it_prints_as() {
    for (value, printed) in [
        ("1.50", "1.50"),
        ("0x1F", "31"),
        ("TRUE", "true"),
        ("'0x1F'", "0x1F"),
        ("2024-01-02", "2024-01-02"),
    ] {
        let found = of_block("pattern = '^$'", &format!("x: {value}"));
        assert_eq!(found, [pattern_mismatch("^$", printed)], "{value}");
    }
}

// CFG-88h CLI-172
#[test]
fn a_value_without_a_text_fails_any_rule_that_would_read_it() {
    for (value, shape) in [
        ("{a: b}", "mapping"),
        ("[{a: b}]", "nested sequence"),
        ("[[a]]", "nested sequence"),
        ("!!binary aGk=", "binary"),
    ] {
        let block = format!("x: {value}");
        assert_eq!(of_block("required = true", &block), [], "{value}");
        for rule in ["pattern = 'a'", "enum = ['a']", "min_length = 1", "max_length = 9"] {
            let both = of_block(&format!("required = true\n{rule}"), &block);
            assert_eq!(both, mismatch("string or array", shape), "{value} {rule}");
        }
        let all = "type = 'array'\npattern = 'a'\nenum = ['a']\nmin_length = 9";
        assert_eq!(of_block(all, &block), mismatch("array", shape), "{value}");
    }
}

// CFG-88i
#[test]
fn a_block_that_cannot_be_read_is_one_violation_and_no_rule_is_applied() {
    let schema = "[options]\nallow_unknown_fields = false\n[fields.x]\nrequired = true";
    let schema = Schema::parse(schema).unwrap();
    for text in ["---\nx: [a\n---\n", "---\ny: 1\ntitle: [a]\n---\n", "---\n- x\n---\n"] {
        let found = schema.violations(text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].field, "frontmatter");
        let Kind::FrontmatterUnparsed { reason } = &found[0].kind else { panic!("{found:?}") };
        assert!(!reason.is_empty());
    }
    let unterminated = schema.violations("---\nx: [a\n");
    assert_eq!(unterminated[0].kind, Kind::MissingRequired);
    let rules = "[fields.tags]\nenum = ['sea']";
    let by_hand = "---\ntags: ['frontmatter:unparsed']\n---\n";
    let found = Schema::parse(rules).unwrap().violations(by_hand);
    assert!(matches!(&found[..], [Violation { kind: Kind::NotInEnum { .. }, .. }]), "{found:?}");
}

// CFG-88k
#[test]
fn violations_come_by_field_and_then_by_rule() {
    let schema = Schema::parse(
        "[options]\nallow_unknown_fields = false\n\
         [fields.b]\nenum = ['x']\npattern = 'y'\nmin_length = 9\ntype = 'string'\nrequired = true\n\
         [fields.a]\nrequired = true\n[fields.Z]\nrequired = true\n[fields.tags]\nmin_length = 1\n",
    )
    .unwrap();
    let found = schema.violations("---\nb: z\n0: extra\ntags: []\n---\n");
    let found: Vec<_> =
        found.iter().map(|it| (it.field.as_str(), it.line, it.kind.as_str())).collect();
    let expected = [
        ("Z", 1, "missing_required"),
        ("a", 1, "missing_required"),
        ("b", 2, "length_out_of_range"),
        ("b", 2, "pattern_mismatch"),
        ("b", 2, "not_in_enum"),
        ("tags", 4, "length_out_of_range"),
        ("0", 3, "undeclared_field"),
    ];
    assert_eq!(found, expected);
}

// CFG-88k
#[test]
fn a_shape_that_does_not_fit_ends_the_check_before_emptiness_does() {
    let rules = "type = 'string'\nrequired = true\nmin_length = 1";
    assert_eq!(of_block(rules, "x: []"), mismatch("string", "array"));
    assert_eq!(of_block(rules, "x: ''"), [Kind::MissingRequired]);
}

proptest! {
    // CFG-88 CFG-88i
    #[test]
    fn any_text_is_judged_and_every_place_lies_in_it(
        text in "(---\n)?([-a-z&*!|>{}\\[\\]:,#?'\" \t\r\n]|x: |tags: |- |~|!!binary |---\n){0,60}",
        required in any::<bool>(),
        strict in any::<bool>(),
        least in 0_usize..3,
    ) {
        let schema = Schema::parse(&format!(
            "[options]\nallow_unknown_fields = {}\n[fields.x]\nrequired = {required}\n\
             pattern = 'a'\nenum = ['a']\nmin_length = {least}\n[fields.tags]\ntype = 'array'",
            !strict
        ))
        .unwrap();
        let lines = text.replace("\r\n", "\n").matches(['\n', '\r']).count() + 1;
        let found = schema.violations(&text);
        for violation in &found {
            prop_assert!((1..=lines).contains(&violation.line), "{:?}", violation);
        }
        let unparsed = found.iter().filter(|it| it.kind.as_str() == "frontmatter_unparsed").count();
        prop_assert!(unparsed == 0 || found.len() == 1);
    }
}
