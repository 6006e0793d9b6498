//! Floors under the relevance of answers, on judged sets of queries.

mod with_corpora {
    use std::path::{Path, PathBuf};

    use grooveseek::app::wiring::PrecisionChoice;

    use crate::judged::{JudgedSet, indexed, score, score_lexical};

    fn corpora() -> PathBuf {
        PathBuf::from(std::env::var_os("GROOVE_TEST_CORPORA").expect("GROOVE_TEST_CORPORA"))
            .join("retrieval")
    }

    fn model() -> PathBuf {
        PathBuf::from(std::env::var_os("GROOVE_TEST_MODEL").expect("GROOVE_TEST_MODEL"))
    }

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs the judged corpora and the model; `make test` runs it where they are"]
    async fn on_scientific_claims_fusion_beats_both_legs() {
        let folder = tempfile::tempdir().unwrap();
        let set = JudgedSet::read(&corpora().join("scifact"));
        let kb = set.unpack(folder.path());
        let (groove, report) = indexed(&kb, &model(), PrecisionChoice::Auto).await;
        assert_eq!((report.documents, report.skipped), (5183, 0));
        let scores = score(&set, &groove.searcher()).await;
        println!("{scores:?}");
        assert!(scores.dense.ndcg >= 0.63, "{scores:?}");
        assert!(scores.hybrid.ndcg >= scores.dense.ndcg, "{scores:?}");
        assert!(scores.hybrid.ndcg >= scores.lexical.ndcg, "{scores:?}");
    }

    // SRCH-63 SRCH-53
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs the judged corpora and the model; `make test` runs it where they are"]
    async fn full_text_finds_japanese() {
        let folder = tempfile::tempdir().unwrap();
        let set = JudgedSet::read(&corpora().join("jsquad"));
        let kb: &Path = &set.unpack(folder.path());
        let (groove, _) = indexed(kb, &model(), PrecisionChoice::Auto).await;
        let score = score_lexical(&set, &groove.searcher()).await;
        println!("{score:?}");
        assert!(score.ndcg >= 0.85, "{score:?}");
    }
}
