//! `groove explain`: whether one path is indexed, and why, or why not.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use grooveseek::app::explain::{Explanation, Fate, Hidden, State, Stored};
use grooveseek::app::line::on_one_line;
use grooveseek::app::quality::beginning;
use grooveseek::app::wiring;
use serde_json::{Value, json};

use crate::cli::KnowledgeBase;
use crate::config::LoadedConfig;
use crate::print;
use crate::surroundings;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A file or folder: as a search result spells it, or as a path from here
    path: PathBuf,
    #[command(flatten)]
    kb: KnowledgeBase,
    /// text is for people; json is for programs; both may change
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    format: ExplainFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    Text,
    Json,
}

pub(crate) async fn run(arguments: ExplainArgs, loaded: LoadedConfig) -> anyhow::Result<ExitCode> {
    let kb_path = loaded.kb_path(arguments.kb.kb_path.as_deref())?;
    loaded.check_plugins(&kb_path)?;
    let working_dir = surroundings::working_dir()?;
    let key = key_of(&arguments.path, &kb_path, &working_dir);
    let threshold = loaded.config.search.min_quality;
    let (explanation, has_index) =
        wiring::explain(&kb_path, loaded.config, &working_dir, &key).await?;
    if !has_index {
        print::notice("there is no index yet; `groove index` makes one");
    }
    let text = match arguments.format {
        ExplainFormat::Text => as_text(&explanation, threshold),
        ExplainFormat::Json => wiring::json::pretty(&as_json(&explanation)) + "\n",
    };
    print::result(&text).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

/// The key of a path: what lies below the root, if the path leads there from
/// the working directory; else the path as it is.
fn key_of(path: &Path, kb_path: &Path, working_dir: &Path) -> String {
    let as_key = path.to_string_lossy();
    let is_explicit = path.is_absolute()
        || matches!(path.components().next(), Some(Component::CurDir | Component::ParentDir));
    if !is_explicit && kb_path.join(path).symlink_metadata().is_ok() {
        return as_key.trim_end_matches('/').to_owned();
    }
    // The last part may be a link, which is not to be followed.
    let absolute = working_dir.join(path);
    let below = absolute.parent().and_then(|parent| {
        let parent = parent.canonicalize().ok()?.join(absolute.file_name()?);
        let below = parent.strip_prefix(kb_path.canonicalize().ok()?).ok()?;
        let parts = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
        Some(parts.collect::<Vec<_>>().join("/"))
    });
    below.unwrap_or_else(|| as_key.trim_end_matches('/').to_owned())
}

fn as_text(explanation: &Explanation, threshold: f32) -> String {
    let Explanation { path, fate, stored } = explanation;
    let mut lines = vec![match fate {
        Fate::Indexed => format!("{path} is indexed."),
        Fate::Folder { documents } => {
            format!("{path} is a folder; {documents} document(s) below it are indexed.")
        }
        Fate::LeftOut { reason } => format!("{path} is not indexed: {reason}."),
        Fate::Missing => format!("{path} is not indexed: nothing is there."),
    }];
    match stored {
        None if matches!(fate, Fate::Indexed) => {
            lines.push("The index does not have it yet; run `groove index`.".to_owned());
        }
        None => {}
        Some(stored) => lines.extend(stored_as_text(stored, threshold)),
    }
    lines.iter().map(|line| on_one_line(line).into_owned() + "\n").collect()
}

fn stored_as_text(stored: &Stored, threshold: f32) -> Vec<String> {
    let Stored { document, state, chunks, pending, hidden } = stored;
    let mut lines = vec![format!("In the index since {}: {chunks} chunk(s).", document.indexed_at)];
    let outdated = match state {
        State::Current => None,
        State::Changed => Some("The file has changed since; run `groove index`."),
        State::CutOtherwise => Some("It would be cut otherwise now; run `groove index`."),
        State::Leaving => Some("The next `groove index` removes it."),
    };
    lines.extend(outdated.map(str::to_owned));
    if *pending > 0 {
        lines.push(format!("{pending} of them wait for their vectors; run `groove index`."));
    }
    if !hidden.is_empty() {
        lines.push(format!(
            "{} of them are hidden, because their quality is below {threshold}:",
            hidden.len()
        ));
    }
    lines.extend(hidden.iter().map(|Hidden { chunk, penalties }| {
        let heading = chunk.chunk.heading.as_deref().unwrap_or("(no heading)");
        let penalties = penalties.iter().map(|penalty| penalty.as_str());
        let penalties = penalties.collect::<Vec<_>>().join(", ");
        let text = beginning(&chunk.chunk.content);
        format!("  {heading}: {} ({penalties}): {text}", chunk.quality)
    }));
    lines
}

fn as_json(explanation: &Explanation) -> Value {
    let Explanation { path, fate, stored } = explanation;
    let (fate, reason, documents) = match fate {
        Fate::Indexed => ("indexed", None, None),
        Fate::Folder { documents } => ("folder", None, Some(documents)),
        Fate::LeftOut { reason } => ("left_out", Some(reason), None),
        Fate::Missing => ("missing", None, None),
    };
    let stored = stored.as_ref().map(|stored| {
        let hidden = stored.hidden.iter().map(|Hidden { chunk, penalties }| {
            json!({
                "heading": chunk.chunk.heading,
                "quality": chunk.quality,
                "penalties": penalties.iter().map(|penalty| penalty.as_str()).collect::<Vec<_>>(),
                "beginning": beginning(&chunk.chunk.content),
            })
        });
        json!({
            "indexed_at": stored.document.indexed_at,
            "state": match stored.state {
                State::Current => "current",
                State::Changed => "changed",
                State::CutOtherwise => "cut_otherwise",
                State::Leaving => "leaving",
            },
            "chunks": stored.chunks,
            "pending": stored.pending,
            "hidden": hidden.collect::<Vec<_>>(),
        })
    });
    json!({
        "path": path,
        "fate": fate,
        "reason": reason,
        "documents": documents,
        "in_index": stored,
    })
}
