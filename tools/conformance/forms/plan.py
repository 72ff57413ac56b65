"""The case as it is, by the numpy meaning of its plan."""

from __future__ import annotations

from tools.conformance.backends import PlanBackend
from tools.conformance.forms import Form

FORM = Form("plan", "plan", lambda: PlanBackend, rank=-2, native=False)
