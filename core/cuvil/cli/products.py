"""`cuvil inspect --products`: what a model's products multiply, and why some are not of bytes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from cuvil.cli.console import Stages
from cuvil.frontends.onnx import import_model
from cuvil.options import Options
from cuvil.pipeline import rewrite_graph
from cuvil.rules.precision._products import AFTER, products


def products_data(path: str, options: Options, stages: Stages) -> list[dict[str, Any]]:
    """A row for each product of an ONNX file, in order."""
    stages("import")
    graph = import_model(path, dims=dict(options.dims))
    stages("rewrite")
    rewrite_graph(graph, replace(options, disable_rules=(*options.disable_rules, *AFTER)))
    return [asdict(p) | {"of_bytes": p.of_bytes} for p in products(graph)]
