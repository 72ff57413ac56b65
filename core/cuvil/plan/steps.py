"""What a program does, before buffers have offsets: references to memory, and steps in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cuvil.ir.dims import Dim

HOST = "host"  # the memory space and the queue of the host itself


@dataclass(frozen=True)
class Argument:
    """The data of an input (index < inputs) or an output."""

    index: int


@dataclass(frozen=True)
class Weight:
    """A constant of the pool, in the weights of a memory space."""

    key: str
    space: str = HOST


@dataclass(frozen=True)
class Arena:
    """A planned buffer, by number."""

    number: int


@dataclass(frozen=True)
class Run:
    """The run itself, for kernels that make strings: no memory of the program's."""


@dataclass(frozen=True)
class View:
    """A part of another buffer from a byte offset on."""

    base: Ref
    offset: Dim


Ref = Argument | Weight | Arena | Run | View


def base_of(ref: Ref) -> Ref:
    """The buffer that a reference points into."""
    while isinstance(ref, View):
        ref = ref.base
    return ref


@dataclass(frozen=True)
class Launch:
    """Runs a kernel on buffers. tasks 0: the kernel's template counts them. A device's kernel goes
    on its queue, with the values of dims."""

    kernel: str
    buffers: tuple[Ref, ...]
    tasks: Dim
    site: str
    queue: str = HOST
    dims: tuple[Dim, ...] = ()


@dataclass(frozen=True)
class Copy:
    """Copies bytes between buffers; into and out of a device's memory on its queue."""

    bytes: Dim
    source: Ref
    target: Ref
    queue: str = HOST
    site: str = ""


@dataclass(frozen=True)
class Signal:
    """Numbers all that is on a queue so far."""

    queue: str
    ticket: int


@dataclass(frozen=True)
class Wait:
    """The host waits for what a ticket stands for."""

    queue: str
    ticket: int


@dataclass(frozen=True)
class Choose:
    """Runs one of two lists of steps by a bool element."""

    cond: Ref
    then: Sequence[Step]
    orelse: Sequence[Step]


@dataclass(frozen=True)
class Repeat:
    """Runs steps for symbol = 0 .. trip - 1, as long as a bool element (None: always) is true."""

    symbol: str
    trip: Dim
    body: Sequence[Step]
    cond: Ref | None = None


@dataclass(frozen=True)
class Check:
    """Fails the run, naming the site, unless left == right (equal) or left >= right."""

    left: Dim
    right: Dim
    equal: bool
    site: str


@dataclass(frozen=True)
class Bind:
    """Binds a symbol to an i64 element; outside of [least, greatest] the run fails at the site."""

    symbol: str
    source: Ref
    least: int
    greatest: int
    site: str


@dataclass(frozen=True)
class Grow:
    """Makes a growing buffer at least so large; keep: with what it holds."""

    buffer: Arena
    bytes: Dim
    keep: bool = False


@dataclass(frozen=True)
class Give:
    """Hands a growing buffer to the caller as the data of an output without upper bound."""

    index: int
    buffer: Arena


Step = Launch | Copy | Signal | Wait | Choose | Repeat | Check | Bind | Grow | Give


@dataclass
class ArenaBuffer:
    """A buffer of an arena and the steps between which it holds something.

    bytes: of symbols of inputs. grows: it has no upper bound, and is not in the arena."""

    bytes: Dim
    first: int
    last: int
    space: str = HOST
    pinned: list[int] = field(default_factory=list)
    grows: bool = False


def launches(steps: Sequence[Step]) -> Iterator[Launch]:
    """Every launch, nested ones included."""
    for step in steps:
        if isinstance(step, Launch):
            yield step
        elif isinstance(step, Choose):
            yield from launches(step.then)
            yield from launches(step.orelse)
        elif isinstance(step, Repeat):
            yield from launches(step.body)
