//! The commands and their flags.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

/// Search over your own knowledge base: for AI assistants over MCP, and here.
#[derive(Debug, Parser)]
#[command(
    name = "groove",
    version,
    after_help = "Documentation: README.md and docs/ in the source tree",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Configuration file to use instead of the one that would be found; a file
    /// named here is trusted
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring the index up to date with the knowledge base
    Index(IndexArgs),
    /// Serve the knowledge base to an AI assistant over MCP
    Serve(ServeArgs),
    /// Search once and print the hits
    Search(Box<SearchArgs>),
    /// Print what is connected with a document
    Graph(Box<crate::graph::GraphArgs>),
    /// Say what the index holds
    Status(StatusArgs),
    /// Say what is wrong with the index, and what puts it right
    Doctor(crate::doctor::DoctorArgs),
    /// Check the frontmatter of all documents against the schema
    Validate(crate::validate::ValidateArgs),
    /// Say which models there are; get, check and measure them
    Models(crate::models::ModelsArgs),
    /// Say of one file whether it is indexed, and why, or why not
    Explain(crate::explain::ExplainArgs),
    /// Print the configuration in force
    Config(crate::settings::ConfigArgs),
    /// Measure the search on a judged set (not in this version)
    Eval(Box<crate::evaluate::EvalArgs>),
    /// Measure how the two legs of a search are best fused (not in this version)
    Tune(crate::evaluate::TuneArgs),
    /// Manage servers that start at login (not in this version)
    Service(crate::service::ServiceArgs),
    /// Print the completions of a shell
    Completions(crate::completions::CompletionsArgs),
    /// Print the manual page
    Man(crate::completions::ManArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KnowledgeBase {
    /// Root of the knowledge base; the index lies beside it as `.groove.db`
    #[arg(long, value_name = "PATH")]
    pub(crate) kb_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArg {
    /// Local embedding model: bge-small-en-v1.5 (English), all-minilm-l6-v2
    /// (English, small), multilingual-e5-small (about 100 languages), bge-m3 (100+
    /// languages, large), or dir: and the absolute path of a folder; must be the
    /// one that the index was built with; `groove models list` knows all
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RerankerArg {
    /// Cross-encoder that scores candidates again. bge-v2-m3 is recommended for
    /// Japanese; bge-base is for English and Chinese only; jina-v2-ml is
    /// licensed CC-BY-NC-4.0: research and evaluation only, no commercial use
    #[arg(long, value_name = "MODEL")]
    pub(crate) reranker: Option<RerankerName>,
}

impl RerankerName {
    /// The name that configuration knows it by.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::BgeV2M3 => "bge-v2-m3",
            Self::JinaV2Ml => "jina-v2-ml",
            Self::BgeBase => "bge-base",
            Self::MiniLmL6 => "minilm-l6",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RerankerName {
    None,
    #[value(name = "bge-v2-m3")]
    BgeV2M3,
    #[value(name = "jina-v2-ml")]
    JinaV2Ml,
    #[value(name = "bge-base")]
    BgeBase,
    #[value(name = "minilm-l6")]
    MiniLmL6,
}

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) kb: KnowledgeBase,
    /// Index every file anew; needed after a change of model
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) model: ModelArg,
    /// Leave out the line for each file; warnings and the summary stay
    #[arg(long, conflicts_with = "progress")]
    pub(crate) quiet: bool,
    /// Show progress instead of a line for each file
    #[arg(long)]
    pub(crate) progress: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) kb: KnowledgeBase,
    #[command(flatten)]
    pub(crate) model: ModelArg,
    #[command(flatten)]
    pub(crate) reranker: RerankerArg,
    /// Whether a configured reranker works when a caller does not say
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) rerank_by_default: Option<bool>,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// Do not follow changes on disk
    #[arg(long)]
    pub(crate) no_watch: bool,
    /// How long to wait for more changes on disk, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) debounce_ms: Option<u64>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct HttpArgs {
    /// How clients connect
    #[arg(long)]
    pub(crate) transport: Option<TransportName>,
    /// Port on 127.0.0.1, for --transport http; 0 lets the system choose
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Address and port, for --transport http
    #[arg(long, value_name = "ADDR", conflicts_with = "port")]
    pub(crate) bind: Option<std::net::SocketAddr>,
    /// Bind to an address that other machines reach, knowing that there is no
    /// authentication
    #[arg(long)]
    pub(crate) i_know: bool,
    /// Take the one socket that systemd passes, for --transport http (Linux)
    #[arg(long, conflicts_with_all = ["bind", "port"])]
    pub(crate) systemd_socket: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportName {
    Stdio,
    Http,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to look for. "two words" keeps words together, -word leaves out what holds
    /// it; a query that starts with - goes after --
    pub(crate) query: String,
    #[command(flatten)]
    pub(crate) kb: KnowledgeBase,
    #[command(flatten)]
    pub(crate) model: ModelArg,
    #[command(flatten)]
    pub(crate) reranker: RerankerArg,
    /// The most hits
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) limit: u32,
    /// json is stable; text is made for pasting into a prompt
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
    /// Only documents in this first folder
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// Only documents of this topic (frontmatter, else the second folder)
    #[arg(long)]
    pub(crate) topic: Option<String>,
    /// Only documents whose path matches; `!` in front excludes; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) path_glob: Vec<String>,
    /// Only documents with one of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) tag_any: Vec<String>,
    /// Only documents with all of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub(crate) tag_all: Vec<String>,
    /// Only documents with this date or a later one (compared as text)
    #[arg(long, value_name = "DATE")]
    pub(crate) date_from: Option<String>,
    /// Only documents with this date or an earlier one (compared as text)
    #[arg(long, value_name = "DATE")]
    pub(crate) date_to: Option<String>,
    /// Only documents whose frontmatter field has this value; may be repeated:
    /// the same key means one of the values, different keys all of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) field: Vec<(String, String)>,
    /// Leave out documents whose frontmatter field has this value; may be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) field_not: Vec<(String, String)>,
    /// The least quality of a chunk, from 0 to 1
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    pub(crate) min_quality: Option<f64>,
    /// Show chunks of any quality
    #[arg(long)]
    pub(crate) include_low_quality: bool,
    /// How far the best score must stand out for the answer to count as sure
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true, value_parser = ratio)]
    pub(crate) min_confidence_ratio: Option<f64>,
    /// Spread hits over different passages
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) mmr: Option<bool>,
    /// Relevance (1) against diversity (0)
    #[arg(long, value_name = "LAMBDA", allow_negative_numbers = true)]
    pub(crate) mmr_lambda: Option<f64>,
    /// What a second chunk of one document loses, from 0 to 1
    #[arg(long, value_name = "PENALTY", allow_negative_numbers = true)]
    pub(crate) mmr_same_doc_penalty: Option<f64>,
    /// Widen hits to their surroundings
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub(crate) parent_retriever: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Text,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) kb: KnowledgeBase,
    /// Tell what lowers the quality of chunks, with examples; reads every chunk
    #[arg(long)]
    pub(crate) quality: bool,
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| format!("{text:?} has no `=`; write KEY=VALUE"))
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio >= 0.0 => Ok(ratio),
        _ => Err("it must be a number of 0 or more".to_owned()),
    }
}

#[cfg(test)]
mod tests;
