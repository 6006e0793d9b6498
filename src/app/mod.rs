//! Use cases, written against the ports.

pub mod config;
pub mod config_file;
pub mod error;
pub mod line;
pub mod model;
pub mod place;
pub mod registry;

pub mod graph;
pub mod index;
pub mod quality;
pub mod read;
pub mod search;
pub mod watch;

pub mod monitor;
pub mod pulse;
pub mod service;
pub mod wiring;

#[cfg(test)]
mod testing;
