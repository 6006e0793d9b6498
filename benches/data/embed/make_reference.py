"""Computes reference.f16: what all-MiniLM-L6-v2 makes of chunks.json.

Usage: make_reference.py MODEL_FOLDER

Needs the packages numpy, tokenizers and safetensors. This is an implementation
of its own, after the paper and in double precision, so that it shares no
mistake with the encoder that is compared with it: one text at a time, at most
256 tokens, the mean of all tokens, length 1. The 1,000 vectors of 384 numbers
are written as half precision, least significant byte first.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
Language Understanding", NAACL 2019.
"""

import json
import math
import pathlib
import sys

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer

WINDOW_TOKENS = 256


erf = numpy.vectorize(math.erf, otypes=[numpy.float64])


def layer_norm(x, weights, prefix, epsilon):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    normal = (x - mean) / numpy.sqrt(variance + epsilon)
    return normal * weights[prefix + ".weight"] + weights[prefix + ".bias"]


def linear(x, weights, prefix):
    return x @ weights[prefix + ".weight"].T + weights[prefix + ".bias"]


def encode(ids, weights, config):
    epsilon = config["layer_norm_eps"]
    heads = config["num_attention_heads"]
    size = config["hidden_size"] // heads
    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon)
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}."

        def by_head(name):
            values = linear(x, weights, f"{layer}attention.self.{name}")
            return values.reshape(len(ids), heads, size).transpose(1, 0, 2)

        query, key, value = by_head("query"), by_head("key"), by_head("value")
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(size)
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ value).transpose(1, 0, 2).reshape(len(ids), heads * size)
        mixed = linear(mixed, weights, layer + "attention.output.dense")
        x = layer_norm(x + mixed, weights, layer + "attention.output.LayerNorm", epsilon)
        inner = linear(x, weights, layer + "intermediate.dense")
        inner = inner * 0.5 * (1.0 + erf(inner / math.sqrt(2.0)))
        outer = linear(inner, weights, layer + "output.dense")
        x = layer_norm(x + outer, weights, layer + "output.LayerNorm", epsilon)
    mean = x.mean(axis=0)
    return mean / numpy.linalg.norm(mean)


def main():
    here = pathlib.Path(__file__).parent
    folder = pathlib.Path(sys.argv[1])
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    weights = {name: numpy.float64(tensor) for name, tensor in stored.items()}
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(WINDOW_TOKENS)
    chunks = json.loads((here / "chunks.json").read_text(encoding="utf-8"))
    vectors = [encode(tokenizer.encode(chunk).ids, weights, config) for chunk in chunks]
    (here / "reference.f16").write_bytes(numpy.array(vectors).astype("<f2").tobytes())


if __name__ == "__main__":
    main()
