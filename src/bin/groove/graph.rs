//! `groove graph`: what is connected with a document.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use grooveseek::app::wiring::{IndexFile, json};
use grooveseek::domain::graph::drawing::{self, Layout};
use grooveseek::domain::graph::{Graph, GraphRequest, Order, SeedStrategy};

use crate::cli::{KnowledgeBase, ModelArg, key_value};
use crate::config::LoadedConfig;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    /// Path of the document to start from, as a search result spells it
    #[arg(long, value_name = "PATH")]
    start: String,
    #[command(flatten)]
    kb: KnowledgeBase,
    #[command(flatten)]
    model: ModelArg,
    /// json is stable; the others may change: text, dot for Graphviz, svg,
    /// mermaid for Markdown viewers, graphml for programs that analyse graphs
    #[arg(long, value_enum, default_value_t = GraphFormat::Json)]
    format: GraphFormat,
    /// For svg: a column for each depth, or a ring, which suits many nodes
    #[arg(long, value_enum, default_value_t = LayoutName::Layered)]
    layout: LayoutName,
    /// The most hops; more than 3 counts as 3
    #[arg(long, value_name = "N", default_value_t = 2)]
    depth: u32,
    /// The most chunks found from each; more than 20 counts as 20
    #[arg(long, value_name = "N", default_value_t = 5)]
    fan_out: u32,
    /// The least similarity to the chunk from which one is found, from 0 to 1
    #[arg(long, value_name = "SCORE", default_value_t = 0.3, allow_negative_numbers = true)]
    min_similarity: f64,
    /// all-chunks: start from each chunk of the document; centroid: from their
    /// mean
    #[arg(long, value_name = "NAME", default_value = "all-chunks", value_parser = seed_strategy)]
    seed_strategy: String,
    /// Find each other document once at most
    #[arg(long)]
    dedup_by_path: bool,
    /// The most nodes; more than 2000 counts as 2000
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_nodes: u32,
    /// The most chunks of the start document that are read, from 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 32)]
    max_seed_chunks: u32,
    /// Find only documents in this first folder
    #[arg(long)]
    category: Option<String>,
    /// Find only documents of this topic (frontmatter, else the second folder)
    #[arg(long)]
    topic: Option<String>,
    /// Paths of documents to leave out, separated by commas
    #[arg(long, value_name = "PATHS", value_delimiter = ',')]
    exclude_paths: Vec<String>,
    /// Leave out documents whose path matches; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude_glob: Vec<String>,
    /// Find only documents whose path matches; `!` in front excludes; may be
    /// repeated
    #[arg(long, value_name = "GLOB")]
    path_glob: Vec<String>,
    /// Find only documents with one of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    tag_any: Vec<String>,
    /// Find only documents with all of these tags, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    tag_all: Vec<String>,
    /// Find only documents with this date or a later one (compared as text)
    #[arg(long, value_name = "DATE")]
    date_from: Option<String>,
    /// Find only documents with this date or an earlier one (compared as text)
    #[arg(long, value_name = "DATE")]
    date_to: Option<String>,
    /// Find only documents whose frontmatter field has this value; may be
    /// repeated: the same key means one of the values, different keys all of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    field: Vec<(String, String)>,
    /// Leave out documents whose frontmatter field has this value; may be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    field_not: Vec<(String, String)>,
    /// The least quality of a chunk that is found, from 0 to 1
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true)]
    min_quality: Option<f64>,
    /// Find chunks of any quality
    #[arg(long)]
    include_low_quality: bool,
    /// Which node is expanded next: breadth-first, the one found first;
    /// best-first, the one most similar to its parent
    #[arg(long, value_name = "NAME", default_value = "breadth-first", value_parser = order)]
    order: String,
    /// Stop looking further after this time
    #[arg(long, value_name = "MS")]
    time_budget_ms: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GraphFormat {
    Json,
    Text,
    Dot,
    Svg,
    Mermaid,
    Graphml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LayoutName {
    Layered,
    Radial,
}

/// Explores once and prints the graph.
pub(crate) async fn run(arguments: GraphArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let GraphArgs { format, layout, .. } = arguments;
    let (kb, model, request) = split(arguments);
    // What is wrong with the request alone is told before any file is opened.
    grooveseek::app::graph::check(&request)?;
    let groove = crate::open(&kb, &model, None, loaded, IndexFile::Existing).await?;
    let graph = groove.searcher().explorer().explore(&request).await;
    groove.close().await;
    print::result(&drawn(&graph?, format, layout)).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

fn drawn(graph: &Graph, format: GraphFormat, layout: LayoutName) -> String {
    match format {
        GraphFormat::Json => json::pretty(&json::graph(graph)) + "\n",
        GraphFormat::Text => drawing::text(graph),
        GraphFormat::Dot => drawing::dot(graph),
        GraphFormat::Svg => drawing::svg(
            graph,
            match layout {
                LayoutName::Layered => Layout::Layered,
                LayoutName::Radial => Layout::Radial,
            },
        ),
        GraphFormat::Mermaid => drawing::mermaid(graph),
        GraphFormat::Graphml => drawing::graphml(graph),
    }
}

fn split(arguments: GraphArgs) -> (KnowledgeBase, ModelArg, GraphRequest) {
    let request = GraphRequest {
        start: arguments.start,
        depth: Some(arguments.depth),
        fan_out: Some(arguments.fan_out),
        min_similarity: Some(arguments.min_similarity),
        seed_strategy: Some(arguments.seed_strategy),
        dedup_by_path: arguments.dedup_by_path,
        category: arguments.category,
        topic: arguments.topic,
        exclude_paths: arguments.exclude_paths,
        max_nodes: Some(arguments.max_nodes),
        max_seed_chunks: Some(arguments.max_seed_chunks),
        path_globs: (!arguments.path_glob.is_empty()).then_some(arguments.path_glob),
        exclude_globs: arguments.exclude_glob,
        tags_any: arguments.tag_any,
        tags_all: arguments.tag_all,
        date_from: arguments.date_from,
        date_to: arguments.date_to,
        fields: crate::by_key(arguments.field),
        fields_not: crate::by_key(arguments.field_not),
        min_quality: arguments.min_quality,
        include_low_quality: arguments.include_low_quality,
        order: Some(arguments.order),
        time_budget_ms: arguments.time_budget_ms,
    };
    (arguments.kb, arguments.model, request)
}

/// Keeps a name that is known; the error tells all of them.
fn seed_strategy(name: &str) -> Result<String, String> {
    name.parse::<SeedStrategy>().map(|_| name.to_owned()).map_err(|error| error.to_string())
}

fn order(name: &str) -> Result<String, String> {
    name.parse::<Order>().map(|_| name.to_owned()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn request(arguments: &[&str]) -> Result<GraphRequest, clap::Error> {
        let all = ["groove", "graph", "--start", "a.md"].iter().chain(arguments);
        match Cli::try_parse_from(all)?.command {
            Command::Graph(arguments) => Ok(split(*arguments).2),
            other => panic!("{other:?}"),
        }
    }

    // GRAPH-02 GRAPH-03 GRAPH-04 GRAPH-05 GRAPH-06 GRAPH-09 GRAPH-10 CLI-130
    #[test]
    fn what_is_not_given_is_what_a_call_without_it_means() {
        let given = request(&[]).unwrap();
        let bare = GraphRequest { start: "a.md".into(), ..GraphRequest::default() };
        assert_eq!(given.check(0.3), bare.check(0.3));
        assert_eq!(given.start, "a.md");
    }

    // GRAPH-01 GRAPH-05 GRAPH-06 GRAPH-07 GRAPH-08 GRAPH-B01 CLI-06 CLI-213
    #[test]
    fn lists_split_at_commas_and_what_may_be_repeated_does_not() {
        let given = request(&[
            "--exclude-paths",
            "b.md,c.md",
            "--exclude-glob",
            "x,y",
            "--exclude-glob",
            "z",
            "--path-glob",
            "d/**",
            "--tag-any",
            "a,b",
            "--tag-all=c",
            "--field",
            "status=open",
            "--field-not",
            "owner=x=y",
            "--seed-strategy",
            "all_chunks",
            "--order=best_first",
            "--dedup-by-path",
            "--category",
            "docs",
            "--topic",
            "mcp",
        ])
        .unwrap();
        assert_eq!(given.exclude_paths, ["b.md", "c.md"]);
        assert_eq!(given.exclude_globs, ["x,y", "z"]);
        assert_eq!(given.path_globs, Some(vec!["d/**".to_owned()]));
        assert_eq!((given.tags_any.len(), given.tags_all), (2, vec!["c".to_owned()]));
        assert_eq!(given.fields["status"], ["open"]);
        assert_eq!(given.fields_not["owner"], ["x=y"]);
        assert_eq!(given.seed_strategy.as_deref(), Some("all_chunks"));
        assert_eq!(given.order.as_deref(), Some("best_first"));
        assert!(given.dedup_by_path);
        assert_eq!(
            (given.category.as_deref(), given.topic.as_deref()),
            (Some("docs"), Some("mcp"))
        );
    }

    // GRAPH-04 GRAPH-05 GRAPH-11 GRAPH-12 CLI-22
    #[test]
    fn a_value_of_another_type_is_an_error_of_usage() {
        for arguments in [
            &["--depth", "-1"][..],
            &["--depth", "1.5"],
            &["--max-nodes", "4294967296"],
            &["--fan-out", "five"],
            &["--min-similarity", "high"],
            &["--seed-strategy", "both"],
            &["--order", "random"],
            &["--format", "png"],
        ] {
            assert_eq!(request(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
        let error = request(&["--seed-strategy", "both"]).unwrap_err().to_string();
        for spelling in ["all-chunks", "all_chunks", "centroid"] {
            assert!(error.contains(spelling), "{error}");
        }
        assert!(request(&["--depth", "4294967295", "--min-similarity", "-7"]).is_ok());
        assert!(Cli::try_parse_from(["groove", "graph"]).is_err(), "a start is needed");
    }
}
