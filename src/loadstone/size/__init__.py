"""Sizes a service for a load from measurements of a smaller one."""
