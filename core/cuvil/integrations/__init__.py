"""Cuvil inside other libraries."""
