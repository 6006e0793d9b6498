//! Adapters of the parser port.

mod decode;
pub mod guarded;
pub mod markdown;
