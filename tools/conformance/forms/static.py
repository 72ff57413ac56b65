"""As the suite says: the model that the case has, compiled, with the inputs that it has."""

from __future__ import annotations

from cuvil.onnx_backend import CuvilBackend
from tools.conformance.forms import Form

FORM = Form("static", "as it is", lambda: CuvilBackend)
