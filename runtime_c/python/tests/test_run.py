"""Running loaded models from Python."""

import threading
from pathlib import Path

import numpy as np
import pytest

import cuvil_runtime as rt


@pytest.fixture(params=["add.o", "add.so"])
def add(built: Path, request: pytest.FixtureRequest) -> rt.Model:
    return rt.load(built / request.param)


def arrays(rows: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    return x, 100 - 2 * x


def test_what_a_model_says_of_itself(add: rt.Model) -> None:
    assert add.name == "add"
    assert add.inputs == (
        rt.TensorInfo("x", "float32", ("N", 3)),
        rt.TensorInfo("y", "float32", ("N", 3)),
    )
    assert add.outputs == (rt.TensorInfo("z", "float32", ("N", 3)),)
    assert add.symbols == {"N": (1, 100000)}
    assert add.variant == "plain"
    assert add.variants == ["future", "plain", "baseline"]
    assert add.threads >= 1


def test_any_row_count(add: rt.Model) -> None:
    for rows in (1, 7, 5000, 2):
        x, y = arrays(rows)
        (z,) = add.run([x, y])
        np.testing.assert_array_equal(z, x + y)
    assert add.arena_bytes == 5000 * 12


def test_outputs_of_the_caller(add: rt.Model) -> None:
    x, y = arrays(4)
    z = np.zeros((4, 3), np.float32)
    assert add.run([x, y], [z])[0] is z
    np.testing.assert_array_equal(z, x + y)
    with pytest.raises(rt.ShapeMismatchError, match=r"output 'z': expected shape \(4, 3\)"):
        add.run([x, y], [z[:2]])
    with pytest.raises(rt.DTypeError, match="output 'z': expected float32, got float64"):
        add.run([x, y], [z.astype(float)])
    with pytest.raises(rt.InputError, match="dense, aligned, writeable"):
        add.run([x, y], [np.zeros((3, 4), np.float32).T])
    with pytest.raises(rt.InputError, match="output 'z' shares memory with input 'y'"):
        add.run([x, y], [y])
    room = np.zeros((5, 3), np.float32)
    with pytest.raises(rt.InputError, match="output 'z' shares memory with input 'x'"):
        add.run([room[:4], y], [room[1:]])
    add.run([room[:1], y[:1]], [room[1:2]])  # beside each other


def test_strided_inputs_are_copied(add: rt.Model) -> None:
    x, y = arrays(6)
    (z,) = add.run([x[::-1], np.asfortranarray(y)])
    np.testing.assert_array_equal(z, x[::-1] + y)
    unaligned = np.frombuffer(b"_" + x.tobytes(), np.float32, offset=1).reshape(6, 3)
    np.testing.assert_array_equal(add.run([unaligned, y])[0], x + y)


class Tensor:
    """An array that only speaks DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__()


def test_dlpack_buffers_and_lists(add: rt.Model) -> None:
    x, y = arrays(2)
    expected = x + y
    np.testing.assert_array_equal(add.run([Tensor(x), Tensor(y)])[0], expected)
    np.testing.assert_array_equal(add.run([Tensor(x[:, ::-1]), y[:, ::-1]])[0], expected[:, ::-1])
    np.testing.assert_array_equal(add.run([memoryview(x), y.tolist()])[0], expected)
    with pytest.raises(rt.DTypeError, match="input 'x': expected float32, got int64"):
        add.run([Tensor(x.astype(np.int64)), y])
    with pytest.raises(rt.InputError, match="input 'x': not an array"):
        add.run([["a", "b"], y])


def test_wrong_inputs_are_named(add: rt.Model) -> None:
    x, y = arrays(5)
    with pytest.raises(rt.InputError, match="add: expected 2 inputs, got 1"):
        add.run([x])
    with pytest.raises(rt.DTypeError, match="input 'y': expected float32, got float64"):
        add.run([x, y.astype(np.float64)])
    with pytest.raises(rt.DTypeError, match="input 'y': expected float32, got >f4"):
        add.run([x, y.astype(">f4")])
    with pytest.raises(rt.ShapeMismatchError, match="input 'x': expected rank 2, got 1"):
        add.run([x.ravel(), y])
    with pytest.raises(rt.ShapeMismatchError, match=r"'y': dim 0 \(N\) is 4, but 5 in dim 0 of"):
        add.run([x, y[:4]])
    with pytest.raises(rt.ShapeMismatchError, match="'x': dim 1 is 2, expected 3"):
        add.run([x[:, :2], y])
    with pytest.raises(rt.ShapeMismatchError, match=r"dim 0 \(N\) is 0, outside of 1 to"):
        add.run([x[:0], y[:0]])


def test_failing_node_is_named(add: rt.Model) -> None:
    x, y = arrays(1)
    y[0, 0] = -666
    with pytest.raises(rt.RuntimeFailure, match="add: index out of range at add\tAdd_1"):
        add.run([x, y])


def test_produced_extent(built: Path) -> None:
    positive = rt.load(built / "positive.o")
    assert positive.outputs[0].dims == (None,)
    x = np.array([1, -2, 3, 0, 5], np.float32)
    (found,) = positive.run([x])
    (later,) = positive.run([-x])
    assert found.tolist() == [1, 3, 5]
    assert later.tolist() == [2]
    assert positive.run([x[:0]])[0].shape == (0,)


def test_narrow_types(built: Path) -> None:
    half = rt.load(built / "half.o")
    h = np.arange(6, dtype=np.float16).reshape(2, 3)
    t = h > 2
    ml_dtypes = pytest.importorskip("ml_dtypes")
    b = h.astype(ml_dtypes.bfloat16)
    for got, given in zip(half.run([b, h, t]), (b, h, t), strict=True):
        assert got.dtype == given.dtype
        np.testing.assert_array_equal(got, given)


def test_profile(add: rt.Model) -> None:
    x, y = arrays(3)
    (z,), launches = add.profile([x, y])
    np.testing.assert_array_equal(z, x + y)
    assert [(row.kernel, row.nodes) for row in launches] == [
        ("copy", "Identity_0"),
        ("add", "Add_1"),
    ]
    assert launches[0].begin_ns <= launches[0].end_ns <= launches[1].begin_ns


def test_many_threads(add: rt.Model) -> None:
    failures = []

    def work(rows: int) -> None:
        x, y = arrays(rows)
        for _ in range(100):
            if not np.array_equal(add.run([x, y])[0], x + y):
                failures.append(rows)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in (1, 50, 300, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_cancel_from_another_thread(built: Path) -> None:
    wait = rt.load(built / "wait.o")
    go = np.array(0, np.int32)
    timer = threading.Timer(0.05, wait.cancel)
    timer.start()
    with pytest.raises(rt.CancelledError, match="wait: cancelled"):
        wait.run([go])
    timer.join()
    assert wait.run([1]) == []


def test_time_limit(built: Path) -> None:
    wait = rt.load(built / "wait.o")
    with pytest.raises(TimeoutError, match="time limit"):
        wait.run([np.array(0, np.int32)], time_limit=0.01)
    assert wait.run([1], time_limit=10) == []


def test_close(built: Path) -> None:
    wait = rt.load(built / "wait.o")
    go = np.array(0, np.int32)
    thread = threading.Thread(target=wait.run, args=([go],))
    thread.start()
    while True:
        try:
            wait.close()
        except rt.RuntimeFailure as error:
            assert "during a run" in str(error)
            go[()] = 1
            break
        wait = rt.load(built / "wait.o")  # closed before the thread came to run
    thread.join()
    wait.close()
    wait.close()
    with pytest.raises(rt.RuntimeFailure, match="closed"):
        wait.run([go])
