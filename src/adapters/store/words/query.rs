//! What of a query is looked for as words, and what as it stands.

use std::collections::HashSet;

use super::analysis::{Group, groups};
use super::language::Language;
use super::ranking::Scored;
use crate::domain::query::Phrase;
use crate::ports::chunk_store::LexicalQuery;

/// The most words of a query that are looked for.
const WORDS: usize = 128;

/// A query as the words of an index can answer it.
pub(in crate::adapters::store) struct Sought<'a> {
    query: &'a LexicalQuery,
    /// The words of its text.
    pub(in crate::adapters::store) groups: Vec<Group>,
    /// For each phrase of its text, the stems of each of its words.
    phrases: Vec<(&'a Phrase, Vec<Group>)>,
}

impl<'a> Sought<'a> {
    /// - `languages`: those of the documents of the index.
    pub(in crate::adapters::store) fn new(query: &'a LexicalQuery, languages: &[Language]) -> Self {
        let words = |phrase: &'a Phrase| (phrase, groups(phrase.as_str(), languages, WORDS));
        Self {
            query,
            groups: groups(&query.text, languages, WORDS),
            phrases: query.phrases.iter().map(words).collect(),
        }
    }

    /// The phrases that have to be looked for as they stand: those that are
    /// wanted so, and those with a word that no text has, which may be a part of
    /// one. The others come second: of them, words find what there is to find, but
    /// for what stands inside of longer words.
    ///
    /// - `known`: for each of the groups, whether any text has it.
    pub(in crate::adapters::store) fn phrases(&self, known: &[bool]) -> (Vec<Phrase>, Vec<Phrase>) {
        let unknown: HashSet<&[String]> = self
            .groups
            .iter()
            .zip(known)
            .filter(|&(_, &known)| !known)
            .map(|(group, _)| group.stems.as_slice())
            .collect();
        let is_needed = |words: &[Group]| {
            words.is_empty() || words.iter().any(|word| unknown.contains(word.stems.as_slice()))
        };
        let mut needed = self.query.verbatim.clone();
        let mut others = Vec::new();
        for (phrase, words) in &self.phrases {
            let list = if is_needed(words) { &mut needed } else { &mut others };
            if !self.query.verbatim.contains(phrase) {
                list.push((*phrase).clone());
            }
        }
        (needed, others)
    }
}

/// Places scores below another one, in their order.
pub(in crate::adapters::store) fn below(floor: Option<f64>, scored: &mut [Scored]) {
    if let Some(floor) = floor {
        for (_, score) in scored {
            let score_above_zero = score.max(0.0);
            *score = floor * score_above_zero / (1.0 + score_above_zero);
        }
    }
}
