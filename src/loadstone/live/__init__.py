"""What a command shows while it measures: a state that the terminal, a page and metrics read."""
