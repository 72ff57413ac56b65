"""Instructions per multiply-add on emulated machines: of whole models, and of matrix products,
there beside OpenBLAS."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from cuvil.options import Options
from tools.bench import openblas
from tools.bench.flops import model_flops
from tools.bench.instructions import Count, of_model
from tools.foreign import ForeignError, Machine
from tools.models import zoo
from tools.plugins import PluginError, lacking

MODELS = ("silero-vad-ifless", "ocr-cls", "magika", "mobilenet-v2", "resnet18", "resnet18-u8s8")
PRODUCTS = (  # rows, inner, columns: of BERT, of a classifier's last layers, of convolutions
    (128, 768, 768),
    (128, 768, 3072),
    (1, 512, 1000),
    (64, 256, 64),
    (49, 512, 2048),
)
Shape = tuple[int, int, int]


def lines(
    machine: Machine, models: tuple[str, ...] = MODELS, products: tuple[Shape, ...] = PRODUCTS
) -> Iterator[str]:
    """The tables of a machine, or the line that says what is missing."""
    if missing := lacking(machine):
        yield f"instructions of {machine.triple} are not counted: {missing}"
        return
    on = f"on {machine.cpu or 'any cpu'}"
    yield f"{f'model {on}':40} million multiply-adds  instructions for each  build"
    for name in models:
        yield from _model(machine, name)
    yield f"{f'product {on}':40} weights known  both given  OpenBLAS"
    for shape in products:
        yield _product(machine, shape)


def _model(machine: Machine, name: str) -> Iterator[str]:
    """Its line; none where the model cannot be had."""
    try:
        case = zoo.get(name)
    except zoo.ZooError:
        return
    inputs = case.inputs()
    with tempfile.TemporaryDirectory(prefix="cuvil-cross-") as folder:
        options = Options(target=machine.triple)
        count = of_model(machine, case.path, inputs, options, Path(folder))
    macs = model_flops(case.path, inputs) / 2
    yield f"{name:40} {macs / 1e6:21.1f} {count.instructions / macs:22.3f}  {count.said}"


def _product(machine: Machine, shape: Shape) -> str:
    """Its line: instructions per multiply-add, or why there are none."""
    macs = float(np.prod(shape))

    def cell(count: Callable[[], Count]) -> str:
        try:
            found = count()
        except (PluginError, ForeignError, openblas.OpenBlasError) as error:
            return str(error)
        return f"{found.instructions / macs:.3f} ({found.said})"

    ours = [cell(lambda known=known: of_product(machine, shape, known)) for known in (True, False)]
    peer = cell(lambda: openblas.product(machine, shape))
    return f"{'x'.join(map(str, shape)):40} {ours[0]:>13} {ours[1]:>11}  {peer}"


def of_product(machine: Machine, shape: Shape, known: bool) -> Count:
    """A matrix product as a model. known: whether the right matrix is a constant."""
    rows, inner, columns = shape
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s, np.float32) for s in ((rows, inner), (inner, columns)))
    right = "" if known else f", float[{inner}, {columns}] b"
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]>'
        f"product (float[{rows}, {inner}] a{right}) => (float[{rows}, {columns}] c)"
        "{ c = MatMul(a, b) }"
    )
    if known:
        model.graph.initializer.append(numpy_helper.from_array(b, "b"))
    with tempfile.TemporaryDirectory(prefix="cuvil-cross-") as folder:
        options = Options(target=machine.triple)
        inputs = {"a": a} if known else {"a": a, "b": b}
        return of_model(machine, model, inputs, options, Path(folder))
