"""ONNX Runtime, as the suite says: what the score is held against."""

from __future__ import annotations

from tools.conformance.backends import peer
from tools.conformance.forms import Form

FORM = Form("onnxruntime", "ONNX Runtime", peer, rank=-1, native=False)
