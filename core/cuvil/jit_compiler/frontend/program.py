"""What the functions of one module share while they are translated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cuvil.ir.py_types import Type
from cuvil.jit_compiler.frontend.source import Unsupported
from cuvil.jit_compiler.frontend.values import Failure

if TYPE_CHECKING:
    from cuvil.jit_compiler.frontend.translator import Translator


@dataclass
class Program:
    """What the functions of one module share.

    callee: (function, argument types, caller) -> (name, result type, values from outside that it
    takes too), translated where that was not done yet. outside_type: of a value from outside.
    guards: places outside and what stood there. more: values from outside that are passed along, as
    further arguments of the entry. pure: it can be run again. written: types of containers that are
    changed and may be a caller's. writes_arrays: or tensors, any at all; changed_dtypes: those of
    tensors of a caller's. holder: what to raise for an element of a tensor that has a name, where
    tensors are written, too.
    """

    callee: Callable[[Any, tuple[Type, ...], Translator], tuple[str, Type, dict[str, Type]]]
    outside_type: Callable[[object, Translator], Type]
    failures: list[Failure] = field(default_factory=list)
    calls: list[tuple[Any, str | None, tuple[Type, ...], Type]] = field(default_factory=list)
    guards: dict[tuple[int, str | None], tuple[object, str | None, object]] = field(
        default_factory=dict
    )
    more: dict[str, object] = field(default_factory=dict)
    pure: bool = True
    written: set[Type] = field(default_factory=set)
    writes_arrays: bool = False
    changed_dtypes: set[str] = field(default_factory=set)
    holder: Unsupported | None = None
