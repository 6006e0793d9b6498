//! A file of tensors, mapped into memory.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grooveseek_kernels::Stored;
use memmap2::Mmap;

use crate::adapters::model::encoder::error::LoadError;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 18;

/// A file of tensors, or a tensor that a file holds in a roundabout way.
///
/// The file is mapped into memory, so that a large table costs only the rows
/// that are looked at. What is copied anyway is read through the file instead,
/// so that its pages do not count as memory of this process.
#[derive(Debug)]
pub(super) struct Part {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Mapped { file: Mutex<File>, map: Mmap },
    Memory(Vec<u8>),
}

impl Part {
    /// Maps a file.
    pub(super) fn open(path: &Path) -> Result<Self, LoadError> {
        let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        let io = |error| LoadError::from_io(folder, &name.to_string_lossy(), error);
        // Opening a pipe would wait for whoever writes to it.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(LoadError::malformed(path, "it is not a file"));
        }
        let file = File::open(path).map_err(io)?;
        #[expect(
            unsafe_code,
            reason = "mapping a file has no safe form: whoever cuts the file short while it is \
                      mapped stops the process; the bytes are only ever read as bytes"
        )]
        // SAFETY: model files are replaced as a whole, never written in place,
        // and any bytes at all are fine for what is done with them.
        let map = unsafe { Mmap::map(&file) }.map_err(io)?;
        Ok(Self {
            path: path.to_path_buf(),
            content: Content::Mapped { file: Mutex::new(file), map },
        })
    }

    /// Bytes that were taken out of a file.
    pub(super) fn of_memory(path: &Path, bytes: Vec<u8>) -> Self {
        Self { path: path.to_path_buf(), content: Content::Memory(bytes) }
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Mapped { map, .. } => map,
            Content::Memory(bytes) => bytes,
        }
    }

    /// Reads numbers.
    ///
    /// - `place`: bytes within the part that hold whole numbers.
    pub(super) fn read(&self, place: Range<usize>, stored: Stored) -> Result<Vec<f32>, LoadError> {
        let mut numbers = Vec::with_capacity(place.len() / stored.bytes());
        match &self.content {
            Content::Memory(bytes) => {
                stored.append(bytes.get(place).unwrap_or_default(), &mut numbers);
            }
            Content::Mapped { file, .. } => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let mut piece = vec![0; PIECE_BYTES.min(place.len())];
                let mut read = || {
                    file.seek(SeekFrom::Start(place.start as u64))?;
                    let mut left = place.len();
                    while left > 0 {
                        let length = left.min(piece.len());
                        let bytes = &mut piece[..length];
                        file.read_exact(bytes)?;
                        stored.append(bytes, &mut numbers);
                        left -= length;
                    }
                    Ok(())
                };
                read().map_err(|error: std::io::Error| LoadError::Unreadable {
                    path: self.path.clone(),
                    source: error.into(),
                })?;
            }
        }
        Ok(numbers)
    }
}
