//! Passing on what changes in an index to those who want to hear of it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::app::index::{IndexEvent, Observer};
use crate::app::line::on_one_line;
use crate::domain::document::DocumentPath;
use crate::domain::resource::group_of;
use crate::ports::chunk_store::{ChunkStore, StoreError};
use crate::ports::transport::{Listener, News};

/// Who listens, and what they know.
#[derive(Default)]
pub struct NewsDesk {
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    /// The prefixes of the groups when they were looked at last.
    groups: Mutex<Option<BTreeSet<String>>>,
}

impl fmt::Debug for NewsDesk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("NewsDesk").finish_non_exhaustive()
    }
}

impl NewsDesk {
    /// Has a listener hear of everything, for as long as it exists.
    pub fn add(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// Tells everybody.
    pub fn tell(&self, news: &News) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.hear(news);
        }
    }

    /// Looks at the groups of the index, and tells if they are not those of the
    /// last time. The first time there is nothing to tell.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the index cannot be read.
    pub async fn look_at_groups(&self, store: &dyn ChunkStore) -> Result<(), StoreError> {
        let documents = store.snapshot().await?.documents().await?;
        let now: BTreeSet<String> =
            documents.iter().map(|document| group_of(&document.path).to_owned()).collect();
        let before = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.replace(now.clone())
        };
        if before.is_some_and(|before| before != now) {
            self.tell(&News::Groups);
        }
        Ok(())
    }

    fn tell_of(&self, path: &DocumentPath) {
        self.tell(&News::Document(path.clone()));
    }
}

/// Tells of the documents that an index run changes, and passes everything on.
pub struct Telling {
    /// Whom to tell; nobody if there is none.
    pub desk: Option<Arc<NewsDesk>>,
    /// Who hears everything.
    pub next: Arc<dyn Observer>,
}

impl fmt::Debug for Telling {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Telling").field("desk", &self.desk).finish_non_exhaustive()
    }
}

impl Observer for Telling {
    fn event(&self, event: IndexEvent<'_>) {
        if let Some(desk) = &self.desk {
            let warn = |text: String| desk.tell(&News::Warning(on_one_line(&text).into_owned()));
            match &event {
                IndexEvent::Indexed { path, .. }
                | IndexEvent::Described { path }
                | IndexEvent::Deleted { path } => desk.tell_of(path),
                IndexEvent::Renamed { from, to } => {
                    desk.tell_of(from);
                    desk.tell_of(to);
                }
                IndexEvent::Warning(text) => warn((*text).to_owned()),
                IndexEvent::Skipped { path, reason } => warn(format!("skipped {path}: {reason}")),
                IndexEvent::FrontmatterUnparsed { path, reason } => {
                    warn(format!("{path}: failed to parse YAML frontmatter: {reason}"));
                }
                _ => {}
            }
        }
        self.next.event(event);
    }
}

#[cfg(test)]
pub(in crate::app) mod tests {
    use super::*;
    use crate::app::testing::Bench;

    /// Keeps what it hears.
    #[derive(Default)]
    pub(in crate::app) struct Ear(pub(in crate::app) Mutex<Vec<News>>);

    impl Ear {
        /// What was heard since this was last asked.
        pub(in crate::app) fn heard(&self) -> Vec<News> {
            std::mem::take(&mut *self.0.lock().unwrap())
        }
    }

    impl Listener for Ear {
        fn hear(&self, news: &News) {
            self.0.lock().unwrap().push(news.clone());
        }
    }

    fn document(path: &str) -> News {
        News::Document(DocumentPath::new(path).unwrap())
    }

    // MCP-B16
    #[tokio::test]
    async fn a_run_tells_of_what_it_changed_and_of_new_groups() {
        let bench = Bench::new(&[("a/b.md", "Some text about tides and moons.")]);
        let (desk, ear) = (Arc::new(NewsDesk::default()), Arc::new(Ear::default()));
        let listener: Weak<dyn Listener> = Arc::downgrade(&(Arc::clone(&ear) as Arc<dyn Listener>));
        desk.add(listener);
        let observer: Arc<dyn Observer> =
            Arc::new(Telling { desk: Some(Arc::clone(&desk)), next: bench.observer() });
        let run = async || {
            bench.indexer.run(false, &observer).await.unwrap();
            desk.look_at_groups(&*bench.indexer.store).await.unwrap();
            ear.heard()
        };
        assert_eq!(run().await, [document("a/b.md")]);
        assert_eq!(run().await, []);
        bench.source.put("a/b.md", "---\n[\n---\nOther text about tides and moons.");
        let heard = run().await;
        assert!(heard.contains(&document("a/b.md")) && heard.len() == 2, "{heard:?}");
        assert!(
            heard.iter().any(|news| matches!(news, News::Warning(text) if text.contains("YAML")))
        );
        bench.source.put("c/d.md", "Some text about winds and storms.");
        assert_eq!(run().await, [document("c/d.md"), News::Groups]);
        assert!(bench.source.remove("c/d.md"));
        assert_eq!(run().await, [document("c/d.md"), News::Groups]);
    }

    #[test]
    fn a_listener_that_has_gone_hears_nothing() {
        let (desk, ear) = (NewsDesk::default(), Arc::new(Ear::default()));
        desk.add(Arc::downgrade(&(Arc::clone(&ear) as Arc<dyn Listener>)));
        desk.tell(&News::Groups);
        assert_eq!(ear.heard(), [News::Groups]);
        drop(ear);
        desk.tell(&News::Groups);
    }
}
