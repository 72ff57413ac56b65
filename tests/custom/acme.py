"""The declarations behind acme.c, for the tests of custom operators."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import cuvil
from cuvil.ops.custom import CustomOp

SOURCE = Path(__file__).with_name("acme.c")
HEADER = '<ir_version: 8, opset_import: ["" : 18, "com.acme" : 1]>'


def model(graph: str) -> onnx.ModelProto:
    """From the text of a graph."""
    return onnx.parser.parse_model(HEADER + graph)


def blend(**where: Any) -> CustomOp:
    """x * gain + y for f32, f64 and i32; mode "fail" makes a run fail. where: as for `native`."""

    @cuvil.custom_op(
        "com.acme::Blend", inputs=["x: T", "y: T"], outputs=["z: T"],
        attributes={"gain": 2.0, "mode": "run"}, types={"T": ["f32", "f64", "i32"]},
    )  # fmt: skip
    def operator(x: Any, y: Any, *, gain: float, mode: str) -> Any:
        return x * x.dtype.type(gain) + y

    @operator.shape
    def extents(x: Any, y: Any, *, gain: float, mode: str) -> Any:
        if len(x) != len(y):
            raise ValueError(f"ranks {len(x)} and {len(y)} differ")
        return x

    return operator.native("acme_blend_{T}", **where)


def sums(**where: Any) -> CustomOp:
    """Two outputs of other types and ranks, an input that may be absent, lists as attributes."""
    operator = cuvil.custom_op(
        "com.acme::Sums", inputs=["x: f32", "weights: f32?"],
        outputs=["low: f32", "places: i64"],
        attributes={
            "edges": list[float], "ints": (1, 2, 3), "flag": True, "names": ("eins", "zwei"),
        },
    )  # fmt: skip

    @operator.shape
    def extents(x: Any, weights: Any, **attributes: Any) -> Any:
        return [x[:1], (len(attributes["ints"]),)]

    @operator.reference
    def meaning(x: Any, weights: Any, *, edges: Any, ints: Any, flag: bool, names: Any) -> Any:
        inside = (x >= edges[0]) & (x < edges[1])
        weighted = x if weights is None else x * weights
        low = (weighted * inside).sum(1) + np.float32(0 if flag else 1000)
        return low, np.array(ints, np.int64)

    return operator.native("acme_sums", **where)


def built(folder: Path, kind: str) -> Path:
    """acme.c as libacme.so, libacme.a or acme.o; skips the test where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no cc on this machine")
    item, library = folder / "acme.o", folder / f"libacme.{kind}"
    flags = ["-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-c", SOURCE, "-o", item], check=True)
    if kind == "so":
        subprocess.run([compiler, "-shared", item, "-o", library, "-lm"], check=True)
    elif kind == "a":
        subprocess.run(["ar", "rcs", library, item], check=True)
    return item if kind == "o" else library
