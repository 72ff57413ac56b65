"""What `torch.compile(m, backend="cuvil", options={...})` may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from cuvil.errors import OptionError
from cuvil.options import Options

__all__ = ["Settings"]

FALLBACKS = ("eager", "error")


@dataclass(frozen=True)
class Settings:
    """Options of the backend.

    fallback: "eager" runs in torch what cannot be compiled, "error" refuses it. precision,
    opt_level, winograd, tune, threads, cache: as for `cuvil.compile`. base: all of these at once.
    """

    fallback: str = "eager"
    precision: str = "fp32"
    opt_level: int | str = 2
    winograd: bool = True
    tune: float | str = 0.0
    threads: int | None = None
    cache: bool = True
    base: Options | None = None

    def __post_init__(self) -> None:
        if self.fallback not in FALLBACKS:
            raise OptionError(f"fallback is one of {', '.join(FALLBACKS)}, not '{self.fallback}'")

    @staticmethod
    def of(options: Mapping[str, Any] | None) -> Settings:
        """From the options of a call. OptionError for one that there is not."""
        known = [f.name for f in fields(Settings)]
        for name in options or {}:
            if name not in known:
                raise OptionError(
                    f"backend 'cuvil' has no option '{name}'; there are {', '.join(known)}"
                )
        return Settings(**(options or {}))

    @property
    def compile_options(self) -> Options:
        """As a compile takes them."""
        if self.base is not None:
            return self.base
        return Options(
            precision=self.precision,
            opt_level=self.opt_level,  # type: ignore[arg-type]
            disable_kernels=() if self.winograd else ("winograd",),
            tune=self.tune,  # type: ignore[arg-type]
        )
