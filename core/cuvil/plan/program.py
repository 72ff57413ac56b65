"""A graph to steps: which kernels run, in what order, on which buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cuvil.ir.build import constant_array, location_name
from cuvil.ir.dims import symbol, symbols
from cuvil.ir.dims_upper import Top, upper_bound
from cuvil.ir.graph import Graph
from cuvil.ir.names import Block, Operation, Value
from cuvil.ir.record import attrs_of, tensor_type
from cuvil.plan.border import fills_by_runs, pad_kernel
from cuvil.plan.conditions import Condition, conditions
from cuvil.plan.devices import Assignment
from cuvil.plan.groups import Group, apart, partition
from cuvil.plan.in_place import overwritten
from cuvil.plan.kernel import Draft, Kernel, Kernels, Packed, reads_of, signature
from cuvil.plan.layout import start_of
from cuvil.plan.loops import ReadsBack, anchor_kernel, concat_kernel, pull_kernel
from cuvil.plan.memory import Memory, nbytes
from cuvil.plan.placement import find_layouts
from cuvil.plan.produced import ENDLESS, bind_steps, ranges_of, tops_of
from cuvil.plan.promises import promise_steps
from cuvil.plan.schedule import scheduled
from cuvil.plan.steps import (
    Arena,
    Argument,
    Check,
    Choose,
    Copy,
    Give,
    Launch,
    Ref,
    Repeat,
    Run,
    Step,
    View,
    Weight,
)
from cuvil.plan.templates import Templates
from cuvil.plan.transfers import Transfers


@dataclass
class Planned:
    """A program before offsets: kernels, steps, memory. moved: some kernel runs at another place
    than the graph's order gives it."""

    kernels: Kernels
    steps: list[Step] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    moved: bool = False


def plan_steps(
    graph: Graph,
    assignment: Assignment | None = None,
    templates: Templates | None = None,
    kernels: Kernels | None = None,
    prefix: str = "",
    dynamic: bool = False,
    schedule: bool = False,
) -> Planned:
    """Partitions the graph, builds its kernels, orders its steps, assigns its buffers.

    prefix: of the names of kernels that are not in `kernels` already. dynamic: see `Memory`.
    schedule: whether kernels run in the order of `plan.schedule`, else in the graph's."""
    planner = _Planner(graph, assignment or Assignment(), templates or Templates(),
                       kernels or Kernels(), prefix, schedule)  # fmt: skip
    memory = planner.planned.memory
    memory.dynamic = dynamic
    for i, value in enumerate(graph.inputs):
        memory.places[value] = Argument(i)
    targets = [Argument(len(graph.inputs) + i) for i in range(len(graph.outputs))]
    steps = planner.block(graph.block, graph.outputs, targets)
    planner.planned.steps = [*promise_steps(graph), *steps]
    return planner.planned


class _Planner:
    def __init__(
        self,
        graph: Graph,
        assignment: Assignment,
        templates: Templates,
        kernels: Kernels,
        prefix: str,
        schedule: bool,
    ) -> None:
        self.pool = graph.pool
        tops = tops_of(graph)
        self.ranges = ranges_of(graph, tops)
        self.checked: set[Condition] = set()
        self.known = set(graph.symbols())  # symbols that have a value by now
        self.waiting: dict[Condition, Operation] = {}  # conditions on symbols still without one
        self.planned = Planned(kernels)
        self.schedule = schedule
        self.memory = self.planned.memory
        self.memory.tops, self.memory.ranges = tops, graph.bounds
        self.given = set(_unbounded(graph, tops))
        self.assignment = assignment
        self.templates = templates
        self.transfers = Transfers(self.memory)
        self.layouts = self.memory.layouts
        self.done: set[Operation] = set()  # ops whose kernels have been launched
        self.built, self.packers, self.prefix = kernels.by_signature, kernels.packers, prefix

    # -- blocks --------------------------------------------------------------------------------
    def block(self, block: Block, values: Sequence[Value], targets: Sequence[Ref]) -> list[Step]:
        """The steps of a block that leave `values` in `targets`."""
        claimed: list[Ref | None] = []
        for value, target in zip(values, targets, strict=True):
            source = _stored(value)
            mine = isinstance(source.owner, Operation) and source.owner.parent is block
            fresh = mine and source.owner.name != "cuvil.constant"  # type: ignore[union-attr]
            fresh = fresh and target not in self.given
            claimed.append(target if fresh and source not in self.memory.wanted else None)
            if claimed[-1] is not None:
                self.memory.wanted[source] = target
        steps: list[Step] = self._checks(block)
        groups = partition(block, self.templates, self._is_away)
        find_layouts(block, groups, self.layouts, self.templates)
        groups = self._in_order(block, groups)
        with self.transfers.inside(steps):
            for group in groups:
                self.memory.tick()
                self._group(group, steps)
                self.done.update(group.members)
            self.memory.tick()
            for value, target, direct in zip(values, targets, claimed, strict=True):
                if target in self.given:
                    self._give(value, target, steps)
                elif direct is None:
                    self._copy(value, self.memory.touch(target), steps)
                elif self._only_away(_stored(value)):
                    self.transfers.download(_stored(value))
        return steps

    def _in_order(self, block: Block, groups: list[Group]) -> list[Group]:
        if not self.schedule:
            return groups
        found = scheduled(block, groups, self.layouts, self.memory, self.pool)
        self.planned.moved |= found != groups
        return found

    def _is_away(self, op: Operation) -> bool:
        return self.assignment.device_of(op) is not None

    def _only_away(self, value: Value) -> bool:
        owner = value.owner
        here = value in self.memory.places
        return not here and isinstance(owner, Operation) and self._is_away(owner)

    def _checks(self, block: Block) -> list[Step]:
        """What the extents of a block's tensors must satisfy before it runs; once is enough."""
        found: dict[Condition, Operation] = {}
        for op in block.ops:
            for condition in conditions(op, self.ranges):
                if condition not in self.checked:
                    found.setdefault(condition, op)
        self.checked.update(found)
        self.waiting |= found
        return self._checks_now()

    def _checks_now(self) -> list[Step]:
        """Checks of conditions whose symbols have values by now."""
        ready = {
            c: op
            for c, op in self.waiting.items()
            if self.known.issuperset((*symbols(c.left), *symbols(c.right)))
        }
        self.waiting = {c: op for c, op in self.waiting.items() if c not in ready}
        return [
            Check(*c, f"check\t{location_name(op)}: the extents must satisfy {c}")
            for c, op in ready.items()
        ]

    def _inner(self, block: Block, values: Sequence[Value], targets: Sequence[Ref]) -> list[Step]:
        """The steps of a nested block; what it checks and binds does not hold behind it."""
        checked, known, waiting = set(self.checked), set(self.known), dict(self.waiting)
        steps = self.block(block, values, targets)
        self.checked, self.known, self.waiting = checked, known, waiting
        return steps

    # -- extents that a run finds --------------------------------------------------------------
    def _bind(self, op: Operation, steps: list[Step]) -> None:
        steps += bind_steps(op, self.place(op.operands[0]))
        self.known.add(attrs_of(op).symbol)
        steps += self._checks_now()

    def _append(self, steps: list[Step], step: Step) -> None:
        """Appends a step, after making its growing buffers large enough."""
        steps += self.memory.pending
        self.memory.pending.clear()
        steps.append(step)

    def _copy(self, value: Value, target: Ref, steps: list[Step]) -> None:
        self.memory.reach(target, nbytes(value))
        self._append(steps, Copy(nbytes(value), self.place(value), target))

    def _give(self, value: Value, target: Ref, steps: list[Step]) -> None:
        assert isinstance(target, Argument)
        ref = self.place(value)
        if not self.memory.grows(ref):
            ref = self.memory.new(nbytes(value), grows=True)
            self._copy(value, ref, steps)
        assert isinstance(ref, Arena)
        self._append(steps, Give(target.index, ref))

    def place(self, value: Value) -> Ref:
        """Where a stored value or a constant lies in host memory, ready to be read."""
        owner = value.owner
        if value not in self.memory.places and isinstance(owner, Operation):
            inside = self.layouts.get(value)
            if inside is not None:
                size = tensor_type(value).dtype.size
                start = start_of(value, inside) * size
                self.transfers.found(value, View(self.place(inside.parent), start))
            elif owner.name == "cuvil.constant":
                self.memory.places[value] = Weight(self._key(owner))
            elif owner.name == "cuvil.reshape":
                self.transfers.found(value, self.place(owner.operands[0]))
            else:
                self.transfers.download(value)
        ref = self.memory.touch(self.memory.places[value])
        self.transfers.settle(ref)
        return ref

    def _place_away(self, value: Value, space: str) -> Ref:
        """Where it lies in a device's memory."""
        value = _stored(value)
        owner, away = value.owner, self.memory.away
        if (space, value) not in away:
            if isinstance(owner, Operation) and owner.name == "cuvil.constant":
                away[space, value] = Weight(self._key(owner), space)
            else:
                self.transfers.upload(value, self.place(value), space)
        return self.memory.touch(away[space, value])

    def _key(self, constant: Operation) -> str:
        attrs = attrs_of(constant)
        return attrs.key or self.pool.add_array(constant_array(constant, self.pool)).key

    def _group(self, group: Group, steps: list[Step]) -> None:
        if group.is_control:
            self._control(group.root, steps)
        elif group.root.name == "cuvil.bind":
            self._bind(group.root, steps)
        elif group.root.name == "cuvil.require":
            pass  # it is one of the block's checks
        elif group.is_alias:
            if not self._only_away(_stored(group.root.operands[0])):
                self.memory.places[group.root.results[0]] = self.place(group.root.operands[0])
        elif group.away:
            self._launch_away(group, steps)
        elif not self._in_place_already(group.root):
            for part in self._buildable(group):
                self._launch(part, steps)

    def _in_place_already(self, op: Operation) -> bool:
        """Whether nothing is left to do: a slice that is read where it lies, a concatenation whose
        parts have all been written inside it."""
        if op.name == "cuvil.slice":
            return self.layouts.get(op.results[0]) is not None
        parts = self.layouts.parts(op.results[0])
        return op.name == "cuvil.concat" and all(v in parts for v in op.operands)

    def _destination(self, value: Value) -> Ref:
        """Where a value that is about to be computed goes."""
        inside = self.layouts.get(value)
        if inside is None:
            return self.memory.destination(value)
        parent = self._destination(inside.parent)
        size = tensor_type(value).dtype.size
        self.memory.places[value] = View(parent, start_of(value, inside) * size)
        return self.memory.touch(self.memory.places[value])

    # -- kernels -------------------------------------------------------------------------------
    def _buildable(self, group: Group) -> list[Group]:
        """The group, or anchor and consumers apart where they cannot be one kernel."""
        if group.anchor is None:
            return [group]
        try:
            self._kernel(group)
        except ReadsBack:
            return apart(group)
        return [group]

    def _kernel(self, group: Group, over: Value | None = None) -> Kernel:
        """The group's kernel; over: the operand whose buffer takes the result."""
        key = (signature(group, self.pool, self.layouts), over and self._reads(group).index(over))
        if key not in self.built:
            anchor = group.anchor or group.root
            name = f"{self.prefix}k{len(self.built)}_{anchor.name.removeprefix('cuvil.')}"
            kernel = self._builder(group)(Draft(group, self.pool, self.layouts, over), name)
            self.built[key] = kernel
            self.planned.kernels.ops[name] = kernel.op
        return self.built[key]

    def _reads(self, group: Group) -> list[Value]:
        return reads_of(group, self.pool, self.layouts)

    def _launch(self, group: Group, steps: list[Step]) -> None:
        reads: list[Ref] = []
        values = self._reads(group)
        over = overwritten(group, values, self.layouts, self.memory, self.done)
        if over is not None and self.transfers.leaves(self.memory.places[over]):
            over = None
        kernel = self._kernel(group, over)
        site = f"{kernel.name}\t{_origin(group)}"
        values += [values[i] for i in kernel.twins]
        for i, value in enumerate(values):
            packing = kernel.packed.get(i)
            if packing is not None:
                reads.append(self._packed(value, packing, site, steps))
            else:
                reads.append(self.place(value))
        if over is not None:
            self.memory.places[group.root.results[0]] = self.memory.places[over]
        writes = [self._destination(v) for v in group.root.results if over is None]
        room = [Run() if size is None else self.memory.new(size) for _, size in kernel.room]
        launch = Launch(kernel.name, (*reads, *writes, *room), kernel.tasks, site)
        self._append(steps, launch)

    def _launch_away(self, group: Group, steps: list[Step]) -> None:
        device, name, kernel = self.assignment.kernel(group.root)
        space, results = device.name, group.root.results
        reads = [self._place_away(v, space) for v in group.root.operands]
        for value in results:
            self.memory.away[space, value] = self.memory.new(nbytes(value), space)
        writes = [self.memory.away[space, v] for v in results]
        site = f"{name}\t{_origin(group)}"
        self.transfers.signal(space)
        steps.append(Launch(name, (*reads, *writes), 0, site, space, kernel.dims))

    def _packed(self, value: Value, p: Packed, site: str, steps: list[Step]) -> Ref:
        owner = value.owner
        if isinstance(owner, Operation) and owner.name == "cuvil.constant":
            return Weight(p.constant(self.pool.get(self._key(owner)), self.pool).key)
        if p not in self.packers:
            name = f"{self.prefix}pack{len(self.packers)}"
            op, tasks = p.kernel(name)
            self.planned.kernels.ops[name] = op
            self.packers[p] = (name, tasks)
        name, tasks = self.packers[p]
        target = self.memory.new(p.size * tensor_type(value).dtype.size)
        nodes = site.split("\t")[1]
        launch = Launch(name, (self.place(value), target), tasks, f"{name}\t{nodes}")
        self._append(steps, launch)
        return target

    def _builder(self, group: Group) -> Callable[[Draft, str], Kernel]:
        if group.template:
            return self.templates.kernel
        if group.root.name == "cuvil.concat":
            return concat_kernel
        if group.root.name == "cuvil.pad" and fills_by_runs(group.root):
            return pad_kernel
        return anchor_kernel if group.anchor is not None else pull_kernel

    # -- control -------------------------------------------------------------------------------
    def _control(self, op: Operation, steps: list[Step]) -> None:
        for operand in op.operands:
            self.place(operand)
        self.transfers.settle_all()
        if op.name == "cuvil.if":
            self._if(op, steps)
        else:
            self._loop(op, steps)

    def _if(self, op: Operation, steps: list[Step]) -> None:
        cond = self.place(op.operands[0])
        targets = [self.memory.home(r) for r in op.results]
        branches = []
        for region in op.regions:
            block = region.block
            assert block.last_op is not None
            branches.append(self._inner(block, block.last_op.operands, targets))
            for ref in targets:
                self.memory.touch(ref)
        steps.append(Choose(cond, branches[0], branches[1]))

    def _loop(self, op: Operation, steps: list[Step]) -> None:
        attrs, block = attrs_of(op), op.regions[0].block
        count = len(op.operands)
        for operand, result, arg in zip(op.operands, op.results, block.args, strict=False):
            state = self.memory.home(result)
            self._copy(operand, state, steps)
            self.memory.places[arg] = state
        self.memory.tick()
        start = self.memory.step
        self.memory.loops.append(start)
        assert block.last_op is not None
        yielded = block.last_op.operands
        following = [self.memory.new(nbytes(v)) for v in yielded[:count]]
        self.memory.pending.clear()  # the body makes them large enough
        counter = symbol(attrs.symbol)
        stacks = [
            View(self.memory.home(r), counter * nbytes(v))
            for r, v in zip(op.results[count:], yielded[count:], strict=True)
        ]
        self.memory.tick()
        known = set(self.known)
        self.known.add(attrs.symbol)
        body = self._inner(block, yielded, [*following, *stacks])
        self.known = known
        for value, source, arg in zip(yielded, following, block.args, strict=False):
            self.memory.touch(source)
            state = self.place(arg)
            self.memory.reach(state, nbytes(value))
            self._append(body, Copy(nbytes(value), source, state))
        self.memory.tick()
        self.memory.close_loop(start)
        for result in op.results:
            self.memory.touch(self.memory.places[result])
        cond = self.memory.touch(self.memory.places[block.args[0]]) if attrs.early else None
        trip = ENDLESS if attrs.trip is None else attrs.trip
        steps.append(Repeat(attrs.symbol, trip, body, cond))


def _unbounded(graph: Graph, tops: Mapping[str, Top]) -> Iterator[Ref]:
    """Outputs with an extent that has no upper bound: the run itself finds memory for them."""
    for i, value in enumerate(graph.outputs, len(graph.inputs)):
        if any(upper_bound(d, tops, graph.bounds) is None for d in tensor_type(value).dims):
            yield Argument(i)


def _stored(value: Value) -> Value:
    """The value whose buffer a value shares."""
    while isinstance(value.owner, Operation) and value.owner.name == "cuvil.reshape":
        value = value.owner.operands[0]
    return value


def _origin(group: Group) -> str:
    """Names of the user's nodes that a kernel computes."""
    named = [op for op in group.members if op.record is not None]  # type: ignore[attr-defined]
    return ", ".join(dict.fromkeys(location_name(op) for op in named))
