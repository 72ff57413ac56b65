"""What the pipeline asks while it compiles: by records, else by measuring, else by costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cuvil.codegen.build import is_template
from cuvil.codegen.kernel_table import row_for
from cuvil.codegen.slots import SlotTable
from cuvil.engine.cache_versions import compiler_versions
from cuvil.engine.cached import open_store
from cuvil.errors import OptionError
from cuvil.ir import nest
from cuvil.ir.graph import Graph
from cuvil.ir.names import Operation
from cuvil.ir.nest_build import renamed
from cuvil.ir.record import tensor_type
from cuvil.ir.text import print_ir
from cuvil.pipeline import Progress, Setting
from cuvil.plan.plan import Plan
from cuvil.plan.templates import Templates, question
from cuvil.tune.extents import size_at
from cuvil.tune.measure import Clock, fastest
from cuvil.tune.records import Records, choice_of, text_of
from cuvil.tune.trials import Trial, load_trials, trial_of_op, trials_of
from cuvil.tune.whole import gain_of, name_of, runs_on_zeros

MEASURED_S = 0.6  # for one question, beside compiling what it compares
WHOLE_S = 3.0  # for the model
_WHOLE = ("as by costs", "tuned")

Candidates = Mapping[str, tuple[Trial, Sequence[int]]]


@dataclass(frozen=True)
class Asked:
    """One question. names: of the answers, that of costs first. candidates: makes what is timed.
    weight: about how much of the model's time it is for."""

    text: str
    names: Sequence[str]
    candidates: Callable[[], Candidates]
    weight: int


@dataclass
class Tuner:
    """Answers what the planner and the generators decide by costs, within a budget of seconds.

    A question costs some compiles of one kernel each; those that matter most come first, and when
    the budget is spent the rest is left to costs. `gains` says how many times faster than by costs
    each kernel was that got another answer, `known` how many answers came from records.
    """

    seconds: float
    progress: Progress = lambda stage: None
    clock: Clock = time.perf_counter
    gains: list[float] = field(default_factory=list)
    asked: int = 0
    known: int = 0
    left: int = 0
    kept: bool = True
    _deadline: float | None = None

    def templates(
        self, graphs: Iterable[Graph], templates: Templates, setting: Setting
    ) -> Templates:
        """The templates with the ways of ops that can be computed in several."""
        found: dict[str, Asked] = {}
        for op in (op for graph in graphs for op in graph.ops() if _known(op)):
            names = templates.ways(op)
            if names and (key := question(op)) not in found:
                found[key] = Asked(key, names, _of_op(op, templates, names), _work(op))
        return Templates(templates.templates, self._answers(found, setting))

    def choices(self, plan: Plan, setting: Setting) -> dict[str, tuple[int, ...]]:
        """For kernels that can be cut in several ways: name -> the row's numbers."""
        found: dict[str, Asked] = {}
        for name, (trial, count) in trials_of(plan).items():
            names = _cuts(trial, plan, setting)
            if len(names) > 1:
                weight = trial.bytes * count
                found[name] = Asked(_text(trial), names, _of_kernel(trial, names), weight)
        answers = self._answers(found, setting)
        if not setting.here and self.asked and not self.known:
            raise OptionError(
                f"tune measures on this machine, which is not {setting.target}: compile there, or "
                "bring its cache folder (CUVIL_CACHE_DIR), or leave tune out"
            )
        return {name: choice_of(answer) for name, answer in answers.items()}

    def is_better(
        self, plan: Plan, choices: Mapping[str, Sequence[int]], usual: Plan, setting: Setting
    ) -> bool:
        """Whether the whole model is at least as fast as by costs: neighbours may see to it that it
        is not. Left open, and so true, where the range of an input's extent has no end."""
        if not setting.here or not runs_on_zeros(plan):
            return True
        self.progress("tune: the whole model")
        records, question = self._records(setting), name_of(plan, choices, setting)
        found = records.find(question, _WHOLE)
        if found is None:
            gain = gain_of((plan, choices), usual, setting, WHOLE_S, self.clock)
            found = _WHOLE[gain >= 1]
            records.keep(question, found, gain)
        self.kept = found == _WHOLE[True]
        return self.kept

    def _records(self, setting: Setting) -> Records:
        build = f"{setting.variant.name} {setting.variant.facts} {setting.opt_level}"
        versions = compiler_versions([setting.backend.package])
        return Records(open_store(), build, versions, anywhere=not setting.here)

    def _answers(self, questions: Mapping[str, Asked], setting: Setting) -> dict[str, str]:
        """The answers that are not those of costs."""
        records = self._records(setting)
        order = sorted(questions, key=lambda key: -questions[key].weight)
        answers: dict[str, str] = {}
        for number, key in enumerate(order, start=1):
            asked = questions[key]
            self.progress(f"tune {number}/{len(order)}")
            answer = self._answer(asked, records, setting)
            if answer != asked.names[0]:
                answers[key] = answer
        return answers

    def _answer(self, asked: Asked, records: Records, setting: Setting) -> str:
        self.asked += 1
        known = records.find(asked.text, asked.names)
        if known is not None:
            self.known += 1
            return known
        if not setting.here or self._spent():
            self.left += 1
            return asked.names[0]
        candidates = asked.candidates()
        answer, gain = asked.names[0], 1.0
        if asked.names[0] in candidates and len(candidates) > 1:
            calls = load_trials(candidates, setting)
            answer, gain = fastest(calls[1], calls[max(calls)], MEASURED_S, self.clock)
        if gain > 1:
            self.gains.append(gain)
        records.keep(asked.text, answer, gain)
        return answer

    def _spent(self) -> bool:
        now = self.clock()
        if self._deadline is None:
            self._deadline = now + self.seconds
        return now >= self._deadline

    def summary(self) -> str:
        """What was found, in one line for people."""
        words = [f"{self.asked} choices"]
        if self.gains:
            words.append(f"{len(self.gains)} better than by cost (up to {max(self.gains):.2f}x)")
        if self.known:
            words.append(f"{self.known} known before")
        if self.left:
            words.append(f"{self.left} left to costs, for which there was no time")
        if not self.kept:
            words.append("none of them used: the whole model is no faster")
        return "tuned: " + ", ".join(words)


def _known(op: Operation) -> bool:
    return all(tensor_type(v).is_static for v in (*op.operands, *op.results))


def _work(op: Operation) -> int:
    size = tensor_type(op.results[0]).size
    return size if isinstance(size, int) else 0


def _of_op(op: Operation, templates: Templates, names: Sequence[str]) -> Callable[[], Candidates]:
    def make() -> Candidates:
        found = {name: trial_of_op(op, templates, name) for name in names}
        return {name: (trial, ()) for name, trial in found.items() if trial is not None}

    return make


def _of_kernel(trial: Trial, names: Sequence[str]) -> Callable[[], Candidates]:
    return lambda: {name: (trial, choice_of(name)) for name in names}


def _cuts(trial: Trial, plan: Plan, setting: Setting) -> list[str]:
    kernel, sample = trial.kernel, dict(trial.sample)
    template = kernel.body.block.first_op
    if not is_template(kernel) or not isinstance(template, nest.TemplateOp):
        return []
    dims = [d for sizes in template.spec.data.values() for d in sizes.data]  # type: ignore[attr-defined]
    dims += [op.expr.data[0] for op in kernel.walk() if isinstance(op, nest.DimOp)]
    if any(size_at(d, sample) is None for d in dims):
        return []
    facts = setting.variant.facts
    row = row_for(setting.rows, template.kind.data, facts)
    return [text_of(c) for c in row.choices(template, facts, SlotTable(plan.symbols))]


def _text(trial: Trial) -> str:
    """The kernel as text, whatever it is called, and the extents that matter to it."""
    text = print_ir(renamed(trial.kernel, "kernel"))
    matter = [f"{name} = {extent}\n" for name, extent in trial.sample if name in text]
    return "".join([text, *matter])
