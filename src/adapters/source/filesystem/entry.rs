//! What a file system says about an entry.

use std::ffi::OsString;

use crate::ports::document_source::{Refusal, SizeCap};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    /// A device, a socket, a pipe.
    Other,
}

/// An entry of a folder that is being listed.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: OsString,
    /// `None` where the file system does not tell without being asked.
    pub(super) kind: Option<Kind>,
}

/// What is known about an entry without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) size_bytes: u64,
    /// Whether other names lead to the same file; `false` where the file
    /// system does not tell.
    pub(super) has_other_names: bool,
}

impl Facts {
    /// Why a document must not be read, if so.
    pub(super) fn refusal(self, cap: SizeCap) -> Option<Refusal> {
        match self.kind {
            Kind::Link => Some(Refusal::SymbolicLink),
            Kind::Folder | Kind::Other => Some(Refusal::NotRegular),
            Kind::File if self.has_other_names => Some(Refusal::MultipleLinks),
            Kind::File if self.size_bytes > cap.0 => {
                Some(Refusal::TooLarge { size_bytes: self.size_bytes, cap_bytes: cap.0 })
            }
            Kind::File => None,
        }
    }
}
