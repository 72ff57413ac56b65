"""The options of a compile under the names that Python code gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

from cuvil.errors import OptionError
from cuvil.extents import read_dynamic_shapes
from cuvil.options import Options

__all__ = ["Keywords", "options_with"]

Bounds = Mapping[str, tuple[int, int | None]]


class Keywords(TypedDict, total=False):
    """What `cuvil.compile`, `Compiler.optimize` and decorators take; None: as it is.

    target, cpu, features: what to compile for ('cuvil targets' lists them). precision: "fp32"
    computes in the model's own types; "bf16" multiplies matrices and images of float32 rounded to
    bfloat16, and sums in float32: about three digits are right; "fp16" stores weights as float16
    and computes in float32. enable_fp16: products in 16 bits, which is precision "bf16".
    opt_level: 0 to 3 or "O0" to "O3". enable_graph_fusion: whether rewrite rules run.
    enable_op_scheduling: whether kernels may run in another order than the model's, where they
    need less memory then. winograd: whether convolutions by few taps may be computed with fewer
    products: at about twice the rounding error of a plain sum, and an infinity or NaN in the
    image may spoil neighbours of the results that it reaches. variant: the backend's build to
    use, by default the best. memory_plan: "static", or "dynamic" (see `Options`). passes: names
    of rule groups or rules (None: all that are on); disable_rules, enable_rules: single ones.

    dims: symbol -> extent. bounds: symbol -> (least, greatest or None). dynamic_shapes: symbol ->
    what it may be, such as "128..512, multiple of 8" or (128, 512, 8), or input -> {axis: such};
    what a node or a call does not keep is a ShapeMismatchError. specialize: symbol -> extents that
    get code of their own beside the code for all, chosen at each call; they share weights. batch:
    the same for the symbol "batch", or the first axis of inputs. name: prefix of exported symbols.

    tune: seconds, or text such as "60s", for measuring on this machine which tiles and algorithms
    are fastest, where costs decide otherwise; what was learned is kept for this cpu.
    """

    target: str | None
    cpu: str | None
    features: str | None
    precision: str | None
    enable_fp16: bool | None
    opt_level: int | str | None
    enable_graph_fusion: bool | None
    enable_op_scheduling: bool | None
    winograd: bool | None
    variant: str | None
    memory_plan: str | None
    passes: Sequence[str] | None
    disable_rules: Sequence[str] | None
    enable_rules: Sequence[str] | None
    dims: Mapping[str, int] | None
    bounds: Bounds | None
    dynamic_shapes: Mapping[str, Any] | None
    specialize: Mapping[str, Sequence[int]] | None
    batch: Sequence[int] | None
    name: str | None
    tune: float | str | None


def options_with(base: Options, given: Keywords) -> Options:
    """`base` changed by keywords. Raises OptionError, and TypeError for an unknown keyword."""
    unknown = [name for name in given if name not in Keywords.__annotations__]
    if unknown:
        raise TypeError(f"'{unknown[0]}' is no option; there are {', '.join(sorted(_READ))}")
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            changes |= _READ[name](value)
    if "batch" in given and "specialize" in changes:
        changes["specialize"] = {
            **_extents(given.get("specialize") or {}), **_extents({"batch": given["batch"] or ()})
        }  # fmt: skip
    return replace(base, **changes)


def _extents(given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    for name, values in given.items():
        if isinstance(values, str) or not all(type(v) is int and v > 0 for v in values):
            raise OptionError(f"specialize '{name}': expected extents such as [1, 4], not {values}")
    return {name: tuple(values) for name, values in given.items() if values}


def _as(name: str, read: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], Any]:
    return lambda value: {name: read(value)}


def _words(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


_READ: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    **{
        n: _as(n)
        for n in ("target", "cpu", "features", "precision", "opt_level", "variant", "name", "tune")
    },
    **{n: _as(n, _words) for n in ("passes", "disable_rules", "enable_rules")},
    "enable_fp16": lambda on: {"precision": "bf16"} if on else {},
    "enable_graph_fusion": _as("graph_fusion"),
    "enable_op_scheduling": _as("op_scheduling"),
    "winograd": _as("disable_kernels", lambda on: () if on else ("winograd",)),
    "memory_plan": _as("memory_plan"),
    "dims": _as("dims", dict),
    "bounds": _as("bounds", dict),
    "dynamic_shapes": _as("dynamic", read_dynamic_shapes),
    "specialize": _as("specialize", _extents),
    "batch": lambda values: _as("specialize", _extents)({"batch": values}),
}
