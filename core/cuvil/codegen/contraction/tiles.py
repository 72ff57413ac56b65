"""The grid of row tiles: which rows a tile has, and which sizes occur."""

from llvmlite import ir

from cuvil.codegen.contraction.arith import Arith, Index
from cuvil.codegen.contraction.schedule import Schedule
from cuvil.codegen.contraction.spec import ContractionSpec


class TileGrid:
    """Row tiles of one kernel, numbered with the last dim fastest.

    A dim is split evenly, so its tiles have at most two sizes, which differ by one.
    """

    def __init__(
        self, at: Arith, spec: ContractionSpec, schedule: Schedule, counts: list[Index]
    ) -> None:
        self.at, self.spec, self.schedule, self.counts = at, spec, schedule, counts
        extents = [at.size(dim.extent) for dim in spec.rows]
        pairs = list(zip(extents, counts, strict=True))
        self.each = [at.div(extent, count) for extent, count in pairs]
        self.more = [at.mod(extent, count) for extent, count in pairs]

    def indices(self, tile: Index) -> list[Index]:
        """The tile's index in each row dim."""
        return unravel(self.at, tile, self.counts)

    def following(self, indices: list[Index]) -> list[ir.Value]:
        """The indices of the next tile."""
        at, result = self.at, list[ir.Value]()
        carry: Index = 1
        for index, count in zip(reversed(indices[1:]), reversed(self.counts[1:]), strict=True):
            stepped = at.add(index, carry)
            inside = at.less(stepped, count)
            result.insert(0, at.value(at.mul(stepped, inside)))
            carry = at.sub(1, inside)
        return [at.value(at.add(indices[0], carry)), *result]

    def rows(self, indices: list[Index]) -> tuple[list[Index], list[Index]]:
        """(first row, number of rows) of a tile, per row dim."""
        at, starts, sizes = self.at, [], []
        for dim, (index, most) in enumerate(zip(indices, self.schedule.tile, strict=True)):
            if most == 1:
                starts.append(index)
                sizes.append(1)
                continue
            each, more = self.each[dim], self.more[dim]
            starts.append(at.add(at.mul(index, each), at.minimum(index, more)))
            sizes.append(at.add(each, at.less(index, more)))
        return starts, sizes

    def shapes(self) -> list[tuple[int, int]]:
        """Every (outer, inner) size that a tile can have in the last two dims."""
        return [(outer, inner) for outer in self._sizes(-2) for inner in self._sizes(-1)]

    def _sizes(self, nth: int) -> list[int]:
        if -nth > len(self.spec.rows):
            return [1]
        most, extent = self.schedule.tile[nth], self.spec.rows[nth].extent
        if not isinstance(extent, int):
            return list(range(1, most + 1))
        tiles = max(1, -(-extent // most))
        each, more = divmod(extent, tiles)
        return sorted({each + 1, each} if more else {max(each, 1)}, reverse=True)


def unravel(at: Arith, index: Index, extents: list[Index]) -> list[Index]:
    """Indices of a flat index, last dim fastest; [] of no dims."""
    indices: list[Index] = []
    for extent in reversed(extents[1:]):
        indices.insert(0, at.mod(index, extent))
        index = at.div(index, extent)
    return [index, *indices] if extents else []


def runs(at: Arith, count: Index, most: int) -> list[tuple[Index, Index, int]]:
    """(first, tiles, size of each): `count` rows in tiles of at most `most`.

    Even sizes where the count is known, else halves of `most` for what is left.
    """
    if isinstance(count, int):
        tiles = max(1, -(-count // most))
        each, more = divmod(count, tiles)
        found = [(0, more, each + 1), (more * (each + 1), tiles - more, each)]
        return [run for run in found if run[1] and run[2]]
    first: Index = 0
    result: list[tuple[Index, Index, int]] = []
    while most:
        tiles = at.div(at.sub(count, first), most)
        result.append((first, tiles, most))
        first = at.add(first, at.mul(tiles, most))
        most //= 2
    return result
