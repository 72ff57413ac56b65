"""The score in ONNX's own test suite: `python -m tools.conformance`."""

from tools.conformance.backends import PlanBackend, ReferenceBackend
from tools.conformance.lists import differences, listed
from tools.conformance.suite import ApartError, Outcome, run_suite
from tools.conformance.table import score

__all__ = [
    "ApartError",
    "Outcome",
    "PlanBackend",
    "ReferenceBackend",
    "differences",
    "listed",
    "run_suite",
    "score",
]
