"""Features of Arm cpus: bit numbers are those of `shim/cpu_arm64.c`."""

from __future__ import annotations

from collections.abc import Iterable

from cuvil.targets import features
from cuvil.targets.features import Feature

_ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("fp16", "fullfp16", ()),
    ("dotprod", "dotprod", ()),
    ("fp16fml", "fp16fml", ("fp16",)),
    ("i8mm", "i8mm", ("dotprod",)),
    ("bf16", "bf16", ()),
    ("sve", "sve", ("fp16",)),
    ("sve2", "sve2", ("sve",)),
    ("neon", "neon", ()),
    ("vfp4", "vfp4", ()),
)  # name, LLVM's name, what comes with it
FEATURES = {
    name: Feature(name, bit, llvm, implies) for bit, (name, llvm, implies) in enumerate(_ROWS)
}

NARROW = ("neon", "vfp4")  # of 32-bit cpus, which others have in any case

_V82 = ("fp16", "dotprod")
_V84 = (*_V82, "fp16fml")
_V86 = (*_V84, "i8mm", "bf16")

CPUS: dict[str, tuple[str, ...]] = {
    "generic": (),
    "cortex-a35": (),
    "cortex-a53": (),
    "cortex-a57": (),
    "cortex-a72": (),
    "cortex-a73": (),
    "cortex-a55": _V82,
    "cortex-a75": _V82,
    "cortex-a76": _V82,
    "cortex-a76ae": _V82,
    "cortex-a77": _V82,
    "cortex-a78": _V82,
    "cortex-a78ae": _V82,
    "cortex-x1": _V82,
    "neoverse-n1": _V82,
    "cortex-a510": (*_V86, "sve2"),
    "cortex-a710": (*_V86, "sve2"),
    "cortex-x2": (*_V86, "sve2"),
    "neoverse-v1": (*_V86, "sve"),
    "neoverse-n2": (*_V86, "sve2"),
    "neoverse-v2": (*_V86, "sve2"),
    "apple-m1": _V84,
    "apple-m2": _V86,
    "apple-m3": _V86,
}


def closure(names: Iterable[str]) -> frozenset[str]:
    """The features and all that they imply."""
    return features.closure(FEATURES, names)
