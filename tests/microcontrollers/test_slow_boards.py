"""Models on emulated boards: the numbers of ONNX's reference, all models in one program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from microcontrollers.boards import BOARDS, Call, run_on, undefined_in_link
from microcontrollers.cases import CASES
from onnx.reference import ReferenceEvaluator

from cuvil.aot.write import compile_to_folder
from cuvil.cli import main
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


@pytest.fixture(scope="module", params=BOARDS)
def board(request: pytest.FixtureRequest, tmp_path_factory) -> tuple[str, list[Call]]:
    """A board, and all cases compiled for it."""
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, [call(name, request.param, folder) for name in CASES]


def test_numbers_are_right(board: tuple[str, list[Call]], tmp_path: Path) -> None:
    name, calls = board
    BOARDS[name].need()
    found = run_on(BOARDS[name], calls, tmp_path)
    for case, one, results in zip(CASES, calls, found, strict=True):
        for result, right in zip(results, one.outputs, strict=True):
            where = f"{case} on {name}"
            if right.dtype.kind == "f":
                small = 2e-3 if right.dtype == np.float16 else 1e-5
                np.testing.assert_allclose(result, right, small, small, err_msg=where)
            else:
                np.testing.assert_array_equal(result, right, err_msg=where)


def test_inspect_lists_what_links_bring(
    board: tuple[str, list[Call]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What a linker misses of each model, which is arithmetic and memory."""
    for one in board[1]:
        archive = one.made.files["a"]
        assert main(["inspect", str(archive), "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)["undefined"]
        assert set(listed) == undefined_in_link(archive)
        assert len(listed) == len(set(listed))
