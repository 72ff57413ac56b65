"""The driver: rules indexed by root, a worklist, a log of every application, a loop guard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from cuvil.errors import CompileError, Error
from cuvil.ir.build import location_name
from cuvil.ir.dims import Dim
from cuvil.ir.graph import Graph
from cuvil.ir.record import of, tensor_type
from cuvil.ir.types import shapes
from cuvil.rewrite.cse import eliminate
from cuvil.rewrite.registry import Selection, load_rules
from cuvil.rewrite.rewriter import Rewriter
from cuvil.rewrite.rule import PHASES, Result, Rule
from cuvil.rewrite.values import has_record, owner

Watch = Callable[["Application", Graph], None]
GUARD = 30  # applications per op of the graph before a phase counts as endless


@dataclass(frozen=True)
class Application:
    """The `number`-th change made to a graph, counted from 1; place: the user's name of it."""

    number: int
    rule: str
    phase: str
    place: str


@dataclass
class Report:
    """What was applied, in order."""

    applications: list[Application] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.applications)

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule was applied, the most frequent first."""
        return dict(Counter(a.rule for a in self.applications).most_common())


@dataclass(frozen=True)
class RewriteOptions:
    """How to run phases.

    stop_after: leave the graph as it is after so many applications (None: no limit). watch: called
    after every application, with the graph as it then is. after_phase: called with the name of
    every phase that has ended. phases: which, in their own order.
    """

    selection: Selection = field(default_factory=Selection)
    stop_after: int | None = None
    watch: Watch | None = None
    after_phase: Callable[[str, Graph], None] | None = None
    phases: tuple[str, ...] = PHASES


def run_phases(
    graph: Graph, options: RewriteOptions | None = None, rules: Iterable[Rule] = ()
) -> Report:
    """Rewrites a graph, phase by phase, with the rules of core and the given ones of a backend.

    The rules of `canonicalize` run in every phase: what another rule leaves behind is cleaned up
    at once. Raises OptionError for an unknown name, CompileError for a rule that fails or repeats
    without end.
    """
    options = options or RewriteOptions()
    chosen = options.selection.choose([*load_rules(), *rules])
    report = Report()
    for phase in (p for p in PHASES if p in options.phases):
        active = [r for r in chosen if r.phase in ("canonicalize", phase)]
        Driver(graph, active, phase, options, report).run()
        if options.after_phase is not None:
            options.after_phase(phase, graph)
    return report


def run_rules(graph: Graph, rules: Sequence[Rule], options: RewriteOptions | None = None) -> Report:
    """Rewrites a graph with these rules only, to a fixed point, dead code removed; no cse."""
    report = Report()
    options = options or RewriteOptions(Selection(disable=("cse",)))
    Driver(graph, rules, "", options, report).run()
    return report


class Driver:
    """Applies rules to a graph until none applies."""

    def __init__(
        self,
        graph: Graph,
        rules: Sequence[Rule],
        phase: str,
        options: RewriteOptions,
        report: Report,
    ) -> None:
        self.graph = graph
        self.phase = phase
        self.options = options
        self.report = report
        self.b = Rewriter(graph)
        self.index = _index(rules)
        self.cse = "cse" not in options.selection.disable
        self.work: list[Operation] = []
        self.queued: set[Operation] = set()
        self.gone: set[Operation] = set()
        self.limit = report.total + GUARD * (100 + sum(1 for _ in graph.ops()))

    def run(self) -> None:
        """Walks the graph again and again until a walk changes nothing."""
        before = -1
        while before < self.report.total and not self.stopped:
            before = self.report.total
            if self.cse:
                eliminate(self.graph.block, self._merge)
            self._push(reversed([op for op in self.graph.ops() if has_record(op)]))
            self._drain()

    @property
    def stopped(self) -> bool:
        """Whether the limit on applications is reached."""
        stop = self.options.stop_after
        return stop is not None and self.report.total >= stop

    def _drain(self) -> None:
        while self.work:
            op = self.work.pop()
            self.queued.discard(op)
            if op in self.gone or op.parent is None or self._is_dead(op):
                continue
            for rule in self.index.get(op.name, ()):
                if self.stopped or self._try(rule, op):
                    break

    def _push(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op not in self.queued and has_record(op):
                self.queued.add(op)
                self.work.append(op)

    def _is_dead(self, op: Operation) -> bool:
        """Erases an op that nobody reads."""
        if not of(op).pure or any(r.first_use is not None for r in op.results):
            return False
        self._erase(op)
        return True

    def _erase(self, op: Operation) -> None:
        """Erases an op; its operands' makers, and users that are now alone, are looked at again."""
        operands = list(dict.fromkeys(op.operands))
        for inner in op.walk():
            if inner is not op:
                operands += inner.operands
                self.gone.add(inner)
        self.gone.add(op)
        op.detach()  # type: ignore[no-untyped-call]
        op.erase()
        for value in operands:
            maker = owner(value)
            if maker is not None and maker not in self.gone:
                self._push([maker])
            if value.has_one_use():
                self._push(use.operation for use in value.uses)

    def _try(self, rule: Rule, op: Operation) -> bool:
        b = self.b
        b.start(op)
        try:
            result = rule.apply(b, op)
            if result is None:
                b.undo()
                return False
            pairs = self._fitting(op, result)
        except (ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
            if isinstance(error, Error):
                raise
            place = location_name(op)
            raise CompileError(f"rule '{rule.name}' failed at {place}: {error}") from error
        self._replace(pairs)
        self._log(rule.name, op)
        return True

    def _fitting(self, op: Operation, result: Result) -> dict[SSAValue, SSAValue]:
        """New values by old ones, with dims written as in the old types."""
        if isinstance(result, Mapping):
            pairs = dict(result)
        else:
            values = [result] if isinstance(result, SSAValue) else list(result or ())
            if len(values) != len(op.results):
                raise ValueError(f"{len(values)} values replace {len(op.results)}")
            pairs = dict(zip(op.results, values, strict=True))
        return {old: self._fit(old, new) for old, new in pairs.items()}

    def _fit(self, old: SSAValue, new: SSAValue) -> SSAValue:
        want, got = tensor_type(old), tensor_type(new)
        if old is new or want.dtype != got.dtype or not _may_equal(want.dims, got.dims):
            raise ValueError(f"{shapes([got])} cannot replace {shapes([want])}")
        return new if want == got else self.b.same_dims(new, old)

    def _replace(self, pairs: Mapping[SSAValue, SSAValue]) -> None:
        touched: list[Operation] = []
        for old, new in pairs.items():
            touched += [use.operation for use in old.uses]
            old.replace_all_uses_with(new)
        self._push(touched)
        self._push(reversed(self.b.made))
        for op in dict.fromkeys(owner(old) for old in pairs):
            if op is not None and all(r.first_use is None for r in op.results):
                self._erase(op)

    def _merge(self, op: Operation, first: Operation) -> bool:
        if self.stopped:
            return False
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        self._log("cse", op)
        self._erase(op)
        return True

    def _log(self, rule: str, op: Operation) -> None:
        number = self.report.total + 1
        application = Application(number, rule, self.phase, location_name(op))
        self.report.applications.append(application)
        if self.options.watch is not None:
            self.options.watch(application, self.graph)
        if number > self.limit:
            last = Counter(a.rule for a in self.report.applications[-200:]).most_common(3)
            names = ", ".join(f"'{name}' ({count} of the last 200)" for name, count in last)
            raise CompileError(
                f"rewriting does not end: phase {self.phase or 'given'} made {number} changes, "
                f"by {names}, the last at {application.place}; disable one of these rules"
            )


def _index(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    found: dict[str, list[Rule]] = {}
    for rule in rules:
        for name in rule.root_names():
            found.setdefault(f"cuvil.{name}", []).append(rule)
    return found


def _may_equal(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Whether dims agree as far as they are known."""
    return len(a) == len(b) and all(
        x == y or not (isinstance(x, int) and isinstance(y, int)) for x, y in zip(a, b, strict=True)
    )
