"""What callers on other machines may do with memory: data at any element, of any length, denormal
numbers; two models that share a pool of threads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from foreign.machines import EVERY, machines, needs
from foreign.programs import linked
from onnx import numpy_helper

from cuvil.aot.runner.program import open_folder, read_response, write_request
from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.options import Options
from tools.bench.cross import bench_files, read
from tools.foreign import Machine, compile_c
from tools.plugins import lacking, observe

HEADER = '<ir_version: 8, opset_import: ["" : 18]>'
KEEP_DENORMALS = 1  # cuvil_options::flags
RNG = np.random.default_rng(13)
W = RNG.standard_normal((13, 21), np.float32)
V = RNG.integers(-9, 9, (13, 21)).astype(np.int8)
Arrays = dict[str, np.ndarray]


def emulated() -> list[Machine]:
    """The machines on the cpus whose builds differ."""
    cpus = {b.triple: b.emulated for path in bench_files().values() for b in read(path)}
    return [Machine(m.triple, cpu) for m in machines() for cpu in cpus.get(m.triple, ("",))]


ON_EVERY_CPU = pytest.mark.parametrize("machine", emulated(), ids=lambda m: f"{m.arch}-{m.cpu}")


def model() -> onnx.ModelProto:
    """Elements of every size, and products of floats and of bytes."""
    made = onnx.parser.parse_model(
        HEADER
        + """mixed (float[N] x, double[N] d, float16[N] h, int64[N] i, uint8[N] b,
            float[N, 13] p, uint8[N, 13] q)
        => (float[N] x2, double[N] d2, float16[N] h2, int64[N] i2, uint8[N] b2,
            float[N, 21] p2, int32[N, 21] q2) {
            x2 = Mul(x, half)  d2 = Mul(d, whole)  h2 = Add(h, h)  i2 = Add(i, i)
            b2 = BitwiseNot(b)  p2 = MatMul(p, w)  q2 = MatMulInteger(q, v)
        }"""
    )
    held = {"half": np.float32(0.5), "whole": np.float64(0.5), "w": W, "v": V}
    made.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in held.items()
    )
    return made


def inputs(count: int) -> Arrays:
    """Of `count` elements; a third of the floats is denormal."""
    x, d = RNG.standard_normal(count, np.float32), RNG.standard_normal(count)
    x[::3] *= np.float32(1e-39)
    d[::3] *= 1e-310
    h = RNG.standard_normal(count).astype(np.float16)
    i, b = RNG.integers(-(1 << 40), 1 << 40, count), RNG.integers(0, 256, count, np.uint8)
    p, q = RNG.standard_normal((count, 13), np.float32), RNG.integers(0, 256, (count, 13), np.uint8)
    return {"x": x, "d": d, "h": h, "i": i, "b": b, "p": p, "q": q}


def wanted(given: Arrays) -> Arrays:
    x, d, h, i, b, p, q = given.values()
    products = q.astype(np.int32) @ V.astype(np.int32)
    whole = {"x2": x * np.float32(0.5), "d2": d * 0.5, "h2": h + h, "i2": i + i, "b2": ~b}
    return whole | {"p2": p @ W, "q2": products}


@pytest.fixture(scope="module", params=machines(), ids=lambda machine: machine.triple)
def mixed(request: pytest.FixtureRequest, tmp_path_factory) -> tuple[Machine, Artefact, Path]:
    """The model for a machine, and a program with it."""
    machine = request.param
    needs(machine)
    folder = tmp_path_factory.mktemp("mixed")
    made = compile_to_folder(model(), folder, Options(target=machine.triple), emit=("a",))
    return machine, made, linked(machine, "placed.c", [made], folder)


def call(machine: Machine, made: Artefact, program: Path, given: Arrays, *words: int) -> Arrays:
    """What the program gives for these inputs, run as its words say."""
    folder = open_folder(made.folder)
    request, response = made.folder / "request", made.folder / "response"
    write_request(folder, given, request)
    command = machine.command(program, request, response, *map(str, words))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return read_response(folder, response)


def check(found: Arrays, right: Arrays, flushed: bool = False) -> None:
    """flushed: floats below the smallest normal may be zero."""
    for name, value in right.items():
        if name == "p2":
            np.testing.assert_allclose(found[name], value, 1e-5, 1e-5)
        elif flushed and name in ("x2", "d2"):
            normal = np.abs(value) >= np.finfo(value.dtype).tiny
            np.testing.assert_array_equal(found[name][normal], value[normal])
            assert ((found[name] == value) | (found[name] == 0)).all()
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("count", [1, 2, 5, 33, 67])
def test_data_may_begin_at_any_element(mixed: tuple[Machine, Artefact, Path], count: int) -> None:
    """Data that begins between elements is refused: the program tries that, too."""
    machine, made, program = mixed
    given = inputs(count)
    flushes = machine.arch == "arm"  # its vector unit has no other way
    for shift in (0, 1, 3):
        found = call(machine, made, program, given, shift, KEEP_DENORMALS)
        check(found, wanted(given), flushed=flushes)
    check(call(machine, made, program, given, 1, 0), wanted(given), flushed=True)


@ON_EVERY_CPU
def test_strict_cpus_have_nothing_to_refuse(machine: Machine, tmp_path: Path) -> None:
    """No access of a model's is between multiples of its size; Arm's vectors need not be aligned to
    more than elements, and its emulator refuses by itself what real ones do."""
    if missing := lacking(machine):
        pytest.skip(missing)
    if not machine.arch.startswith("riscv"):
        pytest.skip("vectors there are one access, of elements that are aligned")
    options = Options(target=machine.triple)
    made = compile_to_folder(model(), tmp_path, options, emit=("a",))
    program, given = linked(machine, "placed.c", [made], tmp_path), inputs(33)
    request = tmp_path / "request"
    write_request(open_folder(made.folder), given, request)
    seen = observe("misaligned", machine, program, [request, tmp_path / "response", 1, 0])
    assert seen.told == ""
    check(read_response(open_folder(made.folder), tmp_path / "response"), wanted(given), True)


ODD = """
static __attribute__((noinline)) void put(volatile long *at) { *at = 1; }
int main(void) {
  static long a[4];
  put((long *)((char *)a + 1));
  __asm__ volatile(".option push\\n .option arch, +v\\n vsetivli t0, 2, e32, m1, ta, ma\\n"
                   "vle32.v v1, (%0)\\n .option pop" : : "r"((char *)a + 2) : "t0", "memory");
  return 0;
}
"""


def test_accesses_between_multiples_are_seen(tmp_path: Path) -> None:
    machine = next((m for m in emulated() if m.arch == "riscv64" and "v=true" in m.cpu), None)
    if machine is None or lacking(machine):
        pytest.skip("no machine whose accesses are of elements")
    (tmp_path / "odd.c").write_text(ODD)
    program = compile_c(machine, [tmp_path / "odd.c"], tmp_path / "odd", ["-static"])
    told = observe("misaligned", machine, program).told
    assert len(re.findall(r" at \w+[19]$", told, re.M)) == 1
    assert len(re.findall(r" at \w+[26ae]$", told, re.M)) == 2


def affine(name: str, factor: int) -> onnx.ModelProto:
    made = onnx.parser.parse_model(
        f"{HEADER} {name} (float[R, C] x) => (float[R, C] y) {{ y = Mul(x, k) }}"
    )
    made.graph.initializer.append(numpy_helper.from_array(np.float32(factor), "k"))
    return made


@EVERY
def test_two_models_share_a_pool(machine: Machine, tmp_path: Path) -> None:
    needs(machine)
    options = Options(target=machine.triple)
    made = [
        compile_to_folder(affine(name, factor), tmp_path / name, options, emit=("a",))
        for name, factor in (("twice", 2), ("more", 3))
    ]
    program = linked(machine, "shared_pool.c", made, tmp_path)
    done = subprocess.run(machine.command(program), capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stdout + done.stderr
