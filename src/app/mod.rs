//! Use cases, written against the ports.

pub mod config;
pub mod error;
pub mod model;
pub mod registry;

pub mod index;
