"""Tables of more than 2 GB beside the model: rows B40 and B56 of the fault list."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cuvil.engine.front_door import compile_engine
from cuvil.options import Options
from tests.faults.cases import check


def sparse_table(folder: Path, kind: int, rows: int, columns: int, row: int) -> onnx.TensorProto:
    """External data full of holes but for one row of 1, 2, ... 100, 1, 2, ..."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    with open(folder / "table.bin", "wb") as file:
        file.truncate(rows * columns * dtype.itemsize)
        file.seek(row * columns * dtype.itemsize)
        file.write(pattern(columns).astype(dtype).tobytes())
    table = TensorProto(name="table", data_type=kind, dims=[rows, columns])
    table.data_location = TensorProto.EXTERNAL
    table.external_data.add(key="location", value="table.bin")
    return table


def pattern(columns: int) -> np.ndarray:
    return np.arange(columns) % 100 + 1


@contextmanager
def without_copy_of(size: int) -> Iterator[None]:
    """Within, private memory is bounded so that a copy of so many bytes fails."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    used = next(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmData")) * 1024
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (used + size // 2, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "row"),
    [(TensorProto.FLOAT, 300_000, 2000, 290_000), (TensorProto.INT8, 70_000, 32_768, 69_999)],
)
def test_b40_b56_rows_of_a_huge_table(
    kind: int, rows: int, columns: int, row: int, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Gather", ["table", "i"], ["y"]),
             helper.make_node("Gather", ["table", "j"], ["z"]),
             helper.make_node("Cast", ["y"], ["s"], to=TensorProto.FLOAT)]  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, [1]) for n in "ij"]
    outputs = [helper.make_empty_tensor_value_info(n) for n in "yzs"]
    table = sparse_table(tmp_path, kind, rows, columns, row)
    graph = helper.make_graph(nodes, "lookup", inputs, outputs, [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "lookup.onnx"
    path.write_bytes(model.SerializeToString())
    whole = rows * columns * helper.tensor_dtype_to_np_dtype(kind).itemsize
    with without_copy_of(whole):
        engine = compile_engine(path, Options(), threads=1)
    y, z, s = engine.run(None, {"i": np.array([row]), "j": np.array([row - rows])})
    check(y[0], pattern(columns))
    check(z[0], pattern(columns))
    check(s[0], pattern(columns))
    empty = engine.run(None, {"i": np.array([row - 1]), "j": np.array([-rows])})
    assert not any(a.any() for a in empty)
