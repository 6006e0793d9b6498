//! The contract of the chunk_store port.
