//! Queries that are no questions.

use grooveseek::domain::query::CompiledQuery;
use grooveseek::ports::chunk_store::ChunkStore as _;

use crate::hostile_queries::{self, Draw, MOST_BYTES};
use crate::{Site, document, put, query, run, search, searcher};

/// Fixed, so that a failure can be looked at again.
const SEED: u64 = 20_261_130;

// SRCH-10 SRCH-47 SRCH-54 SRCH-58 SRCH-62 SRCH-154 SRCH-180
#[test]
fn whatever_is_asked_is_answered_or_refused_by_the_rules() {
    run(2, async {
        let site = Site::new();
        let store = site.open().await;
        for (place, text) in TEXTS.iter().enumerate() {
            let change = put(document(&format!("{place}.md")), &[(*text).to_owned()]).await;
            store.apply(vec![change]).await.unwrap();
        }
        store.load_vectors().await.unwrap();
        let searcher = searcher(&store);
        let mut draw = Draw::new(SEED);
        let (mut answered, mut refused) = (0, 0);
        for number in 0..2500 {
            let text = hostile_queries::query(&mut draw);
            let allowed = text.len() <= MOST_BYTES && CompiledQuery::compile(&text).is_ok();
            match search(&searcher, &query(&text)).await {
                Ok(answer) => {
                    assert!(allowed, "{number}: {text:?} is answered");
                    answered += 1;
                    for hit in &answer.hits {
                        for span in hit.match_spans.iter().flatten() {
                            assert!(hit.content.get(span.start..span.end).is_some(), "{text:?}");
                        }
                    }
                    assert!(!answer.hits.is_empty(), "{number}: {text:?} has no nearest chunk");
                }
                Err(error) => {
                    assert!(!allowed, "{number}: {text:?} is refused: {error}");
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
        assert!(answered > 2000 && refused > 40, "{answered} answered, {refused} refused");
    });
}

const TEXTS: &[&str] = &[
    "The words of a password: \"say hi\" AND (NOT) OR near* {content}: the-end",
    "日本語の再ランキングの評価について、a v1.2.3 of C++ and C#",
    "e\u{301}tude İstanbul straße ﬃ Ω 👩‍👩‍👧 \u{202e}reversed\u{202c} \u{0}null\u{0}",
    "---------- ********** (((((((((( \"\"\"\"\"\"\"\"\"\" aaaaaaaaaaaaaaaaaaaaaaaa",
];
