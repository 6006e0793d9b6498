//! The service as an MCP server.

use std::sync::Arc;

use futures::future::Either;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::CacheScope;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResponse;
use rmcp::model::CallToolResult;
use rmcp::model::CustomRequest;
use rmcp::model::CustomResult;
use rmcp::model::ErrorCode;
use rmcp::model::ErrorData;
use rmcp::model::Implementation;
use rmcp::model::ListToolsResult;
use rmcp::model::PaginatedRequestParams;
use rmcp::model::ProgressNotificationParam;
use rmcp::model::ProgressToken;
use rmcp::model::ServerCapabilities;
use rmcp::model::ServerConfig;
use rmcp::model::Tool;
use rmcp::service::Peer;
use rmcp::service::RequestContext;
use tokio::sync::Semaphore;
use tokio::sync::watch;

use crate::adapters::json;
use crate::adapters::transport::isolated::isolated;
use crate::adapters::transport::mcp::arguments::Arguments;
use crate::adapters::transport::mcp::progress;
use crate::adapters::transport::mcp::progress::Steps;
use crate::adapters::transport::mcp::protocol;
use crate::adapters::transport::mcp::tools;
use crate::adapters::transport::mcp::unknown::UnknownNames;
use crate::ports::transport::Handler;
use crate::ports::transport::Progress;
use crate::ports::transport::RebuildAnswer;
use crate::ports::transport::Refused;

/// How many calls are worked on at a time.
const CALLS: usize = 32;

/// Answers MCP requests by calling a [`Handler`]. One, or clones of one, may
/// serve any number of clients.
#[derive(Clone)]
pub(in crate::adapters::transport) struct McpServer {
    handler: Arc<dyn Handler>,
    /// A permit for each call that may be worked on; the others wait, since each
    /// takes memory and a connection to the index.
    turns: Arc<Semaphore>,
    /// How many index runs are under way, whether or not a client waits for them.
    runs: watch::Sender<usize>,
    /// Names of arguments that were given in vain.
    unknown: UnknownNames,
}

impl McpServer {
    /// Serves what the handler knows.
    pub(in crate::adapters::transport) fn new(handler: Arc<dyn Handler>) -> Self {
        Self {
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

    /// A run goes on if the client no longer waits for it: half a run is worth
    /// less than a whole one.
    async fn rebuild(
        &self,
        force: bool,
        context: &RequestContext<RoleServer>,
    ) -> Result<RebuildAnswer, Refused> {
        let handler = Arc::clone(&self.handler);
        let runs = self.runs.clone();
        let run = |progress: Arc<dyn Progress>| async move {
            runs.send_modify(|runs| *runs += 1);
            let joined = tokio::spawn(async move {
                let outcome = isolated(handler.rebuild(force, progress)).await;
                runs.send_modify(|runs| *runs -= 1);
                outcome
            });
            let abandoned = |_| Err(Refused { message: "the run was abandoned".into() });
            joined.await.unwrap_or_else(abandoned)
        };
        match context.meta.get_progress_token() {
            None => run(Arc::new(Unheard)).await,
            Some(token) => {
                let (latest, receiver) = progress::channel();
                let peer = context.peer.clone();
                let report = |steps| notify(peer.clone(), token.clone(), steps);
                progress::reported(run(Arc::new(latest)), receiver, report).await
            }
        }
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
                self.unknown.tell(tools::SEARCH, given.unread());
                let outcome = isolated(self.handler.search(request)).await;
                protocol::object_result(outcome.map(|answer| json::search_answer(&answer)))
            }
            tools::GET_DOCUMENT => {
                let path = given.required_text("path")?;
                let outcome = isolated(self.handler.document(path)).await;
                protocol::object_result(outcome.map(|answer| json::document(&answer)))
            }
            tools::GET_CONNECTION_GRAPH => {
                let request = protocol::graph_request(given)?;
                let outcome = isolated(self.handler.graph(request)).await;
                protocol::object_result(outcome.map(|graph| json::graph(&graph)))
            }
            tools::LIST_TOPICS => {
                let outcome = isolated(self.handler.topics()).await;
                protocol::array_result("topics", outcome.map(|groups| json::topics(&groups)))
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
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("grooveseek", env!("CARGO_PKG_VERSION")))
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().to_vec())
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Public))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().iter().find(|tool| tool.name == name).cloned()
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
            method @ ("initialize" | "tools/call" | "tools/list") => {
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

/// Progress that nobody asked for.
struct Unheard;

impl Progress for Unheard {
    fn advance(&self, _done: u64, _total: u64) {}
}

#[expect(
    clippy::cast_precision_loss,
    reason = "no knowledge base has more files than an f64 can count"
)]
async fn notify(peer: Peer<RoleServer>, token: ProgressToken, steps: Steps) {
    let mut progress = ProgressNotificationParam::new(token, steps.done as f64);
    if steps.total > 0 {
        progress = progress
            .with_total(steps.total as f64)
            .with_message(format!("{} of {} files", steps.done, steps.total));
    }
    if let Err(error) = peer.notify_progress(progress).await {
        tracing::debug!(%error, "a progress notification could not be sent");
    }
}
