//! How fast a model embeds on this machine.

use std::time::{Duration, Instant};

use crate::ports::embedder::{EmbedError, Embedder};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Texts of about a hundred words that are embedded in a second.
    pub texts_per_second: f64,
    /// The median time of a query.
    pub query: Duration,
}

/// Texts of a measurement: enough to keep every core busy, few enough to wait
/// for.
const TEXTS: usize = 48;
const QUERIES: usize = 15;

const SENTENCES: [&str; 6] = [
    "The tide tables are printed in spring and hang beside the harbour office door.",
    "Whoever closes the workshop in the evening empties the kettle and locks the gate.",
    "Invoices above two thousand need a second signature before they are paid.",
    "The backup runs at three in the morning and reports to the shared mailbox.",
    "New colleagues collect their badge at the reception and their keys a floor above.",
    "A loaf needs four hours in all, most of which it spends rising in a warm place.",
];

/// Embeds some documents and some queries.
///
/// # Errors
///
/// What embedding fails with.
pub async fn measure(embedder: &dyn Embedder) -> Result<Speed, EmbedError> {
    let texts: Vec<String> = (0..TEXTS)
        .map(|number| {
            let sentences = (0..7).map(|next| SENTENCES[(number + next * 5) % SENTENCES.len()]);
            format!("{number}. {}", sentences.collect::<Vec<_>>().join(" "))
        })
        .collect();
    // What is packed when it is first used is no part of the speed.
    embedder.embed_documents(&texts[..4]).await?;
    let started = Instant::now();
    embedder.embed_documents(&texts).await?;
    let seconds = started.elapsed().as_secs_f64().max(1e-9);
    let mut times = Vec::new();
    for number in 0..=QUERIES {
        let started = Instant::now();
        embedder.embed_query(&format!("who locks the gate of workshop {number}")).await?;
        times.push(started.elapsed());
    }
    let mut times = times.split_off(1);
    times.sort();
    #[expect(clippy::cast_precision_loss, reason = "a few dozen texts")]
    let texts_per_second = TEXTS as f64 / seconds;
    Ok(Speed { texts_per_second, query: times[times.len() / 2] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::embedder::hashing::HashingEmbedder;

    #[tokio::test]
    async fn a_speed_is_a_positive_number() {
        let speed = measure(&HashingEmbedder::new(64)).await.unwrap();
        assert!(speed.texts_per_second.is_finite() && speed.texts_per_second > 0.0);
        assert!(speed.query > Duration::ZERO);
    }
}
