"""Carries out a run: measurements, their trials, what is kept, and the exit code."""
