//! `groove models`: which there are, and getting, checking and measuring them.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use grooveseek::app::wiring::models::{self, Benchmark, Card, Proof, Role, Trial};
use grooveseek::app::wiring::{EngineChoice, Progress, ProgressSink, Surroundings, json};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::cli::Format;
use crate::config::LoadedConfig;
use crate::print;
use crate::surroundings;

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    #[command(subcommand)]
    command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
enum ModelsCommand {
    /// Say which models are known, which are here, and what would run them
    List {
        /// Members of json may be added
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
    /// Download a model and print its folder; what broke off is continued
    #[command(
        after_help = "HF_ENDPOINT, HF_TOKEN, HTTPS_PROXY, ALL_PROXY and NO_PROXY are honoured"
    )]
    Pull {
        /// Name of the model or reranker
        name: String,
        /// For which engine: safetensors for native, ONNX files for onnx
        #[arg(long, value_enum, default_value_t = EngineName::Auto)]
        engine: EngineName,
    },
    /// Take a model in from a folder or an archive, for a machine without a
    /// network: it is tried first and then put into the models directory
    Import {
        /// Folder, .zip, .whl, .tar, .tar.gz or .tgz that holds one model
        source: PathBuf,
        /// Name of a known model, or one of your own; needed unless the folder
        /// or archive is called like a known model
        #[arg(long)]
        name: Option<String>,
    },
    /// Check the checksums of a model's files (of all that are here without a
    /// name), load it and try it
    Verify {
        /// Name of the model or reranker
        name: Option<String>,
    },
    /// Print the folder of a model (the configured one without a name)
    Path {
        /// Name of the model or reranker
        name: Option<String>,
    },
    /// Measure a model (all that are here without a name) on this machine
    Bench {
        /// Name of the model
        name: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineName {
    Auto,
    Native,
    Onnx,
}

pub(crate) async fn run(arguments: ModelsArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let mut surroundings = surroundings::of(&loaded)?;
    let config = &loaded.config;
    match arguments.command {
        ModelsCommand::List { format } => {
            let cards = models::list(config, &surroundings);
            tell(&match format {
                Format::Text => list_as_text(&cards),
                Format::Json => list_as_json(&cards),
            })
        }
        ModelsCommand::Pull { name, engine } => pull(&name, engine, &mut surroundings).await,
        ModelsCommand::Import { source, name } => {
            let imported = models::import(&source, name.as_deref(), &surroundings).await?;
            print::notice(&match imported.ran {
                Ok(engine) => format!(
                    "imported {}; it runs on {} ({}). Use it with model = {:?}",
                    imported.name, engine.name, engine.precision, imported.model_key
                ),
                Err(why) => format!("imported {} without trying it: {why}", imported.name),
            });
            tell(&format!("{}\n", imported.root.display()))
        }
        ModelsCommand::Verify { name } => {
            let trials = models::verify(name.as_deref(), &surroundings).await?;
            if trials.is_empty() {
                print::notice("no model is here; `groove models pull NAME` gets one");
            }
            tell(&trials_as_text(&trials))?;
            let fine = trials.iter().all(Trial::is_fine);
            Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        ModelsCommand::Path { name } => {
            let name = name.as_deref().unwrap_or(&config.model);
            tell(&format!("{}\n", models::path(name, &surroundings)?.display()))
        }
        ModelsCommand::Bench { name } => {
            print::notice("measuring; this takes a while for each model and engine");
            let measured = models::bench(name.as_deref(), &surroundings).await?;
            if measured.is_empty() {
                print::notice("no model is here; `groove models pull NAME` gets one");
            }
            tell(&bench_as_text(&measured))
        }
    }
}

fn tell(text: &str) -> anyhow::Result<ExitCode> {
    print::result(text).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

async fn pull(
    name: &str,
    engine: EngineName,
    surroundings: &mut Surroundings,
) -> anyhow::Result<ExitCode> {
    let engine = match engine {
        EngineName::Auto => EngineChoice::Auto,
        EngineName::Native => EngineChoice::Native,
        EngineName::Onnx => EngineChoice::Onnx,
    };
    surroundings.hub.progress = Some(progress());
    let pulled = models::pull(name, engine, surroundings).await?;
    if pulled.was_here {
        print::notice(&format!("{name} is here already"));
    }
    if let Some(missing) = pulled.missing {
        print::notice(&format!("warning: {name} is ONNX: {missing}"));
    }
    tell(&format!("{}\n", pulled.root.display()))
}

/// A bar on a terminal, a line for each twentieth of a file elsewhere.
fn progress() -> ProgressSink {
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style =
            "{elapsed_precise} [{bar:30}] {bytes}/{total_bytes} ({percent}%) {msg} eta {eta}";
        let style = ProgressStyle::with_template(style)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        bar.set_style(style);
        bar
    });
    let told: Mutex<Option<(String, u64)>> = Mutex::new(None);
    Arc::new(move |progress: Progress| {
        let Progress { file, done_bytes, total_bytes } = progress;
        let Some(total) = total_bytes.filter(|total| *total > 0) else { return };
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_message(file);
            bar.set_position(done_bytes);
            if done_bytes >= total {
                bar.finish_and_clear();
            }
            return;
        }
        let step = done_bytes * 20 / total;
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref().is_some_and(|(last, at)| *last == file && *at >= step) {
            return;
        }
        let percent = done_bytes * 100 / total;
        print::notice(&format!("Progress: {file} {done_bytes}/{total} ({percent}%)"));
        *told = Some((file, step));
    })
}

fn role(card: &Card) -> &'static str {
    match card.role {
        Role::Embedding => "embedding",
        Role::Reranker => "reranker",
    }
}

fn list_as_text(cards: &[Card]) -> String {
    let width = cards.iter().map(|card| card.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for card in cards {
        let dimension = card.dimension.map(|numbers| format!(", {numbers} numbers"));
        let here = match (card.holdings.is_empty(), card.engine) {
            (true, _) => "not here".to_owned(),
            (false, Some(engine)) => format!("here, runs on {engine}"),
            (false, None) => "here, but no ONNX Runtime to run it".to_owned(),
        };
        let configured = if card.configured { " (configured)" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:width$}  {}{}; {}; {}; about {} MB; {here}{configured}",
            card.name,
            role(card),
            dimension.unwrap_or_default(),
            card.languages,
            card.licence,
            card.download_mb,
        );
        for holding in &card.holdings {
            let (format, root) = (holding.format.as_str(), holding.root.display());
            let _ = writeln!(text, "{:width$}    {format}: {root}", "");
        }
    }
    text
}

fn list_as_json(cards: &[Card]) -> String {
    let models: Vec<_> = cards
        .iter()
        .map(|card| {
            let holdings = card.holdings.iter().map(|holding| {
                json!({ "format": holding.format.as_str(), "path": holding.root.to_string_lossy() })
            });
            json!({
                "name": card.name,
                "role": role(card),
                "dimension": card.dimension,
                "languages": card.languages,
                "licence": card.licence,
                "download_mb": card.download_mb,
                "configured": card.configured,
                "here": holdings.collect::<Vec<_>>(),
                "engine": card.engine,
            })
        })
        .collect();
    json::pretty(&json!({ "models": models })) + "\n"
}

fn trials_as_text(trials: &[Trial]) -> String {
    let mut text = String::new();
    for trial in trials {
        let (format, root) = (trial.format.as_str(), trial.root.display());
        let _ = writeln!(text, "{} ({format}) in {root}", trial.name);
        for file in &trial.files {
            let proof = match &file.proof {
                Proof::Published => "as published".to_owned(),
                Proof::Recorded => "as recorded when it came here".to_owned(),
                Proof::Unknown => "no checksum is known to compare it with".to_owned(),
                Proof::Mismatch(expected) => format!("WRONG, it should be {expected}"),
            };
            let name = file.path.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(text, "  {name}: {} {proof}", file.sha256);
        }
        let _ = match &trial.ran {
            Ok(engine) => writeln!(text, "  works on {} ({})", engine.name, engine.precision),
            Err(why) => writeln!(text, "  does not work: {why}"),
        };
    }
    text
}

fn bench_as_text(measured: &[Benchmark]) -> String {
    let width = measured.iter().map(|one| one.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Benchmark { name, engine, speed } in measured {
        let what = format!("{} {}", engine.name, engine.precision);
        let _ = match speed {
            Ok(speed) => writeln!(
                text,
                "{name:width$}  {what:12}  {:8.1} texts/s  {:7.2} ms a query",
                speed.texts_per_second,
                speed.query.as_secs_f64() * 1000.0
            ),
            Err(why) => writeln!(text, "{name:width$}  {what:12}  cannot run: {why}"),
        };
    }
    let best = measured.iter().filter_map(|one| Some((one, one.speed.as_ref().ok()?)));
    let best = best.max_by(|(_, a), (_, b)| a.texts_per_second.total_cmp(&b.texts_per_second));
    if let Some((Benchmark { name, engine, .. }, _)) = best {
        let _ = writeln!(
            text,
            "fastest here: model = {name:?} with engine {} and precision {}; a larger model finds \
             more in other languages",
            engine.name, engine.precision
        );
    }
    text
}
