"""Loads and runs Cuvil artefacts; needs numpy only."""
