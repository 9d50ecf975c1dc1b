"""Faults and kills: figures, and whether everything is undone."""
