"""Small models whose code has what differs from one cpu to another: products of every kind, math,
half floats; with inputs and with what they are to give."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from cuvil.options import Options

_HEADER = '<ir_version: 8, opset_import: ["" : 18]>'
Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(11)


@dataclass(frozen=True)
class ForeignCase:
    """A model as bytes, inputs, what it should give, how far off it may be. options: how it is
    compiled."""

    name: str
    proto: onnx.ModelProto
    inputs: dict[str, Array]
    wanted: dict[str, Array]
    tolerance: float
    options: dict[str, Any] = field(default_factory=dict)

    def options_for(self, target: str, variant: str = "") -> Options:
        return Options(target=target, variant=variant, name=self.name, **self.options)


def floats(precision: str = "fp32") -> ForeignCase:
    """softmax(x @ w) and x @ w as half floats, of 19 rows, which are no multiple of any tile's."""
    proto = onnx.parser.parse_model(
        _HEADER + "floats (float[N, 52] x) => (float[N, 33] y, float16[N, 33] half)"
        "{ h = MatMul(x, w)  y = Softmax<axis = -1>(h)  half = Cast<to = 10>(h) }"
    )
    w, x = (RNG.standard_normal(shape, np.float32) for shape in ((52, 33), (19, 52)))
    proto.graph.initializer.append(numpy_helper.from_array(w, "w"))
    h = x @ w
    e = np.exp(h - h.max(-1, keepdims=True))
    wanted = {"y": e / e.sum(-1, keepdims=True), "half": h.astype(np.float16)}
    loose = precision != "fp32"
    name = f"floats_{precision}"
    return ForeignCase(
        name, proto, {"x": x}, wanted, 0.1 if loose else 2e-3, {"precision": precision}
    )


def codes() -> ForeignCase:
    """Products of bytes between quantised values, exact up to one step of the result."""
    proto = onnx.parser.parse_model(
        _HEADER + "codes (uint8[N, 36] x) => (uint8[N, 24] y)"
        "{ xf = DequantizeLinear(x, xs, xz)  wf = DequantizeLinear(w, ws, wz)"
        "  h = MatMul(xf, wf)  y = QuantizeLinear(h, ys, yz) }"
    )
    x = RNG.integers(0, 256, (19, 36), dtype=np.uint8)
    w = RNG.integers(-128, 128, (36, 24), dtype=np.int64).astype(np.int8)
    held = {"xs": np.float32(0.03), "xz": np.uint8(9), "ws": np.float32(0.01), "wz": np.int8(0)}
    held |= {"ys": np.float32(0.5), "yz": np.uint8(120), "w": w}
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()
    )
    h = (x.astype(np.int64) - 9) @ w.astype(np.int64) * (0.03 * 0.01)
    wanted = np.clip(np.rint(h / 0.5) + 120, 0, 255).astype(np.uint8)
    return ForeignCase("codes", proto, {"x": x}, {"y": wanted}, 1.0)


def few_rows() -> ForeignCase:
    """A row by matrices that come with it, as they lie and transposed."""
    proto = onnx.parser.parse_model(
        _HEADER + "few_rows (float[1, 52] x, float[52, N] m, float[N, 52] t)"
        " => (float[1, N] y, float[1, N] z)"
        "{ y = MatMul(x, m)  z = Gemm<transB = 1>(x, t) }"
    )
    x, m, t = (RNG.standard_normal(shape, np.float32) for shape in ((1, 52), (52, 91), (91, 52)))
    wanted = {"y": x @ m, "z": x @ t.T}
    return ForeignCase("few_rows", proto, {"x": x, "m": m, "t": t}, wanted, 1e-4)


def cases() -> list[ForeignCase]:
    """All of them."""
    return [floats(), floats("bf16"), codes(), few_rows()]


def check(case: ForeignCase, found: dict[str, Array]) -> None:
    """Results are what they should be."""
    for name, wanted in case.wanted.items():
        assert found[name].dtype == wanted.dtype and found[name].shape == wanted.shape
        off = np.abs(found[name].astype(np.float64) - wanted.astype(np.float64))
        scale = (
            1.0 if wanted.dtype == np.uint8 else np.maximum(1, np.abs(wanted.astype(np.float64)))
        )
        assert (off <= case.tolerance * scale).all(), f"{case.name} {name}: off by {off.max()}"


def disassembler() -> str | None:
    """The program llvm-objdump, None where it is not installed."""
    return shutil.which("llvm-objdump-22") or shutil.which("llvm-objdump")


def undeclared(path: Path, features: str, triple: str = "") -> list[str]:
    """Instructions of an object that a cpu with LLVM's `features` alone does not have. triple:
    LLVM's, where it says which version of an architecture all have.

    What the object says of itself is left out: the disassembler would take its word.
    """
    program = disassembler() or "llvm-objdump"
    with tempfile.NamedTemporaryFile(suffix=".o") as bare:
        strip = [program.replace("objdump", "objcopy"), "--wildcard", "-R", ".*.attributes"]
        subprocess.run([*strip, str(path), bare.name], check=True)
        options = [f"--triple={triple}"] if triple else []
        command = [program, "-d", *options, f"--mattr={features}", bare.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in text.splitlines() if "<unknown>" in line]
