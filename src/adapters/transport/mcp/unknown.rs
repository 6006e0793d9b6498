//! Names of arguments that no tool has, each told to the log once a session.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The most names that are told in a session.
const NAMES: usize = 64;

/// The most characters of a name that are told.
const NAME_CHARS: usize = 64;

/// What a session has been told of; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct UnknownNames(Arc<Mutex<BTreeSet<String>>>);

impl UnknownNames {
    /// Logs those of some names, which a call of a tool gave in vain, that the
    /// session has not been told of.
    pub(super) fn tell<'a>(&self, tool: &str, names: impl Iterator<Item = &'a str>) {
        for name in self.new_ones(tool, names) {
            tracing::warn!(tool, ?name, "ignoring an argument that the tool does not have");
        }
    }

    fn new_ones<'a>(&self, tool: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names
            .map(|name| name.chars().take(NAME_CHARS).collect::<String>())
            .filter(|name| told.len() < NAMES && told.insert(format!("{tool}.{name}")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SRCH-B03
    #[test]
    fn a_name_is_told_once_a_session_and_tool() {
        let session = UnknownNames::default();
        let new = |session: &UnknownNames, tool: &str, names: &[&str]| {
            session.new_ones(tool, names.iter().copied())
        };
        assert_eq!(new(&session, "search", &["top_k", "Limit"]), ["top_k", "Limit"]);
        assert_eq!(new(&session.clone(), "search", &["top_k", "n"]), ["n"]);
        assert_eq!(new(&session, "get_document", &["top_k"]), ["top_k"]);
        assert_eq!(new(&UnknownNames::default(), "search", &["top_k"]), ["top_k"]);
    }

    // SRCH-B03
    #[test]
    fn neither_many_names_nor_long_ones_fill_the_log() {
        let session = UnknownNames::default();
        let names: Vec<String> = (0..1000).map(|n| format!("{n}{}", "é".repeat(9000))).collect();
        let told = session.new_ones("search", names.iter().map(String::as_str));
        assert_eq!(told.len(), 64);
        assert!(told.iter().all(|name| name.chars().count() <= 64));
    }
}
