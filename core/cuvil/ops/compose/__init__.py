"""Compositions of primitives that several fronts' records share, so that an operator known to
both means one thing."""
