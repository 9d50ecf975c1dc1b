"""Observers of a trial: hooks, SLA aborts, resource usage, request counts, profiles."""
