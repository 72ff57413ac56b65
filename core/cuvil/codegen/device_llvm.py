"""A program's work for devices: calls of the runtime's device functions, never of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from llvmlite import ir

from cuvil.codegen import abi
from cuvil.codegen.llvm_util import I32, I64, PTR, callee, i64, stack_array
from cuvil.plan.plan import DevicePlan


@dataclass(frozen=True)
class DeviceBuffer:
    """A buffer in a device's memory: an allocation and a byte offset, both run-time values."""

    memory: ir.Value
    offset: ir.Value


@dataclass
class DeviceCalls:
    """Emits into a main function. Tables and tickets lie in its frame on the stack."""

    devices: Sequence[DevicePlan]
    frame: ir.Value
    entry: ir.Block
    _index: dict[str, int] = field(init=False)
    _tickets: dict[int, ir.Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index = {d.name: i for i, d in enumerate(self.devices)}

    def memory(self, b: ir.IRBuilder, space: str, part: int, offset: ir.Value) -> DeviceBuffer:
        """A place in a space's arena or weights (`abi.DEVICE_ARENA`, `abi.DEVICE_WEIGHTS`)."""
        rows = abi.field(b, self.frame, abi.FRAME, abi.FRAME_DEVICES)
        row = b.gep(rows, [i64(self._index[space])], source_etype=abi.DEVICE_MEMORY)
        return DeviceBuffer(abi.field(b, row, abi.DEVICE_MEMORY, part), offset)

    def launch(
        self,
        b: ir.IRBuilder,
        queue: str,
        kernel: str,
        buffers: Sequence[DeviceBuffer],
        dims: Sequence[ir.Value],
        site: int,
    ) -> ir.Value:
        """Puts a kernel on the queue; gives the status."""
        number = list(self.devices[self._index[queue]].kernels).index(kernel)
        table = self._table(b, abi.DEVICE_BUFFER, len(buffers))
        for i, buffer in enumerate(buffers):
            self._write(b, b.gep(table, [i64(i)], source_etype=abi.DEVICE_BUFFER), buffer)
        extents = self._table(b, I64, len(dims))
        for i, dim in enumerate(dims):
            b.store(dim, b.gep(extents, [i64(i)], source_etype=I64))
        arguments = [_i32(number), table, _i32(len(buffers)), extents, _i32(len(dims)), _i32(site)]
        return self._call(b, abi.API_DEVICE_LAUNCH, abi.DEVICE_LAUNCH, queue, arguments)

    def copy(
        self,
        b: ir.IRBuilder,
        queue: str,
        target: ir.Value | DeviceBuffer,
        source: ir.Value | DeviceBuffer,
        size: ir.Value,
        site: int,
    ) -> ir.Value:
        """Puts a transfer on the queue; buffers of the host are plain pointers."""
        number = abi.API_DEVICE_COPY
        if not isinstance(source, DeviceBuffer):
            number = abi.API_DEVICE_UPLOAD
        elif not isinstance(target, DeviceBuffer):
            number = abi.API_DEVICE_DOWNLOAD
        ends = [self._pointer(b, x) for x in (target, source)]
        arguments = [*ends, size, _i32(site)]
        return self._call(b, number, abi.DEVICE_TRANSFER, queue, arguments)

    def signal(self, b: ir.IRBuilder, queue: str, ticket: int) -> None:
        """Keeps the number of all that is on the queue."""
        value = self._call(b, abi.API_DEVICE_SIGNAL, abi.DEVICE_SIGNAL, queue, [])
        b.store(value, self._ticket(ticket))

    def wait(self, b: ir.IRBuilder, queue: str, ticket: int) -> ir.Value:
        """Waits for it; gives the status."""
        value = b.load(self._ticket(ticket), typ=I64)
        return self._call(b, abi.API_DEVICE_WAIT, abi.DEVICE_WAIT, queue, [value])

    def _call(
        self,
        b: ir.IRBuilder,
        number: int,
        kind: ir.FunctionType,
        queue: str,
        arguments: list[ir.Value],
    ) -> ir.Value:
        api = abi.field(b, self.frame, abi.FRAME, abi.FRAME_API)
        function = callee(b, abi.field(b, api, abi.API, number), kind)
        return b.call(function, [self.frame, _i32(self._index[queue]), *arguments])

    def _pointer(self, b: ir.IRBuilder, buffer: ir.Value | DeviceBuffer) -> ir.Value:
        if not isinstance(buffer, DeviceBuffer):
            return buffer
        place = self._table(b, abi.DEVICE_BUFFER, 1)
        self._write(b, place, buffer)
        return place

    def _write(self, b: ir.IRBuilder, place: ir.Value, buffer: DeviceBuffer) -> None:
        b.store(buffer.memory, abi.field_address(b, place, abi.DEVICE_BUFFER, 0))
        b.store(buffer.offset, abi.field_address(b, place, abi.DEVICE_BUFFER, 1))

    def _table(self, b: ir.IRBuilder, kind: ir.Type, count: int) -> ir.Value:
        if not count:
            return ir.Constant(PTR, None)
        return stack_array(self._at_entry(), kind, count)

    def _ticket(self, number: int) -> ir.Value:
        if number not in self._tickets:
            b = self._at_entry()
            self._tickets[number] = stack_array(b, I64, 1)
            b.store(i64(0), self._tickets[number])
        return self._tickets[number]

    def _at_entry(self) -> ir.IRBuilder:
        b = ir.IRBuilder()
        b.position_at_start(self.entry)
        return b


def _i32(value: int) -> ir.Constant:
    return ir.Constant(I32, value)
