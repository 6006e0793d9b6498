//! How relevant answers are: nDCG@10 and recall@10 of each leg and of their
//! fusion, on judged sets of queries, with documents embedded in f32 and in
//! integers.
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

use grooveseek::app::wiring::PrecisionChoice;
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
    println!("| set | documents | leg | nDCG@10 | recall@10 |\n|---|---|---|---|---|");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let precisions = [(PrecisionChoice::F32, "f32"), (PrecisionChoice::Int8, "integers")];
    for name in names {
        let set = JudgedSet::read(&corpora.join("retrieval").join(&name));
        for (precision, shown) in precisions {
            let folder = tempfile::tempdir().unwrap();
            let kb = set.unpack(folder.path());
            let scores = runtime.block_on(async {
                let (groove, _) = indexed(&kb, &model, precision).await;
                score(&set, &groove.searcher()).await
            });
            let row = |leg: &str, score: Score| {
                let Score { ndcg, recall } = score;
                println!("| `{name}` | {shown} | {leg} | {ndcg:.4} | {recall:.4} |");
            };
            row("dense", scores.dense);
            row("lexical", scores.lexical);
            row("hybrid", scores.hybrid);
        }
    }
}
