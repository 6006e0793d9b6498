//! Diversity: picking hits that do not repeat one another.

use std::collections::BTreeSet;

use crate::domain::embedding::Embedding;

/// A candidate as maximal marginal relevance sees it.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// How well it fits; higher is better, of any range.
    pub score: f32,
    /// The vector of its text.
    pub embedding: &'a Embedding,
    /// Which document it belongs to; equal numbers mean the same one.
    pub document: usize,
}

/// How relevance and diversity are balanced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// 1 means relevance alone, 0 diversity alone.
    pub lambda: f32,
    /// What a further chunk of a picked document loses, from 0 to 1.
    pub same_document_penalty: f32,
}

/// Picks candidates one by one, each time the one that is most worth adding.
///
/// A candidate is worth `λ · relevance − (1 − λ) · (largest cosine with what is
/// picked) − (penalty, if its document is picked from already)`, where the
/// relevance is the score scaled to 0…1 over all candidates (0 for all if the
/// scores do not differ).
///
/// - `choices`: n candidates, best first.
/// - Returns at most `limit` different indexes into `choices`, in the order in
///   which they were picked; of equal candidates the earlier one goes first.
///
/// Runs in O(limit · n · dimension).
///
/// # Source
///
/// Carbonell and Goldstein, "The Use of MMR, Diversity-Based Reranking for
/// Reordering Documents and Producing Summaries", SIGIR 1998; the penalty per
/// document is an addition.
///
/// ```
/// use grooveseek::domain::diversity::{Balance, Choice, maximal_marginal_relevance};
/// use grooveseek::domain::embedding::Embedding;
///
/// let east = Embedding::normalised(vec![1.0, 0.0]).unwrap();
/// let north = Embedding::normalised(vec![0.0, 1.0]).unwrap();
/// let choices = [
///     Choice { score: 1.0, embedding: &east, document: 0 },
///     Choice { score: 0.9, embedding: &east, document: 1 },
///     Choice { score: 0.5, embedding: &north, document: 2 },
/// ];
/// let balance = Balance { lambda: 0.5, same_document_penalty: 0.0 };
/// assert_eq!(maximal_marginal_relevance(&choices, 2, balance), [0, 2]);
/// ```
pub fn maximal_marginal_relevance(
    choices: &[Choice<'_>],
    limit: usize,
    balance: Balance,
) -> Vec<usize> {
    let relevance = scaled(choices);
    let mut closest = vec![None::<f32>; choices.len()];
    let mut taken = vec![false; choices.len()];
    let mut documents = BTreeSet::new();
    let mut picked = Vec::with_capacity(limit.min(choices.len()));

    while picked.len() < limit {
        let mut best: Option<(usize, f32)> = None;
        for (index, choice) in choices.iter().enumerate().filter(|(index, _)| !taken[*index]) {
            let penalty = if documents.contains(&choice.document) {
                balance.same_document_penalty
            } else {
                0.0
            };
            let worth = balance.lambda * relevance[index]
                - (1.0 - balance.lambda) * closest[index].unwrap_or(0.0)
                - penalty;
            if best.is_none_or(|(_, most)| worth > most) {
                best = Some((index, worth));
            }
        }
        let Some((index, _)) = best else { break };
        taken[index] = true;
        documents.insert(choices[index].document);
        picked.push(index);
        for (other, choice) in choices.iter().enumerate().filter(|(other, _)| !taken[*other]) {
            let cosine = choice.embedding.cosine(choices[index].embedding);
            closest[other] = Some(closest[other].map_or(cosine, |most| most.max(cosine)));
        }
    }
    picked
}

fn scaled(choices: &[Choice<'_>]) -> Vec<f32> {
    let (low, high) =
        choices.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), choice| {
            (low.min(choice.score), high.max(choice.score))
        });
    let range = high - low;
    choices
        .iter()
        .map(|choice| if range > f32::EPSILON { (choice.score - low) / range } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(values: &[f32]) -> Embedding {
        Embedding::normalised(values.to_vec()).unwrap()
    }

    // SRCH-120
    #[test]
    fn a_second_chunk_of_a_document_loses_the_penalty() {
        let vectors = [unit(&[1.0, 0.0]), unit(&[0.0, 1.0]), unit(&[0.7, 0.7])];
        let choice =
            |index: usize, score, document| Choice { score, embedding: &vectors[index], document };
        let choices = [choice(0, 1.0, 0), choice(1, 0.9, 0), choice(2, 0.0, 1)];
        let pick = |same_document_penalty| {
            maximal_marginal_relevance(&choices, 2, Balance { lambda: 1.0, same_document_penalty })
        };
        assert_eq!(pick(0.0), [0, 1]);
        assert_eq!(pick(1.0), [0, 2]);
    }

    // SRCH-121
    #[test]
    fn equal_scores_leave_the_choice_to_diversity() {
        let vectors = [unit(&[1.0, 0.0]), unit(&[0.9, 0.1]), unit(&[0.0, 1.0])];
        let choices: Vec<Choice<'_>> = vectors
            .iter()
            .enumerate()
            .map(|(document, embedding)| Choice { score: 0.02, embedding, document })
            .collect();
        let balance = Balance { lambda: 0.7, same_document_penalty: 0.0 };
        assert_eq!(maximal_marginal_relevance(&choices, 3, balance), [0, 2, 1]);
    }

    proptest! {
        // SRCH-123 SRCH-124
        #[test]
        fn relevance_alone_keeps_the_order_of_the_scores(
            mut scores in prop::collection::vec(0.0_f32..1.0, 0..20),
            limit in 0_usize..25,
        ) {
            scores.sort_by(|a, b| b.total_cmp(a));
            let vector = unit(&[0.6, 0.8]);
            let choices: Vec<Choice<'_>> = scores
                .iter()
                .map(|&score| Choice { score, embedding: &vector, document: 0 })
                .collect();
            let balance = Balance { lambda: 1.0, same_document_penalty: 0.0 };
            let picked = maximal_marginal_relevance(&choices, limit, balance);
            let expected: Vec<usize> = (0..scores.len().min(limit)).collect();
            prop_assert_eq!(picked, expected);
        }
    }
}
