//! How relevant answers are: nDCG@10, recall@10 and recall@100 of each leg, of
//! blind fusion, and of what a search does by default, on judged sets of queries.
//!
//! `GROOVE_TEST_CORPORA` names the folder that holds `retrieval/`, and
//! `GROOVE_TEST_MODEL` the model's folder. Arguments name the sets; `--runs FOLDER`
//! writes every run down, as query, document and rank.
#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a measurement"
)]

#[path = "../tests/support/judged.rs"]
mod judged;

use std::fs;
use std::path::{Path, PathBuf};

use grooveseek::app::wiring::PrecisionChoice;
use judged::{JudgedSet, Run, Score, indexed, runs};

/// Hits of a search that tell its nDCG@10, and its recall@100.
const SHALLOW: u32 = 10;
const DEEP: u32 = 100;

fn main() {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpora), Some(model)) = (folder("GROOVE_TEST_CORPORA"), folder("GROOVE_TEST_MODEL"))
    else {
        println!("relevance: set GROOVE_TEST_CORPORA and GROOVE_TEST_MODEL");
        return;
    };
    let mut arguments = std::env::args().skip(1);
    let mut names = Vec::new();
    let mut written = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => written = arguments.next().map(PathBuf::from),
            _ if argument.starts_with('-') => {}
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        let all = ["scifact", "cranfield", "cosqa", "cpp-docs-links", "jsquad", "cmrc2018"];
        names = all.map(str::to_owned).to_vec();
    }
    println!("| set | ranking | nDCG@10 | recall@10 | recall@100 |\n|---|---|---|---|---|");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for name in names {
        let set = JudgedSet::read(&corpora.join("retrieval").join(&name));
        let folder = tempfile::tempdir().unwrap();
        let kb = set.unpack(folder.path());
        let (shallow, deep) = runtime.block_on(async {
            let (groove, _) = indexed(&kb, &model, PrecisionChoice::Auto).await;
            let searcher = groove.searcher();
            (runs(&set, &searcher, SHALLOW).await, runs(&set, &searcher, DEEP).await)
        });
        let rows = [
            ("dense", &deep.dense, &deep.dense),
            ("lexical", &deep.lexical, &deep.lexical),
            ("blind", &shallow.blind, &deep.blind),
            ("default", &shallow.default, &deep.default),
        ];
        for (ranking, shallow, deep) in rows {
            let Score { ndcg, recall, .. } = set.score(shallow);
            let Score { deep_recall, ndcg: of_deep, .. } = set.score(deep);
            assert!((ndcg - of_deep).abs() < 0.05, "{name} {ranking}: {ndcg} or {of_deep}");
            println!("| `{name}` | {ranking} | {ndcg:.4} | {recall:.4} | {deep_recall:.4} |");
            if let Some(into) = &written {
                write_down(&into.join(format!("{name}-{ranking}.tsv")), shallow);
            }
        }
    }
}

fn write_down(path: &Path, run: &Run) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines = run.iter().flat_map(|(query, documents)| {
        let ranked = documents.iter().rev().zip(1..);
        ranked.map(move |(document, score)| format!("{query}\t{document}\t{score}\n"))
    });
    fs::write(path, lines.collect::<String>()).unwrap();
}
