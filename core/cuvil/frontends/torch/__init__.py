"""The torch front end; torch is imported here and in `cuvil.integrations`, nowhere else.

For whoever builds on it:

- `import_fx(module, constants={placeholder: tensor}, name=..., problems=None)` gives the `cuvil`
  graph of an `fx.GraphModule` whose calls are ATen overloads and whose nodes have `meta["val"]`
  (fake tensors, SymInts): what `make_fx`, AOTAutograd and `ExportedProgram.run_decompositions()`
  make. Constants stay in the tensors' memory. Sizes are the dims of their SymInts, with the
  guards' ranges in `graph.bounds`; every op has the user's file and line as its location.
- `signature_of(module, constants)` says, without importing, which arguments are inputs of the
  engine (in order) and what its outputs are.
- `problems=[]` collects every unsupported node with its line and reason instead of raising.
- `decompositions()` is the table to lower with: everything torch can decompose that has no record.
- Records are in `cuvil.ops.aten`, a file per family: `@aten("add.Tensor")`.
- `TorchSource(module, constants, name)` is a source for `compile_cached` and for AOT: it has a
  `fingerprint()` for the cache, and `graph()`.
"""

import cuvil.ops
import cuvil.ops.aten  # noqa: F401 - registers primitives and operators
from cuvil.frontends.torch.decompose import decompositions
from cuvil.frontends.torch.importer import Problem, import_fx
from cuvil.frontends.torch.signature import Signature, signature_of
from cuvil.frontends.torch.torch_source import TorchSource

__all__ = ["Problem", "Signature", "TorchSource", "decompositions", "import_fx", "signature_of"]
