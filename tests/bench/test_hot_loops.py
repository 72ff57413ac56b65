"""Assembly is read: innermost loops that multiply, what they load, what goes to the stack."""

from __future__ import annotations

import pytest

from tools.bench.cross import bench_files, read
from tools.bench.hot_loops import Syntax, analyser, loops, speed

SYNTAX = Syntax(multiply=r"\bmul\b", load=r"\bload\b", stack=r"\[sp", state=r"\bset\b")
TEXT = """
f:
        set     four
.outer:
        load    r1, [r2]                // of the outer loop
.inner:
        load    r3, [r4]
        mul     r5, r3, r1
        .p2align 4
        mul     r6, r3, [sp, #8]
        jump    .inner
.plain:
        load    r3, [r4]
        jump    .plain
        jump    .outer
        jump    .later
.later:
        mul     r1, r1, r1
"""


def test_the_innermost_loop_that_multiplies() -> None:
    (loop,) = loops(TEXT, SYNTAX)
    assert [line.split()[0] for line in loop.lines] == ["load", "mul", "mul", "jump"]
    assert [len(x) for x in (loop.multiplies, loop.loads, loop.stack)] == [2, 1, 1]
    assert [line.split() for line in loop.before] == [["set", "four"]]


def test_the_largest_comes_first() -> None:
    small = TEXT.replace("inner", "small").replace("        mul     r5, r3, r1\n", "")
    assert [len(loop.multiplies) for loop in loops(small + TEXT, SYNTAX)] == [2, 1]


@pytest.mark.skipif(analyser() is None, reason="llvm-mca (Debian: llvm-22) is not installed")
def test_waiting_costs() -> None:
    triple, syntax = "x86_64-linux-gnu", Syntax("mul", "mov", "rsp")
    waits = ".a:\n" + "\tmulps %xmm0, %xmm0\n" * 4 + "\tjne .a\n"
    free = ".a:\n" + "".join(f"\tmulps %xmm{i}, %xmm{i}\n" for i in range(8)) + "\tjne .a\n"
    (slow,), (fast,) = loops(waits, syntax), loops(free, syntax)
    assert speed(slow, triple, "haswell").share < 0.2 < 0.7 < speed(fast, triple, "haswell").share


@pytest.mark.parametrize("name", bench_files())
def test_files_of_backends_are_read(name: str) -> None:
    for bench in read(bench_files()[name]):
        assert bench.cpus and all(
            share <= 1 for goal in bench.cpus.values() for share in goal.values()
        )
