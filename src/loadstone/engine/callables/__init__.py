"""Runs Python functions as iterations, in worker processes."""
