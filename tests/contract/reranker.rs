//! The contract of the reranker port.

use grooveseek::adapters::reranker::overlap::OverlapReranker;
use grooveseek::ports::reranker::Reranker;

macro_rules! reranker_contract {
    ($($adapter:tt)+) => {
        contract! { $($adapter)+;
            names_its_model,
            n_passages_give_n_scores_in_order,
            no_passage_gives_no_score,
            a_score_depends_on_its_own_pair_alone,
            a_score_is_finite_whatever_the_texts,
            a_passage_about_the_query_scores_above_one_about_something_else,
        }
    };
}

reranker_contract! { overlap = super::overlap }

/// Waits for an answer; each case has a runtime of its own.
fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

type Make = fn() -> Box<dyn Reranker>;

fn overlap() -> Box<dyn Reranker> {
    Box::new(OverlapReranker)
}

const QUERY: &str = "how to bake an apple pie";

const PASSAGES: [&str; 4] = [
    "Tokio spawns a task on the runtime and returns a handle to join it.",
    "To bake an apple pie, peel the apples, roll out the dough and preheat the oven.",
    "再ランキングの評価手法について説明します。",
    "How to file a tax return: gather your receipts first.",
];

fn scores(reranker: &dyn Reranker, query: &str, passages: &[&str]) -> Vec<f32> {
    let passages: Vec<String> = passages.iter().map(|&passage| passage.to_owned()).collect();
    run(async { reranker.score(query, &passages).await.unwrap() })
}

fn assert_same(left: f32, right: f32) {
    assert!((left - right).abs() < 1e-3 * left.abs().max(1.0), "{left} and {right}");
}

fn names_its_model(make: Make) {
    assert!(!make().model().is_empty());
}

fn n_passages_give_n_scores_in_order(make: Make) {
    let reranker = make();
    let forwards = scores(&*reranker, QUERY, &PASSAGES);
    let mut reversed = PASSAGES;
    reversed.reverse();
    let mut backwards = scores(&*reranker, QUERY, &reversed);
    backwards.reverse();
    assert_eq!(forwards.len(), PASSAGES.len());
    assert_eq!(backwards.len(), PASSAGES.len());
    for (forward, backward) in forwards.into_iter().zip(backwards) {
        assert_same(forward, backward);
    }
}

fn no_passage_gives_no_score(make: Make) {
    assert!(scores(&*make(), QUERY, &[]).is_empty());
}

fn a_score_depends_on_its_own_pair_alone(make: Make) {
    let reranker = make();
    let together = scores(&*reranker, QUERY, &PASSAGES);
    for (score, passage) in together.into_iter().zip(PASSAGES) {
        assert_same(score, scores(&*reranker, QUERY, &[passage])[0]);
    }
}

fn a_score_is_finite_whatever_the_texts(make: Make) {
    let reranker = make();
    let long = "word ".repeat(20_000);
    let texts = ["", " ", "\0", "?!", "🦀", "日本語", &long];
    for query in texts {
        let scores = scores(&*reranker, query, &texts);
        assert_eq!(scores.len(), texts.len());
        assert!(scores.iter().all(|score| score.is_finite()), "{scores:?} for {query:.20}");
    }
}

fn a_passage_about_the_query_scores_above_one_about_something_else(make: Make) {
    let scores = scores(&*make(), QUERY, &PASSAGES);
    for other in [0, 2, 3] {
        assert!(scores[1] > scores[other], "{scores:?}");
    }
}
