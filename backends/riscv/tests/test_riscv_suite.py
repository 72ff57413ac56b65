"""A part of ONNX's own suite: one library, on registers of every width."""

from __future__ import annotations

import pytest

from tools.conformance.forms.c import on
from tools.conformance.forms.emulated import options_for
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite
from tools.foreign import machines

WIDTHS = machines("riscv64-linux-gnu", "rv64,v=true,vlen=128|256|512")
NETWORKS = "bvlc|densenet|inception|resnet50|shufflenet|squeezenet|vgg|zfnet"  # slow when emulated
EVERY = 80


@pytest.mark.filterwarnings("ignore")
def test_a_part_passes_at_every_width() -> None:
    if lacking := WIDTHS[0].lacking():
        pytest.skip(lacking)
    suite = Suite(on(WIDTHS, options_for(WIDTHS[0], "rvv")))
    outcomes = [suite.run(name) for name in suite.names(f"^test_(?!{NETWORKS})")[::EVERY]]
    assert differences(outcomes, known("emulated")) == []
    assert sum(o.passed for o in outcomes) > 20
