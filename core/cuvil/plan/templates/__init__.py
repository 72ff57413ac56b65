"""Templates: ops for which a generator writes the loops. What none of them takes is lowered by the
op's own record."""

from __future__ import annotations

from cuvil.ir.names import Operation
from cuvil.ir.record import tensor_type
from cuvil.plan.kernel import Draft, Kernel
from cuvil.plan.templates import contract, depthwise

_MODULES = (depthwise, contract)  # the first that matches takes the op


def is_template(op: Operation) -> bool:
    """Whether a template computes this op."""
    return _find(op) is not None


def reads_through(op: Operation, consumer: Operation) -> bool:
    """Whether the consumer's template reads the operand of `op` (a view) in its place."""
    return contract.reads_through(op, consumer)


def template_kernel(draft: Draft, name: str) -> Kernel:
    """The kernel of a group whose anchor a template computes."""
    anchor = draft.group.anchor
    assert anchor is not None
    found = _find(anchor)
    assert found is not None
    module, match = found
    return module.build(draft, name, match)  # type: ignore[attr-defined,no-any-return]


def _find(op: Operation) -> tuple[object, object] | None:
    if any(tensor_type(v).dtype.name != "f32" for v in op.operands):
        return None
    for module in _MODULES:
        matcher = module.MATCHERS.get(op.name)
        found = matcher(op) if matcher is not None else None
        if found is not None:
            return module, found
    return None
