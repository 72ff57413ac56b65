"""What a compile depends on, as plain data that is stored and compared.

A *request* is what a caller asks for on this machine. A *key* is a request with what only the
compiler knows: the contents of external data, and the versions of all that took part. Finding an
entry needs the request, the record that an earlier compile left for it, and no compiler.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cuvil.engine.cache_files import (
    digest_bytes,
    identity,
    indexed_digest,
    tree_state,
)
from cuvil.engine.cache_store import Store
from cuvil.engine.graph_source import GraphSource
from cuvil.options import Options

FORMAT = 2
OWN_FOLDER = str(Path(__file__).parents[1])
_CPU_FIELDS = ("model name", "flags", "CPU implementer", "CPU part", "Features", "isa", "uarch")


@dataclass(frozen=True)
class Wanted:
    """What a caller of `compile` asks for, beside the model.

    spec: rows (name, dtype, dims). reader: hands out external data; the cache cannot know it.
    custom: what is known of the custom operators that this process declares.
    """

    options: Options
    spec: tuple[tuple[str, str, tuple[int | str | None, ...]], ...] = ()
    folder: str | None = None
    reader: Callable[[str, int, int], bytes] | None = None
    custom: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """A compile that the cache can know. fields: what identifies it; name: their digest.

    folders: where external data is looked for. identity: of the model's file when it was hashed.
    """

    fields: Mapping[str, Any]
    name: str
    folders: tuple[str, ...]
    identity: Sequence[int] | None = None


def digest_of(value: object) -> str:
    """The digest of plain data."""
    return digest_bytes(json.dumps(value, sort_keys=True).encode())


def make_request(source: Any, wanted: Wanted, store: Store) -> Request | None:
    """The request for a path, bytes, message or graph source; None for what has no bytes.

    OSError when the file cannot be read.
    """
    path: str | None = None
    seen: list[int] | None = None
    if isinstance(source, GraphSource):
        digest = digest_bytes(source.fingerprint())
    elif isinstance(source, bytes | bytearray | memoryview):
        digest = digest_bytes(source)
    elif isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        seen = identity(path)
        digest = indexed_digest(store, path)
    else:
        message = _message_bytes(source)
        if message is None:
            return None
        digest = digest_bytes(message)
    stem = os.path.splitext(os.path.basename(path))[0] if path else ""
    fields = {
        "format": FORMAT,
        "model": digest,
        "name": wanted.options.name or stem,
        "options": _plain(asdict(replace(wanted.options, name=""))),
        "spec": _plain(wanted.spec),
        "cpu": cpu_identity(),
        "custom": list(wanted.custom),
    }
    name = digest_of([fields, OWN_FOLDER])
    return Request(fields, name, _folders(path, wanted.folder), seen)


def _message_bytes(source: Any) -> bytes | None:
    serialize: Callable[..., bytes] | None = getattr(source, "SerializeToString", None)
    if serialize is None:
        return None
    try:
        return serialize(deterministic=True)
    except Exception:  # protobuf's own classes: a message over 2 GiB
        return None


def _plain(value: Any) -> Any:
    """The value as JSON gives it back, so that what was stored compares equal."""
    return json.loads(json.dumps(value))


def _folders(path: str | None, folder: str | None) -> tuple[str, ...]:
    if folder is not None:
        return (os.fspath(folder),)
    if path is None:
        return ()
    return (os.path.dirname(path) or ".", os.path.dirname(os.path.realpath(path)))


def cpu_identity() -> str:
    """A digest of what the operating system says this machine's cpu is and can do."""
    lines = [os.uname().machine]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                if line.partition(":")[0].strip() in _CPU_FIELDS:
                    lines.append(line.strip())
    except OSError:
        pass
    return digest_bytes("\n".join(lines).encode())


def find_external(request: Request, location: str) -> str:
    """The path of external data. FileNotFoundError when there is none."""
    for folder in request.folders:
        path = os.path.join(folder, location)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(location)


def make_key(
    request: Request,
    external: Sequence[str],
    compiler: Mapping[str, str],
    store: Store,
    files: Sequence[str] = (),
) -> dict[str, Any]:
    """The full key of a request whose external data lies in the files at these locations.

    files: others that took part: those of operators that installed packages declare.
    """
    digests = [[e, indexed_digest(store, find_external(request, e))] for e in external]
    others = [[path, indexed_digest(store, path)] for path in files]
    return {
        **request.fields, "external": digests, "compiler": dict(compiler), "files": others
    }  # fmt: skip


def package_state(path: str) -> str:
    """The state of a package's folder, or of one file. OSError when it is gone."""
    return tree_state(path) if os.path.isdir(path) else str(identity(path))
