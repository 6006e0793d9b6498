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
    /// Say which models there are; get, check and measure them
    Models(crate::models::ModelsArgs),
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
    /// What to look for. "…" keeps words together, -word leaves out what holds
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
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("groove").chain(arguments.iter().copied()))
    }

    fn search(arguments: &[&str]) -> SearchArgs {
        let arguments: Vec<&str> =
            ["search"].into_iter().chain(arguments.iter().copied()).collect();
        match parse(&arguments).unwrap().command {
            Command::Search(arguments) => *arguments,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    // CLI-45
    #[test]
    fn quiet_and_progress_exclude_each_other() {
        assert_eq!(parse(&["index", "--quiet", "--progress"]).unwrap_err().exit_code(), 2);
        assert!(parse(&["index", "--quiet"]).is_ok());
    }

    // CLI-04
    #[test]
    fn the_configuration_may_be_named_before_or_after_the_command() {
        for arguments in [["--config", "x.toml", "status"], ["status", "--config", "x.toml"]] {
            assert_eq!(parse(&arguments).unwrap().config, Some(PathBuf::from("x.toml")));
        }
    }

    // CLI-06 CLI-90 CLI-91
    #[test]
    fn comma_lists_split_and_repeatable_flags_do_not() {
        let arguments = search(&[
            "q",
            "--path-glob",
            "a,b",
            "--path-glob",
            "c",
            "--tag-any",
            "x,y",
            "--tag-any",
            "z",
        ]);
        assert_eq!(arguments.path_glob, ["a,b", "c"]);
        assert_eq!(arguments.tag_any, ["x", "y", "z"]);
    }

    // CLI-94
    #[test]
    fn a_field_splits_at_its_first_equals_sign() {
        let arguments = search(&["q", "--field", "status=a=b"]);
        assert_eq!(arguments.field, [("status".to_owned(), "a=b".to_owned())]);
        assert!(parse(&["search", "q", "--field", "status"]).is_err());
    }

    // CLI-07
    #[test]
    fn a_valued_switch_takes_its_value_with_or_without_an_equals_sign() {
        assert_eq!(search(&["q", "--mmr", "true"]).mmr, Some(true));
        assert_eq!(search(&["q", "--mmr=false"]).mmr, Some(false));
        assert!(parse(&["search", "q", "--mmr"]).is_err());
    }

    // CLI-106
    #[test]
    fn a_confidence_ratio_that_is_no_ratio_is_refused() {
        for ratio in ["-1", "NaN", "inf", "x"] {
            assert!(parse(&["search", "q", "--min-confidence-ratio", ratio]).is_err(), "{ratio}");
        }
        assert_eq!(search(&["q", "--min-confidence-ratio", "0"]).min_confidence_ratio, Some(0.0));
    }

    // CLI-85 CLI-86 CLI-87 CLI-88 CLI-89 CLI-92 CLI-93 CLI-95 CLI-96 CLI-97 CLI-98 CLI-99
    // CLI-100 CLI-101 CLI-102 CLI-103
    #[test]
    fn every_flag_of_a_search_arrives_and_has_its_default() {
        let plain = search(&["q"]);
        assert_eq!((plain.query.as_str(), plain.limit), ("q", 5));
        assert!(matches!(plain.format, Format::Json) && !plain.include_low_quality);
        assert_eq!((plain.mmr, plain.parent_retriever, plain.min_quality), (None, None, None));
        assert!(plain.reranker.reranker.is_none());
        let line = "q --limit 7 --format text --category c --topic t --tag-all a,b --date-from 1 \
                    --date-to 2 --field k=v --field k=w --field-not k=x --min-quality 0.5 \
                    --include-low-quality --min-confidence-ratio 2 --mmr true --mmr-lambda 0.5 \
                    --mmr-same-doc-penalty 0.25 --parent-retriever false --reranker none";
        let given = search(&line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(given.limit, 7);
        assert!(matches!(given.format, Format::Text) && given.include_low_quality);
        let texts = [given.category, given.topic, given.date_from, given.date_to];
        assert_eq!(texts.map(Option::unwrap), ["c", "t", "1", "2"]);
        assert_eq!(given.tag_all, ["a", "b"]);
        let pair = |value: &str| ("k".to_owned(), value.to_owned());
        assert_eq!(given.field, [pair("v"), pair("w")]);
        assert_eq!(given.field_not, [pair("x")]);
        let numbers = [
            given.min_quality,
            given.min_confidence_ratio,
            given.mmr_lambda,
            given.mmr_same_doc_penalty,
        ];
        assert_eq!(numbers, [Some(0.5), Some(2.0), Some(0.5), Some(0.25)]);
        assert_eq!((given.mmr, given.parent_retriever), (Some(true), Some(false)));
        assert!(given.reranker.reranker.is_some());
        assert!(parse(&["search"]).is_err());
    }

    // CLI-107
    #[test]
    fn a_query_that_starts_with_a_hyphen_follows_two_hyphens() {
        assert_eq!(search(&["--", "-async rust"]).query, "-async rust");
        assert!(parse(&["search", "-async rust"]).is_err());
    }
}
