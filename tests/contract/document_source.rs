//! The contract of the document_source port.
