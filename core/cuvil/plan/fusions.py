"""What became of the fusions that users named: matched, and then one kernel?"""

from __future__ import annotations

import warnings
from collections import defaultdict

from cuvil.ir.graph import Graph
from cuvil.plan.groups import Templates, partition
from cuvil.rewrite.user import PATTERNS, fuse_hint, mark


class FusionWarning(UserWarning):
    """A user's fusion pattern that matched nothing, or did not become one kernel."""


def apply_user_fusions(graph: Graph, templates: Templates) -> None:
    """Marks the matches of every registered pattern in a graph that is rewritten, and warns of
    those that were not met (with the nearest miss) or that take several kernels."""
    if not PATTERNS:
        return
    for report in mark(graph, tuple(PATTERNS.values())):
        if not report.places:
            warnings.warn(
                f"fusion pattern '{report.name}' matches nothing; nearest: {report.nearest}",
                FusionWarning,
                stacklevel=2,
            )
    for hint, kernels in _kernels_by_hint(graph, templates).items():
        if len(kernels) > 1:
            warnings.warn(
                f"fusion '{hint}' takes {len(kernels)} kernels: {', '.join(kernels)}",
                FusionWarning,
                stacklevel=2,
            )


def _kernels_by_hint(graph: Graph, templates: Templates) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for number, group in enumerate(partition(graph.block, templates)):
        for op in group.members:
            hint = fuse_hint(op)
            if hint is not None and not group.is_alias:
                found[hint][f"{number}:{(group.anchor or group.root).name}"] = None
    return {hint: list(kernels) for hint, kernels in found.items()}
