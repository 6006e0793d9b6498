//! Search over a person's or a team's own knowledge base, served to AI
//! assistants over MCP and to people on the command line.
//!
//! Read the layers from the inside out: [`domain`] holds the rules, [`ports`]
//! the promises that the rules need from outside, [`adapters`] one technology
//! each, and [`app`] the use cases. `docs/ARCHITECTURE.md` is the map.

pub mod domain;
pub mod ports;

pub mod adapters;
pub mod app;
