"""Resize against ONNX's reference evaluator, and by hand where that is known to be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from op_check import check, make_op, meaning, rand, same

from cuvil.ops.resize_rules import COORDINATES, NEAREST

# Of the others the reference knows nothing, or takes a fractional extent for align_corners.
CENTRED = [c for c in COORDINATES if not c.startswith("tf_") and c != "align_corners"]
SCALE = float(np.float32(0.6))


def reference(x: np.ndarray, sizes: Any = None, scales: Any = None, **attrs: Any) -> np.ndarray:
    """ONNX's own answer."""
    feeds = {"x": x}
    names = ["x", "", "scales" if scales else "", "sizes" if sizes else ""]
    if scales:
        feeds["scales"] = np.float32(scales)
    if sizes:
        feeds["sizes"] = np.int64(sizes)
    kinds = {n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in feeds.items()}
    node = helper.make_node("Resize", names, ["y"], **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, kinds[n], None) for n in feeds],
        [helper.make_tensor_value_info("y", kinds["x"], None)],
    )
    model = helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 19)])
    return np.asarray(ReferenceEvaluator(model).run(None, feeds)[0])


def test_nearest_by_hand() -> None:
    x = np.arange(9, dtype="f4").reshape(3, 3)
    (got,) = check("resize", x, axes=(0, 1), dims=(4, 4), scales=(1.5, 1.5))
    assert got.tolist() == [[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5], [6, 6, 7, 8]]


@pytest.mark.parametrize("coordinate", CENTRED)
@pytest.mark.parametrize("rule", NEAREST)
def test_nearest(coordinate: str, rule: str) -> None:
    more = {"coordinate": coordinate, "nearest_mode": rule, "axes": (0,)}
    names = {"coordinate_transformation_mode": coordinate, "nearest_mode": rule}
    x = rand(26)
    for size in (64, 13, 7, 52):
        want = reference(x, sizes=[size], mode="nearest", **names)
        (got,) = meaning("resize", x, dims=(size,), **more)
        np.testing.assert_array_equal(got, want, err_msg=f"26 to {size}")
    for scale, size in ((1.5, 7), (SCALE, 3), (3.0, 15)):
        want = reference(x[:5], scales=[scale], mode="nearest", **names)
        (got,) = check("resize", x[:5], dims=(size,), scales=(scale,), **more)
        np.testing.assert_array_equal(got, want, err_msg=f"5 times {scale}")


@pytest.mark.parametrize("coordinate", CENTRED)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [False, True])
def test_interpolation(coordinate: str, mode: str, exclude: bool) -> None:
    more: dict[str, Any] = {"coordinate": coordinate, "mode": mode, "exclude_outside": exclude}
    names = {"coordinate_transformation_mode": coordinate, "mode": mode}
    x, scales = rand(4, 4), (1.5, SCALE)
    want = reference(x, scales=scales, exclude_outside=int(exclude), **names)
    (got,) = check("resize", x, axes=(0, 1), dims=(6, 2), scales=scales, symbolic=False, **more)
    same(got, want, 1e-5)


def test_align_corners_by_hand() -> None:
    """The ends stay; between them every position is a multiple of (5 - 1) / (7 - 1)."""
    x = np.arange(5, dtype="f4")
    more = {"axes": (0,), "dims": (7,), "scales": (1.5,), "coordinate": "align_corners"}
    (got,) = check("resize", x, **more)
    assert got.tolist() == [0, 1, 1, 2, 3, 3, 4]
    (got,) = check("resize", x, mode="linear", **more)
    np.testing.assert_allclose(got, np.arange(7) * 4 / 6, rtol=1e-6)


def test_positions_of_pixels_for_nn() -> None:
    more = {"axes": (0,), "dims": (2,), "coordinate": "tf_half_pixel_for_nn"}
    (got,) = check("resize", np.arange(5, dtype="f4"), nearest_mode="floor", **more)
    assert got.tolist() == [1, 3]


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias(mode: str) -> None:
    x = rand(2, 9)
    want = reference(x, scales=[0.5, 0.25], mode=mode, antialias=1)
    more = {"axes": (0, 1), "dims": (1, 2), "mode": mode, "antialias": True}
    (got,) = check("resize", x, scales=(0.5, 0.25), **more)
    same(got, want, 1e-5)


def test_shrinking_to_one_pixel() -> None:
    """The centre under half_pixel; the first pixel under the rules that say coordinate 0."""
    x = np.arange(16, dtype="f4").reshape(4, 4)
    for coordinate, want in (("half_pixel", 7.5), ("pytorch_half_pixel", 0), ("asymmetric", 0),
                             ("align_corners", 0)):  # fmt: skip
        more = {"mode": "cubic", "coordinate": coordinate}
        (got,) = check("resize", x, axes=(0, 1), dims=(1, 1), **more)
        np.testing.assert_allclose(got, [[want]], atol=1e-5)


def test_crop_extrapolates() -> None:
    x = rand(4, 4)
    more = {"axes": (0, 1), "roi": (0.25, -0.5, 0.75, 1.0), "extrapolation": 9.0}
    for mode in ("nearest", "linear"):
        more |= {"coordinate": "tf_crop_and_resize", "mode": mode}
        (got,) = check("resize", x, dims=(3, 4), **more)
        assert (got[:, 0] == 9).all()


def test_other_types_and_layouts() -> None:
    check("resize", rand(1, 2, 3, 2), axes=(1, 2), dims=(1, 4, 6, 2), mode="linear")
    check("resize", rand(3, 2, dtype="u1"), axes=(0,), dims=(6, 2), mode="linear")
    check("resize", rand(3, dtype="bool"), axes=(0,), dims=(5,))
    check("resize", rand(3, dtype="f2"), axes=(0,), dims=(5,), mode="cubic")


@pytest.mark.parametrize(
    "attrs",
    [{"mode": "area"}, {"scales": (-1.0,)}, {"axes": (2,)}, {"axes": (0, 1)}, {"dims": (1, 2)}],
)
def test_refusals(attrs: dict) -> None:
    full = {"axes": (0,), "dims": (2,), "scales": (2.0,)}
    with pytest.raises(ValueError, match="resize"):
        make_op("resize", [rand(1)], {**full, **attrs}, False)
