"""Symbolic dimensions: canonical form, text, proofs, and agreement with integer arithmetic."""

import operator
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cuvil.ir.dims import (
    Dim,
    SymDim,
    bounds,
    broadcast_dim,
    ceil_div,
    dim_max,
    dim_min,
    divisible_by,
    evaluate,
    floor_scaled,
    fold,
    known_equal,
    known_ge,
    parse_dim,
    product,
    substitute,
    symbol,
    symbols,
)

B, S, x, y = symbol("B"), symbol("S"), symbol("x"), symbol("y")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (B * S + S * B, 2 * B * S),
        ((x * y) // y, x),
        ((4 * x + 8) // 4, x + 2),
        ((4 * x) % 4, 0),
        (x * 1, x),
        (x - x, 0),
        (dim_min(x, x), x),
        ((x * 6) // (x * 2), 3),
        ((x // 2) // 3, x // 6),
        ((4 * x + 3) // 4, x),
        ((2 * x) // 4, x // 2),
        (((x + y) * (B + 1)) // (B + 1), x + y),
        ((x + 2 - 3) // 2 + 1, (x + 1) // 2),
        ((x % 8) % 4, x % 4),
        ((x % 4) // 4, 0),
        (x // -2, (-x) // 2),
        (dim_max(x, 0), x),
        (dim_min(x, x + 1, 7, 9), dim_min(7, x)),
        (ceil_div(x, 4), (x + 3) // 4),
        (ceil_div(7, 2), 4),
        (product([B, 3, S]), 3 * B * S),
        (product([]), 1),
    ],
)
def test_canonical_form(left: Dim, right: Dim) -> None:
    assert left == right
    assert hash(left) == hash(right)
    assert isinstance(left, SymDim) or type(left) is int


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (1 + S * B, "B*S + 1"),
        (B * 2, "2*B"),
        (3 - B, "-B + 3"),
        (S // 2, "S floordiv 2"),
        ((S + 3) // 4, "(S + 3) floordiv 4"),
        (S % 2, "S mod 2"),
        (1 - 3 * (S // 2), "-3*(S floordiv 2) + 1"),
        (dim_min(8, B), "min(B, 8)"),
        (symbol("?0") * 2, '2*"?0"'),
        (symbol('a "b"\\\n\u00e9') + 1, '"a \\"b\\"\\\\\\n\\u00e9" + 1'),
        (symbol("mod") % 3, '"mod" mod 3'),
        (floor_scaled(B + 1, 2.6), "scaled(B + 1, 5452595, 2097152)"),
        (2 * floor_scaled(B, 1.25), "2*scaled(B, 5, 4)"),
        (symbol("scaled") + 1, '"scaled" + 1'),
    ],
)
def test_text_round_trip(dim: Dim, text: str) -> None:
    assert str(dim) == text
    assert parse_dim(text) == dim
    assert pickle.loads(pickle.dumps(dim)) == dim


@pytest.mark.parametrize("text", ["", "B +", "2 B", "min()", '"a', "(B", "B ^ 2", "mod", '""'])
def test_parse_names_the_place(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .* at column"):
        parse_dim(text)


def test_no_order_and_no_number() -> None:
    with pytest.raises(TypeError):
        _ = x < y  # type: ignore[operator]
    with pytest.raises(TypeError):
        int(x)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        _ = x + 1.5  # type: ignore[operator]
    with pytest.raises(AttributeError):
        x.name = "z"
    with pytest.raises(ZeroDivisionError):
        _ = x // 0


def test_evaluate_and_substitute() -> None:
    dim = dim_max(B * S // 4, S % 3) + 1
    assert evaluate(dim, {"B": 3, "S": 7}) == 6
    assert symbols(dim) == ("B", "S")
    assert substitute(dim, {"B": 4}) == dim_max(S, S % 3) + 1
    assert substitute(x + y, {"x": y, "y": x}) == x + y
    with pytest.raises(KeyError):
        evaluate(dim, {"B": 3})


def test_bounds() -> None:
    assert bounds(x * 2 + 1) == (1, None)
    assert bounds(x - y, {"x": (2, 5), "y": (1, 3)}) == (-1, 4)
    assert bounds((x + 7) // 8, {"x": (1, 64)}) == (1, 8)
    assert bounds(x % 8) == (0, 7)
    assert bounds(dim_min(x, 8)) == (0, 8)
    assert bounds(y // x, {"y": (4, 9)}) == (0, 9)


def test_proofs() -> None:
    assert known_equal(4 * (x // 4) + x % 4, x)
    assert not known_equal(x, y)
    assert known_ge(x + y, x)
    assert known_ge(x, x // 2)
    assert known_ge(2 * ceil_div(x, 2), x)
    assert known_ge(x, x % 5)
    assert known_ge(dim_max(x, y), x)
    assert known_ge(dim_max(x, y), dim_min(x, y))
    assert known_ge(x, 4, {"x": (4, 9)})
    assert not known_ge(x, 4)
    assert divisible_by(4 * x + 8 * (y // 3), 4)
    assert divisible_by(dim_min(4 * x, 6), 2)
    assert not divisible_by(x + 2, 2)


def test_broadcast() -> None:
    assert broadcast_dim(B, B) == B
    assert broadcast_dim(1, B) == B
    assert broadcast_dim(B, 1) == B
    assert broadcast_dim(B, 4) == 4
    assert broadcast_dim(0, B) == 0
    assert broadcast_dim(B, S) == B
    with pytest.raises(ValueError, match="3 and 4"):
        broadcast_dim(3, 4)


def test_fold_builds_equal_parts_once() -> None:
    seen: list[str] = []

    def name(text: str) -> str:
        seen.append(text)
        return text

    source = fold(
        (x + 1) // 2 * 3 + x,
        const=str,
        symbol=name,
        add=lambda a, b: f"({a} + {b})",
        mul=lambda a, b: f"({a} * {b})",
        floordiv=lambda a, b: f"fdiv({a}, {b})",
        mod=lambda a, b: f"fmod({a}, {b})",
        minimum=lambda a, b: f"min({a}, {b})",
        maximum=lambda a, b: f"max({a}, {b})",
        scaled=lambda a, n, d: f"int({a} * {n} / {d})",
    )
    assert eval(source, {"x": 5, "fdiv": operator.floordiv}) == 14
    assert seen == ["x"]


def test_numpy_object_arrays() -> None:
    dims = np.array([x, 3], dtype=object)
    assert list(dims + 1) == [x + 1, 4]
    assert list(2 * dims) == [2 * x, 6]
    assert list(dims // 2) == [x // 2, 1]
    assert list(x * dims) == [x * x, 3 * x]
    assert x + np.int64(3) == x + 3
    assert np.int64(3) * x == 3 * x
    assert np.prod(dims) == 3 * x


def test_size_is_bounded() -> None:
    with pytest.raises(ValueError, match="too large"):
        product(sum((symbol(f"s{i}_{j}") for j in range(8)), 0) for i in range(8))
    with pytest.raises(ValueError, match="too large"):
        parse_dim("(" * 100_000)
    dim: Dim = x
    with pytest.raises(ValueError, match="too large"):
        for _ in range(100):
            dim = (3 * dim * y + 1) // 7


def product_f32(n: int, scale: float) -> np.float32:
    return np.float32(n) * np.float32(scale)


OPERATIONS = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "//": (operator.floordiv, operator.floordiv),
    "%": (operator.mod, operator.mod),
    "min": (dim_min, min),
    "max": (dim_max, max),
    "ceil": (ceil_div, lambda a, b: -(-a // b)),
    "scaled": (lambda a, b: floor_scaled(a, 2.6) + b, lambda a, b: int(product_f32(a, 2.6)) + b),
}
NAMES = ("a", "b", "c d")

LEAVES = st.sampled_from(NAMES).map(symbol) | st.integers(-9, 9)
TREES = st.recursive(
    LEAVES, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=9
)
ENVIRONMENTS = st.fixed_dictionaries({name: st.integers(0, 20) for name in NAMES})


def both(tree: object, env: dict[str, int]) -> tuple[Dim, int]:
    """The tree as a dimension and as the number it stands for."""
    if not isinstance(tree, tuple):
        return tree, evaluate(tree, env)  # type: ignore[return-value, arg-type]
    name, left, right = tree
    (a, a_value), (b, b_value) = both(left, env), both(right, env)
    if name in ("//", "%", "ceil"):
        assume(b_value != 0 and b != 0)
        assume(name != "ceil" or b_value > 0)
    assume(name != "scaled" or a_value >= 0)
    build, compute = OPERATIONS[name]
    return build(a, b), compute(a_value, b_value)


@given(TREES, ENVIRONMENTS)
def test_agrees_with_integers(tree: object, env: dict[str, int]) -> None:
    dim, value = both(tree, env)
    assert evaluate(dim, env) == value
    low, high = bounds(dim, {name: (n, n) for name, n in env.items()})
    assert (low is None or low <= value) and (high is None or value <= high)
    assert not known_ge(dim, 1) or value >= 1


@given(TREES, ENVIRONMENTS)
def test_text_of_random_expressions(tree: object, env: dict[str, int]) -> None:
    dim, _ = both(tree, env)
    assert parse_dim(str(dim)) == dim
    assert substitute(dim, {}) == dim


@given(st.integers(0, 2**40), st.floats(2**-10, 2**10, width=32))
def test_scaled_extents_are_floors_of_float32_products(n: int, scale: float) -> None:
    dim = floor_scaled(x, scale)
    assert evaluate(dim, {"x": n}) == floor_scaled(n, scale) == int(product_f32(n, scale))
    assert bounds(dim, {"x": (0, n)}) == (0, floor_scaled(n, scale))


@pytest.mark.parametrize("text", ["scaled(x)", "scaled(x, y, 2)", "scaled(x, 1, 3)"])
def test_bad_scales(text: str) -> None:
    with pytest.raises(ValueError, match=r"dimension|scaled"):
        parse_dim(text)
