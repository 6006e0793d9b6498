//! Adapters of the store port.

mod cosine;
mod ranking;
mod trigram;

pub mod memory;
pub mod sqlite;
