"""The ONNX front end: `import_model` gives a graph, `check_model` lists what is not supported."""

import cuvil.ops
import cuvil.ops.onnx  # noqa: F401 - registers primitives and operators
from cuvil.frontends.onnx.check import Problem, check_model
from cuvil.frontends.onnx.importer import DataDependentError
from cuvil.frontends.onnx.model import import_model

__all__ = ["DataDependentError", "Problem", "check_model", "import_model"]
