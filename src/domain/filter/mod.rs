//! Filters: which chunks a search may return.

mod admission;
mod glob;

mod dates;
mod fields;
mod request;
mod without;

pub use admission::{DocumentFacets, Filter, default_min_quality, passes_quality};
pub use request::{CheckedFilter, InvalidFilter};

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the rules give exact values")]
mod tests;
