//! Finds the files of a local model on this machine.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use crate::adapters::model::catalogue::{HubSource, Sources};

/// Where models and the library that runs some of them may be. All paths are
/// absolute; whoever reads the environment sees to that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPlaces {
    /// The folder in which a person places models: one folder a model, by name.
    pub models_dir: Option<PathBuf>,
    /// Caches in the hub's layout; downloads go into the first.
    pub hub_caches: Vec<PathBuf>,
    /// Libraries of ONNX Runtime to try, or folders that hold one, in order.
    pub onnx_runtime: Vec<PathBuf>,
}

/// What was found of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    /// A folder with `config.json`, `tokenizer.json` and `model.safetensors`.
    Native(PathBuf),
    /// A folder with the model as ONNX.
    Onnx(OnnxFolder),
    /// Nothing that could be used.
    Absent(Absent),
}

/// A folder that holds a model as ONNX, with its `config.json` and
/// `tokenizer.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnnxFolder {
    /// The folder.
    pub root: PathBuf,
    /// The model's file.
    pub model: PathBuf,
    /// Files that the model refers to by their names.
    pub data: Vec<PathBuf>,
}

/// Why nothing was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// Every folder that was looked at or for, in order.
    pub looked_at: Vec<PathBuf>,
}

/// Looks for a model: in the models directory, as safetensors in each cache,
/// as ONNX in each cache.
pub fn locate(sources: impl Into<Sources>, places: &ModelPlaces) -> Located {
    let entry = &sources.into();
    let by_hand = placed_folder(entry, places);
    if let Some(folder) = by_hand.as_deref().filter(|folder| is_native(folder)) {
        return Located::Native(folder.to_owned());
    }
    if let Some(folder) = by_hand.as_deref().and_then(|root| placed_onnx(entry, root)) {
        return Located::Onnx(folder);
    }
    if let Some(folder) = native_folder(*entry, places) {
        return Located::Native(folder);
    }
    match onnx_folder(*entry, places) {
        Some(folder) => Located::Onnx(folder),
        None => Located::Absent(Absent { looked_at: candidates(entry, places) }),
    }
}

/// The first folder that holds the model as safetensors.
pub fn native_folder(sources: impl Into<Sources>, places: &ModelPlaces) -> Option<PathBuf> {
    let entry = &sources.into();
    let by_hand = placed_folder(entry, places).filter(|folder| is_native(folder));
    by_hand.or_else(|| {
        let source = entry.safetensors?;
        places.hub_caches.iter().find_map(|cache| cached(cache, &source))
    })
}

/// The first folder that holds the model as ONNX, whether or not it can be run.
pub fn onnx_folder(sources: impl Into<Sources>, places: &ModelPlaces) -> Option<OnnxFolder> {
    let entry = &sources.into();
    let by_hand = placed_folder(entry, places).and_then(|root| placed_onnx(entry, &root));
    by_hand.or_else(|| {
        places.hub_caches.iter().find_map(|cache| {
            entry.onnx.iter().find_map(|source| {
                cached(cache, source).and_then(|root| onnx_in(&root, source.weights, source.extras))
            })
        })
    })
}

/// The snapshot of a cached repository that holds all of a source: the one
/// that `refs/main` names if it is whole, else the newest that is.
pub fn cached(cache: &Path, source: &HubSource) -> Option<PathBuf> {
    let repository = repository_folder(cache, source.repository);
    let snapshots = repository.join("snapshots");
    let whole = |folder: &PathBuf| is_whole(folder, source.weights);
    let named = fs::read_to_string(repository.join("refs").join("main")).ok();
    named
        .as_deref()
        .map(str::trim)
        .filter(|revision| is_plain_name(revision))
        .map(|revision| snapshots.join(revision))
        .filter(whole)
        .or_else(|| newest_first(&snapshots).into_iter().find(whole))
}

/// The folder of a repository inside a cache.
pub fn repository_folder(cache: &Path, repository: &str) -> PathBuf {
    cache.join(format!("models--{}", repository.replace('/', "--")))
}

/// Every library of ONNX Runtime at or in the given places, in their order.
pub fn runtime_libraries(places: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in places {
        if place.is_dir() {
            let mut inside: Vec<PathBuf> =
                children(place).filter(|path| path.is_file() && is_runtime_name(path)).collect();
            inside.sort();
            found.append(&mut inside);
        } else if place.is_file() {
            found.push(place.clone());
        }
    }
    found
}

fn placed_folder(entry: &Sources, places: &ModelPlaces) -> Option<PathBuf> {
    places.models_dir.as_ref().map(|folder| folder.join(entry.name))
}

fn is_native(folder: &Path) -> bool {
    is_whole(folder, &["model.safetensors"])
}

/// A person may keep the repository's own layout or put all files side by side.
fn placed_onnx(entry: &Sources, root: &Path) -> Option<OnnxFolder> {
    let beside = |paths: &[&'static str]| -> Vec<&'static str> {
        paths.iter().map(|path| path.rsplit('/').next().unwrap_or(path)).collect()
    };
    entry.onnx.iter().find_map(|source| {
        onnx_in(root, source.weights, source.extras)
            .or_else(|| onnx_in(root, &beside(source.weights), &beside(source.extras)))
    })
}

/// What lies in the model's own folder, but for settings, belongs to the model.
fn onnx_in(root: &Path, weights: &[&str], extras: &[&str]) -> Option<OnnxFolder> {
    let (model, data) = weights.split_first()?;
    let data = data.iter().copied();
    let extras = extras
        .iter()
        .copied()
        .filter(|name| Path::new(name).extension() != Some(OsStr::new("json")));
    is_whole(root, weights).then(|| OnnxFolder {
        root: root.to_owned(),
        model: root.join(model),
        data: data
            .chain(extras.filter(|name| has_bytes(root, name)))
            .map(|name| root.join(name))
            .collect(),
    })
}

fn is_whole(folder: &Path, weights: &[&str]) -> bool {
    ["config.json", "tokenizer.json"].iter().chain(weights).all(|name| has_bytes(folder, name))
}

/// Follows links, so that a link whose target is gone counts as absent.
fn has_bytes(folder: &Path, name: &str) -> bool {
    fs::metadata(folder.join(name)).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
}

fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(_)), None))
}

fn newest_first(snapshots: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(Reverse<SystemTime>, PathBuf)> = children(snapshots)
        .filter(|path| path.is_dir())
        .map(|path| {
            let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
            (Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH)), path)
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

fn children(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// `libonnxruntime.so`, `libonnxruntime.so.1.24.0`, `libonnxruntime.dylib`,
/// `libonnxruntime.1.24.0.dylib`, `onnxruntime.dll`; not the libraries beside
/// it, such as `libonnxruntime_providers_shared.so`.
fn is_runtime_name(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    name == "onnxruntime.dll"
        || name.strip_prefix("libonnxruntime").is_some_and(|rest| {
            rest == ".so"
                || rest.starts_with(".so.")
                || (rest.starts_with('.') && path.extension() == Some(OsStr::new("dylib")))
        })
}

fn candidates(entry: &Sources, places: &ModelPlaces) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = placed_folder(entry, places).into_iter().collect();
    for source in entry.safetensors.iter().chain(entry.onnx) {
        for cache in &places.hub_caches {
            let folder = repository_folder(cache, source.repository);
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    folders
}

#[cfg(test)]
mod tests;
