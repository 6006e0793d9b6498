//! The tensors of a model, whichever file holds them.

mod names;
mod part;

mod safetensors;

mod onnx;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::path::{Path, PathBuf};

use grooveseek_kernels::{Stored, transposed};

use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::folder::ModelFolder;
use crate::adapters::model::encoder::weights::part::Part;

/// The tensors of a model by the names that a BERT model has them by, without
/// whatever prefix a file puts in front.
#[derive(Debug)]
pub(crate) struct Weights {
    /// The file that lists them.
    path: PathBuf,
    parts: Vec<Part>,
    tensors: BTreeMap<String, Tensor>,
}

/// Where a tensor lies, as its file says. Nothing is checked yet.
#[derive(Clone, Debug)]
struct Tensor {
    /// Its name in the file.
    name: String,
    part: usize,
    /// Its bytes in that part.
    place: Range<usize>,
    numbers: Numbers,
    shape: Vec<usize>,
    layout: Layout,
}

/// What a tensor holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    Known(Stored),
    /// Something that is no weight, or is compressed.
    Other(String),
}

/// How a matrix lies in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A row for each output, as a model has it.
    AsIs,
    /// A row for each input.
    Transposed,
    /// The file does not tell; only a matrix can be in doubt.
    Unknown,
}

/// A table of rows that stays in the file.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    part: usize,
    place: Range<usize>,
    stored: Stored,
    row_bytes: usize,
}

impl Weights {
    /// Opens the tensors of a model. Reads what the files say of themselves, and
    /// no numbers.
    pub(crate) fn open(folder: &ModelFolder) -> Result<Self, LoadError> {
        match &folder.onnx {
            Some(model) => onnx::open(model),
            None => safetensors::open(&folder.root),
        }
    }

    fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), parts: Vec::new(), tensors: BTreeMap::new() }
    }

    /// Adds a tensor under the name that a model has it by.
    fn add(&mut self, name: String, tensor: Tensor) -> Result<(), LoadError> {
        match self.tensors.entry(name) {
            Entry::Vacant(free) => {
                free.insert(tensor);
                Ok(())
            }
            Entry::Occupied(taken) => {
                let (one, other) = (&taken.get().name, &tensor.name);
                let reason = format!("both {one} and {other} look like {}", taken.key());
                Err(LoadError::malformed(&self.path, reason))
            }
        }
    }

    /// Finds a tensor and checks that it has a shape and lies in its file.
    ///
    /// - Returns it with the kind of its numbers and its layout.
    fn find(&self, name: &str, shape: &[usize]) -> Result<(&Tensor, &Part, Stored), LoadError> {
        let tensor = self
            .tensors
            .get(name)
            .ok_or_else(|| LoadError::malformed(&self.path, format!("it has no tensor {name}")))?;
        let name = &tensor.name;
        let part = self.parts.get(tensor.part).ok_or_else(|| {
            LoadError::malformed(&self.path, format!("tensor {name} lies in no file"))
        })?;
        let stored = match &tensor.numbers {
            Numbers::Known(stored) => *stored,
            Numbers::Other(kind) => {
                let reason = format!("tensor {name} holds {kind} and not F32, F16 or BF16");
                return Err(LoadError::unsupported(part.path(), reason));
            }
        };
        let mut expected = shape.to_vec();
        match tensor.layout {
            Layout::Transposed => expected.reverse(),
            Layout::Unknown if shape.len() > 1 => {
                let reason = format!("it does not show which side of tensor {name} is which");
                return Err(LoadError::unsupported(part.path(), reason));
            }
            Layout::AsIs | Layout::Unknown => {}
        }
        if tensor.shape != expected {
            let found = &tensor.shape;
            let reason = format!("tensor {name} has shape {found:?} and not {expected:?}");
            return Err(LoadError::malformed(part.path(), reason));
        }
        let bytes = shape.iter().try_fold(stored.bytes(), |bytes, &side| bytes.checked_mul(side));
        if bytes != tensor.place.end.checked_sub(tensor.place.start) {
            let reason = format!("tensor {name} does not have the bytes that its shape needs");
            return Err(LoadError::malformed(part.path(), reason));
        }
        if tensor.place.end > part.bytes().len() {
            let reason = format!("tensor {name} reaches beyond the end of the file");
            return Err(LoadError::malformed(part.path(), reason));
        }
        Ok((tensor, part, stored))
    }

    /// Checks that a tensor is there.
    pub(crate) fn check(&self, name: &str, shape: &[usize]) -> Result<(), LoadError> {
        self.find(name, shape).map(|_| ())
    }

    /// Reads a tensor.
    ///
    /// - Returns as many numbers as the shape has, the last side running fastest.
    pub(crate) fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let (tensor, part, stored) = self.find(name, shape)?;
        let numbers = part.read(tensor.place.clone(), stored)?;
        match (tensor.layout, shape) {
            (Layout::Transposed, [outputs, inputs]) => Ok(transposed(&numbers, *inputs, *outputs)),
            _ => Ok(numbers),
        }
    }

    /// Finds a table that stays in the file.
    pub(crate) fn table(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Table, LoadError> {
        let (tensor, part, stored) = self.find(name, &[rows, columns])?;
        if tensor.layout != Layout::AsIs {
            let reason =
                format!("tensor {} has a column and not a row for each token", tensor.name);
            return Err(LoadError::unsupported(part.path(), reason));
        }
        let row_bytes = stored.bytes() * columns;
        Ok(Table { part: tensor.part, place: tensor.place.clone(), stored, row_bytes })
    }

    /// Adds a row of a table to as many numbers; none beyond the table's end.
    pub(crate) fn add_row(&self, table: &Table, row: usize, numbers: &mut [f32]) {
        let bytes = || {
            let part = self.parts.get(table.part)?.bytes().get(table.place.clone())?;
            let from = row.checked_mul(table.row_bytes)?;
            part.get(from..from.checked_add(table.row_bytes)?)
        };
        if let Some(bytes) = bytes() {
            table.stored.add(bytes, numbers);
        }
    }
}
