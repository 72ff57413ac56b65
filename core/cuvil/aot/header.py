"""`<name>.h`: the two uses of a compiled model from C, with names and shapes in comments."""

from __future__ import annotations

from collections.abc import Sequence

from cuvil.ir.dims import Dim
from cuvil.plan.plan import Plan, Port

C_TYPES = {
    "bool": "uint8_t", "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "f16": "uint16_t", "bf16": "uint16_t", "f32": "float", "f64": "double",
}  # fmt: skip

_FULL = """\
/* ---- the full use: one model, any number of contexts ----
 * A model is immutable (weights, code) and shared by threads; a context is what one run needs.
 * Every function returns CUVIL_OK (0) or the reason; see cuvil/cuvil.h for each. */
cuvil_status {name}_open(const cuvil_options *options, cuvil_model **model);
cuvil_status {name}_context_size(const cuvil_model *model, const int64_t *symbols, size_t *bytes);
cuvil_status {name}_context_init(const cuvil_model *model, void *memory, size_t bytes,
                                 cuvil_context **context);
cuvil_status {name}_context_create(const cuvil_model *model, cuvil_context **context);
size_t {name}_context_needed(const cuvil_context *context);
cuvil_status {name}_shapes(const cuvil_model *model, cuvil_context *context,
                           const cuvil_value *inputs, cuvil_value *outputs);
cuvil_status {name}_run(const cuvil_model *model, cuvil_context *context,
                        const cuvil_value *inputs, cuvil_value *outputs);
void {name}_context_cancel(cuvil_context *context);
const char *{name}_context_message(const cuvil_context *context);
void {name}_context_destroy(cuvil_context *context);
void {name}_close(cuvil_model *model);
const char *{name}_status_text(cuvil_status status);
"""


def c_name(text: str, taken: set[str]) -> str:
    """A C identifier for a tensor or symbol, different from those taken."""
    word = "".join(c if c.isalnum() and c.isascii() else "_" for c in text).strip("_") or "x"
    word = f"_{word}" if word[0].isdigit() or word in _KEYWORDS else word
    while word in taken:
        word += "_"
    taken.add(word)
    return word


_KEYWORDS = set(
    "auto break case char const continue default do double else enum extern float for goto if inline "
    "int long register restrict return short signed sizeof static struct switch typedef union "
    "unsigned void volatile while class new delete this template operator private public".split()
)


def parameters(plan: Plan) -> list[str]:
    """The parameters of `<name>_inference`: extents, inputs, outputs."""
    taken: set[str] = set()
    words = [f"int64_t {c_name(s, taken)}" for s in plan.symbols]
    words += [f"const {_type(p)} *{c_name(p.name, taken)}" for p in plan.inputs]
    words += [f"{_type(p)} *{c_name(p.name, taken)}" for p in plan.outputs]
    return words


def _type(port: Port) -> str:
    return C_TYPES[port.type.dtype.name]


def _shape(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def header(plan: Plan, arena_bytes: Dim) -> str:
    """The text of the header."""
    guard = f"{plan.name.upper()}_H"
    lines = [f" * {kind} {p.name}: {p.type.dtype.name} {_shape(p.type.dims)}"
             for kind, ports in (("input", plan.inputs), ("output", plan.outputs))
             for p in ports]  # fmt: skip
    arguments = ",\n    ".join(parameters(plan))
    arena = arena_bytes if isinstance(arena_bytes, int) else -1
    return f"""\
/* {plan.name}: a compiled model. Tensors are dense, row-major.
{chr(10).join(lines)}
 */
#ifndef {guard}
#define {guard}

#include "cuvil/cuvil.h"

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of intermediate values per run; -1: they depend on the extents given at run time. */
#define {plan.name.upper()}_ARENA_BYTES {arena}
#define {plan.name.upper()}_WEIGHTS_BYTES {plan.weights_bytes}

/* ---- the simplest use: one call, from any thread; 0 or a cuvil_status ---- */
int32_t {plan.name}_inference(
    {arguments});

{_FULL.format(name=plan.name)}
extern const cuvil_artefact {plan.name}_artefact;

#ifdef __cplusplus
}}
#endif
#endif
"""
