"""Templates: ops for which a generator writes the loops. What none of them takes is lowered by the
op's own record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from cuvil.ir.names import Operation, Value
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.groups import Group
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.templates import attention, contract, depthwise, few_rows, lookup, winograd

_DENSE = Layouts()


class Template(Protocol):
    """What a module with a template offers.

    DTYPES: those that operands may have. MATCHERS: op -> a function that gives what the others
    take as `match`, or None where the template does not fit. A module may also have `ways(op)`:
    all that its matcher could give, by name, where it decides by costs and whatever the layouts;
    `reads_through(op, consumer)`: whether it reads the operand of `op` (a view) in its place; and
    `reads_rows_together(match, value)`: whether it reads many rows of an operand side by side.
    """

    DTYPES: frozenset[str]
    MATCHERS: Mapping[str, Callable[[Operation, Layouts], Any]]

    def reads_in_place(self, match: Any, value: Value) -> bool:
        """Whether it can read this operand by strides."""
        ...

    def writes_in_place(self, match: Any) -> bool:
        """Whether it can write its result by strides."""
        ...

    def build(self, draft: Draft, name: str, match: Any) -> Kernel:
        """The kernel: one `nest.template` with what is fused behind the anchor."""
        ...


CORE: tuple[Template, ...] = (
    depthwise, winograd, few_rows, contract, attention, lookup,  # type: ignore[assignment]
)  # fmt: skip


PLAIN = "plain"  # the way of templates that have only one
_Found = tuple[Template, Any]


def question(op: Operation) -> str:
    """What tells ops apart for which the ways to compute them are to be compared."""
    types = " ".join(str(v.type) for v in (*op.operands, *op.results))
    return f"{op.name} {attrs_of(op)!r} {types}"


class Templates:
    """Templates in order: the first that matches takes the op.

    chosen: `question` of an op -> the way to compute it, where costs are not to decide.
    """

    def __init__(
        self, templates: Sequence[Template] = CORE, chosen: Mapping[str, str] | None = None
    ) -> None:
        self.templates = tuple(templates)
        self.chosen = dict(chosen or {})
        self._known: dict[Operation, _Found | None] = {}

    def ways(self, op: Operation) -> list[str]:
        """The ways in which templates can compute an op, that of costs first; none where there is
        no choice."""
        found, usual = self._ways(op), self._by_cost(op)
        first = [name for name, match in found.items() if match == usual]
        return [*first, *(name for name in found if name not in first)] if len(found) > 1 else []

    def is_template(self, op: Operation) -> bool:
        """Whether a template computes this op."""
        return self._find(op) is not None

    def reads_through(self, op: Operation, consumer: Operation) -> bool:
        """Whether the consumer's template reads the operand of `op` (a view) in its place."""
        found = self._find(consumer)
        if found is None or not hasattr(found[0], "reads_through"):
            return False
        return bool(found[0].reads_through(op, consumer))

    def reads_in_place(self, op: Operation, value: Value) -> bool:
        """Whether the kernel of `op` can read this operand by strides."""
        found = self._find(op)
        return found is None or found[0].reads_in_place(found[1], value)

    def reads_rows_together(self, op: Operation, value: Value) -> bool:
        """Whether the kernel of `op` reads many rows of this operand side by side."""
        found = self._find(op)
        if found is None or not hasattr(found[0], "reads_rows_together"):
            return False
        return bool(found[0].reads_rows_together(found[1], value))

    def writes_in_place(self, group: Group) -> bool:
        """Whether the kernel of a group can write its result by strides."""
        found = self._find(group.anchor) if group.template and group.anchor is not None else None
        return found is None or found[0].writes_in_place(found[1])

    def kernel(self, draft: Draft, name: str) -> Kernel:
        """The kernel of a group whose anchor a template computes."""
        anchor = draft.group.anchor
        assert anchor is not None
        found = self._find(anchor)
        assert found is not None
        template, match = found
        if not hasattr(template, "ways"):
            match = template.MATCHERS[anchor.name](anchor, draft.layouts)
        return template.build(draft, name, match)

    def _find(self, op: Operation) -> _Found | None:
        if op not in self._known:
            self._known[op] = self._chosen(op) or self._by_cost(op)
        return self._known[op]

    def _chosen(self, op: Operation) -> _Found | None:
        way = self.chosen.get(question(op)) if self.chosen else None
        return self._ways(op).get(way) if way else None

    def _by_cost(self, op: Operation) -> _Found | None:
        for template in self._serving(op):
            match = template.MATCHERS[op.name](op, _DENSE)
            if match is not None:
                return template, match
        return None

    def _ways(self, op: Operation) -> dict[str, _Found]:
        found: dict[str, _Found] = {}
        for template in self._serving(op):
            several = getattr(template, "ways", None)
            if several is not None:
                found |= {name: (template, match) for name, match in several(op).items()}
                continue
            match = template.MATCHERS[op.name](op, _DENSE)
            if match is not None:
                return {**found, PLAIN: (template, match)}
        return found

    def _serving(self, op: Operation) -> list[Template]:
        """The templates that may take ops of this name and these dtypes."""
        if not any(op.name in t.MATCHERS for t in self.templates):
            return []
        dtypes = {tensor_type(v).dtype.name for v in op.operands}
        return [t for t in self.templates if op.name in t.MATCHERS and dtypes <= t.DTYPES]
