"""One operator: captured, native, in eager or wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cuvil.integrations.torch_compile.backend import backend
from cuvil.integrations.torch_compile.observe import observed
from tools.torch_ops.cases import Case, Sample, fresh

__all__ = ["check"]

RTOL, ATOL = 1e-4, 1e-5
Result = dict[str, Any]
Samples = list[Sample]
# Results that say where one of several equal elements is: any of them is right.
_PLACES = {"kthvalue", "median", "nanmedian", "mode", "topk", "sort", "argsort", "msort"}
_DIM_PLACE = {"topk": 1, "kthvalue": 1}  # where arguments have the axis
_ANY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}


def check(case: Case, most: int | None, dynamic: bool = False) -> Result:
    """{"result": "native" | "fallback" | "wrong" | "left out", "why": ..., "samples": ...}.

    All samples are one graph first. Where that is not captured, or is not equal to eager, every
    sample is a graph of its own, and the worst of them counts. dynamic: sizes are symbolic.
    """
    samples = list(case.samples(most))
    found = [_checked(case, samples, dynamic)] if samples else [("left out", "no samples")]
    if found[0][0] in ("wrong", "left out") and len(samples) > 1:
        found = [_checked(case, [sample], dynamic) for sample in samples]
    order = ("wrong", "fallback", "native", "left out")
    worst = min(found, key=lambda one: order.index(one[0]))
    return {"result": worst[0], "why": worst[1], "samples": len(samples)}


def _checked(case: Case, samples: Samples, dynamic: bool) -> tuple[str, str]:
    """What becomes of these samples in one graph, and why."""

    op = case.op.op  # what calling `case.op` calls: one frame less to trace for each sample

    def call(samples: Samples) -> list[Any]:
        return [op(first, *args, **keywords) for first, args, keywords in samples]

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            wanted = _run(call, samples)
        except Exception as error:
            return "left out", _first_line(error)
        reached: list[Any] = []
        try:
            return _compared(case, call, samples, wanted, dynamic, reached)
        except Exception as error:
            if not reached:  # dynamo itself refused, before there was a graph
                return "left out", _first_line(error)
            return _blamed(call, samples, dynamic, _first_line(error))
        finally:
            torch._dynamo.reset()


def _blamed(
    call: Callable[..., Any], samples: Samples, dynamic: bool, reason: str
) -> tuple[str, str]:
    """An error is ours only where a backend that does nothing can have the graph."""
    torch._dynamo.reset()
    try:
        _run(torch.compile(call, backend=_nothing, fullgraph=True, dynamic=dynamic), samples)
    except Exception as error:
        return "left out", _first_line(error)
    return "wrong", reason


def _nothing(module: Any, inputs: Any) -> Any:
    return module.forward


def _run(call: Callable[..., Any], samples: Samples) -> list[Any]:
    arguments = fresh(samples)
    torch.manual_seed(1)
    found: list[Any] = call(arguments)
    return found


def _compared(
    case: Case,
    call: Callable[..., Any],
    samples: Samples,
    wanted: list[Any],
    dynamic: bool,
    reached: list[Any],
) -> tuple[str, str]:
    """Raises what torch or a comparison raises. reached: gets the graphs that were captured."""

    def ours(module: Any, inputs: Any) -> Any:
        reached.append(module)
        return backend(module, inputs, options={"cache": False})

    compiled = torch.compile(call, backend=ours, fullgraph=True, dynamic=dynamic)
    with observed() as graphs:
        got = _run(compiled, samples)
    for sample, *pair in zip(samples, got, wanted, strict=True):
        if case.op.name in _PLACES:
            pair = [_elements(case.name, sample, v) for v in pair]
        if case.op.name not in _ANY:
            _equal(*pair)
    problems = [str(p) for g in graphs for p in g.problems]
    problems += [str(g.failure) for g in graphs if g.failure is not None]
    return ("fallback", problems[0].splitlines()[0]) if problems else ("native", "")


def _elements(name: str, sample: Any, found: Any) -> list[Any]:
    """Results with the elements in place of where they are."""
    first, args, keywords = sample
    places = [x for x in tree_leaves(found) if x.dtype is torch.int64]
    if name == "argsort" or (places and not isinstance(found, torch.Tensor)):
        at = _DIM_PLACE.get(name, 0)
        dim = keywords.get("dim", args[at] if len(args) > at else -1)
        index = places[-1]
        if index.dim() != first.dim():
            index = index.unsqueeze(dim)
        picked = first.gather(dim, index) if first.dim() else first
        return [picked, *(x for x in tree_leaves(found)[:-1])]
    return tree_leaves(found)


def _equal(got: Any, wanted: Any) -> None:
    left, right = tree_leaves(got), tree_leaves(wanted)
    assert len(left) == len(right), f"{len(left)} results, not {len(right)}"
    for a, b in zip(left, right, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b, f"{a}, not {b}"
            continue
        finite = b[b.isfinite()] if b.is_floating_point() and b.layout is torch.strided else b
        large = float(finite.abs().max()) if b.is_floating_point() and finite.numel() else 1.0
        scale = max(1.0, large)
        torch.testing.assert_close(
            a, b, rtol=RTOL, atol=ATOL * scale, equal_nan=True, check_stride=False
        )


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])}"[:400]
