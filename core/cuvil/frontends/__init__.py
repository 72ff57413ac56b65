"""Front ends: model formats and frameworks in, graphs of the `cuvil` dialect out."""
