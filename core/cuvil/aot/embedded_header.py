"""`<name>.h` of a model for a target without an operating system."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from cuvil.aot.header import described, parameters
from cuvil.ops.custom.calls import ExternCall
from cuvil.plan.plan import Plan

_HEADER = """\
/* {name}: a compiled model. Tensors are dense, row-major.
{shapes}
 */
#ifndef {guard}_H
#define {guard}_H

#include "include/cuvil/abi.h"

#ifdef __cplusplus
extern "C" {{
#endif

#define {guard}_MEMORY_BYTES {memory} /* of RAM, for a run */
#define {guard}_WEIGHTS_BYTES {weights} /* constants, in flash */

/* Runs the model once, in `bytes` bytes at `memory` (any alignment), {guard}_MEMORY_BYTES or more:
 *
 *   static unsigned char memory[{guard}_MEMORY_BYTES];
 *   int32_t status = {name}_inference(memory, sizeof memory, ...);
 *
 * The memory holds nothing between calls. Nothing is allocated, and calls with different memory may
 * interrupt each other. Data must be aligned to their elements. Returns 0 or a cuvil_status.{more}
 */
int32_t {name}_inference(void *memory, size_t bytes,
    {parameters});

#ifdef __cplusplus
}}
#endif
#endif
"""
_FOUND = """
 * A ..._shape receives the extents that the run has found; outputs must be large enough for the
 * bounds above."""
_LINK = """
 *
 * What the program's link has to bring: C's functions of memory, the compiler's of arithmetic.
{names}"""


def embedded_header(
    plan: Plan, memory_bytes: int, imported: Sequence[str], calls: Sequence[ExternCall] = ()
) -> str:
    """The text of the header. memory_bytes: of a run. imported: what the object leaves undefined.
    calls: functions of custom operators among that."""
    more = _FOUND if any(plan.is_produced(p) for p in plan.outputs) else ""
    names = textwrap.wrap(" ".join(imported), 92, initial_indent=" *   ", subsequent_indent=" *   ")
    more += _LINK.format(names="\n".join(names)) if imported else ""
    return _HEADER.format(
        name=plan.name,
        guard=plan.name.upper(),
        shapes="\n".join(described(plan, calls)),
        memory=memory_bytes,
        weights=plan.weights_bytes,
        parameters=",\n    ".join(parameters(plan)),
        more=more,
    )
