"""Statements, numbers and containers: compiled functions against the interpreter."""

# What is tested is how the functions behave, not how they are typed.

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jit.same import alike, check, outcome

import cuvil


def test_arithmetic():
    def arithmetic(a, b):
        return a + b, a - b, a * b, a / b, a // b, a % b, -a, abs(a), divmod(a, b)

    check(arithmetic, (7, 2), (-7, 2), (7, -2), (7.5, 2), (-7.5, -2.0), (True, 2), (0, 5), (1, 0))


def test_comparisons():
    def comparisons(a, b, c):
        return a < b < c, a < b > c, a == b != c, not a <= b, a >= b, a and c, max(a, b, c)

    check(comparisons, (1, 2, 3), (3, 2, 1), (1.5, 2, 0), (2**60, 2.0, 1), (0, 2, 1.0))


def test_powers():
    def power(a, b):
        return a**b, a**2, a**0

    check(power, (3, 4), (-2, 3), (10, 18), (10, 19), (3, -1), (2.0, 0.5), (-8.0, 2.0))
    check(power, (0.0, -1.0), (1e200, 2.0), (-8.0, 1 / 3), (0.0, 0.0))


def test_bits():
    def bits(a, b):
        return a & b, a | b, a ^ b, ~a, a << b, a >> b

    check(bits, (12, 10), (-5, 3), (1, 62), (1, 63), (1, 70), (5, -1))


def test_conversions():
    def convert(x):
        return int(x), round(x), float(x), bool(x), math.floor(x), math.ceil(x), str(int(x))

    check(convert, (3.7,), (-3.7,), (2.5,), (-0.5,), (7,), (float("nan"),), (1e300,))


def test_ints_beyond_64_bits_are_pythons():
    def square(a):
        return a * a

    check(square, (3,), (2**40,), (2**62,))


@settings(max_examples=60, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integers(a, b):
    assert alike(outcome(_integers, (a, b)), outcome(_integers.__wrapped__, (a, b)))


@cuvil.jit
def _integers(a, b):
    if b == 0:
        return a + b, a - b, a * b, a < b, 0, 0
    return a + b, a - b, a * b, a < b, a // b, a % b


@settings(max_examples=100, deadline=None)
@given(st.floats(), st.floats())
def test_floats(a, b):
    assert alike(outcome(_floats, (a, b)), outcome(_floats.__wrapped__, (a, b)))


@cuvil.jit
def _floats(a, b):
    if b == 0.0:
        return a + b, a - b, a * b, a < b, a == b, 0.0, 0.0, 0.0
    return a + b, a - b, a * b, a < b, a == b, a / b, a // b, a % b


@settings(max_examples=60, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.floats())
def test_ints_beside_floats(a, b):
    assert alike(outcome(_mixed, (a, b)), outcome(_mixed.__wrapped__, (a, b)))


@cuvil.jit
def _mixed(a, b):
    return a + b, a * b, a < b, a == b, max(a, b), b >= a


def test_an_int_that_becomes_a_float():
    def total(items):
        result = 0
        for item in items:
            result += item
        return result

    check(total, ([1.5, 2.5],), ([1, 2],))

    def least(n, limit):
        return max(0, n - limit), min(n, 2 * limit)

    check(least, (1, 2.0), (3, 2.0), (1, 2))


def test_loops():
    def loops(n):
        found, i = 0, 0
        while True:
            i += 1
            if i > n:
                break
            if i % 2:
                continue
            for j in range(i, 0, -2):
                if j == 4:
                    break
                found += j
        return found, i

    check(loops, (0,), (1,), (20,))


def test_a_variable_without_a_value():
    def last(n):
        for i in range(n):
            y = i
        return y

    check(last, (3,), (0,))


def test_results_of_several_types():
    def classify(n):
        if n > 0:
            return "positive"
        elif n < 0:
            return n
        return None

    check(classify, (1,), (-1,), (0,))


def test_recursion():
    def fibonacci(n):
        return n if n < 2 else helper(n - 1) + helper(n - 2)

    @cuvil.jit
    def helper(n):
        if n < 2:
            return n
        return helper(n - 1) + helper(n - 2)

    check(fibonacci, (1,), (12,))

    @cuvil.jit
    def endless(n):
        return endless(n + 1)

    with pytest.raises(RecursionError):
        endless(0)


def test_tuples_and_unpacking():
    def swap(pair, n):
        (a, b), c = pair, n
        a, b = b, a
        t = (a, b) + (c,)
        return t, t[0], t[-1], t[1:], len(t), t == (b, a, c), t < (9, 9), 2 in t

    check(swap, ((1, 2), 3), ((2.5, 1), 2))


def test_lists():
    def lists(items):
        copy = sorted(items)
        copy.append(9)
        copy.insert(0, 7)
        last = copy.pop()
        copy.extend([1, 2])
        copy[1] += 5
        del copy[0]
        copy.reverse()
        return (copy, last, copy[::-1], copy[1:3], copy + [1], [0] * 3, len(copy), sum(copy),
                max(copy), min(copy), 3 in copy, copy.count(1), copy.index(2),
                copy == items)  # fmt: skip

    check(lists, ([3, 1, 2],), ([5],))


def test_lists_that_the_caller_sees():
    def change(items):
        items.append(4.0)
        items[0] = 9.0
        return items

    values = [1.0, 2.0]
    assert cuvil.jit(change)(values) is values and values == [9.0, 2.0, 4.0]
    check(change, ([1.0],), ([],))


def test_comprehensions():
    def many(n, names):
        x = 5
        squares = [x * x for x in range(n) if x % 2]
        table = {name: i for i, name in enumerate(names)}
        nested = [[i * j for j in range(i)] for i in range(n)]
        pairs = [(a, b) for a, b in zip(squares, names, strict=False)]
        total, some = sum(i * i for i in range(n)), any(i > 3 for i in range(n))
        return x, squares, table, nested, pairs, total, some, list(range(n))

    check(many, (5, ["a", "b"]), (0, ["x"]))


def test_sorting():
    def ranked(pairs, words):
        by_value = sorted(pairs, key=lambda pair: pair[1], reverse=True)
        words.sort()
        return by_value, sorted(pairs), words, sorted([2.5, -1.0, 0.0]), sorted(words, key=len_of)

    def len_of(word):
        return len(word)

    check(ranked, ([("b", 2), ("a", 3), ("c", 2)], ["b", "a"]), native=False)

    def plain(pairs, words):
        words.sort()
        by_value = sorted(pairs, key=lambda pair: pair[1], reverse=True)
        return by_value, sorted(pairs), words, sorted([2.5, -1.0, 0.0])

    check(plain, ([("b", 2), ("a", 3), ("c", 2)], ["b", "a"]))


def test_dicts():
    def count(items):
        counts = {}
        for item in items:
            if item in counts:
                counts[item] += 1
            else:
                counts[item] = 1
        groups = {}
        for i, item in enumerate(items):
            groups.setdefault(item, 0)
            groups[item] += i
        total = 0
        for _, value in counts.items():
            total += value
        best = counts.get("a", 0)
        gone = counts.pop("b", -1)
        return counts, groups, total, best, gone, list(counts), len(counts), list(groups.values())

    check(count, (["a", "b", "a", "é"],), (["x"],), (["b", "b"],))


def test_keys_of_several_kinds():
    def grid(n):
        cells = {(i, j): i * j for i in range(n) for j in range(n)}
        seen = {1, 2}
        seen.add(n)
        return cells, cells.get((1, 1), -1), n in seen, 7 in seen, len(seen)

    check(grid, (3,), (0,))


def test_dict_arguments():
    def look(table, key):
        table["new"] = len(table)
        return table[key]

    check(look, ({"a": 1}, "a"), ({"a": 1}, "missing"))


def test_the_math_module():
    def functions(x):
        return (
            math.sqrt(x),
            math.exp(x),
            math.sin(x),
            math.atan2(x, 2.0),
            math.pi * x,
            math.log1p(x),
        )

    check(functions, (2.0,), (-0.5,), (0,), (-1.0,), (1e6,), (float("nan"),), (float("inf"),))


def test_lists_that_change_while_they_are_walked():
    def walk(items):
        copy = list(items)
        for item in copy:
            if len(copy) < 10:
                copy.append(item * 2)
        shorter, count = copy.copy(), 0
        for item in shorter:
            shorter.pop()
            count += item
        return copy, shorter, count

    check(walk, ([1, 2, 3],))


def test_two_names_of_one_list():
    def alias(items, n):
        own = [1]
        other = own
        other.append(n)
        again = items
        again.append(n)
        return own, other, own is other, again

    check(alias, ([1, 2], 3))


def test_names_of_comprehensions_are_their_own():
    def shadow(n):
        x = 100
        inner = [x + 1 for x in range(n)]
        return x, inner, [x for x in inner if x > 1 for y in range(x)]

    check(shadow, (4,), (0,))


def test_a_name_that_changes_its_type():
    def change(line, n):
        line = line.split()
        n = n * 1.5
        n = "v" + str(int(n))
        return line, n

    check(change, ("a b", 3), ("", 0))


def test_lists_in_dicts():
    def group(n):
        found = {}
        for i in range(n):
            if i % 2 not in found:
                found[i % 2] = []
            found[i % 2].append(i)
        again = {}
        for i in range(n):
            again.setdefault(i % 3, []).append(i)
        return found, again

    check(group, (5,), (0,))


def test_else_of_loops():
    def find(items, wanted):
        for item in items:
            if item == wanted:
                break
            for other in items:
                if other > item:
                    break
            else:
                wanted += 100
        else:
            return "none", wanted
        return "found", item

    def count(limit):
        i = 0
        while i < limit:
            if i == 7:
                break
            i += 1
        else:
            i = -1
        return i

    check(find, ([3, -1, 4], 4), ([3, -1, 4], 10), ([3, 9], 9))
    check(count, (3,), (10,), (0,))


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def sort_in_place(a, low, high):
    if high - low > 1:
        middle = low
        for i in range(low + 1, high):
            if a[i] < a[low]:
                middle += 1
                a[middle], a[i] = a[i], a[middle]
        a[middle], a[low] = a[low], a[middle]
        sort_in_place(a, low, middle)
        sort_in_place(a, middle + 1, high)


def test_functions_that_call_themselves_in_an_expression_or_give_nothing():
    check(factorial, (0,), (5,), (20,), (21,))
    check(sort_in_place, (np.array([3, 1, 2, 9, 0, 5]), 0, 6))


def test_one_nan_is_in_its_list():
    def places(items):
        return items[0] in items, items.index(items[1]), items.count(items[1]), items == items

    def without(items, item):
        items.remove(item)
        return items

    check(places, ([1.0, math.nan, 2.0],), ([math.nan, 1.0],), ([1.0, 2.0],))
    check(without, ([1.0, 2.0, 1.0], 1.0), ([1.0], 3.0), ([math.nan], math.nan))


def test_membership_in_ranges():
    def inside(a, n):
        return a in range(n), a in range(1, n), a not in range(n)

    check(inside, (3, 5), (-1, 5), (5, 5), (0, 0))
