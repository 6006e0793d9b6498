//! The documents of an index as resources.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;

use crate::app::best_practice::Templates;
use crate::app::error::{AppError, chain};
use crate::app::news::NewsDesk;
use crate::app::offer::offered;
use crate::app::read::{Reader, Unread, part_of};
use crate::domain::document::DocumentPath;
use crate::domain::resource::{ResourceEntry, ResourceGroup, document_uri, groups};
use crate::ports::chunk_store::{ChunkStore, Document, StoreError};
use crate::ports::transport::{
    Completable, DocumentAnswer, DocumentRequest, Library, Listener, Refused, Unopened,
};

/// Where a client learns why a document cannot be opened.
const SEE_DOCTOR: &str = "`groove doctor` tells why a document is held back";

/// The documents that are offered.
#[derive(Clone)]
pub struct Shelf {
    /// Where documents are recorded.
    pub store: Arc<dyn ChunkStore>,
    /// What reads them.
    pub reader: Reader,
    /// The bytes that a binary file may unpack to while it is indexed.
    pub max_decompressed_size: Option<u64>,
    /// Where best practice is written down.
    pub templates: Templates,
    /// Who passes on changes, if anybody notices them.
    pub news: Option<Arc<NewsDesk>>,
}

impl fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Shelf").field("templates", &self.templates).finish_non_exhaustive()
    }
}

impl Shelf {
    /// Whether a document is handed out as a resource.
    fn offers(&self, document: &Document) -> bool {
        offered(
            &document.path,
            document.size_bytes,
            self.reader.registry.formats(),
            self.max_decompressed_size,
        )
        .is_ok()
    }

    /// Every document that is offered.
    async fn documents(&self) -> Result<Vec<Arc<Document>>, StoreError> {
        let mut documents = self.store.snapshot().await?.documents().await?;
        documents.retain(|document| self.offers(document));
        Ok(documents)
    }

    /// What is known of documents by their keys: their addresses if they are
    /// offered.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the index cannot be read.
    pub async fn uris<'a>(
        &self,
        keys: impl Iterator<Item = &'a str>,
    ) -> Result<BTreeMap<String, Option<String>>, StoreError> {
        let mut paths: Vec<DocumentPath> =
            keys.filter_map(|key| DocumentPath::new(key).ok()).collect();
        paths.sort_unstable();
        paths.dedup();
        let documents = self.store.snapshot().await?.documents_at(&paths).await?;
        let uri =
            |document: &Arc<Document>| self.offers(document).then(|| document_uri(&document.path));
        let known = documents.iter().flatten();
        Ok(known.map(|document| (document.path.to_string(), uri(document))).collect())
    }
}

#[async_trait]
impl Library for Shelf {
    async fn groups(&self) -> Result<Vec<ResourceGroup>, Refused> {
        let documents = self.documents().await.map_err(unreadable)?;
        let grouped = move || {
            groups(documents.iter().map(|document| ResourceEntry {
                path: document.path.clone(),
                size_bytes: document.size_bytes,
                indexed_at: document.indexed_at.clone(),
            }))
        };
        tokio::task::spawn_blocking(grouped)
            .await
            .map_err(|_| Refused { message: "grouping the documents ended early".to_owned() })
    }

    async fn open(&self, path: &DocumentPath) -> Result<DocumentAnswer, Unopened> {
        let uris = self.uris(std::iter::once(path.as_str())).await;
        let uris = uris.map_err(|error| Unopened::Failed(unreadable(error)))?;
        if uris.get(path.as_str()).cloned().flatten().is_none() {
            return Err(not_found(&format!("{path} is not offered")));
        }
        let request = DocumentRequest::whole(path.as_str());
        let examined = self.reader.whole(path.as_str(), false).await;
        match examined {
            Ok(Ok(whole)) => {
                part_of(whole, &request).map_err(|error| not_found(&error.to_string()))
            }
            Ok(Err(unread @ Unread::Unexaminable(_))) => {
                Err(Unopened::Failed(Refused { message: unread.to_string() }))
            }
            Ok(Err(unread)) => Err(not_found(&unread.to_string())),
            Err(error) => Err(Unopened::Failed(Refused { message: error.to_string() })),
        }
    }

    async fn complete(&self, what: Completable, start: &str) -> Result<Vec<String>, Refused> {
        let start = start.to_lowercase();
        let documents = self.store.snapshot().await.map_err(unreadable)?.documents().await;
        let documents = documents.map_err(unreadable)?;
        let mut values: Vec<String> = match what {
            Completable::Topic => documents.iter().filter_map(|it| it.topic.clone()).collect(),
            Completable::Path => documents
                .iter()
                .filter(|document| self.offers(document))
                .map(|document| document.path.to_string())
                .collect(),
            Completable::Target => self.templates.targets(documents.iter().map(|it| &it.path)),
        };
        values.retain(|value| value.to_lowercase().starts_with(&start));
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    fn listen(&self, listener: Weak<dyn Listener>) -> bool {
        let Some(news) = &self.news else { return false };
        news.add(listener);
        true
    }
}

fn not_found(reason: &str) -> Unopened {
    Unopened::NotFound(Refused { message: format!("{reason}; {SEE_DOCTOR}") })
}

fn unreadable(error: StoreError) -> Refused {
    let error = AppError::Store(error);
    tracing::error!(error = chain(&error), "the index could not be read for resources");
    Refused { message: "the index could not be read; the server's log says why".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::Bench;
    use crate::ports::document_source::Refusal;

    const TEXT: &str = "Some text about tides and moons.";

    async fn shelf(bench: &Bench) -> Shelf {
        bench.run().await;
        Shelf {
            store: Arc::clone(&bench.indexer.store),
            reader: Reader {
                source: Arc::clone(&bench.source) as Arc<_>,
                registry: bench.indexer.registry.clone(),
            },
            max_decompressed_size: bench.indexer.settings.max_decompressed_size,
            templates: Templates(vec!["best/{target}.md".to_owned()]),
            news: None,
        }
    }

    fn path(text: &str) -> DocumentPath {
        DocumentPath::new(text).unwrap()
    }

    /// A knowledge base with a document that is indexed and too large to open.
    async fn with_a_large_one() -> (Bench, Shelf) {
        let mut bench = Bench::new(&[("a/b.md", TEXT), ("best/rust.md", TEXT)]);
        bench.indexer.settings.max_text_file_size = None;
        bench.source.put("a/large.md", TEXT.repeat(40_000));
        let shelf = shelf(&bench).await;
        (bench, shelf)
    }

    // MCP-73 MCP-75
    #[tokio::test]
    async fn what_is_too_large_to_be_opened_is_in_no_group_and_has_no_address() {
        let (_bench, shelf) = with_a_large_one().await;
        let groups = shelf.groups().await.unwrap();
        let facts: Vec<_> = groups
            .iter()
            .map(|group| (group.prefix.as_str(), group.documents.len(), group.uri()))
            .collect();
        let group = |prefix: &'static str| (prefix, 1, format!("kb://topic/{prefix}"));
        assert_eq!(facts, [group("a"), group("best")]);
        let uris = shelf.uris(["a/b.md", "a/large.md", "no.md", "../x"].into_iter()).await.unwrap();
        let uri = |key: &str| uris.get(key).cloned();
        assert_eq!(uri("a/b.md"), Some(Some("kb://doc/a/b.md".to_owned())));
        assert_eq!((uri("a/large.md"), uri("no.md"), uri("../x")), (Some(None), None, None));
    }

    // MCP-72 MCP-75 MCP-78 MCP-79
    #[tokio::test]
    async fn what_is_offered_is_served_and_nothing_else() {
        let (bench, shelf) = with_a_large_one().await;
        assert_eq!(shelf.open(&path("a/b.md")).await.unwrap().content, TEXT);
        bench.source.put("new.md", TEXT);
        for key in ["a/large.md", "new.md", "A/b.md", "a"] {
            let unopened = shelf.open(&path(key)).await.unwrap_err();
            assert!(matches!(&unopened, Unopened::NotFound(it) if it.message.contains("doctor")));
        }
        bench.source.put_refused("a/b.md", Refusal::MultipleLinks);
        assert!(matches!(shelf.open(&path("a/b.md")).await, Err(Unopened::NotFound(_))));
        bench.source.put_failing("a/b.md");
        assert!(matches!(shelf.open(&path("a/b.md")).await, Err(Unopened::Failed(_))));
    }

    // MCP-B09 MCP-B15 MCP-B17
    #[tokio::test]
    async fn values_are_completed_from_the_index() {
        let (bench, _) = with_a_large_one().await;
        bench.source.put("a/t.md", "---\ntopic: Tides\n---\nSome more text about the sea.");
        let shelf = shelf(&bench).await;
        let complete = async |what, start| shelf.complete(what, start).await.unwrap();
        assert_eq!(complete(Completable::Topic, "ti").await, ["Tides"]);
        assert_eq!(complete(Completable::Path, "A/").await, ["a/b.md", "a/t.md"]);
        assert_eq!(complete(Completable::Target, "").await, ["rust"]);
        assert_eq!(complete(Completable::Topic, "x").await, Vec::<String>::new());
    }

    // MCP-02 MCP-B16
    #[tokio::test]
    async fn without_a_watcher_there_is_nothing_to_hear() {
        let bench = Bench::new(&[]);
        let mut shelf = shelf(&bench).await;
        let listener: Arc<dyn Listener> = Arc::new(crate::app::news::tests::Ear::default());
        assert!(!shelf.listen(Arc::downgrade(&listener)));
        shelf.news = Some(Arc::default());
        assert!(shelf.listen(Arc::downgrade(&listener)));
    }
}
