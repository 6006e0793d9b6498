//! Where models may be on this machine, and what else its environment says.
#![allow(clippy::disallowed_methods, reason = "the binary reads the environment and passes it in")]

use std::env;
use std::path::PathBuf;

use anyhow::Context as _;
use grooveseek::app::config_file::DirectoryError;
use grooveseek::app::wiring::{HubSettings, ModelPlaces, Proxies, Surroundings};

use crate::answer::Emphasis;
use crate::config::LoadedConfig;

/// Where relative paths start from.
pub(crate) fn working_dir() -> anyhow::Result<PathBuf> {
    env::current_dir().context("cannot tell the working directory")
}

/// How an answer on standard output sets matches off.
pub(crate) fn emphasis() -> Emphasis {
    Emphasis::of_output(env::var_os("NO_COLOR").as_deref())
}

/// Gathers what the environment and the configuration say of models.
///
/// # Errors
///
/// A folder that is named relatively, or none where one is needed.
pub(crate) fn of(loaded: &LoadedConfig) -> anyhow::Result<Surroundings> {
    let working_dir = working_dir()?;
    let absolute =
        |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data_dir = match loaded.models_dir() {
        Ok(directory) => Some(directory),
        // Without a usual place there is just no such folder.
        Err(DirectoryError::Undeterminable { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let hub_cache = absolute("HF_HUB_CACHE")
        .or_else(|| absolute("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| env::home_dir().map(|home| home.join(".cache/huggingface/hub")));
    let binary_dir =
        env::current_exe().ok().and_then(|path| path.parent().map(std::path::Path::to_owned));
    let runtime = [
        absolute("ORT_DYLIB_PATH"),
        binary_dir,
        data_dir.as_ref().and_then(|models| Some(models.path.parent()?.join("lib"))),
    ];
    let text = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
    let mut hub = HubSettings { token: text("HF_TOKEN"), ..HubSettings::default() };
    if let Some(endpoint) = text("HF_ENDPOINT") {
        endpoint.trim_end_matches('/').clone_into(&mut hub.endpoint);
    }
    Ok(Surroundings {
        working_dir,
        models: ModelPlaces {
            models_dir: data_dir.map(|directory| directory.path),
            hub_caches: [Some(loaded.model_cache()?.path), hub_cache]
                .into_iter()
                .flatten()
                .collect(),
            onnx_runtime: runtime.into_iter().flatten().collect(),
        },
        hub,
        proxies: proxies(),
    })
}

/// What is between this machine and others, by the variables that programs
/// agree on. The small spelling wins, as it does elsewhere.
fn proxies() -> Proxies {
    let of = |small: &str| {
        let value = env::var(small).or_else(|_| env::var(small.to_uppercase()));
        value.ok().filter(|value| !value.trim().is_empty())
    };
    Proxies {
        http: of("http_proxy"),
        https: of("https_proxy"),
        all: of("all_proxy"),
        none_for: of("no_proxy"),
    }
}
