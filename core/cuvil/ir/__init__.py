"""The IR: dimensions, types, records of primitives, the `cuvil`, `nest` and `host` dialects."""
