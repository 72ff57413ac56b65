"""Targets and the backends that serve them, found by entry point; nothing here names one."""
