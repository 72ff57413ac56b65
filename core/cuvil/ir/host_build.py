"""Making `host` ops from plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from cuvil.ir import host
from cuvil.ir.dims import Dim, symbol
from cuvil.ir.types import BufferType, DimsAttr

BYTES = BufferType.new("u8")


def argument(index: int) -> Operation:
    properties = {"index": IntegerAttr(index, i64)}
    return host.ArgumentOp.create(result_types=[BYTES], properties=properties)


def weight(key: str, offset: int, space: str = "host") -> Operation:
    properties = {
        "key": StringAttr(key),
        "offset": IntegerAttr(offset, i64),
        "space": StringAttr(space),
    }
    return host.WeightOp.create(result_types=[BYTES], properties=properties)


def run() -> Operation:
    return host.RunOp.create(result_types=[BYTES])


def alloc(offset: Dim, size: Dim, space: str = "host") -> Operation:
    properties = {
        "offset": DimsAttr.new((offset,)),
        "bytes": DimsAttr.new((size,)),
        "space": StringAttr(space),
    }
    return host.AllocOp.create(result_types=[BYTES], properties=properties)


def view(source: SSAValue, offset: Dim) -> Operation:
    properties = {"offset": DimsAttr.new((offset,))}
    return host.ViewOp.create(operands=[source], result_types=[BYTES], properties=properties)


def launch(
    kernel: str,
    buffers: Sequence[SSAValue],
    tasks: Dim,
    site: int,
    queue: str = "host",
    dims: Sequence[Dim] = (),
) -> Operation:
    properties = {
        "kernel": StringAttr(kernel),
        "tasks": DimsAttr.new((tasks,)),
        "site": IntegerAttr(site, i64),
        "queue": StringAttr(queue),
        "dims": DimsAttr.new(tuple(dims)),
    }
    return host.LaunchOp.create(operands=list(buffers), properties=properties)


def copy(
    size: Dim, source: SSAValue, target: SSAValue, queue: str = "host", site: int = -1
) -> Operation:
    properties = {
        "bytes": DimsAttr.new((size,)),
        "site": IntegerAttr(site, i64),
        "queue": StringAttr(queue),
    }
    return host.CopyOp.create(operands=[source, target], properties=properties)


def signal(queue: str, ticket: int) -> Operation:
    properties = {"queue": StringAttr(queue), "ticket": IntegerAttr(ticket, i64)}
    return host.SignalOp.create(properties=properties)


def wait(queue: str, ticket: int) -> Operation:
    properties = {"queue": StringAttr(queue), "ticket": IntegerAttr(ticket, i64)}
    return host.WaitOp.create(properties=properties)


def choose(cond: SSAValue, then: Block, orelse: Block) -> Operation:
    return host.IfOp.create(operands=[cond], regions=[_region(then), _region(orelse)])


def when(fixed: Mapping[str, int], then: Block, orelse: Block) -> Operation:
    """fixed: symbol -> the extent that it must have."""
    properties = {
        "left": DimsAttr.new(tuple(map(symbol, fixed))),
        "right": DimsAttr.new(tuple(fixed.values())),
    }
    return host.WhenOp.create(properties=properties, regions=[_region(then), _region(orelse)])


def repeat(symbol: str, trip: Dim, cond: Sequence[SSAValue], body: Block) -> Operation:
    properties = {"symbol": StringAttr(symbol), "trip": DimsAttr.new((trip,))}
    return host.ForOp.create(operands=list(cond), properties=properties, regions=[_region(body)])


def check(left: Dim, right: Dim, equal: bool, site: int) -> Operation:
    properties = {
        "left": DimsAttr.new((left,)),
        "right": DimsAttr.new((right,)),
        "relation": StringAttr("eq" if equal else "ge"),
        "site": IntegerAttr(site, i64),
    }
    return host.CheckOp.create(properties=properties)


def bind(symbol: str, source: SSAValue, least: int, greatest: int, site: int) -> Operation:
    properties = {
        "symbol": StringAttr(symbol),
        "least": IntegerAttr(least, i64),
        "greatest": IntegerAttr(greatest, i64),
        "site": IntegerAttr(site, i64),
    }
    return host.BindOp.create(operands=[source], properties=properties)


def growing(number: int) -> Operation:
    properties = {"number": IntegerAttr(number, i64)}
    return host.GrowingOp.create(result_types=[BYTES], properties=properties)


def grow(number: int, size: Dim, keep: bool) -> Operation:
    properties = {
        "number": IntegerAttr(number, i64),
        "bytes": DimsAttr.new((size,)),
        "keep": BoolAttr.from_bool(keep),
    }
    return host.GrowOp.create(properties=properties)


def give(index: int, source: SSAValue) -> Operation:
    return host.GiveOp.create(operands=[source], properties={"index": IntegerAttr(index, i64)})


def program(name: str, arena_bytes: Dim, body: Block) -> host.ProgramOp:
    properties = {"sym_name": StringAttr(name), "arena_bytes": DimsAttr.new((arena_bytes,))}
    return host.ProgramOp.create(properties=properties, regions=[_region(body)])


def _region(block: Block) -> Region:
    block.add_op(host.HostReturnOp.create())
    return Region(block)
