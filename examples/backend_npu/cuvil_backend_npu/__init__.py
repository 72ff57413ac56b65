"""A backend for npu-v2, an accelerator that does not exist; its record is `BACKEND`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from cuvil.errors import TargetError
from cuvil.ir.attrs import Attrs
from cuvil.ir.types import TensorType
from cuvil.targets.backend import Backend, DeviceKernel, MemorySpace
from cuvil.targets.target import Target
from cuvil_backend_npu.assembler import CHIP, assemble, multiplications
from cuvil_runtime.devices import open_device

__version__ = "0.1.0"

FEWEST = 1024  # multiplications that are worth the way to the chip and back


def supports(op: str, types: Sequence[TensorType], attrs: Attrs) -> float | None:
    """Whatever the chip has an instruction for, at half of the host's cost if it is large."""
    if assemble(op, types, attrs) is None:
        return None
    count = multiplications(op, types, attrs)
    return 2.0 if isinstance(count, int) and count < FEWEST else 0.5


def emit(op: str, types: Sequence[TensorType], attrs: Attrs, target: Target) -> DeviceKernel:
    """The kernel of an op that `supports` has accepted."""
    program = assemble(op, types, attrs)
    assert program is not None
    return DeviceKernel(CHIP, program.blob, op, program.dims)


def device() -> Any:
    """What the entry point of group `cuvil.devices` leads to: the compiled driver."""
    driver = find_spec("cuvil_backend_npu.driver")
    if driver is None or driver.origin is None:
        raise TargetError("the npu's driver is not there: was the package built by pip?")
    return open_device(driver.origin, "npu_driver")


BACKEND = Backend(
    name="npu",
    version=__version__,
    triples=("npu-unknown-none",),
    aliases={"npu": "npu-unknown-none"},
    cpus={CHIP: ()},
    supports=supports,
    emit=emit,
    space=MemorySpace("npu", align=64),
)
