"""Scenarios as Python functions, run by engine/callables, and plugins."""
