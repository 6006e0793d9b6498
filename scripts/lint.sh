#!/usr/bin/env bash
# Formatting, clippy and documentation, warnings denied.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items
