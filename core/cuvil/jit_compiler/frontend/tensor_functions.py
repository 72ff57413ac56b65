"""torch's functions that make tensors."""

from __future__ import annotations

import ast

from cuvil.ir.py_types import Array, Scalar, Tensor, Tuple
from cuvil.jit_compiler.frontend import elements
from cuvil.jit_compiler.frontend.calls import FINDERS, Builtin
from cuvil.jit_compiler.frontend.expressions import expression, value_of
from cuvil.jit_compiler.frontend.tensors import extent
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Static, Val
from cuvil.jit_compiler.tensors import torch_module

DTYPES = {
    "bool": "?", "uint8": "B", "int8": "b", "int16": "h", "int32": "i", "int64": "l",
    "float32": "f", "float64": "d",
}  # fmt: skip


def _find(callee: object) -> Builtin | None:
    """What translates a call of one of torch's functions."""
    torch = torch_module()
    names = _FUNCTIONS if torch is not None else {}
    return next((_FUNCTIONS[n] for n in names if callee is getattr(torch, n, None)), None)


def _dtype(t: Translator, node: ast.Call) -> Scalar | None:
    """The element type that `dtype=` names, the only keyword there may be."""
    options = {k.arg: k.value for k in node.keywords}
    given = options.pop("dtype", None)
    if options:
        raise t.refusal(f"this call of {ast.unparse(node.func)}")
    return None if given is None else _element(t, expression(t, given))


def _element(t: Translator, found: object) -> Scalar:
    name = str(found.value if isinstance(found, Static) else found).removeprefix("torch.")
    if name not in DTYPES:
        raise t.refusal(f"a new tensor of {name}")
    return Scalar(DTYPES[name])


def _new(t: Translator, node: ast.Call) -> Expression:
    """zeros, ones or empty of extents; without a dtype, torch's default as it is now."""
    element = _dtype(t, node) or _element(t, torch_module().get_default_dtype())
    extents = [value_of(t, a) for a in node.args]
    if len(extents) == 1 and isinstance(t.resolve(extents[0].kind), Tuple):
        extents = elements.shape_items(t, extents[0])
    return _made(t, node, [elements.as_int(t, e) for e in extents], element)


def _like(t: Translator, node: ast.Call) -> Expression:
    element = _dtype(t, node)
    model = value_of(t, node.args[0])
    kind = t.resolve(model.kind)
    if len(node.args) != 1 or not isinstance(kind, Tensor) or not kind.array.contiguous:
        raise t.refusal(f"{ast.unparse(node.func)} of {kind} that is not in C order")
    extents = [extent(t, model, i) for i in range(kind.array.rank)]
    return _made(t, node, extents, element or kind.array.element)


def _made(t: Translator, node: ast.Call, extents: list[Val], element: Scalar) -> Val:
    if not 0 < len(extents) <= 8:
        raise t.refusal(f"a tensor of rank {len(extents)}")
    kind = Array(element.dtype, len(extents), fresh=True)
    site = t.site("RuntimeError", "a negative dimension, or a tensor that is too large")
    name = ast.unparse(node.func)
    made = t.apply("array.new", extents, kind, site, [int("zeros" in name)])
    if "ones" in name:
        elements.write(t, made, t.literal(1))
    return Val(Tensor(kind), made.ssa)


def _from_numpy(t: Translator, node: ast.Call) -> Expression:
    if len(node.args) != 1 or node.keywords:
        raise t.refusal("this call of torch.from_numpy")
    value = value_of(t, node.args[0])
    kind = t.resolve(value.kind)
    if not isinstance(kind, Array) or kind.dtype not in DTYPES.values() or not kind.writable:
        raise t.refusal(f"torch.from_numpy of {kind}")
    return Val(Tensor(kind), value.ssa)


_FUNCTIONS: dict[str, Builtin] = {
    "zeros": _new, "ones": _new, "empty": _new, "zeros_like": _like, "ones_like": _like,
    "empty_like": _like, "from_numpy": _from_numpy,
}  # fmt: skip
FINDERS.append(_find)
