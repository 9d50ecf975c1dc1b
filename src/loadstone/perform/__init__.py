"""Carries out a task: its workloads one after the other, everything kept as soon as it is known."""
