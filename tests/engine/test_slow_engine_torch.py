"""Torch tensors in, torch tensors out, in the same memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import cuvil
from tests import small_models


@pytest.fixture(scope="module")
def engine() -> cuvil.Engine:
    return cuvil.compile(small_models.dynamic(), cache=False, threads=1)


def test_tensors_in_tensors_out(engine: cuvil.Engine) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    total, twice = engine(x, x.numpy())
    assert torch.equal(total, 2 * x) and torch.equal(twice, 4 * x)
    (named,) = engine.run(["twice"], {"x": x, "y": x})
    assert torch.equal(named, 4 * x)
    assert isinstance(engine(x.numpy(), x.numpy())[0], np.ndarray)


def test_strides_gradients_and_conjugates(engine: cuvil.Engine) -> None:
    x = torch.randn(3, 4, requires_grad=True).t()
    total, _ = engine(x, torch.zeros(4, 3))
    assert torch.equal(total, x)


def test_bfloat16() -> None:
    twice = cuvil.compile(
        small_models.model("m (bfloat16[4] x) => (bfloat16[4] y) { y = Add(x, x) }"), cache=False
    )
    x = torch.tensor([1.5, 2.0, -3.0, 0.0], dtype=torch.bfloat16)
    assert torch.equal(twice(x), x + x)


def test_other_devices_and_layouts_are_refused(engine: cuvil.Engine) -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(cuvil.InputError, match="on device 'meta'"):
        engine(x, x.to("meta"))
    with pytest.raises(cuvil.InputError, match="to_dense"):
        engine(x, x.to_sparse())


def test_torch_dtypes_in_a_spec() -> None:
    fixed = cuvil.compile(
        small_models.dynamic(), input_spec=[("x", torch.float32, (2, 3))], cache=False
    )
    assert fixed.get_inputs()[0].dims == (2, 3)
