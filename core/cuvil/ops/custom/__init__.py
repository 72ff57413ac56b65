"""Operators of a user's own: declared in Python, served as if they were built in.

A declaration makes the two records that every operator has, a primitive and one for ONNX, from a
signature, a shape function, a numpy meaning and a C function or a composition.
"""

from cuvil.ops.custom.operator import CustomOp, custom_op

__all__ = ["CustomOp", "custom_op"]
