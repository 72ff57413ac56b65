"""The `py` dialect to LLVM IR: compiled Python functions."""
