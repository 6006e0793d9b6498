//! Adapters of the source port.

pub mod filesystem;
pub mod memory;

mod admission;
mod ignore_file;
