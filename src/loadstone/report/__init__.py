"""Formats results; pure functions."""
