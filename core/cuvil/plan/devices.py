"""Devices beside the host: which op runs where, and the kernels that they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cuvil.errors import UnsupportedError
from cuvil.ir.attrs import Attrs
from cuvil.ir.build import location_name
from cuvil.ir.dims import Dim
from cuvil.ir.names import Operation
from cuvil.ir.record import attrs_of, of, tensor_type
from cuvil.ir.types import TensorType, shapes

Supports = Callable[[str, Sequence[TensorType], Attrs], float | None]


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel of a device.

    kind: what the blob is, for the device's shim to check. blob: opaque bytes, which kernels may
    share. symbol: the kernel in it. dims: extents that only the run knows; every launch passes
    their values, in this order.
    """

    kind: str
    blob: bytes
    symbol: str
    dims: tuple[Dim, ...] = ()


EmitDevice = Callable[[str, Sequence[TensorType], Attrs], DeviceKernel]


@dataclass(frozen=True)
class Device:
    """A device as the planner sees it. name: of its memory space and its queue. align: of buffers
    in its arena. supports, emit: see `targets.backend.Backend`."""

    name: str
    align: int
    supports: Supports
    emit: EmitDevice


@dataclass
class Assignment:
    """Which device takes which op of a graph, and the kernels made for them so far.

    An op goes to the first device that supports it at no more than the host's cost, else to the
    host. host_supports: None where the host takes whatever has a lowering. kernels: device -> name
    -> kernel; meanings: name -> an op that it was made for.
    """

    devices: Sequence[Device] = ()
    host_supports: Supports | None = None
    kernels: dict[str, dict[str, DeviceKernel]] = field(default_factory=dict)
    meanings: dict[str, Operation] = field(default_factory=dict)
    _taken: dict[Operation, Device | None] = field(default_factory=dict)
    _built: dict[tuple[object, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kernels = {device.name: {} for device in self.devices}

    def device_of(self, op: Operation) -> Device | None:
        """The device that takes `op`, None for the host.

        Raises UnsupportedError for an op that neither a device nor the host supports.
        """
        if op not in self._taken:
            self._taken[op] = self._choose(op)
        return self._taken[op]

    def _choose(self, op: Operation) -> Device | None:
        record = of(op)
        if record.regions or record.name in ("constant", "reshape", "bind", "require"):
            return None
        if "opaque" in record.tags:
            return None
        if not self.devices and self.host_supports is None:
            self._check_host(op, bool(record.element or record.kernel))
            return None
        kinds, attrs = [tensor_type(v) for v in op.operands], attrs_of(op)
        ask = self.host_supports
        own = ask(record.name, kinds, attrs) if ask is not None else float("inf")
        for device in self.devices:
            cost = device.supports(record.name, kinds, attrs)
            if cost is not None and (own is None or cost <= own):
                return device
        self._check_host(op, own is not None and bool(record.element or record.kernel))
        return None

    def _check_host(self, op: Operation, supported: bool) -> None:
        if supported:
            return
        kinds = shapes([tensor_type(v) for v in op.operands])
        names = ", ".join(["the host", *(d.name for d in self.devices)])
        raise UnsupportedError(
            f"{location_name(op)}: no target computes {op.name} of {kinds} (asked: {names}); name "
            "one that does in the list of targets"
        )

    def kernel(self, op: Operation) -> tuple[Device, str, DeviceKernel]:
        """The device's kernel for an op that it takes, and the name under which it is kept."""
        device = self.device_of(op)
        assert device is not None
        kinds = [tensor_type(v) for v in op.operands]
        properties = tuple(sorted(op.properties.items(), key=lambda item: item[0]))
        key = (device.name, op.name, properties, tuple(kinds))
        known = self.kernels[device.name]
        if key not in self._built:
            name = f"{device.name}{len(known)}_{of(op).name}"
            known[name] = device.emit(of(op).name, kinds, attrs_of(op))
            self._built[key] = name
            self.meanings[name] = op
        return device, self._built[key], known[self._built[key]]
