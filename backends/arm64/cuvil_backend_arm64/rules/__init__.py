"""Rewrite rules for Arm alone, one per file, by phase."""
