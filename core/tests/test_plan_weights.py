"""The bytes of weights, as a stream and in memory."""

import struct
from pathlib import Path

import numpy as np
import pytest

from cuvil.codegen.weights_file import weights_image, write_weights
from cuvil.ir.pool import Pool
from cuvil.plan.weights import fill, stream

SIZE = 320


@pytest.fixture
def weights() -> tuple[Pool, list[tuple[str, int]]]:
    """Two constants with a gap between them and behind."""
    pool = Pool()
    first = pool.add_array(np.arange(5, dtype=np.int8))
    other = pool.add_array(np.float32([1, 2]))
    both = pool.add_recipe("twice", {}, [other], "f32", (2,), lambda a: 2 * a[0])
    return pool, [(first.key, 64), (both.key, 128)]


def test_a_stream_fills_gaps_with_zeros(weights: tuple[Pool, list[tuple[str, int]]]) -> None:
    data = b"".join(stream(*weights, SIZE))
    assert data[:64] == bytes(64) and data[64:69] == bytes(range(5))
    assert struct.unpack_from("<2f", data, 128) == (2, 4)
    assert len(data) == SIZE and not any(data[136:])
    assert b"".join(stream(Pool(), [], 3)) == bytes(3)


def test_a_file_and_memory_hold_the_same(
    weights: tuple[Pool, list[tuple[str, int]]], tmp_path: Path
) -> None:
    build = bytes(range(32))
    write_weights(tmp_path / "w", build, SIZE, stream(*weights, SIZE))
    image = weights_image(build, SIZE, lambda target: fill(target, *weights))
    assert image.tobytes() == (tmp_path / "w").read_bytes()
    assert image.ctypes.data % 64 == 0


def test_what_a_recipe_raises_comes_through() -> None:
    pool = Pool()
    base = pool.add_array(np.zeros(1, np.float32))

    def fail(_: list[np.ndarray]) -> np.ndarray:
        raise ArithmeticError("no such weight")

    rows = [(pool.add_recipe("fail", {}, [base], "f32", (1,), fail).key, 0)]
    for use in (
        lambda: list(stream(pool, rows, 4)),
        lambda: fill(np.zeros(4, np.uint8), pool, rows),
    ):
        with pytest.raises(ArithmeticError, match="no such weight"):
            use()
