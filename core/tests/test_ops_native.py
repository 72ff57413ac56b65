"""A kernel of every kind as compiled code. `CUVIL_OPS=native` runs all tests of ops that way."""

from __future__ import annotations

from typing import Any

import numpy as np
import op_check
import pytest
from native_run import run_native
from op_check import check, rand

CASES: list[tuple[str, list[np.ndarray], dict[str, Any]]] = [
    ("add", [rand(3, 70), rand(70)], {}),
    ("reduce", [rand(3, 70)], {"kind": "max", "axes": (1,)}),
    ("reduce", [rand(3, 70)], {"kind": "mean", "axes": (0,)}),
    ("arg_reduce", [rand(70)], {"kind": "min", "axis": 0, "last": True}),
    ("cumulative", [rand(3, 20)], {"axis": 0}),
    ("softmax", [rand(3, 70)], {"axis": 1}),
    ("layer_norm", [rand(3, 70), rand(70), rand(70)], {"axis": 1}),
    ("top_k", [rand(33)], {"axis": 0, "k": 5}),
    ("gather", [rand(3, 20), np.int64([2, -3])], {"axis": 0}),
    ("scatter_elements", [rand(3, 4), np.int64([[2, 0]]), rand(1, 2)], {"axis": 0}),
    ("pad", [rand(3, 4), np.float32(1)], {"low": (2, 1), "high": (0, 2), "mode": "reflect"}),
    ("concat", [rand(3, 4), rand(3, 2)], {"axis": 1}),
    ("contract", [rand(3, 4), rand(4, 2)], {"spec": "mk,kn->mn"}),
    ("attention", [rand(2, 3, 4), rand(2, 5, 4), rand(2, 5, 6)], {"scale": 0.5}),
    ("resize", [rand(4, 5)], {"axes": (0, 1), "dims": (6, 2), "mode": "linear"}),
    ("quantize_linear", [rand(9), np.float32(0.01)], {"to": "u8"}),
    ("lookup", [np.arange(-128, 128, dtype=np.int8), np.arange(256, dtype=np.uint8)[::-1]], {}),
]


@pytest.mark.parametrize(("name", "arrays", "attrs"), CASES, ids=[c[0] for c in CASES])
def test_compiled(
    name: str, arrays: list[np.ndarray], attrs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(op_check, "run_kernel", run_native)
    check(name, *arrays, **attrs)
