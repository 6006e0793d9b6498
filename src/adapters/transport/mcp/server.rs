//! The service as an MCP server.

#![expect(deprecated, reason = "clients of revisions before 2026-07-28 set a level of messages")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use futures::future::Either;
use jiff::Timestamp;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::CacheScope;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResponse;
use rmcp::model::CallToolResult;
use rmcp::model::CancelledNotificationParam;
use rmcp::model::CompleteRequestParams;
use rmcp::model::CompleteResult;
use rmcp::model::CustomRequest;
use rmcp::model::CustomResult;
use rmcp::model::ErrorCode;
use rmcp::model::ErrorData;
use rmcp::model::GetPromptRequestParams;
use rmcp::model::GetPromptResponse;
use rmcp::model::Implementation;
use rmcp::model::ListPromptsResult;
use rmcp::model::ListResourceTemplatesResult;
use rmcp::model::ListResourcesResult;
use rmcp::model::ListToolsResult;
use rmcp::model::PaginatedRequestParams;
use rmcp::model::ProgressNotificationParam;
use rmcp::model::ProgressToken;
use rmcp::model::ReadResourceRequestParams;
use rmcp::model::ReadResourceResponse;
use rmcp::model::ReadResourceResult;
use rmcp::model::RequestId;
use rmcp::model::ServerCapabilities;
use rmcp::model::ServerConfig;
use rmcp::model::SetLevelRequestParams;
use rmcp::model::SubscribeRequestParams;
use rmcp::model::SubscriptionFilter;
use rmcp::model::Tool;
use rmcp::model::UnsubscribeRequestParams;
use rmcp::service::NotificationContext;
use rmcp::service::Peer;
use rmcp::service::RequestContext;
use rmcp::service::SubscriptionContext;
use tokio::sync::Notify;
use tokio::sync::Semaphore;
use tokio::sync::watch;

use crate::adapters::json;
use crate::adapters::transport::isolated::isolated;
use crate::adapters::transport::mcp::arguments::Arguments;
use crate::adapters::transport::mcp::attention;
use crate::adapters::transport::mcp::attention::Attention;
use crate::adapters::transport::mcp::attention::Newsroom;
use crate::adapters::transport::mcp::completion;
use crate::adapters::transport::mcp::icons;
use crate::adapters::transport::mcp::progress;
use crate::adapters::transport::mcp::progress::Steps;
use crate::adapters::transport::mcp::prompts;
use crate::adapters::transport::mcp::protocol;
use crate::adapters::transport::mcp::resources;
use crate::adapters::transport::mcp::shown::Shown;
use crate::adapters::transport::mcp::tools;
use crate::adapters::transport::mcp::unknown::UnknownNames;
use crate::domain::resource::ResourceName;
use crate::domain::search::SearchAnswer;
use crate::ports::transport::Handler;
use crate::ports::transport::Library;
use crate::ports::transport::Progress;
use crate::ports::transport::RebuildAnswer;
use crate::ports::transport::Refused;
use crate::ports::transport::Unheard;

/// How many calls are worked on at a time.
const CALLS: usize = 32;

/// How many values of each kind `list_filters` tells by default, and at most.
const FILTER_VALUES: u32 = 100;
const MOST_FILTER_VALUES: u32 = 1000;

/// Answers MCP requests by calling a [`Handler`]. One, or clones of one, may
/// serve any number of clients; what a client wants to hear of belongs to one
/// clone.
pub(in crate::adapters::transport) struct McpServer {
    handler: Arc<dyn Handler>,
    library: Arc<dyn Library>,
    newsroom: Newsroom,
    attention: Attention,
    /// How to stop the index runs that the client waits for.
    stops: Stops,
    /// A permit for each call that may be worked on; the others wait, since each
    /// takes memory and a connection to the index.
    turns: Arc<Semaphore>,
    /// How many index runs are under way, whether or not a client waits for them.
    runs: watch::Sender<usize>,
    /// Names of arguments that were given in vain.
    unknown: UnknownNames,
}

type Stops = Arc<Mutex<HashMap<RequestId, Arc<Notify>>>>;

impl Clone for McpServer {
    fn clone(&self) -> Self {
        Self {
            handler: Arc::clone(&self.handler),
            library: Arc::clone(&self.library),
            newsroom: self.newsroom.clone(),
            attention: Attention::default(),
            stops: Stops::default(),
            turns: Arc::clone(&self.turns),
            runs: self.runs.clone(),
            unknown: self.unknown.clone(),
        }
    }
}

impl McpServer {
    /// Serves what the handler knows.
    pub(in crate::adapters::transport) fn new(handler: Arc<dyn Handler>) -> Self {
        let library = handler.library();
        Self {
            newsroom: Newsroom::of(&*library),
            library,
            attention: Attention::default(),
            stops: Stops::default(),
            handler,
            turns: Arc::new(Semaphore::new(CALLS)),
            runs: watch::Sender::new(0),
            unknown: UnknownNames::default(),
        }
    }

    /// The same server for one more session, which has been told of nothing yet.
    pub(in crate::adapters::transport) fn for_session(&self) -> Self {
        Self { unknown: UnknownNames::default(), ..self.clone() }
    }

    /// Waits until no index run is under way.
    pub(in crate::adapters::transport) async fn idle(&self) {
        let mut runs = self.runs.subscribe();
        while *runs.borrow_and_update() > 0 && runs.changed().await.is_ok() {}
    }

    /// A run goes on if the client has gone: half a run is worth less than a
    /// whole one. It stops where it is if the client says so; what is committed
    /// by then is complete.
    async fn rebuild(
        &self,
        force: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<RebuildAnswer, Refused> {
        let handler = Arc::clone(&self.handler);
        let (runs, stops, id) = (self.runs.clone(), Arc::clone(&self.stops), context.id.clone());
        let stop = Arc::new(Notify::new());
        lock(&stops).insert(id.clone(), Arc::clone(&stop));
        let run = |progress: Arc<dyn Progress>| async move {
            runs.send_modify(|runs| *runs += 1);
            let joined = tokio::spawn(async move {
                let outcome = tokio::select! {
                    outcome = isolated(handler.rebuild(force, progress)) => outcome,
                    () = stop.notified() => Err(Refused { message: "the run was cancelled".into() }),
                };
                lock(&stops).remove(&id);
                runs.send_modify(|runs| *runs -= 1);
                outcome
            });
            let abandoned = |_| Err(Refused { message: "the run was abandoned".into() });
            joined.await.unwrap_or_else(abandoned)
        };
        reporting(context, "files", run).await
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let mut given = Arguments::new(request.arguments);
        // A run takes long, and has a limit of its own: one at a time.
        let _turn = match request.name.as_ref() {
            tools::REBUILD_INDEX => None,
            _ => self.turns.acquire().await.ok(),
        };
        Ok(match request.name.as_ref() {
            tools::SEARCH => {
                let request = protocol::search_request(&mut given)?;
                let shown = Shown::read(&mut given)?;
                self.unknown.tell(tools::SEARCH, given.unread());
                let outcome = match shown {
                    Ok(shown) => reporting(context, "stages", |progress| {
                        isolated(self.handler.search(request, progress))
                    })
                    .await
                    .and_then(|answer| shown.search(answer)),
                    Err(refused) => Err(refused),
                };
                if let Ok(answer) = &outcome {
                    self.warn_if_degraded(answer, context).await;
                }
                protocol::object_result(outcome.map(|answer| json::search_answer(&answer)))
            }
            tools::GET_DOCUMENT => {
                let mut request = protocol::document_request(&mut given)?;
                let shown = Shown::within(&mut given)?;
                if shown.as_ref().is_ok_and(Shown::is_bounded) {
                    // What is cut to a budget is read in parts.
                    request.offset.get_or_insert(0);
                }
                let outcome = match shown {
                    Ok(shown) => isolated(self.handler.document(request))
                        .await
                        .and_then(|answer| shown.document(answer)),
                    Err(refused) => Err(refused),
                };
                protocol::object_result(outcome.map(|answer| json::document(&answer)))
            }
            tools::GET_CONNECTION_GRAPH => {
                let request = protocol::graph_request(given)?;
                let outcome = isolated(self.handler.graph(request)).await;
                protocol::object_result(outcome.map(|graph| json::graph(&graph)))
            }
            tools::LIST_TOPICS => {
                let most = given.count("max_titles")?.and_then(|most| usize::try_from(most).ok());
                let outcome = isolated(self.handler.topics()).await;
                let topics = outcome.map(|groups| json::topics_with(&groups, most));
                protocol::array_result("topics", topics)
            }
            tools::LIST_FILTERS => {
                let most = given.count("limit")?.unwrap_or(FILTER_VALUES).min(MOST_FILTER_VALUES);
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let outcome = isolated(self.handler.facets()).await;
                protocol::object_result(outcome.map(|facets| json::facets(&facets, most)))
            }
            tools::GET_BEST_PRACTICE => {
                let request = protocol::best_practice_request(given)?;
                let outcome = isolated(self.handler.best_practice(request)).await;
                protocol::object_result(outcome.map(|answer| json::best_practice(&answer)))
            }
            tools::VERIFY_QUOTE => {
                let request = protocol::quote_request(given)?;
                let path = request.path.clone();
                let outcome = isolated(self.handler.verify_quote(request)).await;
                protocol::object_result(outcome.map(|answer| json::quote(&path, &answer)))
            }
            tools::REBUILD_INDEX => {
                let force = given.flag("force")?.unwrap_or_default();
                let outcome = self.rebuild(force, context).await;
                protocol::object_result(outcome.map(|answer| json::rebuild(&answer)))
            }
            unknown => {
                return Err(ErrorData::invalid_params(
                    format!("unknown tool `{unknown}`; there are {}", tools::NAMES.join(", ")),
                    None,
                ));
            }
        })
    }

    /// Tells a client that wants warnings that an answer is not as good as it
    /// could be.
    async fn warn_if_degraded(&self, answer: &SearchAnswer, context: &RequestContext<RoleServer>) {
        let wanted = self.attention.wants_warnings()
            || context.meta.log_level().is_some_and(attention::includes_warnings);
        if wanted && !answer.degraded.is_empty() {
            let text = format!("a search was answered without {}", answer.degraded.join(", "));
            attention::warn(&context.peer, tools::SEARCH, &text).await;
        }
    }

    /// What stands behind it is declared, and nothing else.
    fn capabilities(&self) -> ServerCapabilities {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_completions()
            .build();
        // The SDK calls this capability by a name that it gives up.
        capabilities.logging = Some(rmcp::model::JsonObject::default());
        if self.newsroom.is_open
            && let Some(resources) = &mut capabilities.resources
        {
            resources.subscribe = Some(true);
            resources.list_changed = Some(true);
        }
        capabilities
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let implementation = Implementation::new("grooveseek", env!("CARGO_PKG_VERSION"))
            .with_title("GrooveSeek")
            .with_icons(icons::icon(icons::SERVER));
        ServerConfig::new(self.capabilities())
            .with_server_info(implementation)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        _context: NotificationContext<RoleServer>,
    ) {
        if let Some(id) = notification.request_id
            && let Some(stop) = lock(&self.stops).get(&id)
        {
            stop.notify_one();
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.attention.attend(&self.newsroom, &context.peer);
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all())
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request, Timestamp::now()).map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let _turn = self.turns.acquire().await;
        let listed = resources::list(&*self.library).await;
        let listed =
            listed.map_err(|failure| failure.into_error(context.protocol_version().as_ref()))?;
        Ok(ListResourcesResult::with_all_items(listed)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let _turn = self.turns.acquire().await;
        let read = resources::read(&*self.library, &request.uri).await;
        let contents =
            read.map_err(|failure| failure.into_error(context.protocol_version().as_ref()))?;
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Public).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let _turn = self.turns.acquire().await;
        let completed = completion::complete(&*self.library, &request, Timestamp::now()).await?;
        Ok(CompleteResult::new(completed))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.attention.set_level(request.level);
        self.attention.attend(&self.newsroom, &context.peer);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.newsroom.is_open {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "nothing is watched here, so there is nothing to subscribe to",
                None,
            ));
        }
        if ResourceName::from_uri(&request.uri).is_none() {
            let failure = resources::not_ours(&request.uri);
            return Err(failure.into_error(context.protocol_version().as_ref()));
        }
        if !self.attention.subscribe(request.uri) {
            let most = attention::MOST_SUBSCRIPTIONS;
            return Err(ErrorData::invalid_params(
                format!("there are {most} subscriptions already; unsubscribe from some"),
                None,
            ));
        }
        self.attention.attend(&self.newsroom, &context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.attention.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.newsroom.acceptable(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.newsroom.tell(&context).await;
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all(self.handler.asks_outside()))
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all(self.handler.asks_outside()).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = std::pin::pin!(self.call(request, &context));
        let cancelled = std::pin::pin!(context.ct.cancelled());
        match futures::future::select(call, cancelled).await {
            Either::Left((result, _)) => result.map(CallToolResponse::from),
            // The protocol sends no answer to a cancelled request.
            Either::Right(_) => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    /// A request whose parameters do not have the shape of its method ends up
    /// here, together with methods that nobody knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            method @ ("initialize"
            | "tools/call"
            | "tools/list"
            | "prompts/list"
            | "prompts/get"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "completion/complete"
            | "logging/setLevel") => {
                ErrorData::invalid_params(format!("the parameters do not fit `{method}`"), None)
            }
            unknown => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("unknown method `{unknown}`"),
                None,
            ),
        })
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work whose progress the client may want to hear of.
///
/// - `unit`: what the steps of the work are.
async fn reporting<T, Work: Future<Output = T>>(
    context: &RequestContext<RoleServer>,
    unit: &'static str,
    work: impl FnOnce(Arc<dyn Progress>) -> Work,
) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return work(Arc::new(Unheard)).await;
    };
    let (latest, receiver) = progress::channel();
    let report = |steps| notify(context.peer.clone(), token.clone(), unit, steps);
    progress::reported(work(Arc::new(latest)), receiver, report).await
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no knowledge base has more files than an f64 can count"
)]
async fn notify(peer: Peer<RoleServer>, token: ProgressToken, unit: &'static str, steps: Steps) {
    let mut progress = ProgressNotificationParam::new(token, steps.done as f64);
    if steps.total > 0 {
        progress = progress
            .with_total(steps.total as f64)
            .with_message(format!("{} of {} {unit}", steps.done, steps.total));
    }
    if let Err(error) = peer.notify_progress(progress).await {
        tracing::debug!(%error, "a progress notification could not be sent");
    }
}
