"""Templates: ops for which a generator writes the loops. What none of them takes is lowered by the
op's own record."""

from __future__ import annotations

from cuvil.ir.names import Operation, Value
from cuvil.ir.record import tensor_type
from cuvil.plan.groups import Group
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.layout import Layouts
from cuvil.plan.templates import attention, contract, depthwise

_DENSE = Layouts()
_MODULES = (depthwise, contract, attention)  # the first that matches takes the op


def is_template(op: Operation) -> bool:
    """Whether a template computes this op."""
    return _find(op) is not None


def reads_through(op: Operation, consumer: Operation) -> bool:
    """Whether the consumer's template reads the operand of `op` (a view) in its place."""
    return contract.reads_through(op, consumer)


def reads_in_place(op: Operation, value: Value) -> bool:
    """Whether the kernel of `op` can read this operand by strides."""
    found = _find(op)
    return found is None or found[0].reads_in_place(found[1], value)  # type: ignore[attr-defined]


def writes_in_place(group: Group) -> bool:
    """Whether the kernel of a group can write its result by strides."""
    found = _find(group.anchor) if group.template and group.anchor is not None else None
    return found is None or found[0].writes_in_place(found[1])  # type: ignore[attr-defined]


def template_kernel(draft: Draft, name: str) -> Kernel:
    """The kernel of a group whose anchor a template computes."""
    anchor = draft.group.anchor
    assert anchor is not None
    found = _find(anchor)
    assert found is not None
    module = found[0]
    return module.build(draft, name, module.MATCHERS[anchor.name](anchor, draft.layouts))  # type: ignore[attr-defined,no-any-return]


def _find(op: Operation) -> tuple[object, object] | None:
    if any(tensor_type(v).dtype.name not in ("f32", "bool") for v in op.operands):
        return None
    for module in _MODULES:
        matcher = module.MATCHERS.get(op.name)
        found = matcher(op, _DENSE) if matcher is not None else None
        if found is not None:
            return module, found
    return None
