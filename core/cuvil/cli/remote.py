"""`cuvil bench --remote`: a model timed on another machine, by the system's ssh and scp."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cuvil.aot.runner.machine import Machine
from cuvil.aot.runner.program import (
    Arrays,
    Figures,
    Folder,
    answer,
    build_program,
    line,
    settings,
    write_request,
)
from cuvil.cli.models import is_artefact
from cuvil.errors import OptionError, RuntimeFailure, TargetError
from cuvil.options import Options
from cuvil.targets.registry import backends, find

_ADDRESS = re.compile(r"((?:[\w.+-]+@)?)([\w.-]+|\[[\w:.%]+\])(?::(\d+))?")
_FOLDER = re.compile(r"/[\w./-]+")
_FAILED = 255
"""The status of ssh where it is ssh itself that failed, not the command."""


@dataclass(frozen=True)
class Host:
    """A machine that ssh reaches. user: "name@" or nothing. name: of the host, or an address.
    port: "" for ssh's own. config: a file of ssh's instead of the user's."""

    user: str
    name: str
    port: str = ""
    config: str = ""

    def __str__(self) -> str:
        return f"{self.user}{self.name}{':' * bool(self.port)}{self.port}"

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """What a command says there. Raises RuntimeFailure where it cannot be reached."""
        options = ["-p", self.port] if self.port else []
        where = self.user + self.name.strip("[]")
        done = self._call("ssh", [*options, "--", where, shlex.join(words)], stdin)
        if done.returncode == _FAILED:
            raise RuntimeFailure(f"{self}: {_last_line(done.stderr)}")
        return done

    def copy(self, files: Sequence[Path], folder: str) -> None:
        """Copies files there. Raises RuntimeFailure."""
        options = ["-q", *(["-P", self.port] if self.port else [])]
        words = [*options, "--", *map(str, files), f"{self.user}{self.name}:{folder}/"]
        done = self._call("scp", words)
        if done.returncode and self._call("scp", ["-O", *words]).returncode:  # no sftp there
            raise RuntimeFailure(f"{self}: {_last_line(done.stderr)}")

    def _call(
        self, tool: str, words: Sequence[str], stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        path = shutil.which(tool)
        if path is None:
            raise TargetError(f"--remote needs {tool} (Debian: openssh-client)")
        config = ["-F", self.config] if self.config else []
        return subprocess.run(
            [path, *config, *words], input=stdin, capture_output=True, text=True, check=False
        )

    def machine(self) -> str:
        """Its architecture. Raises RuntimeFailure for a system that is not Linux."""
        words = self.run("uname", "-sm").stdout.split()
        if len(words) != 2 or words[0] != "Linux":
            raise RuntimeFailure(f"{self}: programs are made for Linux, not for {' '.join(words)}")
        return words[1]

    @contextmanager
    def scratch(self) -> Iterator[str]:
        """A folder there, removed at the end."""
        folder = self.run("mktemp", "-d", "/tmp/cuvil-XXXXXX").stdout.strip()
        if not _FOLDER.fullmatch(folder):
            raise RuntimeFailure(f"{self}: no folder for the program can be made in /tmp")
        try:
            yield folder
        finally:
            self.run("rm", "-rf", "--", folder)


def parse_host(text: str, config: str = "") -> Host:
    """`user@host:port`; user and port may be left out. Raises OptionError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or text.startswith("-"):
        raise OptionError(f"--remote {text}: expected user@host or user@host:port")
    return Host(found[1], found[2], found[3] or "", config)


def options_for(host: Host, model: str, options: Options) -> Options:
    """The options, for the host's own kind of machine where neither they nor the model, which may
    be compiled already, say one."""
    if options.target != Options().target or is_artefact(model):
        return options
    return replace(options, target=_triple_of(host.machine()))


def time_there(
    host: Host, folder: Folder, feed: Arrays, scratch: Path, threads: int, seconds: float
) -> Figures:
    """Builds a program for the folder's model, copies it to the host and times runs there.

    Raises cuvil.Error subclasses.
    """
    here = Machine(folder.triple)
    there = Machine(_triple_of(host.machine()))
    if there.arch != here.arch:
        raise TargetError(f"{host} is {there.triple}, the model was compiled for {folder.triple}")
    files = [build_program(folder, here, scratch / "call_model"), scratch / "request"]
    write_request(folder, feed, files[1])
    shared = folder.library if folder.linkable is None else None
    files += [file for file in (shared, folder.weights) if file is not None]
    with host.scratch() as place:
        host.copy(files, place)
        library = Path(place, shared.name) if shared else None
        call = line(folder, library, f"{place}/request", f"{place}/response")
        said = host.run(f"{place}/call_model", *settings(threads, seconds), stdin=call)
    return answer(said.stdout, said.returncode, said.stderr)


def _triple_of(machine: str) -> str:
    """The triple by which an installed backend serves what `uname -m` says. Raises TargetError."""
    arch = re.sub(r"(?<=\d)l$", "", machine)
    served = [triple for backend in backends() for triple in backend.triples]
    for triple in served:
        if triple.startswith(f"{arch}-linux-"):
            return triple
    return find(arch)[1].triple


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["ssh said nothing"])[-1]
