//! Adapters of the parser port.

pub mod guarded;
pub mod markdown;
