//! Adapters of the transport port.

pub mod memory;

pub mod stdio;

pub mod http;

mod mcp;

mod isolated;
