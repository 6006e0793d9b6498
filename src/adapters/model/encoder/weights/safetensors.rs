//! Tensors in `model.safetensors`, or in several files that an index lists.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use grooveseek_kernels::Stored;
use safetensors::tensor::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::sentence::is_plain_name;
use crate::adapters::model::encoder::weights::part::Part;
use crate::adapters::model::encoder::weights::{Layout, Numbers, Tensor, Weights, names};

const FILE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The most bytes of an index.
const MOST_INDEX_BYTES: u64 = 1 << 24;

/// The most files that an index may list.
const MOST_FILES: usize = 1 << 10;

#[derive(Deserialize)]
struct Index {
    /// From the name of a tensor to that of its file.
    weight_map: BTreeMap<String, String>,
}

/// Opens the tensors of the model in a folder and checks that the files are whole.
pub(super) fn open(folder: &Path) -> Result<Weights, LoadError> {
    let single = folder.join(FILE);
    let index_path = folder.join(INDEX);
    if single.exists() || !index_path.exists() {
        let mut weights = Weights::new(&single);
        add_file(&mut weights, single, |_| true)?;
        return Ok(weights);
    }
    let index = read_index(folder, &index_path)?;
    let mut weights = Weights::new(&index_path);
    let mut files: Vec<&String> = index.weight_map.values().collect();
    files.sort();
    files.dedup();
    if files.len() > MOST_FILES {
        let reason = format!("it lists {} files, more than {MOST_FILES}", files.len());
        return Err(LoadError::malformed(&index_path, reason));
    }
    for file in files {
        if !is_plain_name(file) {
            let reason = format!("it lists {file:?}, which is no file beside it");
            return Err(LoadError::malformed(&index_path, reason));
        }
        let listed = |name: &str| index.weight_map.get(name) == Some(file);
        add_file(&mut weights, folder.join(file), listed)?;
    }
    Ok(weights)
}

fn read_index(folder: &Path, path: &Path) -> Result<Index, LoadError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_INDEX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| LoadError::from_io(folder, INDEX, error))?;
    if bytes.len() as u64 > MOST_INDEX_BYTES {
        let reason = format!("it has more than {MOST_INDEX_BYTES} bytes");
        return Err(LoadError::malformed(path, reason));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| LoadError::Unreadable { path: path.to_path_buf(), source: error.into() })
}

/// Adds the tensors of a file that are wanted.
fn add_file(
    weights: &mut Weights,
    path: PathBuf,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), LoadError> {
    let part = Part::open(&path)?;
    let (header, metadata) = SafeTensors::read_metadata(part.bytes())
        .map_err(|error| LoadError::Unreadable { path, source: error.into() })?;
    // The header is preceded by its length, in eight bytes.
    let start = header.saturating_add(8);
    let index = weights.parts.len();
    weights.parts.push(part);
    let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, info) in tensors {
        let Some(plain) = names::plain(&name).filter(|_| wanted(&name)) else { continue };
        let (from, to) = info.data_offsets;
        let numbers = match info.dtype {
            Dtype::F32 => Numbers::Known(Stored::F32),
            Dtype::F16 => Numbers::Known(Stored::F16),
            Dtype::BF16 => Numbers::Known(Stored::Bf16),
            other => Numbers::Other(format!("{other:?}")),
        };
        let tensor = Tensor {
            name,
            part: index,
            place: start.saturating_add(from)..start.saturating_add(to),
            numbers,
            shape: info.shape.clone(),
            layout: Layout::AsIs,
        };
        weights.add(plain, tensor)?;
    }
    Ok(())
}
