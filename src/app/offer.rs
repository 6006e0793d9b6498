//! Which documents are handed out as resources, and why others are not.

use crate::domain::document::DocumentPath;
use crate::domain::format::{Class, EnabledFormats};

/// The most bytes of text that are handed out at once.
pub const TEXT_CAP: usize = 1024 * 1024;
/// The most bytes of a binary file that are read to hand out its text, and the
/// most that it may unpack to then. None of the caps follows the configuration
/// of the index.
pub const BINARY_CAP: u64 = 50 * 1024 * 1024;

/// Why a document of the index can be found but not opened as a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// No parser that is switched on reads its extension.
    #[error("no parser that is switched on reads it")]
    NotRegistered,
    /// It is larger than what is handed out.
    #[error("it is larger than what is handed out: {size_bytes} bytes, the limit is {cap_bytes}")]
    TooLarge {
        /// Its size when it was measured last.
        size_bytes: u64,
        /// The most bytes of a document of its class.
        cap_bytes: u64,
    },
    /// It is binary, and binary files may unpack to more than is handed out, so
    /// that its size cannot say whether it would be.
    #[error("binary files may unpack to more than is handed out")]
    MayUnpackToTooMuch,
}

/// Tells whether a document of the index is handed out as a resource. Lists,
/// reads, the addresses of hits and `doctor` all ask this one function. That the
/// server could open the document's name again is what its key says already.
///
/// - `recorded_size`: bytes of its file when that was measured last; a size that
///   is not known counts as fine.
/// - `max_decompressed_size`: the configured bytes that a binary file may unpack
///   to while it is indexed; none if unlimited.
///
/// # Errors
///
/// [`Withheld`] gives the first reason in the order of its variants.
pub fn offered(
    path: &DocumentPath,
    recorded_size: Option<u64>,
    formats: &EnabledFormats,
    max_decompressed_size: Option<u64>,
) -> Result<(), Withheld> {
    let format = path.extension().and_then(|extension| formats.of_extension(extension));
    let class = format.ok_or(Withheld::NotRegistered)?.class;
    within_read_caps(class, recorded_size, max_decompressed_size)
}

/// The part of [`offered`] that goes by the class of the document's format.
fn within_read_caps(
    class: Class,
    recorded_size: Option<u64>,
    max_decompressed_size: Option<u64>,
) -> Result<(), Withheld> {
    let cap_bytes = cap_of(class);
    match recorded_size {
        Some(size_bytes) if size_bytes > cap_bytes => {
            Err(Withheld::TooLarge { size_bytes, cap_bytes })
        }
        _ if class == Class::Binary && max_decompressed_size.is_none_or(|max| max > BINARY_CAP) => {
            Err(Withheld::MayUnpackToTooMuch)
        }
        _ => Ok(()),
    }
}

/// The most bytes of a file of this class that are read to hand it out.
pub fn cap_of(class: Class) -> u64 {
    match class {
        Class::Text | Class::Code => TEXT_CAP as u64,
        Class::Binary => BINARY_CAP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Option<u64> = Some(BINARY_CAP);

    fn of_path(path: &str, size: Option<u64>) -> Result<(), Withheld> {
        offered(&DocumentPath::new(path).unwrap(), size, &EnabledFormats::default(), MAX)
    }

    // MCP-75
    #[test]
    fn a_document_whose_extension_is_not_registered_is_withheld() {
        assert_eq!(of_path("a.md", Some(1)), Ok(()));
        assert_eq!(of_path("a.MD", Some(1)), Ok(()));
        for path in ["a.xyz", "md", "a/.md", "a.md/b"] {
            assert_eq!(of_path(path, Some(1)), Err(Withheld::NotRegistered), "{path}");
        }
    }

    // MCP-75 OPS-66
    #[test]
    fn a_document_up_to_what_a_read_returns_is_offered() {
        for (class, cap_bytes) in
            [(Class::Text, 1 << 20), (Class::Code, 1 << 20), (Class::Binary, 50 << 20)]
        {
            assert_eq!(within_read_caps(class, Some(cap_bytes), MAX), Ok(()));
            let size_bytes = cap_bytes + 1;
            let withheld = within_read_caps(class, Some(size_bytes), MAX);
            assert_eq!(withheld, Err(Withheld::TooLarge { size_bytes, cap_bytes }));
        }
        assert_eq!(
            of_path("a.md", Some(2 << 20)).map_err(|it| it.to_string()).unwrap_err(),
            "it is larger than what is handed out: 2097152 bytes, the limit is 1048576"
        );
    }

    // MCP-75
    #[test]
    fn a_document_of_unknown_size_is_offered() {
        assert_eq!(of_path("a.md", None), Ok(()));
        assert_eq!(within_read_caps(Class::Binary, None, MAX), Ok(()));
    }

    // MCP-75b OPS-67
    #[test]
    fn binary_documents_are_withheld_while_they_may_unpack_to_more_than_a_read_returns() {
        let of = |class, max| within_read_caps(class, Some(1), max);
        for max in [None, Some(BINARY_CAP + 1)] {
            assert_eq!(of(Class::Binary, max), Err(Withheld::MayUnpackToTooMuch));
            assert_eq!((of(Class::Text, max), of(Class::Code, max)), (Ok(()), Ok(())));
        }
        assert_eq!(of(Class::Binary, Some(1)), Ok(()));
        let both = within_read_caps(Class::Binary, Some(BINARY_CAP + 1), None);
        assert!(matches!(both, Err(Withheld::TooLarge { .. })), "{both:?}");
    }
}
