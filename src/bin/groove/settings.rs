//! `groove config check`: what holds, and where it comes from.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use grooveseek::app::config_file::{
    Directory, DirectoryError, Origin, Setting, SettingOrigin, SettingValue,
};
use grooveseek::app::line::on_one_line;
use serde_json::{Value, json};

use crate::config::LoadedConfig;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print what holds for every key, and where it comes from
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// text can be read as a configuration file; json is for programs; both may
    /// change
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    format: CheckFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CheckFormat {
    Text,
    Json,
}

pub(crate) fn run(arguments: &ConfigArgs, loaded: &LoadedConfig) -> anyhow::Result<ExitCode> {
    let ConfigCommand::Check(CheckArgs { format }) = &arguments.command;
    let settings = with_folders(loaded);
    let text = match format {
        CheckFormat::Text => as_text(loaded, &settings),
        CheckFormat::Json => {
            grooveseek::app::wiring::json::pretty(&as_json(loaded, &settings)) + "\n"
        }
    };
    print::result(&text).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

/// The settings, the program's own folders among them as they will be used.
fn with_folders(loaded: &LoadedConfig) -> Vec<Setting> {
    let mut settings = loaded.settings();
    let folders = [
        ("fastembed_cache_dir", "FASTEMBED_CACHE_DIR", loaded.model_cache()),
        ("grammar_dir", "GROOVE_GRAMMAR_DIR", loaded.grammar_dir()),
    ];
    for (key, variable, folder) in folders {
        let Some(setting) = settings.iter_mut().find(|setting| setting.key == key) else {
            continue;
        };
        match folder {
            Ok(Directory { path, origin }) => {
                let path = path.to_string_lossy().into_owned();
                setting.value = SettingValue::Is(toml::Value::String(path));
                if origin == Origin::Variable {
                    setting.origin = SettingOrigin::Variable(variable);
                }
            }
            // Commands that need the folder say so themselves.
            Err(DirectoryError::Undeterminable { .. } | DirectoryError::Relative { .. }) => {}
        }
    }
    settings
}

fn as_text(loaded: &LoadedConfig, settings: &[Setting]) -> String {
    let file = loaded.path.as_deref().map_or("no file".into(), Path::to_string_lossy);
    let mut text = format!("# {} ({}, {})\n", on_one_line(&file), loaded.source, loaded.trust);
    for Setting { key, value, origin } in settings {
        let line = match value {
            SettingValue::Is(value) => format!("{key} = {value}  # {}", in_words(origin)),
            SettingValue::Hidden => format!("# {key} is set, and not shown: {}", in_words(origin)),
            SettingValue::Unset => match origin {
                SettingOrigin::Default => format!("# {key} is not set"),
                other => format!("# {key} is not set: {}", in_words(other)),
            },
        };
        text.push_str(&on_one_line(&line));
        text.push('\n');
    }
    text
}

fn in_words(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Default => "default".to_owned(),
        SettingOrigin::File { line } => format!("line {line}"),
        SettingOrigin::NotAccepted { line, asked } => {
            format!("line {line} asks for {asked}, which a file that was only found may not set")
        }
        SettingOrigin::Variable(name) => format!("from {name}"),
    }
}

fn as_json(loaded: &LoadedConfig, settings: &[Setting]) -> Value {
    let setting = |Setting { key, value, origin }: &Setting| {
        let (origin, line, asked, variable) = match origin {
            SettingOrigin::Default => ("default", None, None, None),
            SettingOrigin::File { line } => ("file", Some(line), None, None),
            SettingOrigin::NotAccepted { line, asked } => {
                ("not_accepted", Some(line), Some(asked), None)
            }
            SettingOrigin::Variable(name) => ("environment", None, None, Some(name)),
        };
        json!({
            "key": key,
            "value": match value {
                SettingValue::Is(value) => serde_json::to_value(value).unwrap_or_default(),
                SettingValue::Hidden | SettingValue::Unset => Value::Null,
            },
            "hidden": *value == SettingValue::Hidden,
            "origin": origin,
            "line": line,
            "asked": asked,
            "variable": variable,
        })
    };
    json!({
        "path": loaded.path.as_deref().map(Path::to_string_lossy),
        "source": loaded.source.to_string(),
        "trust": loaded.trust.to_string(),
        "settings": settings.iter().map(setting).collect::<Vec<_>>(),
    })
}
