"""Scenarios that are Python functions, run by engine/callables, and the user's own (plugins)."""
