"""Runs what is no HTTP script: a Python function per iteration, in worker processes."""
