"""Compiled models in this process: compile, load, run."""
