"""Patterns: what a traced function matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import cuvil.ops
from cuvil.ir.names import Value
from cuvil.rewrite.match import match
from cuvil.rewrite.pattern import Number, rewrites, trace
from cuvil.rewrite.rule import case

assert cuvil.ops is not None


def found(form: Callable[..., Any], build: Callable[..., Any], **more: Any) -> Any:
    """What `form` captures at the output of a graph of x and y, or None."""
    kinds = more.pop("kinds", None)
    graph = case(build, x="[2, 3] f32", y="[2, 3] f32").graph()
    result = match(trace(form, kinds).expr, graph.outputs[-1].owner, **more)
    if result is None:
        return None
    known = dict(zip(graph.inputs, "xy", strict=True))
    return {k: known.get(v, v) if isinstance(v, Value) else v for k, v in result.captured.items()}


def test_operands_of_commutative_ops_match_in_either_order() -> None:
    form = lambda p, a, b: a * p.exp(b)  # noqa: E731
    assert found(form, lambda b, x, y: b.mul(b.exp(x), y)) == {"a": "y", "b": "x"}
    assert found(form, lambda b, x, y: b.mul(y, b.exp(x))) == {"a": "y", "b": "x"}


def test_a_capture_stands_for_one_value() -> None:
    form = lambda p, a: a * p.sigmoid(a)  # noqa: E731
    assert found(form, lambda b, x, y: b.mul(b.sigmoid(x), x)) == {"a": "x"}
    assert found(form, lambda b, x, y: b.mul(b.sigmoid(x), y)) is None


def test_literals_match_within_rounding_and_as_divisors() -> None:
    form = lambda p, a: a * 0.7071067811865476  # noqa: E731
    assert found(form, lambda b, x, y: b.mul(x, b.scalar(0.70710677, x))) == {"a": "x"}
    assert found(form, lambda b, x, y: b.div(x, b.scalar(1.4142135, x))) == {"a": "x"}
    assert found(form, lambda b, x, y: b.mul(x, b.scalar(0.7072, x))) is None


def test_numbers_are_captured() -> None:
    form = lambda p, a, slope: p.max(a, a * slope)  # noqa: E731
    build = lambda b, x, y: b.max(b.mul(x, b.scalar(0.25, x)), x)  # noqa: E731
    assert found(form, build, kinds={"slope": "number"}) == {"a": "x", "slope": 0.25}


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x, y: b.mul(b.mul(x, b.exp(y)), b.scalar(0.5, x)),
        lambda b, x, y: b.mul(b.exp(y), b.mul(b.scalar(0.5, x), x)),
        lambda b, x, y: b.div(b.mul(b.exp(y), x), b.scalar(2, x)),
        lambda b, x, y: b.mul(b.div(x, b.scalar(2, x)), b.exp(y)),
    ],
)
def test_products_match_in_any_order_and_association(build: Any) -> None:
    form = lambda p, a, c: p.product(a, 0.5, p.exp(c))  # noqa: E731
    assert found(form, build) == {"a": "x", "c": "y"}


def test_inner_values_are_used_inside_only() -> None:
    form = lambda p, a: p.neg(p.exp(a))  # noqa: E731

    def build(b: Any, x: Any, y: Any) -> Any:
        inner = b.exp(x)
        return inner, b.neg(inner)

    assert found(form, build) is None
    assert found(form, build, shared=True) == {"a": "x"}


def test_attributes_are_compared_or_captured() -> None:
    form = lambda p, a, axes: p.reduce(a, kind="max", axes=axes)  # noqa: E731
    build = lambda b, x, y: b.reduce(x, kind="max", axes=(1,))  # noqa: E731
    assert found(form, build) == {"a": "x", "axes": (1,)}
    other = lambda b, x, y: b.reduce(x, kind="min", axes=(1,))  # noqa: E731
    assert found(form, other) is None


def test_captures_are_the_functions_parameters() -> None:
    def unfitting(b: Any, x: Value, slope: Number) -> Any:
        """Its form captures no slope."""

    cases = {"example": (), "near_miss": (), "phase": "fuse"}
    with pytest.raises(
        TypeError, match="unfitting: a form captures x, the function takes x, slope"
    ):
        rewrites(lambda p, x: p.neg(x), **cases)(unfitting)
