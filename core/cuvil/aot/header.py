"""`<name>.h`: the two uses of a compiled model from C, with names and shapes in comments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from cuvil.codegen import one_call
from cuvil.codegen.one_call import INPUT, ROOM, SHAPE, Parameter
from cuvil.ir.c_types import C_TYPES
from cuvil.ir.dims import Dim
from cuvil.ir.groups import NONE, SEQUENCE, TENSOR, Group, Groups, with_places
from cuvil.ops.custom.calls import ExternCall
from cuvil.plan.plan import Plan, Port

_HEADER = """\
/* {name}: a compiled model. Tensors are dense, row-major.
{shapes}
 */
#ifndef {guard}_H
#define {guard}_H

#include "include/cuvil/cuvil.h"

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of intermediate values per run; -1: they depend on the extents given at run time. */
#define {guard}_ARENA_BYTES {arena}
#define {guard}_WEIGHTS_BYTES {weights}

{simplest}
/* ---- the full use: one model, a context for each thread ----
 *
 *   {name}_model *model;
 *   {name}_context *context;
 *   if ({name}_open(NULL, &model) != CUVIL_OK) return 1;
 *   if ({name}_context_create(model, &context) != CUVIL_OK) return 1;
 *   cuvil_value inputs[{inputs}], outputs[{outputs}];
 *   ... cuvil_tensor(...) makes an input, cuvil_output(...) the place of an output{values}
 *   if ({name}_run(model, context, inputs, outputs) != CUVIL_OK)
 *     puts({name}_context_message(context));
 *   {name}_context_destroy(context);
 *   {name}_close(model);
 *
 * A model is immutable (weights, code) and shared by threads; a context holds what one run needs.
 * Nothing allocates after a context is made, unless a created context has to grow. Each function
 * is the one of cuvil/cuvil.h whose name begins with cuvil_ (or cuvil_model_) instead. */
typedef cuvil_model {name}_model;
typedef cuvil_context {name}_context;

{dims}

cuvil_status {name}_open(const cuvil_options *options, {name}_model **model);
void {name}_close({name}_model *model);
const char *{name}_variant(const {name}_model *model);
int32_t {name}_threads(const {name}_model *model);

/* dims: the largest to come; NULL: their upper bounds. */
cuvil_status {name}_context_size(const {name}_model *model, const {name}_dims *dims,
    size_t *bytes);
cuvil_status {name}_context_init(const {name}_model *model, void *memory, size_t bytes,
    {name}_context **context);
cuvil_status {name}_context_create(const {name}_model *model, {name}_context **context);
void {name}_context_destroy({name}_context *context);
size_t {name}_context_needed(const {name}_context *context);
const char *{name}_context_message(const {name}_context *context);
void {name}_context_cancel({name}_context *context);
void {name}_context_uncancel({name}_context *context);
void {name}_context_set_time_limit({name}_context *context, int64_t nanoseconds);
void {name}_context_set_profile({name}_context *context, cuvil_profile *profile);

/* Shapes and sizes of the outputs for these inputs, without running. */
cuvil_status {name}_shapes(const {name}_model *model, {name}_context *context,
    const cuvil_value *inputs, cuvil_value *outputs);
cuvil_status {name}_run(const {name}_model *model, {name}_context *context,
    const cuvil_value *inputs, cuvil_value *outputs);
const char *{name}_status_text(cuvil_status status);

/* A thread pool that models share when each gets it in cuvil_options::pool. */
cuvil_status {name}_pool_create(int32_t threads, const cuvil_pool **pool);
void {name}_pool_release(const cuvil_pool *pool);

extern const cuvil_artefact {name}_artefact;

#ifdef __cplusplus
}}
#endif
#endif
"""

_SIMPLEST = """\
/* ---- the simplest use: one call, from any thread ----
 * Opens the model at the first call and keeps it. Outputs must be large enough{more}.
 * Returns 0 or a cuvil_status, which {name}_status_text explains. */
int32_t {name}_inference(
    {parameters});
"""

_FOUND = """ for the bounds
 * above; a ..._shape receives the extents that the run has found"""
_ROOM = """.
 * A ..._room is how many elements there is room for: where the run finds more it gives
 * CUVIL_NEED_MEMORY and tells the ..._shape, so a first call may pass NULL and 0"""
_SEQUENCE = """.
 * A sequence is an array of pointers to its tensors"""
_STRINGS = """.
 * The bytes of strings that it gives stay until the next call, whichever thread makes it"""
_NOTHING = """.
 * What the model was compiled without is NULL"""

_KEYWORDS = (
    "alignas alignof asm auto bool break case catch char class const const_cast constexpr continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float "
    "for friend goto if inline int long mutable namespace new noexcept nullptr operator private "
    "protected public register reinterpret_cast restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try typedef "
    "typeid typename union unsigned using virtual void volatile wchar_t while"
)


def header(plan: Plan, arena_bytes: Dim, calls: Sequence[ExternCall] = ()) -> str:
    """The text of the header. calls: functions of custom operators, which an object or archive of
    the model leaves to the program."""
    return _HEADER.format(
        name=plan.name,
        guard=plan.name.upper(),
        shapes="\n".join(described(plan, calls)),
        arena=arena_bytes if isinstance(arena_bytes, int) else -1,
        weights=plan.weights_bytes,
        simplest=_simplest(plan),
        inputs=max(1, len(plan.groups.inputs)),
        outputs=max(1, len(plan.groups.outputs)),
        values=_values(plan.groups),
        dims=_dims_struct(plan),
    )


def described(plan: Plan, calls: Sequence[ExternCall] = ()) -> list[str]:
    """Lines of a comment about inputs, outputs, extents, devices and what the program brings."""
    groups = plan.groups
    lines = [_line("input", *side) for side in _sides(groups.inputs, plan.inputs)]
    lines += [_line("output", *side) for side in _sides(groups.outputs, plan.outputs)]
    lines += _symbol_lines(plan)
    lines += [f" * with code of its own for {_fixed(row)}" for row in plan.special]
    lines += _found_lines(plan)
    lines += [
        f" * device {_comment(d.name)}: handed over in cuvil_options.devices: not for the one call"
        for d in plan.devices
    ]
    lines += _call_lines(calls)
    return lines


def _sides(groups: Sequence[Group], ports: Sequence[Port]) -> Iterator[tuple[Group, list[Port]]]:
    """Each group with its tensors."""
    for group, places in with_places(groups):
        yield group, [ports[k] for k in places]


def _line(side: str, group: Group, ports: Sequence[Port]) -> str:
    """What the header says of an input or output."""
    tensors = [f"{_type(p)} {_shape(p.type.dims)}" for p in ports]
    if group.kind == NONE:
        what = "an optional, compiled as not there"
    elif group.kind == SEQUENCE:
        what = f"a sequence of {group.count}{': ' if tensors else ''}{', '.join(tensors)}"
    else:
        what = tensors[0]
    there = " (an optional, compiled as there)" if group.optional and group.kind != NONE else ""
    return f" * {side} {_comment(group.name)}: {what}{there}"


def _values(groups: Groups) -> str:
    """How values are made in the full use."""
    if groups.plain:
        return " ..."
    made = "cuvil_sequence(...) makes one of several, cuvil_none() one of what is not there"
    return f",\n *   {made} ..."


def _call_lines(calls: Sequence[ExternCall]) -> list[str]:
    """What a program that links the object has to bring."""
    if not calls:
        return []
    lines = [
        " *",
        " * It calls functions of custom operators; an object or archive of it is to be linked",
        " * with them. They return 0, or a status with which the run fails.",
    ]
    for call in calls:
        lines.append(f" *   {call.operator}:")
        lines += [f" *     {line}" for line in textwrap.wrap(_comment(call.prototype), 88)]
    return lines


def _fixed(row: Mapping[str, int]) -> str:
    return _comment(", ".join(f"{name} = {value}" for name, value in row.items()))


def _symbol_lines(plan: Plan) -> Iterator[str]:
    """What the extents given at run time must be."""
    for name, (least, most) in zip(plan.symbols, plan.bounds, strict=True):
        step = plan.declared[name].multiple if name in plan.declared else 1
        rules = [f"from {least}"] if least and most is None else []
        rules = [f"{least} to {most}"] if most is not None else rules
        rules += [f"a multiple of {step}"] if step > 1 else []
        if rules:
            yield f" * {_comment(name)}: {', '.join(rules)}; else CUVIL_SHAPE_MISMATCH"


def _found_lines(plan: Plan) -> list[str]:
    """What is known of the extents that a run finds."""
    dims = dict.fromkeys(d for p in plan.outputs if plan.is_produced(p) for d in p.type.dims)
    found = [(d, plan.most(d)) for d in dims if d != plan.most(d)]
    return [
        f" * {_comment(str(d))}: found by the run, "
        + ("without a bound" if most is None else f"at most {_comment(str(most))}")
        for d, most in found
    ]


def _simplest(plan: Plan) -> str:
    kinds = {g.kind for g in (*plan.groups.inputs, *plan.groups.outputs)}
    roles = {p.role for p in one_call.parameters(plan)}
    more = _FOUND if SHAPE in roles else ""
    more += _ROOM if ROOM in roles else ""
    more += _SEQUENCE if SEQUENCE in kinds else ""
    more += _NOTHING if NONE in kinds else ""
    more += _STRINGS if any(p.type.dtype.is_string for p in plan.outputs) else ""
    return _SIMPLEST.format(
        name=plan.name, parameters=",\n    ".join(parameters(plan)) or "void", more=more
    )


def parameters(plan: Plan) -> list[str]:
    """The parameters of `<name>_inference`, declared: see `codegen.one_call`."""
    taken: set[str] = set()
    return [_declared(plan, p, c_name(p.name, taken)) for p in one_call.parameters(plan)]


def _declared(plan: Plan, parameter: Parameter, name: str) -> str:
    role, group = parameter.role, parameter.group
    if group is None:
        return f"int64_t {name}"
    if role == ROOM:
        return f"int64_t {name}" if group.kind == TENSOR else f"const int64_t {name}[{group.count}]"
    sides = {INPUT: plan.inputs}
    ports = [sides.get(role, plan.outputs)[k] for k in parameter.places]
    kind = "int64_t" if role == SHAPE else _type(ports[0]) if ports else "void"
    to = f"const {kind}" if role == INPUT else kind
    if group.kind != SEQUENCE:
        return f"{to} *{name}"
    return f"{to} *const {name}[{group.count}]" if ports else f"{to} *const *{name}"


def c_name(text: str, taken: set[str]) -> str:
    """A C and C++ identifier for a tensor or symbol, different from those taken."""
    word = "".join(c if c.isalnum() and c.isascii() else "_" for c in text).strip("_") or "x"
    word = f"x_{word}" if word[0].isdigit() or word in _KEYWORDS.split() else word
    while word in taken:
        word += "_"
    taken.add(word)
    return word


def _dims_struct(plan: Plan) -> str:
    """The struct of the symbolic extents, in the order of the artefact's symbols."""
    if not plan.symbols:
        fields, comment = "char none;", "The model has no symbolic extents: pass NULL."
    else:
        taken: set[str] = set()
        fields = " ".join(f"int64_t {c_name(s, taken)};" for s in plan.symbols)
        comment = "The symbolic extents of the inputs."
    return f"/* {comment} */\ntypedef struct {plan.name}_dims {{ {fields} }} {plan.name}_dims;"


def _type(port: Port) -> str:
    return C_TYPES[port.type.dtype.name]


def _shape(dims: Sequence[Dim]) -> str:
    return _comment(f"[{', '.join(map(str, dims))}]")


def _comment(text: str) -> str:
    """Text that cannot end the comment that it stands in."""
    return text.replace("*/", "* /").replace("\n", " ")
