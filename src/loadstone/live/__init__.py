"""The progress of a command: one state, shown by the terminal, the live page and metrics."""
