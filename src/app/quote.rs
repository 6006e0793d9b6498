//! Checking quotes against the documents that they are said to come from.

use std::fmt;
use std::sync::Arc;

use crate::app::error::AppError;
use crate::app::read::{Reader, Unread, Whole};
use crate::domain::document::DocumentPath;
use crate::domain::location::cite;
use crate::domain::query::CompiledQuery;
use crate::domain::quote::Quotable;
use crate::ports::chunk_store::{ChunkStore, LexicalQuery, Restriction};
use crate::ports::transport::{QuoteAnswer, QuotePlace, QuoteRequest};

/// The longest quote, in bytes.
const MOST_BYTES: usize = 8 * 1024;
/// The most places that are told.
const MOST_PLACES: usize = 20;
/// How many chunks, and documents of these, are looked at elsewhere.
const MOST_CHUNKS: usize = 100;
const MOST_DOCUMENTS: usize = 20;
/// How much of a quote is looked for in the index, in bytes.
const PROBE_BYTES: usize = 400;

/// The use case of checking a quote.
pub struct QuoteCheck {
    /// Where documents are looked for.
    pub store: Arc<dyn ChunkStore>,
    /// What reads them.
    pub reader: Reader,
}

impl fmt::Debug for QuoteCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("QuoteCheck").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl QuoteCheck {
    /// Looks for a quote in the text of a document as it is now, and in what the
    /// index knows of that is near in words, if it is not there.
    ///
    /// # Errors
    ///
    /// [`AppError::Invalid`] if the quote is blank or too long, or the document
    /// could not be a document or must not be read; a document that is missing
    /// is no error. [`AppError::Store`] if the index cannot be read.
    pub async fn verify(&self, request: &QuoteRequest) -> Result<QuoteAnswer, AppError> {
        let quote = &request.text;
        if quote.trim().is_empty() {
            return Err(AppError::Invalid("`text` is blank; give the quote to look for".into()));
        }
        if quote.len() > MOST_BYTES {
            return Err(AppError::Invalid(format!(
                "`text` has {} bytes, the limit is {MOST_BYTES}; verify a shorter part of it",
                quote.len()
            )));
        }
        DocumentPath::new(request.path.as_str())
            .map_err(|_| Unread::Missing(request.path.clone()))?;
        let read = self.reader.whole(&request.path, true).await?;
        match read {
            Ok(whole) => {
                let places = places(&request.path, whole, quote).await?;
                if !places.is_empty() {
                    return Ok(QuoteAnswer { places, is_exact: true });
                }
            }
            Err(Unread::Missing(_)) => {}
            Err(unread) => return Err(unread.into()),
        }
        Ok(QuoteAnswer { places: self.elsewhere(request).await?, is_exact: false })
    }

    async fn elsewhere(&self, request: &QuoteRequest) -> Result<Vec<QuotePlace>, AppError> {
        let mut found = Vec::new();
        for path in self.candidates(&request.text).await? {
            if path.as_str() == request.path {
                continue;
            }
            // What cannot be read is no place where the quote can be shown to be.
            if let Ok(whole) = self.reader.whole(path.as_str(), true).await? {
                found.extend(places(path.as_str(), whole, &request.text).await?);
            }
            if found.len() >= MOST_PLACES {
                found.truncate(MOST_PLACES);
                break;
            }
        }
        Ok(found)
    }

    /// The documents that share the most words with a quote.
    async fn candidates(&self, quote: &str) -> Result<Vec<DocumentPath>, AppError> {
        let probe = &quote[..quote.floor_char_boundary(PROBE_BYTES)];
        // Nothing in a quote is meant as the syntax of a query.
        let words = probe.replace(|character: char| !character.is_alphanumeric(), " ");
        let Ok(query) = CompiledQuery::compile(&words) else { return Ok(Vec::new()) };
        let query = LexicalQuery {
            text: query.plain_text().to_owned(),
            verbatim: query.verbatim().to_vec(),
            phrases: query.include().to_vec(),
            ..LexicalQuery::default()
        };
        let snapshot = self.store.snapshot().await?;
        let matches = snapshot.matching(&query, MOST_CHUNKS, &Restriction::default()).await?;
        let chunks: Vec<_> = matches.candidates.iter().map(|candidate| candidate.chunk).collect();
        let mut paths: Vec<DocumentPath> = Vec::new();
        for chunk in snapshot.chunks(&chunks).await? {
            let path = &chunk.document.path;
            if !paths.contains(path) && paths.len() < MOST_DOCUMENTS {
                paths.push(path.clone());
            }
        }
        Ok(paths)
    }
}

/// Where a quote stands in a document. Folding a long text takes a while.
async fn places(path: &str, whole: Whole, quote: &str) -> Result<Vec<QuotePlace>, AppError> {
    let (path, quote) = (path.to_owned(), quote.to_owned());
    let work = move || {
        let text = Quotable::new(&whole.text);
        let spans = text.find(&quote, MOST_PLACES).into_iter();
        let title = whole.metadata.title.as_deref();
        spans
            .map(|span| {
                let lines = text.lines(span);
                QuotePlace {
                    path: path.clone(),
                    lines,
                    start: span.start,
                    end: span.end,
                    cite: cite(title, None, &path, Some(lines)),
                    uri: None,
                }
            })
            .collect()
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| AppError::Interrupted { what: "looking for the quote" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::Bench;
    use crate::ports::document_source::Refusal;

    const TIDES: &str = "---\ntitle: Tides\n---\n\nThe water falls for\nsix hours, more or less.\n";
    const SEARCH: &str = "# 検索\n\nこの文書は全文\n検索について説明します。\n";

    async fn verify(bench: &Bench, text: &str, path: &str) -> Result<QuoteAnswer, String> {
        let check = QuoteCheck {
            store: Arc::clone(&bench.indexer.store),
            reader: Reader {
                source: Arc::clone(&bench.source) as Arc<_>,
                registry: bench.indexer.registry.clone(),
            },
        };
        let request = QuoteRequest { text: text.into(), path: path.into() };
        check.verify(&request).await.map_err(|error| error.to_string())
    }

    async fn bench() -> Bench {
        let bench = Bench::new(&[("sea/tides.md", TIDES), ("ja/search.md", SEARCH)]);
        bench.run().await;
        bench
    }

    #[tokio::test]
    async fn a_quote_is_found_in_its_document_with_its_lines() {
        let bench = bench().await;
        let answer = verify(&bench, "falls for six  hours", "sea/tides.md").await.unwrap();
        let place = &answer.places[0];
        assert!(answer.is_exact);
        assert_eq!(&TIDES[place.start..place.end], "falls for\nsix hours");
        assert_eq!((place.lines.start, place.lines.end), (5, 6));
        assert_eq!(place.cite, "Tides (sea/tides.md:5-6)");
        let answer = verify(&bench, "全文検索について", "ja/search.md").await.unwrap();
        assert!(answer.is_exact && answer.places.len() == 1);
    }

    #[tokio::test]
    async fn a_quote_that_stands_elsewhere_is_said_to_have_moved() {
        let bench = bench().await;
        for (text, found, said) in [
            ("water falls for six hours, more", "sea/tides.md", "ja/search.md"),
            ("全文検索について説明", "ja/search.md", "sea/tides.md"),
            ("全文検索について説明", "ja/search.md", "old/name.md"),
        ] {
            let answer = verify(&bench, text, said).await.unwrap();
            assert!(!answer.is_exact);
            let paths: Vec<_> = answer.places.iter().map(|place| place.path.as_str()).collect();
            assert_eq!(paths, [found], "{text}");
        }
    }

    #[tokio::test]
    async fn what_nobody_wrote_is_not_found() {
        let bench = bench().await;
        for text in ["The water rises for six hours", "全文検索について話します", "?!"]
        {
            let answer = verify(&bench, text, "sea/tides.md").await.unwrap();
            assert_eq!(answer, QuoteAnswer::default(), "{text}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_checked_is_refused() {
        let bench = bench().await;
        bench.source.put_refused("link.md", Refusal::SymbolicLink);
        let long = "x".repeat(MOST_BYTES + 1);
        for (text, path, said) in [
            (" \n", "sea/tides.md", "blank"),
            (long.as_str(), "sea/tides.md", "limit"),
            ("water", "../sea/tides.md", "not found"),
            ("water", "link.md", "denied"),
        ] {
            let refused = verify(&bench, text, path).await.unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
