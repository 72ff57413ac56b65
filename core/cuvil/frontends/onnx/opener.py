"""Opens an ONNX model that nobody vouches for; its weights stay in the mapped file.

`open_model` gives a ModelProto that fits in a few hundred kilobytes whatever the weights, and a
reader that finds each tensor's bytes: mapped, from external data, or decoded and checked from the
typed fields. Whatever is wrong with the file is a `ModelError` naming it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]

from cuvil.errors import ModelError, UnsupportedError
from cuvil.frontends.onnx import tensor_data
from cuvil.frontends.onnx.external import (
    ExternalFiles,
    Location,
    Reader,
    ReadFiles,
    SourceFile,
    map_file,
)
from cuvil.frontends.onnx.wire import Skeleton, scan
from cuvil.ir.dtypes import DType
from cuvil.ir.pool import Constant, Pool

__all__ = ["OpenedModel", "Source", "TensorData", "open_model"]

_MAX_MESSAGE_DEPTH = 100  # protobuf's own limit when parsing
_TENSOR_TEXT = ("name", "doc_string", "external_data", "metadata_props")

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | onnx.ModelProto


@dataclass(frozen=True, slots=True)
class TensorData:
    """A tensor's values: dense row-major little-endian bytes, exactly those of `shape`.

    An element of fewer than 8 bits, which the file packs, has a byte of its own.
    """

    data: memoryview
    dtype: DType
    shape: tuple[int, ...]


class OpenedModel:
    """A parsed model without its large weights, and the way to them.

    `model` is for reading only; its large tensors hold a token in `raw_data`, so take values from
    `tensor` or `constant`, never from the message. Tokens survive copying, inlining and version
    conversion of the message. `name` is the file as given, for errors.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        name: str,
        external: ExternalFiles,
        skeleton: Skeleton | None = None,
        source: SourceFile | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self._external = external
        self._skeleton = skeleton
        self._source = source

    @property
    def source(self) -> SourceFile | None:
        """The model's file, where it came from one."""
        return self._source

    @property
    def external_sources(self) -> list[SourceFile]:
        """The files of external data read so far, called as the model calls them."""
        return self._external.sources

    @property
    def sources(self) -> list[SourceFile]:
        """The files read so far: the model's, then those of external data in order of use."""
        return [*([self._source] if self._source else []), *self._external.sources]

    def tensor(self, proto: onnx.TensorProto, node: str = "") -> TensorData:
        """The values of a tensor of this model; a view of the file where it is large.

        `node` is told in errors beside the tensor's name. ModelError when type, shape and data do
        not fit together or external data is refused; UnsupportedError for strings and for element
        types without a record in `cuvil.ir.dtypes`.
        """
        where = self._where(proto, node)
        dtype = tensor_data.dtype_of(proto, where)
        if dtype.is_string:
            raise UnsupportedError(f"{where}: strings where numbers are needed")
        shape = tensor_data.shape_of(proto, dtype, where)
        storage = tensor_data.storage_of(proto, where)
        if storage == "raw_data":
            data = self._raw(proto)
        elif storage == "external_data":
            entries = ((entry.key, entry.value) for entry in proto.external_data)
            expected = tensor_data.packed_bytes(dtype, shape)
            location = Location.parse(entries, where)
            data = self._external.region(location, expected, where)
        else:
            data = tensor_data.typed_values(proto, storage, dtype, where)
        if dtype.value_bits < 8:
            data = tensor_data.unpacked(data, dtype, shape, where)
        tensor_data.check_values(data, dtype, shape, where)
        return TensorData(data, dtype, shape)

    def texts(self, proto: onnx.TensorProto, node: str = "") -> np.ndarray:
        """The values of a tensor of strings, as an array of str; errors as `tensor`."""
        return tensor_data.texts_of(proto, self._where(proto, node))

    def constant(self, proto: onnx.TensorProto, pool: Pool, node: str = "") -> Constant:
        """Adds the tensor to `pool`, by reference where it is large; errors as `tensor`."""
        values = self.tensor(proto, node)
        packed = values.dtype.value_bits < 8
        if self._skeleton is None and proto.HasField("raw_data") and not packed:
            # The caller's message holds these bytes: fetch them when needed, keep no copy.
            return pool.add_reader(lambda: self._raw(proto), values.dtype.name, values.shape)
        return pool.add_mapped(values.data, values.dtype.name, values.shape)

    def _raw(self, proto: onnx.TensorProto) -> memoryview:
        raw = proto.raw_data
        region = self._skeleton.region(raw) if self._skeleton else None
        return memoryview(raw) if region is None else region

    def _where(self, proto: onnx.TensorProto, node: str) -> str:
        at = f", node {node!r}" if node else ""
        return f"{self.name}{at}: tensor {proto.name!r}"


def open_model(
    source: Source,
    *,
    folder: str | os.PathLike[str] | None = None,
    allow_hard_links: bool = False,
    reader: Reader | None = None,
) -> OpenedModel:
    """Opens a `.onnx` file, the bytes of one, or a ModelProto.

    External data is looked for in `folder`, by default the file's; bytes and messages have none.
    The rule for it is told in `external`; `allow_hard_links` accepts files with several names. A
    `reader` hands it out instead of files. The source must not change while the result, or a
    constant made from it, is in use.
    ModelError for a file that is missing, unreadable, damaged, or not a model.
    """
    if isinstance(source, onnx.ModelProto):
        external = _external(_folders(None, folder), allow_hard_links, reader)
        _check(source, "<ModelProto>")
        return OpenedModel(source, "<ModelProto>", external)
    path = file = None
    if isinstance(source, bytes | bytearray | memoryview):
        name, data = "<bytes>", memoryview(source).cast("B").toreadonly()
    else:
        path = name = os.fspath(source)
        data, file = _map_model(path)
    external = _external(_folders(path, folder), allow_hard_links, reader)
    skeleton = scan(data, name)
    return OpenedModel(_parse(skeleton, name), name, external, skeleton, file)


def _external(folders: list[str], hard_links: bool, reader: Reader | None) -> ExternalFiles:
    if reader is not None:
        return ReadFiles(reader)
    return ExternalFiles(folders, allow_hard_links=hard_links)


def _folders(path: str | None, folder: str | os.PathLike[str] | None) -> list[str]:
    if folder is not None:
        return [os.fspath(folder)]
    if path is None:
        return []
    return [os.path.dirname(path) or ".", os.path.dirname(os.path.realpath(path))]


def _map_model(path: str) -> tuple[memoryview, SourceFile]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            return map_file(handle, path)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{path}: cannot be opened: {reason}") from None


def _parse(skeleton: Skeleton, name: str) -> onnx.ModelProto:
    try:
        model = onnx.ModelProto.FromString(skeleton.message)
    except DecodeError as error:
        raise ModelError(f"{name}: not a readable ONNX model: {error}") from None
    _check(model, name)
    return model


def _check(model: onnx.ModelProto, name: str) -> None:
    if not model.HasField("graph"):
        raise ModelError(f"{name}: not an ONNX model: it has no graph")
    _check_message(model, name, 0)


def _check_message(message: Message, name: str, depth: int) -> None:
    """ModelError for a name given twice, and for a string that is not UTF-8.

    Protobuf would hand out the latter as bytes.
    """
    if depth > _MAX_MESSAGE_DEPTH:
        raise ModelError(f"{name}: nested deeper than {_MAX_MESSAGE_DEPTH} messages")
    if isinstance(message, onnx.GraphProto):
        _check_unique(message, name)
    for field, value in _text_fields(message):
        if field.type == field.TYPE_MESSAGE:
            for child in (value,) if isinstance(value, Message) else value:
                _check_message(child, name, depth + 1)
        elif field.type == field.TYPE_STRING:
            for text in (value,) if isinstance(value, str | bytes) else value:
                if isinstance(text, bytes):
                    raise ModelError(
                        f"{name}: not a readable ONNX model: "
                        f"{message.DESCRIPTOR.name}.{field.name} {text[:40]!r} is not UTF-8"
                    )


def _check_unique(graph: onnx.GraphProto, name: str) -> None:
    seen: set[str] = set()
    for proto in graph.initializer:
        if proto.name in seen:
            raise ModelError(f"{name}: graph {graph.name!r} has initializer {proto.name!r} twice")
        seen.add(proto.name)


def _text_fields(message: Message) -> Iterable[tuple[FieldDescriptor, Any]]:
    if not isinstance(message, onnx.TensorProto):
        listed: Iterable[tuple[FieldDescriptor, Any]] = message.ListFields()
        return listed
    # Listing all fields of a tensor would copy its data.
    fields = message.DESCRIPTOR.fields_by_name
    return [(fields[text], getattr(message, text)) for text in _TENSOR_TEXT]
