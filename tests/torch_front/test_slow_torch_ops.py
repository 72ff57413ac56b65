"""Operators of torch's own database that stand for a family of records each; `python -m
tools.torch_ops` runs all of them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")
pytest.importorskip("expecttest", reason="torch's database needs expecttest: tools/setup torch")

from tools.torch_ops.cases import cases  # noqa: E402
from tools.torch_ops.check import check  # noqa: E402
from tools.torch_ops.report import by_operator, summary  # noqa: E402

NATIVE = [
    "add", "floor_divide", "atan2", "where", "softmax", "var_mean", "argmax", "cummax", "slice",
    "diagonal", "unfold", "index_put", "scatter_reduce.amax", "sort", "addmm",
    "nn.functional.conv2d",
    "nn.functional.conv_transpose2d", "nn.functional.max_pool2d", "nn.functional.layer_norm",
    "nn.functional.adaptive_avg_pool2d", "special.i0e",
    "nonzero", "arange", "lgamma", "nn.functional.embedding",
]  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_an_operator_is_compiled_and_equal_to_eager(name: str) -> None:
    found = [(c, check(c, most=2)) for c in cases() if c.name == name][:2]
    assert {row["result"] for _, row in found} == {"native"}, found


def test_what_is_not_supported_is_counted_as_fallback() -> None:
    (case,) = [c for c in cases() if c.name == "linalg.qr" and c.dtype is torch.float32]
    assert check(case, most=1)["result"] == "fallback"


def test_an_operator_is_as_good_as_its_worst_type() -> None:
    rows = {
        "add float32": {"result": "native", "why": ""},
        "add int64": {"result": "wrong", "why": "1, not 2"},
        "qr float32": {"result": "fallback", "why": "not supported"},
        "item bool": {"result": "left out", "why": ""},
    }
    assert by_operator(rows) == {"add": "wrong", "qr": "fallback", "item": "left out"}
    assert "native: 0  fallback: 1  wrong: 1  left out: 1" in summary(rows)
