//! How relevant answers are: nDCG@10 and recall@10 of each leg and of their
//! fusion, on judged sets of queries.
//!
//! `GROOVE_TEST_CORPORA` names the folder that holds `retrieval/`, and
//! `GROOVE_TEST_MODEL` the model's folder. Arguments name the sets.
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

use std::path::PathBuf;

use judged::{JudgedSet, Score, indexed, score};

fn main() {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(corpora), Some(model)) = (folder("GROOVE_TEST_CORPORA"), folder("GROOVE_TEST_MODEL"))
    else {
        println!("relevance: set GROOVE_TEST_CORPORA and GROOVE_TEST_MODEL");
        return;
    };
    let mut names: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if names.is_empty() {
        names = ["scifact", "jsquad"].map(str::to_owned).to_vec();
    }
    println!("| set | leg | nDCG@10 | recall@10 |\n|---|---|---|---|");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        let set = JudgedSet::read(&corpora.join("retrieval").join(&name));
        let kb = set.unpack(folder.path());
        let scores = runtime.block_on(async {
            let (groove, _) = indexed(&kb, &model).await;
            score(&set, &groove.searcher()).await
        });
        let row = |leg: &str, score: Score| {
            println!("| `{name}` | {leg} | {:.4} | {:.4} |", score.ndcg, score.recall);
        };
        row("dense", scores.dense);
        row("lexical", scores.lexical);
        row("hybrid", scores.hybrid);
    }
}
