//! MCP as a client sees it.
