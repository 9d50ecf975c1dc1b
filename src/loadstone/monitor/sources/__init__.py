"""What can be watched: one file per kind of source."""
