//! Use cases, written against the ports.

pub mod config;
