"""`cuvil/abi.h` as LLVM types: field numbers of the structs that generated code reads or writes."""

from __future__ import annotations

from llvmlite import ir

from cuvil.codegen.llvm_util import I8, I32, I64, PTR

ABI_VERSION = 3
MAGIC = 0x4C495643
ARENA_ALIGN = 64

FRAME = ir.LiteralStructType([PTR, PTR, PTR, PTR, PTR, PTR, I32, I32, PTR, PTR, PTR])
FRAME_API, FRAME_ARENA, FRAME_WEIGHTS, FRAME_IO, FRAME_DIMS = range(5)
FRAME_SCRATCH, FRAME_SITE, FRAME_PARALLEL, FRAME_PROFILE = range(5, 9)
FRAME_DEVICES = 10

API = ir.LiteralStructType([I32, I32, *[PTR] * 12])
API_PARALLEL_FOR, API_ALLOCATE, API_POLL, API_PROFILE_BEGIN, API_PROFILE_END = range(2, 7)
PARALLEL_FOR = ir.FunctionType(I32, [PTR, PTR, PTR, I64, I32])
POLL = ir.FunctionType(I32, [PTR])
PROFILE = ir.FunctionType(ir.VoidType(), [PTR, I32])
API_DEVICE_LAUNCH, API_DEVICE_UPLOAD, API_DEVICE_DOWNLOAD, API_DEVICE_COPY = range(7, 11)
API_DEVICE_SIGNAL, API_DEVICE_WAIT = range(11, 13)
DEVICE_LAUNCH = ir.FunctionType(I32, [PTR, I32, I32, PTR, I32, PTR, I32, I32])
DEVICE_TRANSFER = ir.FunctionType(I32, [PTR, I32, PTR, PTR, I64, I32])
DEVICE_SIGNAL = ir.FunctionType(I64, [PTR, I32])
DEVICE_WAIT = ir.FunctionType(I32, [PTR, I32, I64])
DEVICE_BUFFER = ir.LiteralStructType([PTR, I64])
DEVICE_MEMORY = ir.LiteralStructType([PTR, PTR])
DEVICE_ARENA, DEVICE_WEIGHTS = range(2)

MAIN = ir.FunctionType(I32, [PTR])
PREPARE = ir.FunctionType(I32, [PTR])

TENSOR_INFO = ir.LiteralStructType([PTR, PTR, I8, I8, ir.ArrayType(I8, 6)])
DEVICE_KERNEL = ir.LiteralStructType([PTR, PTR, PTR, I64])
DEVICE_INFO = ir.LiteralStructType([PTR, I64, I64, I64, I32, I32, PTR])
PORT_INFO = ir.LiteralStructType([PTR, I32, I8, I8, ir.ArrayType(I8, 2)])
PORT_LIST = ir.LiteralStructType([I32, I32, PTR, PTR])
PORT_KINDS = {"tensor": 0, "none": 1, "sequence": 2}  # cuvil_kind
VARIANT = ir.LiteralStructType([PTR, I64, PTR, I64])
ARTEFACT = ir.LiteralStructType(
    [
        I32, I32, PTR, PTR, ir.ArrayType(I8, 32), I32, I32, PTR, PTR, I32, I32, PTR, PTR, PTR,
        I64, I64, PTR, PTR, I32, I32, PTR, PTR, PTR, PTR, I32, I32, PTR, PTR,
    ]
)  # fmt: skip


def field(b: ir.IRBuilder, base: ir.Value, struct: ir.Type, number: int) -> ir.Value:
    """The value of a struct's field."""
    place = field_address(b, base, struct, number)
    return b.load(place, typ=struct.elements[number])


def field_address(b: ir.IRBuilder, base: ir.Value, struct: ir.Type, number: int) -> ir.Value:
    zero = ir.Constant(I32, 0)
    return b.gep(base, [zero, ir.Constant(I32, number)], source_etype=struct)
