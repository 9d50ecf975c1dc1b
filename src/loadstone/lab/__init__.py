"""Starts what is tested, on this machine."""
