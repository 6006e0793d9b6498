//! The models that are on this machine: which, whether they are whole, and how
//! one from elsewhere is put among them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::adapters::model::archive::{self, Caps, ImportError};
use crate::adapters::model::catalogue::Sources;
use crate::adapters::model::folder::sha256_of;
use crate::adapters::model::locate::{self, ModelPlaces};

/// What a model's weights are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For the native engine.
    Safetensors,
    /// For ONNX Runtime.
    Onnx,
}

impl Format {
    /// The format's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Safetensors => "safetensors",
            Self::Onnx => "onnx",
        }
    }
}

/// A model in one format in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// What its weights are written as.
    pub format: Format,
    /// The folder.
    pub root: PathBuf,
    /// Its weights.
    pub weights: Vec<PathBuf>,
}

/// What speaks for a file being what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Its checksum is the published one.
    Published,
    /// Its checksum is the one that was recorded when it came here.
    Recorded,
    /// Nothing: no checksum of it is known.
    Unknown,
    /// Its checksum is another one than this.
    Mismatch(String),
}

/// A file and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Whether it is the right one.
    pub proof: Proof,
}

/// The file beside an imported model that records its checksums.
const RECORD: &str = "groove-model.json";

/// All that is here of a model, one holding a format.
pub fn holdings(sources: impl Into<Sources>, places: &ModelPlaces) -> Vec<Holding> {
    let sources = sources.into();
    let mut found = Vec::new();
    if let Some(root) = locate::native_folder(sources, places) {
        let weights = vec![root.join("model.safetensors")];
        found.push(Holding { format: Format::Safetensors, root, weights });
    }
    if let Some(folder) = locate::onnx_folder(sources, places) {
        let mut weights = vec![folder.model];
        weights.extend(folder.data);
        found.push(Holding { format: Format::Onnx, root: folder.root, weights });
    }
    found
}

/// Computes the checksums of a model's weights and compares them with what is
/// published, recorded, or in the name of the cache's file.
///
/// # Errors
///
/// What reading the files fails with.
pub fn check(sources: impl Into<Sources>, holding: &Holding) -> io::Result<Vec<Checked>> {
    let sources = sources.into();
    let published = match holding.format {
        Format::Safetensors => sources.safetensors.and_then(|source| source.sha256),
        Format::Onnx => None,
    };
    let record = record_of(&holding.root)?;
    let mut checked = Vec::new();
    for (place, path) in holding.weights.iter().enumerate() {
        let sha256 = sha256_of(path)?;
        let published = published.filter(|_| place == 0);
        let name = path.strip_prefix(&holding.root).unwrap_or(path).to_string_lossy().into_owned();
        let recorded = record.get(&name).cloned().or_else(|| blob_of(path, &sha256));
        let proof = match (published, recorded) {
            (Some(published), _) if published == sha256 => Proof::Published,
            // What was written down here does not outweigh what was published.
            (Some(expected), _) => Proof::Mismatch(expected.to_owned()),
            (None, Some(recorded)) if recorded == sha256 => Proof::Recorded,
            (_, Some(expected)) => Proof::Mismatch(expected),
            (None, None) => Proof::Unknown,
        };
        checked.push(Checked { path: path.clone(), sha256, proof });
    }
    Ok(checked)
}

/// In a cache of the hub a large file's name among the blobs is its checksum,
/// and a snapshot's file is a link to it, symbolic or hard.
fn blob_of(path: &Path, sha256: &str) -> Option<String> {
    let real = fs::canonicalize(path).ok()?;
    let name = real.file_name().and_then(OsStr::to_str)?;
    let in_blobs = real.parent().and_then(Path::file_name) == Some(OsStr::new("blobs"));
    if in_blobs && name.len() == 64 {
        return Some(name.to_owned());
    }
    let snapshots = path.ancestors().find(|at| at.file_name() == Some(OsStr::new("snapshots")))?;
    let blob = snapshots.parent()?.join("blobs").join(sha256);
    blob.is_file().then(|| sha256.to_owned())
}

fn record_of(root: &Path) -> io::Result<BTreeMap<String, String>> {
    let bytes = match fs::read(root.join(RECORD)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let record: Value = serde_json::from_slice(&bytes)?;
    let files = record["files"].as_object().into_iter().flatten();
    Ok(files.filter_map(|(name, sum)| Some((name.clone(), sum.as_str()?.to_owned()))).collect())
}

/// A model that was taken in but is not in its place yet; what is dropped
/// before it is put there leaves nothing behind.
#[derive(Debug)]
pub struct Staged {
    staging: PathBuf,
    root: PathBuf,
    models_dir: PathBuf,
    from: PathBuf,
}

impl Staged {
    /// Copies a model out of a folder or an archive to beside its place.
    ///
    /// # Errors
    ///
    /// [`ImportError`]
    pub fn new(from: &Path, models_dir: &Path) -> Result<Self, ImportError> {
        Self::with_caps(from, models_dir, Caps::default())
    }

    fn with_caps(from: &Path, models_dir: &Path, caps: Caps) -> Result<Self, ImportError> {
        let staging = models_dir.join(format!(".import-{}", std::process::id()));
        let failed =
            |error: io::Error| ImportError::Failed { path: staging.clone(), source: error.into() };
        match fs::remove_dir_all(&staging) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        fs::create_dir_all(&staging).map_err(failed)?;
        let mut staged = Self {
            root: staging.clone(),
            staging,
            models_dir: models_dir.to_owned(),
            from: from.to_owned(),
        };
        archive::take_in(from, &staged.staging, caps)?;
        staged.root = staged.only_model()?;
        Ok(staged)
    }

    /// Where the model lies for now.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The name that its folder or archive suggests.
    pub fn suggested_name(&self) -> Option<String> {
        let inner = self.root.file_name().filter(|_| self.root != self.staging);
        let outer = if self.from.is_dir() { self.from.file_name() } else { self.from.file_stem() };
        let stem = |name: &OsStr| {
            name.to_string_lossy().trim_end_matches(".tar").to_ascii_lowercase().replace('_', "-")
        };
        [inner, outer].into_iter().flatten().map(stem).find(|name| is_model_name(name))
    }

    /// Records the checksums and puts the model in its place at once.
    ///
    /// - Returns the folder.
    ///
    /// # Errors
    ///
    /// [`ImportError`], among others if the place is taken.
    pub fn put(self, name: &str) -> Result<PathBuf, ImportError> {
        let target = self.models_dir.join(name);
        if !is_model_name(name) {
            let reason = format!(
                "{name:?} is no name for a model: lower-case letters, digits, `-`, `_` and `.` only"
            );
            return Err(ImportError::NoModel { path: self.from.clone(), reason });
        }
        if fs::symlink_metadata(&target).is_ok() {
            let reason =
                "there is a model of this name already; remove the folder first".to_owned();
            return Err(ImportError::NoModel { path: target, reason });
        }
        let failed =
            |error: io::Error| ImportError::Failed { path: target.clone(), source: error.into() };
        let mut files = serde_json::Map::new();
        for path in files_below(&self.root).map_err(failed)? {
            let inner = path.strip_prefix(&self.root).unwrap_or(&path).to_string_lossy();
            files.insert(inner.into_owned(), sha256_of(&path).map_err(failed)?.into());
        }
        let record = format!("{:#}\n", json!({ "files": files }));
        fs::write(self.root.join(RECORD), record).map_err(failed)?;
        fs::rename(&self.root, &target).map_err(failed)?;
        Ok(target)
    }

    /// The one folder that holds a model.
    fn only_model(&self) -> Result<PathBuf, ImportError> {
        let no_model =
            |reason: String| Err(ImportError::NoModel { path: self.from.clone(), reason });
        let files = files_below(&self.staging).map_err(|error| ImportError::Failed {
            path: self.staging.clone(),
            source: error.into(),
        })?;
        let has = |folder: &Path, name: &str| files.contains(&folder.join(name));
        let configs = files.iter().filter(|path| path.ends_with("config.json"));
        let folders: Vec<&Path> = configs
            .filter_map(|path| path.parent())
            .filter(|folder| {
                has(folder, "tokenizer.json")
                    && (has(folder, "model.safetensors")
                        || files.iter().any(|file| {
                            let beside = file.parent();
                            file.extension() == Some(OsStr::new("onnx"))
                                && (beside == Some(folder) || beside == Some(&folder.join("onnx")))
                        }))
            })
            .collect();
        match folders[..] {
            [folder] => Ok(folder.to_owned()),
            [] => no_model(
                "there is no folder in it with config.json, tokenizer.json, and model.safetensors \
                 or ONNX files"
                    .to_owned(),
            ),
            _ => no_model(format!("{} models are in it; name the folder of one", folders.len())),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // What is left of it is hidden and replaced by the next import.
        drop(fs::remove_dir_all(&self.staging));
    }
}

fn is_model_name(name: &str) -> bool {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fine)
}

fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::adapters::model::catalogue;

    fn fill(folder: &Path, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
    }

    const MODEL: &[(&str, &str)] =
        &[("config.json", "{}"), ("tokenizer.json", "{}"), ("model.safetensors", "weights")];

    fn machine() -> (TempDir, ModelPlaces) {
        let root = tempfile::tempdir().unwrap();
        let places = ModelPlaces {
            models_dir: Some(root.path().join("models")),
            hub_caches: vec![root.path().join("cache")],
            onnx_runtime: Vec::new(),
        };
        (root, places)
    }

    #[test]
    fn an_imported_model_lies_in_its_place_with_its_checksums() {
        let (root, places) = machine();
        fill(&root.path().join("BGE_small-en-v1.5"), MODEL);
        let models = places.models_dir.clone().unwrap();
        let staged = Staged::new(&root.path().join("BGE_small-en-v1.5"), &models).unwrap();
        assert_eq!(staged.suggested_name().as_deref(), Some("bge-small-en-v1.5"));
        let folder = staged.put("bge-small-en-v1.5").unwrap();
        assert_eq!(folder, models.join("bge-small-en-v1.5"));
        assert_eq!(fs::read_dir(&models).unwrap().count(), 1, "nothing else is left");
        let entry = catalogue::find("bge-small-en-v1.5").unwrap();
        let held = holdings(entry, &places);
        assert_eq!(check(entry, &held[0]).unwrap()[0].proof, Proof::Recorded);
        fs::write(folder.join("model.safetensors"), "wEights").unwrap();
        assert!(matches!(check(entry, &held[0]).unwrap()[0].proof, Proof::Mismatch(_)));
    }

    #[test]
    fn what_is_no_model_leaves_nothing_behind() {
        let (root, places) = machine();
        let models = places.models_dir.unwrap();
        fill(&root.path().join("x"), &MODEL[..2]);
        let text = Staged::new(&root.path().join("x"), &models).unwrap_err().to_string();
        assert!(text.contains("model.safetensors"), "{text}");
        fill(&root.path().join("y/a"), MODEL);
        fill(&root.path().join("y/b"), MODEL);
        let text = Staged::new(&root.path().join("y"), &models).unwrap_err().to_string();
        assert!(text.contains("2 models"), "{text}");
        let staged = Staged::new(&root.path().join("y/a"), &models).unwrap();
        assert!(staged.put("../up").unwrap_err().to_string().contains("no name"));
        assert_eq!(fs::read_dir(&models).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_is_taken_is_not_overwritten() {
        let (root, places) = machine();
        let models = places.models_dir.unwrap();
        fill(&root.path().join("m"), MODEL);
        fill(&models.join("mine"), &[("x", "precious")]);
        let staged = Staged::new(&root.path().join("m"), &models).unwrap();
        assert!(staged.put("mine").unwrap_err().to_string().contains("already"));
        assert_eq!(fs::read_to_string(models.join("mine/x")).unwrap(), "precious");
    }

    // IDX-B24 CFG-96
    #[test]
    fn a_file_of_a_cache_is_compared_with_the_name_of_its_blob() {
        let (root, places) = machine();
        let entry = catalogue::find("bge-small-en-v1.5").unwrap();
        let repository = root.path().join("cache/models--BAAI--bge-small-en-v1.5");
        let snapshot = repository.join("snapshots/1");
        fill(&snapshot, MODEL);
        let proof = |places| check(entry, &holdings(entry, places)[0]).unwrap()[0].proof.clone();
        assert_eq!(proof(&places), Proof::Unknown);
        let sum = sha256_of(&snapshot.join("model.safetensors")).unwrap();
        fill(&repository.join("blobs"), &[(&sum, "weights")]);
        assert_eq!(proof(&places), Proof::Recorded);
        #[cfg(unix)]
        {
            let other = "0".repeat(64);
            fill(&repository.join("blobs"), &[(&other, "damaged")]);
            fs::remove_file(snapshot.join("model.safetensors")).unwrap();
            let link = snapshot.join("model.safetensors");
            std::os::unix::fs::symlink(repository.join("blobs").join(&other), link).unwrap();
            assert_eq!(proof(&places), Proof::Mismatch(other));
        }
    }
}
