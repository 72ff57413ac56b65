"""Compiled models in this process: compile, load, run.

The compiler is imported when an engine is not in the cache: what leads to it is found here when
somebody asks for it.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "addresses": "custom_code",
    "build_wanted": "front_door",
    "load_built": "front_door",
    "compiler_versions": "cache_versions",
    "edited_since": "cache_versions",
    "identities": "cache_versions",
    "package_states": "cache_versions",
}


def __getattr__(name: str) -> Any:
    """What a compile needs and most hits of the cache do not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'cuvil.engine' has no attribute '{name}'")
    return getattr(import_module(f"cuvil.engine.{_HOMES[name]}"), name)
