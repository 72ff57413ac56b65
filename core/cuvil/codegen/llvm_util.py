"""Small helpers over llvmlite's IR builder: types, loops, vectors, masks, missing features.

Pointers are opaque (`PTR`) and every load and address names its element type. Whatever llvmlite's
`ir` layer lacks is worked around here and nowhere else.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from cuvil.codegen.facts import TargetFacts, dtype_bits

F32, F64, HALF = ir.FloatType(), ir.DoubleType(), ir.HalfType()
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
PTR = ir.PointerType()
VOID = ir.VoidType()
KERNEL_TYPE = ir.FunctionType(I32, [PTR, PTR, I64, I64, PTR])

_FLOATS = {"f16": HALF, "f32": F32, "f64": F64}


class BFloat(ir.Type):
    """LLVM's `bfloat`, which llvmlite's `ir` layer lacks. Only for intrinsics that take it."""

    intrinsic_name = "bf16"

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloat)

    def __hash__(self) -> int:
        return hash("bfloat")


def element_type(dtype: str) -> ir.Type:
    """The IR type of one element in memory; bf16 and bool are integers of their width."""
    return _FLOATS.get(dtype) or ir.IntType(dtype_bits(dtype))


def vector(element: ir.Type, lanes: int) -> ir.Type:
    """A vector type, or the scalar itself for one lane."""
    return element if lanes == 1 else ir.VectorType(element, lanes)


def i64(value: int) -> ir.Constant:
    """A 64-bit integer constant."""
    return ir.Constant(I64, value)


def zero(kind: ir.Type) -> ir.Constant:
    """The zero of a scalar or vector type."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, 0)] * kind.count)
    return ir.Constant(kind, 0)


def splat(b: ir.IRBuilder, scalar: ir.Value, lanes: int) -> ir.Value:
    """A vector with `scalar` in every lane (the scalar itself for one lane)."""
    if lanes == 1:
        return scalar
    undef = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    first = b.insert_element(undef, scalar, ir.Constant(I32, 0))
    return b.shuffle_vector(first, undef, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def address(b: ir.IRBuilder, base: ir.Value, index: ir.Value, element: ir.Type) -> ir.Value:
    """&base[index], in units of `element`."""
    return b.gep(base, [index], source_etype=element)


def load(
    b: ir.IRBuilder, base: ir.Value, index: ir.Value, kind: ir.Type, align: int = 0
) -> ir.Value:
    """A scalar or vector of `kind` from base[index], aligned to its element only, or to `align`
    bytes."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    return b.load(address(b, base, index, element), typ=kind, align=align or _bytes(element))


def store(b: ir.IRBuilder, value: ir.Value, base: ir.Value, index: ir.Value) -> None:
    """base[index] = value (scalar or vector), aligned to its element only."""
    kind = value.type
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    b.store(value, address(b, base, index, element), align=_bytes(element))


def load_invariant(b: ir.IRBuilder, base: ir.Value, index: int, kind: ir.Type) -> ir.Value:
    """base[index], from memory that nothing writes while the function runs."""
    return set_invariant(b.load(address(b, base, i64(index), kind), typ=kind))


def set_invariant(loaded: ir.Instruction) -> ir.Instruction:
    """Marks a load: nothing writes that memory while the function runs. Returns it."""
    loaded.set_metadata("invariant.load", loaded.module.add_metadata([]))
    return loaded


def stack_array(b: ir.IRBuilder, kind: ir.Type, count: int) -> ir.Value:
    """Uninitialised memory on the stack; to be emitted in a function's entry block."""
    place = b.alloca(ir.ArrayType(kind, count))
    place.type = PTR  # llvmlite still types what alloca returns
    return place


def lane_mask(b: ir.IRBuilder, lanes: int, count: ir.Value) -> ir.Value:
    """<lanes x i1>: lane < count, for an i64 count (negative counts select nothing)."""
    limit = b.select(b.icmp_signed("<", count, i64(lanes)), count, i64(lanes))
    numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
    counts = splat(b, b.trunc(limit, I32), lanes)
    if lanes == 1:
        counts = b.insert_element(
            ir.Constant(numbers.type, ir.Undefined), counts, ir.Constant(I32, 0)
        )
    return b.icmp_signed("<", numbers, counts)


def masked_load(
    b: ir.IRBuilder, base: ir.Value, index: ir.Value, kind: ir.Type, mask: ir.Value
) -> ir.Value:
    """Like `load`; lanes off the mask are zero and not touched in memory."""
    if not isinstance(kind, ir.VectorType):
        one = masked_load(b, base, index, ir.VectorType(kind, 1), mask)
        return b.extract_element(one, ir.Constant(I32, 0))
    name = f"llvm.masked.load.{mangled(kind)}.p0"
    function = declare(b.module, name, kind, [PTR, mask.type, kind])
    place = address(b, base, index, kind.element)
    return _with_pointer_at(0, b.call(function, [place, mask, zero(kind)]), kind)


def masked_store(
    b: ir.IRBuilder, value: ir.Value, base: ir.Value, index: ir.Value, mask: ir.Value
) -> None:
    """Like `store`; lanes off the mask are not touched in memory."""
    if not isinstance(value.type, ir.VectorType):
        empty = ir.Constant(ir.VectorType(value.type, 1), ir.Undefined)
        value = b.insert_element(empty, value, ir.Constant(I32, 0))
    kind = value.type
    name = f"llvm.masked.store.{mangled(kind)}.p0"
    function = declare(b.module, name, VOID, [kind, PTR, mask.type])
    place = address(b, base, index, kind.element)
    _with_pointer_at(1, b.call(function, [value, place, mask]), kind)


def _with_pointer_at(argument: int, call: ir.Instruction, kind: ir.Type) -> ir.Instruction:
    """Tells that a call's pointer is aligned to its elements: else some targets go by bytes."""
    call.arg_attributes[argument] = attributes = ir.values.ArgumentAttributes()
    attributes.align = _bytes(kind.element)
    return call


def mangled(kind: ir.Type) -> str:
    """A type as overloaded intrinsics spell it: f32, v16f32, v8i64."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{kind.element.intrinsic_name}"
    return kind.intrinsic_name


def declare(
    module: ir.Module, name: str, result: ir.Type, parameters: Sequence[ir.Type]
) -> ir.Function:
    """The function `name` of the module, declared at its first use."""
    found = module.globals.get(name)
    return found or ir.Function(module, ir.FunctionType(result, parameters), name)


def fma(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value, fused: bool = True) -> ir.Value:
    """x*y + z; two instructions where the target has no fused one."""
    if not fused:
        return b.fadd(b.fmul(x, y), z)
    kind = x.type
    name = f"llvm.fma.{mangled(kind)}"
    return b.call(declare(b.module, name, kind, [kind] * 3), [x, y, z])


def prefetch(b: ir.IRBuilder, place: ir.Value, locality: int = 3) -> None:
    """Asks for the cache line at `place` (for reading); 3 is every level."""
    function = declare(b.module, "llvm.prefetch.p0", VOID, [PTR, I32, I32, I32])
    b.call(function, [place, *(ir.Constant(I32, v) for v in (0, locality, 1))])


def bf16_to_f32(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """float from the 16-bit pattern of a bfloat16, scalar or vector; exact."""
    wide, number = shaped(bits, I32), shaped(bits, F32)
    return b.bitcast(b.shl(b.zext(bits, wide), filled(wide, 16)), number)


def f32_to_bf16(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """The bfloat16 pattern nearest to a float (ties to even; NaN stays NaN)."""
    wide, narrow = shaped(value, I32), shaped(value, I16)
    bits = b.bitcast(value, wide)
    odd = b.and_(b.lshr(bits, filled(wide, 16)), filled(wide, 1))
    rounded = b.add(bits, b.add(odd, filled(wide, 0x7FFF)))
    quiet = b.or_(bits, filled(wide, 0x00400000))
    kept = b.select(b.fcmp_unordered("uno", value, value), quiet, rounded)
    return b.trunc(b.lshr(kept, filled(wide, 16)), narrow)


def callee(b: ir.IRBuilder, pointer: ir.Value, kind: ir.FunctionType) -> ir.Value:
    """A function pointer that `b.call` accepts: llvmlite wants the callee's type on the pointer."""
    cast = ir.instructions.CastInstr(b.block, "bitcast", pointer, kind.as_pointer(), "")
    b._insert(cast)
    return cast


def set_target(function: ir.Function, facts: TargetFacts) -> None:
    """Marks a function that never unwinds and, where asked, what else LLVM goes by. Without an
    operating system code lies in flash: it is to be small."""
    function.attributes.add("nounwind")
    if facts.relocation == "static":
        function.attributes.add("optsize")
    strings = {"prefer-vector-width": facts.prefer_vector_width, "tune-cpu": facts.tune}
    for name, value in strings.items():
        if value:  # FunctionAttributes.add refuses string attributes
            set.add(function.attributes, f'"{name}"="{value}"')


def internal_function(
    module: ir.Module, name: str, parameters: Sequence[ir.Type], facts: TargetFacts
) -> ir.Function:
    """A void function private to the module, never inlined (one body per shape is the point)."""
    function = ir.Function(module, ir.FunctionType(VOID, parameters), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    set_target(function, facts)
    return function


@contextmanager
def for_range(
    b: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: ir.Value | None = None
) -> Iterator[ir.Value]:
    """for i in range(start, stop, step): the body is what the `with` block emits."""
    before, head = b.block, b.append_basic_block("for")
    body, after = b.append_basic_block("body"), b.append_basic_block("end")
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(I64)
    i.add_incoming(start, before)
    b.cbranch(b.icmp_signed("<", i, stop), body, after)
    b.position_at_end(body)
    yield i
    i.add_incoming(b.add(i, step or i64(1), flags=("nsw",)), b.block)
    b.branch(head)
    b.position_at_end(after)


def repeat(
    b: ir.IRBuilder,
    count: ir.Value,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A loop of `count` >= 1 trips over carried values; returns them after the last trip.

    `body(i, values)` emits one trip and returns the next values. The test is at the bottom, so
    that the whole trip is one block when the body is.
    """
    before, loop = b.block, b.append_basic_block("loop")
    b.branch(loop)
    b.position_at_end(loop)
    i = b.phi(I64)
    i.add_incoming(i64(0), before)
    phis = [b.phi(value.type) for value in carried]
    for phi, value in zip(phis, carried, strict=True):
        phi.add_incoming(value, before)
    values = list(body(i, list(phis)))
    following = b.add(i, i64(1), flags=("nsw",))
    i.add_incoming(following, b.block)
    for phi, value in zip(phis, values, strict=True):
        phi.add_incoming(value, b.block)
    done = b.append_basic_block("done")
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    return values


def repeat_guarded(
    b: ir.IRBuilder,
    count: ir.Value,
    carried: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """`repeat` for a count that may be zero or less: then the carried values come back."""
    before = b.block
    enter, after = b.append_basic_block("enter"), b.append_basic_block("after")
    b.cbranch(b.icmp_signed(">", count, i64(0)), enter, after)
    b.position_at_end(enter)
    values = repeat(b, count, carried, body)
    b.branch(after)
    last = b.block
    b.position_at_end(after)
    merged = []
    for old, new in zip(carried, values, strict=True):
        phi = b.phi(old.type)
        phi.add_incoming(old, before)
        phi.add_incoming(new, last)
        merged.append(phi)
    return merged


def _bytes(element: ir.Type) -> int:
    if isinstance(element, ir.IntType):
        return max(1, element.width // 8)
    return {"half": 2, "float": 4, "double": 8}[str(element)]


def shaped(value: ir.Value, element: ir.Type) -> ir.Type:
    """A type of `element` with as many lanes as the value has."""
    kind = value.type
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def filled(kind: ir.Type, value: int) -> ir.Constant:
    """An integer constant, the same in every lane of a vector type."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)
    return ir.Constant(kind, value)
