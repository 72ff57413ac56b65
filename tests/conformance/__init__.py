"""ONNX's own test suite against Cuvil, with a list of what is not supported."""
