"""An op as a program for npu-v2: words of 32 bits, as `npu.h` describes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cuvil.ir.attrs import Attrs
from cuvil.ir.dims import Dim, product
from cuvil.ir.types import TensorType
from cuvil.ops.contract import extents, parse
from cuvil.ops.conv import CONV

CHIP = "npu-v2"
MAGIC, VERSION = 0x2055504E, 2  # "NPU "
END, LOOP, GEMM, CONV2D = range(4)
LARGEST = 2**31 - 1
MOST_DIMS = 32


class _DoesNotFit(Exception):
    """The chip cannot hold a number of the program."""


@dataclass
class Program:
    """Instructions, and the extents that a launch passes to them."""

    words: list[int] = field(default_factory=lambda: [MAGIC, VERSION])
    dims: tuple[Dim, ...] = ()

    @property
    def blob(self) -> bytes:
        return np.array(self.words, "<i4").tobytes()

    def add(self, opcode: int, *fields: Dim) -> None:
        """Appends an instruction. A field is a number, or where only the run knows it, -1 - i for
        the i-th of the launch's dims."""
        self.words += [opcode, *map(self._word, fields)]

    def _word(self, value: Dim) -> int:
        if isinstance(value, int):
            if not 0 <= value <= LARGEST:
                raise _DoesNotFit
            return value
        if value not in self.dims:
            self.dims += (value,)
        if len(self.dims) > MOST_DIMS:
            raise _DoesNotFit
        return -1 - self.dims.index(value)


def assemble(op: str, types: Sequence[TensorType], attrs: Attrs) -> Program | None:
    """The program for an op, None where the chip cannot compute it."""
    make = {"contract": _contract, "conv": _conv}.get(op)
    if make is None or any(t.dtype.name != "f32" for t in types) or attrs.accumulate:
        return None
    program = Program()
    try:
        return program if make(program, types, attrs) else None
    except _DoesNotFit:
        return None


def multiplications(op: str, types: Sequence[TensorType], attrs: Attrs) -> Dim:
    """How many of them the op takes."""
    if op == "contract":
        return product(extents(parse(attrs.spec), types).values())
    (out,) = CONV.infer(types, attrs)
    return out.size * product(types[1].dims[1:])


def _strides(letters: str, extent: dict[str, Dim]) -> dict[str, Dim]:
    """Elements from one index of a letter to the next, in a dense tensor with these letters."""
    return {c: product(extent[later] for later in letters[i + 1 :]) for i, c in enumerate(letters)}


def _contract(program: Program, types: Sequence[TensorType], attrs: Attrs) -> bool:
    """Loops over all letters but one of rows, columns and the sum, which one GEMM computes."""
    spec = parse(attrs.spec)
    if len(spec.summed) > 1:
        return False
    extent = extents(spec, types)
    tensors = [_strides(letters, extent) for letters in spec]
    row, column = spec.rows[-1:], spec.columns[-1:]
    loops = [c for c in spec.out if c not in (row, column)]
    for letter in loops:
        program.add(LOOP, extent[letter], *(t.get(letter, 0) for t in tensors))
    a, b, out = tensors
    sizes = (extent.get(letter, 1) for letter in (row, column, spec.summed))
    program.add(
        GEMM, *sizes,
        a.get(row, 0), a.get(spec.summed, 0),
        b.get(spec.summed, 0), b.get(column, 0),
        out.get(row, 0), out.get(column, 0),
    )  # fmt: skip
    for _ in range(len(loops) + 1):
        program.add(END)
    return True


def _conv(program: Program, types: Sequence[TensorType], attrs: Attrs) -> bool:
    """One instruction; the layout is in the strides of the image and of the result."""
    if types[0].rank != 4 or len(types) == 3:  # a bias is an op by itself when rules have run
        return False
    (out,) = CONV.infer(types, attrs)
    letters = "nchw" if attrs.layout == "channels_first" else "nhwc"
    fields: list[Dim] = [attrs.groups]
    for kind in (types[0], out):
        extent = dict(zip(letters, kind.dims, strict=True))
        strides = _strides(letters, extent)
        fields += [extent[c] for c in "nchw"] + [strides[c] for c in "nchw"]
    fields += [*types[1].dims[2:], *attrs.strides, *attrs.dilations, *attrs.pads[:2]]
    program.add(CONV2D, *fields)
    program.add(END)
    return True
