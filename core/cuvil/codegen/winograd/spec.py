"""What a Winograd kernel computes, with every stride in elements.

C[image, y, x, :] = epilogue(sum over i, j, c of A[image, y+i, x+j, c] * W[:, c, i, j]). Channels
are contiguous in A and C. B holds the transformed taps.
"""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Size


@dataclass(frozen=True)
class Image:
    """A: images, and pixels of each, which are at least those that the result needs."""

    count: Size
    rows: Size
    columns: Size
    image: Size
    row: Size
    pixel: Size


@dataclass(frozen=True)
class Result:
    """C: pixels, and strides."""

    rows: Size
    columns: Size
    image: Size
    row: Size
    pixel: Size


@dataclass(frozen=True)
class WinogradSpec:
    """One kernel.

    m: rows and columns of the result per tile. taps: rows and columns of the filter; one alone has
    one row per tile. channels: of A; n: of C. panel: columns per panel of B. a, b, c: indices into
    the kernel's `buffers`.
    """

    m: tuple[int, int]
    taps: tuple[int, int]
    image: Image
    result: Result
    channels: int
    n: int
    panel: int = 32
    a: int = 0
    b: int = 1
    c: int = 2

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of a tile of A."""
        return self.m[0] + self.taps[0] - 1, self.m[1] + self.taps[1] - 1

    @property
    def frequencies(self) -> int:
        """Products per tile, channel and output channel."""
        return self.sides[0] * self.sides[1]
