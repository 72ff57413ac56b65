"""Models on emulated boards: the numbers of ONNX's reference, all models in one program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from microcontrollers.boards import BOARDS, Call, run_on
from microcontrollers.cases import CASES
from onnx.reference import ReferenceEvaluator

from cuvil.aot.write import compile_to_folder
from cuvil.options import Options


def call(name: str, board: str, folder: Path) -> Call:
    """A case compiled for a board, and what is to come."""
    case, where = CASES[name], BOARDS[board]
    bounds = {symbol: (1, most) for symbol, most, _ in case.extents}
    options = Options(target=where.target, cpu=where.cpu, features=where.features, bounds=bounds)
    model = case.model(f"case_{name}")
    outputs = [np.asarray(y) for y in ReferenceEvaluator(model).run(None, dict(case.inputs))]
    made = compile_to_folder(model, folder / name, options)
    return Call(made, case.inputs, outputs, [now for _, _, now in case.extents], case.shapes)


@pytest.mark.parametrize("board", BOARDS)
def test_numbers_are_right(board: str, tmp_path: Path) -> None:
    BOARDS[board].need()
    calls = [call(name, board, tmp_path) for name in CASES]
    found = run_on(BOARDS[board], calls, tmp_path)
    for name, one, results in zip(CASES, calls, found, strict=True):
        for result, right in zip(results, one.outputs, strict=True):
            where = f"{name} on {board}"
            if right.dtype.kind == "f":
                small = 2e-3 if right.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(result, right, small, small, err_msg=where)
            else:
                np.testing.assert_array_equal(result, right, err_msg=where)
