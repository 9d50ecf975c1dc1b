"""Sizes a service: what a load takes, from what was measured of a smaller one."""
