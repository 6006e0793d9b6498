//! Adapters of the transport port.

pub mod memory;

pub mod stdio;

mod mcp;

mod isolated;
