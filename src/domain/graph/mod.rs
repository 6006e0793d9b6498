//! The connection graph: a bounded walk from one document to the chunks that
//! lie near it, and near those.

mod answer;
mod request;
mod truncation;

mod walk;

pub mod drawing;

pub use answer::{Graph, GraphStats, Node, snippet};
pub use request::{
    Bounds, CheckedGraph, GraphRequest, InvalidGraph, Order, SeedStrategy, similarity,
};
pub use truncation::{Reason, Truncation};
pub use walk::{Link, Neighbour, Walk, Walked, Wanted};
