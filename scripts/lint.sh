#!/usr/bin/env bash
# Formatting, clippy and documentation, warnings denied.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain
cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 \
	|| fail "rustfmt or clippy is missing: rustup component add rustfmt clippy"
cargo fmt --all --check
cargo clippy --workspace --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --document-private-items
