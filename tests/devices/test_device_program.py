"""A host program written by hand: parts of device buffers, and copies inside a device's memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from device_models import did, model, tool

import cuvil_backend_toy as toy
from cuvil.codegen.build import VariantTarget, build_code
from cuvil.frontends.onnx import import_model
from cuvil.ir import host_build as make
from cuvil.ir.names import Block
from cuvil.options import Options
from cuvil.pipeline import Built, compile_graph, workers
from cuvil.plan.interpreter import run_plan
from cuvil.plan.plan import DevicePlan
from cuvil_runtime import load_object


def program() -> Block:
    """y = the second half of x, then its first half, by way of two buffers of the device."""
    block = Block()

    def add(op):  # type: ignore[no-untyped-def]
        block.add_op(op)
        return op.results[0] if op.results else None

    x, y = add(make.argument(0)), add(make.argument(1))
    first, second = add(make.alloc(0, 32, "toy")), add(make.alloc(256, 32, "toy"))
    add(make.copy(32, x, first, "toy", 0))
    add(make.copy(16, add(make.view(first, 16)), second, "toy", 0))
    add(make.copy(16, first, add(make.view(second, 16)), "toy", 0))
    add(make.copy(32, second, y, "toy", 0))
    add(make.signal("toy", 1))
    add(make.wait("toy", 1))
    return block


def built() -> Built:
    """The program in the place of an identity's."""
    source = model([tool("Tanh", "x", out="y")], {"x": [8]}, {"y": [8]})
    whole = compile_graph(import_model(source), Options())
    devices = [DevicePlan("toy", 512, 0, 0, {})]
    plan = replace(
        whole.plan, program=make.program("mlp", 0, program()), kernels={}, devices=devices
    )
    target = VariantTarget("only", 0, whole.variants[-1].facts)
    code = build_code(plan, [target], producer="test")
    return replace(whole, plan=plan, code=code, objects=workers().compile(code.units))


def test_a_program_copies_inside_a_devices_memory(shim: toy.Toy, tmp_path: Path) -> None:
    made = built()
    made.write_object(tmp_path / "model.o")
    engine = load_object((tmp_path / "model.o").read_bytes(), devices={"toy": shim.device})
    x = np.arange(8, dtype=np.float32)
    want = np.roll(x, 4)
    shim.took()
    np.testing.assert_array_equal(engine.run([x])[0], want)
    assert shim.took() == {**did(1, 1, 0), "copies": 2}
    np.testing.assert_array_equal(run_plan(made.plan, {"x": x})["y"], want)
