"""The constant pool: weights by content hash, mapped or computed on demand, never twice in memory.

A constant of the IR is a `Constant`: a key, a dtype and a shape. The pool knows where its bytes
come from: a region of a mapped file, a small owned array, a reader, or a recipe such as
`pack(transpose(c))` that is evaluated when somebody needs the values and then dropped.

Keys are digests (BLAKE2b, 160 bits). Within a pool equal tensors share one entry: equal keys mean
equal dtype, shape and bytes, or the same recipe over such. A small constant's key is the digest of
its bytes. That of a large one, which would take long to read, is the digest of samples: of two with
the same samples the bytes are compared, and where they differ the second has the digest of its
bytes. So a key of a large constant says nothing of another pool's. What must know the values, as a
build's identity must, asks for `contents` too, which a thread makes beside other work.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from cuvil.ir import dtypes
from cuvil.ir.samples import LARGE, same_bytes, sampled, sha256

__all__ = ["Buffer", "Constant", "Evaluate", "Pool"]

Buffer = bytes | bytearray | memoryview | np.ndarray
Evaluate = Callable[[list[np.ndarray]], np.ndarray]
Attribute = None | bool | int | float | str | bytes | Sequence["Attribute"]

_DIGEST_BYTES = 20
_CACHE_BYTES = 32 << 20
_CACHE_ENTRY_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Constant:
    """A reference to an immutable tensor; equal references have equal values.

    `key` is 40 hex digits, `dtype` a name of `cuvil.ir.dtypes`, `shape` non-negative extents.
    """

    key: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense row-major tensor."""
        return self.size * dtypes.dtype(self.dtype).size


@dataclass(frozen=True, slots=True)
class _Stored:
    """sampled: the key does not tell all bytes."""

    read: Callable[[], Buffer]
    sampled: bool = False


@dataclass(frozen=True, slots=True)
class _Recipe:
    fn: str
    inputs: tuple[Constant, ...]
    evaluate: Evaluate


class Pool:
    """The constants of one model, by key. While none is added, threads may ask for values."""

    def __init__(self) -> None:
        self._constants: dict[str, Constant] = {}
        self._sources: dict[str, _Stored | _Recipe] = {}
        self._recent: OrderedDict[str, np.ndarray] = OrderedDict()
        self._recent_bytes = 0
        self._lock = Lock()  # of the two above
        self._digests: dict[str, Future[bytes]] = {}

    def __len__(self) -> int:
        return len(self._constants)

    def __contains__(self, key: str) -> bool:
        return key in self._constants

    def __iter__(self) -> Iterator[Constant]:
        return iter(self._constants.values())

    def get(self, key: str) -> Constant:
        """The constant called `key`; KeyError when the pool has none."""
        try:
            return self._constants[key]
        except KeyError:
            raise KeyError(f"no constant {key} in the pool") from None

    def add_array(self, array: np.ndarray) -> Constant:
        """Adds a copy of `array`; meant for small ones. KeyError for a dtype without a record, and
        for strings: those are tables of bytes (`ir.string_tables`)."""
        record = dtypes.from_numpy(array.dtype)
        if record.is_string:
            raise KeyError("strings are no bytes of a constant")
        data = _flat_bytes(np.array(array, record.numpy, order="C", copy=True))
        return self.add_reader(lambda: data, record.name, array.shape)

    def add_mapped(self, buffer: Buffer, dtype: str, shape: Sequence[int]) -> Constant:
        """Adds the dense row-major bytes of `buffer` without copying them.

        The pool keeps `buffer` alive; nobody may write to it afterwards. ValueError when its
        length is not that of `shape`.
        """
        return self.add_reader(lambda: buffer, dtype, shape)

    def add_reader(self, read: Callable[[], Buffer], dtype: str, shape: Sequence[int]) -> Constant:
        """As `add_mapped`, for bytes that `read` fetches anew (and equal) each time."""
        extents = _extents(shape)
        data = _flat_bytes(read())
        expected = math.prod(extents) * dtypes.dtype(dtype).size
        if data.nbytes != expected:
            raise ValueError(
                f"{data.nbytes} bytes for a constant {dtype}{list(extents)}, which has {expected}"
            )
        if data.nbytes >= LARGE:
            key = _data_key(b"cuvil.sampled", dtype, extents, sampled(data))
            known = self._sources.get(key)
            if known is None or (isinstance(known, _Stored) and _holds(known, data)):
                return self._insert(Constant(key, dtype, extents), _Stored(read, sampled=True))
        key = _data_key(b"cuvil.data", dtype, extents, data)
        return self._insert(Constant(key, dtype, extents), _Stored(read))

    def add_recipe(
        self,
        fn: str,
        attrs: Mapping[str, Attribute],
        inputs: Sequence[Constant],
        dtype: str,
        shape: Sequence[int],
        evaluate: Evaluate,
    ) -> Constant:
        """Adds what `evaluate` computes from the arrays of `inputs`, when it is asked for.

        `fn` and `attrs` must determine the function: they and the inputs' keys are the key.
        TypeError for an attribute that is not made of None, bool, int, float, str, bytes and
        sequences of them.
        """
        extents = _extents(shape)
        for constant in inputs:
            self.get(constant.key)
        what = (
            str(fn),
            sorted((str(name), _canonical(value)) for name, value in attrs.items()),
            [constant.key for constant in inputs],
            dtypes.dtype(dtype).name,
            extents,
        )
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES, person=b"cuvil.recipe")
        digest.update(repr(what).encode())
        constant = Constant(digest.hexdigest(), dtype, extents)
        return self._insert(constant, _Recipe(fn, tuple(inputs), evaluate))

    def hash_ahead(self) -> None:
        """Begins, on a thread, with the digests that `contents` will ask for."""
        todo = [key for key, source in self._sources.items() if _is_sampled(source)]
        todo = [key for key in todo if key not in self._digests]
        if todo:
            thread = ThreadPoolExecutor(1, thread_name_prefix="cuvil-hash")
            self._digests |= {key: thread.submit(self._digest, key) for key in todo}
            thread.shutdown(wait=False)

    def contents(self, keys: Iterable[str]) -> Iterator[bytes]:
        """The digests of all large tensors that go into these constants, each once, in order.

        Keys and these tell all values, in any pool.
        """
        stack, seen = list(keys)[::-1], set[str]()
        while stack:
            key = stack.pop()
            source = self._sources[key]
            if key in seen:
                continue
            seen.add(key)
            if isinstance(source, _Recipe):
                stack += [constant.key for constant in reversed(source.inputs)]
            elif source.sampled:
                yield self._digests[key].result() if key in self._digests else self._digest(key)

    def array(self, key: str) -> np.ndarray:
        """The values, read-only; of a mapped constant a view, perhaps unaligned.

        A recipe's result may be a strided view. While recipes run, only the inputs that are still
        needed stay alive; results up to 4 MiB are kept in a cache of 32 MiB.
        """
        self.get(key)
        values: dict[str, np.ndarray] = {}
        plan = self._plan(key, values)
        uses = Counter(c.key for inputs in plan.values() for c in inputs)
        for current, inputs in plan.items():
            if current not in values:
                values[current] = self._compute(current, values)
            for constant in inputs:
                uses[constant.key] -= 1
                if not uses[constant.key]:
                    values.pop(constant.key, None)
        return values[key]

    def data(self, key: str) -> memoryview:
        """The dense row-major bytes, read-only: what a weights file holds."""
        return _flat_bytes(np.ascontiguousarray(self.array(key))).toreadonly()

    def _digest(self, key: str) -> bytes:
        source = self._sources[key]
        assert isinstance(source, _Stored)
        return sha256(_flat_bytes(source.read()))

    def _insert(self, constant: Constant, source: _Stored | _Recipe) -> Constant:
        self._sources.setdefault(constant.key, source)
        return self._constants.setdefault(constant.key, constant)

    def _plan(self, key: str, values: dict[str, np.ndarray]) -> dict[str, tuple[Constant, ...]]:
        """What to evaluate, with its inputs: inputs before users, each once, depth first.

        Puts what the cache holds into `values`. Not recursive: a chain of recipes may be longer
        than Python's stack.
        """
        plan: dict[str, tuple[Constant, ...]] = {}
        stack: list[tuple[str, tuple[Constant, ...] | None]] = [(key, None)]
        while stack:
            current, ready = stack.pop()
            if current in plan:
                continue
            if ready is not None:
                plan[current] = ready
                continue
            inputs = self._inputs(current, values)
            stack.append((current, inputs))
            stack.extend((constant.key, None) for constant in reversed(inputs))
        return plan

    def _inputs(self, key: str, values: dict[str, np.ndarray]) -> tuple[Constant, ...]:
        source = self._sources[key]
        if isinstance(source, _Stored):
            return ()
        with self._lock:
            if key not in self._recent:
                return source.inputs
            self._recent.move_to_end(key)
            values[key] = self._recent[key]
            return ()

    def _compute(self, key: str, values: Mapping[str, np.ndarray]) -> np.ndarray:
        constant, source = self._constants[key], self._sources[key]
        if isinstance(source, _Stored):
            return _as_array(source.read(), constant)
        result = np.asarray(source.evaluate([values[c.key] for c in source.inputs]))
        if result.dtype != dtypes.dtype(constant.dtype).numpy or result.shape != constant.shape:
            raise ValueError(
                f"recipe {source.fn!r} gave {result.dtype}{list(result.shape)}, "
                f"not {constant.dtype}{list(constant.shape)}"
            )
        if result.nbytes <= _CACHE_ENTRY_BYTES:
            result = self._remember(key, result)
        result = result.view()
        result.flags.writeable = False
        return result

    def _remember(self, key: str, array: np.ndarray) -> np.ndarray:
        # A view in the cache would keep alive the whole array behind it.
        kept = array if array.base is None else array.copy()
        kept.flags.writeable = False
        with self._lock:
            if key in self._recent:  # by another thread
                return self._recent[key]
            self._recent[key] = kept
            self._recent_bytes += kept.nbytes
            while self._recent_bytes > _CACHE_BYTES:
                _, dropped = self._recent.popitem(last=False)
                self._recent_bytes -= dropped.nbytes
        return kept


def _data_key(person: bytes, dtype: str, extents: tuple[int, ...], data: bytes | memoryview) -> str:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES, person=person)
    digest.update(f"{dtype}{extents}\0".encode())
    digest.update(data)
    return digest.hexdigest()


def _holds(source: _Stored, data: memoryview) -> bool:
    return same_bytes(_flat_bytes(source.read()), data)


def _is_sampled(source: _Stored | _Recipe) -> bool:
    return isinstance(source, _Stored) and source.sampled


def _extents(shape: Sequence[int]) -> tuple[int, ...]:
    extents = tuple(int(extent) for extent in shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"negative extent in shape {list(extents)}")
    return extents


def _flat_bytes(buffer: Buffer) -> memoryview:
    """`buffer`, which is dense, as one dimension of bytes; no copy."""
    if isinstance(buffer, np.ndarray):
        # ml_dtypes arrays do not speak the buffer protocol; their bytes do.
        return buffer.reshape(-1).view(np.uint8).data
    view = memoryview(buffer)
    return view if view.format == "B" and view.ndim == 1 else view.cast("B")


def _as_array(buffer: Buffer, constant: Constant) -> np.ndarray:
    numpy_dtype = dtypes.dtype(constant.dtype).numpy
    if not constant.nbytes:
        array = np.zeros(constant.shape, numpy_dtype)
    else:
        array = np.frombuffer(_flat_bytes(buffer), numpy_dtype).reshape(constant.shape)
    array.flags.writeable = False
    return array


def _canonical(value: Attribute) -> object:
    """`value` with one spelling for equal meanings, whose `repr` is exact."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Sequence):
        return tuple(_canonical(item) for item in value)
    raise TypeError(f"a recipe's attribute cannot be a {type(value).__name__}")
