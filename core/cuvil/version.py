"""The version of the compiler, as artefacts and the cache key carry it."""

VERSION = "0.1.0"
PRODUCER = f"cuvil {VERSION}"
