"""The timing loop of `cuvil bench`, for the tools here."""

from cuvil.cli.timing import Timing, interleaved, speedups

__all__ = ["Timing", "interleaved", "speedups"]
