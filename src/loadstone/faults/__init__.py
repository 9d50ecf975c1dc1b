"""Faults: what breaks a deployment during a load, and how that is undone."""
