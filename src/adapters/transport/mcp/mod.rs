//! MCP: what the service says and understands, whatever carries it.

pub(super) mod server;

mod tools;

mod prompts;

mod resources;

mod completion;

mod attention;

mod icons;

mod shown;

mod protocol;

mod arguments;

mod unknown;

mod progress;

pub(super) mod surrogates;

pub(super) mod lines;

#[cfg(test)]
mod tests;
