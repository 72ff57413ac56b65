"""Templates: ops for which a generator writes the loops. What none of them takes is lowered by the
op's own record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from cuvil.ir.names import Operation, Value
from cuvil.ir.record import tensor_type
from cuvil.plan.groups import Group
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.templates import attention, contract, depthwise, winograd

_DENSE = Layouts()


class Template(Protocol):
    """What a module with a template offers.

    DTYPES: those that operands may have. MATCHERS: op -> a function that gives what the others
    take as `match`, or None where the template does not fit.
    """

    DTYPES: frozenset[str]
    MATCHERS: Mapping[str, Callable[[Operation, Layouts], Any]]

    def reads_through(self, op: Operation, consumer: Operation) -> bool:
        """Whether it reads the operand of `op` (a view) in its place."""
        ...

    def reads_in_place(self, match: Any, value: Value) -> bool:
        """Whether it can read this operand by strides."""
        ...

    def writes_in_place(self, match: Any) -> bool:
        """Whether it can write its result by strides."""
        ...

    def build(self, draft: Draft, name: str, match: Any) -> Kernel:
        """The kernel: one `nest.template` with what is fused behind the anchor."""
        ...


CORE: tuple[Template, ...] = (depthwise, winograd, contract, attention)  # type: ignore[assignment]


class Templates:
    """Templates in order: the first that matches takes the op."""

    def __init__(self, templates: Sequence[Template] = CORE) -> None:
        self.templates = tuple(templates)
        self._known: dict[Operation, tuple[Template, Any] | None] = {}

    def is_template(self, op: Operation) -> bool:
        """Whether a template computes this op."""
        return self._find(op) is not None

    def reads_through(self, op: Operation, consumer: Operation) -> bool:
        """Whether the consumer's template reads the operand of `op` (a view) in its place."""
        found = self._find(consumer)
        return found is not None and found[0].reads_through(op, consumer)

    def reads_in_place(self, op: Operation, value: Value) -> bool:
        """Whether the kernel of `op` can read this operand by strides."""
        found = self._find(op)
        return found is None or found[0].reads_in_place(found[1], value)

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
        template = found[0]
        return template.build(draft, name, template.MATCHERS[anchor.name](anchor, draft.layouts))

    def _find(self, op: Operation) -> tuple[Template, Any] | None:
        if op not in self._known:
            self._known[op] = self._match(op)
        return self._known[op]

    def _match(self, op: Operation) -> tuple[Template, Any] | None:
        for template in self.templates:
            matcher = template.MATCHERS.get(op.name)
            if matcher is None:
                continue
            if any(tensor_type(v).dtype.name not in template.DTYPES for v in op.operands):
                continue
            match = matcher(op, _DENSE)
            if match is not None:
                return template, match
        return None
