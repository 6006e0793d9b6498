//! HTML blocks in Markdown: where one starts and what ends it.

/// What ends an HTML block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The closing tag of an element whose content is kept as it is.
    RawElement,
    /// A line that holds this text.
    Text(&'static str),
    /// A blank line.
    BlankLine,
}

impl End {
    /// Whether the block ends with this line, which is not blank.
    pub(super) fn is_met_by(self, line: &str) -> bool {
        match self {
            Self::RawElement => RAW_ELEMENTS.iter().any(|name| has_closing_tag(line, name)),
            Self::Text(text) => line.contains(text),
            Self::BlankLine => false,
        }
    }
}

/// Elements whose content is no Markdown, blank lines included.
const RAW_ELEMENTS: &[&str] = &["pre", "script", "style", "textarea"];

/// Elements that open a block by their name alone, in ascending order.
const BLOCK_ELEMENTS: &[&str] = &[
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// What will end the HTML block that `text` starts, if it starts one.
///
/// - `text`: a line without the blanks before it.
/// - `in_paragraph`: whether the line could continue a paragraph; a tag that is
///   no block's cannot end one.
///
/// # Source
///
/// `CommonMark` 0.31.2, section 4.6.
pub(super) fn block_start(text: &str, in_paragraph: bool) -> Option<End> {
    let rest = text.strip_prefix('<')?;
    if rest.starts_with("!--") {
        return Some(End::Text("-->"));
    }
    if rest.starts_with('?') {
        return Some(End::Text("?>"));
    }
    if rest.starts_with("![CDATA[") {
        return Some(End::Text("]]>"));
    }
    if let Some(declaration) = rest.strip_prefix('!') {
        return declaration
            .starts_with(|c: char| c.is_ascii_alphabetic())
            .then_some(End::Text(">"));
    }
    let (closing, rest) = match rest.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (name, after) = split_name(rest)?;
    let name = name.to_ascii_lowercase();
    if RAW_ELEMENTS.contains(&name.as_str()) {
        let opens = !closing && (after.is_empty() || after.starts_with([' ', '\t', '>']));
        return opens.then_some(End::RawElement);
    }
    if BLOCK_ELEMENTS.binary_search(&name.as_str()).is_ok() {
        let ended = after.is_empty() || after.starts_with([' ', '\t', '>']);
        return (ended || after.starts_with("/>")).then_some(End::BlankLine);
    }
    if in_paragraph {
        return None;
    }
    let after = if closing { after_closing_tag(after) } else { after_opening_tag(after) }?;
    is_blank(after).then_some(End::BlankLine)
}

fn is_blank(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// Splits a tag's name off; a name starts with a letter.
fn split_name(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    Some(text.split_at(end))
}

fn after_closing_tag(rest: &str) -> Option<&str> {
    skip_blanks(rest).strip_prefix('>')
}

/// What follows an opening tag, given what follows its name.
fn after_opening_tag(mut rest: &str) -> Option<&str> {
    loop {
        let next = skip_blanks(rest);
        if let Some(after) = next.strip_prefix("/>").or_else(|| next.strip_prefix('>')) {
            return Some(after);
        }
        // An attribute has white space before it.
        if next.len() == rest.len() {
            return None;
        }
        rest = after_attribute(next)?;
    }
}

fn after_attribute(text: &str) -> Option<&str> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':')) {
        return None;
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | ':' | '-'))
        .unwrap_or(text.len());
    let after_name = &text[end..];
    let Some(value) = skip_blanks(after_name).strip_prefix('=') else {
        return Some(after_name);
    };
    let value = skip_blanks(value);
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote).map(|(_, after)| after);
        }
    }
    let end = value.find([' ', '\t', '"', '\'', '=', '<', '>', '`']).unwrap_or(value.len());
    (end > 0).then(|| &value[end..])
}

/// Whether the line holds `</name>`, compared without ASCII case.
fn has_closing_tag(line: &str, name: &str) -> bool {
    line.match_indices("</").any(|(start, _)| {
        let after = &line.as_bytes()[start + 2..];
        after.len() > name.len()
            && after[..name.len()].eq_ignore_ascii_case(name.as_bytes())
            && after[name.len()] == b'>'
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // FMT-MD-B01
    #[test]
    fn each_kind_of_block_has_its_own_end() {
        let start = |text| block_start(text, false);
        for text in ["<script>", "<PRE class=x>", "<style\ttype=a>", "<textarea"] {
            assert_eq!(start(text), Some(End::RawElement), "{text}");
        }
        assert_eq!(start("<!-- a"), Some(End::Text("-->")));
        assert_eq!(start("<?php"), Some(End::Text("?>")));
        assert_eq!(start("<!DOCTYPE html"), Some(End::Text(">")));
        assert_eq!(start("<![CDATA["), Some(End::Text("]]>")));
        for text in ["<div", "</div>", "<Table border=1>", "<hr/>", "<h2>"] {
            assert_eq!(start(text), Some(End::BlankLine), "{text}");
        }
        for text in ["<my-tag>", "</a >", "<a href='x y' b=c d>  ", "<b/>"] {
            assert_eq!(start(text), Some(End::BlankLine), "{text}");
            assert_eq!(block_start(text, true), None, "{text}");
        }
    }

    // FMT-MD-B01
    #[test]
    fn what_only_looks_like_a_tag_starts_no_block() {
        for text in [
            "<",
            "< div>",
            "<1>",
            "<!1>",
            "<b> text",
            "<http://x.example>",
            "<a b='c>",
            "<a =b>",
            "<a'b'>",
            "</pre>",
            "<prefix",
            "<divider",
            "text <div>",
            "<a b= >",
        ] {
            assert_eq!(block_start(text, false), None, "{text}");
        }
    }

    // FMT-MD-B01
    #[test]
    fn an_end_is_found_anywhere_in_a_line() {
        assert!(End::RawElement.is_met_by("x </SCRIPT> y"));
        assert!(!End::RawElement.is_met_by("</scripts> </pre </"));
        assert!(End::Text("-->").is_met_by("a --> b"));
        assert!(!End::BlankLine.is_met_by("x"));
    }

    #[test]
    fn the_names_of_block_elements_are_in_order() {
        assert!(BLOCK_ELEMENTS.is_sorted());
    }
}
