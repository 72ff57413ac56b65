"""Patterns: Python functions over symbolic values, traced once to a DAG of what to match.

    @rewrites(lambda p, x: x * p.sigmoid(x), example=..., near_miss=...)
    def silu(b: Rewriter, x: Value) -> Value:
        return b.silu(x)

The parameters of a form are the captures. They must be those of the function, which may have
defaults for what only some forms capture; that is checked at import. Annotations of the function
say what a capture takes: `Value` any value, `Number` a constant whose elements are one number
(captured as a float), `Constant` a constant (captured as the value). A capture used as an
attribute holds that attribute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuvil.ir.names import Value
from cuvil.ir.record import PRIMITIVES
from cuvil.rewrite.match import match
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import Apply, Cases, Rule, make_rule
from cuvil.rewrite.tree import Capture, Chain, Either, Expr, Form, Node, lift, root_names

Number = float
Constant = Value
KINDS = {"Value": "value", "Number": "number", "Constant": "constant", "Any": "value"}


class Forms:
    """What a form writes with: every primitive as a method, and combinators."""

    def __getattr__(self, name: str) -> Callable[..., Expr]:
        if name.rstrip("_") not in PRIMITIVES:
            raise AttributeError(f"no primitive '{name}'")
        return lambda *operands, **attrs: Node(
            name.rstrip("_"), tuple(map(lift, operands)), tuple(sorted(attrs.items()))
        )

    def either(self, *forms: Any) -> Expr:
        """Any of these."""
        return Either(tuple(map(lift, forms)))

    def product(self, *factors: Any) -> Expr:
        """These factors, multiplied in any order and association."""
        return Chain("mul", tuple(map(lift, factors)))

    def total(self, *terms: Any) -> Expr:
        """These terms, added in any order and association."""
        return Chain("add", tuple(map(lift, terms)))


@dataclass(frozen=True)
class Pattern:
    """A traced form: what to match, and the names of its captures."""

    expr: Form
    captures: tuple[str, ...]


def trace(form: Callable[..., Any], kinds: dict[str, str] | None = None) -> Pattern:
    """Calls `form(p, capture, ...)` once and keeps what it returns."""
    _, *names = inspect.signature(form).parameters
    captures = [Capture(name, (kinds or {}).get(name, "value")) for name in names]
    result = lift(form(Forms(), *captures))
    if not isinstance(result, Node | Either | Chain):
        raise ValueError("a pattern must be an operation")
    return Pattern(result, tuple(names))


def rewrites(
    *forms: Callable[..., Any], example: Cases, near_miss: Cases, **more: Any
) -> Callable[[Callable[..., Any]], Rule]:
    """Makes a function `(b, captures...) -> value or None` a rule that replaces any of the forms.

    What lies inside a match must not be used outside of it. TypeError at import unless the
    captures of every form are the function's parameters.
    """

    def decorate(function: Callable[..., Any]) -> Rule:
        _, *params = inspect.signature(function).parameters.values()
        kinds = {p.name: KINDS.get(_annotation(p), "value") for p in params}
        needed = {p.name for p in params if p.default is inspect.Parameter.empty}
        patterns = [trace(form, kinds) for form in forms]
        for pattern in patterns:
            if not needed <= set(pattern.captures) <= set(kinds):
                raise TypeError(
                    f"rule {function.__name__}: a form captures {', '.join(pattern.captures)}, "
                    f"the function takes {', '.join(kinds)}"
                )
        roots = sorted(set().union(*(root_names(p.expr) for p in patterns)))
        return make_rule(function, roots, _apply(patterns, function), example, near_miss, **more)

    return decorate


def _annotation(parameter: inspect.Parameter) -> str:
    kind = parameter.annotation
    return kind if isinstance(kind, str) else getattr(kind, "__name__", "")


def _apply(patterns: Sequence[Pattern], function: Callable[..., Any]) -> Apply:
    def apply(b: Rewriter, op: Any) -> Any:
        for pattern in patterns:
            found = match(pattern.expr, op)
            if found is None:
                continue
            result = function(b, **{name: found.captured[name] for name in pattern.captures})
            if result is not None:
                return result
            b.undo()
        return None

    return apply
