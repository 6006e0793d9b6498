#!/usr/bin/env python3
"""Writes a toy cross-encoder as ONNX (opset 17).

    make_reranker.py FOLDER OUTPUT_FOLDER

FOLDER holds the config.json and tokenizer.json of a BERT model. The model's
logit for a query and a passage counts the pairs of equal word pieces, one of
the query and one of the passage; special tokens do not count. OUTPUT_FOLDER
receives onnx/model.onnx with the inputs input_ids, attention_mask and
token_type_ids and the output logits, and the tokenizer's files.

Needs: numpy, onnx.
"""

import pathlib
import shutil
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

# The highest token of bert-base-uncased that is special.
LAST_SPECIAL = 103


def build():
    nodes, initializers = [], []

    def constant(name, array):
        initializers.append(numpy_helper.from_array(numpy.array(array), name))
        return name

    def node(operator, *inputs, **attributes):
        output = f"{operator}_{len(nodes)}"
        nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def real(value):
        return node("Cast", value, to=TensorProto.FLOAT)

    one = constant("one", numpy.float32(1))
    words = node("Greater", "input_ids", constant("special", numpy.int64(LAST_SPECIAL)))
    counted = node("Mul", real("attention_mask"), real(words))
    passage = real("token_type_ids")
    query = node("Mul", node("Sub", one, passage), counted)
    passage = node("Mul", passage, counted)
    down = constant("down", numpy.array([2], numpy.int64))
    across = constant("across", numpy.array([1], numpy.int64))
    rows = node("Unsqueeze", "input_ids", down)
    columns = node("Unsqueeze", "input_ids", across)
    equal = real(node("Equal", rows, columns))
    found = node("MatMul", equal, node("Unsqueeze", passage, down))
    found = node("Squeeze", found, down)
    score = node("ReduceSum", node("Mul", query, found), across, keepdims=1)
    nodes.append(helper.make_node("Identity", [score], ["logits"]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    body = helper.make_graph(nodes, "reranker", inputs, [output], initializers)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    folder, target = (pathlib.Path(argument) for argument in sys.argv[1:3])
    model = build()
    onnx.checker.check_model(model)
    (target / "onnx").mkdir(parents=True, exist_ok=True)
    onnx.save_model(model, target / "onnx" / "model.onnx")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists():
            shutil.copyfile(folder / name, target / name)


if __name__ == "__main__":
    main()
