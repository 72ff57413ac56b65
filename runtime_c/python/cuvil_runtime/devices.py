"""Devices of installed backends; imported when a model needs one."""

from importlib.metadata import entry_points
from typing import Any

from cuvil_runtime import _runtime
from cuvil_runtime.errors import TargetError

GROUP = "cuvil.devices"


def open_device(library: str, symbol: str) -> Any:
    """The device of a backend's C shim, as `load` takes it: the capsule of a `cuvil_device_api`.

    library: the path of a shared library, which stays loaded. symbol: of the struct in it. Raises
    `TargetError`.
    """
    return _runtime.open_device(library, symbol)


def installed_device(name: str) -> Any:
    """The device called `name`, by entry point: group `cuvil.devices`, a function that returns it.

    Raises `TargetError` where no installed package, or more than one, offers it.
    """
    found = {e.value: e for e in entry_points(group=GROUP, name=name)}
    if not found:
        raise TargetError(
            f"the model needs device '{name}', which no installed package offers: install the "
            "backend that it was compiled with, or pass devices={...}"
        )
    if len(found) > 1:
        raise TargetError(f"device '{name}' is offered by {' and '.join(sorted(found))}")
    (entry,) = found.values()
    try:
        return entry.load()()
    except Exception as error:
        raise TargetError(f"device '{name}' ({entry.value}) does not open: {error}") from error
