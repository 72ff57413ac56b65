"""The model zoo: real and built ONNX models that tests and benchmarks share."""
