"""From C on an emulated machine: `--machine TRIPLE[:CPU[:BUILD]]`, the cpu as qemu calls it, the
build one of the triple's variants; without one the last, which runs everywhere.

Of cpus between bars, `rv64,v=true,vlen=128|256|512`, each runs the one library of a case."""

from __future__ import annotations

import os
from collections.abc import Sequence

from cuvil.onnx_backend import CuvilBackend
from cuvil.options import Options
from cuvil.targets.backend import variants_of
from cuvil.targets.registry import find
from tools.conformance.forms import Form
from tools.conformance.forms.c import on
from tools.conformance.suite import Outcome
from tools.foreign import Machine, machines

MACHINE = "CUVIL_MACHINE"  # the variable of the environment that tells it to worker processes


def options_for(machine: Machine, variant: str = "") -> Options:
    """Those of a compile of one variant for a machine of that kind; "": whatever it has."""
    served, target = find(machine.triple)
    last = variants_of(served, target)[-1].name
    return Options(target=machine.triple, variant=variant or last)


def backend() -> type[CuvilBackend]:
    """The form's backend."""
    triple, cpu, variant, *_ = [*os.environ.get(MACHINE, "").split(":"), "", ""]
    if not triple:
        raise SystemExit("form emulated: no --machine is named")
    emulated = machines(triple, cpu)
    return on(emulated, options_for(emulated[0], variant))


def tell(outcomes: Sequence[Outcome]) -> str:
    """Which cases ended the emulator."""
    return "\n".join(f"- {o.name}: {o.reason}" for o in outcomes if o.apart)


FORM = Form("emulated", "emulated", backend, rank=-2, tell=tell, limit=3600.0)
