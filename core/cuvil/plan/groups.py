"""Partition of a block into kernels: which values are stored, which are computed where used.

A *root* is an op whose results are stored in buffers. Every other op is inlined into the kernel
of the one root that it feeds (free ops into any number of kernels). An *anchor* is an op that
writes its elements itself (a template or a `kernel` lowering); a pointwise root with the same
shape may absorb one, and then becomes its epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from cuvil.ir.dims import known_equal, known_ge
from cuvil.ir.graph import ReturnOp, YieldOp
from cuvil.ir.names import Block, Operation
from cuvil.ir.record import Primitive, of, tensor_type

DEEPEST = 64  # ops inlined into one another: what walks a kernel's ops does so recursively
MOST_COPIES = 8  # indices at which a kernel computes elements of a cheap op
FREE = frozenset({"dims", "iota", "broadcast"})
EXPENSIVE = frozenset(
    [
        "exp",
        "exp2",
        "log",
        "log1p",
        "expm1",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "pow",
        "sigmoid",
        "elu",
        "selu",
        "celu",
        "gelu",
        "gelu_tanh",
        "silu",
        "softplus",
        "mish",
        "string_find",
        "string_match",
        "string_concat",
        "string_case",
        "string_count",
        "string_tokens",
    ]
)


IsAway = Callable[[Operation], bool]


def _nowhere(op: Operation) -> bool:
    return False


class Templates(Protocol):
    """What the partition must know of templates."""

    def is_template(self, op: Operation) -> bool:
        """Whether a template computes `op`."""
        ...

    def reads_through(self, op: Operation, consumer: Operation) -> bool:
        """Whether the consumer's template reads the operand of `op` (a view) in its place."""
        ...


@dataclass(eq=False)
class Group:
    """One kernel: the root's results are what it stores; anchor is the op that drives its loops
    (None: the loops run over the root's elements). away: a device computes it, the op alone."""

    root: Operation
    anchor: Operation | None = None
    template: bool = False
    members: list[Operation] = field(default_factory=list)
    away: bool = False

    @property
    def is_alias(self) -> bool:
        """The root only renames its operand's buffer."""
        return self.root.name == "cuvil.reshape"

    @property
    def is_control(self) -> bool:
        return of(self.root).regions


def has_record(op: Operation) -> bool:
    return hasattr(op, "record")


def _reads_stored(op: Operation) -> bool:
    """Whether an op of the host program reads its operands in memory."""
    return of(op).regions or of(op).name == "bind"


def is_pointwise(op: Operation) -> bool:
    return has_record(op) and "pointwise" in of(op).tags


def is_opaque(op: Operation) -> bool:
    """Whether an op is a kernel by itself, on dense buffers of its own."""
    return has_record(op) and "opaque" in of(op).tags


def is_free(op: Operation) -> bool:
    """Whether an op may be inlined wherever it is used: its operands are constants."""
    return op.name.removeprefix("cuvil.") in FREE and all(
        isinstance(v.owner, Operation) and v.owner.name == "cuvil.constant" for v in op.operands
    )


def inlined(group: Group) -> list[Operation]:
    """The ops that a group computes: its members, and free ops that are at home elsewhere."""
    found = dict.fromkeys(group.members)
    for op in group.members:
        owners = [v.owner for v in op.operands]
        found.update({o: None for o in owners if isinstance(o, Operation) and is_free(o)})
    return list(found)


def users(op: Operation) -> Iterator[Operation]:
    """Each op that uses a result of `op`."""
    for result in op.results:
        for use in result.uses:
            yield use.operation


def apart(group: Group) -> list[Group]:
    """The anchor as a kernel of its own, then the consumers that were fused behind it."""
    anchor = group.anchor
    assert anchor is not None and anchor is not group.root

    def behind(op: Operation, stop: Operation | None) -> list[Operation]:
        """The members that an op needs, itself the last; stop: one not to look at."""
        needed = {op}
        for member in reversed(group.members):
            if member is not stop and not needed.isdisjoint(users(member)):
                needed.add(member)
        return [member for member in group.members if member in needed]

    first = Group(anchor, anchor, group.template, behind(anchor, None))
    return [first, Group(group.root, None, False, behind(group.root, anchor))]


def partition(block: Block, templates: Templates, is_away: IsAway = _nowhere) -> list[Group]:
    """The groups of a block, in an order in which they can run. is_away: for devices' ops."""
    return _Partition(block, templates, is_away).run()


class _Partition:
    def __init__(self, block: Block, templates: Templates, is_away: IsAway) -> None:
        self.block = block
        self.is_away = is_away
        self.templates = templates
        self.is_template = templates.is_template
        self.through: set[Operation] = set()  # views that a template reads through
        self.group: dict[Operation, Group] = {}
        self.repeated: set[Operation] = set()  # inlined where an element is asked for repeatedly
        self.depth: dict[Operation, int] = {}  # between an op and the root that it is inlined into
        self.places: dict[Operation, set[int]] = {}  # at how many indices a kernel asks for it

    def run(self) -> list[Group]:
        roots: list[Group] = []
        for op in reversed(list(self.block.ops)):
            if isinstance(op, ReturnOp | YieldOp) or op.name == "cuvil.constant":
                continue
            home = self._home(op)
            if home is None:
                home = self._new_group(op)
                roots.append(home)
            else:
                self.depth[op] = self._depth(op)
                self.places[op] = self._places(op)
            self.group[op] = home
            home.members.append(op)
        for group in roots:
            group.members.reverse()
        return roots[::-1]

    def _new_group(self, op: Operation) -> Group:
        record = of(op)
        if self.is_away(op):
            return Group(op, away=True)
        template = self.is_template(op)
        anchored = template or (record.kernel is not None)
        return Group(op, op if anchored else None, template)

    def _home(self, op: Operation) -> Group | None:
        """The group into which `op` is inlined, or None where it must be stored."""
        record, consumers = of(op), list(users(op))
        if record.regions or len(op.results) != 1 or op.name == "cuvil.reshape":
            return None
        if self.is_away(op) or any(self.group[c].away for c in consumers if c in self.group):
            return None
        if is_opaque(op) or any(map(is_opaque, consumers)):
            return None
        local = all(has_record(c) and c.parent is self.block for c in consumers)
        if not consumers or not local or any(_reads_stored(c) for c in consumers):
            return None
        if self._depth(op) > DEEPEST or len(self._places(op)) > _most_copies(op):
            return None
        homes = {id(self.group[c]): self.group[c] for c in consumers}
        if len(homes) != 1:
            return self._free_home(op, list(homes.values()))
        home = next(iter(homes.values()))
        if len(consumers) == 1 and self.templates.reads_through(op, consumers[0]):
            self.through.add(op)
            return home
        if self.is_template(op) or record.kernel is not None:
            return self._absorbed(op, home)
        if home.anchor is not None and self._narrows_anchor(op):
            return None
        if record.element is None or not self._pullable(op, consumers, home):
            return None
        return home

    def _narrows_anchor(self, op: Operation) -> bool:
        """Whether what an anchor gives, which would be stored, becomes narrower here."""
        bits = [tensor_type(value).dtype.bits for value in (*op.operands, *op.results)]
        if bits[-1] >= bits[0]:  # of an iota or the like, which has no operands, too
            return False
        at: Operation = op
        while is_pointwise(at) and at.operands:
            first = at.operands[0]
            owner = first.owner
            if not isinstance(owner, Operation) or len(list(first.uses)) != 1:
                return False
            at = owner
            if has_record(at) and (self.is_template(at) or of(at).kernel is not None):
                return tensor_type(op.results[0]).dims == tensor_type(first).dims
        return False

    def _depth(self, op: Operation) -> int:
        return 1 + max(self.depth.get(consumer, 0) for consumer in users(op))

    def _places(self, op: Operation) -> set[int]:
        """The indices, told apart by a hash, at which an element of `op` is asked for.

        Element-wise consumers ask at their own; any other at one more for each of its own, so that
        what is read through views twice, level after level, would double at each.
        """
        mine, found = tensor_type(op.results[0]).dims, set[int]()
        for use in op.results[0].uses:
            consumer = use.operation
            alike = is_pointwise(consumer) and tensor_type(consumer.results[0]).dims == mine
            for place in self.places.get(consumer, {0}):
                found.add(place if alike else hash((place, consumer, use.index)))
        return found

    def _free_home(self, op: Operation, homes: list[Group]) -> Group | None:
        """A free op may be inlined in several kernels; its group here is the last one."""
        if not is_free(op):
            return None
        if any(h.template for h in homes) and not self._fits_epilogue(op):
            return None
        return homes[0] if all(self._may_pull(op, c) for c in users(op)) else None

    def _pullable(self, op: Operation, consumers: list[Operation], home: Group) -> bool:
        if home.template and home.anchor is not None and not self._fits_epilogue(op):
            return False
        if not all(self._may_pull(op, c) for c in consumers):
            return False
        repeated = any(c in self.repeated or self._repeats(op, c) for c in consumers)
        if repeated and of(op).name not in FREE:
            if "reduction" in of(op).tags or of(op).name in EXPENSIVE:
                return False
            self.repeated.add(op)
        return "reduction" not in of(op).tags

    def _fits_epilogue(self, op: Operation) -> bool:
        """Epilogues work on rows of vectors: pointwise with broadcasting, nothing that permutes."""
        kinds = [tensor_type(v).dtype for v in (*op.operands, *op.results)]
        moves = is_pointwise(op) or of(op).name == "broadcast"
        return moves and not any(kind.is_string for kind in kinds)

    def _may_pull(self, op: Operation, consumer: Operation) -> bool:
        """Whether the consumer's lowering asks for each operand element about once."""
        record = of(consumer)
        if self.is_template(consumer) or consumer in self.through:
            return False
        if consumer.name == "cuvil.reshape":
            return False
        if consumer.name in ("cuvil.concat", "cuvil.pad"):
            return of(op).name in FREE  # what is stored can be written inside their results
        if record.tags & {"pointwise", "view", "reduction"}:
            return True
        return of(op).name in FREE or _norm_input(record, op, consumer)

    def _repeats(self, op: Operation, consumer: Operation) -> bool:
        mine, theirs = tensor_type(op.results[0]).size, tensor_type(consumer.results[0]).size
        if "reduction" in of(consumer).tags:
            return False
        return not (known_equal(mine, theirs) or known_ge(mine, theirs))

    def _absorbed(self, op: Operation, home: Group) -> Group | None:
        """The pointwise root that takes the anchor `op` in, where all between is pointwise."""
        if home.anchor is not None or not is_pointwise(home.root):
            return None
        shape = tensor_type(op.results[0]).dims
        at = op
        while at is not home.root:
            following = list(users(at))
            if any(f is not following[0] for f in following) or not is_pointwise(following[0]):
                return None
            at = following[0]
            if tensor_type(at.results[0]).dims != shape:
                return None
        template = self.is_template(op)
        if template and not all(map(self._fits_epilogue, inlined(home))):
            return None
        home.anchor, home.template = op, template
        return home


def _most_copies(op: Operation) -> int:
    """How often a kernel may compute an element rather than have it stored."""
    if of(op).name in FREE:
        return MOST_COPIES**2
    return 2 if of(op).name in EXPENSIVE else MOST_COPIES


def _norm_input(record: Primitive, op: Operation, consumer: Operation) -> bool:
    """Row kernels read their data operand twice or thrice: cheap pointwise producers only."""
    return (
        "norm" in record.tags
        and is_pointwise(op)
        and of(op).name not in EXPENSIVE
        and consumer.operands[0] is op.results[0]
    )
