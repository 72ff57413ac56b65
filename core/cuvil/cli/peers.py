"""Other engines behind one interface: load a model with fixed inputs, get a callable to time.

`peer(name).load(path, inputs, threads)` returns a `Call`: calling it runs the model once on the
inputs, `outputs()` gives what the last run computed, `settings` says how the engine was set up.
An engine that is not installed says so through `missing()`; nothing is imported before use.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from cuvil.errors import Error

Arrays = Mapping[str, np.ndarray]
NetBuilder = Callable[[], Any]
"""Returns a torch module in eval mode whose arguments are the inputs, in their order."""


class PeerError(Error, RuntimeError):
    """An engine is missing or cannot take this model; the message names both and the reason."""


@dataclass(frozen=True)
class Call:
    """A loaded model with its inputs bound."""

    run: Callable[[], object]
    outputs: Callable[[], list[np.ndarray]]
    settings: str

    def __call__(self) -> None:
        self.run()


class Load(Protocol):
    """Loads a model into one engine; `net` is there for engines that take torch modules."""

    def __call__(
        self, path: Path, inputs: Arrays, threads: int, net: NetBuilder | None
    ) -> Call: ...


@dataclass(frozen=True)
class Peer:
    """One engine in one precision."""

    name: str
    module: str
    loader: Load

    def missing(self) -> str | None:
        """Why this engine cannot be used here, or None."""
        if importlib.util.find_spec(self.module) is None:
            return f"{self.name} is not installed: pip install {self.module}"
        return None

    def load(
        self, path: Path | str, inputs: Arrays, threads: int = 1, net: NetBuilder | None = None
    ) -> Call:
        """A callable that runs the model at `path` on `inputs` with `threads` threads.

        Runs it once. Raises PeerError with the engine's own reason.
        """
        if reason := self.missing():
            raise PeerError(reason)
        try:
            call = self.loader(Path(path), inputs, threads, net)
            call()
        except PeerError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split()) or repr(error)
            raise PeerError(f"{self.name} cannot run {path}: {reason}") from error
        return call


def names() -> list[str]:
    """All engines that there is an adapter for, installed or not."""
    return list(PEERS)


def peer(name: str) -> Peer:
    """The engine by name; PeerError for an unknown one."""
    if name not in PEERS:
        raise PeerError(f"no engine {name!r}; there are {', '.join(PEERS)}")
    return PEERS[name]


def _onnxruntime(path: Path, inputs: Arrays, threads: int, net: NetBuilder | None) -> Call:
    """All optimisations, sequential executor, inputs and outputs bound to fixed memory."""
    ort = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    results = [ort.OrtValue.ortvalue_from_numpy(array) for array in session.run(None, dict(inputs))]
    for entry, value in zip(session.get_outputs(), results, strict=True):
        binding.bind_ortvalue_output(entry.name, value)
    return Call(
        run=lambda: session.run_with_iobinding(binding),
        outputs=lambda: [value.numpy() for value in results],
        settings=f"onnxruntime {ort.__version__}, all optimisations, IO binding, "
        f"intra-op threads {threads}, inter-op 1",
    )


def _openvino(precision: str) -> Load:
    def load(path: Path, inputs: Arrays, threads: int, net: NetBuilder | None) -> Call:
        """Latency hint, one stream, input shapes fixed, tensors shared with the caller."""
        ov = importlib.import_module("openvino")
        core = ov.Core()
        model = core.read_model(path)
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": "1",
            "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": precision,
        }
        compiled = core.compile_model(model, "CPU", options)
        request = compiled.create_infer_request()
        kept = {name: ov.Tensor(array, shared_memory=True) for name, array in inputs.items()}
        for name, tensor in kept.items():
            request.set_tensor(name, tensor)
        return Call(
            run=request.infer,
            outputs=lambda: [request.get_tensor(port).data.copy() for port in compiled.outputs],
            settings=f"openvino {ov.__version__.split('-')[0]}, latency hint, one stream, "
            f"static shapes, {precision}, threads {threads}",
        )

    return load


def _torch(inductor: bool) -> Load:
    def load(path: Path, inputs: Arrays, threads: int, net: NetBuilder | None) -> Call:
        """The module under inference mode, as it is or through torch.compile."""
        if net is None:
            raise PeerError(f"torch needs a module, and {path} has none that made it")
        torch = importlib.import_module("torch")
        module = torch.compile(net()) if inductor else net()
        arguments = [torch.from_numpy(array) for array in inputs.values()]
        last: list[Any] = []

        def run() -> None:
            _use_threads(torch, threads)
            with torch.inference_mode():
                last[:] = _flat(module(*arguments))

        kind = "inductor" if inductor else "eager"
        return Call(
            run=run,
            outputs=lambda: [tensor.numpy() for tensor in last],
            settings=f"torch {torch.__version__}, {kind}, inference mode, threads {threads}",
        )

    return load


def _use_threads(torch: ModuleType, threads: int) -> None:
    """torch's thread count is global: callables with different counts may share the process."""
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _flat(result: Any) -> Sequence[Any]:
    return result if isinstance(result, tuple | list) else [result]


PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("onnxruntime", "onnxruntime", _onnxruntime),
        Peer("openvino", "openvino", _openvino("f32")),
        Peer("openvino-bf16", "openvino", _openvino("bf16")),
        Peer("torch", "torch", _torch(inductor=False)),
        Peer("torch-inductor", "torch", _torch(inductor=True)),
    )
}
