"""Simpler forms of the same program: folding, identities, canonical order."""
