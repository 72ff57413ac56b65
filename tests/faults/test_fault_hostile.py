"""Models that were made to hurt: an error or an answer, in bounded time and memory."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cuvil.engine.front_door import compile_engine
from cuvil.errors import Error, ModelError, RuntimeFailure, ShapeMismatchError
from cuvil.options import Options
from tests.faults.cases import Model, arange, check, f32, outputs_of

FEW = Options(opt_level=0)


def doubled_by_views(m: Model, x: str, levels: int) -> str:
    for _ in range(levels):
        left = m.op("Slice", x, m.const([0], np.int64), m.const([-1], np.int64))
        right = m.op("Slice", x, m.const([1], np.int64), m.const([1 << 40], np.int64))
        x = m.op("Add", left, right)
    return x


def test_values_that_double_at_every_level() -> None:
    m = Model()
    x = y = m.feed(arange(40))
    for _ in range(60):
        y = m.op("Add", y, y)
    m.keep(doubled_by_views(m, x, 30), m.op("Mul", y, m.const(np.float32(2.0**-60))))
    slices, sums = m.run()
    want = arange(40).astype(np.float64)
    for _ in range(30):
        want = want[1:] + want[:-1]
    check(slices, want)
    check(sums, arange(40))


def test_a_chain_of_a_thousand_nodes() -> None:
    m = Model()
    x, one = m.feed(arange(4)), m.const(np.float32(0.999))
    for i in range(1000):
        x = m.op("Sin" if i % 3 == 0 else "Mul", x, *([one] if i % 3 else []))
    m.keep(x)
    want = arange(4).astype(np.float64)
    for i in range(1000):
        want = np.sin(want) if i % 3 == 0 else want * np.float32(0.999)
    check(m.run(opt_level=1)[0], want, 1e-3, 1e-4)


def test_dims_that_grow_without_end() -> None:
    m = Model()
    x = m.feed(arange(2), dims=["N"])
    s = t = m.op("Shape", x)
    for _ in range(12):
        s = m.op("Mul", s, s)
        t = m.op("Add", m.op("Div", m.op("Mul", t, m.const([3], np.int64)), m.const([2], np.int64)),
                 m.op("Mod", t, m.const([7], np.int64)))  # fmt: skip
    m.keep(
        m.op("Expand", m.const(f32([1])), m.op("Sub", s, s)), m.op("Shape", m.op("Expand", x, t))
    )
    with suppress(Error, MemoryError):
        m.run(opt_level=0)


def test_extents_of_which_the_product_does_not_fit() -> None:
    """64 bits overflow in a size: an error, and nothing is written."""
    m = Model()
    x = m.feed(np.zeros((3, 0), np.float32), dims=["N", "Z"])
    column = m.op("ReduceSum", x, m.const([1], np.int64), keepdims=1)
    m.keep(m.op("ReduceMax", m.op("MatMul", column, m.op("Transpose", column, perm=[1, 0]))))
    engine = m.engine(opt_level=0)
    outputs_of(m, engine)
    for n in (1 << 31, 1 << 33, 1 << 40):
        with pytest.raises((Error, MemoryError)):
            outputs_of(m, engine, {x: np.zeros((n, 0), np.float32)})


@pytest.mark.parametrize("depth", [3, 40])
def test_functions_that_call_functions_twice(depth: int) -> None:
    m = Model()
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for i in range(depth):
        inner = [helper.make_node("Neg", ["a"], ["b"])]
        if i:
            call = {"domain": "local"}
            inner = [helper.make_node(f"F{i - 1}", ["a"], ["c"], **call),
                     helper.make_node(f"F{i - 1}", ["c"], ["b"], **call)]  # fmt: skip
        m.functions.append(helper.make_function("local", f"F{i}", ["a"], ["b"], inner, opsets))
    m.keep(m.op(f"F{depth - 1}", m.feed(arange(3)), domain="local"))
    if depth == 3:
        check(m.run()[0], arange(3))
        return
    m.functions[0].node[0].op_type = "NoSuchOperator"  # the limit is tested where it is cheap
    with pytest.raises(Error):
        m.engine()


def test_a_function_that_calls_itself() -> None:
    m = Model()
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    call = helper.make_node("F", ["a"], ["b"], domain="local")
    m.functions.append(helper.make_function("local", "F", ["a"], ["b"], [call], opsets))
    m.keep(m.op("F", m.feed(arange(3)), domain="local"))
    with pytest.raises(Error):
        m.engine()


def test_a_cycle_is_refused() -> None:
    m = Model()
    x = m.feed(arange(3))
    m.node("Add", [x, "b"], ["a"])
    m.node("Neg", ["a"], ["b"])
    m.keep("b")
    with pytest.raises(ModelError):
        m.engine()


def test_branches_in_branches() -> None:
    def graph(k: int) -> onnx.GraphProto:
        node = helper.make_node("Neg", ["x"], [f"o{k}"])
        if k:
            node = helper.make_node("If", ["c"], [f"o{k}"], then_branch=graph(k - 1),
                                    else_branch=graph(0))  # fmt: skip
        return helper.make_graph(
            [node], f"g{k}", [], [helper.make_empty_tensor_value_info(f"o{k}")]
        )

    inputs = [helper.make_tensor_value_info("x", 1, [3]), helper.make_tensor_value_info("c", 9, [])]
    top = graph(24)
    whole = helper.make_graph(list(top.node), "g", inputs, list(top.output))
    proto = helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    try:
        engine = compile_engine(proto, FEW, threads=1)
    except Error:
        return
    for c in (True, False):
        check(engine.run(None, {"x": arange(3), "c": np.bool_(c)})[0], -arange(3))


def test_ranks() -> None:
    m = Model()
    m.keep(m.op("Reshape", m.feed(arange(4)), m.const([1] * 15 + [4], np.int64)))
    assert m.run()[0].shape == (*[1] * 15, 4)
    m.keep(m.op("Reshape", m.kept[0], m.const([1] * 16 + [4], np.int64)))
    with pytest.raises(Error, match="rank 17"):
        m.engine()


def test_names_with_anything_in_them() -> None:
    m = Model()
    m.feed(arange(3))
    name, result = 'a"b\n\\%s;\u2028', "\"'\n\\y{}%d"
    m.inputs[0].name, m.feeds = name, {name: arange(3)}
    m.node("Neg", [name], [result])
    m.keep(result)
    check(m.run()[0], -arange(3))


def test_outputs_that_are_inputs_constants_or_twice_the_same() -> None:
    m = Model()
    x, c = m.feed(arange(2, 3)), m.const(arange(3, 2))
    flat = m.op("Reshape", x, m.const([-1], np.int64))
    m.keep(x, c, flat, m.op("Identity", x), m.op("Reshape", x, m.const([3, 2], np.int64)))
    m.keep(
        m.op("Neg", flat), m.op("Reshape", m.kept[-1], m.const([2, 3], np.int64)), m.const(f32(7))
    )
    got = m.run()
    wants = [arange(2, 3), arange(3, 2), arange(6), arange(2, 3), arange(3, 2)]
    for g, w in zip(got, [*wants, -arange(6), arange(2, 3), 7], strict=False):
        check(g, w)


def test_no_inputs_and_no_nodes() -> None:
    m = Model()
    m.keep(m.const(arange(3)), m.op("Neg", m.const(f32([1, 2]))))
    constant, folded = m.run()
    check(constant, arange(3))
    check(folded, [-1, -2])


@pytest.mark.parametrize(
    "dims",
    [[1 << 62, 1 << 62], [0, 1 << 62], [1 << 31, 1 << 31], [(1 << 63) - 1, 2], [1 << 49, 0]],
    ids=str,
)
def test_declared_extents_that_no_machine_holds(dims: list[int]) -> None:
    m = Model()
    m.keep(m.op("Add", m.op("MatMul", m.feed(np.zeros((2, 2), "f4"), dims), m.const(np.eye(2))),
                m.const(f32(1))))  # fmt: skip
    with pytest.raises(ModelError, match="elements, the limit is"):
        m.engine()


NAMES = (
    "", "a b", "N*", "(" * 10_000, "9" * 5000, "N" * 100_000, "2**99999999", "N**9999",
    "N//0", "N%0", "N\n\x00", "-" * 5000 + "N", "max(1," * 1000 + "N" + ")" * 1000, 'N"; drop',
    "\\", "é", "维度", "__import__('os')", "if", "main", "+".join(f"a{i}" for i in range(1000)),
    "N-M", "-1",
)  # fmt: skip


def test_names_of_dims_with_anything_in_them() -> None:
    """A name is a name: what is no expression of other names stands for itself."""
    for name in NAMES:
        m = Model()
        x = m.feed(arange(3, 2), [name, "M"])
        m.keep(m.op("MatMul", x, m.op("Transpose", x)))
        engine = m.engine(opt_level=0)
        for n in (3, 1):
            check(outputs_of(m, engine, {x: arange(n, 2)})[0], arange(n, 2) @ arange(n, 2).T)


def test_functions_that_call_each_other() -> None:
    m = Model()
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    for name, other in (("F", "G"), ("G", "F")):
        call = helper.make_node(other, ["a"], ["b"], domain="local")
        m.functions.append(helper.make_function("local", name, ["a"], ["b"], [call], opsets))
    m.keep(m.op("F", m.feed(arange(3)), domain="local"))
    with pytest.raises(ModelError):
        m.engine()


def test_a_branch_that_needs_what_comes_after_it() -> None:
    m = Model()
    x, c = m.feed(arange(3)), m.feed(np.bool_(True))
    inner = [helper.make_node("Neg", ["late"], ["o"])]
    graph = helper.make_graph(inner, "b", [], [helper.make_empty_tensor_value_info("o")])
    m.node("If", [c], ["chosen"], then_branch=graph, else_branch=graph)
    m.node("Add", ["chosen", x], ["late"])
    m.keep("late")
    with pytest.raises(ModelError):
        m.engine()


@pytest.mark.parametrize("kind", [8, 16, 17, 14, 22, 23, 0, 99])
def test_element_types_that_may_not_be_supported(kind: int) -> None:
    """Strings, bfloat16, float8, complex, 4-bit, none, unknown."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    for value in info:
        value.type.tensor_type.elem_type = kind
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", info[:1], info[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    try:
        engine = compile_engine(proto, FEW, threads=1)
    except Error as error:
        assert "\n" not in str(error)
        return
    engine.warmup()


def test_unequal_extents_name_the_node_and_the_numbers() -> None:
    m = Model()
    x, y = m.feed(arange(6), dims=["N"]), m.feed(arange(3), dims=["M"])
    halves = m.op("Reshape", x, m.const([2, -1], np.int64))
    m.keep(m.op("Add", halves, y))
    m.nodes[-1].name = "adds_halves"
    engine = m.engine()
    check(outputs_of(m, engine)[0], arange(2, 3) + arange(3))
    with pytest.raises((ShapeMismatchError, RuntimeFailure)) as caught:
        outputs_of(m, engine, {y: arange(4)})
    assert "4" in str(caught.value)


def test_truncated_and_foreign_files(tmp_path: Path) -> None:
    m = Model()
    m.keep(m.op("Neg", m.feed(arange(3))))
    data = m.proto().SerializeToString()
    for k, bad in enumerate((b"", b"\0" * 40, data[: len(data) // 2], b"PK\3\4" + data, data * 2)):
        path = tmp_path / f"{k}.onnx"
        path.write_bytes(bad)
        for source in (bad, path):
            try:
                compile_engine(source, FEW, threads=1)
            except Error as error:
                assert "\n" not in str(error)
