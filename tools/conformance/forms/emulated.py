"""From C on an emulated machine: `CUVIL_MACHINE` is its triple, and behind a colon qemu's cpu.

The last variant of the triple alone is compiled, which runs everywhere.
"""

from __future__ import annotations

import os

from cuvil.onnx_backend import CuvilBackend
from cuvil.options import Options
from cuvil.targets.backend import variants_of
from cuvil.targets.registry import find
from tools.conformance.forms import Form
from tools.conformance.forms.c import on
from tools.foreign import Machine


def options_for(machine: Machine) -> Options:
    """Those of a compile for a machine of that kind, whatever it has."""
    served, target = find(machine.triple)
    return Options(target=machine.triple, variant=variants_of(served, target)[-1].name)


def backend() -> type[CuvilBackend]:
    """The form's backend."""
    triple, _, cpu = os.environ.get("CUVIL_MACHINE", "").partition(":")
    if not triple:
        raise SystemExit("form emulated: CUVIL_MACHINE names no triple")
    machine = Machine(triple, cpu)
    return on(machine, options_for(machine))


FORM = Form("emulated", "emulated", backend, rank=-2)
