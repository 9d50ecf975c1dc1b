"""Monitors, bottlenecks, predictions and sizings beside what was measured."""
