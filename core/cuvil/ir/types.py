"""Types and attributes of Cuvil's own: tensors with symbolic dims, buffers, dim lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from xdsl.ir import Data, TypeAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from cuvil.ir.dims import Dim, parse_dim, product
from cuvil.ir.dtypes import DType, dtype

_OPEN = {MLIRTokenKind.L_PAREN, MLIRTokenKind.L_SQUARE}
_CLOSE = {MLIRTokenKind.R_PAREN, MLIRTokenKind.R_SQUARE}


def _parse_dim_tokens(parser: AttrParser) -> tuple[Dim, ...]:
    """Reads `[d0, d1, ...]`: each d is the text between commas at bracket depth one."""
    parser.parse_punctuation("[")
    depth = 1
    parts: list[Dim] = []
    words: list[str] = []
    while True:
        token = parser._consume_token()
        depth += (token.kind in _OPEN) - (token.kind in _CLOSE)
        if token.kind is MLIRTokenKind.EOF:
            parser.raise_error("unterminated list of dims")
        if depth == 0 or (depth == 1 and token.kind is MLIRTokenKind.COMMA):
            if words:
                parts.append(parse_dim(" ".join(words)))
            words = []
            if depth == 0:
                return tuple(parts)
        else:
            words.append(token.text)


class TensorInfo(NamedTuple):
    """What a tensor type holds."""

    dims: tuple[Dim, ...]
    dtype: DType


@lru_cache(maxsize=65536)
def _tensor(info: TensorInfo) -> TensorType:
    return TensorType.new(info)


class TensorType(Data[TensorInfo], TypeAttribute):
    """`!cuvil.tensor<[B, B*S + 1, 768], f32>`: row-major, contiguous, dims may be symbolic."""

    name = "cuvil.tensor"

    @staticmethod
    def of(dims: Iterable[Dim], element: DType | str) -> TensorType:
        """The interned type with these dims and this element type."""
        kind = element if isinstance(element, DType) else dtype(element)
        return _tensor(TensorInfo(tuple(dims), kind))

    @property
    def dims(self) -> tuple[Dim, ...]:
        return self.data.dims

    @property
    def dtype(self) -> DType:
        return self.data.dtype

    @property
    def rank(self) -> int:
        return len(self.data.dims)

    @property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.data.dims)

    @property
    def is_static(self) -> bool:
        return all(isinstance(d, int) for d in self.data.dims)

    def with_dims(self, dims: Iterable[Dim]) -> TensorType:
        return TensorType.of(dims, self.dtype)

    def with_dtype(self, element: DType | str) -> TensorType:
        return TensorType.of(self.dims, element)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorInfo:
        with parser.in_angle_brackets():
            dims = _parse_dim_tokens(parser)
            parser.parse_punctuation(",")
            return TensorInfo(dims, dtype(parser.parse_identifier()))

    def print_parameter(self, printer: Printer) -> None:
        dims = ", ".join(map(str, self.dims))
        printer.print_string(f"<[{dims}], {self.dtype.name}>")


class _OneDtype(Data[str], TypeAttribute):
    """A type of which a dtype is all there is to say."""

    @property
    def dtype(self) -> DType:
        return dtype(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class BufferType(_OneDtype):
    """`!nest.buffer<f32>`: a base address; extents live in the index arithmetic that uses it."""

    name = "nest.buffer"


class ElementType(_OneDtype):
    """`!nest.element<u8>`: one element in a kernel body; signedness is part of the type."""

    name = "nest.element"


class DimsAttr(Data[tuple[Dim, ...]]):
    """`#cuvil.dims<[B, 3]>`: a list of dimension expressions."""

    name = "cuvil.dims"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Dim, ...]:
        with parser.in_angle_brackets():
            return _parse_dim_tokens(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")


def shapes(types: Sequence[TensorType]) -> str:
    """For messages: `[2, 3] f32, [B] i64`."""
    return ", ".join(f"[{', '.join(map(str, t.dims))}] {t.dtype.name}" for t in types)
