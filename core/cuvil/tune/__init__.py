"""Measuring what costs only estimate: which way, and which cut, is fastest on this machine.

`Tuner` is what the pipeline asks; `trials` makes models of one kernel, `measure` compares them,
`records` keeps what was learned.
"""

from cuvil.tune.tuner import Tuner

__all__ = ["Tuner"]
