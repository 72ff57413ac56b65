"""What a Winograd kernel computes, with every stride in elements.

C[image, y, x, :] = epilogue(sum over i, j, c of A[image, y+i, x+j, c] * W[:, c, i, j]) for taps
i, j of 0, 1, 2. Channels are contiguous in A and C. B holds the transformed taps.
"""

from dataclasses import dataclass

from cuvil.codegen.contraction.arith import Size

TAPS = 3


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
    """One kernel. m: outputs per side of a tile, 2 or 4. channels: of A; n: of C. panel: columns
    per panel of B. a, b, c: indices into the kernel's `buffers`."""

    m: int
    image: Image
    result: Result
    channels: int
    n: int
    panel: int = 32
    a: int = 0
    b: int = 1
    c: int = 2

    @property
    def side(self) -> int:
        """Pixels per side of a tile of A."""
        return self.m + TAPS - 1

    @property
    def frequencies(self) -> int:
        """Products per tile, channel and output channel."""
        return self.side**2
