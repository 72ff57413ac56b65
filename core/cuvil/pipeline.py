"""From a graph to objects: the whole compile in one function, read from top to bottom."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cuvil.codegen.build import Code, VariantTarget, build_code
from cuvil.codegen.elf import Data, extend_object
from cuvil.codegen.elf_merge import merge_objects
from cuvil.codegen.weights_file import write_weights
from cuvil.codegen.worker import Workers
from cuvil.errors import TargetError
from cuvil.ir.graph import Graph
from cuvil.options import Options
from cuvil.plan.plan import Plan, make_plan
from cuvil.rewrite.engine import RewriteOptions, run_phases
from cuvil.rewrite.registry import Selection
from cuvil.targets.backend import Backend, VariantSpec
from cuvil.targets.registry import find
from cuvil.targets.target import Target
from cuvil.version import PRODUCER

Progress = Callable[[str], None]
WEIGHTS_SYMBOL = "cuvil.weights"


@dataclass(frozen=True)
class Built:
    """A compiled model in memory; weights are still a recipe (`plan.weight_chunks`)."""

    plan: Plan
    code: Code
    objects: list[bytes]
    backend: Backend
    target: Target
    embedded: bool

    def write_object(self, path: str | os.PathLike[str]) -> None:
        """One relocatable object with everything, weights included where they are embedded."""
        exported = {self.code.symbol, *self.code.exported}
        merge_objects(path, self.objects, exported.__contains__)
        if self.embedded:
            with open(path, "rb") as file:
                merged = file.read()
            size = self.plan.weights_bytes
            data = Data(self.weights_symbol, self.plan.weight_chunks(), size)
            extend_object(path, merged, data=[data])

    def write_weights(self, path: str | os.PathLike[str]) -> None:
        """The weights file that goes beside an object whose weights are not embedded."""
        write_weights(path, self.code.build_id, self.plan.weights_bytes, self.plan.weight_chunks())

    @property
    def weights_symbol(self) -> str:
        return f"{self.plan.name}.weights"


def compile_graph(
    graph: Graph,
    options: Options,
    *,
    variants: Sequence[VariantSpec] | None = None,
    weights_file: str | None = None,
    library: bool = False,
    progress: Progress = lambda stage: None,
) -> Built:
    """Compiles a graph for the options' target.

    variants: overrides the backend's choice. weights_file: the file name where weights are to be
    found; None embeds them. library: with the C runtime and the C API of the header inside.
    progress: told each stage as it begins. Raises cuvil.Error subclasses.
    """
    progress("target")
    backend, target = find(options.target, options.cpu, options.features)
    chosen = list(variants or backend.variants(target))
    progress("rewrite")
    run_phases(graph, RewriteOptions(selection(options)))
    progress("plan")
    plan = make_plan(graph, identifier(options.name or graph.name))
    progress("emit")


    def bits(variant: VariantSpec) -> int:
        return backend.feature_bits(variant.requires)

    embedded = weights_file is None and plan.weights_bytes > 0
    code = build_code(
        plan,
        [VariantTarget(v.name, bits(v) if library else 0, v.facts) for v in chosen],
        producer=PRODUCER,
        opt=options.opt_level,
        weights_file=weights_file,
        weights_symbol=f"{plan.name}.weights" if embedded else None,
        feature_names=backend.feature_names(),
        detect=backend.detect if library else None,
        bitcode=_bitcode(backend, target) if library else (),
    )
    progress("compile")
    objects = workers().compile(code.units)
    return Built(plan, code, objects, backend, target, embedded)


def identifier(name: str) -> str:
    """A model's name as C and linkers take it: letters, digits and underscores."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "model"
    return f"_{word}" if word[0].isdigit() else word


def selection(options: Options) -> Selection:
    """The rewrite rules that the options ask for."""
    passes = options.passes if options.graph_fusion and options.opt_level > 0 else ()
    return Selection(passes, options.disable_rules, options.enable_rules)


def _bitcode(backend: Backend, target: Target) -> tuple[str, ...]:
    files = tuple(map(str, backend.bitcode(target.triple)))
    if not files:
        raise TargetError(
            f"backend '{backend.name}' has no runtime for {target.triple}: reinstall its package, "
            "or in a checkout run 'make setup'"
        )
    return files


@lru_cache(maxsize=1)
def workers() -> Workers:
    """The process's code generation workers: one per cpu that it may use, at most eight."""
    return Workers(min(8, len(os.sched_getaffinity(0))))
