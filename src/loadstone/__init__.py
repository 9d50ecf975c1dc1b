"""Measures how much load an identity service sustains, and names what limits it."""
