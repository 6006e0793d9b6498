use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn of_block(block: &str) -> Frontmatter<'static> {
    let text = format!("---\n{block}\n---\nbody");
    let read = read(&text);
    assert_eq!(read.body, "body");
    Frontmatter { body: "body", metadata: read.metadata, error: read.error }
}

fn good(block: &str) -> Metadata {
    let read = of_block(block);
    assert_eq!(read.error, None, "{block}");
    read.metadata
}

fn reason(block: &str) -> String {
    let read = of_block(block);
    let unparsed = Metadata { tags: vec![UNPARSED_TAG.into()], ..Metadata::default() };
    assert_eq!(read.metadata, unparsed);
    read.error.expect("the block must be refused")
}

fn of_field(value: &str) -> FieldValue {
    good(&format!("key: {value}")).fields.remove("key").expect("the key is kept")
}

fn scalar(text: &str) -> FieldValue {
    FieldValue::Scalar(text.into())
}

fn list(texts: &[&str]) -> FieldValue {
    FieldValue::List(texts.iter().map(|&text| text.to_owned()).collect())
}

// IDX-80
#[test]
fn a_byte_order_mark_may_stand_before_the_block() {
    let read = read("\u{FEFF}---\ntitle: A\n---\n\nbody");
    assert_eq!((read.metadata.title.as_deref(), read.body), (Some("A"), "body"));
}

// IDX-81
#[test]
fn an_unterminated_block_is_body_without_an_error() {
    let expected = "---\ntitle: A\n\nbody";
    let read = read("\u{FEFF}---\ntitle: A\n\nbody");
    assert_eq!(read, Frontmatter { metadata: Metadata::default(), error: None, body: expected });
}

// IDX-80
#[test]
fn every_kind_of_line_break_separates_keys() {
    for line_break in ["\n", "\r\n", "\r"] {
        let text = ["---", "title: A", "tags:", "- b", "- c", "---", "body"].join(line_break);
        let metadata = read(&text).metadata;
        assert_eq!(metadata.title.as_deref(), Some("A"), "{line_break:?}");
        assert_eq!(metadata.tags, ["b", "c"], "{line_break:?}");
    }
}

// IDX-82 IDX-B15
#[test]
fn a_block_that_says_nothing_is_empty_metadata() {
    for block in ["", " ", "\t\n\n", "# only\n  # comments"] {
        assert_eq!(good(block), Metadata::default(), "{block:?}");
    }
    assert_eq!(read("---\n---\nbody").error, None);
}

// IDX-B15 IDX-88
#[test]
fn what_is_no_mapping_is_a_broken_block_and_no_body() {
    for block in ["A sentence.", "- a\n- b", "~", "42", "[a]", "a: b\n...\n%YAML 1.2", "{{ x }}"] {
        assert!(!reason(block).is_empty());
    }
}

// IDX-83
#[test]
fn named_keys_keep_the_text_of_their_scalars() {
    let metadata =
        good("title: 2024\ntopic: 'it''s'\ndate: 2026-04-16\ndepth: 3\ntags: [a, 1.0, true]");
    assert_eq!(metadata.title.as_deref(), Some("2024"));
    assert_eq!(metadata.topic.as_deref(), Some("it's"));
    assert_eq!(metadata.date.as_deref(), Some("2026-04-16"));
    assert_eq!(metadata.depth.as_deref(), Some("3"));
    assert_eq!(metadata.tags, ["a", "1.0", "true"]);
    assert!(metadata.fields.is_empty());
}

// IDX-79
#[test]
fn a_number_as_depth_becomes_its_decimal_text() {
    assert_eq!(good("depth: 0x10").depth.as_deref(), Some("16"));
    assert_eq!(good("depth: 0o17").depth.as_deref(), Some("15"));
}

// IDX-83
#[test]
fn a_null_under_a_named_key_is_no_value() {
    for null in ["", "~", "null", "!!null ''"] {
        let block = ["title", "topic", "date", "depth", "tags"]
            .map(|key| format!("{key}: {null}"))
            .join("\n");
        assert_eq!(good(&block), Metadata::default(), "{null:?}");
    }
}

// IDX-84
#[test]
fn another_shape_of_a_named_key_refuses_the_block() {
    for entry in [
        "title: [a]",
        "title: {a: b}",
        "topic: [a]",
        "date: {y: 1}",
        "depth: [1, 2]",
        "tags: x",
        "tags: {a: b}",
        "tags: [[a]]",
        "tags: [{a: b}]",
        "tags: [!!binary aGk=]",
        "title: !!binary aGk=",
    ] {
        let key = entry.split(':').next().unwrap();
        let reason = reason(&format!("other: fine\n{entry}"));
        assert!(reason.contains(&format!("`{key}`")), "{entry}: {reason}");
    }
}

// IDX-84 IDX-86
#[test]
fn a_key_may_stand_only_once() {
    for block in ["title: a\ntitle: a", "x: 1\ny: 2\nx: 3", "title: a\n!!str title: b"] {
        assert!(reason(block).contains("twice"), "{block}");
    }
}

// IDX-85
#[test]
fn a_scalar_is_kept_as_the_text_that_it_prints_as() {
    for (value, text) in [
        ("1.0", "1.0"),
        ("1.10", "1.10"),
        ("-0.5e3", "-0.5e3"),
        (".inf", ".inf"),
        ("007", "007"),
        ("340282366920938463463374607431768211455", "340282366920938463463374607431768211455"),
        ("-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728"),
        ("0xFF", "255"),
        ("0x+F", "0x+F"),
        ("0o8", "0o8"),
        ("True", "true"),
        ("\"True\"", "True"),
        ("yes", "yes"),
        ("'null'", "null"),
        ("''", ""),
        ("2026-04-16", "2026-04-16"),
        ("2026-04-16T10:00:00Z", "2026-04-16T10:00:00Z"),
        ("|\n  a\n  b", "a\nb\n"),
        ("two\n  lines", "two lines"),
        ("!!str 0xFF", "0xFF"),
        ("!!str ~", "~"),
        ("! ~", "~"),
        ("!!int '0xFF'", "255"),
        ("!custom 0xFF", "255"),
        ("!!timestamp 2026-04-16", "2026-04-16"),
    ] {
        assert_eq!(of_field(value), scalar(text), "{value}");
    }
}

// IDX-85
#[test]
fn a_list_of_scalars_is_kept_as_a_list_of_texts() {
    assert_eq!(of_field("[a, 1.0, TRUE, 'x y']"), list(&["a", "1.0", "true", "x y"]));
    assert_eq!(of_field("\n- a\n- b"), list(&["a", "b"]));
    assert_eq!(of_field("[]"), list(&[]));
    assert_eq!(of_field("!custom [a]"), list(&["a"]));
    assert_eq!(of_field("[a, ~, b]"), list(&["a", "b"]));
}

// IDX-85
#[test]
fn everything_else_is_kept_as_one_opaque_value() {
    for (value, shape) in [
        ("{a: b}", OpaqueShape::Mapping),
        ("\n  a:\n    - b", OpaqueShape::Mapping),
        ("[a, [b]]", OpaqueShape::NestedSequence),
        ("[{a: b}, c]", OpaqueShape::NestedSequence),
        ("!!binary aGk=", OpaqueShape::Binary),
        ("~", OpaqueShape::Null),
        ("", OpaqueShape::Null),
        ("!custom", OpaqueShape::Null),
    ] {
        assert_eq!(of_field(value), FieldValue::Opaque(shape), "{value:?}");
    }
}

// IDX-85
#[test]
fn a_merge_key_is_dropped_and_not_expanded() {
    let metadata = good("base: &b {title: x}\n<<: *b\n'<<': text");
    assert_eq!(metadata.title, None);
    assert_eq!(metadata.fields.keys().collect::<Vec<_>>(), ["<<", "base"]);
    assert_eq!(metadata.fields["<<"], scalar("text"));
}

#[test]
fn an_alias_stands_for_its_anchor() {
    let metadata =
        good("a: &a A\nb: &b [x, *a]\nc: {d: &d [y, &e z]}\ntitle: *a\ntags: *b\nf: *d\n*e : g");
    assert_eq!(metadata.title.as_deref(), Some("A"));
    assert_eq!(metadata.tags, ["x", "A"]);
    assert_eq!(metadata.fields["f"], list(&["y", "z"]));
    assert_eq!(metadata.fields["z"], scalar("g"));
    let metadata = good("a: &a {b: c}\nd: *a\ne: &e [*e]");
    assert_eq!(metadata.fields["d"], FieldValue::Opaque(OpaqueShape::Mapping));
    assert_eq!(metadata.fields["e"], FieldValue::Opaque(OpaqueShape::NestedSequence));
    assert!(!reason("a: *missing").is_empty());
}

#[test]
fn a_reason_names_the_line_of_the_file() {
    let reason = reason("title: a\nother: \"open");
    assert!(reason.contains("line 4") || reason.contains("line 3"), "{reason}");
    assert!(self::reason("a: 1\n\nb: 2\na: 3").contains("line 5"));
}

// IDX-86
#[test]
fn a_second_document_refuses_the_block() {
    assert!(!reason("title: a\n...\ntitle: b").is_empty());
}

fn aliases(anchors: usize, aliases: usize) -> String {
    let mut block = String::from("key:\n");
    for number in 0..anchors {
        writeln!(block, "- &a{number} [x]").unwrap();
    }
    block.push_str("- {list: [");
    block.push_str(&vec!["*a0"; aliases].join(", "));
    block.push_str("]}");
    block
}

// IDX-86
#[test]
fn aliases_are_limited_by_the_number_of_anchors() {
    good(&aliases(1, 99));
    good(&aliases(10, 100));
    assert!(reason(&aliases(1, 100)).contains("limit"));
    assert!(reason(&aliases(50_001, 1)).contains("limit"));
    assert!(reason(&aliases(5_001, 50_001)).contains("limit"));
}

// IDX-86
#[test]
fn nodes_and_nesting_are_limited() {
    let nodes = |count: usize| format!("key: [{}]", vec!["x"; count].join(",\n "));
    good(&nodes(249_997));
    assert!(reason(&nodes(249_998)).contains("limit"));
    let flow = |depth: usize| format!("key: {}{}", "[".repeat(depth), "]".repeat(depth));
    good(&flow(1_999));
    assert!(!reason(&flow(2_001)).is_empty());
    let block = |depth: usize| {
        let lines = (0..depth).map(|level| format!("{}k:", " ".repeat(level)));
        lines.collect::<Vec<_>>().join("\n")
    };
    good(&block(2_000));
    assert!(!reason(&block(2_001)).is_empty());
}

// IDX-86 IDX-87
#[test]
fn input_of_any_depth_is_refused_without_exhausting_the_stack() {
    for opener in ["[", "{", "{a: ", "[[", "- ", "? ", "{? "] {
        assert!(!reason(&format!("key:\n {}", opener.repeat(200_000))).is_empty());
    }
}

// IDX-87
#[test]
fn a_deep_or_explosive_value_under_an_unknown_key_is_one_opaque_value() {
    let deep = format!("{}x{}", "{a: ".repeat(130), "}".repeat(130));
    assert_eq!(of_field(&deep), FieldValue::Opaque(OpaqueShape::Mapping));
    assert!(reason(&format!("tags: {deep}")).contains("`tags`"));

    let mut bomb = String::from("bomb:\n  a0: &a0 [x, x]\n");
    for level in 1..40 {
        writeln!(bomb, "  a{level}: &a{level} [*a{0}, *a{0}]", level - 1).unwrap();
    }
    assert_eq!(good(&bomb).fields["bomb"], FieldValue::Opaque(OpaqueShape::Mapping));
    assert!(reason(&format!("{bomb}tags: *a39")).contains("`tags`"));
    assert!(reason(&format!("{bomb}tags: [*a39, *a38]")).contains("`tags`"));
}

// IDX-86 IDX-87
#[test]
fn what_aliases_stand_for_under_a_kept_key_is_limited() {
    let scalar = "x".repeat(1 << 20);
    let block = format!("a: &a {scalar}\ntags: [{}]", vec!["*a"; 99].join(", "));
    assert!(reason(&block).contains("limit"));
    let mut block = format!("a: &a [{}]\n", vec!["x"; 1_000].join(", "));
    for number in 0..200 {
        writeln!(block, "b{number}: &b{number} y\nc{number}: *a").unwrap();
    }
    assert!(reason(&block).contains("limit"));
}

// IDX-88 IDX-93
#[test]
fn the_tag_of_a_broken_block_may_be_written_by_hand() {
    let metadata = good("title: A\ntags: ['frontmatter:unparsed']");
    assert_eq!(metadata.tags, [UNPARSED_TAG]);
    assert_eq!(metadata.title.as_deref(), Some("A"));
}

// IDX-96
#[test]
fn declared_values_have_one_text_for_each_scalar() {
    let metadata = good("a: x\nb: [y, 1.0]\nc: {d: e}\nf: ~\ng: []\nh: undeclared");
    let declared = ["a", "b", "c", "f", "g", "missing"].map(str::to_owned).into();
    let fields = declared_fields(&metadata, &declared);
    let expected = [("a", vec!["x"]), ("b", vec!["y", "1.0"])]
        .map(|(key, texts)| (key.to_owned(), texts.into_iter().map(str::to_owned).collect()));
    assert_eq!(fields, expected.into());
}

// CFG-88g CFG-88h CLI-B02
#[test]
fn every_key_is_listed_with_its_line_and_what_it_prints_as() {
    let text = "---\r\n# first\r\ntitle: True\r\ntags: [0x10]\r\ntext: |\r\n  a\r\n  b\r\n\
                '<<': kept\r\n<<: {a: b}\r\nempty:\r\n...\r\n---\r\nbody: no\r\n";
    let fields = fields(text).unwrap();
    let lines: Vec<(&str, usize)> =
        fields.iter().map(|(key, field)| (key.as_str(), field.line)).collect();
    assert_eq!(lines, [("<<", 8), ("empty", 10), ("tags", 4), ("text", 5), ("title", 3)]);
    assert_eq!(fields["title"].value, scalar("true"));
    assert_eq!(fields["tags"].value, FieldValue::List(vec!["16".into()]));
    assert_eq!(fields["empty"].value, FieldValue::Opaque(OpaqueShape::Null));
    for text in ["", "body", "---\na: b\n", "---\n# nothing\n---\n"] {
        assert_eq!(super::fields(text), Ok(BTreeMap::new()), "{text:?}");
    }
}

// CFG-88i CLI-B02
#[test]
fn a_block_that_cannot_be_read_says_where() {
    let line = |text: &str| fields(text).unwrap_err().line;
    assert_eq!(line("---\na: b\nc: [d\n---\n"), 3);
    assert_eq!(line("\u{FEFF}---\na: b\n\ntitle: [x]\n---\n"), 4);
    assert_eq!(line("---\na: b\na: c\n---\n"), 3);
    assert_eq!(line("---\n- a\n---\n"), 2);
}

proptest! {
    // CFG-88i
    #[test]
    fn keys_can_be_listed_if_and_only_if_the_metadata_can_be_read(
        text in "(---\n)?(title: |tags: |[-a-z&*!|>{}\\[\\]:,#?'\" \t\r\n]|a: |- |---\n){0,60}",
    ) {
        let (read, fields) = (read(&text), fields(&text));
        prop_assert_eq!(read.error, fields.as_ref().err().map(|error| error.reason.clone()));
        let lines = text.replace("\r\n", "\n").matches(['\n', '\r']).count() + 1;
        for line in fields.iter().flatten().map(|(_, field)| field.line) {
            prop_assert!(1 < line && line <= lines, "{}", line);
        }
        if let Err(error) = &fields {
            prop_assert!(1 <= error.line && error.line <= lines);
        }
    }

    // IDX-88
    #[test]
    fn any_text_is_taken_apart_and_the_body_is_its_end(
        text in "(\u{FEFF})?(---\n)?([-a-z&*!|>{}\\[\\]:,#?'\" \t\r\n]|a: |- |---\n){0,60}",
    ) {
        let read = read(&text);
        prop_assert!(text.ends_with(read.body));
        if read.error.is_some() {
            prop_assert_eq!(&read.metadata.tags, &[UNPARSED_TAG.to_owned()]);
        }
    }

    // IDX-85
    #[test]
    fn a_quoted_scalar_is_kept_as_it_is(text in "[ -~あ-ん]{0,40}") {
        let quoted = text.replace('\'', "''");
        prop_assert_eq!(of_field(&format!("'{quoted}'")), scalar(&text));
    }
}
