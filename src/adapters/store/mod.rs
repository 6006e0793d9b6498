//! Adapters of the store port.

mod cosine;
mod ranking;
mod sample;
mod trigram;
mod words;

pub mod memory;
pub mod sqlite;
