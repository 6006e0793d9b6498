//! The shape of the source tree: which layer names which, and that every
//! adapter stands under its port's contract. `docs/ARCHITECTURE.md` explains
//! the rules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failure here is a failed case, and output is for its reader"
)]
#![allow(missing_docs, reason = "a test binary has no readers of its interface")]
#![allow(clippy::disallowed_methods, reason = "this test reads the source tree")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a layer must not name, as text that would stand in its source.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "src/domain",
        &[
            "crate::ports",
            "crate::adapters",
            "crate::app",
            "std::fs",
            "net::Tcp",
            "net::Udp",
            "std::env",
            "std::process",
            "SystemTime",
            "Instant::now",
            "tokio",
            "sqlx",
            "rmcp",
            "fastembed::",
            "serde::",
            "tracing",
            "async_trait",
            "rustix",
        ],
    ),
    (
        "src/ports",
        &[
            "crate::adapters",
            "crate::app",
            "std::fs",
            "net::Tcp",
            "net::Udp",
            "std::env",
            "tokio",
            "sqlx",
            "rmcp",
            "fastembed::",
            "serde",
            "tracing",
            "rustix",
        ],
    ),
    ("src/adapters", &["crate::app"]),
    (
        "src/app",
        &[
            "sqlx",
            "rmcp",
            "fastembed::",
            "rustix",
            "tokenizers",
            "std::fs",
            "net::Tcp",
            "net::Udp",
            "std::env",
        ],
    ),
    ("src/bin", &["grooveseek::ports", "grooveseek::adapters", "sqlx", "rmcp::", "fastembed::"]),
];

/// Technologies in the text of a port's folder of adapters, that none of the
/// other folders may name.
const PORTS: &[&str] = &["source", "parser", "embedder", "reranker", "store", "transport"];

/// What the adapters of several ports share: JSON, and local models.
const SHARED: &[&str] = &["crate::adapters::json", "crate::adapters::model"];

struct Source {
    path: String,
    text: String,
}

fn sources(folder: &str) -> Vec<Source> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(&root.join(folder), &mut found);
    found.sort();
    found
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(root).unwrap().display().to_string(),
        })
        .collect()
}

/// Whether a file under `src` is compiled for tests only.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.ends_with("testing.rs")
}

/// The lines of code: without comments, and without the tests at a file's end.
fn code(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    source
        .text
        .lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("mod tests {"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line))
}

#[test]
fn no_layer_names_what_it_must_not() {
    let mut breaches = Vec::new();
    for (layer, forbidden) in FORBIDDEN {
        for source in sources(layer).iter().filter(|source| !is_test(&source.path)) {
            for (number, line) in code(source) {
                for name in forbidden.iter().filter(|name| line.contains(**name)) {
                    breaches.push(format!("{}:{number} names {name}", source.path));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// The crates that the inner layers may use, besides the standard library; the
/// decision records say why.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "src/domain",
        &["thiserror", "serde_saphyr", "toml", "regex", "sha2", "unicode_normalization"],
    ),
    ("src/ports", &["thiserror", "async_trait"]),
];

#[test]
fn the_inner_layers_use_the_crates_that_were_decided_on_and_no_others() {
    let mut breaches = Vec::new();
    for (layer, allowed) in ALLOWED {
        for source in sources(layer).iter().filter(|source| !is_test(&source.path)) {
            for (number, line) in code(source) {
                let Some(path) = line.strip_prefix("use ") else { continue };
                let root: String =
                    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let own = ["std", "crate", "super", "self"].contains(&root.as_str());
                // A module's own parts are re-exported by their names.
                let part = root.chars().all(|c| c.is_lowercase() || c == '_')
                    && source.text.contains(&format!("mod {root};"));
                if !own && !part && !allowed.contains(&root.as_str()) {
                    breaches.push(format!("{}:{number} uses {root}", source.path));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn of_the_use_cases_only_the_wiring_names_adapters() {
    let breaches: Vec<String> = sources("src/app")
        .iter()
        .filter(|source| !source.path.starts_with("src/app/wiring") && !is_test(&source.path))
        .filter(|source| code(source).any(|(_, line)| line.contains("crate::adapters")))
        .map(|source| source.path.clone())
        .collect();
    assert!(breaches.is_empty(), "these name adapters: {}", breaches.join(", "));
}

#[test]
fn no_adapter_names_one_of_another_port() {
    let mut breaches = Vec::new();
    for port in PORTS {
        let own = format!("crate::adapters::{port}");
        for source in sources(&format!("src/adapters/{port}")) {
            for (number, line) in code(&source) {
                let foreign = line.match_indices("crate::adapters::").any(|(at, _)| {
                    !line[at..].starts_with(&own)
                        && !SHARED.iter().any(|shared| line[at..].starts_with(shared))
                });
                if foreign {
                    breaches.push(format!("{}:{number}: {}", source.path, line.trim()));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_layer_imports_by_full_path() {
    let mut breaches = Vec::new();
    for source in sources("src") {
        for (number, line) in code(&source) {
            if line.contains("use crate::{") || line.contains("use super::super::") {
                breaches.push(format!("{}:{number}", source.path));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// The adapters of a port: public types of its folder that implement the port's
/// trait, each with the module that it lives in.
fn adapters_of(port: &str, trait_name: &str) -> Vec<(String, String)> {
    let needle = format!("{trait_name} for ");
    let mut names = Vec::new();
    for source in sources(&format!("src/adapters/{port}")) {
        for (_, line) in code(&source) {
            let line = line.trim_start();
            if !line.starts_with("impl") {
                continue;
            }
            if let Some((_, rest)) = line.split_once(&needle) {
                let name: String =
                    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if source.text.contains(&format!("pub struct {name}")) {
                    let module = source.path.trim_start_matches("src/adapters/");
                    let module = module.trim_end_matches(".rs").trim_end_matches("/mod");
                    names.push((name, module.replace('/', "::")));
                }
            }
        }
    }
    names.sort();
    names.dedup();
    names
}

#[test]
fn every_adapter_stands_under_its_ports_contract() {
    let ports = BTreeMap::from([
        ("source", ("DocumentSource", "document_source")),
        ("parser", ("Parser", "parser")),
        ("embedder", ("Embedder", "embedder")),
        ("reranker", ("Reranker", "reranker")),
        ("store", ("ChunkStore", "chunk_store")),
        ("transport", ("Transport", "transport")),
    ]);
    let suites = sources("tests/contract");
    let mut missing = Vec::new();
    for (port, (trait_name, suite)) in ports {
        let adapters = adapters_of(port, trait_name);
        assert!(!adapters.is_empty(), "no adapter of {trait_name} was found");
        let suite = format!("tests/contract/{suite}.rs");
        let text = &suites.iter().find(|source| source.path == suite).unwrap().text;
        for (adapter, module) in adapters {
            if !text.contains(&adapter) && !text.contains(&module) {
                missing.push(format!("{adapter} is not in {suite}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_file_says_first_what_lives_in_it() {
    let silent: Vec<String> = sources("src")
        .into_iter()
        .filter(|source| !source.text.starts_with("//!") && !is_test(&source.path))
        .map(|source| source.path)
        .collect();
    assert!(silent.is_empty(), "no opening line: {}", silent.join(", "));
}

/// Mostly for a reader to judge.
#[test]
fn no_file_is_too_long_to_read() {
    let mut sizes: Vec<(usize, String)> = sources("src")
        .into_iter()
        .map(|source| (source.text.lines().count(), source.path))
        .collect();
    sizes.sort_by(|left, right| right.cmp(left));
    for (lines, path) in sizes.iter().take(10) {
        println!("{lines:5} {path}");
    }
    let (lines, path) = &sizes[0];
    assert!(*lines < 1000, "{path} has {lines} lines: split it along a noun");
}
