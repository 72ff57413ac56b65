"""Translated functions to machine code for this machine, kept in the compile cache."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from cuvil.codegen.facts import TargetFacts
from cuvil.codegen.python.module import ENTRY, emit_module
from cuvil.codegen.unit import Unit, compile_unit
from cuvil.engine.cache_files import digest_bytes
from cuvil.engine.cache_store import Store, default_root, read_json, size_bound
from cuvil.errors import CompileError, TargetError
from cuvil.ir import py
from cuvil.targets.backend import variants_of
from cuvil.targets.registry import find
from cuvil_runtime import _runtime

OBJECT, META = "function.o", "meta.json"


@lru_cache(maxsize=16)
def host_facts(target: str) -> TargetFacts:
    """What code for functions is generated for: this machine, or a cpu of its kind by name.

    Raises TargetError where this machine cannot run it.
    """
    backend, wanted = find(target)
    host = backend.host()
    if host is None or host.triple != wanted.triple:
        raise TargetError(f"cuvil.jit compiles for this machine, not for {wanted}")
    have = backend.feature_bits([word[1:] for word in host.features if word[0] == "+"])
    for variant in variants_of(backend, wanted):
        if not backend.feature_bits(variant.requires) & ~have:
            return variant.facts
    raise TargetError(f"this machine lacks features of {wanted}")


def build(functions: list[py.FuncOp], facts: TargetFacts, opt: int) -> tuple[int, Any]:
    """The address of a module's entry, and what keeps the code. Raises CompileError."""
    unit = emit_module(functions, facts, opt)
    name = digest_bytes(repr(unit).encode())
    store = _store()
    found = None if store is None else _cached(store, name)
    if found is not None:
        return found
    try:
        code = compile_unit(unit)
    except RuntimeError as error:
        raise CompileError(f"LLVM refused generated code: {error}") from error
    if store is not None:
        _keep(store, name, unit, code)
    return _runtime.load_function(code, ENTRY)


def _store() -> Store | None:
    try:
        return Store(default_root())
    except OSError:
        return None


def _cached(store: Store, name: str) -> tuple[int, Any] | None:
    folder = store.entry_folder(name)
    meta = read_json(folder / META)
    if meta is None:
        return None
    try:
        code = (folder / OBJECT).read_bytes()
    except OSError:
        return None
    if digest_bytes(code) != meta.get("digest"):
        return None
    store.touch(name)
    return _runtime.load_function(code, ENTRY)


def _keep(store: Store, name: str, unit: Unit, code: bytes) -> None:
    """Caches an object; that it cannot is no reason to fail."""
    key = {"name": "a Python function", "target": f"{unit.triple} {unit.cpu}"}
    meta = {"key": key, "digest": digest_bytes(code)}
    try:
        with store.staging() as folder:
            (folder / OBJECT).write_bytes(code)
            (folder / META).write_text(json.dumps(meta), encoding="utf-8")
            store.commit(folder, name)
        store.prune(size_bound(), keep=name)
    except OSError:
        return
