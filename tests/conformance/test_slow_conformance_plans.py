"""ONNX's own suite through the planner: every plan is legal and means what the model means."""

from __future__ import annotations

import pytest

from tools.conformance import PlanBackend, listed, run_suite

# Whole networks, and single ops on large tensors: an interpreter takes minutes for each.
LARGE = (
    "alexnet|densenet|inception|resnet50|shufflenet|squeezenet|vgg19|zfnet|pool_3d|d1d2d3d4d5"
    "|MaxPool[12]d_stride_padding|upsample_sizes_cubic"
)


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_listed_passes_when_its_plan_is_interpreted() -> None:
    outcomes = run_suite(PlanBackend, f"^(?!.*({LARGE}))")
    known = listed()
    assert len(outcomes) > 1950
    assert [o for o in outcomes if not o.passed and o.name not in known] == []
