"""What stays in the interpreter and why; failures, signatures, globals, caches, engines."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import onnx
import pytest

import cuvil
from cuvil.engine.cache_store import Store

SCALE = 2.0
TABLE = ["a", "b", "c"]


def test_what_cannot_be_compiled_is_interpreted():
    @cuvil.jit
    def unusual(x):
        import os

        return os.path.join("a", str(x))

    assert unusual(1) == "a/1"
    explanation = cuvil.explain(unusual)
    assert not explanation.native
    line = unusual.__wrapped__.__code__.co_firstlineno + 2
    assert f"{Path(__file__).name}:{line}: the statement 'import'" in str(explanation)


def test_explaining_a_call_that_is_not_made():
    @cuvil.jit
    def double(x):
        return x + x

    assert cuvil.explain(double, 1).native
    assert not cuvil.explain(double, object()).native
    assert "object" in str(cuvil.explain(double, object()))
    with pytest.raises(cuvil.OptionError, match="function"):
        cuvil.jit(3)


def test_types_that_keep_changing():
    @cuvil.jit
    def first(t):
        return t[0]

    for n in range(1, 20):
        assert first((1,) * n) == 1
    explanation = cuvil.explain(first)
    assert len(explanation.signatures) == 8 and "keep changing" in str(explanation)


def test_a_call_with_other_things_decides_nothing():
    @cuvil.jit
    def last(items):
        return items[-1]

    with pytest.raises(IndexError):
        last([])
    assert last([1, 2]) == 2 and cuvil.explain(last).native
    assert last("ab") == "b" and last([1, "b"]) == "b"


def test_pickling_is_by_name():
    assert pickle.loads(pickle.dumps(lambda_free_jitted)) is lambda_free_jitted
    assert copy.deepcopy(lambda_free_jitted) is lambda_free_jitted


def test_calls_by_name_and_defaults():
    @cuvil.jit
    def f(a, b=2, c=3):
        return a, b, c

    assert f(1) == (1, 2, 3) and f(1, c=5) == (1, 2, 5) and f(b=1, a=0) == (0, 1, 3)
    with pytest.raises(TypeError, match="missing"):
        f()
    with pytest.raises(TypeError, match="unexpected"):
        f(1, d=1)


def test_methods_and_names():
    class Point:
        x = 3

        @cuvil.jit
        def get(self):
            """Doc."""
            return self.x

    assert Point().get() == 3
    assert Point.get.__name__ == "get" and Point.get.__doc__ == "Doc."


def lines_of(error: BaseException) -> list[tuple[str, int | None]]:
    return [(Path(f.filename).name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]


def test_failures_have_the_users_line():
    @cuvil.jit
    def pure(a, b):
        return a // b

    @cuvil.jit
    def writes(a, n):
        a[0] = 1.0
        if n == 1:
            raise KeyError("told so")
        return 1 // n, a[n]

    with pytest.raises(ZeroDivisionError) as pure_error:
        pure(1, 0)
    first = pure.__wrapped__.__code__.co_firstlineno
    assert lines_of(pure_error.value)[-1] == (Path(__file__).name, first + 2)
    first = writes.__wrapped__.__code__.co_firstlineno
    for n, kind, line in ((0, ZeroDivisionError, 5), (1, KeyError, 4), (9, IndexError, 5)):
        values = np.zeros(3)
        with pytest.raises(kind) as error:
            writes(values, n)
        assert lines_of(error.value)[-1] == (Path(__file__).name, first + line)
        assert values[0] == 1.0


def test_ints_that_leave_64_bits_where_the_function_cannot_run_twice():
    @cuvil.jit
    def count(a, n):
        a[0] += 1.0
        return n * n

    values = np.zeros(1)
    with pytest.raises(OverflowError, match="64 bits"):
        count(values, 2**40)
    assert values[0] == 1.0


def test_changing_arrays_and_lists_of_the_callers():
    @cuvil.jit
    def both(a, items, n):
        a[0] = 1.0
        items.append(1)
        return 1 // n

    values, items = np.zeros(1), [0]
    with pytest.raises(ZeroDivisionError):
        both(values, items, 0)
    assert values[0] == 1.0 and items == [0, 1]
    assert "both an array and a list" in str(cuvil.explain(both))


def test_globals_are_looked_at_in_every_call(monkeypatch):
    @cuvil.jit
    def scaled(x):
        return x * SCALE

    assert scaled(3.0) == 6.0
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert scaled(3.0) == 30.0


def test_lists_and_arrays_from_outside():
    weights = np.array([1.0, 2.0])

    @cuvil.jit
    def label(i):
        return TABLE[i], weights[1] * i

    assert label(2) == ("c", 4.0)
    weights[1] = 5.0
    TABLE[2] = "z"
    assert label(2) == ("z", 10.0)
    TABLE[2] = "c"


def test_functions_call_functions():
    def helper(x, y=1):
        return x + y

    @cuvil.jit
    def outer(x):
        return helper(x) + helper(x, 2) + helper(y=5, x=x)

    assert outer(1) == 11 and outer(0.5) == helper(0.5) * 1 + 2.5 + 5.5
    assert cuvil.explain(outer).native


def test_callees_keep_their_numbers_while_the_caller_settles():
    def title(text, a):
        a[0] += 1.0
        if text == "bad":
            raise KeyError("bad text")
        return text.title()

    @cuvil.jit
    def titles(items, a):
        found, total = [], 0
        for item in items:
            found.append(title(item, a))
            total += 0.5
            found.append(item.swapcase())
        return found, total

    values = np.zeros(1)
    assert titles(["ab", "cd"], values) == (["Ab", "AB", "Cd", "CD"], 1.0)
    assert cuvil.explain(titles).native and values[0] == 2.0
    with pytest.raises(KeyError, match="bad text") as error:
        titles(["bad"], values)
    assert lines_of(error.value)[-1][1] == title.__code__.co_firstlineno + 3


def test_a_function_that_mostly_raises_is_left_to_python():
    @cuvil.jit
    def never(x):
        raise ValueError(x)

    for _ in range(40):
        with pytest.raises(ValueError, match="3"):
            never(3)
    assert not cuvil.explain(never).native


def test_engines_inside():
    text = """<ir_version: 8, opset_import: ["" : 18]>
      net (float[N] x) => (float[N] y) { two = Constant<value_float = 2.0>() y = Mul(x, two) }"""
    engine = cuvil.compile(onnx.parser.parse_model(text))

    @cuvil.jit
    def pipeline(values: list[float]):
        x = np.array(values, dtype=np.float32)
        y = engine(x)
        best = 0
        for i in range(len(y)):
            if y[i] > y[best]:
                best = i
        return best, y[best]

    assert pipeline([1.0, 5.0, 2.0]) == (1, 10.0)
    assert cuvil.explain(pipeline).native


def test_code_is_cached_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("CUVIL_CACHE_DIR", str(tmp_path / "cache"))

    def make():
        @cuvil.jit
        def triple(x):
            return 3 * x

        return triple

    assert make()(2) == 6
    (entry,) = Store(tmp_path / "cache").entries()
    (entry.folder / "function.o").write_bytes(b"damaged")
    assert make()(2) == 6  # made anew
    assert make()(2.0) == 6.0


def test_levels_and_targets():
    for level in (0, 3):
        jitted = cuvil.jit(target="cpu", opt_level=level)(lambda_free)
        assert jitted(20) == lambda_free(20)
    with pytest.raises(cuvil.OptionError, match="opt_level"):
        cuvil.jit(opt_level=7)(lambda_free)
    foreign = cuvil.jit(target="no-such-target")(lambda_free)
    assert foreign(3) == lambda_free(3) and "no-such-target" in str(cuvil.explain(foreign))


def lambda_free(n):
    """A loop."""
    total = 0
    for i in range(n):
        total += i * i
    return total


lambda_free_jitted = cuvil.jit(lambda_free)
lambda_free_jitted.__qualname__ = "lambda_free_jitted"


def test_decorating_loads_no_compiler():
    code = (
        "import cuvil, sys\n@cuvil.jit\ndef f(x): return x\n"
        "print([m for m in ('llvmlite', 'xdsl', 'onnx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
