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
    /// Whether it belongs to another user than the one who runs this; `false`
    /// where the system has no such owners.
    pub(super) is_others: bool,
    pub(super) stamp: Stamp,
}

/// What differs once a file was changed. Of two that differ neither is the newer
/// one, because clocks can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// When the bytes were written, in nanoseconds since 1970.
    pub(super) modified_ns: i128,
    /// When anything about the file was changed, in nanoseconds since 1970; 0
    /// where the system does not tell.
    pub(super) changed_ns: i128,
    pub(super) size_bytes: u64,
}

/// What a file must be to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) cap: SizeCap,
    /// Whether it must belong to the user who runs this.
    pub(super) own_only: bool,
}

impl Facts {
    /// Why a document must not be read, if so.
    pub(super) fn refusal(self, terms: Terms) -> Option<Refusal> {
        let cap = terms.cap;
        match self.kind {
            Kind::Link => Some(Refusal::SymbolicLink),
            Kind::Folder | Kind::Other => Some(Refusal::NotRegular),
            Kind::File if self.has_other_names => Some(Refusal::MultipleLinks),
            Kind::File if terms.own_only && self.is_others => Some(Refusal::OtherOwner),
            Kind::File if self.size_bytes > cap.0 => {
                Some(Refusal::TooLarge { size_bytes: self.size_bytes, cap_bytes: cap.0 })
            }
            Kind::File => None,
        }
    }
}
