"""Rally: its task files, scenarios, runners and results, read and written."""
