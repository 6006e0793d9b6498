//! The dense leg against the vector table's own exact search, on embeddings of
//! real texts.

use std::fs;
use std::path::Path;

use grooveseek::adapters::store::sqlite::SqliteStore;
use grooveseek::domain::chunk::Chunk;
use grooveseek::domain::embedding::Embedding;
use grooveseek::ports::chunk_store::{Candidate, Change, ChunkStore, NewChunk, Restriction};
use sqlx::{Connection as _, SqliteConnection};

use crate::{Site, document, run};

/// Depth of the comparison.
const DEPTH: usize = 10;

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/data/embed").join(name)).unwrap()
}

/// Real chunks of documentation.
fn texts() -> Vec<String> {
    serde_json::from_slice(&data("chunks.json")).unwrap()
}

/// Their vectors, in half precision, from an implementation of its own.
fn vectors() -> Vec<Embedding> {
    let bytes = data("reference.f16");
    let (halves, _) = bytes.as_chunks::<2>();
    let numbers: Vec<f32> = halves.iter().map(|&half| widen(u16::from_le_bytes(half))).collect();
    numbers.chunks_exact(384).map(|row| Embedding::normalised(row.to_vec()).unwrap()).collect()
}

fn widen(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 0x1f), f32::from(half & 0x3ff) / 1024.0);
    let magnitude = match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    };
    if half >> 15 == 1 { -magnitude } else { magnitude }
}

/// Stores vectors, asks both searches, and compares.
async fn assert_equal(stored: Vec<Embedding>, queries: &[Embedding]) {
    let site = Site::new();
    let store = site.open().await;
    for (place, vectors) in stored.chunks(50).enumerate() {
        let chunk = |embedding: &Embedding| NewChunk {
            chunk: Chunk { content: "text".to_owned(), ..Chunk::default() },
            quality: 1.0,
            embedding: Some(embedding.clone()),
        };
        let chunks = vectors.iter().map(chunk).collect();
        let document = document(&format!("{place}.md"));
        store.apply(vec![Change::Put { document, chunks }]).await.unwrap();
    }
    let url = format!("sqlite://{}", site.path().display());
    let mut own = SqliteConnection::connect(&url).await.unwrap();
    let mut reference = Vec::new();
    for query in queries {
        reference.push(search_of_the_table(&mut own, query).await);
    }
    for loaded in [false, true] {
        if loaded {
            store.load_vectors().await.unwrap();
        }
        let found = nearest(&store, queries).await;
        let (mut shared, mut all) = (0, 0);
        for (ranking, reference) in found.iter().zip(&reference) {
            assert_eq!(ranking.len(), reference.len());
            assert!(ranking.windows(2).all(|pair| pair[0].score >= pair[1].score));
            let ids: Vec<i64> = reference.iter().map(|(id, _)| *id).collect();
            shared += ranking.iter().filter(|found| ids.contains(&found.chunk.0)).count();
            all += ranking.len();
            for (candidate, (_, distance)) in ranking.iter().zip(reference) {
                let similarity = 1.0 - distance * distance / 2.0;
                assert!((f64::from(candidate.score) - similarity).abs() < 1e-5, "{ranking:?}");
            }
        }
        let recall = shared as f64 / all as f64;
        assert!(recall >= 0.99, "recall@{DEPTH} is {recall}");
    }
}

async fn nearest(store: &SqliteStore, queries: &[Embedding]) -> Vec<Vec<Candidate>> {
    let snapshot = store.snapshot().await.unwrap();
    snapshot.nearest_to_each(queries, DEPTH, &Restriction::default()).await.unwrap()
}

/// Numbers and distances, nearest first.
async fn search_of_the_table(own: &mut SqliteConnection, query: &Embedding) -> Vec<(i64, f64)> {
    let bytes: Vec<u8> = query.as_slice().iter().flat_map(|value| value.to_le_bytes()).collect();
    sqlx::query_as(
        "SELECT chunk_id, distance FROM vec_chunks WHERE embedding MATCH ? AND k = ? \
         ORDER BY distance",
    )
    .bind(bytes)
    .bind(i64::try_from(DEPTH).unwrap())
    .fetch_all(own)
    .await
    .unwrap()
}

// SRCH-74 SRCH-B08
#[test]
fn the_nearest_of_stored_embeddings_are_those_of_the_exact_search() {
    run(2, async {
        let mut stored = vectors();
        let queries: Vec<Embedding> = stored
            .windows(2)
            .step_by(5)
            .map(|pair| Embedding::mean([(&pair[0], 2), (&pair[1], 1)]).unwrap())
            .collect();
        // Those that are asked for most are not there themselves.
        let mut place = 0;
        stored.retain(|_| {
            place += 1;
            place % 5 != 1
        });
        assert_equal(stored, &queries).await;
    });
}

mod with_model {
    use std::env;

    use grooveseek::adapters::embedder::native::{NativeEncoder, Precision};
    use grooveseek::ports::embedder::Embedder as _;

    use super::*;

    // SRCH-74 SRCH-B08
    #[test]
    #[ignore = "needs the all-MiniLM-L6-v2 folder; make test fetches it and runs ignored tests"]
    fn the_nearest_chunks_of_a_real_query_are_those_of_the_exact_search() {
        run(2, async {
            let folder =
                env::var_os("GROOVE_TEST_MODEL").expect("GROOVE_TEST_MODEL names a folder");
            let model = NativeEncoder::open("all-minilm-l6-v2", folder.as_ref(), Precision::Auto);
            let model = model.unwrap();
            let texts = texts();
            let documents: Vec<String> = texts.iter().step_by(6).cloned().collect();
            let stored = model.embed_documents(&documents).await.unwrap().embeddings;
            let mut queries = Vec::new();
            for text in texts.iter().skip(1).step_by(30) {
                let words: Vec<&str> = text.split_whitespace().take(9).collect();
                queries.push(model.embed_query(&words.join(" ")).await.unwrap());
            }
            assert_equal(stored, &queries).await;
        });
    }
}
