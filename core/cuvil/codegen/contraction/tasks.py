"""Tasks of a kernel: how large one should be, and how many there are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.facts import TargetFacts

TASK_OPERATIONS = 1_000_000  # multiply-adds*2 of a task, at least: 4 us on a fast core
TASKS_WANTED = 64  # enough for 16 threads to finish together

Spec = TypeVar("Spec")


@dataclass(frozen=True)
class TaskCount(Generic[Spec]):
    """How many tasks a kernel has, by one formula over its spec for Python and for code."""

    formula: Callable[[Spec, TargetFacts, Arith], Index]

    def __call__(self, spec: Spec, facts: TargetFacts, dims: Sequence[int] = ()) -> int:
        """The number for the given dim slots."""
        return int(self.formula(spec, facts, Arith(None, dims)))

    def emit(self, b: ir.IRBuilder, dims: ir.Value, spec: Spec, facts: TargetFacts) -> ir.Value:
        """The same as an i64 value, from a pointer to the dim slots."""
        at = Arith(b, dims)
        return at.value(self.formula(spec, facts, at))
