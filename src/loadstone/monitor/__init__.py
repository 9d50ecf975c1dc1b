"""Measures resource usage of the machine and of processes under load."""
