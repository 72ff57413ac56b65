"""Models of narrow types: constants as ONNX packs them, data movement, casts, quantisation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil.engine.front_door import compile_engine
from cuvil.errors import ModelError
from cuvil.frontends.onnx import import_model
from cuvil.ir.dtypes import DTYPES, dtype
from cuvil.ir.graph import Graph
from cuvil.onnx_backend import CuvilBackend
from cuvil.ops import interpreter
from cuvil.options import Options

NARROW = [row.name for row in DTYPES if row.is_narrow]
OPSET = [helper.make_opsetid("", 25)]


class Interpreted(CuvilBackend):
    """The numpy meaning of the imported graph."""

    @staticmethod
    def compile_graph(graph: Graph):
        return lambda feeds: interpreter.run(graph, feeds)


def codes(name, *shape):
    """Codes of a type in turn; NaN left out."""
    kind = dtype(name)
    values = np.arange(2**kind.value_bits, dtype=np.uint8).view(kind.numpy)
    if kind.is_float:
        values = values[~np.isnan(values.astype(np.float32))]
    return np.resize(values, shape)


def model(nodes, inputs, outputs, constants=()):
    """A model from (name, array) inputs and (name, type, rank) outputs."""
    infos = [helper.make_tensor_value_info(n, _code(a), a.shape) for n, a in inputs]
    results = [helper.make_tensor_value_info(n, t, [None] * rank) for n, t, rank in outputs]
    graph = helper.make_graph(nodes, "narrow", infos, results, constants)
    return helper.make_model(graph, opset_imports=OPSET)


def _code(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def run_both(made, *arrays):
    """What native code gives; the interpreter must give the same bits."""
    native = CuvilBackend.prepare(made).run(list(arrays))
    meant = Interpreted.prepare(made).run(list(arrays))
    for a, b in zip(native, meant, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return native


@pytest.mark.parametrize("name", NARROW)
def test_elements_move_as_they_are(name):
    x = codes(name, 2, 5)
    t = _code(x)
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Concat", ["x", "x"], ["twice"], axis=1),
        helper.make_node("Pad", ["x", "pads"], ["padded"]),
        helper.make_node("Where", ["mask", "x", "last"], ["chosen"]),
        helper.make_node("Gather", ["x", "at"], ["picked"], axis=1),
        helper.make_node("Reshape", ["x", "flat"], ["row"]),
    ]
    constants = [
        numpy_helper.from_array(np.array([0, 1, 1, 0]), "pads"),
        numpy_helper.from_array(x == x[:, :1], "mask"),
        numpy_helper.from_array(x[:1, 4:], "last"),
        numpy_helper.from_array(np.array([3, 0]), "at"),
        numpy_helper.from_array(np.array([-1]), "flat"),
    ]
    outputs = [(n.output[0], t, 1 if n.output[0] == "row" else 2) for n in nodes]
    results = run_both(model(nodes, [("x", x)], outputs, constants), x)
    padded = np.full((3, 6), 255 if name == "f8e8m0" else 0, np.uint8)  # it has no zero
    padded[:2, 1:] = x.view(np.uint8)
    raw = x.view(np.uint8)
    expected = [raw, raw.T, np.hstack([raw, raw]), padded, None, raw[:, [3, 0]], raw.ravel()]
    for result, value in zip(results, expected, strict=True):
        if value is not None:
            np.testing.assert_array_equal(result.view(np.uint8), value)


@pytest.mark.parametrize("field", ["raw_data", "int32_data"])
@pytest.mark.parametrize("name", NARROW)
def test_constants_are_unpacked(name, field):
    kind = dtype(name)
    values = codes(name, 3, 3)  # an odd number: the last byte is not full
    tensor = numpy_helper.from_array(values, "c")
    if field == "int32_data":
        packed = list(tensor.raw_data)
        tensor.ClearField("raw_data")
        tensor.int32_data.extend(packed)
    nodes = [helper.make_node("Concat", ["x", "c"], ["y"], axis=0)]
    made = model(nodes, [("x", values[:1])], [("y", kind.onnx, 2)], [tensor])
    for source in (made, onnx.ModelProto.FromString(made.SerializeToString())):
        (y,) = run_both(source, values[:1])
        np.testing.assert_array_equal(y[1:].view(np.uint8), values.view(np.uint8))


def test_too_few_packed_bytes_are_refused():
    tensor = helper.make_tensor("c", TensorProto.INT4, [4], b"\x21\x43", raw=True)
    tensor.dims[0] = 5
    made = model([helper.make_node("Identity", ["c"], ["y"])], [], [("y", TensorProto.INT4, 1)],
                 [tensor])  # fmt: skip
    with pytest.raises(ModelError, match="2 bytes of data"):
        CuvilBackend.prepare(made).run([])


@pytest.mark.parametrize("name", NARROW)
def test_casts_keep_small_numbers(name):
    """Kernels flush denormals of float32: those of narrow types are not."""
    x = codes(name, 256)
    cast = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT),
            helper.make_node("Cast", ["y"], ["z"], to=_code(x))]  # fmt: skip
    outputs = [("y", TensorProto.FLOAT, 1), ("z", _code(x), 1)]
    y, z = run_both(model(cast, [("x", x)], outputs), x)
    np.testing.assert_array_equal(y, x.astype(np.float32))
    if name != "f8e5m2":  # whose infinity saturates
        np.testing.assert_array_equal(z.view(np.uint8), x.view(np.uint8))


@pytest.mark.parametrize("name", [n for n in NARROW if n != "f8e8m0"])
def test_quantize_and_dequantize(name):
    kind = dtype(name)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 16)).astype(np.float32) * 20
    scale = np.float32([0.5, 1, 2, 4]).astype(ml_dtypes.float8_e8m0fnu)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], axis=0, output_dtype=kind.onnx),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"], axis=0, output_dtype=1),
    ]
    outputs = [("q", kind.onnx, 2), ("y", TensorProto.FLOAT, 2)]
    q, y = run_both(model(nodes, [("x", x), ("s", scale)], outputs), x, scale)
    wide = scale.astype(np.float32)[:, None]
    if kind.is_integer:
        limits = ml_dtypes.iinfo(kind.numpy)
        expected = np.clip(np.rint(x / wide), limits.min, limits.max).astype(kind.numpy)
    else:
        limits = ml_dtypes.finfo(kind.numpy)
        expected = np.clip(x / wide, float(limits.min), float(limits.max)).astype(kind.numpy)
    np.testing.assert_array_equal(q.view(np.uint8), expected.view(np.uint8))
    np.testing.assert_array_equal(y, expected.astype(np.float32) * wide)


def test_a_last_block_may_be_short():
    x = codes("i4", 2, 7)
    scale = np.float32([[1, 2, 3], [4, 5, 6]])  # of 3, 3 and 1 elements
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=1, block_size=3)
    made = model([node], [("x", x), ("s", scale)], [("y", TensorProto.FLOAT, 2)])
    (y,) = run_both(made, x, scale)
    np.testing.assert_array_equal(y, x.astype(np.float32) * np.repeat(scale, 3, 1)[:, :7])


def test_torch_tensors_of_float8():
    torch = pytest.importorskip("torch")
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    x = codes("f8e4m3fn", 16)
    engine = compile_engine(import_model(model([cast], [("x", x)], [("y", 1, 1)])), Options())
    given = torch.arange(16, dtype=torch.uint8).view(torch.float8_e4m3fn)
    y = engine(given)
    np.testing.assert_array_equal(y.numpy(), x.astype(np.float32))


def test_arithmetic_is_refused_by_name():
    x = codes("f8e4m3fn", 4)
    made = model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", x)], [("y", _code(x), 1)])
    with pytest.raises(ModelError, match="add does not take"):
        CuvilBackend.prepare(made).run([x])
