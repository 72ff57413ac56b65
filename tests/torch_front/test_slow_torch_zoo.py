"""Models of many kinds through torch.compile: one graph each, compiled and equal to eager."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: tools/setup torch")
pytest.importorskip("transformers", reason="needs transformers: tools/setup torch")

from cuvil.integrations.torch_compile.observe import observed  # noqa: E402
from tests.torch_front.torch_zoo import ZOO, Sample  # noqa: E402

RTOL, ATOL = 1e-4, 1e-5  # the latter of the largest element
pytestmark = [pytest.mark.usefixtures("inference"), pytest.mark.filterwarnings("ignore")]


def sample(name: str) -> Sample:
    """A model, its weights as they are after some training: no norm is the identity."""
    model, inputs = ZOO[name]()
    for buffer in model.buffers():
        if buffer.is_floating_point() and buffer.dim() == 1:
            buffer.uniform_(0.5, 1.5)
    return Sample(model.eval(), inputs)


def tensors(found: Any) -> list[Any]:
    """The tensors of a model's output, wherever they stand."""
    values = found.to_tuple() if hasattr(found, "to_tuple") else found
    leaves = torch.utils._pytree.tree_leaves(values)
    return [x for x in leaves if isinstance(x, torch.Tensor)]


def compare(found: Any, wanted: Any) -> None:
    got, expected = tensors(found), tensors(wanted)
    assert len(got) == len(expected) > 0
    for a, b in zip(got, expected, strict=True):
        scale = float(b.abs().max()) if b.is_floating_point() else 0.0
        torch.testing.assert_close(a, b, rtol=RTOL, atol=ATOL * scale)


@pytest.mark.parametrize("name", ZOO)
def test_one_graph_without_a_break(name: str) -> None:
    model, inputs = sample(name)
    run = torch.compile(model, backend="cuvil", options={"fallback": "error"})
    with observed() as graphs:
        found = run(**inputs)
    compare(found, model(**inputs))
    assert len(graphs) == 1


@pytest.mark.parametrize("name", ["bert", "llama", "resnet18"])
def test_one_graph_for_many_sizes(name: str) -> None:
    model, inputs = sample(name)
    run = torch.compile(model, backend="cuvil", dynamic=True, options={"fallback": "error"})
    with observed() as graphs:
        for rows in (2, 5):
            more = {k: torch.cat([v] * 3)[:rows] for k, v in inputs.items()}
            compare(run(**more), model(**more))
    assert len(graphs) == 1
