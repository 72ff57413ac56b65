"""Which tensors are placed inside another's buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cuvil.ir.dims import Dim
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.plan.border import fills_by_runs
from cuvil.plan.groups import Group, has_record, is_opaque
from cuvil.plan.layout import Inside, Layouts, dense
from cuvil.plan.templates import Templates

_SAME_SET = 4096  # bytes: addresses so far apart share a set of first-level caches (size by ways)
_LINE = 64


def find_layouts(
    block: Block, groups: Sequence[Group], layouts: Layouts, templates: Templates
) -> None:
    """Adds the block's tensors that can lie inside another."""
    roots = {g.root: g for g in groups}
    finder = _Finder(block, roots, layouts, templates)
    alone = [g.root for g in groups if g.members == [g.root] and not g.away]
    for op in alone:
        if op.name in _WRITTEN:
            _WRITTEN[op.name](finder, op)
    for group in groups:
        if not group.is_control and len(group.root.results) == 1:
            finder.rows(group.root.results[0])
    for op in alone:  # a slice takes over the strides that its source has got
        if op.name in _READ:
            _READ[op.name](finder, op)


@dataclass
class _Finder:
    block: Block
    roots: dict[Operation, Group]
    layouts: Layouts
    templates: Templates

    def concat(self, op: Operation) -> None:
        """Operands are written where they belong in the result."""
        axis, result = attrs_of(op).axis, op.results[0]
        steps = dense(tensor_type(result).dims)
        offset: Dim = 0
        for operand in op.operands:
            once = sum(v is operand for v in op.operands) == 1
            if once and self._written_in_place(operand) and self._read_in_place(operand, op):
                self.layouts.inside[operand] = Inside(result, offset * steps[axis], steps)
            offset = offset + tensor_type(operand).dims[axis]

    def pad(self, op: Operation) -> None:
        """The image is written inside; what is left of the pad is its border."""
        attrs, source, result = attrs_of(op), op.operands[0], op.results[0]
        if not fills_by_runs(op):
            return
        if self._written_in_place(source) and self._read_in_place(source, op):
            steps = dense(tensor_type(result).dims)
            offset: Dim = 0
            for low, step in zip(attrs.low, steps, strict=True):
                offset = offset + low * step
            self.layouts.inside[source] = Inside(result, offset, steps)

    def rows(self, result: Value) -> None:
        """Rows that would all fall on the same few sets of a cache lie further apart, for kernels
        that read many of them side by side."""
        dims, size = tensor_type(result).dims, tensor_type(result).dtype.size
        row = dims[-1] if dims else 0
        if not isinstance(row, int) or not row or row * size % _SAME_SET:
            return
        wanted = any(self.templates.reads_rows_together(u.operation, result) for u in result.uses)
        free = self._written_in_place(result) and not self.layouts.parts(result)
        if wanted and free and self._read_in_place(result, None):
            self.layouts.apart[result] = row + _LINE // size

    def slice(self, op: Operation) -> None:
        """A part of a stored tensor is read where it is."""
        attrs, source, result = attrs_of(op), op.operands[0], op.results[0]
        stored = isinstance(source.owner, Block) or source.owner in self.roots
        if not stored or any(s != 1 for s in attrs.steps) or not self._read_in_place(result, None):
            return
        steps = self.layouts.strides(source)
        offset: Dim = 0
        for start, step in zip(attrs.starts, steps, strict=True):
            offset = offset + start * step
        self.layouts.inside[result] = Inside(source, offset, steps)

    def _written_in_place(self, value: Value) -> bool:
        """Whether a kernel of this block stores the value and can do so by strides."""
        group = self.roots.get(value.owner)  # type: ignore[arg-type]
        if group is None or value in self.layouts.inside or len(group.root.results) != 1:
            return False
        if group.away or group.root.name in {*_WRITTEN, *_READ, "cuvil.reshape"}:
            return False
        if group.is_control or "dense" in of(group.root).tags:
            return False
        return self.templates.writes_in_place(group)

    def _read_in_place(self, value: Value, but: Operation | None) -> bool:
        """Whether all that read the value, one op aside, can do so by strides."""
        for use in value.uses:
            op = use.operation
            if op is but:
                continue
            if is_opaque(op) or (op in self.roots and self.roots[op].away):
                return False
            if op.parent is not self.block or not has_record(op) or of(op).regions:
                return False
            if op.name == "cuvil.reshape" or not self.templates.reads_in_place(op, value):
                return False
        return True


_WRITTEN = {"cuvil.concat": _Finder.concat, "cuvil.pad": _Finder.pad}
_READ = {"cuvil.slice": _Finder.slice}
