"use strict";
const byId = (id) => document.getElementById(id);

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function duration(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const at = parts.findIndex(([size]) => seconds >= size);
  if (at < 0) return "0 s";
  const [size, unit] = parts[at];
  const first = `${Math.floor(seconds / size)} ${unit}`;
  const next = parts[at + 1];
  if (!next) return first;
  const rest = Math.floor((seconds % size) / next[0]);
  return rest ? `${first} ${rest} ${next[1]}` : first;
}

function showStatus(facts) {
  byId("status").replaceChildren(...facts.map(([name, value, look]) => {
    const pair = element("div");
    pair.append(element("dt", name), element("dd", value, look));
    return pair;
  }));
}

const known = (value) => value === null || value === undefined ? "busy" : String(value);

async function refresh() {
  try {
    const answer = await fetch("/api/admin/status", { cache: "no-store" });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    const { daemon, indexing, watcher, kb } = await answer.json();
    const state = indexing.active ? ["indexing", "busy"] : ["running", ""];
    const facts = [["state", ...state]];
    if (indexing.progress) {
      facts.push(["progress", `${indexing.progress.current} of ${indexing.progress.total}`]);
    }
    facts.push(
      ["version", daemon.version],
      ["documents", known(kb.documents)],
      ["chunks", known(kb.chunks)],
      ["model", known(kb.model)],
      ["watcher", watcher.active ? `on, ${watcher.debounce_ms} ms` : "off"],
      ["uptime", duration(daemon.uptime_secs)],
      ["pid", String(daemon.pid)],
    );
    showStatus(facts);
  } catch (error) {
    showStatus([["state", "unreachable", "bad"], ["reason", error.message]]);
  }
}

const VERSION = "2026-07-28";
let asked = 0;

async function call(tool, given) {
  const id = ++asked;
  const meta = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "groove-ui", version: VERSION },
  };
  const answer = await fetch("/mcp", {
    method: "POST",
    headers: {
      "Accept": "application/json, text/event-stream",
      "Content-Type": "application/json",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": "tools/call",
      "Mcp-Name": tool,
    },
    body: JSON.stringify({
      jsonrpc: "2.0", id, method: "tools/call",
      params: { name: tool, arguments: given, _meta: meta },
    }),
  });
  const text = await answer.text();
  if (answer.status === 403) throw new Error(`${text}\n${explained()}`);
  const message = parsed(text, id);
  if (!message) throw new Error(text.trim() || `HTTP ${answer.status}`);
  if (message.error) throw new Error(`${message.error.message} (${message.error.code})`);
  const first = message.result.content.find((part) => part.type === "text");
  const value = JSON.parse(first.text);
  if (message.result.isError || (value && value.error)) throw new Error(value.error || first.text);
  return value;
}

/* One JSON value, or a stream of events one of which holds it. */
function parsed(text, id) {
  const texts = text.split(/\r?\n/).filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5));
  for (const one of [text, ...texts]) {
    try {
      const value = JSON.parse(one);
      if (value.id === id || (value.error && value.id === null)) return value;
    } catch (_) { /* not this one */ }
  }
  return null;
}

function explained() {
  return "This page was opened at a name that /mcp does not answer to. In the configuration, "
    + `add "${location.host}" to allowed_hosts and "${location.origin}" to allowed_origins `
    + "of [transport.http]. Each key replaces its default, so keep the names that are in use.";
}

function shown(hit) {
  const item = element("li");
  item.append(element("span", hit.score.toFixed(3), "score"), element("div", hit.path, "path"));
  if (hit.heading) item.append(element("div", hit.heading, "heading"));
  const letters = Array.from(hit.content);
  const cut = letters.slice(0, 320).join("") + (letters.length > 320 ? "…" : "");
  item.append(element("div", cut, "content"));
  const words = [hit.topic, ...(hit.tags || []).slice(0, 8).map((tag) => `#${tag}`)];
  const tags = element("div", undefined, "tags");
  tags.append(...words.filter(Boolean).map((word) => element("span", word)));
  item.append(tags);
  return item;
}

function say(text, isBad) {
  byId("line").textContent = text;
  byId("line").className = isBad ? "bad" : "";
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const query = byId("query").value.trim();
  if (!query) return;
  const button = byId("button");
  button.disabled = true;
  say("Searching…", false);
  const begun = performance.now();
  try {
    const found = await call("search", { query, limit: 10 });
    const took = Math.round(performance.now() - begun);
    const count = found.results.length;
    byId("hits").replaceChildren(...found.results.map(shown));
    const line = `${count} ${count === 1 ? "result" : "results"} in ${took} ms`;
    const hint = count ? "" : ". Try other words, or fewer of them.";
    say(line + (found.low_confidence ? ", low confidence" : "") + hint, false);
  } catch (error) {
    byId("hits").replaceChildren();
    say(error.message, true);
  } finally {
    button.disabled = false;
  }
});

refresh();
setInterval(refresh, 5000);
