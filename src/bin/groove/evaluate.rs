//! `groove eval` and `groove tune`: their flags, and what they need.
//!
//! The measurements themselves are not part of this version.

use std::path::{Path, PathBuf};

use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgAction, Args, ValueEnum};

use crate::cli::{KnowledgeBase, ModelArg, RerankerArg};
use crate::config::LoadedConfig;
use crate::surroundings;

/// The judged set in the root of a knowledge base.
const GOLDEN_FILE: &str = ".groove-eval.yml";

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(flatten)]
    judged: JudgedSet,
    #[command(flatten)]
    reranker: RerankerArg,
    /// Neither read nor write the history of runs
    #[arg(long)]
    no_history: bool,
    /// Do not compare with an earlier run
    #[arg(long)]
    no_diff: bool,
    /// End with 1 if a measure has fallen by more than
    /// `[eval].regression_threshold`
    #[arg(long)]
    fail_on_regression: bool,
    /// Spread hits over different passages
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    mmr: Option<bool>,
    /// Relevance (1) against diversity (0)
    #[arg(long, value_name = "LAMBDA", allow_negative_numbers = true)]
    mmr_lambda: Option<f64>,
    /// What a second chunk of one document loses, from 0 to 1
    #[arg(long, value_name = "PENALTY", allow_negative_numbers = true)]
    mmr_same_doc_penalty: Option<f64>,
    /// Widen hits to their surroundings
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    parent_retriever: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    #[command(flatten)]
    judged: JudgedSet,
}

/// What both commands take.
#[derive(Debug, Args)]
struct JudgedSet {
    #[command(flatten)]
    kb: KnowledgeBase,
    #[command(flatten)]
    model: ModelArg,
    /// The judged set [default: .groove-eval.yml in the knowledge base]
    #[arg(long, value_name = "PATH")]
    golden: Option<PathBuf>,
    /// The cut-offs, separated by commas [default: 1,5,10]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    k: Vec<usize>,
    /// The most hits of each query [default: the largest cut-off]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// How the report is written; both may change
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// No colours
    #[arg(long)]
    no_color: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    Text,
    Json,
}

/// Measures the service on a judged set.
pub(crate) fn eval(arguments: &EvalArgs, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
    let shares = [
        ("--mmr-lambda", arguments.mmr_lambda),
        ("--mmr-same-doc-penalty", arguments.mmr_same_doc_penalty),
    ];
    for (flag, share) in shares {
        if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            bail!("{flag} has to be a number from 0 to 1");
        }
    }
    arguments.judged.refuse("groove eval", loaded)
}

/// Measures how the two legs of a search are best fused.
pub(crate) fn tune(arguments: &TuneArgs, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
    arguments.judged.refuse("groove tune", loaded)
}

impl JudgedSet {
    /// Says what keeps the command from working: a judged set that is not there,
    /// else this version.
    fn refuse(&self, command: &str, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
        let kb_path = loaded.kb_path(self.kb.kb_path.as_deref())?;
        let golden = self.golden(&kb_path, loaded)?;
        if golden.symlink_metadata().is_err() {
            bail!(
                "no golden file at {}: write one there (a list `queries`, each with a `query` and \
                 the paths that are `expected`), or name another with --golden",
                golden.display()
            );
        }
        bail!("{command} cannot measure in this version; nothing was read or changed")
    }

    /// The flag, else the key, else the file in the root.
    fn golden(&self, kb_path: &Path, loaded: &LoadedConfig) -> anyhow::Result<PathBuf> {
        Ok(match (&self.golden, &loaded.config.evaluation.golden) {
            (Some(flag), _) => surroundings::working_dir()?.join(flag),
            (None, Some(key)) => key.clone(),
            (None, None) => kb_path.join(GOLDEN_FILE),
        })
    }
}
