//! What all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::time::Instant;

use crate::adapters::transport::http::HttpOptions;
use crate::adapters::transport::http::mcp::McpRoute;
use crate::adapters::transport::http::page::Page;
use crate::adapters::transport::http::refusals::Refusals;
use crate::domain::gate::Gate;
use crate::ports::monitor::Monitor;

/// What all connections share.
pub(super) struct State {
    pub(super) gate: Gate,
    pub(super) options: HttpOptions,
    pub(super) monitor: Arc<dyn Monitor>,
    pub(super) mcp: McpRoute,
    pub(super) page: Page,
    pub(super) refusals: Refusals,
    pub(super) counters: Counters,
    /// When the transport began to serve.
    pub(super) since: Instant,
    /// The same, as `YYYY-MM-DDTHH:MM:SSZ`.
    pub(super) started_at: String,
    /// Whether it was told that a proxy passes on the admin routes.
    pub(super) told_of_proxy: AtomicBool,
}

impl State {
    pub(super) fn new(
        gate: Gate,
        options: HttpOptions,
        monitor: Arc<dyn Monitor>,
        mcp: McpRoute,
    ) -> Self {
        let started_at = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        Self {
            gate,
            options,
            monitor,
            mcp,
            page: Page::new(),
            refusals: Refusals::default(),
            counters: Counters::default(),
            since: Instant::now(),
            started_at,
            told_of_proxy: AtomicBool::new(false),
        }
    }
}

/// What was answered, by the first digit of the status.
#[derive(Debug, Default)]
pub(super) struct Counters([AtomicU64; 5]);

impl Counters {
    pub(super) fn count(&self, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100);
        if let Some(counter) = self.0.get(class.saturating_sub(1)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many answers there were of each class, `1xx` first.
    pub(super) fn seen(&self) -> [u64; 5] {
        self.0.each_ref().map(|counter| counter.load(Ordering::Relaxed))
    }
}
