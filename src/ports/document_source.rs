//! Where documents come from.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use crate::domain::document::{ContentHash, DocumentPath};
use crate::domain::exclusion::ExclusionRules;
use crate::ports::Cause;

/// A place that can list its documents and hand out their bytes.
///
/// A source does not look inside documents; that is the work of a parser.
///
/// # Contract
///
/// - [`list`](Self::list) names every document once, in ascending order of
///   path, and says what it left out and why.
/// - [`read`](Self::read) gives back exactly the bytes that were stored, with
///   their hash, and takes every decision from the handle that it reads.
/// - A document over the cap is refused, one of exactly the cap is not.
/// - Nothing outside the source can be read through it.
/// - A folder that cannot be read hides neither what lies beside it nor that
///   there is something that was not seen.
/// - A watch reports whatever could make a later listing or reading differ,
///   soon after; it may report more than that.
///
/// `tests/contract/document_source.rs` holds every adapter to this.
pub trait DocumentSource: Send + Sync {
    /// What the place is called where it lies, such as the name of a folder.
    fn name(&self) -> String;

    /// Whether another place of this kind lies beside this one under a name.
    fn has_neighbour(&self, name: &str) -> bool;

    /// Lists the documents that exist now. A folder in it that cannot be listed
    /// is named in [`Listing::unreadable`]; the rest is listed all the same.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unavailable`] if the place itself cannot be listed.
    fn list(&self) -> Result<Listing, SourceError>;

    /// Lists the documents at or below some keys, by the rules of the whole: a
    /// document is in it if and only if it would be in [`list`](Self::list).
    ///
    /// - `keys`: of documents or folders, relative and separated by `/`; the
    ///   empty one stands for everything. One at which there is nothing is no
    ///   error.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    fn list_below(&self, keys: &BTreeSet<String>) -> Result<Listing, SourceError>;

    /// Reads one document whole.
    ///
    /// - `cap`: the most bytes that the document may have.
    ///
    /// # Errors
    ///
    /// - [`SourceError::NotFound`] if no document has this path.
    /// - [`SourceError::Refused`] if there is something that must not be read.
    /// - [`SourceError::Unavailable`] if it exists but cannot be read.
    fn read(&self, path: &DocumentPath, cap: SizeCap) -> Result<Content, SourceError>;

    /// Reads a file of the service's own in the root of the source, such as an
    /// ignore file or a schema, by the same rules as a document.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    fn read_aside(&self, name: &str, cap: SizeCap) -> Result<Content, SourceError>;

    /// What stays out of a listing now, by its path alone.
    fn exclusions(&self) -> ExclusionRules;

    /// Reports changes from now on, from a thread of its own, until the watch
    /// is dropped.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unavailable`] if changes cannot be followed now.
    fn watch(&self, report: ReportChange) -> Result<Box<dyn Watch>, SourceError>;
}

/// Takes a change. Returns at once.
pub type ReportChange = Box<dyn Fn(SourceChange) + Send + Sync>;

/// Follows a source's changes as long as it lives.
pub trait Watch: Send + Sync {
    /// Whether what is watched is still there.
    fn is_alive(&self) -> bool;

    /// How it looks for changes by itself; nothing if it is told of them.
    fn polling(&self) -> Option<Polling> {
        None
    }
}

/// How a source finds out what changes in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchMode {
    /// By events, and by polling where these would not tell everything.
    #[default]
    Auto,
    /// By events of the operating system.
    Events,
    /// By looking again and again.
    Poll,
}

/// Looking for changes instead of being told of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polling {
    /// How long it waits after it has looked.
    pub interval: Duration,
    /// What made it necessary.
    pub reason: PollingReason,
}

/// Why a watch polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollingReason {
    /// The operating system is not told of changes that others make.
    #[error("network file system")]
    NetworkFileSystem,
    /// It was asked for.
    #[error("as configured")]
    Configured,
}

/// Something that changed in a source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceChange {
    /// Something at or below a key: it was made, changed, moved or removed.
    At(String),
    /// The rules of what is listed.
    Rules,
    /// Anything: changes were lost.
    Unknown,
}

/// What a source holds at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Every document, in ascending order of path.
    pub found: Vec<Found>,
    /// What looked like a document and is none, in ascending order of name.
    pub left_out: Vec<LeftOut>,
    /// What is there and could not be looked into, in ascending order of key: of
    /// documents at or below these keys the listing knows nothing, whether it
    /// found any or not.
    pub unreadable: Vec<Unreadable>,
    /// Remarks about the source itself, such as an ignore file in force.
    pub notes: Vec<Note>,
}

/// A document that a listing found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its key.
    pub path: DocumentPath,
    /// Its size when it was listed, in bytes.
    pub size_bytes: u64,
}

/// A part of a source that a listing could not look into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The key of the folder; in a listing below keys it may be one of these,
    /// where a folder above it cannot be passed.
    pub key: String,
    /// What the technology reported.
    pub reason: String,
}

/// An entry that a listing left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name as far as it can be shown.
    pub name: String,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why a listing leaves an entry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOutReason {
    /// The file has more than one name.
    #[error("the file has more than one hard link; replace it by a copy")]
    MultipleLinks,
    /// The name cannot be a key.
    #[error("the name could not be opened again; rename it")]
    NotNameable,
}

/// A remark about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether it asks for attention.
    pub severity: Severity,
    /// What it says.
    pub text: String,
}

/// How much a remark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For information.
    Note,
    /// Something does not work as asked.
    Warning,
}

/// The most bytes that a file may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeCap(pub u64);

/// The bytes of a document, and what was measured on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their SHA-256.
    pub hash: ContentHash,
    /// When the file was changed last, if the source knows.
    pub modified: Option<SystemTime>,
}

/// Why a source does not hand out a file that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A symbolic link.
    #[error("it is a symbolic link, which is never followed")]
    SymbolicLink,
    /// A folder, device, socket or pipe.
    #[error("it is not a regular file")]
    NotRegular,
    /// More than one name leads to the file.
    #[error("the file has more than one hard link; replace it by a copy")]
    MultipleLinks,
    /// The file is not the one's who runs the service, and has to be.
    #[error(
        "it belongs to another user, and [index].require_owner is set; give it to the user that \
         runs groove"
    )]
    OtherOwner,
    /// The file leads out of the source.
    #[error("it lies outside the knowledge base")]
    Outside,
    /// More bytes than the caller takes.
    #[error("it has {size_bytes} bytes, the limit is {cap_bytes}")]
    TooLarge {
        /// What was measured, in bytes.
        size_bytes: u64,
        /// What is allowed, in bytes.
        cap_bytes: u64,
    },
}

/// Why a source could not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No document has this path. Asking again will not help.
    #[error("no document at {path}")]
    NotFound {
        /// The name that was asked for.
        path: String,
    },
    /// There is something at this path that must not be read.
    #[error("{path} is refused: {reason}")]
    Refused {
        /// The name that was asked for.
        path: String,
        /// Which rule forbids it.
        reason: Refusal,
    },
    /// The technology behind the source failed. Asking again may help.
    #[error("cannot read {what}")]
    Unavailable {
        /// What was being read, for a person to recognise.
        what: String,
        /// The failure as the technology reported it.
        source: Cause,
    },
}
