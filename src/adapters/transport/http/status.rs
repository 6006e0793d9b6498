//! What the admin status says.

use serde_json::{Value, json};

use crate::adapters::transport::http::state::State;
use crate::ports::monitor::{LastRun, RunStatus, ServiceStatus};

/// The status as JSON. Waits for nothing.
pub(super) fn value(state: &State) -> Value {
    let ServiceStatus {
        ready,
        run,
        last_run,
        watching,
        debounce,
        documents,
        chunks,
        model,
        reranker,
        config_source,
    } = state.monitor.status();
    json!({
        "daemon": {
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "uptime_secs": state.since.elapsed().as_secs(),
            "started_at": state.started_at,
            "sessions": state.mcp.sessions(),
            "ready": ready,
        },
        "indexing": indexing(run.as_ref(), last_run.as_ref()),
        "watcher": { "active": watching, "debounce_ms": u64::try_from(debounce.as_millis()).ok() },
        "kb": { "documents": documents, "chunks": chunks, "model": model, "reranker": reranker },
        "config_source": config_source,
    })
}

fn indexing(run: Option<&RunStatus>, last: Option<&LastRun>) -> Value {
    let progress = run.and_then(|run| run.progress);
    json!({
        "active": run.is_some(),
        "started_at": run.map(|run| &run.started_at),
        "progress": progress.map(|(current, total)| json!({ "current": current, "total": total })),
        "last_run": last.map(|last| json!({
            "started_at": last.started_at,
            "finished_at": last.finished_at,
            "failed": last.counts.is_none(),
            "counters": last.counts.map(|counts| json!({
                "updated": counts.updated,
                "renamed": counts.renamed,
                "deleted": counts.deleted,
                "skipped": counts.skipped,
            })),
        })),
    })
}
