//! What a start that is not in the index may have been meant to be.

/// The most paths that are named.
const NAMED: usize = 3;
/// The most bytes of a start that is compared letter by letter.
const COMPARED_BYTES: usize = 512;
/// The most characters of a start that a refusal repeats.
const QUOTED_CHARS: usize = 200;
/// What counts for more than any likeness: the same path, otherwise spelled.
const SAME: f64 = 4.0;
/// How alike two paths are at least, from 0 to 1.
const LIKENESS: f64 = 0.6;

/// Says that a start is not in the index, which paths are near it, and what to
/// do.
///
/// - `paths`: those of all documents.
pub(super) fn not_in_the_index<'a>(start: &str, paths: impl Iterator<Item = &'a str>) -> String {
    let paths: Vec<&str> = paths.collect();
    let quoted = match start.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}...", &start[..end]),
        None => format!("{start:?}"),
    };
    if paths.is_empty() {
        return format!(
            "{quoted} is not in the index, which holds no documents yet; run `groove index`, or \
             call rebuild_index"
        );
    }
    let near = near(start, &paths);
    let below = if near.is_empty() { below(start, &paths) } else { Vec::new() };
    let meant = if !below.is_empty() {
        let below: Vec<String> = below.iter().map(|path| format!("{path:?}")).collect();
        format!("; it is a folder that holds {}.", below.join(", "))
    } else if near.is_empty() {
        ".".to_owned()
    } else {
        let near: Vec<String> = near.iter().map(|path| format!("{path:?}")).collect();
        format!("; did you mean {}?", near.join(" or "))
    };
    format!(
        "{quoted} is not in the index{meant} Give the `path` exactly as a search result spells it; \
         if the file is new, run `groove index`, or call rebuild_index"
    )
}

/// The paths that are most like a start, the most alike first.
fn near<'a>(start: &str, paths: &[&'a str]) -> Vec<&'a str> {
    if start.len() > COMPARED_BYTES {
        return Vec::new();
    }
    let wanted = plain(start);
    let wanted_name = name(&wanted);
    let mut scored: Vec<(f64, &str)> = paths
        .iter()
        .map(|path| {
            let candidate = plain(path);
            let likeness = if candidate == wanted {
                SAME
            } else if !wanted_name.is_empty() && name(&candidate) == wanted_name {
                2.0 + likeness(&wanted, &candidate)
            } else {
                likeness(&wanted, &candidate)
            };
            (likeness, *path)
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    // Who has found the document needs no others.
    if scored.first().is_some_and(|(likeness, _)| *likeness >= SAME) {
        scored.retain(|(likeness, _)| *likeness >= SAME);
    }
    scored.into_iter().take(NAMED).map(|(_, path)| path).collect()
}

/// Documents in a folder, if the start is one.
fn below<'a>(start: &str, paths: &[&'a str]) -> Vec<&'a str> {
    let folder = plain(start) + "/";
    let is_below = |path: &&&str| folder.len() > 1 && plain(path).starts_with(&folder);
    paths.iter().filter(is_below).take(NAMED).copied().collect()
}

/// From 0 to 1. Paths whose lengths differ too much are not compared.
fn likeness(a: &str, b: &str) -> f64 {
    let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
    if shorter * 2 < longer { 0.0 } else { strsim::normalized_damerau_levenshtein(a, b) }
}

/// A path as one means it: without `.`, empty segments and differences of case.
fn plain(path: &str) -> String {
    let path = path.replace('\\', "/");
    let segments = path.split('/').filter(|segment| !matches!(*segment, "" | "."));
    segments.collect::<Vec<_>>().join("/").to_lowercase()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 5] =
        ["a.md", "it/network/vpn.md", "it/network/printers.md", "people/vpn.md", "日本/メモ.md"];

    fn told(start: &str) -> String {
        not_in_the_index(start, PATHS.into_iter())
    }

    // GRAPH-01 GRAPH-21 CLI-32
    #[test]
    fn another_spelling_of_a_path_is_answered_with_the_right_one() {
        for (start, path) in [
            ("./a.md", "a.md"),
            ("A.md", "a.md"),
            ("a.md/", "a.md"),
            ("/it/network/vpn.md", "it/network/vpn.md"),
            ("it\\network\\vpn.md", "it/network/vpn.md"),
            ("it//network/./VPN.md", "it/network/vpn.md"),
            ("it/network/vnp.md", "it/network/vpn.md"),
            ("printers.md", "it/network/printers.md"),
            ("日本/メ.md", "日本/メモ.md"),
        ] {
            let told = told(start);
            assert!(told.contains(&format!("did you mean {path:?}")), "{start}: {told}");
            assert!(told.contains("groove index") && told.contains("rebuild_index"), "{told}");
        }
        let both = told("vpn.md");
        assert!(!told("IT/network/vpn.md").contains("people"));
        assert!(both.contains("it/network/vpn.md") && both.contains("people/vpn.md"), "{both}");
    }

    // GRAPH-21
    #[test]
    fn what_is_like_nothing_or_too_long_is_told_without_a_guess() {
        for start in ["", "zzzzzzzz", "/", &"../".repeat(100_000)] {
            let told = told(start);
            assert!(!told.contains("did you mean") && told.contains("is not in the index."));
            assert!(told.len() < 600, "{}", told.len());
        }
    }

    // GRAPH-21
    #[test]
    fn a_folder_is_answered_with_documents_in_it() {
        for start in ["it/network", "IT/Network/"] {
            let told = told(start);
            assert!(told.contains("a folder that holds \"it/network/vpn.md\""), "{told}");
        }
    }

    // GRAPH-21
    #[test]
    fn an_index_without_documents_says_so() {
        let told = not_in_the_index("a.md", std::iter::empty());
        assert!(told.contains("no documents yet") && told.contains("groove index"), "{told}");
    }
}
