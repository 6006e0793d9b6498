//! A reranker without a model: it counts the words that query and passage
//! share.

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::ports::reranker::RerankError;
use crate::ports::reranker::Reranker;

/// Scores a passage by the share of the query's words that it holds, from 0
/// to 1, both included. Words are compared without regard to case; in a script
/// that sets no spaces, each pair of neighbouring characters counts as a word.
///
/// ```
/// use grooveseek::adapters::reranker::overlap::OverlapReranker;
/// use grooveseek::ports::reranker::Reranker;
///
/// assert_eq!(OverlapReranker.model(), "overlap");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OverlapReranker;

#[async_trait]
impl Reranker for OverlapReranker {
    fn model(&self) -> &'static str {
        "overlap"
    }

    async fn score(&self, query: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        let wanted = words(query);
        Ok(passages.iter().map(|passage| share(&wanted, &words(passage))).collect())
    }
}

fn share(wanted: &BTreeSet<String>, held: &BTreeSet<String>) -> f32 {
    if wanted.is_empty() {
        return 0.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "a query has far fewer words than an f32 can count"
    )]
    let share = wanted.intersection(held).count() as f32 / wanted.len() as f32;
    share
}

fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let mut words = BTreeSet::new();
    for word in lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let characters: Vec<char> = word.chars().collect();
        if word.is_ascii() || characters.len() < 3 {
            words.insert(word.to_owned());
        } else {
            words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(query: &str, passage: &str) -> f32 {
        share(&words(query), &words(passage))
    }

    #[test]
    fn the_score_is_the_share_of_the_query_that_is_there() {
        for (query, passage, expected) in [
            ("spawn tokio tasks", "Tokio can spawn.", 2.0 / 3.0),
            ("tokio tokio", "tokio", 1.0),
            ("tokio", "apple pie", 0.0),
            ("", "anything", 0.0),
            ("?!", "anything", 0.0),
        ] {
            assert!((score(query, passage) - expected).abs() < 1e-6, "{query} in {passage}");
        }
    }

    #[test]
    fn a_script_without_spaces_is_compared_by_pairs() {
        assert!((score("評価手法", "再ランキングの評価手法について") - 1.0).abs() < 1e-6);
        assert!(score("評価手法", "東京の天気") < 0.1);
        assert!((score("検索", "検索") - 1.0).abs() < 1e-6);
    }
}
