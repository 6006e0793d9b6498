//! Telling what lowers the quality of chunks.

use crate::app::error::AppError;
use crate::domain::document::DocumentPath;
use crate::domain::quality::{Penalty, Profile, Rules};
use crate::ports::chunk_store::{Snapshot, StoredChunk};

/// The most examples of a penalty.
const EXAMPLES: usize = 5;
/// The most characters of an example's content.
const BEGINNING_CHARS: usize = 60;

/// What lowers the quality of the chunks of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QualityReport {
    /// Chunks of the index.
    pub chunks: u64,
    /// Those of them that score less than 1.
    pub lowered: u64,
    /// Every penalty that applies to a chunk, in the order of
    /// [`Penalty::ALL`].
    pub penalties: Vec<Lowered>,
}

/// The chunks that a penalty applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The penalty.
    pub penalty: Penalty,
    /// How many chunks it applies to, at least 1.
    pub chunks: u64,
    /// The first five of them, by path and place.
    pub examples: Vec<Example>,
}

/// A chunk as it is shown to the owner of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its document.
    pub path: DocumentPath,
    /// Its heading, on one line.
    pub heading: Option<String>,
    /// The first 60 characters of its content, with single spaces for all white
    /// space; three dots if there is more.
    pub beginning: String,
}

/// Tells which penalties the rules hold against the chunks of an index. Stored
/// scores play no part. Reads every chunk, one document at a time.
///
/// # Errors
///
/// [`AppError::Store`] if the index cannot be read.
pub async fn explain(snapshot: &dyn Snapshot, rules: &Rules) -> Result<QualityReport, AppError> {
    let mut report = QualityReport::default();
    let mut found = Penalty::ALL.map(|penalty| Lowered { penalty, chunks: 0, examples: vec![] });
    for document in snapshot.documents().await? {
        let extension = document.path.extension().unwrap_or_default();
        for stored in snapshot.chunks_of(&document.path).await? {
            let chunk = &stored.chunk;
            let profile = Profile::of_extension(extension, chunk.symbol_kind.as_deref());
            let penalties = rules.explain(&chunk.content, chunk.heading.as_deref(), profile);
            report.chunks += 1;
            report.lowered += u64::from(!penalties.is_empty());
            for lowered in found.iter_mut().filter(|lowered| penalties.contains(&lowered.penalty)) {
                lowered.chunks += 1;
                if lowered.examples.len() < EXAMPLES {
                    lowered.examples.push(example(&stored));
                }
            }
        }
    }
    report.penalties = found.into_iter().filter(|lowered| lowered.chunks > 0).collect();
    Ok(report)
}

fn example(stored: &StoredChunk) -> Example {
    let chunk = &stored.chunk;
    Example {
        path: stored.document.path.clone(),
        heading: chunk.heading.as_deref().map(on_one_line),
        beginning: beginning(&chunk.content),
    }
}

/// The first 60 characters of a content, with single spaces for all white space;
/// three dots if there is more.
pub fn beginning(content: &str) -> String {
    let text = on_one_line(content);
    match text.char_indices().nth(BEGINNING_CHARS) {
        Some((end, _)) => format!("{}...", text[..end].trim_end()),
        None => text,
    }
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::Bench;
    use crate::domain::quality::Signals;

    async fn report(bench: &Bench, rules: &Rules) -> QualityReport {
        explain(&*bench.indexer.store.snapshot().await.unwrap(), rules).await.unwrap()
    }

    // QUA-B06
    #[tokio::test]
    async fn every_penalty_is_counted_with_the_first_chunks_it_applies_to() {
        let line = "one line of more than thirty characters but not of eighty";
        let whole = "words ".repeat(30);
        let mut documents = vec![("sound.md".to_owned(), whole)];
        documents.extend((0..7).map(|number| (format!("{number}.md"), "TODO".to_owned())));
        documents.push(("line.md".to_owned(), format!("## Long\n\n{line} {line}\n")));
        documents.push(("port.md".to_owned(), "## Port\n\nport:\t3100\n80\n".to_owned()));
        let documents: Vec<(&str, &str)> =
            documents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let bench = Bench::new(&documents);
        bench.run().await;
        let told = report(&bench, &Rules::default()).await;
        assert_eq!((told.chunks, told.lowered), (10, 8));
        let counts: Vec<_> =
            told.penalties.iter().map(|found| (found.penalty, found.chunks)).collect();
        let expected = [(Penalty::Boilerplate, 7), (Penalty::Length, 8), (Penalty::Structure, 7)];
        assert_eq!(counts, expected);
        let examples = &told.penalties[0].examples;
        assert_eq!(examples.len(), 5);
        assert_eq!(examples[0].path.as_str(), "0.md");
        assert_eq!((examples[4].path.as_str(), &*examples[4].beginning), ("4.md", "TODO"));

        let extra = vec!["port: 3100\n80".to_owned(), "port:\t3100\n80".to_owned()];
        let rules = Rules { signals: Signals::default(), extra_boilerplate: extra };
        let found = report(&bench, &rules).await.penalties.swap_remove(0);
        assert_eq!((found.penalty, found.chunks), (Penalty::Boilerplate, 8));
    }

    #[test]
    fn an_example_is_the_beginning_on_one_line() {
        assert_eq!(beginning("  a\n\n\tb  "), "a b");
        assert_eq!(beginning(&"語".repeat(60)), "語".repeat(60));
        assert_eq!(beginning(&"語".repeat(61)), format!("{}...", "語".repeat(60)));
    }
}
