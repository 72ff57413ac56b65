"""Models that are no files: a front end makes their graph when the compile cache has no engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuvil.ir.graph import Graph

__all__ = ["GraphSource"]


class GraphSource(ABC):
    """A model that `compile_cached` and ahead-of-time compiles take in place of a file."""

    @abstractmethod
    def fingerprint(self) -> bytes:
        """What the graph depends on: two sources with equal fingerprints give equal graphs."""

    @abstractmethod
    def graph(self) -> Graph:
        """The graph, made anew. Raises ModelError, UnsupportedError."""
