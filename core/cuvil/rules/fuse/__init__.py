"""Compositions become one primitive: norms, activations, constants folded into weights."""
