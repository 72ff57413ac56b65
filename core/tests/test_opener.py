"""Opening `.onnx` files: mapped weights, checked tensors, external data by the written rule."""

import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx.opener import OpenedModel, open_model
from cuvil.ir.pool import Pool

LARGE = np.arange(600, dtype=np.float32)  # 2400 bytes: cut out
SMALL = np.arange(6, dtype=np.int64)


def tensor(array: np.ndarray, name: str = "w") -> TensorProto:
    return numpy_helper.from_array(array, name)


def model(*initializers: TensorProto, nodes=(), functions=()) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", [], [], list(initializers))
    return helper.make_model(graph, functions=list(functions))


def values(opened: OpenedModel, proto: TensorProto) -> np.ndarray:
    found = opened.tensor(proto)
    return np.frombuffer(found.data, found.dtype.numpy).reshape(found.shape)


def only_tensor(source, **options) -> np.ndarray:
    opened = open_model(source, **options)
    return values(opened, opened.model.graph.initializer[0])


def external(
    location: str, *, dims=(4,), offset: object = None, length: object = None, name: str = "w"
) -> TensorProto:
    """A float tensor whose bytes are in another file."""
    proto = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=dims)
    proto.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            proto.external_data.add(key=key, value=str(value))
    return proto


def write(path: Path, proto: onnx.ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def nested_model(weight: np.ndarray = LARGE) -> onnx.ModelProto:
    """Tensors in every place a model can hold one."""
    weights = {name: weight + i for i, name in enumerate("abcdefgh")}
    inner = helper.make_node("Constant", [], ["c"], value=tensor(weights["c"], "c"))
    branch = helper.make_graph([inner], "then", [], [], [tensor(weights["b"], "b")])
    both = helper.make_node("If", ["cond"], ["y"], then_branch=branch, else_branch=branch)
    listed = helper.make_node("Custom", [], ["z"], domain="d")
    listed.attribute.add(name="ts", type=onnx.AttributeProto.TENSORS).tensors.extend(
        [tensor(weights["d"], "d"), tensor(weights["e"], "e")]
    )
    body = helper.make_node("Constant", [], ["o"], value=tensor(weights["f"], "f"))
    function = helper.make_function("d", "F", [], ["o"], [body], [helper.make_opsetid("", 21)])
    made = model(tensor(weights["a"], "a"), nodes=[both, listed], functions=[function])
    sparse = made.graph.sparse_initializer.add(dims=[900])
    sparse.values.CopyFrom(tensor(weights["g"], "g"))
    sparse.indices.CopyFrom(tensor(np.arange(600, dtype=np.int64), "h"))
    return made


def tensors_of(message) -> list[TensorProto]:
    """Every tensor inside a message, in order."""
    if isinstance(message, TensorProto):
        return [message]
    found = []
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            children = [value] if hasattr(value, "ListFields") else value
            found += [t for child in children for t in tensors_of(child)]
    return found


def test_large_tensors_are_found_wherever_they_are(tmp_path):
    made = nested_model()
    opened = open_model(write(tmp_path / "m.onnx", made))
    assert opened.model.ByteSize() < 1500
    before, after = tensors_of(made), tensors_of(opened.model)
    assert len(before) == len(after) == 10
    for proto, skeleton in zip(before, after, strict=True):
        assert len(skeleton.raw_data) < 30
        np.testing.assert_array_equal(values(opened, skeleton), numpy_helper.to_array(proto))


def test_all_but_the_weights_stays(tmp_path):
    made = nested_model()
    opened = open_model(write(tmp_path / "m.onnx", made))
    restored = onnx.ModelProto.FromString(opened.model.SerializeToString())
    for proto in tensors_of(restored):
        proto.raw_data = bytes(opened.tensor(proto).data)
    assert restored == made


def test_weights_are_not_copied(tmp_path):
    path = write(tmp_path / "m.onnx", model(tensor(LARGE)))
    opened = open_model(path)
    found = opened.tensor(opened.model.graph.initializer[0])
    assert type(found.data.obj).__name__ == "mmap"
    assert found.data.readonly
    assert opened.sources[0].inode == os.stat(path).st_ino


def test_bytes_and_messages_open_as_files_do():
    made = model(tensor(LARGE), tensor(SMALL, "s"))
    for source in (made, made.SerializeToString()):
        opened, pool = open_model(source), Pool()
        large, small = (opened.constant(t, pool) for t in opened.model.graph.initializer)
        np.testing.assert_array_equal(pool.array(large.key), LARGE)
        np.testing.assert_array_equal(pool.array(small.key), SMALL)


def test_packed_float_data_is_mapped_too():
    proto = helper.make_tensor("w", TensorProto.FLOAT, [600], LARGE.tolist())
    assert len(proto.float_data) == 600
    opened = open_model(model(proto).SerializeToString())
    skeleton = opened.model.graph.initializer[0]
    assert len(skeleton.float_data) == 0
    np.testing.assert_array_equal(values(opened, skeleton), LARGE)


@pytest.mark.parametrize(
    ("code", "array"),
    [
        (TensorProto.FLOAT, np.array([1.5, np.nan, -0.0], np.float32)),
        (TensorProto.DOUBLE, np.array([1.5, np.inf, -2], np.float64)),
        (TensorProto.INT64, np.array([1, -(2**63), 2**63 - 1], np.int64)),
        (TensorProto.UINT64, np.array([1, 0, 2**64 - 1], np.uint64)),
        (TensorProto.UINT32, np.array([1, 0, 2**32 - 1], np.uint32)),
        (TensorProto.INT32, np.array([1, -(2**31), 5], np.int32)),
        (TensorProto.INT16, np.array([1, -(2**15), 5], np.int16)),
        (TensorProto.INT8, np.array([1, -128, 5], np.int8)),
        (TensorProto.UINT16, np.array([1, 2**16 - 1, 5], np.uint16)),
        (TensorProto.UINT8, np.array([1, 255, 5], np.uint8)),
        (TensorProto.BOOL, np.array([True, False, True])),
        (TensorProto.FLOAT16, np.array([1.5, -0.0, np.inf], np.float16)),
        (TensorProto.BFLOAT16, np.array([1.5, -0.0, np.inf], ml_dtypes.bfloat16)),
    ],
)
def test_typed_fields_decode(code, array):
    stored = {9: np.uint8, 10: np.uint16, 16: np.uint16}.get(code, array.dtype)
    proto = TensorProto(name="w", data_type=code, dims=[3])
    field = {1: "float_data", 11: "double_data", 7: "int64_data", 12: "uint64_data"}
    field |= {13: "uint64_data"}
    getattr(proto, field.get(code, "int32_data")).extend(array.view(stored).tolist())
    found = only_tensor(model(proto))
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()


def bad_tensor(**fields) -> TensorProto:
    return TensorProto(**{"name": "w", "data_type": TensorProto.FLOAT, "dims": [2]} | fields)


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (bad_tensor(raw_data=b"1234567"), "7 bytes of data, f32"),
        (bad_tensor(), "0 bytes of data, f32"),
        (bad_tensor(float_data=[1.0, 2.0, 3.0]), "12 bytes of data"),
        (bad_tensor(dims=[-2]), "negative extent"),
        (bad_tensor(dims=[2**40, 2**40]), "overflows"),
        (bad_tensor(dims=[0, 2**62, 2**62]), "overflows"),
        (bad_tensor(dims=[1] * 40), "rank 40"),
        (bad_tensor(data_type=99), "unknown data type 99"),
        (bad_tensor(data_type=0), "unknown data type 0"),
        (bad_tensor(raw_data=b"12345678", float_data=[1.0]), "float_data and raw_data at once"),
        (bad_tensor(int64_data=[1, 2]), "belong in float_data, not int64_data"),
        (bad_tensor(data_type=TensorProto.INT8, int32_data=[1, 300]), "does not fit i8"),
        (bad_tensor(data_type=TensorProto.BOOL, raw_data=b"\1\2"), "neither 0 nor 1"),
        (bad_tensor(segment=TensorProto.Segment(begin=0, end=1)), "segments"),
    ],
)
def test_unsound_tensors_are_refused_by_name(proto, reason):
    with pytest.raises(ModelError, match=f"tensor 'w': .*{reason}"):
        only_tensor(model(proto))


def test_element_types_without_a_record_are_unsupported():
    proto = bad_tensor(data_type=TensorProto.COMPLEX64, float_data=[1, 2, 3, 4])
    with pytest.raises(UnsupportedError, match="COMPLEX64"):
        only_tensor(model(proto))


def test_tensors_of_strings():
    def texts(**fields):
        proto = bad_tensor(data_type=TensorProto.STRING, **fields)
        return open_model(model(proto)).texts(proto).tolist()

    assert texts(string_data=[b"a", "é".encode()]) == ["a", "é"]
    for fields, reason in (
        ({"string_data": [b"a"]}, "1 strings for shape"),
        ({"string_data": [b"a", b"\xff"]}, "not UTF-8"),
        ({"raw_data": b"ab"}, "belong in string_data, not raw_data"),
    ):
        with pytest.raises(ModelError, match=reason):
            texts(**fields)


def test_zero_sized_and_scalar_tensors():
    assert only_tensor(model(bad_tensor(dims=[0, 3]))).shape == (0, 3)
    assert only_tensor(model(bad_tensor(dims=[], float_data=[2.5]))) == 2.5


def nested_ifs(depth: int) -> bytes:
    graph = helper.make_graph([], "g", [], [], [tensor(LARGE)])
    for _ in range(depth - 1):
        graph = helper.make_graph(
            [helper.make_node("If", ["c"], ["y"], then_branch=graph)], "g", [], []
        )
    return helper.make_model(graph).SerializeToString()


def test_nesting_is_bounded():
    open_model(nested_ifs(32))
    with pytest.raises(ModelError, match="deeper than 32"):
        open_model(nested_ifs(33))


def test_names_are_unique_and_text():
    with pytest.raises(ModelError, match="initializer 'w' twice"):
        open_model(model(tensor(SMALL), tensor(SMALL)))
    data = model(tensor(SMALL, "name")).SerializeToString().replace(b"name", b"n\xffme")
    with pytest.raises(ModelError, match=r"TensorProto.name b'n\\xffme' is not UTF-8"):
        open_model(data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no graph"),
        (b"\x89PNG\r\n\x1a\n" * 50, "not a readable ONNX model"),
        (b"\x3a\xff\xff\xff\xff\x0f", "field 7 needs 4294967295 bytes, 0 left at byte 0"),
        (b"\x3a" + b"\xff" * 11, "longer than 10 bytes at byte 1"),
        (b"\x0b\x0c", "wire type 3 in field 1 at byte 0"),
        (b"\x02\x00", "field number 0"),
        (b"\x08", "truncated number"),
    ],
)
def test_files_that_are_no_models(tmp_path, content, reason):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=reason) as caught:
        open_model(path)
    assert str(path) in str(caught.value)


def test_paths_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "none.onnx", tmp_path, tmp_path / "pipe", "a\0b"):
        with pytest.raises(ModelError, match="cannot be opened"):
            open_model(path)


def mutations(data: bytes, count: int):
    """Deterministic damage: flips, truncations, removals, insertions, repeats."""
    rng = np.random.default_rng(7)
    for i in range(count):
        broken, at = bytearray(data), int(rng.integers(len(data)))
        size = int(rng.integers(1, 40))
        if i % 5 == 0:
            broken[at] ^= 1 << int(rng.integers(8))
        elif i % 5 == 1:
            del broken[at:]
        elif i % 5 == 2:
            del broken[at : at + size]
        elif i % 5 == 3:
            broken[at:at] = rng.bytes(size)
        else:
            broken[at:at] = broken[at : at + size]
        yield bytes(broken)


def test_damaged_files_give_model_errors_or_models(tmp_path):
    made = model(
        external("w.bin", dims=[2]),
        external("w.bin", dims=[2], offset=8, length=8, name="v"),
        bad_tensor(name="t", float_data=[1.0, 2.0]),
        bad_tensor(name="b", data_type=TensorProto.BOOL, int32_data=[1, 0]),
    )
    (tmp_path / "w.bin").write_bytes(bytes(16))
    opened_count = refused = 0
    for whole in (made, nested_model(LARGE[:2]), nested_model()):
        for broken in mutations(whole.SerializeToString(), 300):
            try:
                opened = open_model(broken, folder=tmp_path)
                opened_count += 1
                for proto in tensors_of(opened.model):
                    opened.tensor(proto)
            except (ModelError, UnsupportedError):
                refused += 1
    assert opened_count > 100
    assert refused > 300


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with weights, beside a file that is none of the model's business."""
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "w.bin").write_bytes(np.arange(16, dtype=np.float32).tobytes())
    (folder / "sub" / "w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    return folder


def open_external(folder: Path, *protos: TensorProto, **options) -> list[np.ndarray]:
    opened = open_model(write(folder / "m.onnx", model(*protos)), **options)
    return [values(opened, proto) for proto in opened.model.graph.initializer]


def test_external_data_is_mapped(folder):
    first, second, third, fourth = open_external(
        folder,
        external("w.bin", name="a"),
        external("w.bin", offset=16, length=16, name="b"),
        external("sub/w.bin", name="c"),
        external("w.bin", offset=16, length=16, name="same region as b"),
    )
    assert first.tolist() == [0, 1, 2, 3]
    assert second.tolist() == fourth.tolist() == [4, 5, 6, 7]
    assert third.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("proto", "reason"),
    [
        (external("../secret.bin"), "not a path inside"),
        (external("sub/../../secret.bin"), "not a path inside"),
        (external("/etc/hostname"), "not a path inside"),
        (external(""), "without a valid location"),
        (external("none.bin"), "no such file in"),
        (external("w.bin\0x"), "without a valid location"),
        (external("w.bin/x"), "Not a directory"),
        (external("x" * 300), "File name too long"),
        (external("sub"), "not a regular file"),
        (external("w.bin", offset=56), "bytes 56 to 72 of 'w.bin', which has 64"),
        (external("w.bin", offset=2**62), "which has 64"),
        (external("w.bin", offset=-4), "offset '-4' is not"),
        (external("w.bin", length=-16), "length '-16' is not"),
        (external("w.bin", length="1_6"), "length '1_6' is not"),
        (external("w.bin", length=8), "external data of 8 bytes, its shape has 16"),
    ],
)
def test_external_data_that_is_refused(folder, proto, reason):
    with pytest.raises(ModelError, match=reason) as caught:
        open_external(folder, proto)
    assert "m.onnx: tensor 'w'" in str(caught.value)


def test_links_must_stay_inside_the_folder(folder):
    (folder / "out.bin").symlink_to("../secret.bin")
    (folder / "up").symlink_to("..")
    (folder / "in.bin").symlink_to("sub/w.bin")
    (folder / "loop.bin").symlink_to("loop.bin")
    assert open_external(folder, external("in.bin"))[0].tolist() == [1, 1, 1, 1]
    for location in ("out.bin", "up/secret.bin"):
        with pytest.raises(ModelError, match="leads outside the model's folder"):
            open_external(folder, external(location))
    with pytest.raises(ModelError, match="symbolic links"):
        open_external(folder, external("loop.bin"))


def test_hard_links_need_permission(folder):
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    with pytest.raises(ModelError, match=r"2 hard links.*allow_hard_links=True"):
        open_external(folder, external("hard.bin"))
    found = open_external(folder, external("hard.bin"), allow_hard_links=True)
    assert found[0].tolist() == [0, 0, 0, 0]


def test_pipes_do_not_block(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(ModelError, match="not a regular file"):
        open_external(folder, external("pipe"))


def test_partly_overlapping_regions_are_refused(folder):
    with pytest.raises(ModelError, match=r"tensor 'b': .* overlaps another"):
        open_external(folder, external("w.bin"), external("w.bin", offset=8, name="b"))


def test_hub_cache_of_links_loads(tmp_path):
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "r1"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    write(blobs / "aaaa", model(external("model.onnx_data")))
    (blobs / "bbbb").write_bytes(np.ones(4, np.float32).tobytes())
    (snapshot / "model.onnx").symlink_to("../../blobs/aaaa")
    (snapshot / "model.onnx_data").symlink_to("../../blobs/bbbb")
    assert only_tensor(snapshot / "model.onnx").tolist() == [1, 1, 1, 1]
    # One link away from its folder, a model still finds the files beside the real one.
    (tmp_path / "elsewhere").mkdir()
    (snapshot / "weights").symlink_to(blobs / "bbbb")
    (tmp_path / "elsewhere" / "m.onnx").symlink_to(write(blobs / "cccc", model(external("bbbb"))))
    assert only_tensor(tmp_path / "elsewhere" / "m.onnx").tolist() == [1, 1, 1, 1]


def test_bytes_need_a_folder_for_external_data(folder):
    data = model(external("w.bin")).SerializeToString()
    with pytest.raises(ModelError, match="folder="):
        only_tensor(data)
    assert only_tensor(data, folder=folder).tolist() == [0, 1, 2, 3]
    assert only_tensor(model(external("w.bin")), folder=folder).tolist() == [0, 1, 2, 3]


def test_tables_beyond_two_gigabytes(tmp_path):
    row = np.full(2000, 3, np.float32)
    with open(tmp_path / "w.bin", "wb") as file:
        file.truncate(300_000 * 8000)
        file.seek(290_000 * 8000)
        file.write(row.tobytes())
    found = open_external(tmp_path, external("w.bin", dims=[300_000, 2000]))[0]
    np.testing.assert_array_equal(found[290_000], row)
    assert not found[289_999].any()
