//! Floors under the relevance of answers, on judged sets of queries.

mod with_corpora {
    use std::path::{Path, PathBuf};

    use grooveseek::app::wiring::PrecisionChoice;

    use crate::judged::{JudgedSet, indexed, runs};

    fn corpora() -> PathBuf {
        PathBuf::from(std::env::var_os("GROOVE_TEST_CORPORA").expect("GROOVE_TEST_CORPORA"))
            .join("retrieval")
    }

    fn model() -> PathBuf {
        PathBuf::from(std::env::var_os("GROOVE_TEST_MODEL").expect("GROOVE_TEST_MODEL"))
    }

    // SRCH-85 SRCH-87
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs the judged corpora and the model; `make test` runs it where they are"]
    async fn on_english_questions_a_search_is_no_worse_than_its_better_leg() {
        for (name, floor) in [("cranfield", 0.40), ("cosqa", 0.68)] {
            let folder = tempfile::tempdir().unwrap();
            let set = JudgedSet::read(&corpora().join(name));
            let kb = set.unpack(folder.path());
            let (groove, report) = indexed(&kb, &model(), PrecisionChoice::Auto).await;
            assert_eq!(report.skipped, 0);
            let runs = runs(&set, &groove.searcher(), 10).await;
            let [dense, lexical, default] =
                [&runs.dense, &runs.lexical, &runs.default].map(|run| set.score(run).ndcg);
            println!("{name}: dense {dense:.4}, lexical {lexical:.4}, default {default:.4}");
            assert!(default >= floor, "{name}");
            assert!(default >= dense.max(lexical) - 0.01, "{name}");
        }
    }

    // SRCH-63 SRCH-53
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs the judged corpora and the model; `make test` runs it where they are"]
    async fn words_find_japanese_and_an_english_model_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let set = JudgedSet::read(&corpora().join("jsquad"));
        let kb: &Path = &set.unpack(folder.path());
        let (groove, _) = indexed(kb, &model(), PrecisionChoice::Auto).await;
        let runs = runs(&set, &groove.searcher(), 10).await;
        let [lexical, blind, default] =
            [&runs.lexical, &runs.blind, &runs.default].map(|run| set.score(run).ndcg);
        println!("lexical {lexical:.4}, blind {blind:.4}, default {default:.4}");
        assert!(lexical >= 0.93 && default >= 0.93 && blind < 0.8);
    }
}
