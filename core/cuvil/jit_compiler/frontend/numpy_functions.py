"""numpy's functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from cuvil.codegen.python.scalars import ROUNDING, SHARED
from cuvil.ir.py_types import (
    BOOL,
    FLOAT,
    INT,
    Array,
    Element,
    List,
    Scalar,
    Tuple,
    Type,
    numeric_join,
)
from cuvil.jit_compiler.frontend import elements
from cuvil.jit_compiler.frontend.calls import length, register_numpy
from cuvil.jit_compiler.frontend.expressions import (
    as_value,
    call_python,
    expression,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import for_each
from cuvil.jit_compiler.frontend.numpy_methods import (
    converted,
    dtype_of,
    literal_axis,
    options_of,
    reduced,
    reshaped,
    transposed,
)
from cuvil.jit_compiler.frontend.products import product
from cuvil.jit_compiler.frontend.reductions import PLAIN
from cuvil.jit_compiler.frontend.translator import Translator
from cuvil.jit_compiler.frontend.values import Expression, Leaf, Node, Range, Val

Function = Callable[[Translator, ast.Call], Expression]
TABLE: dict[Any, Function] = {}


def numpy_function(*names: str) -> Callable[[Function], Function]:
    """Registers what translates calls of numpy's functions."""

    def register(function: Function) -> Function:
        TABLE.update({getattr(np, name): function for name in names})
        return function

    return register


def _settled(t: Translator, node: Node) -> Expression:
    """An expression without arrays is one number."""
    return node if any(True for _ in elements.arrays_of(node)) else elements.compute(t, node)


def _floats(name: str) -> Function:
    def call(t: Translator, node: ast.Call) -> Expression:
        (argument,) = node.args
        value = elements.as_float(t, expression(t, argument))
        kind = Scalar("?") if name.startswith("is") else value.kind
        return _settled(t, Node(f"scalar.{name}", (value,), kind))

    return call


for _name in ("sqrt", *SHARED, *ROUNDING, "isnan", "isfinite", "isinf"):
    if hasattr(np, _name) and _name != "round":
        TABLE[getattr(np, _name)] = _floats(_name)


def _unary(name: str) -> Function:
    def call(t: Translator, node: ast.Call) -> Expression:
        (argument,) = node.args
        value = expression(t, argument)
        return _settled(t, elements.unary(t, name, _typed(t, value)))

    return call


def _typed(t: Translator, value: Expression) -> Expression:
    """A plain number as numpy takes it."""
    if elements.is_array(t, value):
        return value
    number = as_value(t, value)
    dtype = {INT: "l", FLOAT: "d", BOOL: "?"}.get(t.resolve(number.kind))
    return number if dtype is None else t.convert(number, Scalar(dtype))


for _name, _fn in (("abs", "abs"), ("absolute", "abs"), ("negative", "neg"), ("sign", "sign")):
    TABLE[getattr(np, _name)] = _unary(_fn)


@numpy_function("square")
def _square(t: Translator, node: ast.Call) -> Expression:
    value = _typed(t, expression(t, node.args[0]))
    return _settled(t, elements.combine(t, "mul", value, value))


def _binary(fn: str) -> Function:
    def call(t: Translator, node: ast.Call) -> Expression:
        left, right = (expression(t, a) for a in node.args)
        if not (elements.is_array(t, left) or elements.is_array(t, right)):
            left = _typed(t, left)
        return _settled(t, elements.combine(t, fn, left, right))

    return call


_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv",
    "true_divide": "truediv", "floor_divide": "floordiv", "mod": "mod", "remainder": "mod",
    "power": "pow", "minimum": "minimum", "maximum": "maximum", "equal": "eq", "not_equal": "ne",
    "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
for _name, _fn in _BINARY.items():
    TABLE[getattr(np, _name)] = _binary(_fn)


@numpy_function("logical_and", "logical_or", "logical_not")
def _logical(t: Translator, node: ast.Call) -> Expression:
    name = ast.unparse(node.func).rpartition("_")[2]
    args = [elements.leaf(t, _typed(t, expression(t, a))) for a in node.args]
    bools = tuple(elements.cast(t, a, Scalar("?")) for a in args)
    return _settled(
        t, Node("scalar.invert" if name == "not" else f"scalar.{name}", bools, Scalar("?"))
    )


@numpy_function("where")
def _where(t: Translator, node: ast.Call) -> Expression:
    if len(node.args) != 3:
        raise t.refusal("numpy.where of a condition alone")
    test, a, b = (elements.leaf(t, expression(t, x)) for x in node.args)
    common = numeric_join((elements.kind_of(a), elements.kind_of(b)))
    if not isinstance(common, Scalar):
        common = {INT: Scalar("l"), BOOL: Scalar("?")}.get(common or FLOAT, Scalar("d"))
    sides = (elements.cast(t, x, common) for x in (a, b))
    return _settled(t, Node("scalar.where", (elements.cast(t, test, Scalar("?")), *sides), common))


@numpy_function("clip")
def _clip(t: Translator, node: ast.Call) -> Expression:
    if len(node.args) != 3 or node.keywords:
        raise t.refusal("this call of numpy.clip")
    value, low, high = (expression(t, a) for a in node.args)
    raised = elements.combine(t, "maximum", _typed(t, value), low)
    return _settled(t, elements.combine(t, "minimum", raised, high))


# -- new arrays ------------------------------------------------------------------------------------
def _new(t: Translator, shape: Val, kind: Scalar, zeroed: bool) -> Val:
    extents = elements.shape_items(t, shape)
    if not extents:
        raise t.refusal("an array of rank 0")
    made = Array(kind.dtype, len(extents), fresh=True)
    site = t.site("ValueError", "negative dimensions are not allowed")
    return t.apply("array.new", extents, made, site, [int(zeroed)])


@numpy_function("zeros", "empty", "ones")
def _zeros(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "shape", "dtype")
    kind = dtype_of(t, options["dtype"]) if "dtype" in options else Scalar("d")
    name = ast.unparse(node.func).rpartition(".")[2]
    made = _new(t, value_of(t, options["shape"]), kind, name == "zeros")
    if name == "ones":
        elements.write(t, made, t.literal(1))
    return made


@numpy_function("full")
def _full(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "shape", "fill_value", "dtype")
    value = as_value(t, _typed(t, value_of(t, options["fill_value"])))
    kind = dtype_of(t, options["dtype"]) if "dtype" in options else t.resolve(value.kind)
    if not isinstance(kind, Scalar):
        raise t.refusal(f"numpy.full of {kind}")
    made = _new(t, value_of(t, options["shape"]), kind, False)
    elements.write(t, made, value)
    return made


@numpy_function("zeros_like", "empty_like", "ones_like", "full_like")
def _like(t: Translator, node: ast.Call) -> Expression:
    name = ast.unparse(node.func).rpartition(".")[2]
    names = ("a", "fill_value", "dtype") if name == "full_like" else ("a", "dtype")
    options = options_of(t, node, 0, *names)
    model = value_of(t, options["a"])
    kind = t.resolve(model.kind)
    if not isinstance(kind, Array) or not kind.contiguous:
        raise t.refusal(f"numpy.{name} of {kind} that is not in C order")
    element = dtype_of(t, options["dtype"]) if "dtype" in options else kind.element
    shape = elements.attribute(t, model, kind, "shape")
    made = _new(t, as_value(t, shape), element, name == "zeros_like")
    if name in ("ones_like", "full_like"):
        value = value_of(t, options["fill_value"]) if "fill_value" in options else t.literal(1)
        elements.write(t, made, value)
    return made


@numpy_function("arange")
def _arange(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "start", "stop", "step", "dtype")
    given = [value_of(t, options[n]) for n in ("start", "stop", "step") if n in options]
    if not all(t.resolve(v.kind) == INT for v in given):
        raise t.refusal("numpy.arange of something but ints")
    zero, one = t.literal(0), t.literal(1)
    start, stop, step = (
        (zero, given[0], one) if len(given) == 1 else (given[0], given[1], (*given, one)[2])
    )
    kind = dtype_of(t, options["dtype"]) if "dtype" in options else Scalar("l")
    site = t.site("ZeroDivisionError", "division by zero")
    count = t.apply("int.range_length", [start, stop, step], INT, site)
    made = _new(t, count, kind, False)

    def fill(i: Val) -> None:
        offset = t.apply("int.mul", [i, step], INT, site)
        value = t.apply("int.add", [start, offset], INT, site)
        t.do("array.set", [made, i, t.apply("scalar.cast", [value], kind)], site)

    for_each(t, ("arange", node.lineno, node.col_offset), Range(zero, count, one), fill)
    return made


@numpy_function("array", "asarray", "ascontiguousarray")
def _array(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "object", "dtype")
    found = expression(t, options["object"])
    wanted = dtype_of(t, options["dtype"]) if "dtype" in options else None
    if elements.is_array(t, found):
        return _array_of_array(t, node, found, wanted)
    value = as_value(t, found)
    return _array_of_items(t, node, value, wanted)


def _array_of_array(
    t: Translator, node: ast.Call, found: Expression, wanted: Scalar | None
) -> Expression:
    leaf = elements.leaf(t, found)
    if isinstance(leaf, Leaf) and not ast.unparse(node.func).endswith(".array"):
        kind = t.resolve(leaf.value.kind)
        assert isinstance(kind, Array)
        same = wanted is None or wanted == kind.element
        if same and (kind.contiguous or ast.unparse(node.func).endswith("asarray")):
            return leaf.value
    return Node("scalar.cast", (leaf,), wanted or leaf.kind)


def _array_of_items(t: Translator, node: ast.Call, value: Val, wanted: Scalar | None) -> Val:
    """A list or tuple of numbers; of lists or tuples of numbers."""
    kind = t.resolve(value.kind)
    item: Type | None = kind.item if isinstance(kind, List) else None
    if isinstance(kind, Tuple):
        item = numeric_join(kind.items) if kind.items else None
    inner = item.items if isinstance(item, Tuple) else ()
    element = numeric_join(inner) if inner else item
    chars = {INT: "l", FLOAT: "d", BOOL: "?"}
    if (not isinstance(element, Scalar) and element not in chars) or isinstance(element, Element):
        raise t.refusal(f"an array of {kind}")
    plain = element if isinstance(element, Scalar) else Scalar(chars[element])
    target = wanted or plain
    count = length(t, value)
    shape = t.tuple_of([count, t.literal(len(inner))]) if inner else count
    made = _new(t, shape, target, False)
    site = t.site("IndexError", "index out of bounds")
    place = t.temporary(t.literal(0))
    key = ("array", node.lineno, node.col_offset)

    def fill(found: Val) -> None:
        at = t.read(place)
        for i in range(len(inner)):
            number = t.convert(t.item(found, i), target)
            t.do("array.set", [made, at, t.literal(i), number], site)
        if not inner:
            t.do("array.set", [made, at, t.convert(found, target)], site)
        t.assign(place, t.apply("int.next", [at], INT))

    for_each(t, key, value, fill)
    return made


# -- reductions, products, shapes ------------------------------------------------------------------
def _reduction(name: str) -> Function:
    def call(t: Translator, node: ast.Call) -> Expression:
        value = expression(t, node.args[0])
        if isinstance(value, Val) and isinstance(t.resolve(value.kind), List):
            value = _array_of_items(t, node, value, None)
        return reduced(t, name, value, node, 1)

    return call


for _name in PLAIN:
    TABLE[getattr(np, _name)] = _reduction(_name)


@numpy_function("dot", "matmul")
def _product(t: Translator, node: ast.Call) -> Expression:
    left, right = (value_of(t, a) for a in node.args)
    return product(t, left, right)


@numpy_function("transpose")
def _transpose(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "a", "axes")
    axes = [value_of(t, options["axes"])] if "axes" in options else []
    return transposed(t, value_of(t, options["a"]), axes)


@numpy_function("reshape")
def _reshape(t: Translator, node: ast.Call) -> Expression:
    value, shape = (value_of(t, a) for a in node.args)
    return reshaped(t, value, [shape])


@numpy_function("expand_dims")
def _expand_dims(t: Translator, node: ast.Call) -> Expression:
    options = options_of(t, node, 0, "a", "axis")
    value, axis = value_of(t, options["a"]), literal_axis(t, options["axis"])
    kind = t.resolve(value.kind)
    if not isinstance(kind, Array) or axis is None:
        raise t.refusal("this call of numpy.expand_dims")
    axes = list(range(kind.rank))
    axes.insert(axis % (kind.rank + 1), -1)
    return elements.permute(t, value, kind, tuple(axes))


@numpy_function("concatenate", "stack", "vstack", "hstack")
def _joined(t: Translator, node: ast.Call) -> Expression:
    """Parts written as a tuple or list, side by side along an axis."""
    name = ast.unparse(node.func).rpartition(".")[2]
    options = options_of(t, node, 0, "arrays", "axis")
    given = options["arrays"]
    if not isinstance(given, ast.Tuple | ast.List) or not given.elts or name[1:] == "stack":
        raise t.refusal(f"numpy.{name} of parts that are not written out")
    axis = literal_axis(t, options.get("axis")) or 0
    values = [value_of(t, n) for n in given.elts]
    if name == "stack":
        values = [_with_axis(t, v, axis) for v in values]
    return _concatenated(t, values, axis)


def _with_axis(t: Translator, value: Val, axis: int) -> Val:
    kind = t.resolve(value.kind)
    if not isinstance(kind, Array):
        raise t.refusal(f"numpy.stack of {kind}")
    axes = list(range(kind.rank))
    axes.insert(axis % (kind.rank + 1), -1)
    return elements.permute(t, value, kind, tuple(axes))


def _concatenated(t: Translator, values: list[Val], axis: int) -> Val:
    kinds = [t.resolve(v.kind) for v in values]
    ranks = {k.rank for k in kinds if isinstance(k, Array)}
    common = numeric_join(k.element for k in kinds if isinstance(k, Array))
    if (
        len(ranks) != 1
        or not isinstance(common, Scalar)
        or not all(isinstance(k, Array) for k in kinds)
    ):
        raise t.refusal("a concatenation of these")
    (rank,) = ranks
    axis %= rank
    shape = [t.apply("array.extent", [values[0]], INT, None, [i]) for i in range(rank)]
    site = t.site("OverflowError", "an array that is too large")
    spans = [t.apply("array.extent", [v], INT, None, [axis]) for v in values]
    total = spans[0]
    for span in spans[1:]:
        total = t.apply("int.add", [total, span], INT, site)
    shape[axis] = total
    made = _new(t, t.tuple_of(shape), common, False)
    kind, start = t.resolve(made.kind), t.literal(0)
    assert isinstance(kind, Array)
    part = Array(kind.dtype, rank, False, True, True)
    for value, span in zip(values, spans, strict=True):
        _same_extents(t, value, shape, axis)
        view = t.apply("array.slice", [made, start, t.literal(1), span], part, None, [axis])
        elements.write(t, view, value)
        start = t.apply("int.add", [start, span], INT, site)
    return made


def _same_extents(t: Translator, value: Val, shape: list[Val], axis: int) -> None:
    site = t.site("ValueError", "all the input array dimensions must match exactly")
    for i, extent in enumerate(shape):
        if i != axis:
            mine = t.apply("array.extent", [value], INT, None, [i])
            t.do("fail_if", [t.apply("int.ne", [mine, extent], BOOL)], site)


# -- numpy's own -----------------------------------------------------------------------------------
def _by_numpy(function: Any, result: Callable[[Array], Array]) -> Function:
    """A function that numpy runs, on an array and ints by position."""

    def call(t: Translator, node: ast.Call) -> Expression:
        if node.keywords:
            raise t.refusal(f"keywords in a call of {ast.unparse(node.func)}")
        args = [value_of(t, a) for a in node.args]
        kind = t.resolve(args[0].kind)
        if not isinstance(kind, Array) or not all(t.resolve(a.kind) == INT for a in args[1:]):
            raise t.refusal(f"{ast.unparse(node.func)} of {kind}")
        return call_python(t, function, None, args, result(kind))

    return call


TABLE[np.argsort] = _by_numpy(np.argsort, lambda k: Array("l", k.rank, False, True, True))
TABLE[np.sort] = _by_numpy(np.sort, lambda k: Array(k.dtype, k.rank, False, True, True))


def _scalar_type(kind: type) -> Function:
    def call(t: Translator, node: ast.Call) -> Expression:
        (argument,) = node.args
        found = converted(t, expression(t, argument), Scalar(np.dtype(kind).char))
        if elements.is_array(t, found):
            return found
        return as_value(t, found)

    return call


for _kind in (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
              np.uint32, np.uint64, np.bool_):  # fmt: skip
    TABLE[_kind] = _scalar_type(_kind)

register_numpy(TABLE)
