"""From a graph to objects: the whole compile in one function, read from top to bottom."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

import numpy as np

from cuvil.codegen.build import Code, VariantTarget, build_code
from cuvil.codegen.embedded import refuse_unbounded
from cuvil.codegen.kernel_table import CORE_ROWS, KernelRow, templates_of, usable
from cuvil.codegen.objects import Data, Note, join
from cuvil.codegen.weights_file import weights_image, write_weights
from cuvil.codegen.worker import Workers
from cuvil.errors import CompileError, OptionError, TargetError, own_faults
from cuvil.ir.graph import Graph
from cuvil.ir.record import tensor_type
from cuvil.ops.custom.calls import ExternCall
from cuvil.options import EXTERNAL_FROM, PRECISIONS, Options
from cuvil.plan.fusions import apply_user_fusions
from cuvil.plan.plan import Plan, make_plan
from cuvil.plan.promises import check_promises
from cuvil.plan.special import Special, special_graphs
from cuvil.plan.templates import Templates
from cuvil.plan.verify import verify_plan
from cuvil.rewrite.engine import RewriteOptions, run_phases
from cuvil.rewrite.registry import Selection
from cuvil.rewrite.verify import verify_structure
from cuvil.targets.backend import Backend, VariantSpec, runnable, variants_of
from cuvil.targets.target import Target
from cuvil.targets.target_list import Targets, resolve
from cuvil.version import PRODUCER

Progress = Callable[[str], None]
NOTE_ENTRY = 1  # CUVIL_NOTE_ENTRY of cuvil/abi.h
EMBED_LIMIT = 2_000_000_000  # bytes; code reaches constants by signed 32-bit distances


@dataclass(frozen=True)
class Built:
    """A compiled model in memory; weights are still a recipe (`plan.weight_chunks`).

    variants: what the artefact holds, best first. weights_file: the name of the file where the
    artefact looks for weights; None: there are none, or they are embedded. backend, target: of the
    host, the last of targets.
    """

    plan: Plan
    code: Code
    objects: list[bytes]
    backend: Backend
    target: Target
    variants: tuple[VariantSpec, ...]
    weights_file: str | None
    targets: Targets

    @property
    def calls(self) -> tuple[ExternCall, ...]:
        """The C functions of custom operators, which objects leave undefined."""
        return self.code.calls

    @property
    def freestanding(self) -> bool:
        """Whether the target has no operating system: see `codegen.embedded`."""
        return self.target.triple in self.backend.freestanding

    @property
    def embedded(self) -> bool:
        """Whether `write_object` puts weights into the object."""
        return self.weights_file is None and self.plan.weights_bytes > 0

    def write_object(self, path: str | os.PathLike[str]) -> None:
        """One relocatable object with everything, weights included where they are embedded.

        Weights pass through as a stream; no more than one constant is in memory at a time.
        """
        with own_faults(f"{self.plan.name}: writing an object"):
            self._write_object(path)

    def _write_object(self, path: str | os.PathLike[str]) -> None:
        exported = {self.code.symbol, *self.code.exported}
        data = []
        if self.embedded:
            chunks, size = self.plan.weight_chunks(), self.plan.weights_bytes
            data.append(Data(weights_symbol(self.plan), chunks, size))
        notes = [] if self.freestanding else [Note(NOTE_ENTRY, self.code.symbol.encode() + b"\0")]
        renamed = self.code.renamed
        join(path, self.objects, exported.__contains__, renamed, data=data, notes=notes)

    def write_weights(self, path: str | os.PathLike[str]) -> None:
        """The weights file that goes beside an object whose weights are not embedded."""
        size, chunks = self.plan.weights_bytes, self.plan.weight_chunks()
        with own_faults(f"{self.plan.name}: computing constants"):
            write_weights(path, self.code.build_id, size, chunks)

    def weights_image(self) -> np.ndarray:
        """What `write_weights` writes, in memory, which is several times faster: uint8."""
        with own_faults(f"{self.plan.name}: computing constants"):
            plan = self.plan
            return weights_image(self.code.build_id, plan.weights_bytes, plan.put_weights)


@dataclass(frozen=True)
class Setting:
    """What a tuner has to know of a compile.

    variant: the build that is tuned: of those that are made, the best that this machine can run.
    here: whether the target is this machine; else variant is the first. rows: the table of fast
    kernels. bitcode: the runtime's.
    """

    backend: Backend
    target: Target
    variant: VariantSpec
    rows: Sequence[KernelRow]
    opt_level: int
    bitcode: tuple[str, ...]
    here: bool


class Tuner(Protocol):
    """What decides where costs only estimate; `cuvil.tune.Tuner` measures."""

    def templates(
        self, graphs: Sequence[Graph], templates: Templates, setting: Setting
    ) -> Templates:
        """The templates with the ways that they are to compute ops in."""
        ...

    def choices(self, plan: Plan, setting: Setting) -> Mapping[str, Sequence[int]]:
        """Kernel -> how `setting.variant` cuts it, in numbers of its row's."""
        ...

    def is_better(
        self, plan: Plan, choices: Mapping[str, Sequence[int]], usual: Plan, setting: Setting
    ) -> bool:
        """Whether to use all of that, rather than the plan of costs."""
        ...


def compile_graph(
    graph: Graph,
    options: Options,
    *,
    variants: Sequence[VariantSpec] | None = None,
    best_only: bool = False,
    weights_file: str | None = None,
    library: bool = False,
    progress: Progress = lambda stage: None,
    tuner: Tuner | None = None,
) -> Built:
    """Compiles a graph for the options' target.

    variants: overrides the backend's choice. best_only: builds the first of them that has a use.
    weights_file: the file name where weights are to be found; None leaves it to the options.
    library: with the C runtime and the C API of the header inside. progress: told each stage as it
    begins. tuner: decides what otherwise costs do. Raises cuvil.Error subclasses.
    """
    progress("target")
    targets = resolve(options.target, options.cpu, options.features)
    backend, target = targets.host
    progress("rewrite")
    graph.pool.hash_ahead()
    special = special_graphs(graph, options.specialize)
    variants = variants or variants_of(backend, target, options.variant)
    graphs = (graph, *(other for _, other in special))
    for each in graphs:
        _rewrite(each, options, targets, variants)
    chosen = useful(variants, graph)[: 1 if best_only else None]
    progress("plan")
    facts = [v.facts for v in chosen]
    rows = usable(wanted_rows((*backend.kernels, *CORE_ROWS), options), facts)
    name = identifier(options.name or graph.name)
    templates, dynamic = Templates(templates_of(rows, facts)), options.memory_plan == "dynamic"
    schedule = options.op_scheduling and options.opt_level > 0
    make = partial(_plan, graph, name, targets, special=special, dynamic=dynamic, schedule=schedule)
    plan, cuts = make(templates), _NO_CUTS
    if tuner is not None:
        setting = _setting(backend, target, chosen, rows, options)
        plan, cuts = _tuned(tuner, setting, plan, make, templates, graphs)
    if embedded := library and target.triple in backend.freestanding:
        refuse_unbounded(plan, target.triple)
    weights_file = weights_file or weights_place(plan, options, embedded)
    progress("emit")
    with own_faults(f"{graph.name}: generating code"):
        code = build_code(
            plan,
            _variant_targets(backend, chosen, library, cuts),
            producer=PRODUCER, opt=options.opt_level, weights_file=weights_file,
            weights_symbol=None if weights_file or not plan.weights_bytes else weights_symbol(plan),
            feature_names=() if embedded else backend.feature_names(),
            detect=backend.detect if library and not embedded else None,
            helpers=backend.helpers.get(target.triple, ()),
            bitcode=_bitcode(backend, target, needed=library),
            library=library, embedded=embedded, table=rows,
        )  # fmt: skip
    progress("compile")
    objects = workers().compile(code.units)
    return Built(plan, code, objects, backend, target, tuple(chosen), weights_file, targets)


def _variant_targets(
    backend: Backend,
    variants: Sequence[VariantSpec],
    library: bool,
    cuts: Mapping[str, Mapping[str, Sequence[int]]],
) -> list[VariantTarget]:
    """The builds as code generation sees them; a library asks for their features when opened."""
    bits = [backend.feature_bits(v.requires) if library else 0 for v in variants]
    return [
        VariantTarget(v.name, b, v.facts, cuts.get(v.name, {}))
        for v, b in zip(variants, bits, strict=True)
    ]


_Cuts = Mapping[str, Mapping[str, Sequence[int]]]
_NO_CUTS: _Cuts = {}


def _tuned(
    tuner: Tuner,
    setting: Setting,
    usual: Plan,
    make: Callable[[Templates], Plan],
    templates: Templates,
    graphs: Sequence[Graph],
) -> tuple[Plan, _Cuts]:
    """The plan with what the tuner chose, and how the kernels of its build are cut; the usual ones
    where nothing else is better."""
    found = tuner.templates(graphs, templates, setting)
    plan = make(found) if found.chosen else usual
    choices = tuner.choices(plan, setting)
    if (found.chosen or choices) and tuner.is_better(plan, choices, usual, setting):
        return plan, {setting.variant.name: choices}
    return usual, _NO_CUTS


def _setting(
    backend: Backend,
    target: Target,
    chosen: Sequence[VariantSpec],
    rows: Sequence[KernelRow],
    options: Options,
) -> Setting:
    """A named cpu is this machine where it gets a build that this machine would get."""
    able = runnable(backend, target, chosen)
    host = backend.host()
    own = {v.name for v in backend.variants(host)} if host and able else set()
    here = bool(able) and (not target.cpu or bool(options.variant) or able[0].name in own)
    bitcode = _bitcode(backend, target, needed=False)
    variant = able[0] if here else chosen[0]
    return Setting(backend, target, variant, rows, options.opt_level, bitcode, here)


def rewrite_graph(graph: Graph, options: Options) -> None:
    """Runs the rules of a compile on a graph, and nothing else of it."""
    targets = resolve(options.target, options.cpu, options.features)
    _rewrite(graph, options, targets, variants_of(*targets.host, options.variant))


def _rewrite(
    graph: Graph, options: Options, targets: Targets, variants: Sequence[VariantSpec]
) -> None:
    """Runs the rules that the options ask for on a graph that keeps its promises."""
    check_promises(graph)
    check = verify_after if verifying() else None
    with own_faults(f"{graph.name}: rewriting"):
        facts = [v.facts for v in variants]
        fast = any(f.fast_bytes for f in facts)
        chosen = selection(options, fast, any(f.half_products for f in facts))
        run_phases(graph, RewriteOptions(chosen, after_phase=check), targets.rules())


def _plan(
    graph: Graph,
    name: str,
    targets: Targets,
    templates: Templates,
    special: Special,
    dynamic: bool,
    schedule: bool,
) -> Plan:
    """The plan of a graph, and of the same graph for special extents."""
    for each in (graph, *(other for _, other in special)):
        apply_user_fusions(each, templates)
    with own_faults(f"{graph.name}: planning"):
        plan = make_plan(graph, name, targets.assignment(), templates, special, dynamic, schedule)
        if verifying():
            verify_plan(plan)
    return plan


def useful(variants: Sequence[VariantSpec], graph: Graph) -> list[VariantSpec]:
    """The variants without those that are only there for products that the graph does not have."""
    factors = {
        tensor_type(op.operands[0]).dtype.name
        for op in graph.ops()
        if op.name in ("cuvil.contract", "cuvil.conv")
    }
    found = [v for v in variants if not v.products or v.products & factors]
    return found or list(variants)


def verifying() -> bool:
    """Whether every stage is to be checked: CUVIL_VERIFY is set, and not 0."""
    return os.environ.get("CUVIL_VERIFY", "0") not in ("", "0")


def verify_after(phase: str, graph: Graph) -> None:
    """Raises CompileError naming the phase that left a graph whose types do not fit."""
    try:
        verify_structure(graph)
    except CompileError as error:
        raise CompileError(f"after phase {phase}: {error}") from error


def weights_symbol(plan: Plan) -> str:
    """The hidden symbol of embedded weights."""
    return f"{plan.name}.weights"


def weights_place(plan: Plan, options: Options, freestanding: bool = False) -> str | None:
    """The name of the weights file that the options ask for; None embeds the weights. freestanding:
    the target has no files.

    Raises OptionError when they are to be embedded but are too large for that, or are not to be
    where there are no files.
    """
    size = plan.weights_bytes
    if freestanding and options.weights == "external":
        raise OptionError(f"{plan.name}: {options.target} has no files: use --weights embed")
    if (freestanding or options.weights == "embed") and size > EMBED_LIMIT:
        raise OptionError(
            f"{plan.name} has {size} bytes of weights, at most {EMBED_LIMIT} can be embedded: "
            "use --weights external"
        )
    outside = options.weights == "external" or (
        options.weights == "auto" and size > EXTERNAL_FROM and not freestanding
    )
    return f"{plan.name}.weights" if outside and size else None


def identifier(name: str) -> str:
    """A model's name as C and linkers take it: letters, digits and underscores.

    Names that begin with the runtime's own prefix, or with a digit, get one of their own.
    """
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "model"
    return f"model_{word}" if word[0].isdigit() or word.startswith("cuvil") else word


def wanted_rows(rows: Sequence[KernelRow], options: Options) -> list[KernelRow]:
    """The fast kernels that the options allow. Raises OptionError for a kind that there is not."""
    kinds = sorted({row.kind for row in rows})
    for kind in options.disable_kernels:
        if kind not in kinds:
            raise OptionError(
                f"there is no kernel '{kind}' to disable; there are {', '.join(kinds)}"
            )
    off = {*options.disable_kernels, *(() if options.opt_level else ("winograd",))}
    return [row for row in rows if row.kind not in off]


def selection(options: Options, fast_bytes: bool = True, halves: bool = False) -> Selection:
    """The rewrite rules that the options ask for. fast_bytes: whether sums of bytes are as fast as
    Winograd's way on floats. halves: whether products of half floats are multiplied as such."""
    passes = options.passes if options.graph_fusion and options.opt_level > 0 else ()
    enable = (*options.enable_rules, *PRECISIONS[options.precision])
    if options.precision == "bf16" and "winograd" in options.disable_kernels:
        enable = (*enable, "bf16_every_conv")
    enable = (*enable, "half_factors") if halves else enable
    disable = options.disable_rules
    by_tiles = options.opt_level > 0 and "winograd" not in options.disable_kernels
    if by_tiles and not fast_bytes and "quantized_conv" not in disable:
        disable, enable = (*disable, "quantized_conv"), (*enable, "plain_quantized_conv")
    return Selection(passes, disable, enable)


def _bitcode(backend: Backend, target: Target, needed: bool) -> tuple[str, ...]:
    files = tuple(map(str, backend.bitcode(target.triple)))
    if not files and needed:
        raise TargetError(
            f"backend '{backend.name}' has no runtime for {target.triple}: reinstall its package, "
            "or in a checkout run 'make setup'"
        )
    return files


@lru_cache(maxsize=1)
def workers() -> Workers:
    """The process's code generation workers: one per cpu that it may use, at most eight."""
    pool = Workers(min(8, len(os.sched_getaffinity(0))))
    atexit.register(pool.close)
    return pool


os.register_at_fork(after_in_child=workers.cache_clear)  # their pipes are the parent's
