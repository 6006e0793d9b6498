//! From a key to the bytes of one file.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::adapters::source::filesystem::entry::Terms;
use crate::adapters::source::filesystem::folder::{Folder, facts_of_handle, is_link_on_the_way};
use crate::adapters::source::filesystem::unavailable;
use crate::domain::document::{ContentHash, DocumentPath};
use crate::ports::document_source::{Content, Refusal, SizeCap, SourceError};

/// Reads a file below a root.
///
/// The file is asked twice what it is: by its name, which spares opening what is
/// refused anyway, and by the handle that is then read, which alone lets it pass.
pub(super) fn read(
    root: &Folder,
    root_path: &Path,
    path: &DocumentPath,
    terms: Terms,
) -> Result<Content, SourceError> {
    let key = path.as_str();
    let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
    let name = OsStr::new(name);
    let folder = root.below(parent).map_err(|error| {
        if is_link_on_the_way(&error) && leads_outside(root_path, parent) {
            refused(key, Refusal::Outside)
        } else {
            not_readable(key, error)
        }
    })?;
    let facts = folder.facts(name).map_err(|error| not_readable(key, error))?;
    pass(key, facts.refusal(terms))?;
    if !is_spelled_as_stored(root_path, key) {
        return Err(not_found(key));
    }
    let file = folder.open_file(name).map_err(|error| {
        // Something else may be there by now.
        let unbounded = Terms { cap: SizeCap(u64::MAX), ..terms };
        match folder.facts(name).ok().and_then(|facts| facts.refusal(unbounded)) {
            Some(refusal) => refused(key, refusal),
            None => not_readable(key, error),
        }
    })?;
    read_handle(&file, key, terms)
}

/// Reads a file that lies outside of a source by the rules of one in it. Links
/// that lead to its folder are followed.
///
/// - `path`: absolute.
///
/// # Errors
///
/// As [`DocumentSource::read`], naming the whole path.
///
/// [`DocumentSource::read`]: crate::ports::document_source::DocumentSource::read
pub fn read_alone(path: &Path, cap: SizeCap, own_only: bool) -> Result<Content, SourceError> {
    let terms = Terms { cap, own_only };
    let shown = path.display().to_string();
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(refused(&shown, Refusal::NotRegular));
    };
    let failed = |error| not_readable(&shown, error);
    let folder = Folder::open(folder).map_err(failed)?;
    pass(&shown, folder.facts(name).map_err(failed)?.refusal(terms))?;
    let file = folder.open_file(name).map_err(failed)?;
    read_handle(&file, &shown, terms)
}

/// Decides from a handle, and reads from the same one.
pub(super) fn read_handle(file: &File, key: &str, terms: Terms) -> Result<Content, SourceError> {
    let cap = terms.cap;
    let failed = |error| unavailable(key, error);
    let facts = facts_of_handle(file).map_err(failed)?;
    pass(key, facts.refusal(terms))?;
    let bytes = read_at_most(file, facts.size_bytes, cap.0.saturating_add(1)).map_err(failed)?;
    let read_bytes = bytes.len() as u64;
    if read_bytes > cap.0 {
        // The file has grown since its length was asked for.
        let now = facts_of_handle(file).map_or(read_bytes, |facts| facts.size_bytes);
        let size_bytes = now.max(read_bytes);
        return Err(refused(key, Refusal::TooLarge { size_bytes, cap_bytes: cap.0 }));
    }
    let hash = ContentHash::from_sha256(Sha256::digest(&bytes).into());
    let modified = file.metadata().and_then(|facts| facts.modified()).ok();
    Ok(Content { bytes, hash, modified })
}

/// Reads to the end, or up to a limit, with room for the expected length.
fn read_at_most(file: &File, expected_bytes: u64, limit_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte of room more than there are bytes spares growing to find the end.
    let room = usize::try_from(expected_bytes.saturating_add(1)).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(room)?;
    file.take(limit_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn pass(key: &str, refusal: Option<Refusal>) -> Result<(), SourceError> {
    match refusal {
        Some(refusal) => Err(refused(key, refusal)),
        None => Ok(()),
    }
}

/// Tells where a path that holds a link ends up, for the message alone: it is
/// not read either way.
fn leads_outside(root: &Path, parent: &str) -> bool {
    root.join(parent).canonicalize().is_ok_and(|folder| !folder.starts_with(root))
}

/// Tells whether a key is the one spelling of its file, where the system would
/// open it under others, too.
#[cfg(not(target_os = "linux"))]
fn is_spelled_as_stored(root: &Path, key: &str) -> bool {
    let path = key.split('/').fold(root.to_owned(), |path, segment| path.join(segment));
    path.canonicalize().is_ok_and(|stored| stored == path)
}

#[cfg(target_os = "linux")]
fn is_spelled_as_stored(_root: &Path, _key: &str) -> bool {
    true
}

fn not_readable(key: &str, error: io::Error) -> SourceError {
    let nothing_there =
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename)
            || is_link_on_the_way(&error);
    if nothing_there { not_found(key) } else { unavailable(key, error) }
}

fn not_found(key: &str) -> SourceError {
    SourceError::NotFound { path: key.to_owned() }
}

fn refused(key: &str, reason: Refusal) -> SourceError {
    SourceError::Refused { path: key.to_owned(), reason }
}
