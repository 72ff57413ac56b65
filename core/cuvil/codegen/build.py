"""A plan to code: one unit per part of a variant's kernels, and one that describes the model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llvmlite import ir

from cuvil.codegen.api_llvm import CALLED, RENAMED, emit_api, renamed
from cuvil.codegen.artefact_llvm import Description, Port, Variant, emit_artefact
from cuvil.codegen.dims_llvm import dim_value
from cuvil.codegen.embedded import RUN, emit_embedded_api, memory_bytes
from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.host_llvm import emit_main
from cuvil.codegen.kernel_table import CORE_ROWS, KernelRow, row_for
from cuvil.codegen.llvm_util import KERNEL_TYPE
from cuvil.codegen.loops_llvm import module_text
from cuvil.codegen.narrow_index import narrow_indices
from cuvil.codegen.nest_llvm import emit_kernel
from cuvil.codegen.prepare_llvm import emit_prepare
from cuvil.codegen.slots import SlotTable
from cuvil.codegen.strings_llvm import called
from cuvil.codegen.template_llvm import Tasks, emit_template
from cuvil.codegen.unit import Unit
from cuvil.errors import CompileError
from cuvil.ir import nest
from cuvil.ir.dims import Dim
from cuvil.ir.nest_build import with_choice
from cuvil.ops.custom.calls import ExternCall, extern_calls
from cuvil.plan.plan import Plan

PARTS = 8  # kernels of a variant are spread over at most so many units


@dataclass(frozen=True)
class VariantTarget:
    """A variant to build: its name, the feature bits it requires, the facts to generate for.

    choices: kernel -> how it is cut, where costs are not to decide.
    """

    name: str
    required: int
    facts: TargetFacts
    choices: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass
class Code:
    """The units of a model and where its artefact is found.

    symbol: the exported artefact. hidden: symbols that units share among themselves. build_id: 32
    bytes that artefact and weights file share. Where the model is a library: exported, functions of
    its C API; renamed, those of the runtime that are exported under another name. called: the
    runtime's functions that kernels call; calls: the C functions of custom operators. memory_bytes:
    what a run needs of the caller's memory, where it is embedded.
    """

    units: list[Unit]
    symbol: str
    hidden: set[str] = field(default_factory=set)
    build_id: bytes = b""
    exported: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    calls: tuple[ExternCall, ...] = ()
    memory_bytes: int = 0


@dataclass
class _Launchable:
    tasks: Tasks
    scratch: int


def build_code(
    plan: Plan,
    variants: Sequence[VariantTarget],
    *,
    producer: str,
    opt: int = 3,
    weights_file: str | None = None,
    weights_symbol: str | None = None,
    feature_names: Sequence[str] = (),
    detect: str | None = None,
    helpers: Sequence[str] = (),
    bitcode: Sequence[str] = (),
    library: bool = False,
    embedded: bool = False,
    table: Sequence[KernelRow] = CORE_ROWS,
) -> Code:
    """Emits LLVM IR for every kernel and variant, the main functions and the artefact.

    detect: the feature function of the backend's shim; helpers: those that LLVM's code calls, for
    arithmetic that the cpu lacks. weights_symbol: data that is added to the
    object. bitcode: runtime and shim as files, of which kernels may call functions. library: all of
    them are linked in and internalised behind the C API. embedded: that of `codegen.embedded`.
    table: the generators of the plan's templates.
    """
    slots = SlotTable(plan.symbols)
    code = Code([], f"{plan.name}_artefact", calls=extern_calls(plan.kernels.values()))
    glue = ir.Module()
    for port in (*plan.inputs, *plan.outputs):
        for dim in port.type.dims:
            slots.encode(dim)
    rows = [_emit_variant(glue, plan, target, slots, code, opt, table) for target in variants]
    slots.encode(plan.arena_bytes)
    for device in plan.devices:
        slots.encode(device.arena_bytes)
    prepare = emit_prepare(glue, plan, slots, f"{plan.name}.prepare")
    prepare.linkage = "internal"
    code.build_id = build_id_of(_contents(plan, code, producer))
    sites = () if embedded else plan.sites  # nobody reads them there
    description = _describe(plan, code.build_id, producer, weights_file, sites, feature_names)
    variable = emit_artefact(
        glue, code.symbol, description, slots, rows, prepare,
        _external(glue, detect, ir.FunctionType(ir.IntType(64), [])),
        _external_data(glue, weights_symbol),
    )  # fmt: skip
    facts, kept = variants[-1].facts, {"strings": sorted(code.called)}
    if code.called and not bitcode:
        names = ", ".join(sorted(code.called))
        raise CompileError(f"no bitcode of the runtime, of which {plan.name} needs {names}")
    if embedded:
        code.exported = emit_embedded_api(glue, plan.name, variable, plan, facts.pointer_bits)
        code.memory_bytes = memory_bytes(plan, slots, max(row.scratch_bytes for row in rows))
        kept["runtime"] = [RUN]
    elif library:
        code.exported = emit_api(glue, plan.name, variable, plan)
        code.renamed = renamed(plan.name)
        kept["runtime"] = [*CALLED, *RENAMED.values(), *filter(None, [detect]), *helpers]
    for function in glue.functions:
        function.attributes.add("nounwind")
    code.units += _model_units(glue, facts, max(opt, 1), bitcode, kept)
    return code


def _emit_variant(
    glue: ir.Module,
    plan: Plan,
    target: VariantTarget,
    slots: SlotTable,
    code: Code,
    opt: int,
    table: Sequence[KernelRow],
) -> Variant:
    launchable = _emit_kernels(plan, target, slots, code, opt, table)
    main = _emit_variant_main(glue, plan, target, slots, launchable, code)
    scratch = max((x.scratch for x in launchable.values()), default=0)
    return Variant(target.name, target.required, main, scratch)


def _unit(text: str, facts: TargetFacts, opt: int, name: str) -> Unit:
    return Unit(
        text, facts.triple, facts.cpu, facts.features, opt, name=name,
        relocation=facts.relocation, abi=facts.abi,
    )  # fmt: skip


def _model_units(
    glue: ir.Module,
    facts: TargetFacts,
    opt: int,
    bitcode: Sequence[str],
    kept: Mapping[str, Sequence[str]],
) -> Iterator[Unit]:
    """What is around the kernels, for the cpu of the last variant: parts of the runtime, by the
    functions that are kept, and the model's own. The former do not depend on the model."""
    model = _unit(module_text(glue), facts, opt, "model")
    for name, keep in kept.items():
        if keep:
            yield replace(model, ir="", bitcode=tuple(bitcode), keep=tuple(keep), name=name)
    yield model


def _describe(
    plan: Plan,
    build_id: bytes,
    producer: str,
    file: str | None,
    sites: Sequence[str],
    names: Sequence[str],
) -> Description:
    def ports(items: Iterable[object]) -> list[Port]:
        return [Port(p.name, p.type) for p in items]  # type: ignore[attr-defined]

    return Description(
        plan.name, producer, build_id, ports(plan.inputs), ports(plan.outputs), plan.bounds,
        plan.arena_bytes, plan.weights_bytes, file, sites, names, plan.devices,
        plan.grouped,
    )  # fmt: skip


def _emit_kernels(
    plan: Plan,
    target: VariantTarget,
    slots: SlotTable,
    code: Code,
    opt: int,
    table: Sequence[KernelRow],
) -> dict[str, _Launchable]:
    """Emits a variant's kernels into units; returns what their launches need, by kernel name."""
    modules = [ir.Module() for _ in range(min(PARTS, max(1, len(plan.kernels))))]
    found: dict[str, _Launchable] = {}
    templates = [k for k, op in plan.kernels.items() if is_template(op)]
    others = [k for k in plan.kernels if k not in set(templates)]
    for i, name in enumerate([*templates, *others]):
        kernel = plan.kernels[name]
        symbol = f"{plan.name}.{target.name}.{name}"
        module = modules[_part(kernel, i) % len(modules)]
        if name in target.choices:
            kernel = with_choice(kernel, target.choices[name])
        if is_template(kernel):
            made = emit_template(
                module, kernel, target.facts, slots, symbol,
                lambda kind: row_for(table, kind, target.facts).emit,
            )  # fmt: skip
            found[name] = _Launchable(made.tasks, made.scratch_bytes)
        else:
            scratch = emit_kernel(module, kernel, target.facts, slots, symbol)
            found[name] = _Launchable(_literal_tasks(kernel.tasks.data[0], slots), scratch)
        code.hidden.add(symbol)
    facts = target.facts
    code.called.update(*map(called, modules))
    if facts.pointer_bits == 32:
        for module in modules:
            narrow_indices(module)
    code.units += [
        _unit(module_text(m), facts, opt, f"{target.name}.{i}") for i, m in enumerate(modules)
    ]
    return found


def _part(kernel: nest.KernelOp, number: int) -> int:
    """In which unit a kernel goes. Templates whose rows are counted at run time share a unit, as
    they share their many micro-kernels; the others take turns."""
    template = kernel.body.block.first_op
    if isinstance(template, nest.TemplateOp) and "rows" in template.spec.data:
        sizes = template.spec.data
        if not all(isinstance(d, int) for d in sizes["rows"].data):  # type: ignore[attr-defined]
            return len(sizes["k"].data) // 2  # type: ignore[attr-defined]
    return number


def is_template(kernel: nest.KernelOp) -> bool:
    return isinstance(kernel.body.block.first_op, nest.TemplateOp)


def _literal_tasks(dim: Dim, slots: SlotTable) -> Tasks:
    if not isinstance(dim, int):
        slots.of(dim)
    return lambda b, dims: dim_value(b, dims, slots, dim)


def _emit_variant_main(
    glue: ir.Module,
    plan: Plan,
    target: VariantTarget,
    slots: SlotTable,
    launchable: dict[str, _Launchable],
    code: Code,
) -> ir.Function:
    functions = {
        name: ir.Function(glue, KERNEL_TYPE, f"{plan.name}.{target.name}.{name}")
        for name in plan.kernels
    }
    tasks = {name: x.tasks for name, x in launchable.items()}
    name = f"{plan.name}.{target.name}.main"
    main = emit_main(glue, plan.program, slots, functions, tasks, name, plan.devices)
    main.linkage = "internal"
    return main


def _external(module: ir.Module, name: str | None, kind: ir.FunctionType) -> ir.Function | None:
    return ir.Function(module, kind, name) if name else None


def _external_data(module: ir.Module, name: str | None) -> ir.GlobalVariable | None:
    if name is None:
        return None
    variable = ir.GlobalVariable(module, ir.IntType(8), name)
    variable.global_constant = True
    return variable


def _contents(plan: Plan, code: Code, producer: str) -> Iterator[bytes]:
    """What makes a build: the code of its kernels and the values of its weights."""
    yield producer.encode()
    for unit in code.units:
        yield f"{unit.triple} {unit.cpu} {unit.features} {unit.opt}\n{unit.ir}".encode()
    for key, offset in plan.weights:
        yield f"{key} {offset}".encode()
    yield from plan.pool.contents(key for key, _ in plan.weights)
    for call in code.calls:
        yield f"{call.symbol} {call.binary.digest if call.binary else ''}".encode()
    for device in plan.devices:
        for name, kernel in device.kernels.items():
            yield f"{device.name} {name} {kernel.kind} {kernel.symbol}".encode()
            yield kernel.blob


def build_id_of(parts: Iterable[bytes]) -> bytes:
    """32 bytes that change with anything that went into the build."""
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
