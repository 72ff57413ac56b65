"""Rewrite rules, one per file, by phase; `cuvil.rewrite.registry` finds them."""
