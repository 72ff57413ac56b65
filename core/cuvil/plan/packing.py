"""Packed operands: the second operand of a contraction in panels, as constant or at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cuvil.ir import nest
from cuvil.ir.dims import Dim, ceil_div, literal, product
from cuvil.ir.names import Block
from cuvil.ir.nest_build import INDEX, Index, NestBuilder, kernel_op
from cuvil.ir.pool import Attribute, Constant, Pool
from cuvil.ir.types import BufferType


def pack_panels(b: np.ndarray, panel: int, group: int = 1) -> np.ndarray:
    """[batch..., k, n] to [batch..., ceil(n/panel), k, panel]; columns past n are zero.

    group: so many steps of k, which it divides, lie together in a column.
    """
    *batch, k, n = b.shape
    if group > 1:
        pairs = b.reshape(*batch, k // group, group, n).swapaxes(-1, -2)
        wide = pack_panels(pairs.reshape(*batch, k // group, n * group), panel * group)
        return wide.reshape(*batch, -1, k, panel)
    whole, rest = divmod(n, panel)
    packed = np.empty((*batch, whole + bool(rest), k, panel), b.dtype)
    columns = b[..., : n - rest].reshape(*batch, k, whole, panel)
    packed[..., :whole, :, :] = np.moveaxis(columns, -2, -3)
    if rest:
        packed[..., whole, :, :rest] = b[..., n - rest :]
        packed[..., whole, :, rest:] = 0
    return packed


@dataclass(frozen=True)
class Packing:
    """How an operand is packed: viewed as `dims`, permuted by `perm` to batch, k and n axes.

    batch, k: how many of the permuted axes are batch and k axes; the rest are n axes.
    """

    dims: tuple[Dim, ...]
    perm: tuple[int, ...]
    batch: int
    k: int
    panel: int
    dtype: str
    group: int = 1

    @property
    def permuted(self) -> tuple[Dim, ...]:
        return tuple(self.dims[p] for p in self.perm)

    @property
    def batch_dims(self) -> tuple[Dim, ...]:
        return self.permuted[: self.batch]

    @property
    def k_extent(self) -> Dim:
        return product(self.permuted[self.batch : self.batch + self.k])

    @property
    def n_extent(self) -> Dim:
        return product(self.permuted[self.batch + self.k :])

    @property
    def matrix_size(self) -> Dim:
        """Elements of one packed matrix."""
        return ceil_div(self.n_extent, self.panel) * self.panel * self.k_extent

    @property
    def size(self) -> Dim:
        return product(self.batch_dims) * self.matrix_size

    def apply(self, array: np.ndarray) -> np.ndarray:
        """The packed form of an array (dims must be literal)."""
        view = array.reshape([literal(d) for d in self.dims]).transpose(self.perm)
        k, n = literal(self.k_extent), literal(self.n_extent)
        matrix = view.reshape((*view.shape[: self.batch], k, n))
        return pack_panels(matrix, self.panel, self.group)

    def constant(self, source: Constant, pool: Pool) -> Constant:
        """The packed form as a recipe of the pool: made when the weights are written."""
        shape = (literal(self.size),)
        dims = tuple(literal(d) for d in self.dims)
        attrs: dict[str, Attribute] = {"dims": dims, "perm": self.perm, "batch": self.batch}
        return pool.add_recipe(
            "pack_panels",
            {**attrs, "k": self.k, "panel": self.panel, "group": self.group},
            [source],
            self.dtype,
            shape,
            lambda arrays: self.apply(arrays[0]).reshape(shape),
        )

    def kernel(self, name: str) -> tuple[nest.KernelOp, Dim]:
        """A kernel (source, packed) that packs at run time; one task per panel."""
        kind = BufferType.new(self.dtype)
        block = Block(arg_types=[kind, kind, INDEX])
        source, target, task = block.args
        b = NestBuilder(block)
        panels = ceil_div(self.n_extent, self.panel)
        *batch, which = b.unflatten(task, (*self.batch_dims, panels))
        first = b.mul(which, self.panel)
        count = b.index("min", b.sub(b.dim(self.n_extent), first), self.panel)
        n_dims = self.permuted[self.batch + self.k :]
        k_dims = self.permuted[self.batch : self.batch + self.k]
        out = b.mul(task, b.dim(self.k_extent * self.panel))
        zero = b.const(0, self.dtype)
        with b.loop(0, b.dim(self.k_extent)) as k:
            row = b.add(out, b.mul(b.sub(k.iv, b.mod(k.iv, self.group)), self.panel))
            row = b.add(row, b.mod(k.iv, self.group))
            at = (*batch, *b.unflatten(k.iv, k_dims))
            with b.loop(0, count, kind="parallel") as n:
                index = (
                    *at,
                    *b.unflatten(b.add(first, n.iv), n_dims),
                )
                b.store(
                    b.load(source, _source_offset(b, self, index)),
                    target,
                    b.add(row, b.mul(n.iv, self.group)),
                )
            with b.loop(count, self.panel, kind="parallel") as n:
                b.store(zero, target, b.add(row, b.mul(n.iv, self.group)))
        tasks = product(self.batch_dims) * panels
        return kernel_op(name, tasks, block), tasks


def _source_offset(b: NestBuilder, p: Packing, index: Sequence[Index]) -> Index:
    source: list[Index] = [0] * len(p.dims)
    for i, axis in zip(index, p.perm, strict=True):
        source[axis] = i
    return b.flatten(source, p.dims)
