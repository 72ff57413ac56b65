"""Operators of ai.onnx.ml on maps, which have no tensor form: refused with the way out."""

from __future__ import annotations

from typing import Any

from cuvil.ops.onnx.context import Cx, Value
from cuvil.ops.onnx.ml import ML, Ints, Strings
from cuvil.ops.onnx.registry import onnx_op


@onnx_op("ZipMap", domain=ML)
def zip_map(
    cx: Cx, x: Value, *, classlabels_int64s: Ints = (), classlabels_strings: Strings = ()
) -> Value:
    """A map from classes to probabilities for every row."""
    cx.fail(
        "a map from classes to probabilities for every row has no tensor form; convert the model "
        "without it (skl2onnx: options={id(classifier): {'zipmap': False}}, or 'columns')"
    )


@onnx_op("DictVectorizer", domain=ML)
def dict_vectorizer(
    cx: Cx, x: Value, *, int64_vocabulary: Ints = (), string_vocabulary: Strings = ()
) -> Value:
    """The values of a map, in the order of a vocabulary."""
    cx.fail("takes a map, which has no tensor form; give the model a tensor with a column per key")


@onnx_op("CastMap", domain=ML)
def cast_map(
    cx: Cx, x: Any, *, cast_to: str = "TO_FLOAT", map_form: str = "DENSE", max_map: int = 1
) -> Value:
    """The values of a map as a tensor."""
    cx.fail("takes a map, which has no tensor form; give the model a tensor with a column per key")
