//! Whole runs of the built binary: index, search, serve.
#![allow(missing_docs, reason = "a test binary has no readers of its interface")]
