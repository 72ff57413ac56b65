"""Writes digits.onnx: which digit is in a picture of 3 x 5 pixels, for any number of pictures.

python make_model.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DIGITS = """
### ..# ### ### #.# ### ### ### ### ###
#.# .## ..# ..# #.# #.. #.. ..# #.# #.#
#.# ..# ### .## ### ### ### .#. ### ###
#.# ..# #.. ..# ..# ..# #.# .#. #.# ..#
### ..# ### ### ..# ### ### .#. ### ###
"""


def templates() -> np.ndarray:
    """[10, 15]: 1 for a black pixel of the digit, -1 for a white one."""
    rows = [line.split() for line in DIGITS.strip().splitlines()]
    texts = ["".join(row[digit] for row in rows) for digit in range(10)]
    return np.array([[1 if c == "#" else -1 for c in text] for text in texts], np.float32)


def model() -> onnx.ModelProto:
    """scores = softmax(pictures matched with each template)."""
    nodes = [
        helper.make_node("MatMul", ["pictures", "templates"], ["matches"]),
        helper.make_node("Add", ["matches", "offset"], ["centred"]),
        helper.make_node("Softmax", ["centred"], ["scores"], axis=-1),
    ]
    table = templates()
    constants = [
        numpy_helper.from_array(np.ascontiguousarray(2 * table.T), "templates"),
        numpy_helper.from_array(-table.sum(axis=1), "offset"),
    ]
    pictures = helper.make_tensor_value_info("pictures", TensorProto.FLOAT, ["count", 15])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["count", 10])
    graph = helper.make_graph(nodes, "digits", [pictures], [scores], constants)
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


if __name__ == "__main__":
    onnx.save(model(), Path(sys.argv[1] if len(sys.argv) > 1 else ".", "digits.onnx"))
