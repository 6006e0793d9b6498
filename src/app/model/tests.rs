//! Rerankers under a limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use tokio::sync::Semaphore;

use super::*;

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_mins(5);

/// Scores nothing until it is let go, and panics if it was told to.
struct Gated {
    runs: AtomicUsize,
    gate: Semaphore,
    panics: bool,
}

impl Gated {
    fn new(panics: bool) -> Arc<Self> {
        Arc::new(Self { runs: AtomicUsize::new(0), gate: Semaphore::new(0), panics })
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Reranker for Gated {
    fn model(&self) -> &'static str {
        "gated"
    }

    async fn score(&self, _: &str, passages: &[String]) -> Result<Vec<f32>, RerankError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let _gone_through = self.gate.acquire().await;
        assert!(!self.panics, "on purpose");
        Ok(vec![1.0; passages.len()])
    }
}

fn model() -> RerankerModel {
    RerankerModel::new("gated", Box::new(|| unreachable!("it is handed over")))
}

async fn ask(
    model: &RerankerModel,
    gated: &Arc<Gated>,
    limit: Duration,
) -> Result<Option<Vec<f32>>, RerankError> {
    let reranker = Arc::clone(gated) as Arc<dyn Reranker>;
    model.score_within(limit, reranker, "q".to_owned(), vec!["p".to_owned()]).await
}

/// Waits until no run goes on.
async fn idle(model: &RerankerModel) {
    drop(model.turn.lock().await);
}

// SRCH-B13
#[tokio::test]
async fn of_searches_at_the_same_time_one_is_overdue_and_the_others_never_begin() {
    let (model, gated) = (model(), Gated::new(false));
    let ask_all = futures::future::join_all((0..4).map(|_| ask(&model, &gated, SHORT)));
    for late in ask_all.await {
        assert_eq!(late.unwrap(), None);
    }
    let meanwhile = ask(&model, &gated, LONG).now_or_never();
    assert_eq!(meanwhile.expect("nobody waits for what is overdue").unwrap(), None);

    gated.gate.add_permits(1);
    idle(&model).await;
    assert_eq!(gated.runs(), 1);
    assert_eq!(ask(&model, &gated, LONG).await.unwrap(), Some(vec![1.0]));
    assert_eq!(gated.runs(), 2);
}

// SRCH-B13
#[tokio::test]
async fn a_run_whose_caller_went_away_is_overdue_too() {
    let (model, gated) = (model(), Gated::new(false));
    assert!(ask(&model, &gated, LONG).now_or_never().is_none());
    let meanwhile = ask(&model, &gated, LONG).now_or_never();
    assert_eq!(meanwhile.expect("nobody waits for what is overdue").unwrap(), None);
    gated.gate.add_permits(1);
    idle(&model).await;
    assert_eq!(gated.runs(), 1);
    assert!(!model.is_overdue());
}

// SRCH-B13
#[tokio::test]
async fn who_waits_for_a_turn_gets_it_when_the_run_before_ends() {
    let (model, gated) = (model(), Gated::new(false));
    gated.gate.add_permits(1);
    let both = futures::join!(ask(&model, &gated, LONG), ask(&model, &gated, LONG));
    assert_eq!((both.0.unwrap(), both.1.unwrap()), (Some(vec![1.0]), Some(vec![1.0])));
}

// SRCH-B13 SRCH-180
#[tokio::test]
async fn a_run_that_panics_is_an_error_and_leaves_its_turn_to_the_next() {
    let (model, broken, sound) = (model(), Gated::new(true), Gated::new(false));
    broken.gate.add_permits(1);
    let error = ask(&model, &broken, LONG).await.unwrap_err();
    assert!(matches!(error, RerankError::Unavailable { model, .. } if model == "gated"));
    sound.gate.add_permits(1);
    assert_eq!(ask(&model, &sound, LONG).await.unwrap(), Some(vec![1.0]));
}
