//! What a client wants to hear of, and telling it.

#![expect(deprecated, reason = "clients of the revisions before 2026-07-28 know no other way")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;

use rmcp::RoleServer;
use rmcp::model::LoggingLevel;
use rmcp::model::LoggingMessageNotificationParam;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::model::SubscriptionFilter;
use rmcp::service::Peer;
use rmcp::service::SubscriptionContext;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::domain::document::DocumentPath;
use crate::domain::resource::ResourceName;
use crate::domain::resource::group_of;
use crate::ports::transport::Library;
use crate::ports::transport::Listener;
use crate::ports::transport::News;

/// News that a slow session may lag behind before it is told that anything may
/// have changed.
const BACKLOG: usize = 1024;

/// The most addresses that a session may subscribe to.
pub(super) const MOST_SUBSCRIPTIONS: usize = 1000;

/// Where the news of the library go through.
#[derive(Clone)]
pub(super) struct Newsroom {
    news: broadcast::Sender<News>,
    /// Kept for as long as anybody may ask for news.
    _ear: Arc<Ear>,
    /// Whether there is ever any news.
    pub(super) is_open: bool,
}

struct Ear(broadcast::Sender<News>);

impl Listener for Ear {
    fn hear(&self, news: &News) {
        // With nobody in the room, nobody has to be told.
        let _unheard = self.0.send(news.clone());
    }
}

impl Newsroom {
    /// Listens to a library.
    pub(super) fn of(library: &dyn Library) -> Self {
        let news = broadcast::Sender::new(BACKLOG);
        let ear = Arc::new(Ear(news.clone()));
        let weak = Arc::downgrade(&ear);
        let listener: Weak<dyn Listener> = weak;
        let is_open = library.listen(listener);
        Self { news, _ear: ear, is_open }
    }

    /// Tells the listener of one `subscriptions/listen`, until it wants no more.
    pub(super) async fn tell(&self, listener: &SubscriptionContext) {
        let mut news = self.news.subscribe();
        let sink = listener.sink();
        let uris: BTreeSet<String> =
            listener.accepted().resource_subscriptions.iter().flatten().cloned().collect();
        let wants_list = listener.accepted().resources_list_changed == Some(true);
        loop {
            let heard = tokio::select! {
                () = listener.cancelled() => return,
                heard = news.recv() => heard,
            };
            let Some(told) = Told::of(heard, &uris) else { return };
            for uri in told.uris {
                if sink.notify_resource_updated(uri).await.is_err() {
                    return;
                }
            }
            if told.list && wants_list && sink.notify_resource_list_changed().await.is_err() {
                return;
            }
        }
    }

    /// Of what is asked for, what can be listened to.
    pub(super) fn acceptable(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if !self.is_open {
            return None;
        }
        let mut accepted = SubscriptionFilter::default();
        accepted.resources_list_changed = requested.resources_list_changed.filter(|wanted| *wanted);
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
            let ours = uris.iter().filter(|uri| ResourceName::from_uri(uri).is_some());
            ours.take(MOST_SUBSCRIPTIONS).cloned().collect()
        });
        Some(accepted)
    }
}

/// What one session has to be told because of one piece of news.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    uris: Vec<String>,
    list: bool,
    warning: Option<String>,
}

impl Told {
    /// None if there will be no more news.
    fn of(heard: Result<News, RecvError>, subscribed: &BTreeSet<String>) -> Option<Self> {
        Some(match heard {
            Ok(News::Document(path)) => {
                let uris = subscribed.iter().filter(|uri| concerns(uri, &path)).cloned().collect();
                Self { uris, ..Self::default() }
            }
            Ok(News::Groups) => Self { list: true, ..Self::default() },
            Ok(News::Warning(text)) => Self { warning: Some(text), ..Self::default() },
            // What was missed may have been anything.
            Err(RecvError::Lagged(_)) => {
                Self { uris: subscribed.iter().cloned().collect(), list: true, warning: None }
            }
            Err(RecvError::Closed) => return None,
        })
    }
}

/// Whether the resource at an address shows a document.
fn concerns(uri: &str, path: &DocumentPath) -> bool {
    match ResourceName::from_uri(uri) {
        Some(ResourceName::Document(document)) => document == *path,
        Some(ResourceName::Group(prefix)) => prefix == group_of(path),
        None => false,
    }
}

/// What one session with a handshake wants to hear of.
#[derive(Default)]
pub(super) struct Attention {
    wishes: Arc<Mutex<Wishes>>,
    telling: Mutex<Option<AbortHandle>>,
}

#[derive(Default)]
struct Wishes {
    uris: BTreeSet<String>,
    /// Messages below are not sent; none at all as long as nobody asked.
    level: Option<LoggingLevel>,
}

impl Drop for Attention {
    fn drop(&mut self) {
        let telling = self.telling.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = telling.take() {
            task.abort();
        }
    }
}

impl Attention {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes; false if there are too many subscriptions.
    pub(super) fn subscribe(&self, uri: String) -> bool {
        let mut wishes = self.wishes();
        let is_room = wishes.uris.len() < MOST_SUBSCRIPTIONS;
        is_room && {
            wishes.uris.insert(uri);
            true
        }
    }

    /// Subscribes no longer.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.wishes().uris.remove(uri);
    }

    /// Wants messages of this level and above.
    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.wishes().level = Some(level);
    }

    /// Whether warnings are wanted.
    pub(super) fn wants_warnings(&self) -> bool {
        self.wishes().level.is_some_and(includes_warnings)
    }

    /// Tells a client what it wants to hear of from now on, once for a session.
    pub(super) fn attend(&self, newsroom: &Newsroom, peer: &Peer<RoleServer>) {
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        if telling.is_some() || !newsroom.is_open {
            return;
        }
        let news = newsroom.news.subscribe();
        let task = tokio::spawn(follow(news, Arc::clone(&self.wishes), peer.clone()));
        *telling = Some(task.abort_handle());
    }
}

/// Whether messages of this level include warnings.
pub(super) fn includes_warnings(level: LoggingLevel) -> bool {
    matches!(
        level,
        LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice | LoggingLevel::Warning
    )
}

async fn follow(
    mut news: broadcast::Receiver<News>,
    wishes: Arc<Mutex<Wishes>>,
    peer: Peer<RoleServer>,
) {
    loop {
        let heard = news.recv().await;
        let (told, warnings) = {
            let wishes = wishes.lock().unwrap_or_else(PoisonError::into_inner);
            (Told::of(heard, &wishes.uris), wishes.level.is_some_and(includes_warnings))
        };
        let Some(told) = told else { return };
        for uri in told.uris {
            let update = ResourceUpdatedNotificationParam::new(uri);
            if peer.notify_resource_updated(update).await.is_err() {
                return;
            }
        }
        if told.list && peer.notify_resource_list_changed().await.is_err() {
            return;
        }
        if let Some(warning) = told.warning.filter(|_| warnings) {
            warn(&peer, "index", &warning).await;
        }
    }
}

/// Sends a warning as a message of the log.
///
/// - `logger`: the part of the service that warns.
pub(super) async fn warn(peer: &Peer<RoleServer>, logger: &str, text: &str) {
    let message = LoggingMessageNotificationParam::new(LoggingLevel::Warning, json!(text));
    if let Err(error) = peer.notify_logging_message(message.with_logger(logger)).await {
        tracing::debug!(%error, "a warning could not be sent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(heard: Result<News, RecvError>, subscribed: &[&str]) -> Option<Told> {
        Told::of(heard, &subscribed.iter().map(|&uri| uri.to_owned()).collect())
    }

    // MCP-B16
    #[test]
    fn a_change_concerns_the_document_and_its_group() {
        let news = || Ok(News::Document(DocumentPath::new("a/b/ü c.md").unwrap()));
        let uris = ["kb://doc/a/b/%C3%BC%20c.md", "kb://doc/a/b/%c3%bc%20c.md", "kb://topic/a/b/"];
        assert_eq!(told(news(), &uris).unwrap().uris, uris);
        for other in ["kb://doc/a/b.md", "kb://topic/a", "kb://topic/", "kb://x"] {
            assert_eq!(told(news(), &[other]), Some(Told::default()), "{other}");
        }
    }

    // MCP-B16
    #[test]
    fn whoever_missed_news_is_told_that_anything_may_have_changed() {
        let all = told(Err(RecvError::Lagged(3)), &["kb://doc/a.md"]).unwrap();
        assert_eq!((all.uris.len(), all.list), (1, true));
        assert_eq!(told(Err(RecvError::Closed), &[]), None);
        assert!(told(Ok(News::Groups), &["kb://doc/a.md"]).unwrap().list);
    }

    // MCP-B19
    #[test]
    fn warnings_are_sent_to_those_who_asked_for_them() {
        let attention = Attention::default();
        assert!(!attention.wants_warnings());
        attention.set_level(LoggingLevel::Error);
        assert!(!attention.wants_warnings());
        attention.set_level(LoggingLevel::Info);
        assert!(attention.wants_warnings());
    }

    // MCP-B16
    #[test]
    fn a_session_subscribes_to_so_many_addresses_and_no_more() {
        let attention = Attention::default();
        for number in 0..MOST_SUBSCRIPTIONS {
            assert!(attention.subscribe(number.to_string()));
        }
        assert!(!attention.subscribe("one more".into()));
        attention.unsubscribe("7");
        assert!(attention.subscribe("one more".into()));
    }
}
