//! Rules: plain functions over plain values, which touch nothing outside.

pub mod chunk;
pub mod document;
pub mod embedding;
pub mod format;

pub mod chunking;
pub mod frontmatter;
pub mod quality;

pub mod confidence;
pub mod diversity;
pub mod evidence;
pub mod excerpt;
pub mod filter;
pub mod fold;
pub mod fusion;
pub mod graph;
pub mod highlights;
pub mod parent;
pub mod query;
pub mod quote;
pub mod search;
pub mod spans;

pub mod evaluation;
pub mod exclusion;
pub mod facets;
pub mod finding;
pub mod resource;
pub mod schema;
pub mod topics;

pub mod gate;
pub mod location;
pub mod loopback;
pub mod windows_name;
