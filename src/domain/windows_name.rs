//! Which names Windows cannot give to a file.

/// Names that lead to a device, whatever extension follows.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Tells whether a file on Windows can have this key, with `/` between the
/// segments, and be opened under it again.
///
/// ```
/// use grooveseek::domain::windows_name::is_nameable_on_windows;
///
/// assert!(is_nameable_on_windows("notes/console.md"));
/// assert!(!is_nameable_on_windows("notes/con.md"));
/// ```
pub fn is_nameable_on_windows(key: &str) -> bool {
    key.split('/').all(is_segment)
}

fn is_segment(segment: &str) -> bool {
    let is_odd = |character: char| {
        character.is_control()
            || matches!(character, '\\' | ':' | '<' | '>' | '"' | '|' | '?' | '*')
    };
    !segment.contains(is_odd) && !segment.ends_with(['.', ' ']) && !is_device(segment)
}

fn is_device(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or(segment).trim_end_matches(' ');
    if DEVICES.iter().any(|device| stem.eq_ignore_ascii_case(device)) {
        return true;
    }
    let mut characters = stem.chars();
    let Some(last) = characters.next_back() else { return false };
    let port = characters.as_str();
    (port.eq_ignore_ascii_case("COM") || port.eq_ignore_ascii_case("LPT"))
        && matches!(last, '0'..='9' | '\u{B9}' | '\u{B2}' | '\u{B3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // IDX-22w
    #[test]
    fn names_that_windows_opens_as_something_else_are_no_keys_there() {
        let odd = [
            "a\\b.md",
            "a:b.md",
            "c:",
            "a./b.md",
            "a /b.md",
            "a.md.",
            "a.md ",
            "a<.md",
            "a>.md",
            "a\".md",
            "a|.md",
            "a?.md",
            "a*.md",
            "a\n.md",
            "a\u{1}.md",
            "CON",
            "con.md",
            "x/Prn.md",
            "aux/x.md",
            "nul.tar.gz",
            "COM0.md",
            "com9",
            "LPT1.md",
            "lpt0/x.md",
            "conin$.md",
            "CONOUT$",
            "COM\u{B9}.md",
            "lpt\u{B3}",
            "com\u{B2}/a.md",
            "nul .md",
        ];
        for key in odd {
            assert!(!is_nameable_on_windows(key), "{key:?}");
        }
    }

    // IDX-22w
    #[test]
    fn names_that_only_resemble_those_are_keys() {
        let plain = [
            "a/b.md",
            ".hidden.md",
            " a.md",
            "..a/b..md",
            "console.md",
            "com.md",
            "COM10.md",
            "lpt.md",
            "xcon.md",
            "nul1.md",
            "con-a.md",
            "日本/é.md",
            "a'b`$(c).md",
            "com\u{2074}.md",
            "CONIN.md",
        ];
        for key in plain {
            assert!(is_nameable_on_windows(key), "{key:?}");
        }
    }
}
