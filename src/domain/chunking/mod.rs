//! Chunking: from the text of a document to its chunks.

pub mod context;
pub mod headings;
pub mod sections;

mod blocks;
mod html;
