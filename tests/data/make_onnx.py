#!/usr/bin/env python3
"""Writes a sentence-transformers folder of the BERT or XLM-RoBERTa family as ONNX (opset 17).

    make_onnx.py FOLDER OUTPUT_FOLDER [--external] [--exporter] [--half]

FOLDER holds config.json and model.safetensors. OUTPUT_FOLDER receives
onnx/model.onnx with the inputs input_ids, attention_mask and, for BERT,
token_type_ids and the output last_hidden_state; with --external its weights lie beside it in
onnx/model.onnx_data. With --exporter the graph is what tracing a PyTorch model
gives: nodes named after modules, matrices without names, normalisations in
single steps, numbers as nodes; with --half weights have 16 bits. The tokenizer's
and the pooling's files are copied.

Needs: numpy, onnx, safetensors.
"""

import json
import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

COPIED = [
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
]


class Graph:
    """Collects nodes and weights; every method returns the name of its output."""

    def __init__(self, weights, exporter, half):
        self.weights = weights
        self.exporter = exporter
        self.half = half
        self.nodes = []
        self.names = {}
        self.initializers = {}

    def constant(self, name, array):
        array = numpy.ascontiguousarray(array)
        if self.exporter and array.size < 8:
            return self.node("Constant", value=numpy_helper.from_array(array))
        self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def stored(self, name, array):
        """A weight, in as many bits as wanted."""
        if not self.half:
            return self.constant(name, array.astype(numpy.float32))
        return self.node("Cast", self.constant(name, array.astype(numpy.float16)), to=TensorProto.FLOAT)

    def weight(self, name):
        return self.stored(name, self.weights[name])

    def node(self, operator, *inputs, scope="", **attributes):
        output = f"{operator}_{len(self.nodes)}"
        name = ""
        if self.exporter:
            path = scope.replace(".", "/").replace("layer/", "layer.")
            name = f"/{path}/{operator}" if path else f"/{operator}"
            earlier = self.names.get(name, 0)
            self.names[name] = earlier + 1
            name = f"{name}_{earlier}" if earlier else name
            output = f"{name}_output_0"
        self.nodes.append(
            helper.make_node(operator, list(inputs), [output], name=name, **attributes)
        )
        return output

    def linear(self, name, value):
        matrix = f"onnx::MatMul_{len(self.nodes)}" if self.exporter else f"{name}.weight.T"
        matrix = self.stored(matrix, self.weights[f"{name}.weight"].T)
        product = self.node("MatMul", value, matrix, scope=name)
        return self.node("Add", self.weight(f"{name}.bias"), product, scope=name)

    def layer_norm(self, name, value, epsilon):
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        if not self.exporter:
            return self.node(
                "LayerNormalization", value, weight, bias, axis=-1, epsilon=epsilon
            )
        mean = self.node("ReduceMean", value, scope=name, axes=[-1])
        centred = self.node("Sub", value, mean, scope=name)
        squares = self.node("Pow", centred, self.constant("two", numpy.float32(2)), scope=name)
        variance = self.node("ReduceMean", squares, scope=name, axes=[-1])
        tiny = self.constant("epsilon", numpy.float32(epsilon))
        root = self.node("Sqrt", self.node("Add", variance, tiny, scope=name), scope=name)
        scaled = self.node("Div", centred, root, scope=name)
        return self.node("Add", self.node("Mul", scaled, weight, scope=name), bias, scope=name)

    def gelu(self, value):
        scaled = self.node("Div", value, self.constant("sqrt2", numpy.float32(2**0.5)))
        shifted = self.node("Add", self.node("Erf", scaled), self.constant("one", numpy.float32(1)))
        half = self.node("Mul", value, self.constant("half", numpy.float32(0.5)))
        return self.node("Mul", half, shifted)


def build(config, weights, exporter=False, half=False):
    graph = Graph(weights, exporter, half)
    heads = config["num_attention_heads"]
    width = config["hidden_size"] // heads
    epsilon = config["layer_norm_eps"]
    zero = graph.constant("zero", numpy.array([0], numpy.int64))
    one = graph.constant("index_one", numpy.array([1], numpy.int64))
    two = graph.constant("index_two", numpy.array([2], numpy.int64))

    is_bert = config["model_type"] == "bert"
    table = graph.weight("embeddings.position_embeddings.weight")
    if is_bert:
        length = graph.node("Slice", graph.node("Shape", "input_ids"), one, two)
        positions = graph.node("Slice", table, zero, length, zero)
    else:
        # A running count of the tokens that are no padding, behind the padding's number.
        padding = graph.constant("padding", numpy.int64(config["pad_token_id"]))
        text = graph.node("Not", graph.node("Equal", "input_ids", padding))
        text = graph.node("Cast", text, to=TensorProto.INT64)
        count = graph.node("CumSum", text, graph.constant("axis", numpy.int64(1)))
        places = graph.node("Add", graph.node("Mul", count, text), padding)
        positions = graph.node("Gather", table, places)
    words = graph.node("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    kinds = "token_type_ids" if is_bert else graph.node("Sub", "input_ids", "input_ids")
    types = graph.node("Gather", graph.weight("embeddings.token_type_embeddings.weight"), kinds)
    hidden = graph.node("Add", graph.node("Add", words, types), positions)
    hidden = graph.layer_norm("embeddings.LayerNorm", hidden, epsilon)

    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    mask = graph.node("Sub", graph.constant("mask_one", numpy.float32(1)), mask)
    mask = graph.node("Mul", mask, graph.constant("mask_low", numpy.float32(-1e9)))
    mask = graph.node("Unsqueeze", mask, graph.constant("axes", numpy.array([1, 2], numpy.int64)))

    split = graph.constant("split", numpy.array([0, 0, heads, width], numpy.int64))
    merge = graph.constant("merge", numpy.array([0, 0, heads * width], numpy.int64))
    root = graph.constant("root", numpy.float32(width**0.5))

    def by_head(name, value, order):
        return graph.node(
            "Transpose", graph.node("Reshape", graph.linear(name, value), split), perm=order
        )

    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}"
        query = by_head(f"{prefix}.attention.self.query", hidden, [0, 2, 1, 3])
        key = by_head(f"{prefix}.attention.self.key", hidden, [0, 2, 3, 1])
        value = by_head(f"{prefix}.attention.self.value", hidden, [0, 2, 1, 3])
        scores = graph.node("Div", graph.node("MatMul", query, key), root)
        scores = graph.node("Softmax", graph.node("Add", scores, mask), axis=-1)
        mixed = graph.node("Transpose", graph.node("MatMul", scores, value), perm=[0, 2, 1, 3])
        mixed = graph.linear(
            f"{prefix}.attention.output.dense", graph.node("Reshape", mixed, merge)
        )
        hidden = graph.layer_norm(
            f"{prefix}.attention.output.LayerNorm", graph.node("Add", mixed, hidden), epsilon
        )
        wide = graph.gelu(graph.linear(f"{prefix}.intermediate.dense", hidden))
        narrow = graph.linear(f"{prefix}.output.dense", wide)
        hidden = graph.layer_norm(
            f"{prefix}.output.LayerNorm", graph.node("Add", narrow, hidden), epsilon
        )

    graph.nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
    shape = ["batch", "length"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask", "token_type_ids")
        if is_bert or name != "token_type_ids"
    ]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, [*shape, heads * width]
    )
    body = helper.make_graph(
        graph.nodes, "encoder", inputs, [output], list(graph.initializers.values())
    )
    return helper.make_model(
        body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


def main():
    folder, target = (pathlib.Path(argument) for argument in sys.argv[1:3])
    config = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    model = build(config, weights, "--exporter" in sys.argv[3:], "--half" in sys.argv[3:])
    onnx.checker.check_model(model)
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    external = "--external" in sys.argv[3:]
    onnx.save_model(
        model,
        target / "onnx" / "model.onnx",
        save_as_external_data=external,
        location="model.onnx_data" if external else None,
    )
    for name in COPIED:
        if (folder / name).exists():
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(folder / name, target / name)


if __name__ == "__main__":
    main()
