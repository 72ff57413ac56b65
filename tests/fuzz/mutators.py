"""Ways to damage a model: its bytes, and the fields of its messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

EXTREMES = (0, 1, -1, 2, 3, 7, -2, 255, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40,
            (1 << 62), (1 << 63) - 1, -(1 << 63))  # fmt: skip
WEIGHTS = 512  # raw data of more bytes is left alone: flips in it change numbers only


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Damages a serialised model, by its bytes or by its fields."""
    if rng.random() < 0.45:
        return _bytes(data, rng)
    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_FIELDS)(model, rng)
    try:
        return bytes(model.SerializeToString())
    except (ValueError, DecodeError):
        return data


# -- bytes ---------------------------------------------------------------------------------------


def structure(data: bytes) -> list[int]:
    """Offsets of bytes that are not weights."""
    model = onnx.ModelProto()
    model.ParseFromString(data)
    taken = bytearray(len(data))
    for message in _walk(model):
        if isinstance(message, onnx.TensorProto) and len(message.raw_data) > WEIGHTS:
            at = data.find(message.raw_data)
            taken[at : at + len(message.raw_data)] = b"\1" * len(message.raw_data)
    return [i for i, t in enumerate(taken) if not t]


def _bytes(data: bytes, rng: random.Random) -> bytes:
    places, damaged = structure(data), bytearray(data)
    how = rng.choice(("flip", "flip", "flip", "set", "cut", "drop", "insert", "copy"))
    at = rng.choice(places)
    if how == "cut":
        return bytes(damaged[:at])
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = min(rng.choice(places), len(damaged) - 1)
        size = rng.choice((1, 2, 4, 16, 64))
        if how == "flip":
            damaged[at] ^= 1 << rng.randrange(8)
        elif how == "set":
            damaged[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif how == "drop":
            del damaged[at : at + size]
        elif how == "insert":
            damaged[at:at] = bytes(rng.randrange(256) for _ in range(size))
        else:
            source = rng.choice(places)
            damaged[at : at + size] = damaged[source : source + size]
    return bytes(damaged)


# -- fields --------------------------------------------------------------------------------------


def _walk(message: Message) -> Iterator[Message]:
    """A message and all inside it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if _repeated(field) else [value]:
                yield from _walk(inner)


def _repeated(field: Any) -> bool:
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == 3)


def _messages(model: onnx.ModelProto, kind: type) -> list[Any]:
    return [m for m in _walk(model) if isinstance(m, kind)]


def _names(model: onnx.ModelProto) -> list[str]:
    return [o for n in _messages(model, onnx.NodeProto) for o in (*n.input, *n.output)]


def _wire(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another value as an input: cycles, wrong types, values of other graphs."""
    node = rng.choice(_messages(model, onnx.NodeProto))
    if node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice([*_names(model), "", "nowhere"])


def _output(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(_messages(model, onnx.NodeProto))
    if node.output:
        node.output[rng.randrange(len(node.output))] = rng.choice([*_names(model), ""])


def _operator(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = _messages(model, onnx.NodeProto)
    kinds = [n.op_type for n in nodes] + sorted({s.name for s in onnx.defs.get_all_schemas()})
    rng.choice(nodes).op_type = rng.choice(kinds)


def _attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    """Extreme numbers, another kind, another name, an attribute twice or of another node."""
    found = _messages(model, onnx.AttributeProto)
    if not found:
        return
    attribute, how = rng.choice(found), rng.randrange(5)
    if how == 0:
        attribute.type = rng.randrange(15)
    elif how == 1:
        attribute.ParseFromString(rng.choice(found).SerializeToString())  # it may be inside it
    elif how == 2:
        attribute.name = rng.choice([a.name for a in found] + ["axis", "perm", "to", "group"])
    elif attribute.ints and how == 3:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(EXTREMES)
    elif attribute.ints:
        attribute.ints.extend([rng.choice(EXTREMES)])
    else:
        attribute.i, attribute.f = rng.choice(EXTREMES), rng.choice((0.0, -1.0, float("nan"), 1e38))


def _tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    """Dims, element type, data and place of a constant."""
    tensor, how = rng.choice(_messages(model, onnx.TensorProto)), rng.randrange(6)
    if how == 0:
        tensor.data_type = rng.randrange(27)
    elif how == 1:
        tensor.dims.extend([rng.choice(EXTREMES)])
    elif how == 2 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(EXTREMES)
    elif how == 3 and tensor.raw_data:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data))]
    elif how == 4 and len(tensor.raw_data) in range(8, WEIGHTS) and len(tensor.raw_data) % 8 == 0:
        number = rng.choice(EXTREMES).to_bytes(8, "little", signed=True)
        at = 8 * rng.randrange(len(tensor.raw_data) // 8)
        tensor.raw_data = tensor.raw_data[:at] + number + tensor.raw_data[at + 8 :]
    else:
        tensor.data_location = onnx.TensorProto.EXTERNAL
        key = rng.choice(("location", "offset", "length", "checksum"))
        value = rng.choice(("weights.bin", "../weights.bin", "/etc/hostname", "", "-1", "99999999"))
        tensor.external_data.add(key=key, value=value)


def _dims(model: onnx.ModelProto, rng: random.Random) -> None:
    dims = _messages(model, onnx.TensorShapeProto.Dimension)
    if dims and rng.random() < 0.5:
        rng.choice(dims).dim_value = rng.choice(EXTREMES)
    elif dims:
        rng.choice(dims).dim_param = rng.choice(
            ("N", "", "N*N", "N + 1", "((", "floordiv", "x" * 99)
        )


def _element_type(model: onnx.ModelProto, rng: random.Random) -> None:
    kinds = _messages(model, onnx.TypeProto.Tensor)
    if kinds:
        rng.choice(kinds).elem_type = rng.randrange(30)


def _shuffle(model: onnx.ModelProto, rng: random.Random) -> None:
    """Nodes repeated, removed, or in another order."""
    graph = rng.choice(_messages(model, onnx.GraphProto))
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in graph.node]
    if not nodes:
        return
    how = rng.randrange(3)
    if how == 0:
        nodes.insert(rng.randrange(len(nodes)), rng.choice(nodes))
    elif how == 1:
        nodes.pop(rng.randrange(len(nodes)))
    else:
        rng.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def _nest(model: onnx.ModelProto, rng: random.Random) -> None:
    """A function that calls itself, or a graph deep inside itself."""
    functions = _messages(model, onnx.FunctionProto)
    graphs = [a.g for a in _messages(model, onnx.AttributeProto) if a.HasField("g")]
    if functions and rng.random() < 0.5:
        function = rng.choice(functions)
        call = onnx.helper.make_node(function.name, ["a"], ["b"], domain=function.domain)
        del function.node[:]
        function.node.extend([call] * rng.choice((1, 2)))
    elif graphs:
        for _ in range(rng.choice((1, 4))):
            rng.choice(graphs).CopyFrom(onnx.GraphProto.FromString(
                rng.choice([*graphs]).SerializeToString()))  # fmt: skip


def _version(model: onnx.ModelProto, rng: random.Random) -> None:
    rng.choice(model.opset_import).version = rng.choice((*EXTREMES, 1, 6, 9, 11, 13, 18, 23, 26))


_FIELDS: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _wire, _wire, _output, _operator, _attribute, _attribute, _attribute, _tensor, _tensor, _tensor,
    _dims, _element_type, _shuffle, _nest, _version,
)  # fmt: skip
