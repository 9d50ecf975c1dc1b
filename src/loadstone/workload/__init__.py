"""What a run measures, compiled from the command line, task files and study files."""
