"""A primitive is one record; registering it makes its xDSL operation.

A record holds what every layer needs to know of a primitive: its attributes, how its result types
follow from its operands, what it means in numpy, and how a kernel computes it. Nothing else in
the compiler lists primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.traits import OpTrait, Pure
from xdsl.utils.exceptions import VerifyException

from cuvil.ir.attrs import Attr, Attrs, read_attrs
from cuvil.ir.types import TensorType, shapes

Infer = Callable[[Sequence[TensorType], Attrs], Sequence[TensorType]]
Evaluate = Callable[[Sequence[Any], Attrs], Sequence[Any]]

PRIMITIVES: dict[str, Primitive] = {}
_CLASSES: list[type[Operation]] = []


@dataclass(frozen=True)
class Primitive:
    """One primitive of the `cuvil` dialect.

    name: without the dialect's prefix.
    infer: result types from operand types and attributes; raises ValueError with the reason.
    evaluate: numpy meaning: arrays and attributes in (dims already numbers), list of arrays out.
    attrs: the attributes' kinds and defaults.
    element: nest lowering by pull, `element(cx, index) -> value`: the element of the (only)
        result at `index`, asking `cx.operand(i, index)` for elements of operands. Such primitives
        fuse with their neighbours.
    kernel: nest lowering of a whole op, `kernel(cx) -> None`: writes loops that hand every element
        of the results to `cx.store`. Contexts: `ops.lowering`. At least one of element, kernel or
        a template of the planner serves it.
    tags: "pointwise" (element i depends on elements i), "view" (moves elements only), "anchor"
        (a kernel of its own to which neighbours fuse), "control" (has regions), "opaque" (nothing
        fuses with it, its operands and results are dense buffers of their own), ...
    tolerance: relative error that compiled code may show against `evaluate` in f32; 0 is exact.
    computes: it calculates with its operands, so that none may be of a narrow type or a string:
        those are moved, narrow ones converted. `infer` then refuses them.
    """

    name: str
    infer: Infer
    evaluate: Evaluate | None
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    element: Callable[..., Any] | None = None
    kernel: Callable[..., None] | None = None
    tags: frozenset[str] = frozenset()
    tolerance: float = 0.0
    regions: bool = False
    pure: bool = True
    computes: bool = False

    def __post_init__(self) -> None:
        if self.computes:
            object.__setattr__(self, "infer", partial(_infer_wide, self.name, self.infer))

    def register(self) -> Primitive:
        """Adds the record and defines its operation. Raises ValueError for a name used twice."""
        if self.name in PRIMITIVES:
            raise ValueError(f"primitive '{self.name}' is registered twice")
        PRIMITIVES[self.name] = self
        _CLASSES.append(_define(self))
        return self

    def unregister(self) -> None:
        """Takes the record away again: for one of a user's own that is declared anew."""
        del PRIMITIVES[self.name]
        _CLASSES.remove(_BY_NAME.pop(self.name))


def _infer_wide(
    name: str, infer: Infer, t: Sequence[TensorType], attrs: Attrs
) -> Sequence[TensorType]:
    for kind in t:
        if kind.dtype.is_string:
            raise ValueError(f"{name} does not compute with strings")
        if kind.dtype.is_narrow:
            raise ValueError(f"{name} does not compute in {kind.dtype}: cast it first")
    return infer(t, attrs)


def of(op: Operation) -> Primitive:
    """The record behind an operation of the `cuvil` dialect."""
    return op.record  # type: ignore[attr-defined]


def attrs_of(op: Operation) -> Attrs:
    """An operation's attributes as plain Python values."""
    return read_attrs(of(op).attrs, op.properties)


def tensor_type(value: SSAValue) -> TensorType:
    """The tensor type of an SSA value of the `cuvil` dialect. ValueError for what is no tensor."""
    kind = getattr(value, "type", None)
    if not isinstance(kind, TensorType):
        what = "a sequence" if isinstance(value, list | tuple) else str(kind or "nothing")
        raise ValueError(f"a tensor is needed here, not {what}")
    return kind


def operation(name: str) -> type[Operation]:
    """The xDSL class of primitive `name`."""
    return _BY_NAME[name]


def dialect() -> Dialect:
    """The `cuvil` dialect with every primitive registered so far (import `cuvil.ops` first)."""
    return Dialect("cuvil", list(_CLASSES), [TensorType])


def names() -> Iterator[str]:
    """Names of all primitives, sorted."""
    return iter(sorted(PRIMITIVES))


_BY_NAME: dict[str, type[Operation]] = {}


def _define(record: Primitive) -> type[Operation]:
    namespace: dict[str, Any] = {
        "name": f"cuvil.{record.name}",
        "operands_": var_operand_def(AnyAttr()),
        "results_": var_result_def(AnyAttr()),
        "verify_": _verify,
        "__module__": __name__,
        "__annotations__": {},
    }
    if record.regions:
        namespace["regions_"] = var_region_def()
    traits: list[OpTrait] = [Pure()] if record.pure else []
    namespace["traits"] = traits_def(*traits)
    for name, attr in record.attrs.items():
        define = prop_def if attr.required else opt_prop_def
        namespace[f"attr_{name}"] = define(AnyAttr(), prop_name=name)
    title = "".join(part.title() for part in record.name.split("_"))
    cls: type[Any] = irdl_op_definition(type(f"{title}Op", (IRDLOperation,), namespace))
    cls.record = record
    _BY_NAME[record.name] = cls
    return cls


def _verify(op: Operation) -> None:
    """Types must be what the record infers; regions and other types are checked by their op."""
    record = of(op)
    if record.regions or not all(isinstance(v.type, TensorType) for v in op.operands):
        return
    try:
        expected = record.infer([tensor_type(v) for v in op.operands], attrs_of(op))
    except (ValueError, TypeError) as error:
        raise VerifyException(f"cuvil.{record.name}: {error}") from error
    if list(expected) != [r.type for r in op.results]:
        got = shapes([tensor_type(r) for r in op.results])
        raise VerifyException(
            f"cuvil.{record.name}: result type is {got}, but operands give {shapes(expected)}"
        )
