"""The machines of other kinds that installed backends compile for, as tests take them."""

from __future__ import annotations

import platform

import pytest

from cuvil.targets.registry import backends
from tools.foreign import Machine


def machines() -> list[Machine]:
    """One for each architecture with an operating system: the first triple that a backend names."""
    found: dict[str, Machine] = {}
    for backend in backends():
        for triple in backend.triples:
            if "-linux-gnu" in triple and triple in backend.linker_emulation:
                machine = Machine(triple)
                found.setdefault(machine.arch, machine)
    return [machine for machine in found.values() if machine.arch != platform.machine()]


def needs(machine: Machine) -> None:
    """Skips the test where programs of a machine cannot be run."""
    if lacking := machine.lacking():
        pytest.skip(lacking)


EVERY = pytest.mark.parametrize("machine", machines(), ids=lambda machine: machine.triple)
