#!/usr/bin/env bash
# Runs the long versions of the tests of crashes and hostile surroundings. They
# need nothing but time.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain

say "killing, starving and racing the program; see docs/TESTING.md"
cargo test --workspace --locked --test journey -- --ignored --nocapture --test-threads 2 with_patience::
