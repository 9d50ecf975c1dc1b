"""Comparisons of services whose difference is known."""
