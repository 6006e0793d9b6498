use proptest::prelude::*;

use super::*;

/// Text that is long enough to be a chunk of its own.
const LONG: &str = "These words are many enough to stand as a chunk of their own.";

fn cut(body: &str) -> Vec<Chunk> {
    chunks(body, None, &[])
}

/// Heading and content of each chunk.
fn parts(body: &str) -> Vec<(Option<String>, String)> {
    cut(body).into_iter().map(|chunk| (chunk.heading, chunk.content)).collect()
}

fn part(heading: &str, content: &str) -> (Option<String>, String) {
    ((!heading.is_empty()).then(|| heading.to_owned()), content.to_owned())
}

fn contexts(body: &str, title: &str, exclude: &[&str]) -> Vec<String> {
    let exclude: Vec<String> = exclude.iter().map(|&part| part.to_owned()).collect();
    let chunks = chunks(body, Some(title), &exclude);
    chunks.into_iter().map(|chunk| chunk.context.unwrap_or_default()).collect()
}

// FMT-MD-02 FMT-MD-04 FMT-GEN-13
#[test]
fn a_document_is_cut_at_headings_of_level_two_and_three() {
    let body =
        format!("# Title\n\n{LONG}\n\n## One\n{LONG}\n### Two\n\n{LONG}\n#### Deep\n{LONG}\n");
    let chunks = cut(&body);
    let facts: Vec<_> =
        chunks.iter().map(|chunk| (chunk.heading.as_deref(), chunk.level)).collect();
    assert_eq!(facts, [(None, None), (Some("One"), Some(2)), (Some("Two"), Some(3))]);
    assert_eq!(chunks[0].content, format!("# Title\n\n{LONG}"));
    assert_eq!(chunks[1].content, LONG);
    assert_eq!(chunks[2].content, format!("{LONG}\n#### Deep\n{LONG}"));
}

// FMT-MD-02
#[test]
fn only_number_signs_and_a_space_make_a_heading() {
    for line in
        ["##x", "##", "## ", "###", "##\tx", "#### x", "# x", "Setext\n------", "> ## x", "- ## x"]
    {
        assert_eq!(parts(&format!("{LONG}\n{line}\n{LONG}")).len(), 1, "{line:?}");
    }
    for line in ["## x", "   ## x  ", "##  x", "### x", "\u{3000}## x"] {
        let chunks = parts(&format!("{LONG}\n{line}\n{LONG}"));
        assert_eq!(chunks, [part("", LONG), part("x", LONG)], "{line:?}");
    }
}

// FMT-MD-03
#[test]
fn a_heading_is_kept_as_it_is_written() {
    let chunks = parts(&format!("## **A** `b` ## {{#id}} ##\n{LONG}"));
    assert_eq!(chunks, [part("**A** `b` ## {#id} ##", LONG)]);
}

// FMT-MD-04
#[test]
fn every_kind_of_line_break_counts_as_a_line_feed() {
    for line_break in ["\n", "\r\n", "\r"] {
        let body = ["Text", LONG, "", "## A", "", LONG, "end", ""].join(line_break);
        let first = format!("Text\n{LONG}");
        let second = format!("{LONG}\nend");
        assert_eq!(parts(&body), [part("", &first), part("A", &second)], "{line_break:?}");
    }
}

// FMT-MD-05
#[test]
fn a_blank_document_has_no_chunks() {
    for body in ["", "\n \r\n\t\u{3000}", "\u{A0}"] {
        assert_eq!(cut(body), [], "{body:?}");
    }
    let body = format!("\n\n## A\n{LONG}");
    assert_eq!(parts(&body), [part("A", LONG)]);
}

// FMT-MD-06 FMT-MD-09
#[test]
fn a_context_leads_from_the_title_to_the_heading() {
    let body =
        format!("{LONG}\n## A\n{LONG}\n### B\n{LONG}\n### C\n{LONG}\n## D\n{LONG}\n### E\n{LONG}");
    let expected = ["T", "T > A", "T > A > B", "T > A > C", "T > D", "T > D > E"];
    assert_eq!(contexts(&body, " T ", &[]), expected);
    let body = format!("### B\n{LONG}\n## A\n{LONG}");
    assert_eq!(contexts(&body, "A", &[]), ["A > B", "A"]);
}

// IDX-70 IDX-71 IDX-72
#[test]
fn an_excluded_section_is_left_out_and_still_an_ancestor() {
    let body = format!("{LONG}\n## See also (old)\nlink\n### B\n{LONG}\n## see also\n{LONG}");
    let chunks = chunks(&body, Some("T"), &["See also".to_owned()]);
    let headings: Vec<_> = chunks.iter().map(|chunk| chunk.heading.as_deref()).collect();
    assert_eq!(headings, [None, Some("B"), Some("see also")]);
    assert!(chunks.iter().all(|chunk| !chunk.content.contains("link")));
    assert_eq!(contexts(&body, "T", &["See also"])[1], "T > See also (old) > B");
}

// IDX-71
#[test]
fn text_before_the_first_heading_cannot_be_excluded() {
    assert_eq!(contexts("See also", "T", &["See also"]), ["T"]);
}

// FMT-MD-08
#[test]
fn a_short_section_joins_the_chunk_before_it() {
    let body = format!("## A\n{LONG}\n### B\nshort\n### C\n## D\n{LONG}\n### E\n\n");
    let merged = format!("{LONG}\n\n## B\n\nshort\n\n## C");
    assert_eq!(parts(&body), [part("A", &merged), part("D", &format!("{LONG}\n\n## E"))]);
    assert_eq!(contexts(&body, "T", &[]), ["T > A", "T > D"]);
}

// FMT-MD-08
#[test]
fn a_section_is_short_below_fifty_bytes() {
    let section = |content: &str| parts(&format!("{LONG}\n## A\n{content}")).len();
    assert_eq!(section(&"x".repeat(49)), 1);
    assert_eq!(section(&"x".repeat(50)), 2);
    assert_eq!(section(&"語".repeat(16)), 1);
    assert_eq!(section(&"語".repeat(17)), 2);
}

// FMT-MD-05 FMT-MD-08
#[test]
fn the_first_section_never_merges() {
    assert_eq!(parts("short"), [part("", "short")]);
    assert_eq!(parts("## A"), [part("A", "")]);
    assert_eq!(parts("## A\n## B\nshort"), [part("A", "## B\n\nshort")]);
    let body = format!("## A\n## B\n{LONG}");
    assert_eq!(parts(&body), [part("A", ""), part("B", LONG)]);
}

// FMT-MD-11
#[test]
fn other_headings_leave_a_document_whole() {
    let body = format!("# A\n{LONG}\n# B\n{LONG}\n#### C\n{LONG}");
    assert_eq!(parts(&body), [part("", &body)]);
}

// FMT-MD-12
#[test]
fn links_comments_and_tables_are_kept_as_they_are_written() {
    let body = "[a](b.md) ![c](d.png) <!-- e -->\n\n| f | g |\n|---|---|\n| h | i |";
    assert_eq!(parts(body), [part("", body)]);
}

/// Checks a document in which the one heading is `## yes`.
fn assert_only_heading(body: &str) {
    let headings: Vec<_> = cut(&format!("{LONG}\n{body}\n{LONG}"))
        .into_iter()
        .filter_map(|chunk| chunk.heading)
        .collect();
    assert_eq!(headings, ["yes"], "{body}");
}

// FMT-MD-B01 replaces FMT-MD-10, by which a line inside a fence was a heading.
#[test]
fn fenced_code_is_not_cut() {
    for body in [
        "```\n## no\n```\n## yes",
        "~~~ sh `x`\n## no\n~~~~\n## yes",
        "````\n## no\n```\n## no\n~~~~\n````\t \n## yes",
        "   ```sh\n## no\n  ``` \n## yes",
        "```\n## no\n``` x\n## no\n```\n## yes",
        "```\n## no\n    ```\n## no\n```\n## yes",
        "text\n```\n\n## no\n\n```\n## yes",
        "`` x\n## yes",
        "``` a`b\n## yes",
        "    ```\n## yes",
        "## yes\n```\n## no",
    ] {
        assert_only_heading(body);
    }
}

// FMT-MD-B01
#[test]
fn fenced_code_in_a_list_item_is_not_cut() {
    for body in [
        "- a\n  ```\n  ## no\n  ```\n\n## yes",
        "1. a\n\n   ```\n   ## no\n   ```\n## yes",
        "10. a\n\n    ```\n    ## no\n    ```\n## yes",
        "- ```\n  ## no\n  ```\n## yes",
        "- a\n  - b\n\n    ```\n    ## no\n    ```\n## yes",
        "1. - ```\n     ## no\n     ```\n## yes",
        "*\ta\n\n\t```\n\t## no\n\t```\n## yes",
        "-\n  ```\n  ## no\n  ```\n## yes",
        // An item that starts with two blank lines is empty.
        "-\n\n  ```\n## no\n  ```\n## yes",
        // A line that is indented less ends the item, and the code with it.
        "- ```\n  ## no\n## yes",
        "- ```\n  ## no\n- b\n\n## yes",
    ] {
        assert_only_heading(body);
    }
}

// FMT-MD-B01
#[test]
fn what_only_looks_like_a_list_item_does_not_take_code_in() {
    for body in [
        "* * *\n```\n## no\n```\n## yes",
        "-x\n  ```\n## no\n  ```\n## yes",
        "text\n2. text\n   ```\n## no\n   ```\n## yes",
        "1234567890. a\n   ```\n## no\n   ```\n## yes",
    ] {
        assert_only_heading(body);
    }
}

// FMT-MD-B01
#[test]
fn a_fence_in_a_block_quote_stays_there() {
    assert_only_heading("> ```\n> ## no\n> ```\n## yes");
    assert_only_heading("> ```\n> ## no\n\n## yes");
    assert_only_heading("```\n> ```\n## no\n```\n## yes");
}

// FMT-MD-B01
#[test]
fn html_blocks_are_not_cut() {
    for body in [
        "<!-- a\n\n## no\n\n-->\n## yes",
        "<!-- a -->\n## yes",
        "<pre>\n\n## no\n\n</pre>\n## yes",
        "<script>\n## no\n\n## no\n</SCRIPT>\n## yes",
        "<?php\n\n## no\n?>\n## yes",
        "<!DOCTYPE\n## no\n>\n## yes",
        "<![CDATA[\n\n## no\n]]>\n## yes",
        "<div>\n## no\n\n## yes",
        "text\n<details>\n## no\n</details>\n\n## yes",
        "\n<my-tag>\n## no\n\n## yes",
        "text\n<my-tag>\n## yes",
        "    <!--\n## yes",
        "- <!--\n  ## no\n## yes",
        // None of these lines is a paragraph that a tag would continue.
        "Setext\n===\n<my-tag>\n## no\n\n## yes",
        "<!-- a -->\n<my-tag>\n## no\n\n## yes",
        "-     code\n<my-tag>\n## no\n\n## yes",
        ">\n<my-tag>\n## no\n\n## yes",
        "## yes\n<!--\n## no",
    ] {
        assert_only_heading(body);
    }
}

// FMT-MD-B01
#[test]
fn math_blocks_are_not_cut() {
    for body in [
        "$$\n## no\n$$\n## yes",
        "$$ a\n\n## no\nb $$\n## yes",
        "$$ a $$\n## yes",
        "$$\n## yes",
        "$$ is a process\n## yes\n```\n$$\n```",
        "$$$\n## yes\n$$",
        "- $$\n  ## no\n  $$\n## yes",
        "- $$\n\n## yes\n\n$$",
    ] {
        assert_only_heading(body);
    }
}

// FMT-MD-B01
#[test]
fn a_line_indented_by_four_columns_is_no_heading() {
    assert_only_heading("    ## no\n   ## yes");
    assert_only_heading("\t## no\n  \t## no\n## yes");
}

#[test]
fn a_line_of_many_list_markers_is_read_in_bounded_time() {
    let body = format!("{}\n## yes", "- ".repeat(500_000) + "x");
    assert_only_heading(&body);
}

/// Lines that make blocks start, end and nest.
fn markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => "[ \t]{0,5}(#{1,4} ?|```|~~~~|\\$\\$|<!--|-->|<div>|</div>|<pre>|> |- |1\\. )[a-z `~$#]{0,12}",
        2 => "[ -~あ-ん]{0,60}",
        1 => "[ \t\u{3000}]{0,6}",
    ];
    let line_break = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")];
    proptest::collection::vec((line, line_break), 0..40)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

/// Whether every line that says something is in some chunk.
fn first_lost_line(body: &str, chunks: &[Chunk]) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    for chunk in chunks {
        kept.extend(chunk.heading.as_deref());
        kept.extend(chunk.content.lines().map(str::trim));
    }
    let is_kept = |line: &str| match Heading::read(line) {
        Some(heading) => {
            let merged = format!("## {}", heading.text);
            kept.contains(&heading.text) || kept.contains(&merged.as_str()) || kept.contains(&line)
        }
        None => kept.contains(&line),
    };
    body.split(['\n', '\r'])
        .map(str::trim)
        .find(|line| !line.is_empty() && !is_kept(line))
        .map(str::to_owned)
}

proptest! {
    #[test]
    fn any_text_can_be_cut(body in any::<String>(), part in any::<String>()) {
        let _chunks = chunks(&body, Some(&part), std::slice::from_ref(&part));
    }

    // FMT-MD-04 FMT-MD-08
    #[test]
    fn no_line_is_lost_and_the_same_text_is_cut_the_same_way(body in markdown()) {
        let chunks = cut(&body);
        prop_assert_eq!(first_lost_line(&body, &chunks), None);
        prop_assert_eq!(&chunks, &cut(&body));
        for chunk in &chunks {
            prop_assert_eq!(chunk.content.trim(), &chunk.content);
            prop_assert_eq!(chunk.heading.is_some(), chunk.level.is_some());
        }
    }

    // FMT-MD-08
    #[test]
    fn only_the_first_chunk_is_short(body in markdown()) {
        for chunk in cut(&body).iter().skip(1) {
            prop_assert!(chunk.content.len() >= 50);
        }
    }

    // FMT-MD-B01
    #[test]
    fn code_between_fences_stays_in_one_chunk(lines in proptest::collection::vec("(## |### |- |\\$\\$|<!--)?[a-z ]{0,20}", 0..20)) {
        let code = format!("```\n{}\n```", lines.join("\n"));
        let chunks = cut(&format!("{LONG}\n\n{code}\n\n## A\n{LONG}"));
        prop_assert_eq!(chunks.len(), 2);
        prop_assert_eq!(&chunks[0].content, &format!("{LONG}\n\n{code}"));
    }
}
