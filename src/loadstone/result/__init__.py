"""Results of runs as frozen dataclasses, and the interface of trial observers."""
