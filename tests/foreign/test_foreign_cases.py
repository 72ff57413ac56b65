"""Cases of ONNX's own suite, compiled for other machines and called from C under qemu."""

from __future__ import annotations

import pytest
from foreign.machines import EVERY as ON_EVERY
from foreign.machines import needs

from tools.conformance.forms.c import on
from tools.conformance.forms.emulated import options_for
from tools.conformance.lists import differences, known
from tools.conformance.suite import Suite
from tools.foreign import Machine

CASES = (
    "test_conv_with_strides_padding",
    "test_gemm_all_attributes",
    "test_averagepool_2d_ceil",
    "test_softmax_axis_1",
    "test_layer_normalization_2d_axis1",
    "test_gelu_default_1",
    "test_cast_FLOAT_to_FLOAT16",
    "test_cast_FLOAT_to_BFLOAT16",
    "test_qlinearmatmul_2D_uint8_float32",
    "test_div_int32_trunc",
    "test_bitshift_right_uint16",
    "test_nonzero_example",
    "test_top_k",
    "test_range_float_type_positive_delta_expanded",
    "test_sequence_insert_at_front",
    "test_string_concat_utf8",
    "test_lstm_with_peepholes",
    "test_resize_upsample_scales_linear",
)
NETWORKS = "bvlc|densenet|inception|resnet50|shufflenet|squeezenet|vgg|zfnet"  # slow when emulated
EVERY = 100


@ON_EVERY
@pytest.mark.filterwarnings("ignore")
def test_cases_of_the_suite(machine: Machine) -> None:
    needs(machine)
    suite = Suite(on([machine], options_for(machine)))
    cases = suite.names("^(" + "|".join(CASES) + ")$")
    assert len(cases) > len(CASES) - 3  # names come and go with versions of the suite
    others = suite.names(f"^test_(?!{NETWORKS})")[::EVERY]
    outcomes = [suite.run(case) for case in dict.fromkeys([*cases, *others])]
    assert differences(outcomes, known("emulated")) == []
