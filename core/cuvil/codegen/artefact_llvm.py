"""The `cuvil_artefact` constant of a compiled model: see `cuvil/abi.h`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from cuvil.codegen import abi
from cuvil.codegen.llvm_util import I8, I32, I64, PTR, i64
from cuvil.codegen.slots import SlotTable
from cuvil.ir.dims import Dim
from cuvil.ir.groups import Group, Groups
from cuvil.ir.types import TensorType
from cuvil.plan.plan import DevicePlan

NO_BOUND = (1 << 63) - 1


@dataclass(frozen=True)
class Port:
    """An input or output of the model."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Variant:
    """One build of the kernels. required: bits of the backend's feature numbering."""

    name: str
    required: int
    main: ir.Function
    scratch_bytes: int


@dataclass(frozen=True)
class Description:
    """What the artefact says of the model. bounds: (least, greatest or None) per input symbol."""

    name: str
    producer: str
    build_id: bytes
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    bounds: Sequence[tuple[int, int | None]]
    arena_bytes: Dim
    weights_bytes: int
    weights_file: str | None
    sites: Sequence[str]
    feature_names: Sequence[str]
    devices: Sequence[DevicePlan] = ()
    groups: Groups | None = None


class _Data:
    """Private constants of one module."""

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self._count = 0
        self._strings: dict[bytes, ir.Value] = {}

    def constant(self, value: ir.Constant, align: int = 8) -> ir.Value:
        name = f"cuvil.data.{self._count}"
        self._count += 1
        variable = ir.GlobalVariable(self.module, value.type, name)
        variable.linkage, variable.global_constant = "internal", True
        variable.initializer, variable.align = value, align
        return variable

    def string(self, text: str) -> ir.Value:
        return self.bytes(text.encode() + b"\0", align=1)

    def bytes(self, data: bytes, align: int) -> ir.Value:
        if data not in self._strings:
            array = ir.Constant(ir.ArrayType(I8, len(data)), bytearray(data))
            self._strings[data] = self.constant(array, align)
        return self._strings[data]

    def array(self, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
        if not values:
            return ir.Constant(PTR, None)
        return self.constant(ir.Constant(ir.ArrayType(kind, len(values)), list(values)))

    def strings(self, texts: Sequence[str], end: bool = False) -> ir.Value:
        pointers = [self.string(t) for t in texts]
        return self.array(PTR, pointers + ([ir.Constant(PTR, None)] if end else []))


def emit_artefact(
    module: ir.Module,
    symbol: str,
    d: Description,
    slots: SlotTable,
    variants: Sequence[Variant],
    prepare: ir.Function,
    detect: ir.Function | None,
    weights: ir.Value | None,
) -> ir.GlobalVariable:
    """Adds the artefact under `symbol`, an exported constant."""
    data = _Data(module)

    def ports(items: Sequence[Port]) -> ir.Value:
        return data.array(abi.TENSOR_INFO, [_tensor_info(data, slots, p) for p in items])

    rows = [
        ir.Constant(
            abi.VARIANT, [data.string(v.name), i64(v.required), v.main, i64(v.scratch_bytes)]
        )
        for v in variants
    ]
    limits = [
        i64(x) for least, most in d.bounds for x in (least, NO_BOUND if most is None else most)
    ]
    null = ir.Constant(PTR, None)
    fields = [
        _u32(abi.MAGIC), _u32(abi.ABI_VERSION), data.string(d.name), data.string(d.producer),
        ir.Constant(ir.ArrayType(I8, 32), bytearray(d.build_id)),
        _u32(len(d.inputs)), _u32(len(d.outputs)), ports(d.inputs), ports(d.outputs),
        _u32(len(slots.inputs)), _u32(slots.count), data.strings(slots.inputs),
        data.array(I64, limits), prepare, i64(slots.encode(d.arena_bytes)), i64(d.weights_bytes),
        weights or null, data.string(d.weights_file) if d.weights_file else null,
        _u32(len(variants)), _u32(len(d.sites)), data.array(abi.VARIANT, rows),
        data.strings(d.sites), detect or null, data.strings(d.feature_names, end=True),
        _u32(len(d.devices)), _u32(int(d.groups is not None)),
        data.array(abi.DEVICE_INFO, [_device_info(data, slots, x) for x in d.devices]),
        _port_list(data, d.groups) if d.groups else null,
    ]  # fmt: skip
    variable = ir.GlobalVariable(module, abi.ARTEFACT, symbol)
    variable.global_constant, variable.align = True, 8
    variable.initializer = ir.Constant(abi.ARTEFACT, fields)
    return variable


def _device_info(data: _Data, slots: SlotTable, d: DevicePlan) -> ir.Constant:
    kernels = [
        ir.Constant(
            abi.DEVICE_KERNEL,
            [data.string(k.kind), data.string(k.symbol), data.bytes(k.blob, 64), i64(len(k.blob))],
        )
        for k in d.kernels.values()
    ]
    fields = [
        data.string(d.name), i64(slots.encode(d.arena_bytes)), i64(d.weights_offset),
        i64(d.weights_bytes), _u32(len(kernels)), _u32(0), data.array(abi.DEVICE_KERNEL, kernels),
    ]  # fmt: skip
    return ir.Constant(abi.DEVICE_INFO, fields)


def _port_list(data: _Data, groups: Groups) -> ir.Value:
    def side(items: Sequence[Group]) -> ir.Value:
        return data.array(abi.PORT_INFO, [_port_info(data, g) for g in items])

    counts = [_u32(len(groups.inputs)), _u32(len(groups.outputs))]
    sides = [side(groups.inputs), side(groups.outputs)]
    return data.constant(ir.Constant(abi.PORT_LIST, counts + sides))


def _port_info(data: _Data, group: Group) -> ir.Constant:
    kind = ir.Constant(I8, abi.PORT_KINDS[group.kind])
    zeros = ir.Constant(ir.ArrayType(I8, 2), bytearray(2))
    fields = [
        data.string(group.name),
        _u32(group.count),
        kind,
        ir.Constant(I8, int(group.optional)),
    ]
    return ir.Constant(abi.PORT_INFO, [*fields, zeros])


def _tensor_info(data: _Data, slots: SlotTable, port: Port) -> ir.Constant:
    dims = data.array(I64, [i64(slots.encode(d)) for d in port.type.dims])
    zeros = ir.Constant(ir.ArrayType(I8, 6), bytearray(6))
    kind = ir.Constant(I8, port.type.dtype.abi)
    rank = ir.Constant(I8, port.type.rank)
    return ir.Constant(abi.TENSOR_INFO, [data.string(port.name), dims, kind, rank, zeros])


def _u32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)
