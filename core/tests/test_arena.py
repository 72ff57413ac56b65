"""The arena's offsets: whatever the lifetimes and sizes, buffers that live together lie apart."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cuvil.ir.dims import Dim, dim_max, evaluate, symbol
from cuvil.plan.arena import ALIGN, Lifetime, plan_arena

B, S = symbol("B"), symbol("S")
HINTS = {"B": 4, "S": 64}

literal = st.integers(0, 5000)
symbolic = st.builds(
    lambda base, a, c: base * a + c,
    st.sampled_from([B, S, B * S, S // 3 + 1, dim_max(B, S), 2 * B * B + S]),
    st.integers(1, 40),
    st.integers(0, 300),
)
environments = st.fixed_dictionaries({"B": st.integers(0, 50), "S": st.integers(0, 50)})


def lifetimes(sizes: st.SearchStrategy[Dim]) -> st.SearchStrategy[list[Lifetime]]:
    """Up to 25 buffers that live for some of 20 steps."""

    def life(first: int, steps: int, size: Dim) -> Lifetime:
        return Lifetime(first, first + steps, size, evaluate(size, HINTS))

    return st.lists(st.builds(life, st.integers(0, 20), st.integers(0, 8), sizes), max_size=25)


def placed(buffers: list[Lifetime], env: dict[str, int]) -> list[tuple[Lifetime, int, int]]:
    """Each buffer with its first byte and the one after its last; all lie in the arena."""
    plan = plan_arena(buffers)
    found = []
    for buffer, offset in zip(buffers, plan.offsets, strict=True):
        start = evaluate(offset, env)
        found.append((buffer, start, start + evaluate(buffer.bytes, env)))
        assert start >= 0 and start % ALIGN == 0
        assert found[-1][2] <= evaluate(plan.bytes, env)
    return found


def assert_apart(found: list[tuple[Lifetime, int, int]]) -> None:
    for (a, a_start, a_end), (b, b_start, b_end) in combinations(found, 2):
        empty = a_start == a_end or b_start == b_end
        assert empty or not a.overlaps(b) or a_end <= b_start or b_end <= a_start


@given(lifetimes(literal))
def test_literal_sizes_never_overlap(buffers: list[Lifetime]) -> None:
    assert_apart(placed(buffers, {}))


@given(lifetimes(symbolic), environments)
def test_symbolic_sizes_never_overlap(buffers: list[Lifetime], env: dict[str, int]) -> None:
    assert_apart(placed(buffers, env))


@given(lifetimes(st.one_of(literal, symbolic)), environments)
def test_mixed_sizes_never_overlap(buffers: list[Lifetime], env: dict[str, int]) -> None:
    assert_apart(placed(buffers, env))


@given(lifetimes(literal))
def test_the_arena_holds_no_more_than_all_buffers(buffers: list[Lifetime]) -> None:
    assert plan_arena(buffers).bytes <= sum(-(-b.bytes // ALIGN) * ALIGN for b in buffers)


def test_a_chain_needs_two_buffers() -> None:
    chain = [Lifetime(i, i + 1, 64 * S, 640) for i in range(10)]
    assert plan_arena(chain).bytes == 128 * S
    assert plan_arena([Lifetime(i, i + 1, 640, 640) for i in range(10)]).bytes == 1280


def test_the_same_buffers_get_the_same_offsets() -> None:
    buffers = [Lifetime(i % 3, 4, 64 + i, 64 + i) for i in range(9)]
    assert plan_arena(buffers) == plan_arena(list(buffers))
