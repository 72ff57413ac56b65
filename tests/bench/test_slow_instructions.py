"""Instructions of emulated programs are counted: as many as there are, for one run of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign.machines import EVERY

from tools.bench.cross_counts import of_product
from tools.bench.instructions import executed
from tools.foreign import Machine, compile_c
from tools.plugins import PluginError, lacking

LOOP = "int main(int count, char **words) { return count < 2 || turn(atoi(words[1])); }"
TURN = """
#include <stdlib.h>
static int turn(int times) {
  for (int i = 0; i < times; i++) __asm__ volatile("nop\\n nop\\n nop\\n nop\\n nop\\n nop");
  return 0;
}
"""


def need(machine: Machine) -> None:
    if missing := lacking(machine):
        pytest.skip(missing)


@EVERY
def test_every_instruction_counts(machine: Machine, tmp_path: Path) -> None:
    need(machine)
    (tmp_path / "loop.c").write_text(TURN + LOOP)
    program = compile_c(machine, [tmp_path / "loop.c"], tmp_path / "loop", ["-static"])
    few, many = (executed(machine, program, [turns]).instructions for turns in (10_000, 30_000))
    assert 7 <= (many - few) / 20_000 <= 10  # six, and what counts and jumps
    with pytest.raises(PluginError, match="loop ended with 1"):
        executed(machine, program, [])


@EVERY
def test_a_product_takes_less_than_an_instruction_for_each_multiplication(machine: Machine) -> None:
    need(machine)
    rows, inner, columns = shape = (16, 64, 32)
    count = of_product(machine, shape, known=True)
    vectors = count.said not in ("scalar", "vfp")
    least, most = (0.1, 1.0) if vectors else (1.0, 4.0)
    assert least < count.instructions / (rows * inner * columns) < most
