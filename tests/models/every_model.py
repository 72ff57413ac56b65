"""The tests that every compiled model passes; a file makes a class of its own from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from models.checks import (
    ZooModel,
    check_accurate,
    check_agrees_with_onnxruntime,
    check_same_from_c,
    check_same_on_two_threads,
)


class EveryModel:
    """names: of the zoo. Rows that share a file should be neighbours: it is then compiled once."""

    names: ClassVar[Sequence[str]] = ()

    def test_agrees_with_onnxruntime_at_any_size(self, model: ZooModel) -> None:
        check_agrees_with_onnxruntime(model)

    def test_is_as_close_to_float64_as_onnxruntime(self, model: ZooModel) -> None:
        check_accurate(model)

    def test_a_c_program_gets_the_same_bytes(
        self, model: ZooModel, c_runner: Path, tmp_path: Path
    ) -> None:
        check_same_from_c(model, c_runner, tmp_path)

    def test_two_threads_get_the_same_bytes(self, model: ZooModel) -> None:
        check_same_on_two_threads(model)
