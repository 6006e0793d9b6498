//! The tensors of a model's `model.safetensors`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grooveseek_kernels::numbers_from_le_bytes;
use memmap2::Mmap;
use safetensors::tensor::{Dtype, Metadata, SafeTensors};

use crate::adapters::model::encoder::error::LoadError;

const FILE: &str = "model.safetensors";

/// An open file of tensors.
///
/// The file is mapped into memory, so that a large table costs only the rows
/// that are looked at. What is copied anyway is read through the file instead,
/// so that its pages do not count as memory of this process.
#[derive(Debug)]
pub(crate) struct Weights {
    path: PathBuf,
    file: Mutex<File>,
    map: Mmap,
    metadata: Metadata,
    /// Where the tensors start in the file.
    start: usize,
}

/// A table of rows of 32-bit numbers that stays in the file.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    place: Range<usize>,
    row_bytes: usize,
}

impl Weights {
    /// Opens the tensors of the model in a folder and checks that the file is whole.
    pub(crate) fn open(folder: &Path) -> Result<Self, LoadError> {
        let path = folder.join(FILE);
        let file = File::open(&path).map_err(|error| LoadError::from_io(folder, FILE, error))?;
        let unreadable = |source| LoadError::Unreadable { path: path.clone(), source };
        #[expect(
            unsafe_code,
            reason = "mapping a file has no safe form: whoever cuts the file short while it is \
                      mapped stops the process; the bytes are only ever read as bytes"
        )]
        // SAFETY: model files are replaced as a whole, never written in place,
        // and any bytes at all are fine for what is done with them.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| unreadable(error.into()))?;
        let (header, metadata) =
            SafeTensors::read_metadata(&map).map_err(|error| unreadable(error.into()))?;
        // The header is preceded by its length, in eight bytes.
        Ok(Self { path, file: Mutex::new(file), map, metadata, start: 8 + header })
    }

    /// Finds a tensor of 32-bit numbers and checks its shape.
    ///
    /// - `name`: without the prefix `bert.`, which some files have.
    /// - Returns its place in the file.
    fn place(&self, name: &str, shape: &[usize]) -> Result<Range<usize>, LoadError> {
        let malformed = |reason: String| LoadError::Malformed { path: self.path.clone(), reason };
        let info = self
            .metadata
            .info(name)
            .or_else(|| self.metadata.info(&format!("bert.{name}")))
            .ok_or_else(|| malformed(format!("it has no tensor {name}")))?;
        if info.dtype != Dtype::F32 {
            return Err(LoadError::Unsupported {
                path: self.path.clone(),
                reason: format!("tensor {name} holds {:?} and not F32", info.dtype),
            });
        }
        let numbers = shape.iter().try_fold(4, |bytes: usize, &side| bytes.checked_mul(side));
        let (from, to) = info.data_offsets;
        if info.shape != shape || to.checked_sub(from) != numbers {
            let found = &info.shape;
            return Err(malformed(format!("tensor {name} has shape {found:?} and not {shape:?}")));
        }
        let place = self.start + from..self.start + to;
        if place.end > self.map.len() {
            return Err(malformed(format!("tensor {name} reaches beyond the end of the file")));
        }
        Ok(place)
    }

    /// Checks that a tensor is there.
    pub(crate) fn check(&self, name: &str, shape: &[usize]) -> Result<(), LoadError> {
        self.place(name, shape).map(|_| ())
    }

    /// Reads a tensor.
    ///
    /// - Returns as many numbers as the shape has, the last side running fastest.
    pub(crate) fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let place = self.place(name, shape)?;
        let mut bytes = vec![0; place.len()];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(place.start as u64))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| LoadError::Unreadable {
                path: self.path.clone(),
                source: error.into(),
            })?;
        Ok(numbers_from_le_bytes(&bytes))
    }

    /// Finds a table that stays in the file.
    pub(crate) fn table(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Table, LoadError> {
        Ok(Table { place: self.place(name, &[rows, columns])?, row_bytes: 4 * columns })
    }

    /// A row of a table, as it lies in the file; `None` beyond its end.
    pub(crate) fn row(&self, table: &Table, row: usize) -> Option<&[u8]> {
        let from = row.checked_mul(table.row_bytes)?;
        self.map.get(table.place.clone())?.get(from..from.checked_add(table.row_bytes)?)
    }
}
