"""Tunings of services whose true gain is known."""
