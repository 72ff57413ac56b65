"""Compiling with the cache: a hit imports no compiler, and a cache that fails is done without."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from sys import modules
from typing import TYPE_CHECKING, Any

from cuvil import LOADED_NS
from cuvil import engine as lazy
from cuvil.engine.cache_files import digest_file
from cuvil.engine.cache_key import (
    Request,
    Wanted,
    digest_of,
    make_key,
    make_request,
    package_state,
)
from cuvil.engine.cache_store import Store, default_root, read_json, size_bound
from cuvil.engine.engine import Engine
from cuvil.errors import ArtefactError
from cuvil_runtime import load_object

if TYPE_CHECKING:
    from cuvil.engine.front_door import HostBuild

Progress = Callable[[str], None]
OBJECT, WEIGHTS, META, CUSTOM = "model.o", "weights.bin", "meta.json", "custom.json"
ALWAYS_HASHED = 8 << 20
"""Files up to this size are hashed at every load, larger ones when their time has changed."""


class CacheWarning(UserWarning):
    """The compile cache is not used, or an entry of it was damaged; the result is right anyway."""


def open_store() -> Store | None:
    """This user's cache, or None, with a warning, where it cannot be used."""
    try:
        return Store(default_root())
    except OSError as error:
        _warn_unusable(error)
        return None


def compile_uncached(
    source: Any, wanted: Wanted, threads: int | None, progress: Progress = lambda stage: None
) -> Engine:
    """Compiles and loads; nothing is kept."""
    found: Engine = lazy.load_built(lazy.build_wanted(source, wanted, progress), threads)
    return found


def compile_cached(
    source: Any, wanted: Wanted, threads: int | None, progress: Progress = lambda stage: None
) -> Engine:
    """An engine from the cache, or compiled and stored. Errors are those of a compile.

    The cache stays out of it where the user has fusion patterns, or custom operators of which it
    cannot be told what they do: these are not in the key.
    """
    known = _with_custom(wanted)
    if known is None:
        return compile_uncached(source, wanted, threads, progress)
    wanted = known
    store = open_store()
    request = None if store is None else _request(source, wanted, store)
    if store is None or request is None:
        return compile_uncached(source, wanted, threads, progress)
    found = _find(store, request, threads)
    if found is not None:
        return found
    with ExitStack() as held:
        _lock(store, request, held, progress)
        found = _find(store, request, threads)
        if found is not None:
            return found
        build = lazy.build_wanted(source, wanted, progress)
        progress("store")
        try:
            return _store(store, request, build, threads)
        except OSError as error:
            _warn_unusable(error)
            loaded: Engine = lazy.load_built(build, threads)
            return loaded


def find_cached(source: Any, wanted: Wanted, threads: int | None) -> Engine | None:
    """What `compile_cached` would find; None where it would compile."""
    known = _with_custom(wanted)
    store = None if known is None else open_store()
    if known is None or store is None:
        return None
    request = _request(source, known, store)
    return None if request is None else _find(store, request, threads)


def _with_custom(wanted: Wanted) -> Wanted | None:
    """With what is known of the user's operators; None where the cache cannot know them, or there
    are patterns."""
    if getattr(modules.get("cuvil.rewrite.user"), "PATTERNS", None):
        return None
    if not getattr(modules.get("cuvil.ops.custom.registry"), "OPERATORS", None):
        return wanted
    custom: list[str] | None = lazy.identities()
    return None if custom is None else replace(wanted, custom=tuple(custom))


def _lock(store: Store, request: Request, held: ExitStack, progress: Progress) -> None:
    """Waits while another process or thread compiles the same; without a lock if need be."""
    try:
        held.enter_context(store.lock(request.name, waiting=lambda: progress("wait")))
    except OSError as error:
        _warn_unusable(error)


def _request(source: Any, wanted: Wanted, store: Store) -> Request | None:
    try:
        return make_request(source, wanted, store)
    except OSError:
        return None  # the front end says what is wrong with the file


def _find(store: Store, request: Request, threads: int | None) -> Engine | None:
    """The engine of a stored entry; None where there is none that is sound."""
    record = store.read_record("requests", request.name)
    if record is None or record.get("request") != request.fields:
        return None
    try:
        if any(package_state(path) != state for path, state in record["packages"]):
            return None
        key = {
            **make_key(
                request, record["external"], record["compiler"], store, record.get("files", ())
            ),
            "target": record["target"],
        }
    except (OSError, KeyError, TypeError, ValueError):
        return None
    name = digest_of(key)
    meta = read_json(store.entry_folder(name) / META)
    if meta is None and not store.entry_folder(name).exists():
        return None
    try:
        found = _load(store.entry_folder(name), meta or {}, key, threads)
    except (OSError, KeyError, TypeError, ArtefactError) as error:
        warnings.warn(
            f"a damaged entry of the compile cache is made anew ({name[:12]}: {error})",
            CacheWarning,
            stacklevel=4,
        )
        _discard(store, name)
        return None
    store.touch(name)
    return found


def _load(
    folder: Path, meta: Mapping[str, Any], key: Mapping[str, Any], threads: int | None
) -> Engine:
    if meta.get("key") != key:
        raise ArtefactError(f"{META} does not fit")
    for name, facts in meta["files"].items():
        _check_file(folder / name, facts)
    return load_folder(folder, threads)


def _check_file(path: Path, facts: Mapping[str, Any]) -> None:
    info = path.stat()
    if info.st_size != facts["bytes"]:
        raise ArtefactError(f"{path.name} has {info.st_size} bytes of {facts['bytes']}")
    known = info.st_mtime_ns == facts["mtime_ns"] and info.st_size > ALWAYS_HASHED
    if not known and digest_file(path) != facts["digest"]:
        raise ArtefactError(f"{path.name} is not what was written")


def _discard(store: Store, name: str) -> None:
    try:
        store.remove(name)
    except OSError as error:
        _warn_unusable(error)


def load_folder(folder: Path, threads: int | None, image: Any = None) -> Engine:
    """The engine of a folder with an object and perhaps its weights, which stay mapped. image: a
    buffer that holds them instead."""
    weights = folder / WEIGHTS
    if image is None and weights.exists():
        image = os.fspath(weights)
    path = folder / OBJECT
    custom = folder / CUSTOM
    found = lazy.addresses(custom) if custom.exists() else None
    return Engine(load_object(path.read_bytes(), weights=image, threads=threads, addresses=found))


def _store(store: Store, request: Request, build: HostBuild, threads: int | None) -> Engine:
    external = [source.path for source in build.external]
    with store.staging() as folder:
        build.write(folder)
        if not build.came_from(request.identity) or lazy.edited_since(LOADED_NS, build.packages):
            return load_folder(folder, threads)  # model or compiler changed: nobody may find it
        versions = lazy.compiler_versions(build.packages)
        files = build.operator_files
        key = {**make_key(request, external, versions, store, files), "target": build.target}
        name = digest_of(key)
        facts = {p.name: _facts(p) for p in sorted(folder.iterdir())}
        (folder / META).write_text(json.dumps({"key": key, "files": facts}), encoding="utf-8")
        place = store.commit(folder, name)
        record = {
            "request": request.fields,
            "external": external,
            "files": files,
            "compiler": versions,
            "target": build.target,
            "packages": lazy.package_states(build.packages),
        }
        store.write_record("requests", request.name, record)
        found = load_folder(place, threads)
    store.prune(size_bound(), keep=name)
    return found


def _facts(path: Path) -> dict[str, Any]:
    info = path.stat()
    return {"bytes": info.st_size, "mtime_ns": info.st_mtime_ns, "digest": digest_file(path)}


def _warn_unusable(error: OSError) -> None:
    reason = f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error
    warnings.warn(
        f"the compile cache is not used: {reason}; "
        "set CUVIL_CACHE_DIR to another folder, or pass cache=False",
        CacheWarning,
        stacklevel=2,
    )
