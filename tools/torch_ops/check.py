"""One operator: captured, native, in eager or wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cuvil.integrations.torch_compile.backend import backend
from cuvil.integrations.torch_compile.observe import observed
from tools.torch_ops.cases import Case, fresh

__all__ = ["check"]

RTOL, ATOL = 1e-4, 1e-5
Result = dict[str, Any]
_ANY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}


def check(case: Case, most: int | None) -> Result:
    """{"result": "native" | "fallback" | "wrong" | "left out", "why": ..., "samples": ...}."""
    count, results, reasons = 0, set(), []
    for sample in case.samples(most):
        result, why = _sample(case, sample)
        count += 1
        results.add(result)
        if why:
            reasons.append(why)
    order = ("wrong", "fallback", "native", "left out")
    result = next((r for r in order if r in results), "left out")
    return {"result": result, "why": reasons[0] if reasons else "", "samples": count}


def _sample(case: Case, sample: Any) -> tuple[str, str]:
    def call(first: Any, args: Any, keywords: Any) -> Any:
        return case.op(first, *args, **keywords)

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            wanted = _run(call, sample)
            _run(torch.compile(call, backend=_nothing, fullgraph=True, dynamic=False), sample)
        except Exception as error:
            return "left out", _first_line(error)
        finally:
            torch._dynamo.reset()
        return _compared(case, call, sample, wanted)


def _nothing(module: Any, inputs: Any) -> Any:
    return module.forward


def _run(call: Callable[..., Any], sample: Any) -> Any:
    arguments = fresh(sample)
    torch.manual_seed(1)
    return call(*arguments)


def _compared(case: Case, call: Callable[..., Any], sample: Any, wanted: Any) -> tuple[str, str]:
    compiled = torch.compile(call, backend=backend, fullgraph=True, dynamic=False)
    try:
        with observed() as graphs:
            got = _run(compiled, sample)
        if case.op.name not in _ANY:
            _equal(got, wanted)
    except Exception as error:
        return "wrong", _first_line(error)
    finally:
        torch._dynamo.reset()
    problems = [str(p) for g in graphs for p in g.problems]
    problems += [str(g.failure) for g in graphs if g.failure is not None]
    return ("fallback", problems[0]) if problems else ("native", "")


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
