"""Judges resources: bottlenecks, service demand, bounds, growth and predictions."""
