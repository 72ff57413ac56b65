"""Operators on shapes, slices and indices at every version of theirs."""

from __future__ import annotations

import numpy as np
from onnx_models import f32, i64
from opset_example import Examples

A = f32(range(24)).reshape(2, 3, 4)
FLOAT8 = (19, 21, 23, 24, 25)  # opsets whose only news are element types

EXAMPLES = Examples()
node = EXAMPLES.node
text = EXAMPLES.text

# Reshape: the shape is an attribute before opset 5; allowzero comes with 14.
node("Reshape", [1], [A], A.reshape(3, 8), shape=[3, -1])
node("Reshape", [1], [A], A.reshape(2, 12), shape=[0, 12], consumed_inputs=[0])
node("Reshape", (5, 13, 14, *FLOAT8), [A, [0, -1]], A.reshape(2, 12), fix=[1])
node("Reshape", (14, *FLOAT8), [np.zeros((0, 3), np.float32), [3, 0]],
     np.zeros((3, 0), np.float32), fix=[1], allowzero=1)  # fmt: skip

node("Shape", (1, 13, 15, *FLOAT8), [A], i64([2, 3, 4]))
node("Shape", (15, *FLOAT8), [A], i64([3]), start=1, end=-1)
node("Size", (1, 13, *FLOAT8), [A], np.array(24))
node("Identity", (1, 13, 14, 16, *FLOAT8), [A], A)
text("Identity of a sequence", (14, 16, 21), """m (float[2] x) => (y) {
    s = SequenceConstruct(x, x)  t = Identity(s)  y = ConcatFromSequence<axis=0>(t) }""",
     {"x": f32([1, 2])}, f32([1, 2, 1, 2]))  # fmt: skip
node("Transpose", (1, 13, 21, 23, 24, 25), [A], A.transpose(), note="reversed")
node("Transpose", (1, 13, 21, 23, 24, 25), [A], A.transpose(1, 0, 2), perm=[1, 0, 2])

# Negative axes come with opset 11.
node("Flatten", (1, 9, 11, 13, 21, 23, 24, 25), [A], A.reshape(2, 12))
node("Flatten", (1, 9, 11, 13, 21, 23, 24, 25), [A], A.reshape(1, 24), axis=0)
node("Flatten", (1, 9, 11), [A], A.reshape(24, 1), axis=3)
node("Flatten", (9, 11), [A.astype(np.int32)], A.astype(np.int32).reshape(6, 4), axis=2)
node("Flatten", (11, 13, 21, 23, 24, 25), [A], A.reshape(6, 4), axis=-1)

# Squeeze and Unsqueeze: axes are an attribute before opset 13.
B = A[:, :1, None]
node("Squeeze", (1, 11), [B], A[:, 0], axes=[1, 2])
node("Squeeze", (1, 11), [B], A[:, 0])
node("Squeeze", (11,), [B], A[:, :1], axes=[-2])
node("Squeeze", (13, 21, 23, 24, 25), [B, [-2]], A[:, :1], fix=[1])
node("Squeeze", (13, 21, 23, 24, 25), [B], A[:, 0])
node("Unsqueeze", (1, 11), [A], A[None, :, None], axes=[0, 2])
node("Unsqueeze", (1, 11), [A], A[None, :, None], axes=[2, 0])
node("Unsqueeze", (11,), [A], A[..., None], axes=[-1])
node("Unsqueeze", (13, 21, 23, 24, 25), [A, [-1, 0]], A[None, ..., None], fix=[1])

# Concat: the axis is 1 by default in opset 1.
node("Concat", [1], [A, A + 1], np.concatenate([A, A + 1], 1))
node("Concat", (1, 4, 11, 13), [A, A + 1], np.concatenate([A, A + 1], 2), axis=2)
node("Concat", (11, 13), [A, A + 1], np.concatenate([A, A + 1], 1), axis=-2)

# Split: sizes are an input or an attribute in opset 1, an attribute until 13, then an input; from
# 18 on parts may be unequal.
node("Split", (1, 2, 11, 13), [A], A[:1], A[1:])
node("Split", (1, 2, 11), [A], A[..., :1], A[..., 1:], axis=2, split=[1, 3])
node("Split", [1], [A, f32([1, 3])], A[..., :1], A[..., 1:], fix=[1], axis=2)
node("Split", (11,), [A], A[..., :1], A[..., 1:], axis=-1, split=[1, 3])
node("Split", (13, 18), [A, [1, 3]], A[..., :1], A[..., 1:], fix=[1], axis=-1)
node("Split", (18,), [A], A[:, :2], A[:, 2:], axis=1, num_outputs=2)

# Slice: bounds are attributes before opset 10; steps come with it, negative axes with 11.
node("Slice", [1], [A], A[0:1, 1:3], starts=[0, 1], ends=[1, 3])
node("Slice", [1], [A], A[:, :, 1:-1], starts=[1], ends=[-1], axes=[2])
node("Slice", [1], [A], A[:, -2:], starts=[-2], ends=[2**31 - 1], axes=[1])
node("Slice", [1], [A], A[:, :, 2:], starts=[2], ends=[1000], axes=[2])
for fix in ((1, 2, 3, 4), (3,)):
    node("Slice", (10, 11, 13), [A, [2], [-100], [2], [-2]], A[:, :, 2::-2], fix=fix)
node("Slice", (10, 11, 13), [A, [0, 1], [1, 3]], A[0:1, 1:3], fix=[1, 2])
node("Slice", (11, 13), [A, [1], [3], [-1], [1]], A[..., 1:3], fix=[1, 2, 3, 4])

# Tile: one axis in opset 1.
node("Tile", [1], [A, f32(2), f32(1)], np.tile(A, (1, 2, 1)), fix=[1, 2])
node("Tile", (6, 13), [A, [1, 2, 3]], np.tile(A, (1, 2, 3)), fix=[1])
node("Expand", (8, 13), [A[:, :1], [2, 3, 4]], np.broadcast_to(A[:, :1], (2, 3, 4)), fix=[1])

# Pad: an attribute named paddings, then pads, then an input; axes come with 18, wrap with 19.
ALL_AXES = [1, 0, 0, 0, 2, 1]
PADDED = np.pad(A, [(1, 0), (0, 2), (0, 1)], constant_values=7)
EDGE = np.pad(A, [(0, 0), (1, 0), (2, 1)], "edge")
REFLECT = np.pad(A, [(0, 0), (1, 0), (2, 1)], "reflect")
node("Pad", [1], [A], PADDED, paddings=ALL_AXES, value=7.0)
node("Pad", [1], [A], EDGE, paddings=[0, 1, 2, 0, 0, 1], mode="edge")
node("Pad", [2], [A], PADDED, pads=ALL_AXES, value=7.0)
node("Pad", [2], [A], REFLECT, pads=[0, 1, 2, 0, 0, 1], mode="reflect")
node("Pad", [2], [A], A[:, 1:], pads=[0, -1, 0, 0, 0, 0])
INPUTS = (11, 13, 18, *FLOAT8)
node("Pad", INPUTS, [A, ALL_AXES, f32(7)], PADDED, fix=[1])
node("Pad", INPUTS, [A, [0, 1, 2, 0, 0, 1]], REFLECT, fix=[1], mode="reflect")
node("Pad", (13, 18, *FLOAT8), [A > 5, ALL_AXES], np.pad(A > 5, [(1, 0), (0, 2), (0, 1)]), fix=[1])
node("Pad", INPUTS[2:], [A, [2, 1], f32(7), [-1]],
     np.pad(A, [(0, 0), (0, 0), (2, 1)], constant_values=7), fix=[1, 3])  # fmt: skip
node("Pad", FLOAT8, [A, [2, 1], None, [2]], np.pad(A, [(0, 0), (0, 0), (2, 1)], "wrap"),
     fix=[1, 3], mode="wrap")  # fmt: skip

# Depth and space: only blocks before channels until opset 11 (and, the other way, 28).
IMAGE = f32(range(48)).reshape(1, 8, 2, 3)
DCR = IMAGE.reshape(1, 2, 2, 2, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(1, 2, 4, 6)
CRD = IMAGE.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
node("DepthToSpace", (1, 11, 13, 28), [IMAGE], DCR, blocksize=2)
node("DepthToSpace", (11, 13, 28), [IMAGE], CRD, blocksize=2, mode="CRD")
node("SpaceToDepth", (1, 13, 28), [DCR], IMAGE, blocksize=2)

# Indices: negative ones and axes come with opset 11.
ROWS = i64([[0, 2], [1, 0]])
node("Gather", (1, 11, 13), [A, ROWS], A[:, ROWS], axis=1)
node("Gather", (11, 13), [A, -ROWS], A[..., -ROWS], axis=-1)
PAIR = A[0, :2]
node("GatherElements", (11, 13), [PAIR, -ROWS], np.take_along_axis(PAIR, -ROWS, 1), axis=-1)
node("GatherND", (11, 12, 13), [A, i64([[0, 1], [-1, -1]])], A[[0, 1], [1, 2]])
node("GatherND", (12, 13), [A, i64([[1], [-3]])], A[[0, 1], [1, 0]], batch_dims=1)
PUT = f32([[10, 20], [30, 40]])
SCATTERED = PAIR.copy()
np.put_along_axis(SCATTERED, ROWS, PUT, 1)
node("Scatter", [9], [PAIR, ROWS, PUT], SCATTERED, axis=1)
node("ScatterElements", (11, 13, 16, 18), [PAIR, ROWS - 4, PUT], SCATTERED, axis=-1)
ADDED = A[0].copy()
np.add.at(ADDED, (ROWS, [[0, 1], [0, 1]]), PUT)
node("ScatterElements", (16, 18), [A[0], ROWS, PUT], ADDED, axis=0, reduction="add")
ND = A.copy()
ND[0, 1] = 5
node("ScatterND", (11, 13, 16, 18), [A, i64([[0, -2]]), f32([[5] * 4])], ND)
PRODUCT = A.copy()
PRODUCT[1, 2] *= 5
node("ScatterND", (16, 18), [A, i64([[1, 2]]), f32([[5] * 4])], PRODUCT, reduction="mul")
MOST = A[0].copy()
MOST[0, 0] = 9
node("ScatterElements", (18,), [A[0], i64([[0]]), f32([[9]])], MOST, reduction="max")

# OneHot: a negative index hits nothing in opset 9, and counts from the end since 11.
PLACES, VALUES = i64([0, -1, 2, 3, -4]), f32([1, 5])
OLD = f32([[5, 1, 1], [1, 1, 1], [1, 1, 5], [1, 1, 1], [1, 1, 1]])
NEW = f32([[5, 1, 1], [1, 1, 5], [1, 1, 5], [1, 1, 1], [1, 1, 1]])
node("OneHot", [9], [PLACES, i64(3), VALUES], OLD, fix=[1])
node("OneHot", (11, 28), [PLACES, i64(3), VALUES], NEW, fix=[1])
node("OneHot", (9,), [PLACES.astype(np.float32), f32([3]), VALUES], OLD.T, fix=[1], axis=0)
node("OneHot", (11, 28), [PLACES, i64(3), VALUES], NEW.T, fix=[1], axis=-2)

node("Compress", (9, 11, 28), [A, np.array([True, False, True])], A[:, [0, 2]], axis=1)
node("Compress", (9, 11, 28), [A[0], np.array([False, True, True])], f32([1, 2]))
node("Compress", (11, 28), [A, np.array([False, False, True])], A[..., 2:3], axis=-1)
node("NonZero", (9, 13), [f32([[1, 0], [0, 2]])], i64([[0, 1], [0, 1]]))
SAMPLE = f32([2, 1, 1, 3, 2])
node("Unique", (11, 28), [SAMPLE], f32([1, 2, 3]), i64([1, 0, 3]), i64([1, 0, 0, 2, 1]),
     i64([2, 2, 1]))  # fmt: skip
node("Unique", (11, 28), [SAMPLE], f32([2, 1, 3]), i64([0, 1, 3]), i64([0, 1, 1, 2, 0]),
     i64([2, 2, 1]), sorted=0)  # fmt: skip
node("ReverseSequence", (10, 28), [A[0], i64([3, 1, 2, 3])],
     f32([[8, 1, 6, 11], [4, 5, 2, 7], [0, 9, 10, 3]]))  # fmt: skip
node("TopK", [1], [SAMPLE], f32([3, 2]), i64([3, 0]), k=2)
node("TopK", [1], [A], A[:, :0:-1], np.broadcast_to(i64([2, 1])[:, None], (2, 2, 4)), k=2, axis=1)
node("TopK", (10, 11, 24), [SAMPLE, [2]], f32([3, 2]), i64([3, 0]), fix=[1])
node("TopK", (11, 24), [SAMPLE, [2]], f32([1, 1]), i64([1, 2]), fix=[1], largest=0)

# Constants and what makes tensors.
text("Constant", (1, 9, 11, 12, 13, *FLOAT8), """m () => (y) {
    y = Constant<value = float[2] {1, 2}>() }""", {}, f32([1, 2]))  # fmt: skip
text("Constant of numbers", (12, 13, *FLOAT8), """m () => (a, b, c, d) {
    a = Constant<value_float = 1.5>()  b = Constant<value_floats = [1.0, 2.0]>()
    c = Constant<value_int = 3>()  d = Constant<value_ints = [4, 5]>() }""",
     {}, f32(1.5), f32([1, 2]), np.array(3), i64([4, 5]))  # fmt: skip
text("ConstantOfShape", (9, 20, *FLOAT8[1:]), """m () => (y) <int64[2] s = {2, 3}> {
    y = ConstantOfShape<value = int64[1] {7}>(s) }""", {}, np.full((2, 3), 7))  # fmt: skip
node("EyeLike", (9, 22), [A[0]], np.eye(3, 4, 1, np.float32), k=1)
node("EyeLike", (9, 22), [A[0]], np.eye(3, 4, dtype=np.int32), dtype=6)
node("Range", (11, 27), [f32(1), f32(6), f32(2)], f32([1, 3, 5]), fix=[0, 1, 2])
node("Range", (11, 27), [10, 4, -3], i64([10, 7]), fix=[0, 1, 2])
