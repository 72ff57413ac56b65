"""Types that a model file declares: dims of inputs as symbols."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx.builder import check_size
from cuvil.ir.dims import Dim, SymDim, parse_dim, substitute, symbol, symbols
from cuvil.ir.dtypes import from_onnx
from cuvil.ir.types import TensorType

__all__ = ["MAX_PORT_RANK", "Symbols", "element_types", "input_types"]

MAX_PORT_RANK = 16  # of what a caller passes and gets: CUVIL_MAX_RANK of cuvil/abi.h
_NONE: Mapping[str, TensorType] = MappingProxyType({})
_UNNAMED = ("", "?", "None", "-1")  # what exporters write for "no name"
_PLAIN = re.compile(r"[A-Za-z_][\w.]*")


class Symbols:
    """Names of dims that are taken, so that fresh ones differ."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, hint: str) -> SymDim:
        """A new symbol called `hint`, with a number behind it where that is taken."""
        base = re.sub(r"\W+", "_", hint).strip("_") or "n"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return symbol(name)


def _names(value: ir.Value) -> list[str | int | None]:
    """Declared extents: a number, a name, or None where the file says nothing."""
    found: list[str | int | None] = []
    for dim in value.shape or ():
        name = dim.value if isinstance(dim, ir.SymbolicDim) else int(dim)
        unnamed = name in _UNNAMED if isinstance(name, str) else name is not None and name < 0
        found.append(None if unnamed else name)
    return found


def input_types(
    inputs: Sequence[ir.Value],
    overrides: Mapping[str, int],
    file: str,
    more: Mapping[str, TensorType] = _NONE,
) -> tuple[dict[str, TensorType], Symbols]:
    """Types of the graph's inputs; `more` are those of elements of sequences.

    A `dim_param` is a symbol of that name (or, where it is an expression of names that stand
    alone elsewhere, that expression); a dim without a name is a symbol called after input and
    axis. overrides: symbol -> extent, which makes it static. ModelError for an override that no
    input has, UnsupportedError for an input that is not a tensor of known rank.
    """
    plain = {d for v in inputs for d in _names(v) if isinstance(d, str) and _PLAIN.fullmatch(d)}
    inner = {s for t in more.values() for d in t.dims for s in symbols(d)}
    taken = Symbols(sorted(plain | inner))
    types = {str(v.name): _input_type(v, plain, taken, file) for v in inputs} | dict(more)
    have = {s for t in types.values() for d in t.dims for s in symbols(d)}
    unknown = sorted(set(overrides) - have)
    if unknown:
        raise ModelError(
            f"{file}: no input has a dimension called {', '.join(unknown)}; "
            f"there are {', '.join(sorted(have)) or 'no symbolic dimensions'}"
        )
    fixed = {k: t.with_dims(substitute(d, overrides) for d in t.dims) for k, t in types.items()}
    return fixed, taken


def element_types(
    value: ir.Value, count: int, inputs: Sequence[ir.Value], file: str
) -> list[TensorType]:
    """Types of the first `count` tensors of an input that is a sequence or an optional.

    Dims without a name are symbols of each element's own. Errors as `input_types`.
    """
    plain = {d for v in inputs for d in _names(v) if isinstance(d, str) and _PLAIN.fullmatch(d)}
    taken = Symbols(sorted(plain))
    where, hints = f"{file}: input {value.name!r}", [f"{value.name}_{k}" for k in range(count)]
    return [_tensor_type(value, hint, plain, taken, where) for hint in hints]


def _input_type(value: ir.Value, plain: set[str], taken: Symbols, file: str) -> TensorType:
    where = f"{file}: input {value.name!r}"
    if not isinstance(value.type, ir.TensorType):
        raise UnsupportedError(f"{where} {_no_tensor(value)}")
    return _tensor_type(value, str(value.name), plain, taken, where)


def _no_tensor(value: ir.Value) -> str:
    """What an input is that is no tensor, and the way out."""
    if isinstance(value.type, ir.SequenceType):
        return f"is a sequence: say how many tensors it holds (--elements {value.name}=3)"
    if isinstance(value.type, ir.OptionalType):
        return f"is an optional: say whether it is there (--elements {value.name}=1, or =0)"
    return "has no type" if value.type is None else f"is {value.type}, not a tensor"


def _tensor_type(
    value: ir.Value, hint: str, plain: set[str], taken: Symbols, where: str
) -> TensorType:
    """The type of an input, or of an element of it. hint: for the names of its symbols."""
    if value.shape is None:
        raise UnsupportedError(f"{where} has no shape; give one with a fixed rank")
    try:
        element = from_onnx(int(value.dtype or 0))
    except KeyError:
        raise UnsupportedError(f"{where}: element type {value.dtype} is not supported") from None
    if len(value.shape) > MAX_PORT_RANK:
        raise UnsupportedError(
            f"{where} is of rank {len(value.shape)}, the limit is {MAX_PORT_RANK}"
        )
    dims = [
        taken.fresh(f"{hint}_{axis}") if dim is None else _dim(dim, plain)
        for axis, dim in enumerate(_names(value))
    ]
    kind = TensorType.of(dims, element)
    try:
        check_size(kind)
    except ValueError as error:
        raise ModelError(f"{where}: {error}") from error
    return kind


def _dim(dim: str | int, plain: set[str]) -> Dim:
    if isinstance(dim, int) or dim in plain:
        return symbol(dim) if isinstance(dim, str) else dim
    try:
        expression = parse_dim(dim)
    except (ValueError, ArithmeticError):
        return symbol(dim)
    return expression if set(symbols(expression)) <= plain else symbol(dim)
