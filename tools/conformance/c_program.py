"""The C program of `cuvil run`: built once per process, it calls one library after another.

On this machine, or on an emulated one of another kind.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from cuvil.aot.runner.program import SOURCE, Folder, read_response, write_request
from cuvil.aot.write import Artefact
from cuvil.errors import RuntimeFailure
from tools.foreign import ForeignError, Machine, compile_c
from tools.models.c_program import FLAGS, CProgramError, build

_OF_THE_EMULATOR = re.compile(r"qemu-\w+: .*Assertion .* failed")


class EmulatorError(CProgramError):
    """The emulator failed an assertion of its own, which no program may bring it to."""


class Caller:
    """The running program. A model that ends it is one case that failed: it starts again.

    include: the folder of the headers `cuvil/*.h`. machine: where it runs; None: here.
    environment: variables of the program's, beside those of this process. variant: what the last
    model ran as.
    """

    def __init__(
        self,
        include: Path,
        machine: Machine | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="cuvil-c-")
        self.folder = Path(self._scratch.name)
        self._errors = (self.folder / "errors").open("a+b")
        program = _build(include, self.folder, machine)
        self._emulated = machine is not None
        self._command = machine.command(program) if machine else [str(program)]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[str] | None = None
        self.variant = ""

    def call(self, artefact: Artefact, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The graph's outputs by name, for its inputs by name.

        They are tensors; the C program is given, and gives, the sequences and optionals of the
        header. Raises CProgramError with what the program, or its end, said.
        """
        request, response = self.folder / "request", self.folder / "response"
        folder = Folder(artefact.folder, artefact.manifest)
        write_request(folder, inputs, request)
        self._ask(f"{artefact.files['so']} {artefact.name} {request} {response}")
        try:
            return read_response(folder, response)
        except RuntimeFailure as error:
            raise CProgramError(str(error)) from error

    def _ask(self, line: str) -> None:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        print(line, file=process.stdin, flush=True)
        answer = process.stdout.readline().strip()
        if not answer:
            status, said = process.wait(), self._said()
            if _OF_THE_EMULATOR.match(said):
                raise EmulatorError(said)
            raise CProgramError(f"the C program ended with status {status}: {said}".rstrip(": "))
        if not answer.startswith("ok "):
            raise CProgramError(answer)
        self.variant = answer.removeprefix("ok ")

    def _said(self) -> str:
        """The last that an emulated program, or the emulator, said on standard error."""
        self._errors.seek(0)
        return (self._errors.read().decode(errors="replace").splitlines() or [""])[-1]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._errors.truncate(0)
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors if self._emulated else None,
                text=True,
                env=self._environment,
            )
        return self._process

    def kill(self) -> None:
        """Ends the program as a model that crashes would."""
        process = self._running()
        process.kill()
        process.wait()

    def close(self) -> None:
        """Ends the program and removes its files."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
        self._errors.close()
        self._scratch.cleanup()


@lru_cache
def caller(include: Path, machine: Machine | None = None) -> Caller:
    """This process's program, compiled against the headers `cuvil/*.h` in `include`."""
    program = Caller(include, machine)
    atexit.register(program.close)
    return program


def _build(include: Path, folder: Path, machine: Machine | None) -> Path:
    if machine is None:
        return build(include, folder, SOURCE)
    try:
        return compile_c(machine, [SOURCE], folder / SOURCE.stem, [*FLAGS, "-I", str(include)])
    except ForeignError as error:
        raise CProgramError(str(error)) from error
