"""The constant pool: keys by content, no copies, recipes evaluated on demand."""

import hashlib
import weakref
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from cuvil.ir.pool import Constant, Pool
from cuvil.ir.samples import LARGE, sampled

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)


def negate(pool: Pool, of: Constant, fn: str = "negate", **attrs) -> Constant:
    return pool.add_recipe(fn, attrs, [of], of.dtype, of.shape, lambda inputs: -inputs[0])


def test_equal_contents_are_one_constant():
    pool = Pool()
    first = pool.add_array(VALUES)
    second = pool.add_mapped(VALUES.tobytes(), "f32", [3, 4])
    assert first is second
    assert len(pool) == 1
    assert pool.get(first.key) == first
    assert (first.dtype, first.shape, first.size, first.nbytes) == ("f32", (3, 4), 12, 48)


def test_dtype_shape_and_values_all_tell_constants_apart():
    pool = Pool()
    data = VALUES.tobytes()
    constants = [
        pool.add_mapped(data, "f32", (3, 4)),
        pool.add_mapped(data, "f32", (4, 3)),
        pool.add_mapped(data, "i32", (3, 4)),
        pool.add_mapped(bytes(48), "f32", (3, 4)),
        pool.add_mapped(b"", "f32", (0,)),
        pool.add_mapped(b"", "f32", (0, 1)),
    ]
    assert len({constant.key for constant in constants}) == 6


def test_keys_do_not_change_between_runs():
    key = Pool().add_array(np.array([1, 2], np.int64)).key
    assert key == "d5c2fe5d95236ac5aedd13e2a9f8b95cc8e03ea2"


def test_mapped_bytes_are_not_copied_and_not_writable():
    pool, buffer = Pool(), bytearray(VALUES.tobytes())
    array = pool.array(pool.add_mapped(buffer, "f32", (3, 4)).key)
    assert np.shares_memory(array, np.frombuffer(buffer, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1


def test_added_arrays_are_copied():
    pool, mine = Pool(), VALUES.T.copy().T
    constant = pool.add_array(mine)
    mine[0, 0] = 99
    np.testing.assert_array_equal(pool.array(constant.key), VALUES)


@pytest.mark.parametrize(
    "array",
    [
        np.array(2.5, ml_dtypes.bfloat16),
        np.array([True, False]),
        np.zeros((0, 3), np.float16),
        np.array([1, 2], ">i4"),
    ],
)
def test_every_kind_of_array_comes_back(array):
    pool = Pool()
    constant = pool.add_array(array)
    found = pool.array(constant.key)
    assert found.shape == array.shape
    np.testing.assert_array_equal(found.astype(np.float64), array.astype(np.float64))
    assert pool.data(constant.key).tobytes() == found.tobytes()


def test_recipes_are_lazy_and_chain():
    pool, calls = Pool(), []
    base = pool.add_array(VALUES)

    def transpose(inputs):
        calls.append("transpose")
        return inputs[0].T

    turned = pool.add_recipe("transpose", {"perm": (1, 0)}, [base], "f32", (4, 3), transpose)
    both = pool.add_recipe("add", {}, [turned, turned], "f32", (4, 3), lambda i: i[0] + i[1])
    assert calls == []
    np.testing.assert_array_equal(pool.array(both.key), 2 * VALUES.T)
    assert calls == ["transpose"]
    assert pool.data(turned.key).tobytes() == VALUES.T.tobytes()


def test_recipes_are_known_by_function_attributes_and_inputs():
    pool = Pool()
    base = pool.add_array(VALUES)
    same = negate(pool, base, a=1, b=[2.0, "x"])
    assert same is negate(pool, base, b=(2.0, "x"), a=np.int64(1))
    others = [
        negate(pool, base),
        negate(pool, base, a=1.0, b=[2.0, "x"]),
        negate(pool, base, fn="minus", a=1, b=[2.0, "x"]),
        negate(pool, same, a=1, b=[2.0, "x"]),
        negate(pool, base, a=-0.0),
        negate(pool, base, a=0.0),
    ]
    assert len({same.key, *(other.key for other in others)}) == 7


def test_long_chains_need_no_deep_stack_and_hold_one_step():
    pool = Pool()
    large = np.zeros(5 << 18, np.float32)  # 5 MiB: too large for the cache
    constant = pool.add_mapped(large, "f32", large.shape)
    alive: list[weakref.ref] = []
    most = 0

    def step(inputs):
        nonlocal most
        result = inputs[0] + 1
        alive.append(weakref.ref(result))
        most = max(most, sum(ref() is not None for ref in alive))
        return result

    for i in range(50):
        attrs = {"step": i}
        constant = pool.add_recipe("step", attrs, [constant], "f32", large.shape, step)
    assert pool.array(constant.key)[0] == 50
    assert most <= 2
    small = pool.add_array(VALUES)
    for i in range(2000):
        small = negate(pool, small, step=i)
    np.testing.assert_array_equal(pool.array(small.key), VALUES)


def large(changed: int | None = None) -> np.ndarray:
    """Bytes of a large constant; one that no sample holds differs where `changed` is said."""
    data = np.arange(LARGE + 3, dtype=np.uint32).astype(np.uint8)
    if changed is not None:
        data[LARGE // 2 + 333] = changed
    return data


def test_large_constants_are_told_apart_to_the_last_byte():
    """... though a key looks at samples only."""
    assert sampled(large().data) == sampled(large(200).data)
    pool = Pool()
    arrays = [large(), large(200), large(), large(200), large(201)]
    keys = [pool.add_mapped(a, "u8", a.shape).key for a in arrays]
    assert keys[0] == keys[2] != keys[1] == keys[3]
    assert len(pool) == len(set(keys)) == 3
    for key, array in zip(keys, arrays, strict=True):
        np.testing.assert_array_equal(pool.array(key), array)


@pytest.mark.parametrize("ahead", [True, False])
def test_contents_tell_the_values_of_large_constants(ahead: bool) -> None:
    found = []
    for array in (large(), large(200)):
        pool = Pool()
        base = pool.add_mapped(array, "u8", array.shape)
        turned = pool.add_recipe("f", {}, [base, base], "u8", array.shape, lambda i: ~i[0])
        small = pool.add_array(VALUES)
        if ahead:
            pool.hash_ahead()
        keys = (small.key, turned.key, base.key)
        found.append((keys, list(pool.contents(keys))))
    (keys, first), (others, second) = found
    assert keys == others and first != second
    assert first == [hashlib.sha256(large()).digest()]


def test_values_may_be_asked_for_by_several_threads():
    pool = Pool()
    base = pool.add_array(np.arange(1 << 17, dtype=np.float32))
    keys = [negate(pool, base, step=i % 3).key for i in range(64)]
    with ThreadPoolExecutor(4) as threads:
        for array in threads.map(pool.array, keys * 8):
            assert array[-1] == 1 - (1 << 17)
    assert pool._recent_bytes == sum(array.nbytes for array in pool._recent.values())


def test_the_cache_is_bounded():
    pool = Pool()
    base = pool.add_array(np.zeros(1 << 19, np.float32))  # 2 MiB
    for i in range(40):
        pool.array(negate(pool, base, step=i).key)
    assert sum(array.nbytes for array in pool._recent.values()) <= 32 << 20


def test_what_is_refused():
    pool = Pool()
    with pytest.raises(ValueError, match=r"8 bytes for a constant f32\[3\], which has 12"):
        pool.add_mapped(bytes(8), "f32", (3,))
    with pytest.raises(ValueError, match="negative"):
        pool.add_mapped(b"", "f32", (-1,))
    with pytest.raises(KeyError, match="no constant"):
        pool.array("00")
    with pytest.raises(KeyError):
        pool.add_array(np.array(["text"]))
    base = pool.add_array(VALUES)
    with pytest.raises(TypeError, match="cannot be a dict"):
        negate(pool, base, a={})
    wrong = pool.add_recipe("f", {}, [base], "f32", (2,), lambda inputs: inputs[0])
    with pytest.raises(ValueError, match=r"recipe 'f' gave float32\[3, 4\], not f32\[2\]"):
        pool.array(wrong.key)
