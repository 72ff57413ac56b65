"""Which backend serves a target: entry points, clashes, and what to install when none does."""

from __future__ import annotations

import json
import platform
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files

from cuvil.errors import TargetError
from cuvil.targets.backend import API_VERSION, Backend
from cuvil.targets.target import Target, parse_features

GROUP = "cuvil.backends"
HOST_WORDS = ("cpu", "native", "host", "")


def load_backend(entry: EntryPoint) -> Backend:
    """The record behind an entry point. Raises TargetError when it is not one of this version."""
    try:
        backend = entry.load()
    except Exception as error:
        raise TargetError(
            f"backend '{entry.name}' ({entry.value}) does not load: {error}"
        ) from error
    version = getattr(backend, "api_version", None)
    if version != API_VERSION:
        package = entry.dist.name if entry.dist else entry.value.partition(":")[0]
        raise TargetError(
            f"backend '{entry.name}' speaks version {version} of the backend contract, this cuvil "
            f"{API_VERSION}: upgrade one of them (pip install -U cuvil {package})"
        )
    if not isinstance(backend, Backend):
        raise TargetError(f"backend '{entry.name}': {entry.value} is not a backend's record")
    return backend


@lru_cache(maxsize=1)
def scan() -> tuple[tuple[Backend, ...], tuple[TargetError, ...]]:
    """All installed backends by name, and why others do not load."""
    entries = sorted(entry_points(group=GROUP), key=lambda e: e.name)
    found, failed = [], []
    for entry in {e.value: e for e in entries}.values():
        try:
            found.append(load_backend(entry))
        except TargetError as error:
            failed.append(error)
    return tuple(found), tuple(failed)


def backends() -> tuple[Backend, ...]:
    """All installed backends that load, by name."""
    return scan()[0]


def find(text: str = "cpu", cpu: str = "", features: str = "") -> tuple[Backend, Target]:
    """The backend and target for what a person wrote: a triple or a short name, `:cpu` behind it.

    "cpu" (or "native") is this machine with the features that it has. Raises TargetError with the
    package to install, the nearest name that exists, or why a backend does not load.
    """
    words = parse_features(features)
    text, _, model = text.partition(":")
    cpu = model or cpu
    check_clashes()
    if text in HOST_WORDS:
        return _host(cpu, words)
    for backend in backends():
        triple = backend.aliases.get(text, text)
        if triple in backend.triples:
            return backend, _checked(backend, Target(triple, cpu, words))
    raise _but_for_failures(_unknown(text))


def check_clashes() -> None:
    """Raises TargetError where two installed backends claim one triple, name or memory space."""
    owners: dict[str, str] = {}
    for backend in backends():
        spaces = [f"memory space '{backend.space.name}'"] if backend.is_accelerator else []
        for what in (*backend.triples, *backend.aliases, *spaces):
            other = owners.setdefault(what, backend.name)
            if other != backend.name:
                raise TargetError(
                    f"backends '{other}' and '{backend.name}' both serve {what}: uninstall one"
                )


def _host(cpu: str, features: tuple[str, ...]) -> tuple[Backend, Target]:
    for backend in backends():
        target = backend.host()
        if target is not None:
            have = () if cpu else target.features  # a cpu by name stands for its features alone
            wanted = Target(target.triple, cpu or target.cpu, (*have, *features))
            return backend, _checked(backend, wanted)
    hint = _install_hint(platform.machine())
    raise _but_for_failures(f"no installed backend serves this machine's cpu: {hint}")


def _checked(backend: Backend, target: Target) -> Target:
    """The target, its names known to the backend."""
    if target.cpu and target.cpu not in backend.cpus:
        raise TargetError(
            f"unknown cpu '{target.cpu}' for {target.triple}"
            + _nearest(target.cpu, list(backend.cpus))
        )
    for word in target.features:
        if word[1:] not in backend.features:
            raise TargetError(
                f"unknown feature '{word[1:]}' for {target.triple}"
                + _nearest(word[1:], list(backend.features))
            )
    return target


def _but_for_failures(message: str) -> TargetError:
    """The error, with the backends that might have served the target but do not load."""
    return TargetError("; ".join([message, *(str(error) for error in scan()[1])]))


def _nearest(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"{hint} (known: {', '.join(sorted(known)) or 'none'})"


def _unknown(text: str) -> str:
    names = [n for b in backends() for n in (*b.triples, *b.aliases)]
    arch = text.split("-")[0]
    if arch in packages() and packages()[arch] not in installed():
        return f"no installed backend serves '{text}': {_install_hint(arch)}"
    return f"unknown target '{text}'" + _nearest(text, names or ["cpu"])


def _install_hint(arch: str) -> str:
    package = packages().get(arch)
    return f"pip install {package}" if package else f"no backend for '{arch}' is known"


def installed() -> frozenset[str]:
    """The packages of the backends that load, by the names under which they are installed."""
    return frozenset(backend.package.replace("_", "-") for backend in backends())


@lru_cache(maxsize=1)
def packages() -> dict[str, str]:
    """Architecture -> package that serves it: the one list of names that core has."""
    data: dict[str, str] = json.loads(files("cuvil").joinpath("data/backends.json").read_text())
    return data
