"""The case as it is, by the numpy meaning of the imported graph."""

from __future__ import annotations

from tools.conformance.backends import ReferenceBackend
from tools.conformance.forms import Form

FORM = Form("reference", "reference", lambda: ReferenceBackend, rank=-2, native=False)
