//! Tests of the shipped example.

use std::collections::BTreeSet;

use crate::app::config::Config;
use crate::app::config_file::keys::KEYS;
use crate::app::config_file::testing::{read, refusal};

const EXAMPLE: &str = include_str!("../../../../groove.toml.example");

/// The lines that are a key or section once the comment sign is taken off.
fn commented_in() -> impl Iterator<Item = &'static str> {
    EXAMPLE.lines().map(|line| line.strip_prefix("# ").unwrap_or(line))
}

// CFG-06
#[test]
fn the_example_changes_nothing() {
    assert_eq!(read(EXAMPLE), Config::default());
}

// CFG-06
#[test]
fn the_example_leaves_the_promised_sections_active() {
    let active: BTreeSet<&str> =
        EXAMPLE.lines().filter(|line| line.starts_with('[')).map(str::trim_end).collect();
    let promised = [
        "[quality_filter]",
        "[best_practice]",
        "[parsers]",
        "[parsers.code]",
        "[watch]",
        "[transport]",
        "[transport.http]",
        "[eval]",
        "[search]",
        "[search.mmr]",
        "[search.fusion]",
        "[search.parent_retriever]",
    ];
    assert_eq!(active, promised.into_iter().collect());
}

// CFG-06
#[test]
fn the_example_shows_every_key_in_its_section() {
    let mut section = String::new();
    let mut shown = BTreeSet::new();
    for line in commented_in() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = format!("{name}.");
        } else if let Some((key, _)) = line.split_once(" = ") {
            shown.insert(format!("{section}{key}"));
        }
    }
    let missing: Vec<&str> =
        KEYS.iter().map(|(key, _)| *key).filter(|key| !shown.contains(*key)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

// CFG-03
#[test]
fn a_changed_example_is_read_and_judged() {
    let changed = EXAMPLE.replace("rrf_k = 60.0", "rrf_k = 0.5");
    assert!(refusal(&changed).contains("rrf_k"));
}
