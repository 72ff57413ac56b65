"""What a person may ask of a compile; one record that the CLI, Python and the cache key share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuvil.errors import OptionError
from cuvil.extents import Dynamic

EMITS = ("so", "a", "o", "llvm", "asm", "mlir")
PRECISIONS = {  # and the rules that compute in it
    "fp32": (),
    "bf16": ("bf16_contract", "bf16_conv", "round_before_views", "round_for_all"),
    "fp16": ("fp16_contract", "fp16_conv", "fp16_gather"),
}
WEIGHTS = ("auto", "embed", "external")
MEMORY_PLANS = ("static", "dynamic")
EXTERNAL_FROM = 1 << 30  # bytes of weights from which they go to a file of their own


@dataclass(frozen=True)
class Options:
    """Options of one compile.

    precision: "fp32" computes in the model's own types, "bf16" multiplies float32 as bfloat16,
    "fp16" stores weights as float16 and computes in float32.
    target, cpu, features: see `targets.target_list.resolve`. opt_level: 0 to 3. passes,
    disable_rules, enable_rules: see `rewrite.registry.Selection`. disable_kernels: kinds of fast
    kernels to do without ("winograd", ...). variant: the only build of the backend's to make, ""
    for its own choice. op_scheduling: whether kernels may run in another order than the model's,
    where they need less memory then, see `plan.schedule`; not at opt_level 0. memory_plan: "static"
    plans one arena; "dynamic" asks for the memory of each value when the run gets there, with the
    extents that it has, and frees it all at the end: less where upper bounds are far from what a
    run finds, slower elsewhere. dims: symbols to fix. bounds: symbol -> (least, greatest). dynamic:
    symbol -> Extents, or input -> {axis: Extents}: what callers promise, which the model must keep.
    specialize: symbol -> extents that get code of their own, beside the code for all; see
    `plan.special`. elements: input that is a sequence -> how many tensors it holds, or an optional
    -> 1 where it is there, 0 where not. name: prefix of exported symbols; "" takes the model's.
    tune: seconds for measuring on this machine what costs only estimate, see `tune`; also text such
    as "60s" or "2m".
    """

    target: str = "cpu"
    cpu: str = ""
    features: str = ""
    opt_level: int = 2
    passes: tuple[str, ...] | None = None
    disable_rules: tuple[str, ...] = ()
    enable_rules: tuple[str, ...] = ()
    disable_kernels: tuple[str, ...] = ()
    variant: str = ""
    graph_fusion: bool = True
    op_scheduling: bool = True
    precision: str = "fp32"
    weights: str = "auto"
    memory_plan: str = "static"
    name: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    dynamic: Dynamic = field(default_factory=dict)
    specialize: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    tune: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "opt_level", opt_level(self.opt_level))
        object.__setattr__(self, "tune", seconds(self.tune))
        if self.precision not in PRECISIONS:
            raise OptionError(
                f"precision is one of {', '.join(PRECISIONS)}, not '{self.precision}'"
            )
        if self.memory_plan not in MEMORY_PLANS:
            raise OptionError(
                f"memory_plan is one of {', '.join(MEMORY_PLANS)}, not '{self.memory_plan}'"
            )
        if self.weights not in WEIGHTS:
            raise OptionError(f"weights is one of {', '.join(WEIGHTS)}, not '{self.weights}'")


def opt_level(value: int | str) -> int:
    """0 to 3 from a number or "O0" to "O3". Raises OptionError otherwise."""
    text = str(value).upper().removeprefix("-").removeprefix("O")
    if text not in ("0", "1", "2", "3"):
        raise OptionError(f"opt_level is 0 to 3 or 'O0' to 'O3', not '{value}'")
    return int(text)


def seconds(value: float | str) -> float:
    """Seconds from a number, or from text such as "90", "90s", "1.5m". Raises OptionError."""
    text = str(value).strip().lower()
    unit = {"s": 1, "m": 60}.get(text[-1:], 0)
    try:
        found = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise OptionError(f"tune is a budget such as 60, '60s' or '2m', not '{value}'")
    return found
