"""Compares targets: whether B is faster than A, by how much, and how certain that is."""
