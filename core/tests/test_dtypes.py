"""The element type table agrees with numpy, ONNX and the C header."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from cuvil.ir import dtypes

HEADER = Path(__file__).parents[2] / "runtime_c/include/cuvil/abi.h"


@pytest.mark.parametrize("row", dtypes.DTYPES, ids=str)
def test_lookups_return_the_same_record(row: dtypes.DType) -> None:
    assert dtypes.dtype(row.name) is row
    assert dtypes.dtype(row) is row
    assert dtypes.from_numpy(row.numpy) is row
    assert dtypes.from_onnx(row.onnx) is row
    assert dtypes.by_abi(row.abi) is row


@pytest.mark.parametrize("row", dtypes.DTYPES, ids=str)
def test_codes_are_those_of_onnx(row: dtypes.DType) -> None:
    assert onnx.helper.tensor_dtype_to_np_dtype(row.onnx) == row.numpy


def test_codes_are_those_of_the_c_header() -> None:
    found = {
        n.lower(): int(v)
        for n, v in re.findall(
            r"CUVIL_([A-Z0-9]+) = (\d+)",
            HEADER.read_text().split("enum cuvil_dtype")[1].split("}")[0],
        )
    }
    assert found == {row.name: row.abi for row in dtypes.DTYPES}


def test_narrow_types_compute_in_wider_ones() -> None:
    narrow = {row.name: row.compute.name for row in dtypes.DTYPES if row.is_narrow}
    assert (narrow["f8e5m2"], narrow["f4e2m1"], narrow["i4"], narrow["u2"]) == (
        *("f32", "f32"),
        *("i8", "u8"),
    )
    assert len(narrow) == 10


def test_numpy_lookup_takes_what_numpy_takes() -> None:
    assert dtypes.from_numpy(np.float32).name == "f32"
    assert dtypes.from_numpy(">i4").name == "i32"
    assert dtypes.from_numpy(ml_dtypes.bfloat16).name == "bf16"


def test_half_types_compute_in_f32() -> None:
    assert [dtypes.dtype(n).compute.name for n in ("f16", "bf16", "f64", "i8")] == [
        "f32",
        "f32",
        "f64",
        "i8",
    ]


@pytest.mark.parametrize("bad", ["float33", "F32"])
def test_unknown_names_are_refused(bad: str) -> None:
    with pytest.raises(KeyError, match="known: bool"):
        dtypes.dtype(bad)
    with pytest.raises(KeyError):
        dtypes.from_numpy(np.complex64)
    with pytest.raises(KeyError):
        dtypes.from_onnx(14)
