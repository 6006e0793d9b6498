//! The `groove` program: arguments, wiring, exit codes.

mod answer;
mod cli;
mod completions;
mod config;
mod doctor;
mod evaluate;
mod explain;
mod graph;
mod http;
mod models;
mod print;
mod service;
mod settings;
mod skips;
mod surroundings;
mod validate;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use grooveseek::app::error::{AppError, chain};
use grooveseek::app::index::{Clock, Observer};
use grooveseek::app::line::on_one_line;
use grooveseek::app::place::Place;
use grooveseek::app::search::Patience;
use grooveseek::app::service::Service;
use grooveseek::app::wiring::http::HttpServer;
use grooveseek::app::wiring::{self, Groove, IndexFile, json};
use grooveseek::domain::document::DocumentPath;
use grooveseek::domain::search::SearchRequest;
use tracing_subscriber::EnvFilter;

use crate::cli::{
    Cli, Command, Format, IndexArgs, KnowledgeBase, ModelArg, RerankerArg, SearchArgs, ServeArgs,
    StatusArgs,
};
use crate::config::LoadedConfig;
use crate::http::Way;
use crate::print::{Console, Detail};

fn main() -> ExitCode {
    // Arguments that cannot be parsed end the process here, with status 2.
    let cli = Cli::parse();
    log_to_stderr();
    let failed = match cli.command {
        // Its 1 says that it has found something.
        Command::Doctor(_) => ExitCode::from(2),
        _ => ExitCode::FAILURE,
    };
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start")
        .and_then(|runtime| {
            let outcome = runtime.block_on(run(cli));
            // A model that is still being loaded must not delay the exit.
            runtime.shutdown_background();
            outcome
        });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            print::notice(&format!("error: {}", one_line(&error)));
            let error = error.downcast_ref::<AppError>();
            if let Some(answer) = error.and_then(AppError::answer_of_endpoint) {
                print::notice(&format!("the endpoint answered: {answer}"));
            }
            failed
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let load =
        || config::load(cli.config.as_deref(), &wiring::model_names(), &wiring::reranker_names());
    match cli.command {
        Command::Index(arguments) => index(arguments, load()?).await,
        Command::Serve(arguments) => serve(arguments, load()?).await,
        Command::Search(arguments) => search(*arguments, load()?).await,
        Command::Graph(arguments) => graph::run(*arguments, load()?).await,
        Command::Status(arguments) => status(arguments, load()?).await,
        Command::Doctor(arguments) => doctor::run(arguments, load()?).await,
        Command::Validate(arguments) => validate::run(arguments, load()?).await,
        Command::Models(arguments) => models::run(arguments, load()?).await,
        Command::Explain(arguments) => explain::run(arguments, load()?).await,
        Command::Config(arguments) => settings::run(&arguments, &load()?),
        Command::Eval(arguments) => evaluate::eval(&arguments, &load()?),
        Command::Tune(arguments) => evaluate::tune(&arguments, &load()?),
        // These need no configuration, so that none keeps them from working.
        Command::Service(arguments) => service::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => completions::man(&arguments),
    }
}

async fn index(arguments: IndexArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let file = if arguments.force { IndexFile::Replaced } else { IndexFile::Created };
    check_schema(&arguments.kb, &loaded)?;
    let groove = open(&arguments.kb, &arguments.model, None, loaded, file).await?;
    let detail = match (arguments.quiet, arguments.progress) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Progress,
        _ => Detail::Files,
    };
    let console: Arc<dyn Observer> =
        Arc::new(Console::new(detail, groove.place().root.display().to_string()));
    let report = groove.indexer(clock()).run(arguments.force, &console).await;
    groove.close().await;
    match report?.failure {
        Some(failure) => bail!(failure),
        None => Ok(ExitCode::SUCCESS),
    }
}

async fn search(arguments: SearchArgs, mut loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let SearchArgs { format, .. } = arguments;
    // Who names a reranker for one query wants it, whatever the file says.
    loaded.config.rerank_by_default |= arguments.reranker.reranker.is_some();
    let (kb, model, reranker, request) = split(arguments);
    // What is wrong with the request alone is told before any file is opened.
    grooveseek::app::search::check(&request, &loaded.config.search)?;
    let groove = open(&kb, &model, Some(&reranker), loaded, IndexFile::Existing).await?;
    let found = groove.searcher().search(&request, Patience::Wait).await;
    groove.close().await;
    let found = found?;
    let text = match format {
        Format::Json => json::pretty(&json::search_answer(&found)) + "\n",
        Format::Text => answer::as_text(&found, surroundings::emphasis()),
    };
    print::result(&text).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(arguments: ServeArgs, mut loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let way = http::way(&arguments.http, &loaded.config.transport)?;
    let (settings, config_source) = (loaded.config.transport.http.clone(), loaded.source);
    loaded.config.watch.enabled &= !arguments.no_watch;
    if let Some(by_default) = arguments.rerank_by_default {
        loaded.config.rerank_by_default = by_default;
    }
    if let Some(debounce_ms) = arguments.debounce_ms {
        loaded.config.watch.debounce = Duration::from_millis(debounce_ms);
    }
    // It stops what would change the index, not what is served meanwhile.
    if let Err(error) = check_schema(&arguments.kb, &loaded)
        && let Some(AppError::Schema { .. }) = error.downcast_ref()
    {
        tracing::warn!("{}", one_line(&error));
    }
    let groove = open(
        &arguments.kb,
        &arguments.model,
        Some(&arguments.reranker),
        loaded,
        IndexFile::Created,
    )
    .await?;
    let summary = groove.summary().await?;
    if summary.documents == 0 && !groove.builds_on_serve() {
        tracing::warn!(
            index = %groove.place().index.display(),
            "the index is empty; run `groove index`, or have the assistant call rebuild_index"
        );
    }
    let http_server = match &way {
        Way::Stdio => None,
        Way::Http(from) => Some(HttpServer::listen(from, &settings)?),
    };
    let groove = Arc::new(groove);
    let service = Arc::new(groove.service(clock()));
    tokio::spawn(warm_up(Arc::clone(&groove)));
    let building = groove.builds_on_serve().then(|| tokio::spawn(build(Arc::clone(&service))));
    let watching = groove.watcher(clock()).map(|watcher| tokio::spawn(watcher.run()));
    let stop = Box::pin(async {
        asked_to_stop().await;
        // What was taken is still answered; who asks twice does not want to wait
        // for it. Everything that is committed stays.
        tokio::spawn(async {
            asked_to_stop().await;
            std::process::exit(130);
        });
    });
    let way = match &http_server {
        None => "standard input and output".to_owned(),
        Some(server) => format!("HTTP, listening on {}", http::place(server.listening())),
    };
    let (documents, chunks) = (summary.documents, summary.chunks);
    tracing::info!(root = %groove.place().root.display(), documents, chunks, "serving over {way}");
    let served = match http_server {
        None => wiring::serve_stdio(service, stop).await,
        Some(server) => http::serve(server, &groove, service, config_source, stop).await,
    };
    for task in [building, watching].into_iter().flatten() {
        task.abort();
    }
    groove.close().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Completes when the system or a person asks the process to stop.
#[cfg(unix)]
async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};

    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        Ok(()) = tokio::signal::ctrl_c() => {}
        () = terminated => {}
        else => std::future::pending().await,
    }
}

/// Completes when a person asks the process to stop.
#[cfg(not(unix))]
async fn asked_to_stop() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Brings the index up to date beside everything else. Tries again while that
/// fails: texts can be searched meanwhile, and a model may yet come.
async fn build(service: Arc<Service>) {
    let mut pauses = Pauses::default();
    while let Err(error) = service.build().await {
        pauses.after(&error, "the index cannot be brought up to date").await;
    }
}

/// Warns of documents that the next run over everything would remove.
async fn warn_of_unread(groove: &Groove) {
    let Ok(unread) = groove.unread_documents().await else { return };
    if unread.is_empty() {
        return;
    }
    let examples: Vec<&str> = unread.iter().take(3).map(DocumentPath::as_str).collect();
    tracing::warn!(
        "{} document(s) of the index have no parser that is switched on ({}); they stay until the \
         next `groove index`, which removes them; enable their formats in [parsers].enabled, or \
         run `groove index`",
        unread.len(),
        on_one_line(&examples.join(", "))
    );
}

/// Loads the model beside everything else; the handshake and answers from the
/// text do not wait for it. Tries again while it cannot be had, since a network
/// may come back.
async fn warm_up(groove: Arc<Groove>) {
    warn_of_unread(&groove).await;
    let mut pauses = Pauses::default();
    loop {
        match groove.warm_up().await {
            Ok(engine) => {
                let (engine, precision) = (engine.name, engine.precision);
                tracing::info!(engine, precision, "ready: searches use the embedding model");
                break;
            }
            Err(error) => {
                let missing = "the embedding model cannot be loaded; searches are answered from \
                               the text";
                pauses.after(&error, missing).await;
            }
        }
    }
    let mut pauses = Pauses::default();
    while let Err(error) = groove.warm_up_reranker().await {
        let missing = "the reranker cannot be loaded; hits keep their fused order";
        pauses.after(&error, missing).await;
    }
}

/// Waits longer from one failure to the next.
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(Duration::from_secs(5))
    }
}

impl Pauses {
    async fn after(&mut self, error: &AppError, missing: &'static str) {
        let error = grooveseek::app::error::chain(error);
        tracing::error!(error, retry_in_s = self.0.as_secs(), "{missing}");
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_mins(5));
    }
}

async fn status(arguments: StatusArgs, mut loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let kb_path = loaded.kb_path(arguments.kb.kb_path.as_deref())?;
    let rules = arguments.quality.then_some(&loaded.config.index.quality);
    let (place, status) = wiring::status_of(&kb_path, &surroundings::working_dir()?, rules).await?;
    let Some(status) = status else {
        print::notice(&no_index(&place));
        return Ok(ExitCode::SUCCESS);
    };
    let min_quality = loaded.config.search.min_quality;
    let mut text = print::status_as_text(&status, min_quality);
    // The engine is that of the model which the index was built with.
    let recorded = status.summary.identity.as_ref().map(|identity| identity.model.as_str());
    if let Some(name) = recorded.filter(|name| wiring::model_names().contains(name)) {
        loaded.config.use_local_model(name);
    }
    // A place for models that cannot be told is no failure of this command.
    if let Ok(surroundings) = surroundings::of(&loaded) {
        let engine = wiring::models::engine_of(&loaded.config, &surroundings);
        text.extend(["Engine: ", &engine, "\n"]);
    }
    if let Some(report) = &status.quality {
        text.push_str(&print::quality_as_text(report));
    }
    print::result(&text).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

/// Looks at the schema before there is an index that a bad one would leave
/// behind.
fn check_schema(kb: &KnowledgeBase, loaded: &LoadedConfig) -> anyhow::Result<()> {
    let kb_path = loaded.kb_path(kb.kb_path.as_deref())?;
    wiring::upkeep::check_schema(&kb_path, &loaded.config, &surroundings::working_dir()?)?;
    Ok(())
}

/// Opens the knowledge base that flags and configuration name.
async fn open(
    kb: &KnowledgeBase,
    model: &ModelArg,
    reranker: Option<&RerankerArg>,
    mut loaded: LoadedConfig,
    file: IndexFile,
) -> anyhow::Result<Groove> {
    let kb_path = loaded.kb_path(kb.kb_path.as_deref())?;
    loaded.check_plugins(&kb_path)?;
    if let Some(model) = &model.model {
        loaded.config.use_local_model(model);
    }
    match reranker {
        Some(RerankerArg { reranker: Some(name) }) => {
            name.as_str().clone_into(&mut loaded.config.reranker);
        }
        Some(RerankerArg { reranker: None }) => {}
        None => "none".clone_into(&mut loaded.config.reranker),
    }
    let surroundings = surroundings::of(&loaded)?;
    if let Some(groove) = Groove::open(&kb_path, loaded.config, &surroundings, file).await? {
        return Ok(groove);
    }
    let place = Place::of(&kb_path, &surroundings.working_dir, std::path::Path::canonicalize)?;
    bail!(no_index(&place))
}

fn no_index(place: &Place) -> String {
    format!(
        "No index found at {}; run `groove index --kb-path {}` first",
        place.index.display(),
        place.root.display()
    )
}

fn clock() -> Clock {
    Arc::new(|| jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Logs go to standard error whatever the command; `RUST_LOG` says which.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        // A library's chatter about its own start, and about what clients do wrong, is
        // nothing to an operator.
        EnvFilter::new("info,rmcp=error,ort=warn")
    });
    // At its most talkative this one shows what is sent, keys included.
    let quiet = ["ureq=info", "ureq_proto=info"].into_iter().filter_map(|it| it.parse().ok());
    let filter = quiet.fold(filter, EnvFilter::add_directive);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// An error with its causes, on one line.
fn one_line(error: &anyhow::Error) -> String {
    on_one_line(&chain(error.as_ref())).into_owned()
}

fn split(arguments: SearchArgs) -> (KnowledgeBase, ModelArg, RerankerArg, SearchRequest) {
    let request = SearchRequest {
        query: arguments.query,
        limit: Some(arguments.limit),
        category: arguments.category,
        topic: arguments.topic,
        path_globs: (!arguments.path_glob.is_empty()).then_some(arguments.path_glob),
        tags_any: arguments.tag_any,
        tags_all: arguments.tag_all,
        date_from: arguments.date_from,
        date_to: arguments.date_to,
        fields: by_key(arguments.field),
        fields_not: by_key(arguments.field_not),
        min_quality: arguments.min_quality,
        include_low_quality: arguments.include_low_quality,
        rerank: None,
        min_confidence_ratio: arguments.min_confidence_ratio,
        mmr: arguments.mmr,
        mmr_lambda: arguments.mmr_lambda,
        mmr_same_doc_penalty: arguments.mmr_same_doc_penalty,
        parent_retriever: arguments.parent_retriever,
    };
    (arguments.kb, arguments.model, arguments.reranker, request)
}

fn by_key(pairs: Vec<(String, String)>) -> BTreeMap<String, Vec<String>> {
    let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in pairs {
        map.entry(key).or_default().push(value);
    }
    map
}
