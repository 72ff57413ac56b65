"""Cases of ONNX's own suite, compiled ahead of time and called from C: every kind of value."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuvil.aot.runner.values import Value, read_values, write_values
from cuvil.aot.write import compile_to_folder
from cuvil.options import Options
from cuvil_runtime import include_dir
from tests import small_models
from tools.conformance.c_program import Caller, EmulatorError
from tools.conformance.forms import forms
from tools.conformance.suite import Suite
from tools.foreign import Machine
from tools.models.c_program import CProgramError, c_compiler

CASES = (
    "test_gemm_all_attributes",
    "test_cast_FLOAT_to_BFLOAT16",
    "test_add_uint8",
    "test_nonzero_example",  # extents that the run finds
    "test_range_float_type_positive_delta_expanded",  # ... without a bound
    "test_sequence_insert_at_front",
    "test_sequence_map_add_1_sequence_1_tensor",
    "test_split_to_sequence_1",
    "test_optional_has_element_empty_optional_input",
    "test_identity_opt",
    "test_string_concat_utf8",
)

pytestmark = pytest.mark.skipif(c_compiler() is None, reason="no C compiler")


@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_value_passes_from_c() -> None:
    suite = Suite(forms()["c"].backend())
    assert {case: suite.run(case).reason for case in CASES} == dict.fromkeys(CASES, "")


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.array(2.5),
        np.zeros((0, 3), np.float32),
        np.array(["", "été"], object),
        [np.ones(2, np.float32), np.array(True)],
        [],
        None,
    ],
    ids=str,
)
def test_values_come_back_from_files(value: Value, tmp_path: Path) -> None:
    write_values(tmp_path / "file", [value, value])
    for back in read_values(tmp_path / "file"):
        assert type(back) is type(value)
        for a, b in zip(_items(back), _items(value), strict=True):
            assert (a.dtype, a.tolist()) == (b.dtype, b.tolist())


def _items(value: Value) -> list[np.ndarray]:
    return [] if value is None else value if isinstance(value, list) else [value]


def test_what_goes_wrong_is_told_and_the_next_call_works(tmp_path: Path) -> None:
    artefact = compile_to_folder(small_models.dynamic(), tmp_path / "out", Options())
    caller = Caller(Path(include_dir()))
    x = np.ones((2, 3), np.float32)
    with pytest.raises(CProgramError, match="shape mismatch: input 'y': dim 0"):
        caller.call(artefact, {"x": x, "y": x[:1]})
    caller.kill()
    results = caller.call(artefact, {"x": x, "y": x})
    assert [name for name in results if (results[name] > 1).all()] == ["total", "twice"]
    gone = replace(artefact, files={"so": tmp_path / "gone.so"})
    with pytest.raises(CProgramError, match="No such file"):
        caller.call(gone, {"x": x, "y": x})
    caller.close()


class Failing(Machine):
    """A machine whose emulator fails."""

    def command(self, *words: str | Path) -> list[str]:
        said = "qemu-any: code.c:1: translate: Assertion x failed."
        return ["sh", "-c", f'read line; echo "{said}" >&2; kill -ABRT $$']


def test_what_the_emulator_fails_at_is_its_own(tmp_path: Path) -> None:
    artefact = compile_to_folder(small_models.dynamic(), tmp_path / "out", Options())
    caller = Caller(Path(include_dir()), Failing(f"{platform.machine()}-linux-gnu"))
    x = np.ones((2, 3), np.float32)
    with pytest.raises(EmulatorError, match="Assertion x failed"):
        caller.call(artefact, {"x": x, "y": x})
    caller.close()
