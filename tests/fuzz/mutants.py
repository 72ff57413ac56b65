"""Whether the fuzzer would find a bug: small ones are put into the compiler, one at a time.

    python -m tests.fuzz.mutants [--only TEXT] [--kind rule]

Each bug gets a process of its own and a limited number of random graphs; prints which were found,
after how many graphs, and in what way. Ends with status 1 where fewer than nine in ten were.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from cuvil.rewrite.rule import Rule
from tests.fuzz.batch import Case
from tests.fuzz.check import Fault, check
from tests.fuzz.mutant_table import MUTANTS, Mutant
from tests.fuzz.workers import Worker

WANTED = 0.9  # of the bugs
TIME_LIMIT = 1800.0  # seconds for one


@dataclass(frozen=True)
class Search:
    """One way to look for a bug: graphs at most, in modules of so many."""

    mode: str
    graphs: int
    per_module: int


PLANS = (Search("planned", 1600, 8), Search("jit", 400, 25))
SEARCHES = {  # by kind of bug, the cheapest first
    "rule": (Search("phases", 4000, 25),),
    "planner": PLANS,
    "kernel": PLANS,
    "code": (Search("jit", 800, 25), Search("aot", 400, 25)),
}


def function_of(mutant: Mutant) -> FunctionType:
    """The function that a mutant changes. LookupError where there is none."""
    found: Any = importlib.import_module(mutant.module)
    for part in mutant.function.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Rule):
        found = _inside(found.apply, mutant.function.split(".")[-1])
    if isinstance(found, property):
        found = found.fget
    if not isinstance(found, FunctionType):
        raise LookupError(f"{mutant.name} is no function")
    return found


def _inside(function: Callable[..., Any], name: str) -> Any:
    """The function called `name` behind those that wrap it."""
    seen, todo = set(), [function]
    while todo:
        here = todo.pop()
        if getattr(here, "__name__", "") == name:
            return here
        seen.add(id(here))
        cells = getattr(here, "__closure__", None) or ()
        todo += [c.cell_contents for c in cells if id(c.cell_contents) not in seen
                 and callable(c.cell_contents)]  # fmt: skip
    return None


def changed_code(mutant: Mutant) -> CodeType:
    """The function's code with the bug. LookupError where its source is another one by now."""
    function = function_of(mutant)
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(mutant.old) != 1:
        raise LookupError(f"{mutant.name} has {source.count(mutant.old)} times {mutant.old!r}")
    tree = ast.parse(source.replace(mutant.old, mutant.new))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    future = compile("0", "", "exec", dont_inherit=True).co_flags
    flags = function.__code__.co_flags & ~future & 0x1000000  # `from __future__ import annotations`
    module = compile(tree, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    code = next(c for c in module.co_consts if isinstance(c, CodeType))
    if code.co_freevars != function.__code__.co_freevars:
        raise LookupError(f"{mutant.name} is made of other variables than its source")
    return code


def hunt(mutant: Mutant) -> tuple[int, Fault | None]:
    """How many graphs it took to find the bug, and as what; puts it in for good."""
    searches = SEARCHES[mutant.kind]
    check([Case(n) for n in range(3)], [searches[0].mode], 0)  # all is loaded
    function_of(mutant).__code__ = changed_code(mutant)
    tried = 0
    for search in searches:
        for start in range(0, search.graphs, search.per_module):
            cases = [Case(n) for n in range(start, start + search.per_module)]
            tried += len(cases)
            result = check(cases, [search.mode], 4 * (start // search.per_module))
            if result.faults:
                return tried, result.faults[0]
    return tried, None


def work() -> None:
    """A worker: one line with a mutant's number in, one line out."""
    for line in sys.stdin:
        try:
            needed, fault = hunt(MUTANTS[int(line)])
        except LookupError as error:
            print(f"none {error}", flush=True)
            continue
        what = "missed" if fault is None else f"found {needed} {fault.way}"
        print(what, flush=True)


def run_mutants(numbers: Sequence[int]) -> list[str]:
    """The outcome of each: "found ...", "missed", or "none ..." where it is no mutant any more."""
    outcomes = []
    for number in numbers:
        worker = Worker("tests.fuzz.mutants")
        started = time.perf_counter()
        answer = worker.ask(str(number), TIME_LIMIT)
        worker.close()
        outcomes.append(_outcome(answer))
        mutant, seconds = MUTANTS[number], time.perf_counter() - started
        bug = f"{mutant.old!r} -> {mutant.new!r}"
        print(f"{number:2} {mutant.kind:8} {mutant.name}: {bug}: {outcomes[-1]}, {seconds:.0f} s",
              flush=True)  # fmt: skip
    return outcomes


def _outcome(answer: str) -> str:
    """A bug that ends the process by a signal is found; a process that Python ended, or a search
    that took too long, as any does on a busy machine, says nothing of the bug."""
    if not answer.startswith("fault"):
        return answer
    ended_by_python = "status" in answer and "status -" not in answer
    unsaid = ended_by_python or "too long" in answer
    return f"{'none' if unsaid else 'found'} {answer}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", default="", help="bugs of one kind: " + ", ".join(SEARCHES))
    parser.add_argument("--only", default="", help="bugs whose name has this text")
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    if args.worker:
        work()
        return 0
    rows = list(enumerate(MUTANTS))
    numbers = [i for i, m in rows if args.only in m.name and args.kind in ("", m.kind)]
    outcomes = run_mutants(numbers)
    found = sum(o.startswith("found") for o in outcomes)
    print(f"{found} of {len(numbers)} found")
    return 0 if found >= WANTED * len(numbers) else 1


if __name__ == "__main__":
    sys.exit(main())
