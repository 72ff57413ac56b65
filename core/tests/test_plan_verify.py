"""The verifier of plans takes what the planner makes, and says what is wrong with anything else."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from plans import changed, plan_of

from cuvil.errors import CompileError
from cuvil.plan.plan import Plan
from cuvil.plan.verify import verify_plan

W = np.ones((4, 3), np.float32)
PRODUCT = "g (float[N, 4] x, float[4, 3] w) => (z) { m = MatMul(x, w)  z = Softmax<axis = 1>(m) }"
CHAIN = """g (float[4, 10] x) => (z)
{ a = Softmax(x)  s = ReduceMax<axes = [1]>(a)
  t = Softmax<axis = 0>(s)  d = Add(a, t)  z = Softmax(d) }"""
COLUMNS = """g (float[N, 4] x, float[4, 3] w) => (z)
{ m = MatMul(x, w)  e = Exp(m)  c = Concat<axis = 1>(e, m)  z = Softmax<axis = 1>(c) }"""
CONTROL = """g (float[4] x, bool c) => (z)
{ n = Constant<value = int64 {3}>()  yes = Constant<value = bool {1}>()
  y = Loop(n, yes, x)<body = b (int64 i, bool k, float[4] v) => (bool l, float[4] u)
    { l = Identity(k)  u = Exp(v) }>
  z = If(c)<then_branch = t () => (float[4] p) { p = Sin(y) },
            else_branch = e () => (float[4] q) { q = Cos(y) }> }"""


def product() -> Plan:
    return plan_of(PRODUCT, w=W)


def swap(old: str, new: str, count: int = 1) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, count)


def pattern(old: str, new: str) -> Callable[[str], str]:
    return lambda text: re.sub(old, new, text, count=1)


@pytest.mark.parametrize("graph", [PRODUCT, CHAIN, COLUMNS, CONTROL])
def test_what_the_planner_makes_is_legal(graph: str) -> None:
    verify_plan(plan_of(graph, **({"w": W} if "w)" in graph else {})))


KERNELS = {
    "another dtype": (swap('{fn = "exp"}', '{fn = "isnan"}'), "scalar isnan|nest.scalar is"),
    "no such scalar": (swap('{fn = "exp"}', '{fn = "expp"}'), "no scalar function 'expp'"),
    "arity": (swap('{fn = "exp"}', '{fn = "add"}'), "scalar add takes 2 operands"),
    "no such index function": (swap('{fn = "mul"}> : (index', '{fn = "pow"}> : (index'), "'pow'"),
    "no such loop": (swap('kind = "reduce"', 'kind = "fast"'), "nest.for has no kind 'fast'"),
    "a parallel loop that carries": (swap('kind = "reduce"', 'kind = "parallel"'), "carries"),
    "no progress": (swap("step = 1 : i64", "step = 0 : i64"), "nest.for has step 0"),
    "a loop that yields less": (
        pattern(r'"nest.yield"\(%\d+\) : \(!nest.element<f32>\) -> \(\)\n  }\) : \(index, index, ',
                r'"nest.yield"() : () -> ()\n  }) : (index, index, '),
        "nest.for yields",
    ),
    "scratch of unknown size": (
        swap("bytes = #cuvil.dims<[12]>", "bytes = #cuvil.dims<[N]>"),
        "nest.scratch of N bytes",
    ),
    "no such template": (swap('kind = "contract"', 'kind = "contrast"'), "no template 'contrast'"),
    "a template with company": (
        swap('  "nest.template"', '  %9 = "nest.dim"() <{expr = #cuvil.dims<[N]>}> : () -> index\n'
             '  "nest.template"'),
        "nest.template here",
    ),
    "a symbol that nobody binds": (swap("rows = #cuvil.dims<[N,", "rows = #cuvil.dims<[M,"), "'M'"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    change, said = KERNELS[name]
    with pytest.raises(CompileError, match=said):
        verify_plan(changed(product(), change))


PROGRAMS = {
    "no such kernel": (swap('kernel = "k0_contract"', 'kernel = "k9"'), "no kernel 'k9'"),
    "a buffer less": (
        pattern(r'"host.launch"\((%\d+), %\d+\)(.*)\(!nest.buffer<u8>, ', r'"host.launch"(\1)\2('),
        "takes 2 buffers, not 1",
    ),
    "other tasks": (swap("tasks = #cuvil.dims<[N]>", "tasks = #cuvil.dims<[N + 1]>"), "tasks"),
    "no such argument": (swap("index = 1 : i64", "index = 2 : i64"), "host.argument 2 of 2"),
    "an input that is written": (
        pattern(r'(%\d+) = "host.argument"\(\) <{index = 1', r'\1 = "host.argument"() <{index = 0'),
        "read-only",
    ),
    "a weight elsewhere": (swap("offset = 0 : i64", "offset = 64 : i64"), "does not lie at 64"),
    "no site": (swap("site = 1 : i64", "site = 7 : i64"), "k1_softmax has no site"),
    "an arena that is too small": (
        lambda text: re.sub(r"bytes = #cuvil.dims<\[12\*N\]>", "bytes = #cuvil.dims<[96*N]>", text),
        "bytes at 0 of an arena of",
    ),
    "an offset between": (
        lambda text: text.replace("offset = #cuvil.dims<[0]>", "offset = #cuvil.dims<[4]>"),
        "bytes at 4 of an arena",
    ),
    "rows too far apart to be read": (
        swap("rows = #cuvil.dims<[N, 4, 3]>", "rows = #cuvil.dims<[N, 5, 3]>"),
        "k0_contract touches 36 bytes of the buffer of argument 0, where 32 lie",
    ),
    "rows too far apart to be written": (
        swap("rows = #cuvil.dims<[N, 4, 3]>", "rows = #cuvil.dims<[N, 4, 4]>"),
        "k0_contract touches 28 bytes of the buffer of bytes 0 to 24 of space host",
    ),
    "a symbol that nobody binds": (swap("[12*N]", "[12*T]"), "host.alloc uses 12\\*T where 'T'"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    change, said = PROGRAMS[name]
    with pytest.raises(CompileError, match=said):
        verify_plan(changed(product(), change))


def test_a_buffer_that_is_written_over() -> None:
    """`a` is needed to the end: what is computed meanwhile may not lie in its place."""

    def together(text: str) -> str:
        return re.sub(r"offset = #cuvil.dims<\[\d+\]>", "offset = #cuvil.dims<[0]>", text)

    with pytest.raises(CompileError, match=r"writes over|does not hold its value"):
        verify_plan(changed(plan_of(CHAIN), together))


def test_a_buffer_that_nobody_wrote() -> None:
    with pytest.raises(CompileError, match="k1_softmax reads the buffer of bytes 0 to"):
        verify_plan(changed(product(), pattern(r'  "host.launch".*\n', "")))


def test_a_branch_that_does_not_leave_its_result() -> None:
    with pytest.raises(CompileError, match="output 'z' is not written"):
        verify_plan(changed(plan_of(CONTROL), pattern(r' *"host.launch".*k2_cos.*\n', "")))


def test_a_state_that_the_loop_does_not_have() -> None:
    with pytest.raises(CompileError, match="k0_exp reads"):
        verify_plan(changed(plan_of(CONTROL), pattern(r'  "host.copy".*\n', "")))


def test_a_kernel_that_writes_what_it_reads() -> None:
    """One buffer as two operands: elements would be read after others were written over them."""

    def same(text: str) -> str:
        return re.sub(
            r'"host.launch"\((%\d+), %\d+\)(.*k1_reduce)', r'"host.launch"(\1, \1)\2', text
        )

    with pytest.raises(CompileError, match=r"k1_reduce writes the buffer of .* another operand"):
        verify_plan(changed(plan_of(CHAIN), same))


def test_a_body_that_writes_over_what_its_next_iteration_reads() -> None:
    """`x` is read in every iteration: nothing but the loop's own copy may write there."""

    def over(text: str) -> str:
        launch = r'    "host.launch"\(%2, %3\).*\n'
        found = re.search(launch, text)
        assert found
        again = found[0].replace("(%2, %3)", "(%3, %2)")
        return text.replace(found[0], found[0] + again)

    with pytest.raises(CompileError, match=r"k0_exp writes over .* the loop's next iteration"):
        verify_plan(changed(plan_of(CONTROL), over))
