//! Use cases, written against the ports.

pub mod config;
pub mod config_file;
pub mod error;
pub mod grammar;
pub mod line;
pub mod model;
pub mod place;
pub mod registry;
pub mod schema_file;

pub mod best_practice;
pub mod explain;
pub mod graph;
pub mod index;
pub mod library;
pub mod locate;
pub mod news;
pub mod offer;
pub mod quality;
pub mod quote;
pub mod read;
pub mod search;
pub mod watch;

pub mod doctor;
pub mod validate;

pub mod monitor;
pub mod pulse;
pub mod service;
pub mod wiring;

#[cfg(test)]
mod testing;
