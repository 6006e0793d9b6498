//! Takes the files of a model out of a folder or an archive, and nothing else.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use crate::ports::Cause;

/// Why a folder or an archive could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is nothing that can be read.
    #[error("{} is neither a folder nor a .zip, .whl, .tar, .tar.gz or .tgz", path.display())]
    Unknown {
        /// What was named.
        path: PathBuf,
    },
    /// It could not be read, or its files could not be written.
    #[error("cannot take in {}", path.display())]
    Failed {
        /// What was being read or written.
        path: PathBuf,
        /// The failure.
        source: Cause,
    },
    /// It holds what no model holds.
    #[error("{} is refused: {reason}", path.display())]
    Unsafe {
        /// The archive or folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no model in it, or more than one, or the place is taken.
    #[error("{}: {reason}", path.display())]
    NoModel {
        /// What was looked at.
        path: PathBuf,
        /// What is missing or too much.
        reason: String,
    },
}

/// The most entries of an archive or folder.
const MOST_ENTRIES: usize = 20_000;
/// How deep folders may be nested.
const MOST_LEVELS: usize = 16;

/// What may be taken out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    /// The most bytes in all, as they are written.
    pub(crate) total_bytes: u64,
}

impl Default for Caps {
    fn default() -> Self {
        Self { total_bytes: 32 << 30 }
    }
}

/// Copies the files of models, whatever folders they are in, into a new folder.
///
/// Only files that a model may consist of are written. In an archive a link, an
/// absolute path or one that climbs is refused; in a folder links to files are
/// followed, since a cache of the hub consists of them.
pub(crate) fn take_in(from: &Path, into: &Path, caps: Caps) -> Result<(), ImportError> {
    let name = from.file_name().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    let mut intake = Intake { from, into, left_bytes: caps.total_bytes, entries: 0 };
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    if from.is_dir() {
        intake.folder(from, &PathBuf::new(), 0)
    } else if !from.is_file() {
        Err(ImportError::Unknown { path: from.to_owned() })
    } else if ends(&[".zip", ".whl"]) {
        intake.zip()
    } else if ends(&[".tar.gz", ".tgz"]) {
        let file = intake.open()?;
        intake.tar(flate2::read::MultiGzDecoder::new(io::BufReader::new(file)))
    } else if ends(&[".tar"]) {
        let file = intake.open()?;
        intake.tar(io::BufReader::new(file))
    } else {
        Err(ImportError::Unknown { path: from.to_owned() })
    }
}

/// The most bytes behind the end of an archive, which is padded to whole blocks.
const MOST_TRAILING_BYTES: u64 = 1 << 20;

struct Intake<'a> {
    from: &'a Path,
    into: &'a Path,
    left_bytes: u64,
    entries: usize,
}

impl Intake<'_> {
    fn failed(&self, source: impl Into<Cause>) -> ImportError {
        ImportError::Failed { path: self.from.to_owned(), source: source.into() }
    }

    fn refused(&self, reason: impl Into<String>) -> ImportError {
        ImportError::Unsafe { path: self.from.to_owned(), reason: reason.into() }
    }

    fn open(&self) -> Result<File, ImportError> {
        File::open(self.from).map_err(|error| self.failed(error))
    }

    fn count(&mut self) -> Result<(), ImportError> {
        self.entries += 1;
        if self.entries > MOST_ENTRIES {
            return Err(self.refused(format!("it holds more than {MOST_ENTRIES} entries")));
        }
        Ok(())
    }

    fn folder(&mut self, at: &Path, below: &Path, level: usize) -> Result<(), ImportError> {
        let listed = fs::read_dir(at).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in listed.map_err(|error| self.failed(error))? {
            self.count()?;
            let kind = entry.file_type().map_err(|error| self.failed(error))?;
            let (path, inner) = (entry.path(), below.join(entry.file_name()));
            if kind.is_dir() {
                // A folder that is hidden holds no model, and a loop of links
                // is never entered because links to folders are not.
                let hidden = entry.file_name().to_string_lossy().starts_with('.');
                if level < MOST_LEVELS && !hidden {
                    self.folder(&path, &inner, level + 1)?;
                }
            } else if is_of_a_model(&inner) && path.is_file() {
                let mut file = File::open(&path).map_err(|error| self.failed(error))?;
                self.write(&inner, &mut file)?;
            }
        }
        Ok(())
    }

    fn zip(&mut self) -> Result<(), ImportError> {
        let file = self.open()?;
        let mut archive =
            zip::ZipArchive::new(io::BufReader::new(file)).map_err(|error| self.failed(error))?;
        for index in 0..archive.len() {
            self.count()?;
            let mut entry = archive.by_index(index).map_err(|error| self.failed(error))?;
            let name = entry.name().map_err(|error| self.failed(error))?.into_owned();
            let inner = self.inner(Path::new(&name))?;
            if entry.is_symlink() {
                return Err(self.refused(format!("{} is a link", inner.display())));
            }
            if entry.is_file() && is_of_a_model(&inner) {
                self.write(&inner, &mut entry)?;
            }
        }
        Ok(())
    }

    fn tar(&mut self, reader: impl Read) -> Result<(), ImportError> {
        let mut archive = tar::Archive::new(reader);
        for entry in archive.entries().map_err(|error| self.failed(error))? {
            self.count()?;
            let mut entry = entry.map_err(|error| self.failed(error))?;
            let path = entry.path().map_err(|error| self.failed(error))?.into_owned();
            let inner = self.inner(&path)?;
            let kind = entry.header().entry_type();
            if kind.is_symlink() || kind.is_hard_link() {
                return Err(self.refused(format!("{} is a link", inner.display())));
            }
            if kind.is_file() && is_of_a_model(&inner) {
                self.write(&inner, &mut entry)?;
            }
        }
        // What a compressed archive is checked by stands at its end.
        let mut rest = archive.into_inner().take(MOST_TRAILING_BYTES + 1);
        let trailing = io::copy(&mut rest, &mut io::sink()).map_err(|error| self.failed(error))?;
        if trailing > MOST_TRAILING_BYTES {
            return Err(self.refused("something follows the archive in its file"));
        }
        Ok(())
    }

    /// The path of an entry, if it leads down and nowhere else.
    fn inner(&self, path: &Path) -> Result<PathBuf, ImportError> {
        let mut inner = PathBuf::new();
        // A path from Windows would be one name here, and a climb there.
        let text = path.to_string_lossy();
        let climbs = text.contains('\\') || text.contains(':');
        for part in path.components() {
            match part {
                Component::Normal(name) if !climbs => inner.push(name),
                Component::CurDir => {}
                _ => return Err(self.refused(format!("{text:?} leads out of it"))),
            }
        }
        if inner.components().count() > MOST_LEVELS {
            return Err(self.refused(format!("{text:?} is nested too deeply")));
        }
        Ok(inner)
    }

    fn write(&mut self, inner: &Path, from: &mut impl Read) -> Result<(), ImportError> {
        let target = self.into.join(inner);
        let failed =
            |error: io::Error| ImportError::Failed { path: target.clone(), source: error.into() };
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut file =
            File::options().write(true).create_new(true).open(&target).map_err(failed)?;
        // Sizes that an archive announces are not believed.
        let written = io::copy(&mut from.take(self.left_bytes + 1), &mut file).map_err(failed)?;
        if written > self.left_bytes {
            return Err(self.refused("it unpacks to more than a model may have"));
        }
        self.left_bytes -= written;
        file.sync_all().map_err(failed)
    }
}

/// By the name alone.
fn is_of_a_model(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    !name.starts_with('.')
        && (["json", "txt", "safetensors", "onnx", "onnx_data", "model"].contains(&ending)
            || name.ends_with(".onnx.data")
            || name.ends_with("_attr__value"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tempfile::TempDir;

    use super::*;

    struct Case {
        root: TempDir,
    }

    impl Case {
        fn new() -> Self {
            Self { root: tempfile::tempdir().unwrap() }
        }

        fn take(&self, name: &str) -> Result<Vec<String>, ImportError> {
            self.take_at_most(name, 1 << 20)
        }

        fn take_at_most(&self, name: &str, total_bytes: u64) -> Result<Vec<String>, ImportError> {
            let into = self.root.path().join("into");
            take_in(&self.root.path().join(name), &into, Caps { total_bytes })?;
            let mut found = Vec::new();
            let mut open = vec![into.clone()];
            while let Some(folder) = open.pop() {
                for entry in fs::read_dir(folder).unwrap().flatten() {
                    if entry.path().is_dir() {
                        open.push(entry.path());
                    } else {
                        let path = entry.path();
                        found.push(path.strip_prefix(&into).unwrap().display().to_string());
                    }
                }
            }
            found.sort();
            Ok(found)
        }

        fn zip(&self, name: &str, files: &[(&str, &str)]) {
            let mut zip = zip::ZipWriter::new(File::create(self.root.path().join(name)).unwrap());
            for (file, content) in files {
                zip.start_file(*file, zip::write::SimpleFileOptions::default()).unwrap();
                zip.write_all(content.as_bytes()).unwrap();
            }
            zip.finish().unwrap();
        }

        fn tar(&self, name: &str, change: impl Fn(&mut tar::Header)) {
            let mut archive = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..13].copy_from_slice(b"m/config.json");
            header.set_size(2);
            header.set_mode(0o644);
            change(&mut header);
            header.set_cksum();
            archive
                .append(&header, &b"{}"[..usize::try_from(header.size().unwrap()).unwrap()])
                .unwrap();
            let bytes = archive.into_inner().unwrap();
            let path = self.root.path().join(name);
            if name.ends_with("gz") {
                let file = File::create(path).unwrap();
                let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                gz.write_all(&bytes).unwrap();
                gz.finish().unwrap();
            } else {
                fs::write(path, bytes).unwrap();
            }
        }
    }

    #[test]
    fn only_files_that_a_model_consists_of_are_taken() {
        let case = Case::new();
        case.zip(
            "m.whl",
            &[("a/config.json", "{}"), ("a/run.py", "x"), ("a/.x.json", "{}"), ("a/w.bin", "w")],
        );
        assert_eq!(case.take("m.whl").unwrap(), ["a/config.json"]);
    }

    #[test]
    fn a_compressed_archive_whose_checksum_is_wrong_is_refused() {
        let case = Case::new();
        case.tar("m.tar.gz", |_| {});
        let path = case.root.path().join("m.tar.gz");
        let mut bytes = fs::read(&path).unwrap();
        let crc = bytes.len() - 8;
        bytes[crc] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(case.take("m.tar.gz").is_err());
    }

    #[test]
    fn every_kind_of_archive_and_a_folder_can_be_read() {
        for name in ["m.tar", "m.tar.gz", "m.tgz"] {
            let case = Case::new();
            case.tar(name, |_| {});
            assert_eq!(case.take(name).unwrap(), ["m/config.json"], "{name}");
        }
        let case = Case::new();
        fs::create_dir_all(case.root.path().join("m/1_Pooling")).unwrap();
        fs::write(case.root.path().join("m/1_Pooling/config.json"), "{}").unwrap();
        assert_eq!(case.take("m").unwrap(), ["1_Pooling/config.json"]);
        for name in ["missing", "m.rar"] {
            fs::write(case.root.path().join("m.rar"), "x").unwrap();
            let text = case.take(name).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(".tar.gz"), "{text}");
        }
    }

    #[test]
    fn a_path_out_of_the_archive_is_refused() {
        for name in ["../x.json", "/tmp/x.json", "a/../../x.json", "..\\x.json", "C:\\x.json"] {
            let case = Case::new();
            case.zip("m.zip", &[(name, "{}")]);
            let text = case.take("m.zip").unwrap_err().to_string();
            assert!(text.contains("leads out"), "{name}: {text}");
            assert!(!case.root.path().join("x.json").exists());
        }
        let case = Case::new();
        case.tar("m.tar", |header| {
            header.as_old_mut().name[..13].copy_from_slice(b"../config.jso");
        });
        assert!(case.take("m.tar").unwrap_err().to_string().contains("leads out"));
    }

    #[test]
    fn a_link_in_an_archive_is_refused() {
        for kind in [tar::EntryType::Symlink, tar::EntryType::Link] {
            let case = Case::new();
            case.tar("m.tar", |header| {
                header.set_entry_type(kind);
                header.set_size(0);
                header.set_link_name("/etc/passwd").unwrap();
            });
            assert!(case.take("m.tar").unwrap_err().to_string().contains("is a link"));
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let case = Case::new();
        case.zip("m.zip", &[("a.json", &"0".repeat(600)), ("b.json", &"0".repeat(600))]);
        assert!(case.take_at_most("m.zip", 1199).unwrap_err().to_string().contains("more than"));
        let case = Case::new();
        case.zip("m.zip", &[("a.json", &"0".repeat(600)), ("b.json", &"0".repeat(600))]);
        assert_eq!(case.take_at_most("m.zip", 1200).unwrap().len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_links_as_a_cache_of_the_hub_is_one_is_followed_to_its_files() {
        let case = Case::new();
        let at = |name: &str| case.root.path().join(name);
        fs::create_dir_all(at("m")).unwrap();
        fs::write(at("blob"), "{}").unwrap();
        std::os::unix::fs::symlink(at("blob"), at("m/config.json")).unwrap();
        std::os::unix::fs::symlink(case.root.path(), at("m/loop")).unwrap();
        assert_eq!(case.take("m").unwrap(), ["config.json"]);
        assert!(!fs::symlink_metadata(at("into/config.json")).unwrap().is_symlink());
    }
}
