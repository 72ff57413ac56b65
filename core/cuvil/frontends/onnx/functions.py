"""Operators that the ONNX standard defines by a function body, as onnx-ir functions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import onnx
import onnx_ir as ir

from cuvil.errors import OptionError
from cuvil.ir.types import TensorType

__all__ = ["body_function", "has_body", "quiet", "schema_function"]


def has_body(op: str, opset: int, domain: str) -> bool:
    """Whether ONNX's schema defines an operator by a function body."""
    try:
        schema = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def schema_function(
    node: ir.Node, attrs: Mapping[str, ir.Attr], types: Sequence[TensorType | None], opset: int
) -> ir.Function | None:
    """The body that ONNX's schema gives for this node at this opset, or None.

    types: of the node's inputs; None for an absent one or one that is not a tensor.
    """
    if not has_body(node.op_type, opset, node.domain):
        return None
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    proto = onnx.FunctionProto()
    if schema.has_function:
        version = _version(schema.function_opset_versions, opset)
        proto.ParseFromString(schema.get_function_with_opset_version(version))
    else:
        version = _version(schema.context_dependent_function_opset_versions, opset)
        body = schema.get_context_dependent_function_with_opset_version(
            version,
            _node_proto(node, attrs).SerializeToString(),
            [_type_proto(t).SerializeToString() for t in types],
        )
        proto.ParseFromString(body)
    if not proto.node:
        return None
    _complete(proto, schema)
    with quiet():
        return ir.serde.deserialize_function(proto)


def body_function(body: onnx.FunctionProto | str, where: str) -> ir.Function:
    """The body of a custom operator; OptionError, saying where, for one that is none."""
    try:
        proto = onnx.parser.parse_function(body) if isinstance(body, str) else body
        with quiet():
            return ir.serde.deserialize_function(proto)
    except Exception as error:  # the parser's own classes
        reason = (str(error).splitlines() or ["?"])[0]
        raise OptionError(
            f"{where}: the body of the operator is no ONNX function: {reason}"
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """onnx-ir logs what it finds wrong; the importer says it in its errors, with the node."""
    logger = logging.getLogger("onnx_ir.serde")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _complete(proto: onnx.FunctionProto, schema: onnx.defs.OpSchema) -> None:
    """Outputs that this use of the body leaves out, and the schema's attribute defaults.

    A body made for one node computes only the outputs that the node names; an input stands in for
    the others, which nobody reads.
    """
    defined = {name for node in proto.node for name in node.output} | set(proto.input)
    for k, name in enumerate(proto.output):
        if name not in defined:
            proto.output[k] = proto.input[0]
    given = {attr.name for attr in proto.attribute_proto}
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name and name not in given:
            proto.attribute_proto.append(attribute.default_value)
            if name in proto.attribute:
                proto.attribute.remove(name)


def _version(versions: Sequence[int], opset: int) -> int:
    """The newest body not above the opset, or the oldest there is."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _node_proto(node: ir.Node, attrs: Mapping[str, ir.Attr]) -> onnx.NodeProto:
    names = [f"i{k}" if value is not None else "" for k, value in enumerate(node.inputs)]
    outputs = [f"o{k}" if value.name else "" for k, value in enumerate(node.outputs)]
    proto = onnx.helper.make_node(node.op_type, names, outputs, domain=node.domain)
    for name, attr in attrs.items():
        copy = ir.serde.serialize_attribute(attr)
        copy.name = name
        proto.attribute.append(copy)
    return proto


def _type_proto(kind: TensorType | None) -> onnx.TypeProto:
    if kind is None:
        return onnx.TypeProto()
    dims = [d if isinstance(d, int) else str(d) for d in kind.dims]
    return onnx.helper.make_tensor_type_proto(kind.dtype.onnx, dims)
