"""Indices of 64 bits to 32, for machines whose pointers have as many.

Generators write every index as i64. LLVM cuts it down where an address is made, but not a loop's
counter: that takes two registers, and a comparison of both, on a machine of 32 bits. Here values
that are nothing but indices become i32 before LLVM sees them: they count what memory holds, so they
fit.

Values that must have one type (a counter, its bound, the sum of both) are a class. A class stays at
64 bits when one of its values is an element of a tensor, or is used as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from cuvil.codegen.llvm_util import I1, I32, I64

_ARITHMETIC = {"add", "sub", "mul", "udiv", "urem", "sdiv", "srem"}
_MOST = (1 << 31) - 1


def narrow_indices(module: ir.Module) -> None:
    """Changes the functions of a module of kernels, whose i64 arguments are tasks and indices."""
    classes = _Classes()
    functions = [f for f in module.functions if f.blocks]
    for function in functions:
        for instruction in _instructions(function):
            _constrain(classes, instruction)
    for function in functions:
        _rewrite(classes, function)


def mark_index(loaded: ir.Instruction) -> ir.Instruction:
    """Says that a load gives an index, such as a dim slot's. Returns it."""
    loaded.is_index = True
    return loaded


class _Classes:
    """Which values share a type, and which classes keep 64 bits."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._wide: set[int] = set()
        self._alive: list[ir.Value] = []  # identities stay unique while their values live

    def _find(self, value: ir.Value) -> int:
        key = id(value)
        if key not in self._parent:
            self._parent[key] = key
            self._alive.append(value)
        while self._parent[key] != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def join(self, *values: ir.Value) -> None:
        """These have one type. A constant fits into any, or makes the others wide."""
        first, *others = [v for v in values if not isinstance(v, ir.Constant)] or [None]
        if first is None:
            return
        root = self._find(first)
        for other in map(self._find, others):
            self._parent[other] = root
            if other in self._wide:
                self._wide.add(root)
        if any(isinstance(v, ir.Constant) and not _fits(v) for v in values):
            self._wide.add(root)

    def keep(self, *values: ir.Value) -> None:
        """These keep 64 bits."""
        for value in values:
            if not isinstance(value, ir.Constant):
                self._wide.add(self._find(value))

    def is_narrow(self, value: ir.Value) -> bool:
        """Whether a value that was i64 becomes, or is, i32; the classes are complete."""
        return id(value) in self._parent and self._find(value) not in self._wide


def _fits(constant: ir.Constant) -> bool:
    number = constant.constant
    return number is ir.Undefined or (number is not None and -_MOST <= number <= _MOST)


def _instructions(function: ir.Function) -> Iterator[ir.Instruction]:
    for block in function.blocks:
        yield from block.instructions


def _wide_operands(instruction: ir.Instruction) -> list[ir.Value]:
    values = list(instruction.operands)
    if isinstance(instruction, ir.PhiInstr):
        values = [value for value, _ in instruction.incomings]
    return [value for value in values if value.type == I64]


def _constrain(classes: _Classes, i: ir.Instruction) -> None:
    """What an instruction demands of the types of its operands and its result."""
    operands = _wide_operands(i)
    result = [i] if i.type == I64 else []
    if isinstance(i, ir.GEPInstr):
        pass  # takes indices of any width
    elif isinstance(i, ir.PhiInstr) or _joins(i):
        classes.join(*result, *operands)
    elif isinstance(i, ir.CallInstr):
        classes.keep(*result)
        if _is_internal(i.callee):
            for argument, given in zip(i.callee.args, i.args, strict=True):
                if argument.type == I64:
                    classes.join(argument, given)
    elif i.opname in ("trunc", "sitofp") or (i.opname == "zext" and i.operands[0].type == I1):
        pass  # of any width
    elif not (i.opname == "load" and getattr(i, "is_index", False)):
        classes.keep(*result, *operands)


def _is_internal(function: ir.Value) -> bool:
    return isinstance(function, ir.Function) and function.linkage == "internal"


def _rewrite(classes: _Classes, function: ir.Function) -> None:
    narrow = {id(i): i for i in _instructions(function) if classes.is_narrow(i)}
    arguments = [a for a in function.args if classes.is_narrow(a)]
    calls = [i for i in _instructions(function) if isinstance(i, ir.CallInstr)]
    outside = [c for c in calls if not _is_internal(c.callee)]
    widened = [(c, k) for c in outside for k, v in enumerate(c.operands) if classes.is_narrow(v)]
    for instruction in _instructions(function):
        _retype_constants(classes, instruction)
    for value in narrow.values():
        _retype(value)
    for argument in arguments:
        if _is_internal(function):
            _retype(argument)
        else:
            _cut_argument(function, argument)
    for call, position in widened:
        _widen(call, position)
    for instruction in _instructions(function):
        if instruction.opname == "trunc" and instruction.operands[0].type == instruction.type:
            instruction.opname = "bitcast"  # of a type to itself: nothing is left to cut


def _retype(value: ir.Value) -> None:
    value.type = I32
    value._clear_string_cache()


def _retype_constants(classes: _Classes, i: ir.Instruction) -> None:
    """Constants beside narrow values become i32 too."""
    if isinstance(i, ir.PhiInstr):
        if classes.is_narrow(i):
            i.incomings = [(_as_narrow(v), block) for v, block in i.incomings]
    elif isinstance(i, ir.CallInstr):
        if _is_internal(i.callee):
            wanted = [classes.is_narrow(a) for a in i.callee.args]
            given = zip(wanted, i.args, strict=True)
            i.operands = [i.callee, *(_as_narrow(v) if cut else v for cut, v in given)]
    elif _joins(i) and any(classes.is_narrow(v) for v in (i, *i.operands)):
        i.operands = [_as_narrow(v) for v in i.operands]


def _joins(i: ir.Instruction) -> bool:
    """Whether operands of an instruction, but a phi's, have one type."""
    return i.opname in _ARITHMETIC or isinstance(i, ir.ICMPInstr | ir.SelectInstr)


def _as_narrow(value: ir.Value) -> ir.Value:
    if isinstance(value, ir.Constant) and value.type == I64:
        return ir.Constant(I32, value.constant)
    return value


def _cut_argument(function: ir.Function, argument: ir.Value) -> None:
    """An argument that others give as i64, at the function's entry."""
    entry = function.blocks[0]
    cut = ir.instructions.CastInstr(entry, "trunc", argument, I32)
    _replace(function, argument, cut)
    entry.instructions.insert(0, cut)


def _replace(function: ir.Function, old: ir.Value, new: ir.Value) -> None:
    for i in _instructions(function):
        i.replace_usage(old, new)
        if isinstance(i, ir.GEPInstr):
            i.indices = [new if index is old else index for index in i.indices]


def _widen(call: ir.CallInstr, position: int) -> None:
    """An operand of a call that takes an i64."""
    block = call.parent
    wide = ir.instructions.CastInstr(block, "sext", call.operands[position], I64)
    operands = list(call.operands)
    operands[position] = wide
    call.operands = operands
    block.instructions.insert(block.instructions.index(call), wide)
