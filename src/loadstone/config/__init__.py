"""What a run is to do: the value that command line, task file and study file compile to."""
