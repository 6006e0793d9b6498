//! Figures for a monitoring system, in the text format of Prometheus.

use std::fmt::Write as _;

use http::{HeaderValue, StatusCode};

use crate::adapters::transport::http::answer::{self, Answer};
use crate::adapters::transport::http::state::State;

const KIND: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// All figures. Waits for nothing.
pub(super) fn answer(state: &State) -> Answer {
    let status = state.monitor.status();
    let mut text = String::new();
    let flag = |flag: bool| Some(u64::from(flag));
    let uptime = state.since.elapsed().as_secs();
    for (name, kind, help, value) in [
        ("uptime_seconds", "gauge", "Since the transport began to serve.", Some(uptime)),
        ("sessions", "gauge", "Sessions that are open.", Some(state.mcp.sessions() as u64)),
        ("ready", "gauge", "Whether the model is loaded.", flag(status.ready)),
        ("indexing", "gauge", "Whether an index run is under way.", flag(status.run.is_some())),
        ("documents", "gauge", "Documents in the index.", status.documents),
        ("chunks", "gauge", "Chunks in the index.", status.chunks),
    ] {
        if let Some(value) = value {
            describe(&mut text, name, kind, help);
            line(&mut text, name, "", value);
        }
    }
    let name = "http_responses_total";
    describe(&mut text, name, "counter", "Answers by the class of their status.");
    for (class, count) in (1..).zip(state.counters.seen()) {
        line(&mut text, name, &format!("{{class=\"{class}xx\"}}"), count);
    }
    let name = "refusals_total";
    describe(&mut text, name, "counter", "Requests that were refused, by what they met.");
    for (group, count) in state.refusals.seen() {
        line(&mut text, name, &format!("{{group=\"{}\"}}", group.name()), count);
    }
    answer::of_bytes(StatusCode::OK, KIND, text)
}

fn describe(text: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    _ = writeln!(text, "# HELP groove_{name} {help}\n# TYPE groove_{name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: u64) {
    _ = writeln!(text, "groove_{name}{labels} {value}");
}
