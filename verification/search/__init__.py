"""Searches of services whose capacity is known."""
